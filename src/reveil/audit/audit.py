"""The audit as people call it: releases in, what an adversary believes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from reveil.audit.input.knowledge import Adversary, adversary_of
from reveil.audit.input.left_out import LeftOut
from reveil.audit.input.observed import Observed
from reveil.audit.input.publishers import PUBLISHER, Publisher, called, lines_of, publishers_of, refuse_lines
from reveil.audit.input.tables import OTHERS, Matched, match_tables, population_priors
from reveil.audit.input.tracing import trace
from reveil.audit.job import Job
from reveil.audit.result.outcome import Audit
from reveil.audit.settings import READING, AuditSettings
from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, brief, stop_if
from reveil.base.progress import Progress, silent
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.table.read import read_table


@runtime_checkable
class Attackable(Protocol):
    """What attacks itself: a series, with its own policy and what its ledger knows."""

    def audit(self, **how: Any) -> Audit: ...


def audit(
    releases: Any,
    population: Any = None,
    *,
    policy: PolicyLike | None = None,
    truth: I64 | pl.DataFrame | None = None,
    left_out: LeftOut | None = None,
    progress: Progress = silent,
    **how: Any,
) -> Audit:
    """Attack released tables, and say who is exposed and why.

    `releases` are tables in order (paths, frames, release folders, or pairs of tables for an anatomy) with a
    `population` that says who has which quasi-identifiers (a column `release` says when), a `Series`, or an `Observed`.
    `left_out` are people who were put in and are not shown. Folders of tables are publishers: what each tells alone is
    said beside what all tell together.
    All other keywords are those of `AuditSettings`, which says what each means.

    >>> one = pl.DataFrame({"age": ["2*", "2*"], "illness": ["flu", "cold"]})
    >>> two = pl.DataFrame({"age": ["[25-39]", "[25-39]"], "illness": ["flu", "asthma"]})
    >>> who = pl.DataFrame({"name": ["Ann", "Bob", "Bob", "Cid"], "age": [21, 28, 28, 35], "release": [1, 1, 2, 2]})
    >>> found = audit([one, two], who)
    >>> found.certain.filter(pl.col("person") == "Bob")["value"].unique().to_list()
    ['flu']
    >>> print(found.explain("Ann"))  # doctest: +ELLIPSIS
    In release 2 group 1 Bob can only have asthma or flu; values do not change, so Bob does not have cold in release...
    """
    if isinstance(releases, Attackable):  # a series of our own, which knows who is in which group
        return releases.audit(population=population, progress=progress, **how)
    settings, loaded = AuditSettings(**how), None if policy is None else load_policy(policy)
    if loaded is not None:
        refuse_several(loaded)
    who = adversary_for(settings, loaded, _faults(releases, population, settings))
    if publishers := publishers_of(releases):
        releases, population, settings = _one_after_the_other(publishers, population, settings, who)
    if isinstance(releases, Observed):
        held = _truth(truth, releases, settings.accept_missing)
        return Job(releases, who, loaded, held, settings, progress, left_out).run()
    if loaded is not None and loaded.guarantee.priors and not who.priors:
        who = replace(who, priors=population_priors(loaded, population, settings.sensitive, settings.identifier))
    matched = _matched(releases, population, loaded, settings, who.counterfeits_known)
    if len(publishers) > 1:
        return _of_publishers(
            replace(matched, releases=called(publishers), labelled=False), publishers, who, loaded, settings, progress
        )
    columns = matched.columns.sensitive if loaded is None and truth is None else matched.columns.sensitive[:1]
    each = replace(settings, limit=settings.limit / len(columns))  # every column that may be sensitive is attacked
    first, *rest = (
        Job(seen, who, loaded, _truth(truth, seen, settings.accept_missing), each, progress, left_out, followed).run()
        for seen, followed in ((matched.observed(column), trace(matched, column)) for column in columns)
    )
    return replace(first, also=tuple(rest))


def _one_after_the_other(
    publishers: Sequence[Publisher], population: Any, settings: AuditSettings, who: Adversary
) -> tuple[list[Path], pl.DataFrame, AuditSettings]:
    """The tables of all publishers, the population by their numbers, and the settings for it."""
    tables = [table for one in publishers for table in one.tables]
    people = read_table(population, OTHERS)
    if len(publishers) == 1 and PUBLISHER not in people.columns:
        return tables, people, settings
    if len(publishers) > 1 and who.change != "never":
        message = f"is {who.change!r}, and what is tied between publishers are values that last"
        remedy = "give the tables of one time only (a value lasts for that long), or audit each publisher alone"
        raise InputError(Fault("R732", "change", message, remedy))
    refuse_lines(people, publishers)
    lines = lines_of(people, publishers)
    known = settings.presence != "auto" or lines.told
    return tables, lines.people, settings if known else replace(settings, presence="unknown")


def _of_publishers(
    matched: Matched,
    publishers: Sequence[Publisher],
    who: Adversary,
    policy: Policy | None,
    settings: AuditSettings,
    progress: Progress,
) -> Audit:
    """Everybody's releases together, for half of the time, and beside that each publisher's alone."""
    found = []
    columns = matched.columns.sensitive
    for column in columns:
        alone, at = list[tuple[str, Matched]](), 0
        for one in publishers:
            part = matched.only(range(at, at + len(one.tables)))
            at += len(one.tables)
            alone += [(one.name, part)] if part.shows(column) else []
        each = replace(settings, limit=settings.limit / len(columns) / 2)
        whole = Job(matched.observed(column), who, policy, None, each, progress, followed=trace(matched, column)).run()
        short = replace(each, limit=each.limit / max(1, len(alone)), worst=0)
        parts = tuple(
            (name, Job(part.observed(column), who, policy, None, short, progress, followed=trace(part, column)).run())
            for name, part in alone
        )
        found.append(replace(whole, publishers=parts))
    return replace(found[0], also=tuple(found[1:]))


def refuse_several(policy: Policy) -> None:
    """People with several rows are none of the audit's worlds, in which each has one value."""
    if policy.bundled:
        message = f"looks at people with one row each, and {policy.bundled} of this policy may have several"
        raise InputError(Fault("R910", "audit", message, "judge the release with `reveil verify`"))


