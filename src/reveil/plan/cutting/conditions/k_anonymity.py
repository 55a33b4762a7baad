"""k-anonymity to the planner."""

from __future__ import annotations

from collections.abc import Iterator

from reveil.base.errors import Fault
from reveil.base.words import some
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.plan.cutting.conditions.contract import Condition
from reveil.table.encode import Encoded


def least(asked: KAnonymity) -> int:
    return asked.k


def table_faults(asked: KAnonymity, encoded: Encoded) -> Iterator[Fault]:
    if encoded.rows < asked.k:
        message = f"the table has {some(encoded.rows, 'row')}, fewer than k = {asked.k}"
        yield Fault("R401", "guarantee.k", message, f"lower k to at most {encoded.rows}", encoded.rows)


CONDITION = Condition(least=least, different=least, table_faults=table_faults)
