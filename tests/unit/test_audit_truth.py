"""The audit speaks of what was promised: being linked in any release, protected values, and nothing where it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveil.audit.audit import audit
from reveil.audit.input.observed import from_groups
from reveil.audit.result.screen import lines

FIGURE_2 = [[("ABCD", "ccff")], [("ABCE", "ccff")]]  # seed 000: two of four in both releases


def test_where_values_change_freely_the_headline_is_about_ever_linked() -> None:
    found = audit(from_groups(FIGURE_2), change="freely", promise="1/2")
    assert found.summary["highest"] == pytest.approx(3 / 4) and found.summary["above_promise"] == 3
    assert found.summary["above_half"] == 3 and not found.holds
    assert "at least one release" in lines(found)


def test_harmless_values_stand_beside_the_verdict() -> None:
    policy = {
        "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": 3, "harmless": ["h"]},
    }
    seen = from_groups([[("ABCD", "hhhv"), ("EFG", "hhh")]])
    found = audit(seen, policy=policy)
    assert found.holds and found.summary["exposed"] == 0 and found.summary["harmless_certain"] == 3
    assert found.summary["highest"] == pytest.approx(1 / 4)
    assert "harmless" in found.verdict[-1]
    strict = {**policy, "guarantee": {"model": "compromise-safety", "m": 3}}
    assert not audit(seen, policy=strict).holds


def test_too_many_undecided_is_an_answer_of_its_own() -> None:
    found = audit(from_groups(FIGURE_2))
    assert found.holds and not found.undecided
    decided = replace(found.inference, decided=found.inference.decided & False)
    blind = replace(found, inference=decided, score=replace(found.score, inference=decided))
    assert blind.undecided