def adversary_for(settings: AuditSettings, policy: Policy | None, faults: Sequence[Fault]) -> Adversary:
    """The adversary; or everything that is wrong with it, with the settings and (`faults`) with anything else."""
    wrong = [*faults, *settings.faults()]
    who = None
    try:
        who = adversary_of(settings.adversary, policy, settings.background())
    except InputError as error:
        wrong += error.faults
    if who is not None and settings.draws > 1 and not who.share:
        remedy = "state the share of people who are known, such as 0.04, or leave draws out"
        wrong.append(Fault("R732", "draws", "nobody is drawn without a share", remedy))
    if wrong or who is None:
        raise InputError(wrong)
    return who


def _faults(releases: Any, population: Any, settings: AuditSettings) -> list[Fault]:
    if isinstance(releases, Observed):
        return settings.idle(population)
    if population is not None:
        return []
    message = "released tables alone do not say who is in them"
    return [Fault("R723", "population", message, "give the people with their quasi-identifiers")]


def _matched(
    releases: Any, population: Any, policy: Policy | None, settings: AuditSettings, counts_known: bool
) -> Matched:
    """Released tables, or a single one, with the people who may be in them."""
    listed = releases if isinstance(releases, list | tuple) and not _is_table(releases) else [releases]
    reading = {name: getattr(settings, name) for name in READING}
    return match_tables(list(listed), population, policy=policy, counts_known=counts_known, **reading)


def _is_table(releases: Sequence[Any]) -> bool:
    return isinstance(releases, tuple) and len(releases) == 2 and not isinstance(releases[0], tuple)


def _truth(given: I64 | pl.DataFrame | None, o: Observed, accept_missing: bool) -> I64 | None:
    """The true value's code of each appearance, -1 where it is not given; from a frame with person, release and value.

    Whoever is known to be in a release has a value that is shown there: another one is refused.
    """
    if given is None or isinstance(given, np.ndarray):
        return given
    rows = [tuple(map(plain_text, row)) for row in given.select("person", "release", "value").iter_rows()]
    _refuse_strangers(rows, o, accept_missing)
    value_of = {(person, release): value for person, release, value in rows}
    code = {plain_text(value): n for n, value in enumerate(o.values)}
    names = [plain_text(person) for person in o.persons]
    told = [value_of.get((names[p], o.releases[r])) for p, r in zip(o.app_person, o.app_release, strict=True)]
    sure = zip(told, o.app_sure, strict=True)
    lost = [value for value, there in sure if there and value is not None and value not in code]
    if lost:
        shown = ", ".join(brief(value) for value in dict.fromkeys(lost[:3]))
        message = f"{some(len(lost), 'value is', 'values are')} shown by no release: {shown}"
        raise InputError(Fault("R733", "truth", message, "write values as the releases do", len(lost)))
    return np.array([-1 if value is None else code.get(value, -1) for value in told], dtype=np.int64)


def _refuse_strangers(rows: Sequence[tuple[str, ...]], o: Observed, accept_missing: bool) -> None:
    """Lines of the truth about people or releases that nobody has heard of; such people may be accepted."""
    people, releases = set(map(plain_text, o.persons)), set(o.releases)
    faults = []
    kinds = [("releases", 1, releases)] if accept_missing else [("people", 0, people), ("releases", 1, releases)]
    for what, place, known in kinds:
        lost = [row[place] for row in rows if row[place] not in known]
        if lost:
            shown = ", ".join(brief(name) for name in list(dict.fromkeys(lost))[:3])
            message = f"{some(len(lost), 'line is', 'lines are')} about {what} that are not there: {shown}"
            faults.append(Fault("R733", "truth", message, "correct the names, or leave these lines out", len(lost)))
    stop_if(faults)


__all__ = ["Audit", "audit"]
