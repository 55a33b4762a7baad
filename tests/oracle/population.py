"""Samples and populations by their definitions. Imports nothing of the package."""

from __future__ import annotations

from math import comb


def individual_risk(f, people, tail=1e-13):
    """The sum over j >= f of C(j-1, f-1) p^f (1-p)^(j-f) / j, until what is left cannot matter."""
    p = f / people
    if p >= 1:
        return 1 / f
    term, mass, total, j = p**f, 0.0, 0.0, f
    while True:
        total, mass = total + term / j, mass + term
        if (1 - mass) / j < tail * total or term == 0:
            return total
        term *= (1 - p) * j / (j - f + 1)
        j += 1


def negative_binomial(f, p, j):
    return comb(j - 1, f - 1) * p**f * (1 - p) ** (j - f)


def partitions(items):
    """Every way to put named items into classes."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place in range(len(rest)):
            yield [*rest[:place], [items[0], *rest[place]], *rest[place + 1 :]]


def seated(order, theta, alpha):
    """The chance of a partition when people come one after another (Pitman): to a class of s with s - alpha, to a new
    one with theta + u alpha, of theta + those who are there."""
    classes, chance = [], 1.0
    where = {item: number for number, one in enumerate(order) for item in one}
    for there, item in enumerate(sorted(where)):
        mine = next((one for one in classes if where[one[0]] == where[item]), None)
        share = theta + len(classes) * alpha if mine is None else len(mine) - alpha
        chance *= share / (theta + there) if there else 1
        if mine is None:
            classes.append([item])
        else:
            mine.append(item)
    return chance


def expected_uniques(people, theta, alpha):
    """The mean number of classes of one, over every partition."""
    return sum(
        seated(one, theta, alpha) * sum(len(group) == 1 for group in one) for one in partitions(list(range(people)))
    )
