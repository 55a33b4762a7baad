"""r-robustness: nobody's chance of any value exceeds 1/r for an adversary who knows the odds (seed 004).

The judge sums over the possible worlds of each class, in floats with a proven error and, near the threshold,
in whole numbers. Where a class is too large for that, a sound upper bound decides; a class that neither
settles is a violation. The paper's Delta condition can be judged under its own name. It is not sound, and its
verdict says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.prior import Prior, load
from reveil.base.arrays import offsets_by_key
from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.guarantees.r_robustness import RRobustness
from reveil.hierarchies.tree import Hierarchy
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.notation import Cell, parse_cell, parse_column
from reveil.verify.judges import posterior
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.counts import Counts, count_values, exceeds, written
from reveil.verify.judges.verdicts import empty, share_of_classes

WARNING = (
    "Warning: the Delta condition is the paper's, and it does not bound this chance when the other people's values "
    "have priors too (a group of 3 can satisfy it for r = 2 and give someone away with 58 %)"
)
SMALL = 4096  # states up to which every class is summed, settled or not, so that the worst is known exactly
NAMED = 5  # signatures listed in a verdict


@dataclass
class RRobustnessJudge:
    """P(person has value) <= 1/r for everybody and every value, given one prior."""

    r: Fraction
    prior: Prior
    condition: Literal["exact", "delta"] = "exact"
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    name: str = "r-robustness"

    def judge(self, view: View, history: History) -> list[Verdict]:
        details: dict[str, Any] = {
            "column": self.prior.column,
            "prior": self.prior.name,
            "condition": self.condition,
        }
        if view.counterfeits.any():
            raise InputError(_no_counterfeits())
        counts = count_values(view, self.prior.column)
        if not counts.rows:
            return [empty(self.name, 1 / self.r, details)]
        lacking = self.prior.lacks(counts.values.to_list())
        if lacking:
            raise InputError(_unknown(self.prior, lacking))
        classes = _Classes(self, view, counts)
        details |= classes.details()
        return [self._delta(classes, details) if self.condition == "delta" else self._exact(classes, details)]

    def _exact(self, classes: _Classes, details: dict[str, Any]) -> Verdict:
        bad, worst = classes.violations(), classes.worst_value()
        column, largest = self.prior.column, _percent(worst)
        given = f"given its group and the prior {self.prior.name}"
        if bad.any():
            statement = (
                f"{share_of_classes(bad)} somebody whose chance of a value of {column!r}, {given}, exceeds "
                f"1/{written(self.r)}, or cannot be shown not to; the largest is {largest}"
            )
            plain = (
                f"Somebody who knows the odds in {self.prior.name} can guess the {column!r} of some people with a "
                f"chance of {largest}; the promise was at most {_percent(1 / self.r)}."
            )
        else:
            statement = (
                f"nobody's chance of a value of {column!r}, {given}, exceeds 1/{written(self.r)}; "
                f"the largest is {largest}"
            )
            plain = (
                f"Even somebody who knows the odds in {self.prior.name} and each person's group can guess "
                f"{column!r} with a chance of at most {largest}."
            )
        return self._verdict(statement, plain + _beforehand(details), bad, classes, worst, 1 / self.r, details)

    def _delta(self, classes: _Classes, details: dict[str, Any]) -> Verdict:
        bad, ratio = classes.delta_violations()
        details["largest chance"] = _percent(classes.worst_value())
        what = f"the Delta condition of {self.prior.column!r} for r = {written(self.r)} and the prior {self.prior.name}"
        met = f"{share_of_classes(bad, 'breaks', 'break')} {what}" if bad.any() else f"every class satisfies {what}"
        statement = f"{met}; the largest chance is {details['largest chance']}. {WARNING}"
        plain = (
            f"The odds in {self.prior.name} are {'not ' if bad.any() else ''}alike enough within groups by the paper's "
            f"rule. {WARNING}. The largest chance found here is {details['largest chance']}."
        )
        return self._verdict(statement, plain + _beforehand(details), bad, classes, ratio, 1, details)

    def _verdict(
        self,
        statement: str,
        plain: str,
        bad: NDArray[np.bool_],
        classes: _Classes,
        worst: Fraction | float,
        bound: Fraction | int,
        details: Mapping[str, Any],
    ) -> Verdict:
        return Verdict(
            guarantee=self.name,
            statement=statement,
            plain=plain,
            holds=not bad.any(),
            worst=worst,
            bound=bound,
            violating_classes=int(bad.sum()),
            violating_rows=int(classes.counts.sizes[bad].sum()),
            details=details,
            decided=not (classes.blind and bad.any()),  # from cells alone anybody may have any odds that fit
        )


class _Classes:
    """The classes of one release as numbers: people of each kind, rows of each value, and what was found."""

    def __init__(self, judge: RRobustnessJudge, view: View, counts: Counts) -> None:
        self.r, self.prior, self.counts = judge.r, judge.prior, counts
        self.rows = judge.prior.rows(counts.values.to_list())
        distinct = list(dict.fromkeys(self.rows))
        self.kinds = distinct  # signatures with the same odds for all published values are one kind
        self.kind_of = np.array([distinct.index(row) for row in self.rows], dtype=np.int64)
        self.table = np.array([[float(p) for p in row] for row in distinct])
        self.blind = view.signatures is None
        if view.signatures is None:
            self._from_cells(view, judge.hierarchies)
        else:
            self._from_people(view.signatures)
        self._judge()

    def _from_people(self, people: pl.DataFrame) -> None:
        known = people.filter(pl.col("class").is_in(self.counts.classes.tolist()))
        self.miscounted = np.bincount(
            np.searchsorted(self.counts.classes, known["class"].to_numpy()), minlength=len(self.counts.classes)
        ) != np.asarray(self.counts.sizes)
        people, signatures = known, known[self.prior.name].to_numpy()
        place = np.searchsorted(self.counts.classes, people["class"].to_numpy())
        keys, self.people = np.unique(place * len(self.kinds) + self.kind_of[signatures], return_counts=True)
        self.kind, owner = keys % len(self.kinds), keys // len(self.kinds)
        self.starts = offsets_by_key(owner, len(self.counts.classes))
        self.above = _above(self.prior, self.r, np.bincount(signatures, minlength=len(self.prior.cells)))

    def _from_cells(self, view: View, hierarchies: Mapping[str, Hierarchy]) -> None:
        """From the published cells alone: each person of a class may have any signature that its cells allow."""
        first = np.unique(view.classes, return_index=True)[1]
        allowed = possible_signatures(view.quasi[first], self.prior, hierarchies)
        kinds = np.zeros((len(first), len(self.kinds)), dtype=bool)
        for signature, kind in enumerate(self.kind_of):
            kinds[:, kind] |= allowed[:, signature]
        owner, self.kind = np.nonzero(kinds)
        self.starts = offsets_by_key(owner, len(first))
        self.people = self.counts.sizes[owner]
        self.miscounted = np.zeros(len(first), dtype=bool)
        self.above = []

    def _judge(self) -> None:
        counts = self.counts
        ends = np.append(counts.starts, len(counts.owner))
        rows = counts.count.astype(np.int64)
        if self.blind:
            self.chance, self.how = self._blind(ends, rows)
            self.error = np.full(len(self.chance), 16 * posterior.ROUNDING)
        else:
            classes = posterior.ClassCounts(self.starts, self.kind, self.people, ends, counts.value, rows)
            judged = posterior.judge_classes(self.table, classes, SMALL, float(1 / self.r))
            self.chance, self.error, self.how = judged
        alone = np.diff(self.starts) != 1
        self.mixed = np.flatnonzero(alone)

    def _blind(self, ends: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        chance = self.counts.most() / self.counts.sizes
        how = np.zeros(len(chance), dtype=np.int64)
        for c in np.flatnonzero(np.diff(self.starts) != 1):
            kinds = self.kind[self.starts[c] : self.starts[c + 1]]
            values = slice(ends[c], ends[c + 1])
            weights = self.table[np.ix_(kinds, self.counts.value[values])]
            how[c] = posterior.BOUNDED
            chance[c] = posterior.blind_bound(int(rows[values].sum()), rows[values], weights) if len(kinds) else 1.0
        return chance, how

    def violations(self) -> NDArray[np.bool_]:
        """Which classes exceed 1/r, or cannot be shown not to."""
        limit = 1 / self.r
        bad = exceeds(self.counts.most(), self.counts.sizes, limit) | ~np.isfinite(self.chance)
        threshold = float(limit)
        margin = self.error + 4 * posterior.ROUNDING
        bad[self.mixed] = self.chance[self.mixed] > threshold
        close = np.abs(self.chance - threshold) <= margin * threshold
        unsettled = (self.how == posterior.BOUNDED) & (self.chance > threshold)
        for c in self.mixed[(close | unsettled)[self.mixed]]:
            bad[c] = self._exactly(int(c)) > limit
        bad |= self.miscounted  # a class whose people are not all known is judged by guesswork
        return bad

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], Fraction]:
        return {}

    def _exactly(self, c: int) -> Fraction:
        """The largest posterior of a class as a rational, or the sound bound where that is out of reach."""
        kinds = self.kind[self.starts[c] : self.starts[c + 1]].tolist()
        people = self.people[self.starts[c] : self.starts[c + 1]].tolist()
        begin, end = self.counts.starts[c], np.append(self.counts.starts, len(self.counts.owner))[c + 1]
        values, held = self.counts.value[begin:end].tolist(), self.counts.count[begin:end].tolist()
        key = (*kinds, -1, *people, -1, *values, -1, *held)
        if key not in self._known:
            rows = [[self.kinds[kind][value] for value in values] for kind in kinds]
            if self.blind:
                # At most 11 roundings stand behind it (4 priors, 7 operations). The upper end decides; ties are refused
                self._known[key] = Fraction(self.chance[c]) * (1 + Fraction(self.error[c]))
            else:
                chances = posterior.exact(people, held, rows)
                sums = None if chances is None else max(max(row) for row in chances)
                self._known[key] = posterior.exact_bound(people, held, rows) if sums is None else sums
        return self._known[key]

    @property
    def worst_class(self) -> int:
        return int(np.argmax(self.chance))

    def worst_value(self) -> Fraction | float:
        """The largest chance of all, as a rational where that is cheap."""
        c = self.worst_class
        if not np.isfinite(self.chance[c]):
            return 1.0
        if c in self.mixed:
            return float(self.chance[c]) if self.blind else self._exactly(c)
        return Fraction(int(self.counts.most()[c]), int(self.counts.sizes[c]))

    def delta_violations(self) -> tuple[NDArray[np.bool_], float]:
        """Which classes break the paper's condition, and the largest Delta_max / Delta_ceil."""
        counts = self.counts
        bad = (counts.most() > 1) | exceeds(np.ones_like(counts.sizes), counts.sizes, 1 / self.r)
        worst = 0.0
        ends = np.append(counts.starts, len(counts.owner))
        for c in self.mixed[~bad[self.mixed]]:
            kinds = self.kind[self.starts[c] : self.starts[c + 1]]
            for value in counts.value[ends[c] : ends[c + 1]]:
                odds = [self.kinds[kind][value] for kind in kinds]
                deviation = max(odds) - min(odds)
                ceiling = posterior.delta_ceiling(int(counts.sizes[c]), self.r, max(odds))
                bad[c] |= deviation > ceiling
                if deviation:
                    worst = max(worst, float(deviation / ceiling) if ceiling else float("inf"))
        return bad | self.miscounted, worst

    def details(self) -> dict[str, Any]:
        c = self.worst_class
        facts: dict[str, Any] = {
            "class": int(self.counts.classes[c]),
            "class_rows": int(self.counts.sizes[c]),
            "classes of one kind": int((self.how == posterior.HOMOGENEOUS).sum()),
            "classes summed over worlds": int((self.how == posterior.SUMMED).sum()),
            "classes bounded": int((self.how == posterior.BOUNDED).sum()),
        }
        if self.blind:
            facts["people"] = "from the published cells alone: everybody may have any signature their cells allow"
        else:
            facts["people above 1/r beforehand"] = sum(count for _, count in self.above)
            facts["signatures above 1/r beforehand"] = [label for label, _ in self.above[:NAMED]]
        return facts


