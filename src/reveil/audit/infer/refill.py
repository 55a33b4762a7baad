"""A walk from world to world: the rows of a few people are taken back and given out anew, all ways weighed alike.

Who these people are is drawn without looking at what they have: one of them, then others who may be in a group with
somebody of them, those first in whose group nobody else is yet. So a step back is as likely as the step was, and in the
long run every world is visited as often as it weighs, as far as such steps lead. Arrays only; compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveil.base.arrays import I64
from reveil.base.kernels import kernel

Floats = NDArray[np.float64]
LARGEST = 10  # people drawn for one step
HABIT = 0.2  # share of steps with people who are listed, not drawn
TRIES = 8  # draws of a further person
MOST = 2_000  # rows that are tried for one step; if there are more, nothing changes
AMPLE = 1 << 39  # more rows than this: as many as anybody wants


class Tangle(NamedTuple):
    """A component: appearances person by person, and the cells that each may be in."""

    person_start: I64  # appearances of person n: person_start[n] to person_start[n + 1]
    app_person: I64
    opt_start: I64
    opt_cell: I64
    opt_value: I64  # -1: not there
    opt_group: I64  # -1: not there
    opt_weight: Floats  # of the person's value, where it is their first
    group_start: I64  # appearances that may be in group g: group_apps[group_start[g]:group_start[g + 1]]
    group_apps: I64


class Listed(NamedTuple):
    """People who once had to change together: people[start[n]:start[n + 1]], whatever they have now."""

    start: I64
    people: I64


class Hands(NamedTuple):
    """A world: the option that each appearance has, and rows that are left of each cell."""

    held: I64
    room: I64


class Deck(NamedTuple):
    """Room for one step."""

    people: I64  # who gave their rows back
    inside: I64  # of each group, how many of their appearances may be in it
    joined: I64  # of each person, whether they are among them
    apps: I64
    option: I64  # by place in `apps`: what is tried,
    cursor: I64  # what comes next,
    value: I64  # the person's value so far,
    best: I64  # and what was drawn
    weight: Floats


def fresh_table(t: Tangle, listed: Listed) -> Deck:
    people, groups = len(t.person_start) - 1, len(t.group_start) - 1
    most = max(LARGEST, int(np.diff(listed.start).max(initial=0)))
    widest = most * int(np.diff(t.person_start).max(initial=1))
    blank = np.zeros((5, widest), dtype=np.int64)
    joined, inside = np.zeros(people, dtype=np.int64), np.zeros(groups + 1, dtype=np.int64)
    apps, option, cursor, value, best = blank
    return Deck(np.zeros(most, dtype=np.int64), inside, joined, apps, option, cursor, value, best, np.zeros(widest))


@kernel
def wander(t: Tangle, listed: Listed, hands: Hands, table: Deck, sweeps: int, seed: int, tally: Floats) -> int:
    """So many sweeps over the component; after each, the options that appearances have are counted. Returns how many
    steps changed something."""
    np.random.seed(seed)
    people, moved = len(t.person_start) - 1, 0
    for _ in range(sweeps):
        for _ in range(max(1, people // 4)):
            if len(listed.start) > 1 and np.random.random() < HABIT:
                count = call(t, listed, table)
            else:
                count = draw(t, table, min(people, 2 + np.random.randint(LARGEST - 1)))
            moved += step(t, hands, table, count)
        for a in range(len(hands.held)):
            tally[hands.held[a]] += 1
    return moved


@kernel
def step(t: Tangle, hands: Hands, table: Deck, count: int) -> int:
    """The rows of these people are given out anew. Says whether anything changed."""
    apps = 0
    for n in range(count):
        p = table.people[n]
        table.joined[p] = 0
        for a in range(t.person_start[p], t.person_start[p + 1]):
            table.apps[apps] = a
            apps += 1
            hands.room[t.opt_cell[hands.held[a]]] += 1
            for o in range(t.opt_start[a], t.opt_start[a + 1]):
                table.inside[t.opt_group[o]] = 0
    complete = give(t, hands, table, apps)
    changed = 0
    for n in range(apps):
        a = table.apps[n]
        if complete and hands.held[a] != table.best[n]:
            hands.held[a] = table.best[n]
            changed = 1
        hands.room[t.opt_cell[hands.held[a]]] -= 1
    return changed


@kernel
def call(t: Tangle, listed: Listed, table: Deck) -> int:
    """The people of one list."""
    n, count = np.random.randint(len(listed.start) - 1), 0
    for p in listed.people[listed.start[n] : listed.start[n + 1]]:
        count = join(t, table, p, count)
    return count


@kernel
def draw(t: Tangle, table: Deck, size: int) -> int:
    """Some people who may be in groups with one another; without a look at what they have."""
    count = join(t, table, np.random.randint(len(t.person_start) - 1), 0)
    tries = 0
    while count < size and tries < TRIES:
        tries += 1
        p = table.people[np.random.randint(count)]
        a = t.person_start[p] + np.random.randint(t.person_start[p + 1] - t.person_start[p])
        g = t.opt_group[t.opt_start[a] + np.random.randint(t.opt_start[a + 1] - t.opt_start[a])]
        if g < 0 or (table.inside[g] > 1 and tries < TRIES // 2):
            continue
        b = t.group_apps[t.group_start[g] + np.random.randint(t.group_start[g + 1] - t.group_start[g])]
        if not table.joined[t.app_person[b]]:
            count, tries = join(t, table, t.app_person[b], count), 0
    return count


@kernel
def join(t: Tangle, table: Deck, p: int, count: int) -> int:
    """One more person; each of their appearances counts once in every group that it may be in."""
    table.people[count] = p
    table.joined[p] = 1
    for a in range(t.person_start[p], t.person_start[p + 1]):
        before = -2
        for o in range(t.opt_start[a], t.opt_start[a + 1]):
            g = t.opt_group[o]
            if g != before and g >= 0:
                table.inside[g] += 1
            before = g
    return count + 1


@kernel
def give(t: Tangle, hands: Hands, table: Deck, apps: int) -> bool:
    """All ways to give these appearances rows, one of them drawn by its weight. False if there are too many."""
    room, option, cursor, value, weight = hands.room, table.option, table.cursor, table.value, table.weight
    total, tried, n = 0.0, 0, 0
    option[0], cursor[0], value[0], weight[0] = -1, t.opt_start[table.apps[0]], -1, 1.0
    while n >= 0:
        if option[n] >= 0:
            room[t.opt_cell[option[n]]] += 1
        option[n] = o = following(t, hands, table, n)
        if o < 0:
            n -= 1
            continue
        tried += 1
        c, v, mine = t.opt_cell[o], t.opt_value[o], weight[n]
        if tried > MOST:
            option[n] = -1
            for k in range(n):
                room[t.opt_cell[option[k]]] += 1
            return False
        if room[c] < AMPLE:
            mine *= room[c]
        if v >= 0 and value[n] < 0:
            mine *= t.opt_weight[o]
        room[c] -= 1
        if n + 1 < apps:
            a, b = table.apps[n], table.apps[n + 1]
            held = v if v >= 0 else value[n]
            n += 1
            option[n], cursor[n], weight[n] = -1, t.opt_start[b], mine
            value[n] = held if t.app_person[a] == t.app_person[b] else -1
        elif mine > 0:
            total += mine
            if np.random.random() * total < mine:
                table.best[:apps] = option[:apps]
    return total > 0


@kernel
def following(t: Tangle, hands: Hands, table: Deck, n: int) -> int:
    """The next option for the n-th appearance that has a row left, with the person's value; -1 after the last."""
    a = table.apps[n]
    for o in range(table.cursor[n], t.opt_start[a + 1]):
        v = t.opt_value[o]
        if hands.room[t.opt_cell[o]] <= 0 or (v >= 0 and table.value[n] >= 0 and v != table.value[n]):
            continue
        if v < 0 or table.value[n] >= 0 or possible(t, hands, a, v):
            table.cursor[n] = o + 1
            return o
    return -1


@kernel
def possible(t: Tangle, hands: Hands, a: int, v: int) -> bool:
    """Whether the person could have a row with this value in each of their later releases, too."""
    for b in range(a + 1, t.person_start[t.app_person[a] + 1]):
        found = False
        for o in range(t.opt_start[b], t.opt_start[b + 1]):
            if hands.room[t.opt_cell[o]] > 0 and (t.opt_value[o] == v or t.opt_value[o] < 0):
                found = True
                break
        if not found:
            return False
    return True
