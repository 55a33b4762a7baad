"""Beliefs in closed form, for all groups at once: where the open people of a group can have any of its open rows, each
row is equally likely to be theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveil.audit.certain import State
from reveil.audit.observed import Bools

Floats = NDArray[np.float64]


def uniform_shares(state: State, single: Bools) -> tuple[Floats, Bools]:
    """The probability of each option, nan where there is no closed form; and the factors that have one.

    `single` marks factors that are components of their own. People with a prior have no closed form.
    """
    m, o = state.model, state.model.observed
    share = np.full(len(m.opt_cell), np.nan)
    owner = np.repeat(np.arange(m.factors), np.diff(m.cell_start))
    many = (state.open_options > 1)[m.opt_app]
    fixed = state.alive & ~many
    share[fixed] = 1.0
    if not o.located:
        return share, np.zeros(m.factors, dtype=bool)
    free = state.free_rows
    rows = np.bincount(owner, free, m.factors)
    cells = np.bincount(owner, free > 0, m.factors)
    good = single.copy()
    loose = np.nonzero(state.open_options > 1)[0]
    short = state.open_options[loose] != cells[m.app_factor[loose]]
    good[m.app_factor[loose[short]]] = False
    if m.priors:
        good[m.app_factor[np.isin(o.app_person, list(m.priors))]] = False
    options = state.alive & many & good[m.app_factor[m.opt_app]]
    chosen = m.opt_cell[options]
    share[options] = free[chosen] / rows[owner[chosen]]
    return share, good
