"""The audit of our own series: when asked, and as the last gate before a release is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from reveil.audit.audit import Audit, adversary_for, audit, refuse_several
from reveil.audit.input.boxes import box_sizes, crowds_of
from reveil.audit.input.knowledge import person_priors
from reveil.audit.input.observed import Observed
from reveil.audit.input.series import (
    REMEDY,
    PublishedRelease,
    left_out_of,
    observe_series,
    sources_of,
    truth_of,
)
from reveil.audit.settings import AuditSettings
from reveil.base.arrays import I64
from reveil.base.errors import Fault, GuaranteeError, InputError, TamperedError
from reveil.base.progress import Progress, silent
from reveil.base.words import agree, some_people
from reveil.history.recorded import STAND_INS, history_of
from reveil.ledger.ledger import Ledger
from reveil.policy.policy import Policy
from reveil.table.identify import person_hashes


def audit_series(
    ledger: Ledger, policy: Policy, population: Any = None, *, progress: Progress = silent, **how: Any
) -> Audit:
    """Attack a series from its public half and its membership. People are named by their identifiers or numbers.

    Compromised people without a stated value have the one that the ledger holds.
    """
    refuse_several(policy)
    settings = AuditSettings(**how)
    who = adversary_for(settings, policy, replace(settings, sensitive=None).idle(population))
    column, people = _column(policy, settings.sensitive), settings.people
    ledger.checked()
    sources = sources_of(ledger)
    seen = observe_series(sources, column)
    numbers = _Numbers(ledger, seen, policy.normalises)
    known = [numbers.of(item.person) for item in who.compromised]
    weighed = [numbers.of(person) for person in who.priors]
    asked = None if people is None else [numbers.of(str(person)) for person in people]
    seen = numbers.called(seen)
    name = seen.persons.to_list().__getitem__
    who = replace(
        who,
        compromised=tuple(replace(item, person=name(n)) for item, n in zip(who.compromised, known, strict=True)),
        priors={name(n): row for n, row in zip(weighed, who.priors.values(), strict=True)}
        or _priors(ledger, policy, column, seen),
    )
    truth = truth_of(sources, column, seen)
    seen = replace(seen, crowd=box_sizes(ledger, seen))
    if _unstated(policy, settings) and _changes(seen, truth):
        who = replace(who, change="freely", counterfeits_go_on=False)
    asked_by_name = None if asked is None else [name(n) for n in asked]
    effort = {f: getattr(settings, f) for f in ("draws", "promise", "limit", "samples", "worst", "seed")}
    left_out = left_out_of(sources, column, seen)
    outcome = audit(
        seen,
        policy=policy,
        adversary=who,
        people=asked_by_name,
        truth=truth,
        left_out=left_out,
        progress=progress,
        **effort,
    )
    return replace(outcome, crowds=crowds_of(ledger))


def _unstated(policy: Policy, settings: AuditSettings) -> bool:
    """Whether nobody has said how values change: then what the series has seen decides."""
    said = (policy.values.change, settings.adversary, settings.change, settings.transitions)
    return all(one is None for one in said)


def _changes(seen: Observed, truth: I64) -> bool:
    """Whether somebody had different values in different releases."""
    had = pl.DataFrame({"person": seen.app_person, "value": truth}).filter(pl.col("value") >= 0)
    return bool((had.group_by("person").agg(pl.col("value").n_unique())["value"] > 1).any())


def _priors(ledger: Ledger, policy: Policy, column: str, seen: Observed) -> dict[str, dict[str, Fraction]]:
    """What the policy's prior says of everybody, by their quasi-identifiers when they first appeared."""
    if not policy.guarantee.priors:
        return {}
    frames = []
    for record in ledger.records():
        kept = ledger.memory(record.number, "members").filter(pl.col("group") >= 0).select("person")
        signatures = ledger.memory(record.number, "signatures").drop("group")
        if signatures.height != kept.height:
            message = f"has {signatures.height:,} signatures for {some_people(kept.height)}"
            raise TamperedError(Fault("R733", f"release {record.number}", message, REMEDY))
        frames.append(pl.concat([kept, signatures], how="horizontal"))
    first = pl.concat(frames).unique("person", keep="first", maintain_order=True)
    names = seen.persons.gather(first["person"]).to_list()
    return person_priors(policy, column, names, {name: first[name].to_list() for name in first.columns[1:]})


