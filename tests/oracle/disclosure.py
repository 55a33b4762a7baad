"""delta-disclosure privacy by its definition (Brickell and Shmatikov 2008), in fractions. It imports nothing of ours.

P is the distribution of the sensitive value in the whole table, Q in a class: |ln(q/p)| < delta for every value of the
table in every class. A value that a class does not have is infinitely far.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction


def class_holds(rows, everything, delta):
    """One class beside the whole table."""
    for value, count in Counter(everything).items():
        p, q = Fraction(count, len(everything)), Fraction(rows.count(value), len(rows))
        if q == 0 or exponential_is_at_most(delta, max(q / p, p / q)):
            return False
    return True


def holds(classes, delta):
    """Whether a table parted into these classes keeps it."""
    everything = [value for rows in classes for value in rows]
    return all(class_holds(rows, everything, delta) for rows in classes)


def exponential_is_at_most(x, y):
    """e^x <= y for x > 0, by partial sums from below and with a geometric rest from above."""
    low, term, n = Fraction(1), Fraction(1), 0
    while True:
        n += 1
        term *= x / n
        low += term
        if low > y:
            return False
        if n > x and low + term * x / (n + 1 - x) <= y:
            return True
