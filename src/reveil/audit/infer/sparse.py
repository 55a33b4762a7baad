"""Elimination of large sparse systems modulo a prime, in compiled loops over arrays.

Rows with one or two unknowns are solved first, then unknowns that occur in few rows: rows stay short as long as they
can, and pieces of the system that hang together loosely are done before those that take work.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I64, Bools
from reveil.base.kernels import kernel

PRIME = (1 << 31) - 1
UNQUEUED = 1 << 60


class Echelon(NamedTuple):
    """Step k solves row `row[k]` for unknown `column[k]`: `scale` times (the row less `times` those of the steps
    `before`) is that unknown and the `rest`, each by its `weight`, and equals `right`."""

    row: I64
    column: I64
    scale: I64
    right: I64
    rest_start: I64  # the rest of step k: rest[rest_start[k]:rest_start[k + 1]]
    rest: I64
    weight: I64
    before_start: I64
    before: I64
    times: I64


class Active(NamedTuple):
    """Unknowns in the middle of the elimination. `user` and `link` are lists of their rows that begin at `head`;
    some of the rows may have dropped the unknown."""

    rows: I64  # how many have it
    queued: I64  # the number under which it waits in the heap
    head: I64


class StepLog(NamedTuple):
    """What was taken off each row, newest first: the step, and how often."""

    head: I64  # of each row; -1 at the end
    link: I64
    step: I64
    times: I64


Parts = tuple[I64, ...]  # the arrays of an `Echelon`


@kernel
def inverse(value: int) -> int:
    """By Fermat's little theorem."""
    result, base, power = 1, value % PRIME, PRIME - 2
    while power:
        if power & 1:
            result = result * base % PRIME
        base = base * base % PRIME
        power >>= 1
    return result


@kernel
def find(cols: I64, c: int) -> int:
    """The place of an unknown in a row, or -1."""
    low, high = 0, len(cols)
    while low < high:
        middle = (low + high) // 2
        if cols[middle] < c:
            low = middle + 1
        else:
            high = middle
    return low if low < len(cols) and cols[low] == c else -1


@kernel
def less(cols: I64, vals: I64, times: int, other_cols: I64, other_vals: I64) -> tuple[I64, I64, I64, I64]:
    """A row less `times` another one, the unknowns that it gains by this, and those that it loses. Rows are sorted."""
    i, j, size, gained, lost = 0, 0, 0, 0, 0
    n, m = len(cols), len(other_cols)
    new_cols, new_vals = np.empty(n + m, np.int64), np.empty(n + m, np.int64)
    gains, losses = np.empty(m, np.int64), np.empty(m, np.int64)
    while i < n or j < m:
        if j == m or (i < n and cols[i] < other_cols[j]):
            c, value = cols[i], vals[i]
            i += 1
        else:
            c, value = other_cols[j], (PRIME - times) * other_vals[j] % PRIME
            j += 1
            if i < n and cols[i] == c:
                value = (value + vals[i]) % PRIME
                i += 1
                if value == 0:
                    losses[lost] = c
                    lost += 1
                    continue
            else:
                gains[gained] = c
                gained += 1
        new_cols[size], new_vals[size] = c, value
        size += 1
    return new_cols[:size].copy(), new_vals[:size].copy(), gains[:gained], losses[:lost]


@kernel
def queue(heap: list[tuple[int, int]], unknowns: Active, c: int) -> None:
    """Let an unknown be chosen by its number of rows; what waits in the heap for a higher one is void."""
    if 0 < unknowns.rows[c] < unknowns.queued[c]:
        unknowns.queued[c] = unknowns.rows[c]
        heappush(heap, (unknowns.rows[c], c))


@kernel
def enlist(unknowns: Active, link: list[int], user: list[int], c: int, r: int) -> None:
    """A row has got an unknown."""
    unknowns.rows[c] += 1
    link.append(unknowns.head[c])
    user.append(r)
    unknowns.head[c] = len(link) - 1


@kernel
def choose(
    short: list[int],
    heap: list[tuple[int, int]],
    unknowns: Active,
    link: list[int],
    user: list[int],
    active: Bools,
    cols: list[I64],
) -> tuple[int, int]:
    """The next row and the unknown that it is solved for: a row with one or two unknowns, otherwise the unknown with
    the fewest rows, by its shortest one. (-1, -1) at the end."""
    while len(short) > 1:
        r = short.pop()
        if active[r] and len(cols[r]) > 0:
            c = cols[r][0]
            if len(cols[r]) > 1 and unknowns.rows[cols[r][1]] < unknowns.rows[c]:
                c = cols[r][1]
            return r, c
    while len(heap) > 0:
        size, c = heappop(heap)
        if size != unknowns.queued[c]:
            continue
        unknowns.queued[c] = UNQUEUED
        if size < unknowns.rows[c]:
            queue(heap, unknowns, c)
            continue
        best, shortest, entry = -1, UNQUEUED, unknowns.head[c]
        while entry >= 0:
            r = user[entry]
            if active[r] and len(cols[r]) < shortest and find(cols[r], c) >= 0:
                best, shortest = r, len(cols[r])
            entry = link[entry]
        if best >= 0:
            return best, c
    return -1, -1


