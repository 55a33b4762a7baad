"""Judge again what is already out: recorded releases, folders, and tables that others have published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, ReveilError, TamperedError
from reveil.history.history import History
from reveil.history.recorded import history_of, stood_in
from reveil.ledger.ledger import Ledger
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.published.format import GROUP, PACKAGE, PUBLIC, public_half
from reveil.published.imprint import Imprint
from reveil.verify.certificate import Certificate, certify
from reveil.verify.comparing import Truth
from reveil.verify.reading import grouped, published_columns, read_others
from reveil.verify.verify import Verification, check_table, verify


def recheck(ledger: Ledger, policy: Policy, number: int | None) -> Mapping[int, Verification | ReveilError]:
    """Each recorded release (or one of them): its files as recorded, its bytes as promised, given what came before."""
    series = ledger.snapshot()
    past: History | None = None  # read only when the chain bears it out
    results: dict[int, Verification | ReveilError] = {}
    for record in series.records:
        if number not in (None, record.number):
            continue
        faults = ledger.check([record.number])
        if faults:
            results[record.number] = TamperedError(faults)
            continue
        past = past or history_of(ledger, series)
        before = past.until(record.number)
        members = past.members.filter(pl.col("release") == record.number)
        truth = Truth(
            rows=members.height,
            withheld=int((members["group"] < 0).sum()),
            members=_with_values(members.filter(pl.col("group") >= 0), past),
            left_out=_with_values(members.filter(pl.col("group") < 0), past),
            stand_ins=stood_in(ledger, record),
            by_lot=bool(record.facts.get("by_lot")),
            signatures=ledger.memory(record.number, "signatures") if policy.guarantee.priors else None,
        )
        results[record.number] = verify(ledger.path(record.number) / PUBLIC, policy, before, truth)
    if number is not None and not results:
        raise InputError(Fault("R510", f"release {number}", "is not in this series", "see `reveil history`"))
    return results


def _with_values(members: pl.DataFrame, past: History) -> pl.DataFrame:
    """Who was in which group, with the value that the ledger remembers."""
    held = [_decoded(members[name], values) for name, values in past.codebook.items()]
    return pl.DataFrame([members["person"], members["group"], *held])


def _decoded(codes: pl.Series, book: Sequence[Any]) -> pl.Series:
    """The values of codes, of a type for these alone: large whole numbers would suffer from fractions beside them."""
    used = codes.unique().sort()
    values = pl.Series(codes.name, [book[code] for code in used], strict=False)
    return values.gather(used.search_sorted(codes))


def check_folder(folder: Path, policy: Policy) -> Certificate:
    """Judge a folder of public files on its own, without any history."""
    public = public_half(folder)
    verification = verify(public, policy, History())
    imprint = Imprint.read(json.loads((public / PACKAGE).read_bytes()))
    later = imprint is not None and imprint.release > 1 and policy.guarantee.series
    note = "Earlier releases of this series are not known here: what is said about the series is about this one alone."
    return _certificate(verification, policy, (note,) if later else ())


def check(published: Any, policy: PolicyLike) -> Certificate:
    """Judge a table that somebody has published already, in our notation or ARX's, under a policy.

    >>> table = pl.DataFrame({"age": ["2*", "2*", "4*"], "illness": ["flu", "cold", "flu"]})
    >>> check(table, {"columns": {"age": "quasi", "illness": "sensitive"}, "guarantee": {"k": 2}}).holds
    False
    """
    return check_published(published, load_policy(policy))


def check_published(published: Any, policy: Policy) -> Certificate:
    """Judge a published table, whoever made it. Rows are groups of equal generalised cells, or of an equal `group`."""
    table = read_others(published, policy)
    wanted = published_columns(policy)
    missing = [name for name in wanted if name not in table.columns and name not in policy.named("insensitive")]
    if missing:
        faults = [
            Fault("R604", f"column {name!r}", "is in the policy but not in the published table", "correct the policy")
            for name in missing
        ]
        raise InputError(faults)
    if grouped(table, policy) and not table[GROUP].dtype.is_integer():  # others may call their groups A and B
        table = table.with_columns(pl.col(GROUP).rank("dense"))
    quasi = table.with_columns(pl.col(name).cast(pl.String) for name in policy.named("quasi"))
    return _certificate(check_table(quasi, policy), policy)


def _certificate(verification: Verification, policy: Policy, notes: tuple[str, ...] = ()) -> Certificate:
    return certify(verification, policy, release=None, rows=verification.rows, reasons={}, hashes={}, notes=notes)
