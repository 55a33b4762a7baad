"""Returners whose place was refilled, in cohorts of the same signature: which rule would keep the promise.

python tests/properties/test_returners.py 3 2 1 200     (m, refill, people known, so many random histories: figures)
"""

from __future__ import annotations

import sys
from fractions import Fraction
from math import factorial
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is run as a program

from oracle import returners

MOST = 3_000  # worlds of a history


def refilled(m, refill, *founded):
    """A cohort of m people, of whom the first ones are replaced; then cohorts of returners and newcomers."""
    came, new = tuple(range(100, 100 + refill)), iter(range(200, 300))
    later = [("found", (*back, *(next(new) for _ in range(m - len(back))))) for back in founded]
    return [("found", tuple(range(m))), ("refill", tuple(range(refill)), came), *later]


def random_history(rng, m, refill, known, most=MOST):
    """Refills, and cohorts of one returner and newcomers; a place is handed on twice only where one person is known."""
    history, cohorts, lost, people, ways = [("found", tuple(range(m)))], [], [], m, factorial(m)
    cohorts.append((list(range(m)), set()))
    for _ in range(6):
        if lost and rng.random() < 0.6:
            back = lost.pop(int(rng.integers(len(lost))))
            event, factor = ("found", (back, *range(people, people + m - 1))), factorial(m - 1)
            people += m - 1
            cohorts.append((list(event[1]), set()))
        else:
            inside, late = cohorts[int(rng.integers(len(cohorts)))]
            can = [p for p in inside if known == 1 or p not in late]
            places = int(rng.integers(refill, m + 1))
            if len(can) < places:
                continue
            gone = [can[i] for i in rng.permutation(len(can))[:places]]
            came = list(range(people, people + places))
            people += places
            event, factor = ("refill", tuple(gone), tuple(came)), factorial(places)
            inside[:] = [p for p in inside if p not in gone] + came
            late.update(came)
            lost += gone
        ways *= factor
        if ways > most:
            break
        history.append(event)
    return history


@pytest.mark.parametrize(("m", "refill", "known"), [(3, 2, 1), (4, 3, 1), (4, 3, 2), (4, 4, 2)])
def test_one_returner_in_a_new_cohort_keeps_the_promise_and_two_do_not(m, refill, known):
    bound = returners.promised(m, known, refill)
    assert returners.worst_belief(refilled(m, refill, (0,)), m, known) == bound
    assert returners.worst_belief(refilled(m, refill, (0, 1)), m, known) > bound


def test_two_returners_in_one_cohort_make_people_certain():
    """The smallest case: 3 of one cohort, 2 replaced, both return; whoever knows the third newcomer's value knows."""
    assert returners.worst_belief(refilled(3, 2, (0, 1)), 3, 1) == 1
    assert returners.worst_belief(refilled(3, 2, (0,), (1,)), 3, 1) == Fraction(1, 2)  # each in one of their own


def test_choosing_newcomers_by_what_the_returner_lacks_tells_their_value():
    """No newcomer has value 0: a cohort of the signature can be founded exactly if the returner has it."""
    history = refilled(3, 2, (0,))
    founded = [held for held in returners.worlds(history, 3) if 0 not in [held[p] for p in history[2][1][1:]]]
    assert {held[0] for held in founded} == {0}


@pytest.mark.parametrize("seed", range(12))
def test_chains_of_refills_and_returners(seed):
    history = random_history(np.random.default_rng(seed), 3, 2, 1)
    assert returners.worst_belief(history, 3, 1) <= Fraction(1, 2)


def main(m, refill, known, count):
    rng, worst, done, above = np.random.default_rng(1), Fraction(0), 0, 0
    bound = returners.promised(m, known, refill)
    while done < count:
        history = random_history(rng, m, refill, known, 10 * MOST if known > 1 else MOST)
        if sum(kind == "found" for kind, *_ in history) > 1:
            found = returners.worst_belief(history, m, known)
            worst, done, above = max(worst, found), done + 1, above + (found > bound)
    print(f"m = {m}, refill {refill}, {known} known: {done} histories, highest {worst} of {bound}, above {above}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
