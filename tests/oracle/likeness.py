"""beta-likeness by its definition (Cao and Karras 2012), in fractions. Imports nothing of the package.

P is the distribution of the sensitive value in the whole table, Q in a class. A value gains D = (q - p)/p. Basic
beta-likeness: every D above 0 is at most beta. Enhanced: every D above 0 is at most min(beta, -ln p).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction


def gains(classes):
    """(gain, p) of every value in every class; a class is a list of values."""
    everything = Counter(value for rows in classes for value in rows)
    total = sum(everything.values())
    for rows in classes:
        for value, count in Counter(rows).items():
            p, q = Fraction(everything[value], total), Fraction(count, len(rows))
            yield (q - p) / p, p


def largest_gain(classes):
    """The largest gain of any value, at least 0."""
    return max([Fraction(0), *(gain for gain, _ in gains(classes))])


def holds(classes, beta, enhanced):
    """Whether a table parted into these classes keeps it."""
    for gain, p in gains(classes):
        if gain > 0 and (gain > beta or (enhanced and not power_is_at_most(gain, 1 / p))):
            return False
    return True


def power_is_at_most(x, y):
    """e^x <= y for x > 0: the sum of x^n / n! so far is below e^x, and with the rest as a geometric series above it."""
    low, term, n = Fraction(1), Fraction(1), 0
    while True:
        n += 1
        term *= x / n
        low += term
        if low > y:
            return False
        if n > x and low + term * x / (n + 1 - x) <= y:
            return True
