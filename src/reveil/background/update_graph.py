"""The sensitive attribute update graph (SUG) of Li and Zhou: what following one person through a series tells.

Nodes are the values that a person's group shows at each appearance, edges the updates that the relation allows. Nodes
without a way through the whole graph are pruned (feasible sub-SUG). A node's chance is the weight of the ways through
it: the product of node weights (rows with that value) and update probabilities. Forward and backward sums take time
linear in the edges. `walk_all` does everybody at once, in whole numbers as far as 63 bits reach; `update_graph` one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.background.graph_walks import Nodes, Shares, Updates, walk
from reveil.background.transitions import Relation, relation_between, stated_weights
from reveil.base.arrays import I64, offsets_of
from reveil.base.errors import Fault, brief, stop_if
from reveil.base.text import plain_text

Chances = tuple[dict[Any, Fraction], ...]
FINEST = 2**20  # of an update's weight


@dataclass(frozen=True, eq=False)
class Chains:
    """The groups that people were in, one after the other. Entries are sorted by person, then by release."""

    first: I64  # where each person's entries start; one more than people
    group: I64  # of each entry
    start: I64  # where the values of each group start; one more than groups
    value: I64
    rows: I64  # how many rows of the group show the value

    def candidates(self, entry: int) -> dict[int, int]:
        """The values that the group of an entry shows, and how many rows each."""
        inside = slice(*self.start[self.group[entry] : self.group[entry] + 2])
        return dict(zip(self.value[inside].tolist(), self.rows[inside].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Risks:
    """What the graphs of all people tell, by entry."""

    chains: Chains
    relation: Relation
    possible: I64  # how many values remain
    highest: NDArray[np.float64]  # chance of the likeliest value
    numerator: I64  # the same exactly; denominator 0 where 63 bits do not suffice
    denominator: I64
    chance: NDArray[np.float64]  # of each node: values of the entry's group in order, entries in order
    node: I64  # where the nodes of each entry start

    @property
    def vulnerable(self) -> NDArray[np.bool_]:
        """Entries for which a single value remains (Lemma 2: risk 1)."""
        return np.asarray(self.possible == 1)

    def above(self, bound: Fraction) -> NDArray[np.bool_]:
        """Entries whose likeliest value is likelier than the bound, decided exactly."""
        above = self.highest > float(bound)
        near = np.abs(self.highest - float(bound)) < 1e-6
        whole = np.flatnonzero(near & (self.denominator > 0))
        pairs, which = np.unique(
            np.column_stack([self.numerator, self.denominator])[whole], axis=0, return_inverse=True
        )
        above[whole] = np.array([Fraction(n, d) > bound for n, d in pairs.tolist()], dtype=bool)[which.ravel()]
        for entry, chance in self._settle(near & (self.denominator == 0)):
            above[entry] = chance > bound
        return np.asarray(above)

    def worst(self) -> Fraction:
        """The highest chance of all, exactly: the re-publication risk of the series, whatever the true values are."""
        if not len(self.highest):
            return Fraction(0)
        near = self.highest > self.highest.max() - 1e-9
        exact = near & (self.denominator > 0)
        pairs = np.unique(np.column_stack([self.numerator, self.denominator])[exact], axis=0)
        chances = {Fraction(n, d) for n, d in pairs.tolist()}
        return max(chances | {chance for _, chance in self._settle(near & ~exact)})

    def _settle(self, entries: NDArray[np.bool_]) -> list[tuple[int, Fraction]]:
        """The chance of the likeliest value of some entries, in rationals; equal graphs are walked once."""
        known: dict[tuple[Any, ...], Chances] = {}
        settled = []
        first = self.chains.first
        for entry in np.flatnonzero(entries).tolist():
            person = int(np.searchsorted(first, entry, side="right")) - 1
            own = [self.chains.candidates(e) for e in range(first[person], first[person + 1])]
            key = tuple(tuple(sorted(c.items())) for c in own)
            if key not in known:
                known[key] = exact_chances(own, self.relation)
            settled.append((entry, max(known[key][entry - int(first[person])].values())))
        return settled


def walk_all(chains: Chains, relation: Relation) -> Risks:
    """The chances of every value of every person at each of their appearances."""
    sizes = np.diff(chains.start)[chains.group]
    node = offsets_of(sizes)
    nodes = Nodes(chains.first, chains.group, chains.start, chains.value, chains.rows, node[:-1])
    possible, numerator, denominator = np.zeros((3, len(chains.group)), dtype=np.int64)
    shares = Shares(possible, np.zeros(len(chains.group)), numerator, denominator, np.zeros(int(node[-1])))
    updates = Updates(relation.weights, relation.totals, _scale(relation))
    walk(nodes, updates, int(sizes.max(initial=1)), shares)
    return Risks(chains, relation, *shares, node[:-1])


def _scale(relation: Relation) -> I64:
    """What brings the weights of each value to one denominator; zeros where that would be too large."""
    common = lcm(*np.unique(relation.totals).tolist()) if len(relation.totals) else 1
    if common > FINEST:
        return np.zeros(len(relation.totals), dtype=np.int64)
    return np.asarray(common // relation.totals)


def exact_chances(candidates: Sequence[Mapping[int, int]], relation: Relation) -> Chances:
    """The chance of each value at each appearance of one person, in rationals. Impossible values have chance 0."""
    forward: list[dict[int, Fraction]] = []
    for number, rows in enumerate(candidates):
        forward.append(
            {
                v: count * sum((f * relation.probability(u, v) for u, f in forward[-1].items()), Fraction(0))
                if number
                else Fraction(count)
                for v, count in rows.items()
            }
        )
    back = dict.fromkeys(candidates[-1], Fraction(1))
    layers: list[dict[int, Fraction]] = []
    for number in range(len(candidates) - 1, -1, -1):
        joint = {v: f * back[v] for v, f in forward[number].items()}
        total = sum(joint.values())
        layers.append({v: weight / total if total else Fraction(0) for v, weight in joint.items()})
        if number:
            ahead = {v: count * back[v] for v, count in candidates[number].items()}
            back = {
                u: sum((relation.probability(u, v) * b for v, b in ahead.items()), Fraction(0))
                for u in candidates[number - 1]
            }
    return tuple(reversed(layers))


@dataclass(frozen=True)
class UpdateGraph:
    """One person's graph: what their groups showed, and how likely each value was theirs after all releases."""

    chances: Chances  # by appearance: value -> chance; 0 for values that are pruned
    updates: tuple[tuple[int, Any, Any], ...]  # feasible edges: appearance, value, value at the next appearance
    pruned: tuple[tuple[int, Any, Any], ...]  # edges that are allowed but on no way through the graph

    def possible(self, appearance: int) -> list[Any]:
        """The values that remain at an appearance, counted from 0."""
        return [value for value, chance in self.chances[appearance].items() if chance]

    def risk(self, values: Sequence[Any]) -> tuple[Fraction, ...]:
        """The disclosure risk at each appearance: the chance of the person's true value."""
        return tuple(chances[value] for chances, value in zip(self.chances, values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The graph as plain JSON values; the report draws it from this."""
        return {
            "appearances": [{plain_text(v): float(c) for v, c in chances.items()} for chances in self.chances],
            "updates": [[n, plain_text(a), plain_text(b)] for n, a, b in self.updates],
            "pruned": [[n, plain_text(a), plain_text(b)] for n, a, b in self.pruned],
        }

    def svg(self) -> str:
        """A picture of the graph: one column per appearance, pruned values and updates in grey."""
        from reveil.report.graph import picture

        return str(picture(self.to_dict()))

    def _repr_html_(self) -> str:
        return self.svg()


def update_graph(
    candidates: Sequence[Sequence[Any] | Mapping[Any, int]],
    transitions: str | Mapping[str, Any],
    *,
    folder: str | Path = ".",
) -> UpdateGraph:
    """What following one person through a series tells, from what their groups showed.

    `candidates` has, for each appearance, the values of the person's group (one for each row, or a count per value).
    `transitions` is a file or table as in a policy's [values].

    >>> may_become = {"Pneumonia": ["Lung cancer"], "Dyspepsia": ["Gastritis"]}
    >>> julia = update_graph([["Dyspepsia", "Pneumonia"], ["Lung cancer", "Pneumonia"]], may_become)
    >>> julia.risk(["Pneumonia", "Lung cancer"])
    (Fraction(1, 1), Fraction(1, 2))
    """
    counted = [_counted(shown) for shown in candidates]
    stop_if(_unusable(counted))
    values = list(dict.fromkeys(value for shown in counted for value in shown))
    table = stated_weights(transitions, Path(folder))
    others = [text for text in table if text not in {plain_text(value) for value in values}]
    relation = relation_between([*values, *others], table)
    return graph_between([{values.index(v): n for v, n in shown.items()} for shown in counted], relation)


def _counted(shown: Sequence[Any] | Mapping[Any, int]) -> dict[Any, int]:
    if isinstance(shown, Mapping):
        return dict(shown)
    return {value: shown.count(value) for value in dict.fromkeys(shown)}


def _unusable(counted: Sequence[Mapping[Any, Any]]) -> list[Fault]:
    """Without an appearance, a value or a row of each there is nothing to follow."""
    remedy = "give the values of the person's group at each appearance, or a whole number of rows per value"
    if not counted:
        return [Fault("R316", "candidates", "have no appearance", remedy)]
    faults = [
        Fault("R316", f"candidates, appearance {number}", "has no values", remedy)
        for number, shown in enumerate(counted, 1)
        if not shown
    ]
    return faults + [
        Fault("R316", f"candidates, appearance {number}", f"counts {brief(value)} {brief(rows)} times", remedy)
        for number, shown in enumerate(counted, 1)
        for value, rows in shown.items()
        if not isinstance(rows, int | np.integer) or isinstance(rows, bool) or rows < 1
    ]


def graph_between(candidates: Sequence[Mapping[int, int]], relation: Relation) -> UpdateGraph:
    """The graph of one person over codes, with the values themselves in it."""
    chances = exact_chances(candidates, relation)
    edges = [
        (n, a, b)
        for n in range(len(candidates) - 1)
        for a in candidates[n]
        for b in candidates[n + 1]
        if relation.weights[a, b]
    ]
    kept = [bool(chances[n][a] and chances[n + 1][b]) for n, a, b in edges]
    name = relation.values
    named = [(n, name[a], name[b]) for n, a, b in edges]
    return UpdateGraph(
        tuple({name[v]: chance for v, chance in chances_of.items()} for chances_of in chances),
        tuple(edge for edge, keep in zip(named, kept, strict=True) if keep),
        tuple(edge for edge, keep in zip(named, kept, strict=True) if not keep),
    )
