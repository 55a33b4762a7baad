"""A first policy for a table in which people have several rows, and no period tells them apart: visits, purchases."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from reveil.base.words import some
from reveil.guarantees import k_anonymity, l_diversity
from reveil.start.looks import Facts

K, L = 5, 2
PEOPLE = """
[people]
rows = "many"              # all rows of a person are published together, and promises are about people
# most = 4                 # of which at most so many are shown: fewer make groups finer
"""
ALONE = """[guarantee]
# People have several rows, so this is for one release (`reveil explain "several rows"`).
{note}model = "{model}"
{fewest}k = {k}                      # nobody is in a group of fewer than this many people
"""
NOTHING = "# No sensitive column was found, so only being singled out is protected against.\n"
FREQUENT = "# More than half of the people have the same value of '{}' in some row, so that values cannot be mixed.\n"
FEWEST = "l = {l}                      # no group has a value that everybody in it has in some row\n"
METHOD = """
[method]
infeasible = "refuse"      # or "withhold": leave out the rows that stand in the way, and count them
"""


def promise_to_people(frame: pl.DataFrame, key: str, sensitive: Sequence[str]) -> str:
    """The sections [guarantee], [method] and [people].

    >>> visits = pl.DataFrame({"id": [1, 1, 2, 2, 3], "ill": ["a", "b", "b", "b", "b"]})
    >>> print(promise_to_people(visits, "id", ["ill"]).splitlines()[2])
    # More than half of the people have the same value of 'ill' in some row, so that values cannot be mixed.
    """
    people = frame.drop_nulls(key)
    number = people[key].n_unique()
    common = one_sided(people, key, sensitive)
    mixed = bool(sensitive) and not common
    note = NOTHING if not sensitive else FREQUENT.format(common[0]) if common else ""
    model = (l_diversity if mixed else k_anonymity).DESCRIPTOR.name
    terms = {"note": note, "model": model, "fewest": FEWEST.format(l=L) if mixed else "", "k": max(2, min(K, number))}
    return ALONE.format(**terms) + METHOD + PEOPLE


def one_sided(people: pl.DataFrame, key: str, names: Sequence[str]) -> list[str]:
    """Columns of which more than half of the people have the same value in some row.

    >>> people = pl.DataFrame({"id": [1, 1, 2, 3], "a": ["x", "y", "x", "z"], "b": ["x", "y", "z", "u"]})
    >>> one_sided(people, "id", ["a", "b"])
    ['a']
    """
    number = people[key].n_unique()
    return [name for name in names if 2 * _linked(people, key, name) > number]


def hindrance(key: str, facts: Facts) -> str:
    """Why nothing can be published yet of people who have this key, with the way out; else nothing.

    >>> hindrance("id", Facts(rows=9, distinct=3, missing=2))
    "First fill in 'id', or remove the 2 rows without it: they are refused (R213)."
    """
    if facts.missing:
        return f"First fill in {key!r}, or remove the {some(facts.missing, 'row')} without it: they are refused (R213)."
    if facts.distinct == 1:
        return (
            f"By {key!r} all rows are about one person, whom nobody hides: nothing can be published. If it is no key "
            "of a person, make its role drop."
        )
    return ""


def _linked(people: pl.DataFrame, key: str, name: str) -> int:
    """How many people have the value of most people in some row of theirs."""
    counts = people.select(key, name).unique()[name].value_counts(name="people")
    return int(counts["people"].max() or 0)  # type: ignore[arg-type]
