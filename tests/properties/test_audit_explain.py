"""Explanations against enumeration: the groups that they speak of are enough, and the change that they name helps."""

from __future__ import annotations

import re

from hypothesis import given

from oracle import joint
from properties.joint_cases import adversary_of, cases
from reveil.audit.audit import audit
from reveil.audit.input.observed import from_groups

GROUP = re.compile(r"Withholding release (\d+) group (\d+) would have prevented this")
RELEASE = re.compile(r"No single group (?:is|was found) to blame: it did not follow up to release (\d+)")


def only(series, keep):
    return [[group for g, group in enumerate(release) if keep(r, g)] for r, release in enumerate(series)]


def still_known(series, change, known):
    """What is known of those who are still shown; a lasting value is known wherever the person is."""
    shown = {(p, r) for r, release in enumerate(series) for people, _ in release for p in people}
    if change == "never":
        lasting = {p: v for (p, _), v in known.items()}
        return {(p, r): lasting[p] for p, r in shown if p in lasting}
    return {key: v for key, v in known.items() if key in shown}


def first_shown(series, person):
    return next((r for r, release in enumerate(series) if any(person in people for people, _ in release)), None)


def certain(series, left, change, priors, known, person, release, value):
    """Whether the value follows from what is left, in this release or (where it lasts) in any that is left. A prior is
    about the first value: where that is not left, it says nothing."""
    if isinstance(change, dict):
        priors = {p: row for p, row in priors.items() if first_shown(series, p) == first_shown(left, p)}
    _, posterior, _ = joint.beliefs(left, change, priors, still_known(left, change, known))
    rows = [row for (p, r), row in posterior.items() if p == person and (change == "never" or r == release)]
    return any(set(row) == {value} for row in rows)


@given(cases(most=5))
def test_reasons_are_enough_and_the_change_prevents_it(case):
    series, change, priors, known = case
    found = audit(from_groups(series), adversary=adversary_of(change, priors, known))
    o = found.observed
    for told in found.explanations:
        person, release = int(told.person), int(told.release) - 1
        asked = (person, release, told.value)
        named = {(int(o.group_release[g]), int(o.group_label[g]) - 1) for g in told.groups}
        assert told.enough and not told.caveat
        if named:  # nobody's group is needed where the value is known beforehand
            reasons = only(series, lambda r, g, named=named: (r, g) in named)
            assert certain(series, reasons, change, priors, known, *asked), told
        if match := GROUP.search(told.change):
            gone = (int(match[1]) - 1, int(match[2]) - 1)
            less = only(series, lambda r, g, gone=gone: (r, g) != gone)
            assert not certain(series, less, change, priors, known, *asked), told
        elif match := RELEASE.search(told.change):
            first = int(match[1])
            less = only(series, lambda r, g, first=first: r < first)
            assert not certain(series, less, change, priors, known, *asked), told
        else:
            assert told.change.startswith("No single group")