def _above(prior: Prior, r: Fraction, people: NDArray[np.int64]) -> list[tuple[str, int]]:
    """Signatures whose prior alone gives some value more than 1/r, with the number of people who have them."""
    breaches = []
    for signature, row in enumerate(prior.table):
        top = max(row)
        if people[signature] and top > 1 / r:
            value = prior.values[row.index(top)]
            breaches.append((f"{prior.label(signature)}: {value!r} {_percent(top)}", int(people[signature])))
    return sorted(breaches, key=lambda entry: -entry[1])


def _beforehand(details: Mapping[str, Any]) -> str:
    people = details.get("people above 1/r beforehand", 0)
    if not people:
        return ""
    return (
        f" For {some(people, 'person', 'people')} the prior alone gives some value more than that, before any release: "
        "nothing that is published or withheld can help them."
    )


def possible_signatures(quasi: pl.DataFrame, prior: Prior, hierarchies: Mapping[str, Hierarchy]) -> NDArray[np.bool_]:
    """Which signatures the published cells of each row allow; one too many rather than one too few."""
    allowed = np.ones((quasi.height, len(prior.cells)), dtype=bool)
    for number, name in enumerate(prior.attributes):
        cells, index = parse_column(quasi[name], hierarchies.get(name))
        known = {text: parse_cell(text or None) for text in {row[number] for row in prior.cells}}
        meet = np.array([[_may_meet(cell, known[row[number]]) for row in prior.cells] for cell in cells], dtype=bool)
        allowed &= meet[index]
    return allowed


