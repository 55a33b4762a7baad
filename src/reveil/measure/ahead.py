"""What the next releases would be like: the series goes on in a copy of its home, and people come and go as before.

Nothing is guessed by formula. The table given is the next release; after it people leave, return and arrive at the
rates of the ledger (or at stated ones), newcomers are drawn from the rows of the table, and every release is planned,
verified and recorded in full, in a temporary copy that is deleted. Values change as the policy says they do.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from reveil.background.transitions import relation_of
from reveil.base.doubts import DOUBTS
from reveil.base.errors import Fault, InfeasibleError, InputError, stop_if
from reveil.base.lots import generator
from reveil.base.progress import Progress, silent
from reveil.base.sections import exact
from reveil.history.recorded import history_of
from reveil.jobs.input import usable
from reveil.policy.policy import Policy
from reveil.publish import Series
from reveil.table.where import Where

if TYPE_CHECKING:
    from reveil.jobs.release import Release

MOST = 100  # releases
USUAL = Fraction(1, 10)  # leaves from one release to the next, where the ledger has nothing to go by


@dataclass(frozen=True)
class Rates:
    """How people come and go from one release to the next."""

    leave: Fraction  # of those who are there
    back: Fraction  # of those who are away
    arrive: Fraction  # newcomers, per person who is there
    source: str  # where these rates are from

    def to_dict(self) -> dict[str, Any]:
        rates = {name: float(getattr(self, name)) for name in ("leave", "back", "arrive")}
        return {**{name: round(rate, 4) for name, rate in rates.items()}, "source": self.source}


@dataclass(frozen=True)
class Ahead:
    """One release of the forecast; a refused one ends it."""

    release: int
    rows: int
    withheld: int | None = None
    counterfeits: int | None = None
    loss: float | None = None  # mean NCP per cell
    worst: str | None = None  # highest chance of a guess so far, as certified
    bound: str | None = None  # the promise
    refused: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Forecast:
    """The next releases, the one with the table given first."""

    pace: Rates
    releases: tuple[Ahead, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"pace": self.pace.to_dict(), "releases": [one.to_dict() for one in self.releases]}

    def table(self) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
        """A header and a line per release."""
        header = ("release", "people", "withheld", "counterfeits", "NCP", "highest chance", "promised")
        lines: list[tuple[object, ...]] = []
        for one in self.releases:
            if one.refused is not None:
                lines.append((one.release, one.rows, "", "", "", f"refused: {one.refused}", ""))
            else:
                figures = (one.withheld, one.counterfeits, f"{one.loss:.4f}", one.worst or "", one.bound or "")
                lines.append((one.release, one.rows, *figures))
        return header, lines


def forecast(
    table: Any,
    series: Series,
    releases: int = 12,
    *,
    leave: object = None,
    back: object = None,
    arrive: object = None,
    seed: int = 0,
    new_people: bool = False,
    accept: Sequence[str] = (),
    where: Where | None = None,
    progress: Progress = silent,
) -> Forecast:
    """The next `releases` of a series, from the table that would be published now. The series itself is not touched.

    >>> rows = [{"who": i, "age": 20 + i % 40, "job": "abcd"[i % 4]} for i in range(60)]
    >>> columns = {"who": "identifier", "age": "quasi", "job": "sensitive"}
    >>> promise = {"model": "compromise-safety", "m": 3}
    >>> policy = {"columns": columns, "values": {"change": "never"}, "guarantee": promise}
    >>> policy |= {"method": {"infeasible": "withhold"}}
    >>> from reveil import open_series
    >>> ahead = forecast(pl.DataFrame(rows), open_series(policy, tempfile.mkdtemp() + "/home"), 2, leave="0.2")
    >>> [(one.release, one.rows, one.worst) for one in ahead.releases]
    [(1, 60, '1/2'), (2, 67, '1/2')]
    """
    if series.policy.followed is None:
        message = "people are not known again without an identifier, so nobody can be seen coming and going"
        raise InputError(Fault("R462", "policy", message, "give a column the role identifier"))
    if not 1 <= releases <= MOST:
        raise InputError(Fault("R222", "ahead", f"{releases} is not between 1 and {MOST}", "give a number in between"))
    pace = _pace(series, {"leave": leave, "back": back, "arrive": arrive})
    _, frame, _ = usable(table, series.policy, series.history(), True, seed, accept, where)
    left_out = [name for name in series.policy.columns if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None, pl.String).alias(name) for name in left_out)  # the policy names them
    with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
        home = Path(scratch) / "home"
        if series.begun:
            shutil.copytree(series.home, home)
        policy = _without_anchor(series.policy)
        steps = _tables(frame, policy, pace, seed)
        made = tuple(_publish_all(Series(policy, home), steps, releases, seed, new_people, accept, progress))
    return Forecast(pace, made)


def _publish_all(
    copy: Series,
    steps: Iterator[pl.DataFrame],
    releases: int,
    seed: int,
    new_people: bool,
    accept: Sequence[str],
    progress: Progress,
) -> Iterator[Ahead]:
    head = copy.history().head
    for number in range(head + 1, head + releases + 1):
        now = next(steps)
        progress(f"release {number} of {head + releases}", (number - head - 1) / releases)
        try:
            # What is drawn here needs no second word: rates of return are as stated, and dates stay as they are.
            meant = (new_people, accept) if number == head + 1 else (True, tuple(DOUBTS))
            release = copy.publish(now, seed=seed, new_people=meant[0], accept=meant[1])
        except InfeasibleError as error:
            yield Ahead(number, now.height, refused=error.faults[0].message)
            return
        yield _ahead(release, now.height, copy.ledger.records()[-1].facts["loss"]["mean_ncp"])


def _ahead(release: Release, rows: int, loss: float) -> Ahead:
    counts, verdicts = release.certificate.counts, release.certificate.verdicts
    chances = [one for one in verdicts if one.get("worst") is not None and one.get("bound") is not None]
    headline = chances[-1] if chances else {}
    figures = (counts["withheld rows"], counts["counterfeit rows"], loss, headline.get("worst"), headline.get("bound"))
    return Ahead(release.number or 0, rows, *figures)


def _without_anchor(policy: Policy) -> Policy:
    """The copy must not write into the anchor of the series, nor run its gate again and again."""
    output = policy.output.model_copy(update={"anchor": None})
    audit = policy.audit.model_copy(update={"gate": False})
    return policy.model_copy(update={"output": output, "audit": audit})


def _pace(series: Series, stated: Mapping[str, object]) -> Rates:
    given: dict[str, Fraction] = {}
    faults: list[Fault] = []
    for name, value in stated.items():
        if value is None:
            continue
        try:
            given[name] = exact(value)
        except ValueError:
            given[name] = Fraction(-1)
        if not 0 <= given[name] <= 1:
            message = f"{value!r} is not a share between 0 and 1"
            faults.append(Fault("R222", name, message, "write a number such as 0.1, or a fraction such as 1/10"))
    stop_if(faults)
    observed = _observed(series)
    if observed is None:
        leave = given.get("leave", USUAL)
        usual = Rates(
            leave, Fraction(0), leave, "one in ten leaves and as many arrive; the ledger has nothing to go by"
        )
        observed = usual if "leave" not in given else replace(usual, source="as stated; as many arrive as leave")
    elif given:
        observed = replace(observed, source=f"{observed.source}; stated: {', '.join(given)}")
    rates = {name: given.get(name, getattr(observed, name)) for name in ("leave", "back", "arrive")}
    return Rates(**rates, source=observed.source)


def _observed(series: Series) -> Rates | None:
    """Rates of the releases so far; None before there are two."""
    past = history_of(series.ledger) if series.begun else None
    if past is None or past.head < 2:
        return None
    here: list[set[int]] = [
        set(past.members["person"].filter(past.members["release"] == n).to_list()) for n in range(1, past.head + 1)
    ]
    left = returned = new = there = away = 0
    known: set[int] = set(here[0])
    for before, now in pairwise(here):
        there, left = there + len(before), left + len(before - now)
        away, returned = away + len(known - before), returned + len((known - before) & now)
        new += len(now - known)
        known |= now
    source = f"as in the {past.head} releases so far"
    return Rates(Fraction(left, max(1, there)), Fraction(returned, max(1, away)), Fraction(new, max(1, there)), source)


def _tables(first: pl.DataFrame, policy: Policy, pace: Rates, seed: int) -> Iterator[pl.DataFrame]:
    """The table, and after it one for each further release."""
    rng = generator(seed, 9)
    here, away, number, who = first, first.head(0), 0, policy.followed
    assert who is not None
    named = first[who].unique(maintain_order=True)
    while True:
        yield here
        there, others = here[who].unique(maintain_order=True), away[who].unique(maintain_order=True)
        stays = there.filter(pl.Series(rng.random(len(there)) >= float(pace.leave)))
        returns = others.filter(pl.Series(rng.random(len(others)) < float(pace.back)))
        arrivals = rng.binomial(len(there), float(pace.arrive))
        drawn = named.gather(rng.integers(0, len(named), arrivals).tolist())  # with all their rows
        new = pl.Series("new", [f"forecast newcomer {number + i}" for i in range(arrivals)], dtype=pl.String)
        fresh = pl.DataFrame([drawn, new]).join(first, on=who, how="left", maintain_order="left")
        fresh = fresh.with_columns(pl.col("new").cast(first.schema[who], strict=False).alias(who)).select(first.columns)
        number += arrivals
        gone = here.filter(~pl.col(who).is_in(stays.implode()))
        back = pl.col(who).is_in(returns.implode())
        here = pl.concat([here.filter(pl.col(who).is_in(stays.implode())), away.filter(back), fresh])
        away = pl.concat([away.filter(~back), gone])
        here, away = (_changed(people, first, policy, rng) for people in (here, away))


def _changed(people: pl.DataFrame, first: pl.DataFrame, policy: Policy, rng: np.random.Generator) -> pl.DataFrame:
    """Values of the next release: the same, drawn anew, or changed by the public chances."""
    if policy.values.change in (None, "never") or people.is_empty():
        return people
    return people.with_columns(_next(people[name], first[name], policy, rng) for name in policy.named("sensitive"))


def _next(values: pl.Series, first: pl.Series, policy: Policy, rng: np.random.Generator) -> pl.Series:
    if policy.values.change == "freely":
        return first.gather(rng.integers(0, len(first), len(values)).tolist()).alias(values.name)
    distinct: Sequence[Any] = pl.concat([first, values]).unique(maintain_order=True).to_list()
    relation, code = relation_of(policy, distinct), {value: number for number, value in enumerate(distinct)}
    chances = relation.weights / relation.totals[:, None]
    drawn = [distinct[rng.choice(len(distinct), p=chances[code[value]])] for value in values.to_list()]
    return pl.Series(values.name, drawn, dtype=values.dtype)
