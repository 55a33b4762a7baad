"""Closed cohorts whose counterfeits keep their values: a place that somebody left goes on showing what they had.

Where a cohort shows a value twice, its two rows are two places, the same ones in every release. Who takes each release
by itself weighs the lots of its counterfeits anew every time: {x, y, z} with h, h, v and then {x} beside two
counterfeits would leave 1/5 for x to have v, though a counterfeit only stands where somebody was, and it is 1/3. So
each row of such a cohort is a value of its own while beliefs are worked out, and they are added up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reveil.audit.infer.infer import Inference, infer
from reveil.audit.input.observed import Observed
from reveil.audit.input.terms import linked
from reveil.audit.model.model import Model, rebuilt
from reveil.base.arrays import I64, Bools, offsets_of


def cohorts_with_repeats(o: Observed) -> Bools:
    """Of each group, whether it is of a cohort that shows the same values in all of its releases, some of them twice.

    In one release alone, or where no value repeats, there is nothing to weigh.
    """
    count, label = linked(o)
    good, often = np.bincount(label, minlength=count) > 1, np.zeros(count, dtype=bool)
    often[label[o.cell_group[o.cell_rows > 1]]] = True
    order = np.lexsort((o.group_release, label))
    before, after = order[:-1], order[1:]
    same = label[before] == label[after]
    good[label[after[same & (o.group_release[before] == o.group_release[after])]]] = False
    for a, b in zip(before[same].tolist(), after[same].tolist(), strict=True):
        if good[label[a]] and often[label[a]]:
            good[label[a]] = _shown(o, a) == _shown(o, b)
    repeated: Bools = (good & often)[label]
    return repeated


def _shown(o: Observed, group: int) -> list[tuple[int, int]]:
    cells = slice(o.cell_start[group], o.cell_start[group + 1])
    return list(zip(o.cell_value[cells].tolist(), o.cell_rows[cells].tolist(), strict=True))


def weigh_places(inference: Inference, people: Sequence[int] | None = None, **how: Any) -> Inference:
    """The inference with beliefs that know of places. Values never change, and everybody's group is known."""
    m, o = inference.model, inference.model.observed
    cohorts = cohorts_with_repeats(o)
    mine = cohorts[o.cand_group]
    asked = np.unique(o.app_person[mine])
    asked = asked if people is None else np.intersect1d(asked, people)
    if not len(asked):
        return inference
    wide, base = _one_row_each(m, cohorts)
    placed = infer(wide, people=asked.tolist(), **how)
    copies = np.where(m.by_option(mine), m.cell_cap[m.opt_cell], 1)
    theirs = m.by_option(mine & np.isin(o.app_person, asked))
    added = np.add.reduceat(placed.share, offsets_of(copies)[:-1])
    inference.share = np.where(theirs, added, inference.share)
    exact = {key: chance for key, chance in inference.posterior.items() if not mine[key[0]]}
    for (app, value), chance in placed.posterior.items():
        if mine[app]:
            key = app, int(base[value])
            exact[key] = exact.get(key, 0) + chance
    inference.posterior = exact
    return inference


def _one_row_each(m: Model, cohorts: Bools) -> tuple[Model, I64]:
    """The model in which each row of these groups shows a value of its own, and what each such value is."""
    o = m.observed
    copies = np.where(cohorts[o.cell_group], o.cell_rows, 1)
    most = np.ones(len(o.values), dtype=np.int64)
    np.maximum.at(most, o.cell_value, copies)
    base = np.repeat(np.arange(len(o.values)), most)
    start = offsets_of(copies)
    copy = np.arange(start[-1]) - np.repeat(start[:-1], copies)
    seen = replace(
        o,
        values=tuple((o.values[value], number) for number, value in enumerate(base)),
        cell_group=np.repeat(o.cell_group, copies),
        cell_value=np.repeat(offsets_of(most)[o.cell_value], copies) + copy,
        cell_rows=np.repeat(np.where(cohorts[o.cell_group], 1, o.cell_rows), copies),
    )
    wide = rebuilt(m, seen, {})
    wanted = np.full(len(m.app_factor), -1, dtype=np.int64)
    wanted[list(m.pinned)] = list(m.pinned.values())
    told = wide.by_option(wanted)
    wide.possible[:] = (told < 0) | (base[wide.cell_value[wide.opt_cell]] == told)
    return wide, base
