"""Which sensitive value may become which, and how likely: a public relation.

It comes from a file (from;to[;probability]), from the policy itself, from a level of the sensitive column's hierarchy
(a value stays within its chapter), or from a diameter (blocks of d neighbours). A value may always stay. What a value
may become is its *candidate update set* (CUS).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.background.loading import stated_paths
from reveil.base.errors import Fault, InputError, brief, stop_if
from reveil.base.sections import exact
from reveil.base.text import plain_text
from reveil.guarantees.catalog import descriptors
from reveil.guarantees.descriptor import TRANSITIONS
from reveil.policy.policy import Policy
from reveil.table.cells import texts
from reveil.table.read import read_table

Weights = Mapping[str, Mapping[str, Fraction]]  # value -> what it may become -> probability
MOST_VALUES = 5_000
LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class Relation:
    """What each sensitive value may become, by code: value a becomes b with chance weights[a, b] / totals[a].

    >>> table = {"flu": {"flu": Fraction(1, 2), "pneumonia": Fraction(1, 2)}}
    >>> relation = relation_between(["flu", "pneumonia", "asthma"], table)
    >>> relation.allowed.tolist()
    [[True, True, False], [False, True, False], [False, False, True]]
    >>> relation.probability(0, 1), relation.uniform
    (Fraction(1, 2), True)
    """

    values: tuple[Any, ...]  # by code
    weights: NDArray[np.int64]  # values x values

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Row a is the candidate update set of a."""
        return np.asarray(self.weights > 0)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """The denominator of each row's chances."""
        return np.asarray(self.weights.sum(axis=1))

    @cached_property
    def uniform(self) -> bool:
        """Whether every value becomes each value of its candidate update set with equal chance."""
        highest = self.weights.max(axis=1, keepdims=True, initial=0)
        return bool((self.allowed <= (self.weights == highest)).all())

    def probability(self, a: int, b: int) -> Fraction:
        return Fraction(int(self.weights[a, b]), int(self.totals[a]))


def relation_of(policy: Policy, values: Sequence[Any]) -> Relation:
    """The relation of a policy over the values of a sensitive column, by code. Values it does not name only stay.

    >>> from reveil.policy.policy import load_policy
    >>> columns = {"id": "identifier", "age": "quasi", "job": {"role": "sensitive", "order": ["a", "b", "c", "d"]}}
    >>> change = {"change": "transitions", "transitions": {"diameter": 2}}
    >>> promise = {"model": "m-distinct", "m": 2, "compromised": 0}
    >>> policy = load_policy({"columns": columns, "values": change, "guarantee": promise})
    >>> relation_of(policy, "dcba").weights.tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """
    return relation_between(values, weights_of(policy))


def relation_between(values: Sequence[Any], table: Weights) -> Relation:
    """The relation over these values; what the table allows of other values is left out."""
    code = {plain_text(value): number for number, value in enumerate(values)}
    if len(code) > MOST_VALUES:
        message = f"relate {len(code):,} values, and {MOST_VALUES:,} are the most"
        raise InputError(Fault("R315", "transitions", message, "group rare values together"))
    weights = np.eye(len(values), dtype=np.int64)
    for a, number in code.items():
        row = {code[b]: chance for b, chance in table.get(a, {}).items() if chance and b in code}
        if not row:
            continue
        scale = lcm(*(chance.denominator for chance in row.values()))
        if scale * sum(row.values()) > LARGEST:
            message = f"chances of {brief(a)} have no common denominator of 62 bits"
            raise InputError(Fault("R315", "transitions", message, "write them with fewer digits"))
        weights[number] = 0
        for b, chance in row.items():
            weights[number, b] = int(chance * scale)
    return Relation(tuple(values), weights)


