"""What is asked of all options in compiled passes, against dictionaries filled option by option."""

from collections import defaultdict

import numpy as np
import pytest

from reveil.audit.input.knowledge import Adversary
from reveil.audit.input.observed import from_groups
from reveil.audit.model.model import build
from reveil.audit.model.options import OptionCells, best_links, carry_over, count_of, having, lacking, likeliest, sole


def random_series(rng):
    """A few releases of people in groups of up to four, some with counterfeits, and what is believed of options."""
    releases = []
    for _ in range(int(rng.integers(1, 5))):
        people = rng.permutation(12)[: int(rng.integers(4, 13))]
        cuts = np.sort(rng.choice(np.arange(1, len(people)), size=int(rng.integers(1, 4)), replace=False))
        releases.append(
            [
                ([f"p{p:02}" for p in part], rng.choice(list("abcde"), len(part) + int(rng.integers(0, 2))).tolist())
                for part in np.split(people, cuts)
            ]
        )
    m = build(from_groups(releases), Adversary())
    alive = rng.random(len(m.opt_cell)) < 0.7
    share = np.where(rng.random(len(alive)) < 0.2, np.nan, rng.random(len(alive)))
    return m, alive, share


def options(m, app):
    """Options of an appearance with their values."""
    return [(o, int(m.cell_value[m.opt_cell[o]])) for o in range(m.opt_start[app], m.opt_start[app + 1])]


@pytest.mark.parametrize("seed", range(40))
def test_each_appearance_by_itself(seed):
    rng = np.random.default_rng(seed)
    m, alive, share = random_series(rng)
    lists = (m.opt_start, m.opt_cell, m.cell_value)
    wanted = rng.integers(-1, len(m.observed.values), len(m.app_factor))
    same, counts = having(*lists, wanted), count_of(m.opt_start, alive)
    only, (number, first, high, right) = sole(*lists, alive), likeliest(*lists, alive, share, wanted, 5)
    for a in range(len(m.app_factor)):
        mine = {v: share[o] for o, v in options(m, a) if alive[o]}
        assert [bool(same[o]) for o, _ in options(m, a)] == [v == wanted[a] for _, v in options(m, a)]
        assert (counts[a], number[a], first[a]) == (len(mine), len(mine), next(iter(mine), -1))
        assert only[a] == (next(iter(mine)) if len(mine) == 1 else -1)
        believed = [p for p in mine.values() if not np.isnan(p)]
        assert np.array_equal([high[a]], [max(believed, default=np.nan)], equal_nan=True)
        assert np.array_equal([right[a]], [mine.get(int(wanted[a]), np.nan)], equal_nan=True)
        assert all(m.app_of(o) == a for o, _ in options(m, a))


@pytest.mark.parametrize("seed", range(40))
def test_all_appearances_of_a_person(seed):
    m, alive, share = random_series(np.random.default_rng(seed))
    o, lists = m.observed, (m.opt_start, m.opt_cell, m.cell_value)
    absent, filled = lacking(o.person_start, *lists, len(o.values)), share.copy()
    carry_over(o.person_start, *lists, alive, filled, len(o.values))
    for p in range(o.people):
        apps = range(o.person_start[p], o.person_start[p + 1])
        sets = [{v for _, v in options(m, a)} for a in apps]
        assert absent[p] == any(s != sets[0] for s in sets)
        known = {}
        for i, v in (pair for a in apps for pair in options(m, a)):
            if not np.isnan(share[i]):
                known.setdefault(v, share[i])
        for i, v in (pair for a in apps for pair in options(m, a)):
            expected = known.get(v, np.nan) if np.isnan(share[i]) and alive[i] else share[i]
            assert np.array_equal([filled[i]], [expected], equal_nan=True)


@pytest.mark.parametrize("seed", range(40))
def test_links_to_the_next_release(seed):
    m, alive, share = random_series(np.random.default_rng(seed))
    o = m.observed
    follows = np.append(False, o.app_person[1:] == o.app_person[:-1])
    chance = defaultdict(lambda: defaultdict(float))
    for a in np.nonzero(follows)[0]:
        before = {v: int(m.opt_cell[i]) for i, v in options(m, a - 1)}
        left = sum(bool(alive[i]) for i, _ in options(m, a))
        for i, v in options(m, a):
            if alive[i] and v in before:
                weight = 1 / left if np.isnan(share[i]) else share[i]
                chance[before[v]][int(m.opt_cell[i])] += weight / m.cell_cap[m.opt_cell[i]]
    expected = sum(max(each.values()) for each in chance.values())
    lists = OptionCells(m.opt_start, m.opt_cell, m.cell_value, m.cell_cap)
    assert best_links(m.factor_start, m.factor_apps, follows, lists, alive, share) == pytest.approx(expected)
