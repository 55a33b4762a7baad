"""What jobs that plan begin with: the table, and the judges that the policy asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import polars as pl

from reveil.background.loading import Background
from reveil.background.prior import match_priors
from reveil.base.addresses import masked
from reveil.base.arrays import I64
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.lots import generator
from reveil.history.bags import LOTS_OF_ROWS, in_bags
from reveil.history.history import History
from reveil.history.memory import refuse_changes
from reveil.policy.policy import Policy
from reveil.report.judgement import Origin
from reveil.table.encode import Encoded, encode
from reveil.table.identify import collision_faults
from reveil.table.roles import order_faults, read_prepared
from reveil.table.where import Where
from reveil.verify.verify import Bench


class Meant(TypedDict, total=False):
    """What is said about a table beside the table."""

    new_people: bool  # far fewer people than usual are expected to come back
    accept: Sequence[str]  # doubts about the table that are right as they are (`reveil.base.doubts`)
    where: Where | None  # only rows with these values: {"year": 1985}; never of a sensitive column


def usable(
    table: Any,
    policy: Policy,
    past: History,
    series: bool,
    seed: int | None,
    accept: Sequence[str] = (),
    where: Where | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, Bench]:
    """The table as read and prepared, and its judges; or every fault of policy and table together, before any work."""
    faults, bench = seed_faults(seed), None
    try:
        bench = Bench.seat(policy)
    except InputError as error:
        faults += error.faults
    try:
        raw, frame = read_prepared(table, policy, series=series, types=past.types, accept=accept, where=where)
    except InputError as error:
        raise InputError([*faults, *error.faults]) from None
    spelled = collision_faults(frame[policy.followed]) if policy.followed and policy.normalises else []
    stop_if(faults + order_faults(frame, policy) + spelled)
    assert bench is not None  # or there was a fault
    return raw, frame, bench


def encoded_of(
    frame: pl.DataFrame, persons: I64 | None, past: History, policy: Policy, known: Background, secret: int
) -> Encoded:
    """The table as integers, with the numbers of its people in a series; refused where it contradicts the past."""
    bagged = bool(policy.bundled) and persons is not None
    encoded = encode(frame, policy, {} if bagged else past.codebook, known)
    if bagged and persons is not None:
        encoded = in_bags(encoded, persons, past, policy, generator(secret, LOTS_OF_ROWS))
    elif persons is not None:
        encoded = replace(encoded, persons=persons)
        refuse_changes(encoded, past, policy)
    return replace(encoded, signatures=match_priors(frame, policy)) if policy.guarantee.priors else encoded


def origin_of(table: Any) -> Origin:
    """Where a table came from, for whoever keeps it.

    >>> origin_of(pl.DataFrame({"a": [1]}))
    Origin(name='a table in memory', digest='')
    """
    if not isinstance(table, str | Path):
        return Origin("a table in memory")
    path = Path(table)
    if not path.is_file():
        return Origin(masked(str(table)) if isinstance(table, str) and "://" in table else path.name)
    with path.open("rb") as file:
        return Origin(path.name, hashlib.file_digest(file, "sha256").hexdigest())


def seed_faults(seed: int | None) -> list[Fault]:
    message, remedy = f"{seed} is negative", "use 0 or a larger number, or none"
    return [Fault("R222", "seed", message, remedy)] if seed is not None and seed < 0 else []
