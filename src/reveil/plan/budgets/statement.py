"""What a plan with budgets says about itself: what is left, how groups will grow, what it costs, and why it refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault
from reveil.base.words import some, some_people
from reveil.guarantees.global_guarantee import Global
from reveil.history.history import History
from reveil.plan.budgets import budget, budget_cuts
from reveil.plan.budgets.remaining_budget import RemainingBudget, smallest
from reveil.plan.cutting.trees import Trees
from reveil.plan.cutting.values import Order, Rows, Tests
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

AHEAD = 8  # releases that are looked ahead
SHOWN = 3  # values in a refusal
SAMPLE = 20_000  # rows on which the cost of the promise is measured


def outlook(
    encoded: Encoded, history: History, left: NDArray[np.float64], pace: budget.Pace, policy: Policy
) -> dict[str, Any]:
    """What people have left before this release (`left`, a survival for each row), and what the next ones can cost."""
    now, protect = history.head + 1, policy.guarantee.require(Global).protect
    value, share = _most_frequent(encoded, policy)
    releases, usual = AHEAD, replace(pace, ahead=0)
    if pace.strategy == "constant-ratio" and pace.horizon is not None:
        releases = max(1, min(AHEAD, pace.horizon - now + 1))
    spent = np.clip(np.log(left) / log(pace.floor), 0, 1)
    bins = np.bincount(np.minimum(9, (spent * 10).astype(np.int64)), minlength=10)
    return {
        "budget": pace.describe(),
        "release": now,
        "bound": str(1 / pace.l),
        "later releases that lend their part to this one": "all" if pace.ahead is None else pace.ahead,
        "protected": "all values" if protect is None else list(protect),
        "people by tenth of the budget spent before": bins.tolist(),
        "most spent before by anybody": round(float(spent.max(initial=0.0)), 6),
        "rows per occurrence of a value, from this release on": budget.sizes(usual, now + releases - 1)[now - 1 :],
        "most frequent protected value": None if value is None else str(value),
        "its share": round(float(share), 6),
        "releases a person can be in at this share": budget.lasts(usual, share, 200) if share else None,
    }


def _most_frequent(encoded: Encoded, policy: Policy) -> tuple[Any, Fraction]:
    promise, frequent, most = policy.guarantee.require(Global), None, 0
    for number, column in enumerate(encoded.sensitive):
        counts = np.bincount(encoded.codes[:, number], minlength=len(column.values))
        for code in np.argsort(-counts, kind="stable"):
            if promise.protects(column.values[code]):
                if counts[code] > most:
                    frequent, most = column.values[code], int(counts[code])
                break
    return frequent, Fraction(most, max(1, encoded.rows))


def standing_alone(
    trees: Trees,
    tests: Tests,
    remaining: RemainingBudget,
    rows: Rows,
    order: Order,
    starts: NDArray[np.int64],
    floor: float,
    relaxed: bool,
) -> dict[str, Any]:
    """What the promise costs: groups and loss beside those of a release that only has to bear itself (localized).

    Measured on some neighbouring groups: they are cut further, as far as a bound of 1/l on this release alone allows.
    """
    bounds = np.append(starts, len(order))
    bounds = bounds[: max(2, int(np.searchsorted(bounds, SAMPLE, side="right")))]
    end, groups = int(bounds[-1]), len(bounds) - 1
    alone = remaining._replace(
        line=np.zeros_like(remaining.line),
        need=np.full((1, remaining.need.shape[1]), floor),
        worst=np.full_like(remaining.worst, floor),
        least=np.minimum(remaining.least, np.int32(smallest(floor))),
    )
    finer, before, after = budget_cuts.refine(
        trees, tests, alone, rows[:end].copy(), order[:end].copy(), bounds, relaxed
    )
    cells = end * max(1e-300, trees.weight.sum())
    return {
        "rows per group": round(len(order) / len(starts), 3),
        "cost over localized protection": {
            "rows looked at": end,
            "rows per group": round(end / groups, 3),
            "rows per group, each release alone": round(end / len(finer), 3),
            "loss": round(before / cells, 6),
            "loss, each release alone": round(after / cells, 6),
        },
    }


def faults(
    encoded: Encoded,
    history: History,
    remaining: RemainingBudget,
    pace: budget.Pace,
    poor: NDArray[np.int64],
) -> list[Fault]:
    """One fault per value that is too frequent in this table for what some people have left."""
    reasons = []
    rows = encoded.rows
    for number, column in enumerate(encoded.sensitive):
        counts = np.bincount(encoded.codes[:, number], minlength=len(column.values))
        for code in np.argsort(-counts, kind="stable").tolist():
            slot = int(remaining.slot[remaining.first_code[number] + code])
            if slot < 0 or not counts[code]:
                continue
            needs = remaining.need[remaining.line[poor], slot]
            tight = int((needs > (rows - counts[code]) / rows).sum())
            if tight:
                row = int(poor[needs.argmax()])
                past = exposures(history, encoded, row, column.name, code)
                message = _too_frequent(
                    column.values[code], int(counts[code]), rows, tight, float(needs.max()), past, pace
                )
                reasons.append(Fault("R460", f"column {column.name!r}", message, _way_out(pace, tight < rows), tight))
    if len(reasons) > SHOWN:
        more = f"{reasons[SHOWN - 1].message}. {len(reasons) - SHOWN:,} more values are too frequent as well"
        reasons[SHOWN - 1 :] = [replace(reasons[SHOWN - 1], message=more)]
    return reasons


def exposures(history: History, encoded: Encoded, row: int, column: str, code: int) -> list[tuple[int, int]]:
    """(n_s, n) of each earlier group of a row's person, for one value."""
    if encoded.persons is None or history.members.is_empty():
        return []
    mine = history.members.filter((pl.col("person") == int(encoded.persons[row])) & (pl.col("group") >= 0))
    held = history.values.filter((pl.col("column") == column) & (pl.col("code") == code))
    held = held.select("release", "group", pl.col("rows").alias("held"))
    both = mine.join(history.groups, on=["release", "group"]).join(held, on=["release", "group"], how="left")
    return [(int(a or 0), int(b)) for a, b in both.select("held", "rows").iter_rows()]