@kernel
def eliminate(start: I64, col: I64, right: I64, columns: int, limit: int) -> tuple[Parts, I64, int]:
    """Solve rows of ones one by one, until all are or `limit` multiplications were made. The parts of an `Echelon`."""
    rows, right = len(start) - 1, right.copy()
    cols = [col[start[r] : start[r + 1]].copy() for r in range(rows)]
    vals = [np.ones(start[r + 1] - start[r], np.int64) for r in range(rows)]
    queued = np.full(columns, UNQUEUED)
    unknowns = Active(np.zeros(columns, np.int64), queued, np.full(columns, -1))
    link, user, short = [-1], [-1], [-1]
    for r in range(rows):
        for c in cols[r]:
            enlist(unknowns, link, user, c, r)
        if len(cols[r]) <= 2:
            short.append(r)
    heap = [(unknowns.rows[c], c) for c in range(columns)]
    for c in range(columns):  # one by one: Numba 0.68 lost `queued[:] = ...` here, the array being in a named tuple too
        queued[c] = unknowns.rows[c]
    heapify(heap)
    active, order, chosen = np.ones(rows, np.bool_), [-1], [-1]
    scale, log_head, log_link, log_step, log_times = [0], np.full(rows, -1), [-1], [-1], [0]
    work = 0
    while work <= limit:
        r, c = choose(short, heap, unknowns, link, user, active, cols)
        if r < 0:
            break
        scale.append(inverse(vals[r][find(cols[r], c)]))
        vals[r] = vals[r] * scale[-1] % PRIME
        right[r] = right[r] * scale[-1] % PRIME
        active[r] = False
        entry = unknowns.head[c]
        while entry >= 0:
            q, entry = user[entry], link[entry]
            at = find(cols[q], c) if active[q] else -1
            if at < 0:
                continue
            times = vals[q][at]
            cols[q], vals[q], gains, losses = less(cols[q], vals[q], times, cols[r], vals[r])
            right[q] = (right[q] + (PRIME - times) * right[r]) % PRIME
            for j in gains:
                enlist(unknowns, link, user, j, q)
            for j in losses:
                unknowns.rows[j] -= 1
                queue(heap, unknowns, j)
            if len(cols[q]) <= 2:
                short.append(q)
            work += len(cols[r])
            log_link.append(log_head[q])
            log_step.append(len(order) - 1)
            log_times.append(times)
            log_head[q] = len(log_link) - 1
        for j in cols[r]:
            unknowns.rows[j] -= 1
            queue(heap, unknowns, j)
        order.append(r)
        chosen.append(c)
    left = np.array([r for r in range(rows) if active[r] and len(cols[r]) > 0], dtype=np.int64)
    log = StepLog(log_head, np.array(log_link), np.array(log_step), np.array(log_times))
    return packed(order, chosen, scale, right, cols, vals, log), left, work


@kernel
def packed(
    order: list[int], chosen: list[int], scale: list[int], right: I64, cols: list[I64], vals: list[I64], log: StepLog
) -> Parts:
    """The steps as flat arrays."""
    log_head, log_link, log_step, log_times = log
    steps = len(order) - 1
    rest_start, before_start = np.zeros(steps + 1, np.int64), np.zeros(steps + 1, np.int64)
    for k in range(steps):
        r = order[k + 1]
        rest_start[k + 1] = rest_start[k] + len(cols[r]) - 1
        before_start[k + 1] = before_start[k]
        entry = log_head[r]
        while entry >= 0:
            before_start[k + 1] += 1
            entry = log_link[entry]
    rest, weight = np.empty(rest_start[-1], np.int64), np.empty(rest_start[-1], np.int64)
    before, times = np.empty(before_start[-1], np.int64), np.empty(before_start[-1], np.int64)
    for k in range(steps):
        r, at = order[k + 1], rest_start[k]
        mine, values = cols[r], vals[r]
        for i in range(len(mine)):
            if mine[i] != chosen[k + 1]:
                rest[at], weight[at] = mine[i], values[i]
                at += 1
        entry, at = log_head[r], before_start[k]
        while entry >= 0:
            before[at], times[at] = log_step[entry], log_times[entry]
            at, entry = at + 1, log_link[entry]
    row = np.array(order[1:], dtype=np.int64)
    return (
        row, np.array(chosen[1:], dtype=np.int64), np.array(scale[1:], dtype=np.int64), right[row],
        rest_start, rest, weight, before_start, before, times,
    )  # fmt: skip


