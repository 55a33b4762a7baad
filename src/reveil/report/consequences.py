"""What follows for people who are not shown, by the reason that the release gives."""

from __future__ import annotations

from collections.abc import Mapping

ANEW = "The next release looks at them anew."
OUT = "They are out of this series for good."
GONE = "They are missing from this release, and from what is counted in it."
FOLLOWS: Mapping[str, str] = {
    # newcomers of a series
    "newcomers are too few for a group so far": "They are looked at again when they are enough for a group.",
    "all newcomers wait: a value is too frequent among them": "They are shown together, once they are many enough.",
    "drawn by lot to wait for good, so that other newcomers can be shown": OUT,
    "all newcomers wait for good: a value is too frequent among many": OUT,
    "left out because of their value, which showing them later would tell": OUT,
    # people who were shown before
    "place was refilled while away": OUT,
    "published L times already": OUT,
    "was away while the cohort was shown": OUT,
    "cohort ended: too many of its people came to share a value": OUT,
    "cohort ended: what it showed last leaves too few values it can take": OUT,
    "cohort ended earlier": OUT,
    "fewer than k people with as many rows are there": "Their places are kept until k of them are there.",
    "fewer than k people of their group are there": "Their places are kept: they are shown when k of them are there.",
    "every group would tie them to too few others": ANEW,
    "too little of the budget left": f"{ANEW} What was told about them stays spent.",
    "their value would be likelier than 1/m": ANEW,
    # one release
    "outlier, to keep others precise": f"{GONE} A higher loss would show them: suppress = 0.",
    "too frequent value": f"{GONE} So counts of their value are too low.",
    "in a class that may not be published": GONE,
    "odds unlike those of any group, or too frequent value": GONE,
    "more rows than are shown of one of them, drawn by lot": "Everybody is shown, some with fewer rows than they have.",
}


def what_follows(reasons: Mapping[str, int]) -> tuple[tuple[str, int, str], ...]:
    """Each reason, its rows, and what it means for these people."""
    return tuple((reason, rows, FOLLOWS.get(reason, "")) for reason, rows in reasons.items())