def _column(policy: Policy, sensitive: str | None) -> str:
    names = policy.named("sensitive")
    if sensitive in names:
        return str(sensitive)
    if sensitive is not None or not names:
        message = f"column {sensitive!r} is not sensitive" if sensitive else "no column is sensitive"
        raise InputError(Fault("R723", "policy", message, f"use one of: {', '.join(names) or 'none'}"))
    return names[0]


class _Numbers:
    """Identifiers to the numbers of people in the series."""

    def __init__(self, ledger: Ledger, seen: Observed, normalises: bool) -> None:
        self.normalises = normalises
        self.people = seen.people
        self.persons = history_of(ledger).known()
        self.key = ledger.key if ledger.fingerprint() else None  # a series that ended may have none
        self.asked: dict[int, str] = {}  # by number

    def of(self, identifier: str) -> int:
        """The number of whoever has this identifier, or is called by a number."""
        persons = self._hashed(identifier)
        numbered = identifier.startswith("#") and identifier[1:].isdigit()
        if len(persons):
            number = int(persons[0])
            if not numbered:  # it would be taken for somebody else's number
                self.asked[number] = identifier
            return number
        if numbered and int(identifier[1:]) < self.people:
            return int(identifier[1:])
        remedy = "give an identifier of the original table, or a number as in the report, such as #17"
        raise InputError(Fault("R721", f"person {identifier!r}", "is not in this series", remedy))

    def _hashed(self, identifier: str) -> Sequence[int]:
        if self.key is None:
            return ()
        hashed = person_hashes(pl.Series([identifier]), self.key, normalise=self.normalises)
        return hashed.join(self.persons, on=["hi", "lo"], how="inner")["person"].to_list()

    def called(self, seen: Observed) -> Observed:
        """Whoever was asked about by an identifier is called so in all that is said; all others stay numbers."""
        if not self.asked:
            return seen
        names = seen.persons.clone().scatter(list(self.asked), list(self.asked.values()))
        return replace(seen, persons=names)


def insist(
    ledger: Ledger,
    policy: Policy,
    public: Path,
    memory: Mapping[str, pl.DataFrame],
    codebooks: Mapping[str, list[Any]],
    progress: Progress,
) -> None:
    """Refuse a staged release if, with all earlier ones, it exposes anybody or breaks the promise."""
    waits = policy.method.infeasible == "wait"
    staged = PublishedRelease(public, memory["members"], codebooks, waits, waits, memory.get(STAND_INS))
    sources = sources_of(ledger, staged)
    for column in policy.named("sensitive"):
        seen = observe_series(sources, column)
        truth = truth_of(sources, column, seen)
        how = policy.audit
        outcome = audit(
            seen, policy=policy, truth=truth, left_out=left_out_of(sources, column, seen), share=how.compromised,
            limit=how.seconds, worst=3, progress=progress,
            change="freely" if policy.values.change is None and _changes(seen, truth) else None,
        )  # fmt: skip
        if outcome.summary["exposed"] or outcome.broken:  # the gate is asked about as many known people as it says
            raise GuaranteeError([_fault(column, outcome), *_reasons(outcome)])


def _fault(column: str, outcome: Audit) -> Fault:
    s = outcome.summary
    message = (
        f"with this release, {some_people(s['exposed'])} {agree(s['exposed'], 'is', 'are')} exposed with certainty and "
        f"{s['above_promise']:,} {agree(s['above_promise'], 'is', 'are')} above the promise. "
        f"{' '.join((*outcome.verdict, s['adversary']))} Nothing was recorded or revealed"
    )
    return Fault(
        "R728", f"audit of {column!r}", message, "choose a guarantee for series, or turn [audit] gate off", s["exposed"]
    )


def _reasons(outcome: Audit) -> list[Fault]:
    return [
        Fault("R728", f"person {e.person}, release {e.release}", " ".join(e.sentences), e.change or "see above")
        for e in outcome.explanations
    ]
