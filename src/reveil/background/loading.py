"""What a policy states beside the table: hierarchies of columns, and a population. Read once per job.

Planner, verifier, measures and audit take them from here; `tests/oracle/taxonomy.py` reads the same files by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.hierarchies import scales
from reveil.hierarchies.files import nested_paths, read_paths
from reveil.hierarchies.tree import Hierarchy, grow
from reveil.policy.policy import Policy
from reveil.table.roles import population


@dataclass(frozen=True)
class Background:
    """Hierarchies by column, each with a place for the missing value, and the population, where the policy has one."""

    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    population: pl.DataFrame | None = None


def load_background(policy: Policy) -> Background:
    """Everything that the policy states; or all faults of all files at once."""
    faults: list[Fault] = []
    hierarchies: dict[str, Hierarchy] = {}
    people: pl.DataFrame | None = None
    try:
        hierarchies = load_hierarchies(policy)
    except InputError as error:
        faults += error.faults
    try:
        people = population(policy)
        hierarchies |= {} if people is None else text_hierarchies(policy, people)
    except InputError as error:
        faults += error.faults
    stop_if(faults)
    return Background(hierarchies, people)


def load_hierarchies(policy: Policy, names: Iterable[str] | None = None) -> dict[str, Hierarchy]:
    """The stated hierarchies and orders of these columns, or of all.

    >>> from reveil.policy.policy import load_policy
    >>> land = {"role": "quasi", "hierarchy": {"Europe": ["DE", "FR"], "Asia": ["JP"]}}
    >>> load_hierarchies(load_policy({"columns": {"land": land, "age": "quasi"}, "guarantee": {"k": 2}}))
    {'land': Hierarchy('land', 4 leaves, 6 nodes)}
    """
    faults: list[Fault] = []
    hierarchies: dict[str, Hierarchy] = {}
    for name in policy.columns if names is None else names:
        spec = policy.columns[name]
        try:
            if spec.hierarchy is not None:
                hierarchies[name] = stated_hierarchy(name, spec.hierarchy, policy.folder)
            elif spec.order is not None:
                hierarchies[name] = scales.ordered(name, spec.order, True)[0]
        except InputError as error:
            faults += error.faults
    stop_if(faults)
    return hierarchies


def stated_hierarchy(name: str, source: str | Mapping[str, Any], folder: Path) -> Hierarchy:
    """A taxonomy from a file beside the policy, or from the policy itself."""
    return grow(name, dict(stated_paths(name, source, folder).items()), missing=True)


def stated_paths(name: str, source: str | Mapping[str, Any], folder: Path) -> dict[str, tuple[str, ...]]:
    """The labels of each value, from just below the top down to the value, in the order in which values are stated."""
    if isinstance(source, str):
        return read_paths(name, folder / source)
    return nested_paths(source, f"hierarchy of column {name!r}")


def text_hierarchies(policy: Policy, people: pl.DataFrame) -> dict[str, Hierarchy]:
    """Texts of people that follow no stated hierarchy, so that a value such as ** is not taken for notation."""
    hierarchies = {}
    for name, spec in policy.columns.items():
        if name in people.columns and people[name].dtype == pl.String and not (spec.hierarchy or spec.order):
            values = people[name].unique().drop_nulls().sort().to_list()
            if spec.prefixes is not None:
                hierarchies[name] = scales.prefixes(name, values, spec.prefixes, True)[0]
            else:
                hierarchies[name] = scales.flat(name, values, True)[0]
    return hierarchies