def weights_of(policy: Policy) -> Weights:
    """The chance of every change that the policy's [values] section allows, as it says or as its rule yields."""
    source = policy.values.transitions
    assert source is not None
    if isinstance(source, Mapping) and isinstance(rule := next(iter(source.values()), None), int):
        table = _by_rule(policy, next(iter(source)), rule)
    else:
        table = stated_weights(source, policy.folder)
    if policy.values.closure == "transitive":
        return _closed(table)
    if policy.guarantee.descriptor.family is TRANSITIONS:
        _refuse_unfit(table, policy)
    return table


def domain(policy: Policy) -> list[str]:
    """Every value that the relation names, whether or not a table has it already."""
    table = weights_of(policy)
    return list(dict.fromkeys([*table, *(b for others in table.values() for b in others)]))


def stated_weights(source: str | Mapping[str, Any], folder: Path) -> Weights:
    """The chance of each change as stated. Without probabilities, each value that may follow is equally likely.

    A value may always stay; where probabilities are given, it stays with what is left to 1. Those of a value that sum
    to more than 1 are divided by their sum, so that a table may state weights. A file's column is called probability:
    there one above 1 is refused. So is a change with two of them.

    >>> stated_weights({"flu": ["pneumonia"]}, Path())["flu"]["pneumonia"]
    Fraction(1, 2)
    """
    if isinstance(source, Mapping):
        rows: list[tuple[Any, Any, Any]] = []
        for value, others in source.items():
            weights = others if isinstance(others, Mapping) else dict.fromkeys(others)
            rows += [(str(value), b, w) for b, w in weights.items()]
        return _normal(rows, "transitions", source)
    where = f"transitions {source}"
    frame = read_table(str(folder / source))
    missing = [name for name in ("from", "to") if name not in frame.columns]
    if missing:
        message = f"has no column {missing[0]!r}; its columns are {', '.join(frame.columns)}"
        raise InputError(Fault("R312", where, message, "write a first line from;to;probability"))
    chances: Sequence[Any] = [None] * frame.height
    if "probability" in frame.columns:
        chances = texts(frame["probability"]).str.replace(",", ".", literal=True).to_list()
    return _normal(list(zip(frame["from"], frame["to"], chances, strict=True)), where)


def _gathered(
    rows: Iterable[tuple[Any, Any, Any]], where: str, named: Iterable[Any] | None
) -> tuple[dict[str, dict[str, Fraction | None]], list[Fault]]:
    """What is said of each value, and what cannot be meant."""
    given: dict[str, dict[str, Fraction | None]] = {str(value): {} for value in named or ()}
    weights, faults = named is not None, list[Fault]()
    for a, b, weight in rows:
        before, after = plain_text(a), plain_text(b)
        change = f"{brief(before)} -> {brief(after)}"
        others = given.setdefault(before, {})
        given.setdefault(after, {})
        try:
            chance = None if weight is None else exact(weight)
        except ValueError as error:
            faults.append(Fault("R312", where, f"probability of {change}: {error}", "write numbers such as 0.2"))
            continue
        if chance is not None and chance > 1 and not weights:
            message = f"give {change} the probability {weight}, which is more than 1"
            faults.append(Fault("R312", where, message, "write numbers from 0 to 1, such as 0.2"))
        if after in others and not (chance is None and others[after] is None):
            faults.append(Fault("R312", where, f"state {change} twice, with a probability", "keep one of them"))
        others[after] = chance
    return given, faults


def _normal(rows: Iterable[tuple[Any, Any, Any]], where: str, named: Iterable[Any] | None = None) -> Weights:
    """The chances of each value's changes. `named` are the values of a table in the policy, None for a file."""
    given, faults = _gathered(rows, where, named)
    stop_if(faults)
    table = dict[str, dict[str, Fraction]]()
    for value, others in given.items():
        stated = {b: w for b, w in others.items() if w is not None}
        if not stated:
            successors = sorted({*others, value})
            table[value] = {b: Fraction(1, len(successors)) for b in successors}
            continue
        if len(stated) < len(others) or any(w < 0 for w in stated.values()):
            message = f"some changes of {brief(value)} have a probability and others do not, or it is negative"
            faults.append(Fault("R312", where, message, "give every change of a value its probability, or none"))
            continue
        rest = Fraction(1) - sum(w for b, w in stated.items() if b != value)
        stay = {value: rest} if value not in stated and rest > 0 else {}
        kept = {b: w for b, w in stated.items() if w} | stay
        total = sum(kept.values())
        table[value] = {b: w / total for b, w in kept.items()}
    if faults:
        raise InputError(faults)
    return table


