"""Vacant places of cohorts and the newcomers who take them: the hot loops.

Newcomers of one value lie along a curve that keeps neighbours together. For a vacant place the nearest of them is
looked for in a window of that curve around the cohort, so the work per place does not grow with the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveil.base.arrays import I32, I64, Bools, Ints
from reveil.base.kernels import kernel
from reveil.plan.cutting.trees import Trees, run_cost
from reveil.plan.cutting.values import ZERO
from reveil.plan.persistent.buckets import assign
from reveil.plan.persistent.split import split

BITS = 8  # of the curve, per column
WINDOW = 96  # newcomers looked at for one place


class OpenCohorts(NamedTuple):
    """Cohorts that may be refilled: where they lie, their vacant values, and how many must be filled at once."""

    boxes: I32
    centre: I64  # along the curve
    first: I64  # of their vacant values
    vacant: I32
    least: I64


class Newcomers(NamedTuple):
    """Those who may refill, sorted by value and curve: value v has those from first[v] on, `left` of them free."""

    positions: I32
    keys: I64  # along the curve
    first: I64
    left: I64


def curve(positions: I32, trees: Trees) -> I64:
    """The place of each row along a Z-order curve through the quasi-identifiers."""
    keys = np.zeros(len(positions), dtype=np.int64)
    columns = min(positions.shape[1], 63 // BITS)
    for c in range(columns):
        leaves = max(1, int(trees.first_leaf[c + 1] - trees.first_leaf[c]) - 1)
        cell = (positions[:, c].astype(np.int64) * (2**BITS - 1)) // leaves
        for bit in range(BITS):
            keys |= ((cell >> bit) & 1) << (bit * columns + c)
    return keys


@kernel
def find(link: I64, i: int) -> int:
    """Follow links to the next newcomer who is still free, shortening the way."""
    while link[i] != i:
        link[i] = link[link[i]]
        i = link[i]
    return i


@kernel
def nearest(trees: Trees, box: I32, newcomers: Newcomers, v: int, key: int, right: I64, left: I64) -> int:
    """The free newcomer of value v whose taking in widens the box least. Ends are guarded by sentinels."""
    positions, keys = newcomers.positions, newcomers.keys
    start, end = newcomers.first[v], newcomers.first[v + 1]
    at = start + np.searchsorted(keys[start:end], key)
    best, lowest = -1, np.inf
    up, down = find(right, at), find(left, at)  # left is shifted by one: entry i stands for newcomer i - 1
    for _ in range(WINDOW // 2):
        for side in range(2):
            i = up if side == 0 else down - 1
            if i < start or i >= end:
                continue
            cost = 0.0
            for c in range(positions.shape[1]):
                p = positions[i, c]
                a, b = min(box[0, c], p), max(box[1, c], p)
                if a != b:
                    cost += trees.weight[c] * run_cost(trees, c, a, b)
                    if cost >= lowest:
                        break
            if cost < lowest:
                best, lowest = i, cost
        if up < end:
            up = find(right, up + 1)
        if down > start:
            down = find(left, down - 1)
        if up >= end and down <= start:
            break
    return best


@kernel
def listed(codes: I32, number: int, code: int) -> int:
    """How often the code is among the first `number`."""
    often = ZERO
    for j in range(number):
        often += codes[j] == code
    return often


@kernel
def take(counts: I64, tally: I64, harmless: Bools, codes: I32, number: int, sign: int) -> None:
    """Take one newcomer of each code (or put them back); harmless ones stand in nobody's way."""
    for j in range(number):
        v = codes[j]
        if not harmless[v]:
            tally[counts[v]] -= 1
            tally[counts[v] - sign] += 1
        counts[v] -= sign


@kernel
def refill(trees: Trees, cohorts: OpenCohorts, newcomers: Newcomers, m: int, harmless: Bools, counts: I64) -> I64:
    """Refill cohorts in the order given, its `least` or more places of each, while the other newcomers stay m-eligible.

    `counts` are all newcomers by value, those who may not refill included. Returns the cohort that each joins, or -1. A
    value is taken once, a harmless one as often as it is vacant.
    """
    boxes, centre, first_vacant, vacant, least = cohorts
    positions, left, n = newcomers.positions, newcomers.left, len(newcomers.keys)
    home = np.full(n, -1, np.int64)
    right, before_it = np.arange(n + 1), np.arange(n + 1)
    total, top, width = counts.sum(), ZERO, ZERO
    tally = np.zeros(total + 1, np.int64)
    for v in range(len(counts)):
        if not harmless[v]:
            tally[counts[v]] += 1
            top = max(top, counts[v])
    for g in range(len(centre)):
        width = max(width, first_vacant[g + 1] - first_vacant[g])
    codes, box = np.zeros(width, np.int32), np.zeros((2, positions.shape[1]), np.int32)
    done = np.zeros(len(centre), np.bool_)
    for _ in range(3):  # a cohort that would have upset the balance may fit once others have taken their share
        before = total
        for g in range(len(centre)):
            if done[g]:
                continue
            number = ZERO
            for j in range(first_vacant[g], first_vacant[g + 1]):
                often = listed(codes, number, vacant[j])
                if often < left[vacant[j]] and (often == 0 or harmless[vacant[j]]):
                    codes[number] = vacant[j]
                    number += 1
            if number < least[g]:
                continue
            slack, new_top = total - m * top, top
            take(counts, tally, harmless, codes, number, 1)
            while new_top > 0 and tally[new_top] == 0:
                new_top -= 1
            if total - number - m * new_top < min(0, slack):
                take(counts, tally, harmless, codes, number, -1)
                continue
            top, total = new_top, total - number
            done[g] = True
            for c in range(box.shape[1]):
                box[0, c], box[1, c] = boxes[g, 0, c], boxes[g, 1, c]
            for j in range(number):
                v = codes[j]
                i = nearest(trees, box, newcomers, v, centre[g], right, before_it)
                home[i] = g
                left[v] -= 1
                right[i], before_it[i + 1] = i + 1, i
                for c in range(positions.shape[1]):
                    box[0, c] = min(box[0, c], positions[i, c])
                    box[1, c] = max(box[1, c], positions[i, c])
        if total == before:
            break
    return home


