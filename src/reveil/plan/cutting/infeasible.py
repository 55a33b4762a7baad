"""Why a table cannot be published under a policy, in words, and which rows stand in the way.

Every condition that is planned here holds for the whole table as one group, or for no way of cutting it. Nearness is
the exception: it may hold for small groups only, which planning top down does not find.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.errors import Fault, brief
from reveil.base.words import agree, some
from reveil.plan.cutting import admit, values
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded, Sensitive


def faults(encoded: Encoded, policy: Policy) -> list[Fault]:
    """One fault per condition that not even the whole table as one group satisfies."""
    g, found = policy.guarantee, []
    if encoded.rows < (g.k or 1):
        message = f"the table has {some(encoded.rows, 'row')}, fewer than k = {g.k}"
        found.append(Fault("R401", "guarantee.k", message, f"lower k to at most {encoded.rows}", encoded.rows))
    for number, column in enumerate(encoded.sensitive):
        counts = np.bincount(encoded.codes[:, number], minlength=len(column.values))
        found += _column_faults(g, column, counts, encoded.rows, policy.method.infeasible == "withhold")
    if encoded.population is not None:
        found += _presence_faults(g, encoded.rows, len(encoded.population))
    if not found:
        message = "the whole table as one group does not satisfy all conditions together"
        found.append(Fault("R401", "guarantee", message, "relax the strictest condition", encoded.rows))
    return found


def _column_faults(g: Guarantee, column: Sensitive, counts: NDArray[Any], rows: int, withheld: bool) -> Iterator[Fault]:
    where = f"column {column.name!r}"
    distinct, top = int((counts > 0).sum()), int(counts.max(initial=0))
    value = column.values[int(counts.argmax())] if distinct else None
    common = f"value {brief(value)} occurs in {top:,} of {some(rows, 'row')}"
    way = "lower the parameter, or group rare values together"
    way += "" if withheld else ', or set method.infeasible = "withhold"'
    if g.l is not None and distinct < g.l:
        yield Fault(
            "R402",
            where,
            f"has {some(distinct, 'different value')}, fewer than l = {g.l}",
            f"lower l to {distinct}",
            rows,
        )
    elif g.l is not None and g.diversity == "entropy":
        shares = counts[counts > 0] / rows
        entropy = float(-(shares * np.log(shares)).sum())
        if entropy < log(g.l):
            yield Fault(
                "R403", where, f"{common}; its entropy allows l up to {np.exp(entropy):.3f}, not {g.l}", way, top
            )
    elif g.l is not None and g.diversity == "recursive" and g.c is not None:
        tail = int(np.sort(counts)[::-1][ceil(g.l) - 1 :].sum())
        if top >= g.c * tail:
            yield Fault(
                "R403",
                where,
                f"{common}, not less than c = {g.c} times the {some(tail, 'row')} of rare values",
                way,
                top,
            )
    if g.alpha is not None and Fraction(top, max(1, rows)) > g.alpha:
        yield Fault("R403", where, f"{common}: a share above alpha = {g.alpha}", way, top)
    if g.epsilon is not None and g.m is not None:
        value, near = admit.nearest(g, column, counts)
        if near * g.m > rows:
            message = (
                f"as one group, {near:,} of {some(rows, 'row')} {agree(near, 'lies', 'lie')} within "
                f"epsilon = {g.epsilon} of {value!r}, more than "
                f"one in m = {g.m}. Smaller groups may still keep the promise, but none were looked for"
            )
            yield Fault("R404", where, message, "lower epsilon or m", near)


def _presence_faults(g: Guarantee, rows: int, people: int) -> Iterator[Fault]:
    share = Fraction(rows, max(1, people))
    if g.delta_max is not None and not g.delta_min <= share <= g.delta_max:
        message = (
            f"{some(rows, 'row')} of {some(people, 'person', 'people')}: a share of {float(share):.4f} is "
            "outside the stated bounds"
        )
        yield Fault("R405", "guarantee.population", message, "choose bounds around this share", rows)


def without_excess(tests: values.Tests, rows: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows to keep: the fewest rows of too frequent values are left out, chosen at random among their like."""
    keep = np.ones(len(rows), dtype=bool)
    for test in range(len(tests.kind)):
        if tests.kind[test] not in (values.FREQUENCY, values.ENTROPY, values.RECURSIVE):
            continue
        codes = rows[:, tests.column[test]]  # -1: people of a population table, who have no value here
        counts = np.bincount(codes[keep & (codes >= 0)], minlength=int(np.diff(tests.first_code)[test]))
        cap = _largest_cap(tests, test, counts)
        for code in np.flatnonzero(counts > cap):
            mine = np.flatnonzero(keep & (codes == code))
            keep[rng.permutation(mine)[cap:]] = False
    return keep


def _largest_cap(tests: values.Tests, test: int, counts: NDArray[Any]) -> int:
    """The largest number of rows that each value may keep so that the test is passed; 0 when there is none."""
    low, high = 0, int(counts.max(initial=0))
    while low < high:
        cap = (low + high + 1) // 2
        if _passes(tests, test, np.minimum(counts, cap)):
            low = cap
        else:
            high = cap - 1
    return low


def _passes(tests: values.Tests, test: int, counts: NDArray[Any]) -> bool:
    column = int(tests.column[test])
    rows = np.zeros((int(counts.sum()), column + 1), dtype=np.int32)
    rows[:, column] = np.repeat(np.arange(len(counts)), counts)
    count, work = np.zeros(len(counts) + 1, dtype=np.int64), np.zeros(len(counts) + 1, dtype=np.int64)
    order = np.arange(len(rows))
    return len(rows) > 0 and bool(values.admits_values(tests, test, rows, order, 0, len(rows), len(rows), count, work))
