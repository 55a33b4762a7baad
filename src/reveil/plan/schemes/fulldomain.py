"""Full-domain recoding: all values of a column are generalised to the same level. The best node of the lattice.

The bound of a node is its loss if nothing had to be withheld there; nodes whose bound reaches the best loss found are
never looked at. And a node tells what every finer node must withhold at least (`Checked.least`):

- all that it withholds itself, where a class that is admitted stays so whatever is added to it (k-anonymity, distinct
  l-diversity), or where nothing may be withheld and a union of admitted classes is admitted (all but epsilon-m);
- otherwise, what each of its classes lacks: whatever a finer node keeps of a class is a union of admitted classes, and
  so it is large, diverse and close enough itself (`classes.least_withheld`; k, l, alpha, t).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np

from reveil.base.errors import Fault, InfeasibleError
from reveil.base.progress import Progress
from reveil.history.history import History
from reveil.plan.cutting import infeasible
from reveil.plan.plan import Plan
from reveil.plan.schemes.counted import Checked, RecodingProblem
from reveil.plan.schemes.lattice import Lattice, Levels
from reveil.policy.policy import Policy
from reveil.table.encode import Encoded

LARGEST = 1 << 20  # nodes of a lattice that is searched as a whole
EFFORT = 2_000_000_000  # rows of tallies that may be counted before the search stops with what it has


@dataclass(frozen=True)
class BestNode:
    """The best node found, and a loss that no node can be below."""

    levels: Levels
    checked: Checked
    bound: float


def plan(encoded: Encoded, history: History, policy: Policy, *, seed: int, progress: Progress) -> Plan:
    """Group the rows of one table by the full-domain recoding that loses least."""
    problem = RecodingProblem.of(encoded, policy, seed)
    lattice, best = best_levels(problem, progress)
    geometric = policy.method.loss == "geometric"
    loss, bound = (float(np.expm1(x)) if geometric else x for x in (best.checked.loss, best.bound))
    statistics = {
        "levels": {
            h.name: lowest + level for h, lowest, level in zip(encoded.quasi, lattice.lowest, best.levels, strict=True)
        },
        "nodes checked": lattice.checks,
        "nodes of the lattice": lattice.size,
        "loss": loss,
        "no node can lose less than": bound,
        "proved best": best.bound >= best.checked.loss,
    }
    return problem.plan(lattice.at(best.levels), statistics)


def best_levels(problem: RecodingProblem, progress: Progress) -> tuple[Lattice, BestNode]:
    """The best node of the lattice, or the best that was found where the lattice is too large."""
    lattice = Lattice(problem)
    best = search(lattice, progress) if lattice.size <= LARGEST else survey(lattice, progress)
    if best is None:
        limited = [name for name, spec in problem.policy.columns.items() if spec.highest is not None]
        raise InfeasibleError([_too_low(limited)] if limited else infeasible.faults(problem.encoded, problem.policy))
    return lattice, best


def _too_low(columns: list[str]) -> Fault:
    message = (
        f"no levels that the highest of {', '.join(map(repr, columns))} allow keep the promise within the allowance"
    )
    return Fault("R917", "columns", message, "allow higher levels, or let more rows be withheld (method.suppress)")


def search(lattice: Lattice, progress: Progress) -> BestNode | None:
    """Branch and bound over the whole lattice; None where no node can be published.

    Nodes are taken at a rank of their bounds that follows the answers: lower after a success, higher after a failure.
    So successes halve what is left and failures rule out large blocks. Without such blocks, the lowest bound is next.
    """
    bound, least = lattice.bounds(), np.zeros(lattice.shape)
    best: tuple[Levels, Checked] | None = None
    limit, rank, telling = inf, 0.5, True
    while True:
        left = np.flatnonzero(bound < limit)
        if not len(left) or lattice.effort > EFFORT:
            break
        place = min(int(rank * len(left)), len(left) - 1) if telling else 0
        at = left[np.argpartition(bound.ravel()[left], place)[place]]
        levels = tuple(int(level) for level in np.unravel_index(at, lattice.shape))
        checked = lattice.check(levels)
        better = checked.loss < limit
        if better:
            best, limit = (levels, checked), checked.loss
        bound[levels] = inf
        if checked.coarser:
            above = tuple(slice(level, None) for level in levels)
            bound[above] = np.maximum(bound[above], checked.coarser)
        if checked.least:
            _rule_out(lattice, bound, least, levels, checked)
        telling = better or checked.least > lattice.problem.allowance
        rank = rank / 2 if better else (1 + rank) / 2
        progress("searching the lattice", 1 - len(left) / lattice.size)
    if best is None:
        return None
    return BestNode(*best, bound=min(limit, float(bound.min())))


def _rule_out(lattice: Lattice, bound: Any, least: Any, levels: Levels, checked: Checked) -> None:
    """Finer nodes withhold at least as many rows: raise their bounds, or close them."""
    block = tuple(slice(0, level + 1) for level in levels)
    if checked.least > lattice.problem.allowance:
        bound[block] = inf
        return
    raised = least[block] < checked.least
    least[block] = np.maximum(least[block], checked.least)
    bound[block] = np.where(raised, np.maximum(bound[block], lattice.bounds(least[block], levels)), bound[block])


def survey(lattice: Lattice, progress: Progress) -> BestNode | None:
    """A lattice too large to search: go down from the top while that helps, and bound the loss from below.

    What is feasible stays so when some columns are fully generalised. So the columns are divided into parts, each is
    searched exactly with the others fully generalised, and no node can lose less than these losses together (of the
    largest column's loss: less than the largest of them).
    """
    levels, best = lattice.top, lattice.check(lattice.top)
    while True:
        lower = [(*levels[:c], levels[c] - 1, *levels[c + 1 :]) for c in range(len(levels)) if levels[c]]
        tried = [(lattice.check(at), at) for at in lower]
        checked, at = min(tried, key=lambda pair: pair[0].loss, default=(best, levels))
        if checked.loss >= best.loss or lattice.effort > EFFORT:
            break
        levels, best = at, checked
        progress("searching the lattice", 1 - sum(levels) / sum(lattice.top))
    if best.loss == inf:
        return None
    parted = lattice.problem.falls and not lattice.problem.of_classes
    return BestNode(levels, best, _bound_by_parts(lattice, progress) if parted else lattice.bottom_bound)


def _bound_by_parts(lattice: Lattice, progress: Progress) -> float:
    bounds = []
    for part in _parts(lattice.shape):
        best = search(Lattice(lattice.problem, part), progress)
        assert best is not None  # a coarser node of the whole lattice was feasible
        bounds.append(best.bound)
    return max(bounds) if lattice.problem.policy.method.loss == "maximum" else sum(bounds)


def _parts(shape: Levels) -> list[list[int]]:
    """Columns in parts whose lattices are small: the deepest columns first, each to the first part with room."""
    parts: list[list[int]] = []
    for c in sorted(range(len(shape)), key=lambda c: -shape[c]):
        home = next((part for part in parts if prod(shape[d] for d in part) * shape[c] <= LARGEST >> 8), None)
        if home is None:
            parts.append([c])
        else:
            home.append(c)
    return parts
