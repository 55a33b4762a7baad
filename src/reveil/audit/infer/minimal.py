"""Minimality: what an adversary learns who knows that groups are cut as far as the promise allows.

Such a publisher says something with every group that it leaves whole: each cut of it would have broken the promise.
Where the promise is about values, that rules out ways of giving out the group's rows. Each group of each release is
looked at by itself, and all its ways are listed, so this is for small groups. Whatever else the publisher does (which
cut it takes first, in what order) can only rule out more; what is certain here is certain for any such publisher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import factorial, prod
from typing import Any, Literal

import numpy as np
import polars as pl

from reveil.audit.input.tables import taxonomies
from reveil.audit.model.model import Model
from reveil.audit.result.attacks import Attack, wilson
from reveil.audit.result.score import Score
from reveil.base.arrays import I64, Bools
from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.guarantees.alpha_k import AlphaK
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.guarantees.l_diversity import LDiversity
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy

Publisher = Literal["any", "median"]  # where it cuts numbers; labels are cut into those right below
HOW = {"any": "numbers in two anywhere", "median": "numbers in two after the median"}
MOST_WAYS = 5_000  # of giving out the rows of one group
MOST_GROUPS = 200  # looked at; of more, so many are drawn
FAKES, MANY_WAYS = "counterfeits", f"more than {MOST_WAYS:,} ways to give out their rows"
NAME = "minimality"
KNOWN = (KAnonymity, LDiversity, AlphaK)  # conditions that are told from the values of one group


@dataclass(frozen=True)
class Learnt:
    """One group: everybody's chances before and after minimality is taken into account (people x values)."""

    apps: I64
    values: I64  # codes
    before: np.ndarray[Any, np.dtype[np.float64]]
    after: np.ndarray[Any, np.dtype[np.float64]]


def minimality(scored: Score, publisher: Publisher, policy: Policy | None, seed: int) -> Attack:
    """The likeliest value of everybody is guessed, by what the publisher left whole."""
    m = scored.inference.model
    g = _promise(m, policy)
    assert policy is not None and m.observed.quasi is not None
    trees = taxonomies(policy, m.observed.quasi.columns)
    listed, left_out = _countable(m)
    drawn = sorted(np.random.default_rng(seed).permutation(listed)[:MOST_GROUPS].tolist())
    learnt = []
    for group in drawn:
        one = learn(m, group, g, publisher, trees)
        if isinstance(one, str):
            where = f"a group of release {m.observed.releases[m.observed.group_release[group]]}"
            return _none(f"not detectable: {where} can be cut by {one} whatever its values, so this publisher does not")
        learnt.append(one)
    if not learnt:
        return _none(f"not computed{_why(left_out)}")
    size = f"{len(drawn):,} of {some(len(listed), 'group')} (drawn)" if len(drawn) < len(listed) else ""
    meaning = (
        f"groups are known to be cut ({HOW[publisher]}, labels into those below) while all parts keep the promise; "
        f"in {size or some(len(learnt), 'group')}, the likeliest value is guessed{_why(left_out)}"
    )
    return _scored(scored, learnt, meaning)


def _why(left_out: Mapping[str, int]) -> str:
    """What groups were left out, and why."""
    told = [f"{some(count, 'group')} with {what} left out" for what, count in left_out.items() if count]
    return f" ({', '.join(told)})" if told else ""


def _none(why: str) -> Attack:
    return Attack(NAME, 0.0, 0.0, 0, *wilson(0.0, 0), why)


def _scored(scored: Score, learnt: list[Learnt], meaning: str) -> Attack:
    success, baseline, truth = [], [], scored.truth
    targets = set(scored.targets.tolist())
    for one in learnt:
        for i, app in enumerate(one.apps):
            if int(app) not in targets:
                continue
            baseline.append(one.before[i].max())
            best = one.after[i] == one.after[i].max()
            right = one.after[i].max() if truth is None else np.mean(one.values[best] == truth[app])
            success.append(right)
    n = len(success)
    rate = float(np.mean(success)) if n else 0.0
    return Attack(NAME, rate, float(np.mean(baseline)) if n else 0.0, n, *wilson(rate, n), meaning)


def _promise(m: Model, policy: Policy | None) -> Guarantee:
    """The promise that every group keeps, if it is one that is told from the values of a group alone."""
    g = None if policy is None else policy.guarantee
    faults = []
    if m.observed.quasi is None:
        message = "the quasi-identifiers of people are not known here"
        faults.append(Fault("R729", "publisher", message, "audit the published tables with --population"))
    elif not m.observed.located:
        message = "groups overlap or presence is not known, so it is not known whose rows a group has"
        faults.append(Fault("R729", "publisher", message, "give a population with a column `release`"))
    if g is None or not _told_by_values(g):
        message = "the promise must be l-diversity or alpha-k: others are not told from the values of one group"
        faults.append(Fault("R729", "policy", message, "state it in a policy"))
    if policy is not None and len(policy.named("sensitive")) != 1:
        message = "with several sensitive columns it is not known which of them kept a group whole"
        faults.append(Fault("R729", "policy", message, "audit tables with one sensitive column"))
    if faults or g is None:
        raise InputError(faults)
    return g


def _told_by_values(g: Guarantee) -> bool:
    """Whether there is a condition on values, and `keeps` knows every condition on single releases."""
    about = [one for facts, one in g.described if not facts.family.series]
    return any(isinstance(one, (LDiversity, AlphaK)) for one in about) and all(isinstance(one, KNOWN) for one in about)


