"""delta-presence to the planner: how many people of the population there are for the rows of a group."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from reveil.base.errors import Fault
from reveil.base.words import some
from reveil.guarantees.presence import Presence
from reveil.plan.cutting.conditions.contract import Condition, neighbours
from reveil.table.encode import Encoded


def bounds(asked: Presence | None) -> tuple[int, int, int, int]:
    """The least and the largest share of rows among people, as two fractions; zeros where nothing is asked."""
    if asked is None or asked.delta_max is None:
        return (0, 0, 0, 0)
    return (*neighbours(asked.delta_min)[1].as_integer_ratio(), *neighbours(asked.delta_max)[0].as_integer_ratio())


def table_faults(asked: Presence, encoded: Encoded) -> Iterator[Fault]:
    if encoded.population is None or asked.delta_max is None:
        return
    rows, people = encoded.rows, len(encoded.population)
    share = Fraction(rows, max(1, people))
    if not asked.delta_min <= share <= asked.delta_max:
        message = (
            f"{some(rows, 'row')} of {some(people, 'person', 'people')}: a share of {float(share):.4f} is "
            "outside the stated bounds"
        )
        yield Fault("R405", "guarantee.population", message, "choose bounds around this share", rows)


CONDITION = Condition(table_faults=table_faults)