@kernel
def vacancies(first: I64, codes: I32, shown: I32, here: Ints, first_here: I64, present: Ints) -> tuple[I64, I32]:
    """What each cohort shows in places that nobody present has. `present` are codes of rows sorted by cohort."""
    starts = np.zeros(len(here) + 1, np.int64)
    width = 0
    for g in range(len(here)):
        group = shown[here[g]]
        width = max(width, first[group + 1] - first[group])
        starts[g + 1] = starts[g] + first[group + 1] - first[group] - (first_here[g + 1] - first_here[g])
    vacant = np.zeros(starts[-1], np.int32)
    for g in range(len(here)):
        group, place = shown[here[g]], starts[g]
        held = np.zeros(first[group + 1] - first[group], np.bool_)
        for i in range(first_here[g], first_here[g + 1]):
            for j in range(first[group], first[group + 1]):
                if codes[j] == present[i] and not held[j - first[group]]:
                    held[j - first[group]] = True
                    break
        for j in range(first[group], first[group + 1]):
            if not held[j - first[group]]:
                vacant[place] = codes[j]
                place += 1
    return starts, vacant


@kernel
def bounds(positions: I32, order: I64, first: I64, which: I64) -> I32:
    """The box of the rows of some groups; rows of group g are order[first[g]:first[g + 1]]."""
    boxes = np.zeros((len(which), 2, positions.shape[1]), np.int32)
    for k in range(len(which)):
        g = which[k]
        for c in range(positions.shape[1]):
            boxes[k, 0, c] = boxes[k, 1, c] = positions[order[first[g]], c]
            for i in range(first[g] + 1, first[g + 1]):
                boxes[k, 0, c] = min(boxes[k, 0, c], positions[order[i], c])
                boxes[k, 1, c] = max(boxes[k, 1, c], positions[order[i], c])
    return boxes


@kernel
def unfilled(first_vacant: I64, vacant: I32, home: Ints, codes: I32) -> tuple[I32, I32]:
    """Cohort and code of each vacant place that no newcomer (cohort, code) took."""
    taken = np.zeros(len(vacant), np.bool_)
    for i in range(len(home)):
        if home[i] >= 0:
            for j in range(first_vacant[home[i]], first_vacant[home[i] + 1]):
                if vacant[j] == codes[i] and not taken[j]:
                    taken[j] = True
                    break
    owner = np.empty(len(vacant), np.int32)
    for g in range(len(first_vacant) - 1):
        owner[first_vacant[g] : first_vacant[g + 1]] = g
    return owner[~taken], vacant[~taken]


@kernel
def settle(trees: Trees, positions: I32, codes: I32, order: I64, first: I64, width: int, m: int, cohort: I32) -> int:
    """Part each region, the rows order[first[r]:first[r + 1]], into cohorts of m or more different values.

    As in m-invariance, its rows are dealt into buckets of equally frequent values, and buckets are split. Fills
    `cohort` and returns how many there are.
    """
    number = ZERO
    counts, starts = np.zeros(width, np.int64), np.zeros(width, np.int64)
    for r in range(len(first) - 1):
        rows = order[first[r] : first[r + 1]]
        counts[:] = 0
        for row in rows:
            counts[codes[row]] += 1
        starts[0] = 0
        for v in range(1, width):
            starts[v] = starts[v - 1] + counts[v - 1]
        by_value, place = np.empty(len(rows), np.int64), starts.copy()
        for row in rows:
            by_value[place[codes[row]]] = row
            place[codes[row]] += 1
        place = starts.copy()
        near = positions[by_value]
        values, ends, often = assign(counts, m)
        begin = 0
        for b in range(len(ends)):
            mine = np.empty(ends[b] - begin, np.int64)
            for j in range(begin, ends[b]):
                mine[j - begin] = place[values[j]]
                place[values[j]] += often[b]
            height = int(often[b])
            split(trees, by_value, near, mine, np.full(len(mine), height), height, cohort, number)
            number += height
            begin = int(ends[b])
    return number
