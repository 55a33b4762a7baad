"""People who were away come back to a cohort of changing values, in two tables: a counterfeit stands in for them.

Their place has gone on as a counterfeit, with the public chances, and it stays one for good: what they have themselves
need not follow from what their place has shown. So they are counted among the people of their group, and none of its
values is theirs. All places still follow one law, and everybody has each of them with the same chance. What they have
now follows from what the cohort showed when they were last there, and from the public chances: whether that is within
the promise is known from public rows, and whoever it is too much for is withheld.
"""

from __future__ import annotations

import numpy as np

from reveil.background.transitions import Relation
from reveil.base.arrays import F64, I32, I64, Bools
from reveil.guarantees.lasting import CohortTerms, Evolving
from reveil.plan.persistent.closed_cohorts import Standing
from reveil.plan.persistent.guesses import allowed_guess, lowest_guess
from reveil.plan.persistent.past import CohortPast
from reveil.policy.policy import Policy

MARGIN = 1 + 1e-6  # stricter than the verifier, which rounds differently


def stood_in(
    past: CohortPast, standing: Standing, persons: I64, rows: I64, release: int, relation: Relation, policy: Policy
) -> I32 | None:
    """The group of each row's person who comes back and is shown, -1 for all others; None where nobody ever is.

    `rows` are those of people who were away while their cohort was shown, `release` is the one that is planned.
    """
    if not policy.method.two_tables or not policy.guarantee.require(Evolving).stands_in:
        return None
    groups, place = np.full(len(persons), -1, dtype=np.int32), np.full(max(1, past.cohorts), -1, dtype=np.int32)
    place[standing.here] = np.arange(len(standing.here), dtype=np.int32)
    rows = rows[place[past.cohort[persons[rows]]] >= 0]
    last = past.latest[persons[rows]].astype(np.int64)
    steps = release - past.seen[persons[rows]].astype(np.int64)
    left, index = np.unique(np.column_stack([last, steps]), axis=0, return_inverse=True)
    fits = _within(past, left, relation, policy)[index.ravel()]
    groups[rows[fits]] = place[past.cohort[persons[rows[fits]]]]
    return groups


def _within(past: CohortPast, left: I64, relation: Relation, policy: Policy) -> Bools:
    """Of each group that somebody was last in, and so many releases: whether nobody's value is guessed too well now."""
    terms, fits = policy.guarantee.require(CohortTerms), np.zeros(len(left), dtype=bool)
    tau, chance = float(allowed_guess(terms)), np.asarray(relation.weights / relation.totals[:, None])
    protected = np.array([policy.guarantee.headline.protects(value) for value in relation.values], dtype=bool)
    powers: dict[int, F64] = {}
    for number, (group, steps) in enumerate(left.tolist()):
        if steps not in powers:
            powers[steps] = np.linalg.matrix_power(chance, steps)
        rows = past.codes[past.first[group] : past.first[group + 1]]
        expected = powers[steps][rows].sum(axis=0)
        likeliest = float(expected[protected].max(initial=0.0)) * float(lowest_guess(terms, len(rows)))
        fits[number] = likeliest * MARGIN <= tau
    return fits
