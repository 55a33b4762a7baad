"""Who is in which group of a release, by counting alone: every row is somebody's, and nobody has two.

A group that as many people fit as it has rows holds all of them, so they are in no other; and so on. All that follows
from such counting is found at once: by a flow that gives everybody a group, and the exchanges that lead from there to
other ways of doing so. A place that no exchange reaches is ruled out, and everything else is possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, maximum_flow

from reveil.base.arrays import I64, Bools


@dataclass(frozen=True, eq=False)
class Places:
    """Who may be where in one release."""

    possible: Bools  # of each pair of a person and a group
    sure: Bools  # of each person who fits something: they are in the release
    full: Bools  # of each group: all of its rows are of people who are listed
    strangers: int  # rows, at least, of people who are not listed
    crowded: int  # people, at least, who are said to be in the release and find no row


def locate(person: I64, group: I64, rows: I64, *, present: bool) -> Places:
    """What counting tells. `person` and `group` are pairs that fit, each once; people are numbered without gaps, and
    `rows` are those of each group that are no counterfeits. `present`: everybody who is listed is in the release.

    >>> people, groups = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 0, 0, 1])  # 0 and 2 fit both groups
    >>> locate(people, groups, np.array([1, 2]), present=True).possible.tolist()
    [False, True, True, False, True]
    """
    count, total = int(person.max(initial=-1)) + 1, int(rows.sum())
    home, held = _flow(person, group, count, rows)
    strangers, crowded = total - int(held.sum()), (count - int(held.sum())) if present else 0
    complete = strangers == 0 or (present and total - strangers == count)
    if not complete or crowded:
        everything = np.ones(len(person), dtype=bool)
        full = np.full(len(rows), strangers == 0)
        return Places(everything, np.full(count, present and not crowded), full, strangers, crowded)
    label = _exchanges(person, group, home, held, rows, strangers)
    away, sink = count + len(rows), count + len(rows) + 1
    same = label[person] == label[count + group]
    stays = (home >= 0) & (label[:count] != label[away])
    full = (held == rows) & ((label[count:away] != label[sink]) if strangers else True)
    return Places(same | (home[person] == group), stays | present, full, strangers, 0)


def _flow(person: I64, group: I64, count: int, rows: I64) -> tuple[I64, I64]:
    """A group for as many people as can have one (-1: none), and how many each group then holds."""
    source, sink, first = count + len(rows), count + len(rows) + 1, np.arange(count)
    begin = np.concatenate([np.full(count, source), person, count + np.arange(len(rows))])
    end = np.concatenate([first, count + group, np.full(len(rows), sink)])
    most = np.concatenate([np.ones(count + len(person), dtype=np.int32), rows.astype(np.int32)])
    graph = coo_array((most, (begin, end)), shape=(sink + 1, sink + 1)).tocsr()
    flow = maximum_flow(graph, source, sink).flow.tocoo()
    home = np.full(count, -1, dtype=np.int64)
    used = (flow.data > 0) & (flow.row < count) & (flow.col >= count) & (flow.col < source)
    home[flow.row[used]] = flow.col[used] - count
    return home, np.bincount(home[home >= 0], minlength=len(rows))


def _exchanges(person: I64, group: I64, home: I64, held: I64, rows: I64, strangers: int) -> I64:
    """What can be exchanged with what, as one number each: people, groups, being away, and rows of strangers.

    A person may go to another group that fits, a group may send one of its people away: who goes round in a circle
    leads from one way to place everybody to another one.
    """
    count, away, sink = len(home), len(home) + len(rows), len(home) + len(rows) + 1
    moves = home[person] != group
    placed, absent, groups = np.nonzero(home >= 0)[0], np.nonzero(home < 0)[0], np.arange(len(rows))
    begin = [person[moves], count + home[placed]]
    end = [count + group[moves], placed]
    if len(absent):  # somebody else may be away instead
        begin += [placed, np.full(len(absent), away)]
        end += [np.full(len(placed), away), absent]
    if strangers:
        spare, taken = groups[held < rows], groups[held > 0]
        begin += [count + spare, np.full(len(taken), sink)]
        end += [np.full(len(spare), sink), count + taken]
    pairs = np.concatenate(begin), np.concatenate(end)
    graph = coo_array((np.ones(len(pairs[0]), dtype=np.int8), pairs), shape=(sink + 1, sink + 1))
    label: I64 = connected_components(graph, directed=True, connection="strong")[1].astype(np.int64)
    return label