def _too_frequent(
    value: Any, count: int, rows: int, tight: int, need: float, past: list[tuple[int, int]], pace: budget.Pace
) -> str:
    share = Fraction(count, rows)
    most = max(0.0, 1 - need)
    reach = budget.ever_linked([*past, (count, rows)])
    text = (
        f"value {value!r} is in {count:,} of {some(rows, 'row')}, a share of {float(share):.4g}; with what "
        "they have left, "
        f"{tight:,} of {some_people(rows)} may now bear a share of at most {most:.4g}. As one group with all others, "
        f"somebody would be linked to it with a chance of {_written(reach)} over all releases"
    )
    if reach <= 1 / pace.l:
        more = pace.horizon if pace.horizon is not None else (budget.lasts(pace, share) or 0) + 1
        kept_up = 1 - (1 - share) ** max(more, 2)
        text += f", and of {_written(kept_up)} after {max(more, 2)} such releases"
    return f"{text}; the promise is at most {1 / pace.l}"


def _written(chance: Fraction) -> str:
    return str(chance) if chance.denominator < 10_000 else f"{float(chance):.4g}"


def _way_out(pace: budget.Pace, some: bool) -> str:
    ways = ["protect only the values that need it (guarantee.protect)", "lower l"]
    if pace.strategy == "constant-ratio":
        ways.append("shorten the horizon")
    if some:
        ways.append('set method.infeasible = "withhold" to leave out the people with too little left')
    return ", ".join(ways[:-1]) + f" or {ways[-1]}"
