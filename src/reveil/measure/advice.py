"""What drives the loss of a planned release, and what would help: each way is tried on the table, none is guessed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import InfeasibleError, InputError
from reveil.base.lots import generator
from reveil.base.progress import Progress, silent
from reveil.hierarchies.tree import ANY
from reveil.history.bags import LOTS_OF_ROWS, in_bags
from reveil.history.history import History
from reveil.history.tables import Trace, moving_columns, trace_of
from reveil.jobs.input import usable
from reveil.plan.cutting.boxes import boxes, distinct_runs
from reveil.plan.loss import Loss, loss_of
from reveil.plan.methods import method
from reveil.plan.plan import Plan
from reveil.policy.column import DATE_LEVELS, Column, DateLevel
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.start.columns import moves_by_name
from reveil.table.encode import Encoded, encode
from reveil.table.where import Where

CROWD = 5  # people in a box of two tables, where the policy has no k
COARSE = 0.8  # share of cells that say nothing, above which a column is called too coarse to use
COLUMNS = 6  # whose leaving out is tried, those that lose most first
GAIN = 0.02  # of the loss: less is not worth a line
DATED: dict[DateLevel, float] = {"month": 30.4, "year": 365.2}  # levels that a date is tried with, and their days
NUMBERS = {"m": 2, "k": 2, "l": 2}  # and the least that each may become


@dataclass(frozen=True)
class Way:
    """One change of the policy that was tried, and what came of it."""

    change: str
    before: float  # mean NCP per cell
    after: float
    others: tuple[float, float]  # the same, of the columns that are published both times
    withheld: int  # rows, after
    counterfeits: int  # after
    recoded: bool = False  # a column is shown in another way, and its loss is counted

    @property
    def helps(self) -> bool:
        """It must help the release as a whole; and the columns that stay, where another one goes."""
        kept = self.others[0] - self.others[1] > GAIN * self.others[0]
        return self.gain > GAIN * self.before if self.recoded else self.gain > 0 and kept

    @property
    def gain(self) -> float:
        return self.before - self.after

    def to_dict(self) -> dict[str, Any]:
        figures = {"before": round(self.before, 6), "after": round(self.after, 6)}
        figures |= {"others_before": round(self.others[0], 6), "others_after": round(self.others[1], 6)}
        return {"change": self.change, **figures, "withheld": self.withheld, "counterfeits": self.counterfeits}


@dataclass(frozen=True)
class Advice:
    """Where a release loses most, and what would help, the largest gain first."""

    loss: Mapping[str, float]  # NCP by column
    nothing_said: Mapping[str, float]  # share of rows whose cell of a column says nothing (`*`, or withheld)
    ways: tuple[Way, ...]
    untried: tuple[str, ...]  # for lack of time
    moving: tuple[str, ...] = ()  # quasi-identifiers that are another one for everybody in each release

    @property
    def too_coarse(self) -> list[str]:
        return [name for name, share in self.nothing_said.items() if share > COARSE]

    def to_dict(self) -> dict[str, Any]:
        return {
            "loss": {name: round(value, 6) for name, value in self.loss.items()},
            "nothing_said": {name: round(value, 4) for name, value in self.nothing_said.items()},
            "too_coarse": self.too_coarse,
            "moving_columns": list(self.moving),
            "ways": [way.to_dict() for way in self.ways],
            "untried": list(self.untried),
        }

    def lines(self) -> Iterator[str]:
        """In sentences, for people."""
        for name in self.too_coarse:
            yield f"{name!r} is too coarse to use: {self.nothing_said[name]:.0%} of its cells say nothing"
        for name in self.moving:
            yield (
                f"{name!r} is another one for everybody in each release: all of them together tell more of a person "
                "than one does; drop it, or keep the year alone (`reveil explain moving`)"
            )
        for way in self.ways:
            rest = (
                f" (the other columns {way.others[0]:.2f} -> {way.others[1]:.2f})"
                if way.others != (way.before, way.after)
                else ""
            )
            cost = f"; {way.withheld:,} withheld, {way.counterfeits:,} counterfeit"
            yield f"{way.change}: loss {way.before:.2f} -> {way.after:.2f}{rest}{cost}"
        if not self.ways:
            yield "no single change that was tried lowers the loss by more than 2 %"
        if self.untried:
            yield f"not tried for lack of time: {', '.join(self.untried)}"


def advise(
    table: Any,
    policy: PolicyLike,
    *,
    seconds: float = 30.0,
    seed: int = 0,
    accept: Sequence[str] = (),
    where: Where | None = None,
    traces: Mapping[int, Trace] | None = None,
    progress: Progress = silent,
) -> Advice:
    """Plan a table as a first release, and again with one thing changed at a time.

    `traces`: what a series that has begun keeps of its tables (`History.traces`), to see which columns move.

    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [20, 21, 40, 41] * 4, "weight": list(range(50, 66)), "ill": ["x", "y"] * 8})
    >>> columns = {"age": "quasi", "weight": "quasi", "ill": "sensitive"}
    >>> advice = advise(people, {"columns": columns, "guarantee": {"k": 4}})
    >>> list(advice.lines())[0]
    "drop 'weight': loss 0.19 -> 0.00 (the other columns 0.05 -> 0.00); 0 withheld, 0 counterfeit"
    """
    asked = load_policy(policy)
    end = time.monotonic() + seconds
    today = _Trial.run(table, asked, seed, accept, where)
    ways, untried = [], []
    changes = list(_changes(asked, today))
    for place, (change, column, level, content) in enumerate(changes):
        progress(f"trying: {change}", place / max(1, len(changes)))
        if time.monotonic() > end:
            untried.append(change)
            continue
        try:
            trial = _Trial.run(table, load_policy(content), seed, accept, where)
        except (InputError, InfeasibleError):  # a change that the rest of the policy, or the table, does not allow
            continue
        both = [name for name in today.loss.columns if name in trial.loss.columns and name != column]
        before, after = (float(np.mean([one.loss.columns[name] for name in both])) for one in (today, trial))
        whole = trial.loss.mean if level is None else trial.mean_in_days(str(column), DATED[level], today.dates)
        figures = (today.loss.mean, whole, (before, after), trial.plan.withheld, trial.plan.counterfeits)
        ways.append(Way(change, *figures, recoded=level is not None))
    helps = (way for way in ways if way.helps)
    worth = sorted(helps, key=lambda way: -way.gain)
    moving = _moving(table, asked, traces or {}, seed, accept, where)
    return Advice(today.loss.columns, today.nothing_said(), tuple(worth), tuple(untried), moving)


def _moving(
    table: Any, policy: Policy, before: Mapping[int, Trace], seed: int, accept: Sequence[str], where: Where | None
) -> tuple[str, ...]:
    """Columns that change for everybody: as the series has seen; before it has begun, those whose names say so."""
    if not policy.promises_series:
        return ()
    raw, frame, _ = usable(table, policy, History(), True, seed, accept, where)
    names = policy.named("quasi")
    if before:
        return tuple(moving_columns(trace_of(frame, raw, b""), before, names))
    return tuple(name for name in names if moves_by_name(name, frame[name].dtype))


@dataclass(frozen=True)
class _Trial:
    encoded: Encoded
    plan: Plan
    loss: Loss
    shown_in_groups: bool  # or in boxes of people, and not as they are
    dates: Mapping[str, int]  # quasi-identifiers that hold days, and from the first to the last how many

    @classmethod
    def run(cls, table: Any, policy: Policy, seed: int, accept: Sequence[str], where: Where | None) -> _Trial:
        _, frame, bench = usable(table, policy, History(), policy.identifier is not None, seed, accept, where)
        encoded = encode(frame, policy, {}, bench.known)
        if policy.bundled and policy.promises_series and encoded.owners is not None:
            everybody = np.arange(int(encoded.owners.max()) + 1)
            encoded = in_bags(encoded, everybody, History(), policy, generator(seed, LOTS_OF_ROWS))
        elif policy.identifier is not None:
            encoded = replace(encoded, persons=np.arange(encoded.rows, dtype=np.int64))  # all are new
        plan = method(policy)(encoded, History(), policy, seed=seed, progress=silent)
        exact = policy.method.two_tables and not policy.method.boxed
        days = [
            frame[name].drop_nulls().to_physical() for name in policy.named("quasi") if frame[name].dtype == pl.Date
        ]
        dates = {one.name: int(one.max() - one.min()) + 1 for one in days if len(one)}  # type: ignore[operator, arg-type]
        return cls(encoded, plan, loss_of(encoded, plan, policy), not exact, dates)

    def mean_in_days(self, column: str, finest: float, dates: Mapping[str, int]) -> float:
        """The mean loss, where that of a date counts from days on and not from the finest level that it has here."""
        own = min(1.0, (finest - 1) / max(1, dates[column] - 1))
        losses = {**self.loss.columns, column: self.loss.columns[column] * (1 - own) + own}
        return float(np.mean(list(losses.values())))

    def nothing_said(self) -> dict[str, float]:
        """The share of rows whose published cell covers every value of the column."""
        plan, alike = self.plan, self.plan.groups if self.plan.people is None else self.plan.people
        regions = plan.boxes if plan.people is None else plan.regions  # people of two tables are in boxes of their own
        low, high = regions or boxes(alike, self.encoded.positions, int(alike.max(initial=-1)) + 1)
        shares = {}
        for number, tree in enumerate(self.encoded.quasi):
            runs, index = distinct_runs(low[:, number], high[:, number], len(tree))
            # A value that all people have is said in full.
            blank = [len(tree) > 1 and (tree.label(*run) == ANY or run == (0, len(tree) - 1)) for run in runs]
            whole = np.array(blank, dtype=bool)[index]
            covered = int(whole[alike[alike >= 0]].sum()) if self.shown_in_groups else 0
            rows = covered + plan.withheld
            shares[tree.name] = rows / max(1, self.encoded.rows)
        return shares


def _changes(policy: Policy, today: _Trial) -> Iterator[tuple[str, str | None, DateLevel | None, dict[str, Any]]]:
    """One change at a time: in words, the column that it is about, the level of a date, and a policy's sections."""
    content = {name: getattr(policy, name) for name in policy.model_fields_set}
    worst = sorted(today.loss.columns, key=lambda name: -today.loss.columns[name])
    if len(worst) > 1:
        for name in worst[:COLUMNS]:
            yield f"drop {name!r}", name, None, {**content, "columns": {**policy.columns, name: {"role": "drop"}}}
    for name in today.dates if len(worst) > 1 else ():
        for level in _coarser(policy.columns[name]):
            levels = DATE_LEVELS[DATE_LEVELS.index(level) :]
            spec = policy.columns[name].model_copy(update={"levels": levels, "type": "date"})
            yield f"{name!r} by {level}", name, level, {**content, "columns": {**policy.columns, name: spec}}
    promise = policy.guarantee.model_dump(exclude_unset=True)
    for key, least in NUMBERS.items():
        if isinstance(number := promise.get(key), int) and number > least:
            yield f"{key} = {number - 1}", None, None, {**content, "guarantee": {**promise, key: number - 1}}
    if policy.promises_series and not policy.method.two_tables:
        parted = {**policy.method.model_dump(exclude_unset=True), "publish": "anatomy"}
        yield (
            f"two tables, k = {promise.get('k', CROWD)}",
            None,
            None,
            {
                **content,
                "guarantee": {"k": CROWD, **promise},
                "method": parted,
            },
        )


def _coarser(spec: Column) -> tuple[DateLevel, ...]:
    """Coarser finest levels of a date to try: months and years, where it is finer now."""
    finest = spec.levels[0] if spec.levels else DATE_LEVELS[0]
    return tuple(level for level in DATED if DATE_LEVELS.index(level) > DATE_LEVELS.index(finest))
