"""The job of `reveil count`, in order: budget -> read -> roles -> count -> noise (staged) -> check -> record -> reveal.

Spending is recorded in the ledger, in one transaction with the release, before any number is revealed. A crash before
it leaves nothing to see and nothing spent; a crash after it leaves the budget spent, and the next command reveals the
numbers. Two counts at once cannot spend the same budget: only one finds the ledger as it left it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.doubts import accepted
from reveil.base.errors import Fault, GuaranteeError, InfeasibleError, InputError, TamperedError, stop_if
from reveil.base.files import write_json
from reveil.base.lots import secret_of, token
from reveil.base.progress import Progress, silent
from reveil.base.words import some
from reveil.dp import mechanism
from reveil.dp.count_policy import Budget, Counting, Terms, recorded_terms
from reveil.dp.counting import bound, cells, exact_text, grid, read
from reveil.ledger import store
from reveil.ledger.anchor import refuse_seen
from reveil.ledger.ledger import Ledger
from reveil.ledger.moving import refuse_other
from reveil.ledger.opening import discover
from reveil.ledger.record import GENESIS, Head, Record
from reveil.policy.policy import load_as
from reveil.published.format import PACKAGE, PRIVATE, PUBLIC
from reveil.published.imprint import Imprint
from reveil.published.reader import read_tables
from reveil.write.emit import emit, stamp

CountingLike = str | Path | Mapping[str, Any] | Counting
STATEMENT = (
    "Whoever sees all releases of this series, and knows everybody else's rows in all of them, can hardly tell whether"
    " one person was ever in the tables. Neighbours are two histories that differ in all rows of one person, at most"
    " {contributions} in each release. The odds between them change by a factor of at most exp({budget}) in all."
)
GAUSSIAN = (
    "Whoever sees all releases of this series, and knows everybody else's rows in all of them, can hardly tell whether"
    " one person was ever in the tables. Neighbours are two histories that differ in all rows of one person, at most"
    " {contributions} in each release. The series is {budget}-zCDP."
)


@dataclass(frozen=True)
class Spent:
    """The budget of a series: what there is, what is gone, and by which releases."""

    series: str
    measure: str
    budget: Fraction
    spent: Fraction
    releases: tuple[dict[str, Any], ...]
    statement: str
    epsilon: float | None  # for rho: what has been spent, as epsilon at the policy's delta

    @property
    def left(self) -> Fraction:
        return self.budget - self.spent

    def to_dict(self) -> dict[str, Any]:
        amounts = {"budget": self.budget, "spent": self.spent, "left": self.left}
        return {
            "series": self.series,
            "measure": self.measure,
            **{name: exact_text(amount) for name, amount in amounts.items()},
            "releases": list(self.releases),
            "statement": self.statement,
            "epsilon_at_delta": self.epsilon,
        }

    def __repr__(self) -> str:
        gone, whole = exact_text(self.spent), exact_text(self.budget)
        return f"<Spent: {self.measure} {gone} of {whole} in {some(len(self.releases), 'release')} of {self.series!r}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p><p>{escape(self.statement)}</p>"


@dataclass(frozen=True, eq=False)
class Counted:
    """One release of noisy counts."""

    tables: Mapping[str, pl.DataFrame]  # by name: bins and count
    privacy: pl.DataFrame  # what each table spent, its noise and its error; published too
    number: int
    path: Path
    left_out: int  # rows beyond what one person may contribute; private
    budget: Spent

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "path": str(self.path),
            "rows_left_out": self.left_out,
            "privacy": self.privacy.to_dicts(),
            "budget": self.budget.to_dict(),
        }

    def __repr__(self) -> str:
        names = ", ".join(f"{name} ({table.height:,} cells)" for name, table in self.tables.items())
        return f"<Counted: release {self.number} of {self.budget.series!r}: {names}; {self.budget!r}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.privacy._repr_html_()}"


def spent(policy: CountingLike, home: str | Path | None = None) -> Spent:
    """What a series of counts has spent of its budget; an edited ledger or file of a release is refused.

    A policy that was edited since is read for its series only: what people were promised is what was recorded.
    """
    rules = load_as(Counting, policy)
    place = _home(rules, home)
    ledger = None if _unbegun(place) else _settled(Ledger.open(place, rules.anchor))
    past = [] if ledger is None else list(ledger.snapshot().chain)  # what a discarded release spent stays spent
    if ledger is None or not past:
        _refuse_idle(rules.dp)
        return _spent(rules.series.name, rules.dp, [])
    if faults := ledger.check():
        raise TamperedError(faults)
    changed = bool(_changes(ledger, rules))
    return _spent(ledger.series, recorded_terms(ledger.policy or {}) if changed else rules.dp, past)


def look_back(policy: CountingLike, home: str | Path | None = None) -> tuple[list[str], list[Fault]]:
    """Finish or clear away what a crash left, and say what was done; and where this is not the recorded policy.

    `count` and `spent` settle it too, in silence.
    """
    rules = load_as(Counting, policy)
    place = _home(rules, home)
    if _unbegun(place):
        return [], []
    ledger = Ledger.open(place, rules.anchor)
    return ledger.settle(), _changes(ledger, rules)


def _changes(ledger: Ledger, rules: Counting) -> list[Fault]:
    """Where the policy is not the recorded one; a home of rows, which has no budget, is refused."""
    if ledger.policy is not None and "dp" not in ledger.policy:
        message = f"the series {ledger.series!r} publishes rows, and has no budget"
        raise InputError(Fault("R502", f"home '{ledger.home}'", message, "give the home of the counts with --home"))
    return ledger.changes(rules.series.name, rules.fixed())


def count(
    table: Any,
    policy: CountingLike,
    *,
    home: str | Path | None = None,
    progress: Progress = silent,
    accept: Sequence[str] = (),
    catalog: str | None = None,
) -> Counted:
    """One more release of noisy counts, if the budget of the series allows it; spending is recorded first.

    `accept` names doubts about the file as a whole that are right as they are (`reveil.base.doubts`). Rows of sums are
    not looked for here: nothing is told from rows, and one of them counts no more than one person. A new series keeps
    its ledger in the PostgreSQL database at the address `catalog`.

    >>> import tempfile
    >>> people = pl.DataFrame({"who": ["a", "b", "c"], "sex": ["F", "F", "M"]})
    >>> by_sex = {"name": "by-sex", "by": ["sex"], "spend": 2}
    >>> dp = {"epsilon": 3, "bins": {"sex": ["F", "M"]}, "counts": [by_sex]}
    >>> policy = {"columns": {"who": "identifier", "sex": "quasi"}, "dp": dp}
    >>> made = count(people, policy, home=tempfile.mkdtemp() + "/home")
    >>> made.tables["by-sex"]["sex"].to_list(), made.budget
    (['F', 'M', '(other)', '(missing)'], <Spent: epsilon 2 of 3 in 1 release of 'series'>)
    """
    rules = load_as(Counting, policy)
    mechanism.opendp()
    place = _home(rules, home)
    refuse_other(place, catalog)
    ledger = None if _unbegun(place) else _open(rules, place)
    if ledger is None:
        refuse_seen(rules.anchor)
    now = None if ledger is None else ledger.snapshot()
    past = [] if now is None else list(now.chain)  # what a discarded release spent stays spent
    if not past:
        _refuse_idle(rules.dp)
    head = GENESIS if now is None else now.head
    scales = _afford(rules.dp, past)
    privacy, epsilon = _privacy(rules.dp, scales), _epsilon(rules.dp, [*_scales(past), *scales])
    progress("reading", 0.0)
    frame = read(table, rules, accepted(accept))
    ledger = ledger or _open(rules, place, catalog)  # a refused table leaves nothing behind
    staged = ledger.stage()
    try:
        tables, left_out = _write(frame, rules, scales, privacy, staged, progress)
        imprint = _imprint(past, ledger.key)
        stamp(staged / PUBLIC, imprint)
        record = _record(ledger, staged, head, rules, scales, imprint)
    except OSError as error:
        raise store.refused_by_disk(error) from error
    finally:
        ledger.discard(staged)
    path = ledger.reveal(record.number)
    budget = _spent(rules.series.name, rules.dp, [*past, record], epsilon)
    return Counted(tables, privacy, record.number, path, left_out, budget)


def _unbegun(home: Path) -> bool:
    """Whether no series has begun in this place: it is empty, or holds only what a start cut off had laid out."""
    if store.vacant(home):
        return True
    return home.is_dir() and not discover(home) and not store.foreign(home)


def _home(rules: Counting, home: str | Path | None) -> Path:
    return Path(home) if home is not None else rules.folder / ".reveil"


def _open(rules: Counting, home: Path, catalog: str | None = None) -> Ledger:
    """The ledger to count in; another policy than the recorded one is refused."""
    name, fixed = rules.series.name, rules.fixed()
    return _settled(Ledger.create_or_open(home, series=name, policy=fixed, anchor=rules.anchor, catalog=catalog))


def _settled(ledger: Ledger) -> Ledger:
    """Settled, with its chain checked: what was spent may not be edited away."""
    ledger.settle()
    if faults := ledger.check([]):
        raise TamperedError(faults)
    return ledger


def _refuse_idle(budget: Budget) -> None:
    """Bins that nothing counts are refused at the beginning; later they stay as they are."""
    remedy = "count it, or leave its bins out: the first release fixes them"
    stop_if([Fault("R201", "dp.bins", f"bins of {name!r} are counted nowhere", remedy) for name in budget.idle])


def _afford(budget: Budget, past: list[Record]) -> list[float]:
    """The scales of the noise of each count; refused where the budget does not last for them.

    The stated spendings are added up exactly, and OpenDP composes all noise that was ever added: both must agree.
    """
    gone = _gone(past)
    new = [mechanism.calibrate(budget.measure, budget.contributions, count.spend) for count in budget.counts]
    lost = mechanism.loss(budget.measure, budget.contributions, [*_scales(past), *new])
    if gone + budget.each > budget.total or lost > budget.total:
        message = (
            f"{budget.measure} {exact_text(gone)} of {exact_text(budget.total)} is spent by "
            f"{some(len(past), 'release')},"
            f" and this one needs {exact_text(budget.each)}. Nothing was counted"
        )
        remedy = (
            "ask for less (a lower spend, or fewer counts; bins stay as they are), or end the series: what people were"
            " promised cannot be raised"
        )
        raise InfeasibleError(Fault("R470", "budget", message, remedy))
    return new


def _gone(past: list[Record]) -> Fraction:
    return sum((Fraction(record.facts["spend"]) for record in past), Fraction(0))


def _scales(past: list[Record]) -> list[float]:
    return [scale for record in past for scale in record.facts["scales"]]


def _epsilon(budget: Terms, scales: list[float]) -> float | None:
    """All of this noise in the words of (epsilon, delta), for a policy with a delta."""
    return None if budget.delta is None else mechanism.epsilon_at(budget.contributions, scales, budget.delta)


def _write(
    frame: pl.DataFrame, rules: Counting, scales: list[float], privacy: pl.DataFrame, staged: Path, progress: Progress
) -> tuple[dict[str, pl.DataFrame], int]:
    """Count, add noise, write and check; all of it in the staging folder."""
    budget = rules.dp
    assert rules.identifier is not None
    kept, left_out = bound(frame, rules.identifier, budget.contributions)
    tables = {}
    for number, (marginal, scale) in enumerate(zip(budget.counts, scales, strict=True)):
        progress(f"counting {marginal.name}", number / len(scales))
        drawn = mechanism.noisy(budget.measure, scale, cells(kept, marginal, budget))
        tables[marginal.name] = grid(marginal, budget, drawn)
    emit({**tables, "privacy": privacy}, None, rules, staged / PUBLIC)
    _check(staged / PUBLIC, {**tables, "privacy": privacy})
    write_json(staged / PRIVATE / "spending.json", {"rows": frame.height, "rows_left_out": left_out})
    return tables, left_out


def _privacy(budget: Budget, scales: list[float]) -> pl.DataFrame:
    """What recipients need to know of the noise. None of it depends on the table."""
    noise = "discrete Laplace" if budget.measure == "epsilon" else "discrete Gaussian"
    return pl.DataFrame(
        {
            "table": [count.name for count in budget.counts],
            "noise": noise,
            "scale": scales,
            "error of 95 in 100 cells": [mechanism.error(budget.measure, scale) for scale in scales],
            budget.measure: [exact_text(count.spend) for count in budget.counts],
            "rows of one person": budget.contributions,
        }
    )


def _check(public: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """The written bytes say what was drawn, and nothing else is in the folder."""
    resources = json.loads((public / PACKAGE).read_text(encoding="utf-8"))["resources"]
    extra = {path.name for path in public.iterdir()} - {resource["path"] for resource in resources} - {PACKAGE}
    said = _said(public)
    wrong = [name for name, table in tables.items() if name not in said or not said[name].equals(table)]
    if extra or wrong:
        message = f"changed while written: {', '.join([*wrong, *sorted(extra)])}"
        raise GuaranteeError(Fault("R606", "noisy counts", message, "do not publish; report this as a bug of Reveil"))


def _said(public: Path) -> dict[str, pl.DataFrame]:
    """What the files say; nothing where they cannot be read."""
    try:
        return read_tables(public)
    except InputError:
        return {}


def _imprint(past: list[Record], key: bytes) -> Imprint:
    """What the data package says of its series: random, so that nothing can be tested against it."""
    last, secret = Imprint.read(past[-1].facts) if past else None, secret_of(key, None)
    return Imprint.following(last, len(past) + 1, token(secret, "series"), token(secret, "release"))


def _record(ledger: Ledger, staged: Path, head: Head, rules: Counting, scales: list[float], imprint: Imprint) -> Record:
    names = [{"name": count.name, "spend": str(count.spend)} for count in rules.dp.counts]
    facts = {"measure": rules.dp.measure, "spend": str(rules.dp.each), "scales": scales, "tables": names}
    return ledger.record(staged, on=head, facts=facts | imprint.to_dict())


def _spent(series: str, budget: Terms, past: list[Record], epsilon: float | None = None) -> Spent:
    """`epsilon`, where it is not known yet, is added up from all noise so far."""
    releases = tuple(
        {
            "number": record.number,
            "made": record.made,
            "spend": exact_text(Fraction(record.facts["spend"])),
            "tables": [table["name"] for table in record.facts["tables"]],
        }
        for record in past
    )
    words = STATEMENT if budget.measure == "epsilon" else GAUSSIAN
    statement = words.format(contributions=budget.contributions, budget=exact_text(budget.total))
    epsilon = _epsilon(budget, _scales(past)) if epsilon is None else epsilon
    return Spent(series, budget.measure, budget.total, _gone(past), releases, statement, epsilon)
