"""The audit of our own series: when asked, and as the last gate before a release is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from reveil.audit.api import Audit, audit
from reveil.audit.infer import Progress
from reveil.audit.knowledge import Known, known_from, person_priors
from reveil.audit.observed import I64, Observed
from reveil.audit.series import observe_series, truth_of
from reveil.errors import Fault, GuaranteeError, InputError
from reveil.identify import keyed_hashes
from reveil.ledger.ledger import Ledger
from reveil.policy import Policy


def audit_series(
    ledger: Ledger,
    policy: Policy,
    *,
    sensitive: str | None = None,
    compromised: Sequence[Any] = (),
    people: Sequence[object] | None = None,
    **how: Any,
) -> Audit:
    """Attack a series from its public half and its membership. People are named by their identifiers or numbers.

    Compromised people without a stated value have the one that the ledger holds.
    """
    column = _column(policy, sensitive)
    seen = observe_series(ledger, column)
    numbers = _Numbers(ledger, seen)
    listed = [numbers.known(item) for item in compromised]
    asked = None if people is None else [numbers.name(str(person)) for person in people]
    truth = truth_of(ledger, column, seen)
    priors = _priors(ledger, policy, column)
    return audit(seen, policy=policy, compromised=listed, people=asked, truth=truth, priors=priors, **how)


def _priors(ledger: Ledger, policy: Policy, column: str) -> dict[str, dict[str, Fraction]]:
    """What the policy's prior says of everybody, by their quasi-identifiers when they first appeared."""
    if not policy.guarantee.priors:
        return {}
    frames = []
    for record in ledger.records():
        kept = ledger.memory(record.number, "members").filter(pl.col("group") >= 0).select("person")
        frames.append(pl.concat([kept, ledger.memory(record.number, "signatures").drop("group")], how="horizontal"))
    first = pl.concat(frames).unique("person", keep="first", maintain_order=True)
    names = [f"#{number}" for number in first["person"]]
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

    def __init__(self, ledger: Ledger, seen: Observed) -> None:
        self.people = seen.people
        frames = [ledger.memory(record.number, "persons") for record in ledger.records()]
        self.persons = pl.concat(frames).select("hi", "lo").with_row_index("person")
        self.key = ledger.key

    def name(self, identifier: str) -> str:
        hashed = keyed_hashes(pl.Series([identifier]), self.key)
        found = hashed.join(self.persons, on=["hi", "lo"], how="inner")["person"]
        if len(found):
            return f"#{found[0]}"
        if identifier.startswith("#") and identifier[1:].isdigit() and int(identifier[1:]) < self.people:
            return identifier
        remedy = "give an identifier of the original table, or a number as in the report, such as #17"
        raise InputError(Fault("R721", f"person {identifier!r}", "is not in this series", remedy))

    def known(self, item: Any) -> Known:
        stated = known_from(item)
        return Known(self.name(stated.person), stated.value, stated.release)


def insist(
    ledger: Ledger,
    policy: Policy,
    public: Path,
    members: pl.DataFrame,
    codebooks: Mapping[str, list[Any]],
    progress: Progress,
) -> None:
    """Refuse a staged release if, with all earlier ones, it exposes anybody or breaks the promise."""
    for column in policy.named("sensitive"):
        seen = observe_series(ledger, column, staged=(public, members))
        truth: I64 = truth_of(ledger, column, seen, staged=(members, codebooks[column]))
        how = policy.audit
        found = audit(
            seen, policy=policy, truth=truth, share=how.compromised, limit=how.seconds, worst=3, progress=progress
        )
        if not found.holds:
            raise GuaranteeError([_fault(column, found), *_reasons(found)])


def _fault(column: str, found: Audit) -> Fault:
    s = found.summary
    message = (
        f"with this release, {s['exposed']:,} people are exposed with certainty and {s['above_promise']:,} are above "
        f"the promise. {s['adversary']} Nothing was recorded or revealed"
    )
    return Fault(
        "R728", f"audit of {column!r}", message, "choose a guarantee for series, or turn [audit] gate off", s["exposed"]
    )


def _reasons(found: Audit) -> list[Fault]:
    return [
        Fault("R728", f"person {e.person}, release {e.release}", " ".join(e.sentences), e.change or "see above")
        for e in found.explanations
    ]
