"""Beliefs in closed form, for all groups at once: where the open people of a group can have any of its open rows, each
row is equally likely to be theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveil.audit.infer.certain import State
from reveil.base.arrays import Bools

Floats = NDArray[np.float64]


def enter_uniform(state: State, single: Bools, share: Floats) -> Bools:
    """Enter the probability of each option that has a closed form; says which factors have one.

    `single` marks factors that are components of their own. People with a prior have no closed form.
    """
    m, o = state.model, state.model.observed
    owner = np.repeat(np.arange(m.factors), np.diff(m.cell_start))
    many = m.by_option(state.open_options > 1)
    share[state.alive & ~many] = 1.0
    if not o.located:
        return np.zeros(m.factors, dtype=bool)
    free = state.free_rows
    rows = np.bincount(owner, free, m.factors)
    cells = np.bincount(owner, free > 0, m.factors)
    good = single.copy()
    loose = np.nonzero(state.open_options > 1)[0]
    short = state.open_options[loose] != cells[m.app_factor[loose]]
    good[m.app_factor[loose[short]]] = False
    if m.priors:
        good[m.app_factor[np.isin(o.app_person, list(m.priors))]] = False
    options = state.alive & many & m.by_option(good[m.app_factor])
    chance = free / np.maximum(rows, 1)[owner]
    share[options] = chance[m.opt_cell[options]]
    return good
