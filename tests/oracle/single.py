"""Brute force for the single-release guarantees: plain Python, nothing of the package, slow, plainly right.

A table is a list of classes; a class is the list of the values of its rows. `None` is the missing value.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction


def smallest_class(classes):
    return min(len(rows) for rows in classes)


def fewest_values(classes):
    return min(len(set(rows)) for rows in classes)


def entropy_diverse(classes, ell):
    """Entropy >= log ell in every class: prod (n / c_i)^c_i >= ell^n, in exact fractions."""
    for rows in classes:
        product = Fraction(1)
        for count in Counter(rows).values():
            product *= Fraction(len(rows), count) ** count
        if product < Fraction(ell) ** len(rows):
            return False
    return True


def lowest_effective_number(classes):
    def entropy(rows):
        return -sum(c / len(rows) * math.log(c / len(rows)) for c in Counter(rows).values())

    return min(math.exp(entropy(rows)) for rows in classes)


def recursive_ratio(rows, ell):
    """r_1 / (r_l + ... + r_m), None where there is no l-th value."""
    counts = sorted(Counter(rows).values(), reverse=True)
    tail = sum(counts[ell - 1 :])
    return Fraction(counts[0], tail) if tail else None


def recursively_diverse(classes, c, ell):
    ratios = [recursive_ratio(rows, ell) for rows in classes]
    return all(ratio is not None and ratio < c for ratio in ratios)


def largest_share(classes):
    return max(Fraction(rows.count(value), len(rows)) for rows in classes for value in rows)


def written_value(value):
    return Fraction(str(value))


def near(x, y, epsilon, relative):
    if x is None or y is None:
        return x is None and y is None
    x, y = written_value(x), written_value(y)
    return abs(x - y) <= (epsilon * abs(x) if relative else epsilon)


def largest_neighbourhood(classes, epsilon, relative):
    return max(Fraction(sum(near(x, y, epsilon, relative) for y in rows), len(rows)) for rows in classes for x in rows)


def distribution(rows):
    return {value: Fraction(count, len(rows)) for value, count in Counter(rows).items()}


def ground_equal(values):
    return {(x, y): Fraction(int(x != y)) for x in values for y in values}


def ground_ordered(values):
    """`values` in their order; a missing one stands first."""
    line = [None] * (None in values) + [value for value in values if value is not None]
    steps = max(1, len(line) - 1)
    return {(x, y): Fraction(abs(line.index(x) - line.index(y)), steps) for x in line for y in line}


def ground_hierarchical(values, tree):
    """`tree` is nested dicts whose leaves are None: {"respiratory": {"flu": None, "cold": None}, ...}.

    The distance is the height of the lowest common ancestor by the height of the tree; to missing it is 1.
    """

    def leaves(node, name):
        return {name} if node is None else set().union(*(leaves(below, label) for label, below in node.items()))

    def height(node):
        return 0 if node is None else 1 + max(height(below) for below in node.values())

    def common(node, x, y):
        for label, below in node.items():
            if below is not None and {x, y} <= leaves(below, label):
                return common(below, x, y)
        return height(node)

    def distance(x, y):
        if x == y:
            return Fraction(0)
        return Fraction(1) if x is None or y is None else Fraction(common(tree, x, y), height(tree))

    return {(x, y): distance(x, y) for x in values for y in values}


def dual_corners(ground):
    """All corners of the dual of the transport problem: the potentials u with u(x) - u(y) <= ground(x, y).

    At a corner the constraints that are tight connect all values, so they hold a spanning tree. All
    spanning trees are tried; this is for tiny domains.
    """
    values = sorted({x for x, _ in ground}, key=repr)
    corners = []
    for parents in itertools.product(range(len(values)), (1, -1), repeat=max(0, len(values) - 1)):
        potential = _tree_potential(values, parents, ground)
        if potential is None or potential in corners:
            continue
        if all(potential[x] - potential[y] <= far for (x, y), far in ground.items()):
            corners.append(potential)
    return corners


def earth_movers(p, q, corners):
    """The cost of the cheapest way to turn p into q, exactly: the best corner of the dual."""
    return max(sum(u[x] * (p.get(x, Fraction(0)) - q.get(x, Fraction(0))) for x in u) for u in corners)


def _tree_potential(values, parents, ground):
    """u along a tree rooted at the first value; `parents` alternates parent and sign. None if no tree."""
    links = {values[i + 1]: (values[parents[2 * i]], parents[2 * i + 1]) for i in range(len(values) - 1)}
    potential = {values[0]: Fraction(0)} if values else {}
    while len(potential) < len(values):
        ready = [value for value, (above, _) in links.items() if value not in potential and above in potential]
        if not ready:
            return None
        for value in ready:
            above, sign = links[value]
            potential[value] = potential[above] + sign * ground[value, above]
    return potential


def furthest_class(classes, ground, original=None):
    """The distance of the furthest class from all rows of the classes, or from the rows of the original."""
    everything = distribution(original or [value for rows in classes for value in rows])
    corners = dual_corners(ground)
    return max(earth_movers(distribution(rows), everything, corners) for rows in classes)


def furthest_by_linear_programming(classes, ground):
    """The same with SciPy, in floats, for domains too large for trying all trees."""
    from scipy.optimize import linprog

    everything = distribution([value for rows in classes for value in rows])
    values = list(everything)
    worst = 0.0
    for rows in classes:
        here = distribution(rows)
        costs = [float(ground[x, y]) for x in values for y in values]
        leaving = [[float(i == k) for i in range(len(values)) for _ in values] for k in range(len(values))]
        coming = [[float(j == k) for _ in values for j in range(len(values))] for k in range(len(values))]
        masses = [float(here.get(x, 0)) for x in values] + [float(everything[y]) for y in values]
        worst = max(worst, linprog(costs, A_eq=leaving + coming, b_eq=masses).fun)
    return worst


def chances_of_presence(boxes, rows, people):
    """How likely each person is present: all ways to choose `rows[c]` people for each class count alike.

    `boxes[c]` is the set of people (indexes) who match class c. None where there is no way at all.
    """
    ways = 0
    present = [0] * people

    def choose(number, used):
        nonlocal ways
        if number == len(boxes):
            ways += 1
            for person in used:
                present[person] += 1
            return
        for chosen in itertools.combinations(sorted(set(boxes[number]) - used), rows[number]):
            choose(number + 1, used | set(chosen))

    choose(0, set())
    return [Fraction(count, ways) for count in present] if ways else None