def _may_meet(published: Cell, stated: Cell) -> bool:
    """Whether some value may stand behind both cells."""
    if "any" in (published.kind, stated.kind):
        return True
    if published.kind in ("value", "missing"):
        return any(stated.covers(value) for value in (published.values or {None})) or stated.text == published.text
    if published.kind == "set" and not published.parts and published.prefix is None:
        return any(stated.covers(value) for value in published.values)
    ends = (published.low, published.high, stated.low, stated.high)
    if published.kind == "interval" and all(isinstance(end, (int, Fraction)) for end in ends):
        return bool(published.low <= stated.high and stated.low <= published.high)  # type: ignore[operator]
    return True


def _percent(chance: Fraction | float) -> str:
    """A chance as a simple fraction, or to four decimals and rounded up: nobody is told less than it is."""
    if isinstance(chance, Fraction) and chance.denominator <= 100:
        return written(chance)
    return f"{float(Fraction(-(-Fraction(chance) * 10**4 // 1), 10**4)):.4g}"


def _no_counterfeits() -> Fault:
    return Fault(
        "R438",
        "guarantee.r",
        "the release has counterfeit rows, and priors are only weighed over real people",
        "publish r-robust releases without a serial guarantee that needs counterfeits",
    )


def _unknown(prior: Prior, values: list[str]) -> Fault:
    shown = ", ".join(map(repr, values[:3]))
    return Fault(
        "R434",
        f"prior {prior.name}",
        f"says nothing about {len(values)} published values of {prior.column!r}: {shown}",
        "add their probabilities",
    )


def build_r(asked: RRobustness, policy: Policy, background: Background) -> list[Judge]:
    assert asked.r is not None
    return [RRobustnessJudge(asked.r, prior, asked.condition, background.hierarchies) for prior in load(policy)]
