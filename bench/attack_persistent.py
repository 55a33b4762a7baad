"""What somebody who knows a few people can be certain of, by matching inside every group until nothing changes.

Everybody starts with the values of their groups. In each group every person needs a value of their own (where values
repeat: as often as they do), so a value that fits in no such assignment is ruled out, and then in all groups of the
person. Everything found is certain. Not everything certain is found: chains of equalities are not followed (SAT finds
about a tenth more on small series), so shares are lower bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from reveil.history.history import History

Array = NDArray[Any]


def disclosed(history: History, known: str, seed: int, column: str = "occupation") -> list[float]:
    """Share of the unknown people who are certain, after each release. `known` is a number of people or a share."""
    rng = np.random.default_rng(seed)
    members = history.members.filter(pl.col("group") >= 0)
    people = int(members["person"].max()) + 1
    truth = np.zeros(people, dtype=np.int64)
    truth[members["person"].to_numpy()] = members[column].to_numpy()
    count = round(people * float(known[:-1]) / 100) if known.endswith("%") else int(known)
    compromised = np.zeros(people, dtype=bool)
    compromised[rng.choice(people, count, replace=False)] = True
    shares = []
    for release in range(1, history.head + 1):
        now = members.filter(pl.col("release") <= release)
        values = history.values.filter(pl.col("release") <= release)
        groups = history.groups.filter(pl.col("release") <= release)
        certain, seen = _certain(now, values, groups, truth, compromised, people)
        others = seen & ~compromised
        shares.append(round(float((certain & others).sum() / max(1, others.sum())), 4))
    return shares


def _certain(
    members: pl.DataFrame, values: pl.DataFrame, groups: pl.DataFrame, truth: Array, compromised: Array, people: int
) -> tuple[Array, Array]:
    keys = groups.select("release", "group").with_row_index("number")
    m = members.join(keys, on=["release", "group"], how="left").sort("number")
    v = values.join(keys, on=["release", "group"], how="left").sort("number", "code")
    count = keys.height
    person, owner = m["person"].to_numpy().astype(np.int64), m["number"].to_numpy()
    first = np.searchsorted(owner, np.arange(count + 1))
    shown = np.searchsorted(v["number"].to_numpy(), np.arange(count + 1))
    by_person = np.argsort(person, kind="stable")
    of_person = np.searchsorted(person[by_person], np.arange(people + 1))
    allowed = sweep(
        first,
        person,
        shown,
        v["code"].to_numpy().astype(np.int64),
        v["rows"].to_numpy().astype(np.int64),
        of_person,
        owner[by_person].astype(np.int64),
        truth,
        compromised,
    )
    seen = np.zeros(people, dtype=bool)
    seen[person] = True
    return allowed == 1, seen


@njit(cache=True, nogil=True)
def augment(place, options, mate, visited, size, width):  # type: ignore[no-untyped-def]
    """One step of bipartite matching: find a slot for a person, moving others."""
    for slot in range(width):
        if options[place, slot] and not visited[slot]:
            visited[slot] = True
            if mate[slot] < 0 or augment(mate[slot], options, mate, visited, size, width):
                mate[slot] = place
                return True
    return False


@njit(cache=True, nogil=True)
def possible(options, size, width, forced, slot):  # type: ignore[no-untyped-def]
    """Whether everybody finds a slot of their own if one person has a given slot."""
    mate = np.full(width, -1, np.int64)
    mate[slot] = forced
    for person in range(size):
        if person == forced:
            continue
        visited = np.zeros(width, np.bool_)
        visited[slot] = True
        if not augment(person, options, mate, visited, size, width):
            return False
    return True


@njit(cache=True, nogil=True)
def sweep(first, person, shown, code, rows, of_person, group_of, truth, compromised):  # type: ignore[no-untyped-def]
    """How many values remain for each person. Values of a person's first group are numbered; others are not allowed."""
    people, groups = len(truth), len(first) - 1
    left = np.zeros(people, np.int64)
    most = 0
    for g in range(groups):
        most = max(most, shown[g + 1] - shown[g])
    mine = np.full((people, most), -1, np.int64)
    for p in range(people):
        if of_person[p] == of_person[p + 1]:
            continue
        g = group_of[of_person[p]]
        for j in range(shown[g], shown[g + 1]):
            if not compromised[p] or code[j] == truth[p]:
                mine[p, left[p]] = code[j]
                left[p] += 1
    waiting = np.ones(groups, np.bool_)
    queue = list(range(groups))
    while len(queue) > 0:
        g = queue.pop()
        waiting[g] = False
        size, width = first[g + 1] - first[g], 0
        for j in range(shown[g], shown[g + 1]):
            width += rows[j]
        slots = np.empty(width, np.int64)
        place = 0
        for j in range(shown[g], shown[g + 1]):
            for _ in range(rows[j]):
                slots[place] = code[j]
                place += 1
        options = np.zeros((size, width), np.bool_)
        for i in range(size):
            p = person[first[g] + i]
            for s in range(width):
                for k in range(left[p]):
                    if mine[p, k] == slots[s]:
                        options[i, s] = True
        for i in range(size):
            p = person[first[g] + i]
            if left[p] <= 1:
                continue
            keep = 0
            for k in range(left[p]):
                good = False
                for s in range(width):
                    if slots[s] == mine[p, k]:
                        good = possible(options, size, width, i, s)
                        break
                if good:
                    mine[p, keep] = mine[p, k]
                    keep += 1
            if keep < left[p]:
                left[p] = keep
                for a in range(of_person[p], of_person[p + 1]):
                    other = group_of[a]
                    if not waiting[other]:
                        waiting[other] = True
                        queue.append(other)
                if not waiting[g]:
                    waiting[g] = True
                    queue.append(g)
    return left
