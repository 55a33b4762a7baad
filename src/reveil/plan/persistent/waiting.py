"""People who had to wait for a group because of their value: showing them later would tell it.

Where all newcomers of a release waited because they were too few, that follows from their number and tells nothing.
Otherwise some were taken and others not, by value, and whoever knows who was in the table knows that those who waited
have a value that was too frequent. The verifier looks for itself (`reveil.verify.waiting`).
"""

from __future__ import annotations

import numpy as np

from reveil.base.arrays import I64, Bools
from reveil.guarantees.lasting import ManyValues
from reveil.history.history import History
from reveil.plan.crowds import least_people
from reveil.policy.guarantee import Guarantee

TOLD = "waited because of their value, which showing them would tell"


def told_by_waiting(history: History, persons: I64, guarantee: Guarantee) -> Bools:
    """Which of these rows are of people who were never published and once waited because of their value."""
    people = max(history.persons.height, int(persons.max(initial=-1)) + 1)
    told, published = np.zeros(people, dtype=bool), np.zeros(people, dtype=bool)
    least = max(guarantee.require(ManyValues).m, least_people(guarantee))
    if history.members.is_empty() or not (history.members["group"] < 0).any():
        return told[persons]
    members = history.members.sort("release")
    ends = np.flatnonzero(np.diff(members["release"].to_numpy())) + 1
    persons_by_release = np.split(members["person"].to_numpy(), ends)
    groups_by_release = np.split(members["group"].to_numpy(), ends)
    for person, group in zip(persons_by_release, groups_by_release, strict=True):
        new = ~(published | told)[person]
        shown = group >= 0
        if (new & shown).any() or int(new.sum()) >= least:
            told[person[new & ~shown]] = True
        published[person[shown]] = True
    return told[persons]