@kernel
def fill_in(form: Echelon, solution: I64) -> None:
    """A solution from given values of the unknowns that no step solves for, in place."""
    for k in range(len(form.row) - 1, -1, -1):
        total = form.right[k]
        for i in range(form.rest_start[k], form.rest_start[k + 1]):
            total = (total + (PRIME - form.weight[i]) * solution[form.rest[i]]) % PRIME
        solution[form.column[k]] = total


@kernel
def reduce(form: Echelon, step_of: I64, one: int, other: int, amount: I64, wanted: I64) -> tuple[list[int], bool, int]:
    """Steps, as a heap of negative numbers, that add up to the unknown `one` less `other` (-1: none), each as often as
    `wanted` says. Also whether there are any, and the multiplications. `amount` (by unknown) is 0, before and after."""
    heap, steps, touched, work = [UNQUEUED], [0], [one], 0
    amount[one] = 1
    if other >= 0:
        amount[other] = PRIME - 1
        touched.append(other)
    for j in touched:
        if step_of[j] >= 0:
            heappush(heap, step_of[j])
    while heap[0] < UNQUEUED:
        k = heappop(heap)
        value = amount[form.column[k]]
        if value == 0:
            continue
        amount[form.column[k]] = 0
        wanted[k] = value
        heappush(steps, -k - 1)
        for i in range(form.rest_start[k], form.rest_start[k + 1]):
            j = form.rest[i]
            if amount[j] == 0:
                touched.append(j)
                if step_of[j] >= 0:
                    heappush(heap, step_of[j])
            amount[j] = (amount[j] + (PRIME - value) * form.weight[i]) % PRIME
        work += form.rest_start[k + 1] - form.rest_start[k]
    clean = True
    for j in touched:
        clean = clean and amount[j] == 0
        amount[j] = 0
    return steps, clean, work


@kernel
def combine(form: Echelon, step_of: I64, one: int, other: int, amount: I64, wanted: I64) -> tuple[I64, I64, int]:
    """Rows, and how often to take each, that add up to the unknown `one` less `other`; none if nothing does. Also the
    multiplications. `amount` (by unknown) and `wanted` (by step) are 0, before and after."""
    steps, clean, work = reduce(form, step_of, one, other, amount, wanted)
    rows, often = [-1], [0]
    while steps[0] < 0:
        k = -heappop(steps) - 1
        value = wanted[k] * form.scale[k] % PRIME
        wanted[k] = 0
        if value == 0 or not clean:
            continue
        rows.append(form.row[k])
        often.append(value)
        for i in range(form.before_start[k], form.before_start[k + 1]):
            earlier = form.before[i]
            if wanted[earlier] == 0:
                heappush(steps, -earlier - 1)
            wanted[earlier] = (wanted[earlier] + (PRIME - value) * form.times[i]) % PRIME
        work += form.before_start[k + 1] - form.before_start[k]
    return np.array(rows[1:], dtype=np.int64), np.array(often[1:], dtype=np.int64), work


@kernel
def rational(residue: int) -> tuple[int, int]:
    """The fraction with terms up to 2^15 that a residue stands for; 0/0 if there is none."""
    a, b, s, t = PRIME, residue, 0, 1
    while b > 1 << 15:
        q = a // b
        a, b, s, t = b, a - q * b, t, s - q * t
    if t == 0 or abs(t) > 1 << 15:
        return 0, 0
    return (b, t) if t > 0 else (-b, -t)


@kernel
def failing(start: I64, column: I64, residues: I64) -> Bools:
    """Rows of ones that the fractions behind these residues do not add up to 0 in, exactly."""
    bad = np.zeros(len(start) - 1, np.bool_)
    for r in range(len(bad)):
        total, below = 0, 1
        for i in range(start[r], start[r + 1]):
            residue = residues[column[i]]
            if residue == 0:
                continue
            above, under = rational(residue)
            if under == 0 or below > 1 << 30:
                bad[r] = True
                break
            common = below * (under // np.gcd(below, under))
            total = total * (common // below) + above * (common // under)
            below = common
        bad[r] = bad[r] or total != 0
    return bad
