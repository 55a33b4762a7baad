"""The terms of a promise: how many people may be known, and whom it does not speak of because more of them are.

What is known of somebody concerns those who are linked with them through groups, since worlds are independent of each
other otherwise: in the same release where values change freely, over all releases elsewhere. A *cohort* is a component
of such links that no release shows as two groups; people who joined it later, and those who left, are of it. A promise
that allows for c known people speaks of cohorts. Where people are regrouped there is none, so only more than c known
people in one group put its people beyond the promise: who is not surely beyond it counts as within. A promise that
allows for nobody is left as soon as somebody is known whom it concerns.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from reveil.audit.input.observed import Observed
from reveil.audit.model.model import Model
from reveil.base.arrays import I64, Bools
from reveil.policy.policy import Policy


def allowed(policy: Policy) -> int:
    """How many people of a cohort may be known for the promise to hold."""
    return policy.guarantee.headline.allowed


def linked(o: Observed) -> tuple[int, I64]:
    """How many components there are of groups that share people, and that of each; everybody's group is known."""
    groups = len(o.group_release)
    first = o.cand_group[o.person_start[o.app_person]]
    links = coo_array((np.ones(len(first)), (first, o.cand_group)), shape=(groups, groups))
    count, label = connected_components(links, directed=False)
    return int(count), label.astype(np.int64)


def beyond(m: Model, most: int) -> Bools:
    """Appearances of which the promise does not speak, because more than `most` people are known whom it concerns."""
    o = m.observed
    placed = o.app_sure & (np.diff(o.cand_start) == 1)
    group = o.cand_group[o.cand_start[:-1]]
    told = np.zeros(len(group), dtype=bool)
    told[list(m.pinned)] = True
    over = np.bincount(group[told & placed], minlength=len(o.group_release)) > most
    if o.located and m.change != "freely":
        over |= _linked_beyond(m, most)
    over_limit: Bools = placed & over[group]
    return over_limit


def _linked_beyond(m: Model, most: int) -> Bools:
    """Groups of components that are beyond the promise as a whole."""
    o = m.observed
    count, label = linked(o)
    known = np.array(sorted(m.known), dtype=np.int64)
    over = np.bincount(label[o.cand_group[o.person_start[known]]], minlength=count) > most
    if most:
        shown = label * len(o.releases) + o.group_release
        _, place, times = np.unique(shown, return_inverse=True, return_counts=True)
        over[label[times[place] > 1]] = False
    over_limit: Bools = over[label]
    return over_limit