def _by_rule(policy: Policy, rule: str, number: int) -> Weights:
    """Blocks of values that may become each other: those under one label of the hierarchy, or d neighbours.

    Where d does not divide the number of values, blocks have at most d and are as even as possible.
    """
    name = policy.named("sensitive")[0]
    spec = policy.columns[name]
    paths: dict[str, tuple[str, ...]] = {value: (value,) for value in spec.order or ()}
    if spec.hierarchy is not None:
        paths = stated_paths(name, spec.hierarchy, policy.folder)
    if rule == "diameter":
        count = -(-len(paths) // number)
        blocks = [[str(value) for value in block] for block in np.array_split(list(paths), count)] if count else []
    else:
        labels: dict[str, list[str]] = {}
        for value, path in paths.items():
            labels.setdefault(path[max(0, len(path) - 1 - number)], []).append(value)
        blocks = list(labels.values())
    return {a: dict.fromkeys(block, Fraction(1, len(block))) for block in blocks for a in block}


def _closed(table: Weights) -> Weights:
    """The transitive closure: whatever can be reached by several changes can be reached by one."""
    values = list(dict.fromkeys([*table, *(b for others in table.values() for b in others)]))
    if any(len(set(others.values())) > 1 for others in table.values()):
        message = "with probabilities have no transitive closure: the chance of a chain depends on its length"
        remedy = "leave the probabilities out, or state the closed relation with its own"
        raise InputError(Fault("R314", "transitions", message, remedy))
    closed = relation_between(values, table).allowed.copy()
    for through in range(len(values)):
        closed |= closed[:, through, None] & closed[None, through]
    return {
        values[a]: {values[int(b)]: Fraction(1, int(row.sum())) for b in np.flatnonzero(row)}
        for a, row in enumerate(closed)
    }


def _refuse_unfit(table: Weights, policy: Policy) -> None:
    """Evolving guarantees: a value may stay, and what it becomes may become nothing that it could not."""
    faults = [
        Fault("R313", "transitions", f"never let {brief(a)} stay", "give the chance that it stays")
        for a, others in table.items()
        if not others.get(a)
    ]
    taken_as_stated = policy.values.closure == "one-step"
    broken = None if taken_as_stated else intransitive(table)
    if broken is not None:
        a, b, c = map(brief, broken)
        message = f"allow {a} -> {b} and {b} -> {c}, but not {a} -> {c}; whoever is away for a while may make both"
        remedy = 'set values.closure = "transitive" to allow all such chains, or '
        if policy.guarantee.descriptor.one_step:
            remedy += '"one-step" to assume one change at most from one appearance to the next'
        else:
            able = " or ".join(f'"{one.name}"' for one in descriptors().values() if one.one_step)
            remedy += f"state them; model = {able} can do without"
        faults.append(Fault("R314", "transitions", message, remedy))
    if faults:
        raise InputError(faults)


def intransitive(table: Weights) -> tuple[str, str, str] | None:
    """Values a, b, c with b in CUS(a) and c in CUS(b) but not in CUS(a); None where there are none.

    >>> intransitive({"a": {"a": Fraction(1, 2), "b": Fraction(1, 2)}, "b": {"c": Fraction(1)}})
    ('a', 'b', 'c')
    """
    for a, others in table.items():
        for b in others:
            for c in table.get(b, {}).keys() - others.keys() - {a}:
                return a, b, c
    return None
