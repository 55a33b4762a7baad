"""l-diversity to the planner."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log

import numpy as np

from reveil.base.arrays import I64
from reveil.base.errors import Fault
from reveil.base.words import some
from reveil.guarantees.l_diversity import LDiversity
from reveil.plan.cutting.conditions.contract import Condition, Spread, Test, each_code, neighbours
from reveil.plan.cutting.values import DISTINCT, ENTROPY, RECURSIVE
from reveil.table.encode import Sensitive

KINDS = {"distinct": DISTINCT, "entropy": ENTROPY, "recursive": RECURSIVE}


def least(asked: LDiversity) -> int:
    return 1 if asked.diversity == "entropy" else ceil(asked.l)


def different(asked: LDiversity) -> int:
    if asked.diversity == "recursive" and asked.c is not None:
        return int(asked.l) + int(1 / asked.c)  # one row per value: 1 < c * (s - l + 1)
    return ceil(asked.l)


def tests(asked: LDiversity, column: Sensitive, total: I64) -> Iterator[Test]:
    threshold = asked.c if asked.diversity == "recursive" and asked.c is not None else asked.l
    # Strictly below c is below the next fraction; a group that reaches the next fraction after l reaches l.
    yield Test(KINDS[asked.diversity], neighbours(threshold)[1], ceil(asked.l), each_code(total), total)


def column_faults(asked: LDiversity, seen: Spread) -> Iterator[Fault]:
    if seen.distinct < asked.l:
        message = f"has {some(seen.distinct, 'different value')}, fewer than l = {asked.l}"
        yield Fault("R402", seen.where, message, f"lower l to {seen.distinct}", seen.rows)
    elif asked.diversity == "entropy":
        shares = seen.counts[seen.counts > 0] / seen.rows
        entropy = float(-(shares * np.log(shares)).sum())
        if entropy < log(asked.l):
            message = f"{seen.common}; its entropy allows l up to {np.exp(entropy):.3f}, not {asked.l}"
            yield Fault("R403", seen.where, message, seen.way, seen.top)
    elif asked.diversity == "recursive" and asked.c is not None:
        tail = int(np.sort(seen.counts)[::-1][ceil(asked.l) - 1 :].sum())
        if seen.top >= asked.c * tail:
            message = f"{seen.common}, not less than c = {asked.c} times the {some(tail, 'row')} of rare values"
            yield Fault("R403", seen.where, message, seen.way, seen.top)


CONDITION = Condition(least=least, different=different, tests=tests, column_faults=column_faults)