def keeps(g: Guarantee, counts: tuple[int, ...]) -> bool:
    """Whether a group with so many rows of each value keeps the promise, exactly."""
    size, shown = sum(counts), sorted((c for c in counts if c), reverse=True)
    alike, diverse, frequent = g.find(KAnonymity), g.find(LDiversity), g.find(AlphaK)
    good = bool(shown) and (alike is None or size >= alike.k)
    good = good and (diverse is None or _is_diverse(diverse, size, shown))
    return good and (frequent is None or shown[0] <= frequent.alpha * size)


def _is_diverse(asked: LDiversity, size: int, shown: list[int]) -> bool:
    """Of the rows of each value, the most frequent first."""
    if len(shown) < asked.l:
        return False
    if asked.diversity == "entropy":
        return bool(size**size * asked.l.denominator**size >= asked.l.numerator**size * prod(c**c for c in shown))
    if asked.diversity == "recursive" and asked.c is not None:
        return shown[0] < asked.c * sum(shown[-(-asked.l.numerator // asked.l.denominator) - 1 :])
    return True


def _countable(m: Model) -> tuple[list[int], dict[str, int]]:
    """Groups whose ways can be listed, and how many others there are of each kind."""
    o = m.observed
    listed, left_out = [], dict.fromkeys((FAKES, MANY_WAYS), 0)
    for group in range(len(o.group_release)):
        counts = o.cell_rows[o.cell_start[group] : o.cell_start[group + 1]].tolist()
        if o.group_fakes[group] != 0:
            left_out[FAKES] += 1
        elif factorial(sum(counts)) // prod(map(factorial, counts)) > MOST_WAYS:
            left_out[MANY_WAYS] += 1
        else:
            listed.append(group)
    return listed, left_out


def learn(m: Model, group: int, g: Guarantee, publisher: Publisher, trees: Mapping[str, Hierarchy]) -> Learnt | str:
    """Everybody's chances in one group; or the columns by one or another of which it can be cut in every world."""
    o = m.observed
    assert o.quasi is not None
    apps = m.factor_apps[m.factor_start[group] : m.factor_start[group + 1]]
    cells = slice(o.cell_start[group], o.cell_start[group + 1])
    values, working = o.cell_value[cells], dict[str, None]()
    ways = arrangements(o.cell_rows[cells])
    for i, app in enumerate(apps):
        if int(app) in m.pinned:
            ways = ways[values[ways[:, i]] == m.pinned[int(app)]]
    before = _chances(ways, len(values))
    for column, parts in cuts(o.quasi[apps], publisher, trees):
        works = np.logical_and.reduce([_kept(g, ways[:, part], len(values)) for part in parts])
        ways = ways[~works]
        working |= {column: None} if works.any() else {}
        if not len(ways):
            return " or ".join(working)
    return Learnt(apps, values, before, _chances(ways, len(values)))


def arrangements(counts: I64) -> I64:
    """Every way to give out rows, by kinds of which there are so many: a line for each, a column for each person.

    >>> arrangements(np.array([2, 1])).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    ways, left = np.empty((1, 0), dtype=np.int64), counts[None, :].copy()
    for _ in range(int(counts.sum())):
        line, kind = np.nonzero(left)
        ways = np.concatenate([ways[line], kind[:, None]], axis=1)
        left = left[line]
        left[np.arange(len(line)), kind] -= 1
    return ways


def _chances(ways: I64, values: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.stack([(ways == v).mean(axis=0) for v in range(values)], axis=1)


def _kept(g: Guarantee, ways: I64, values: int) -> Bools:
    """In which ways a part keeps the promise."""
    counts = np.stack([(ways == v).sum(axis=1) for v in range(values)], axis=1)
    distinct, back = np.unique(counts, axis=0, return_inverse=True)
    return np.array([keeps(g, tuple(line)) for line in distinct.tolist()], dtype=bool)[back.ravel()]


def cuts(quasi: pl.DataFrame, publisher: Publisher, trees: Mapping[str, Hierarchy]) -> Iterator[tuple[str, list[I64]]]:
    """Every cut that the publisher would have tried: the column, and the people of each part."""
    for name in quasi.columns:
        column = quasi[name]
        ordered = name not in trees and column.null_count() == 0
        if ordered and (column.dtype.is_numeric() or column.dtype == pl.Date):
            place = column.rank("dense").to_numpy().astype(np.int64)
            middle = int(np.sort(place)[(len(place) - 1) // 2])
            for at in range(1, int(place.max())) if publisher == "any" else (middle,):
                if at < place.max():
                    yield name, [np.nonzero(place <= at)[0], np.nonzero(place > at)[0]]
            continue
        label = _below(column, trees.get(name))
        kinds = sorted(set(label))
        if len(kinds) > 1:
            yield name, [np.array([i for i, mine in enumerate(label) if mine == kind]) for kind in kinds]


def _below(column: pl.Series, tree: Hierarchy | None) -> list[str]:
    """For each person, the label right below the smallest one that covers all of them."""
    texts = [str(value) for value in column]
    if tree is None:
        return texts
    place = {str(leaf): n for n, leaf in enumerate(tree.leaves)}
    at = [place[text] for text in texts]
    node = 0
    while True:
        inside = [n for n in tree.children[node] if tree.lo[n] <= min(at) and max(at) <= tree.hi[n]]
        if not inside:
            break
        node = inside[0]
    below = tree.children[node]
    return [next((tree.labels[n] for n in below if tree.lo[n] <= p <= tree.hi[n]), texts[i]) for i, p in enumerate(at)]
