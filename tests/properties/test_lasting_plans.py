"""Planners of lasting values on random small series: judged release by release, and against all possible worlds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import worlds as oracle
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.history.memory import memory_of
from reveil.plan.methods import method
from reveil.plan.persistent import buckets, vacancies
from reveil.plan.persistent.eligible import largest_share
from reveil.policy.policy import load_policy
from reveil.table.encode import Encoded, encode
from reveil.table.identify import person_hashes
from reveil.verify.judges.contract import Background, View
from reveil.verify.judges.registry import judges

COLUMNS = {"name": "identifier", "age": "quasi", "town": "quasi", "illness": "sensitive"}
GUARANTEES = {
    "cohorts, harmless": {"model": "compromise-safety", "m": 3, "harmless": ["a"]},
    "cohorts, harmless, refilled": {"model": "compromise-safety", "m": 4, "refill": 2, "harmless": ["a", "c"]},
    "cohorts, harmless, two known": {
        "model": "compromise-safety",
        "m": 4,
        "compromised": 2,
        "refill": 3,
        "harmless": ["b"],
    },
    "cohorts, k people": {"model": "compromise-safety", "m": 3, "k": 3},
    "cohorts, k people, refilled": {"model": "compromise-safety", "m": 3, "k": 3, "refill": 2},
    "m-invariance, harmless": {"model": "m-invariance", "m": 3, "harmless": ["a"]},
    "history, harmless": {"model": "historical-safety", "m": 3, "n": 2, "harmless": ["a"]},
    "cohorts, never refilled": {"model": "compromise-safety", "m": 3},
    "cohorts": {"model": "compromise-safety", "m": 3, "refill": 2},
    "cohorts, tau": {"model": "compromise-safety", "m": 3, "refill": 2, "tau": "1/2"},
    "cohorts, two known": {"model": "compromise-safety", "m": 4, "compromised": 2, "refill": 3},
    "cohorts, nobody known": {"model": "compromise-safety", "m": 3, "compromised": 0, "refill": 1},
    "m-invariance": {"model": "m-invariance", "m": 3},
    "m-invariance, k": {"model": "m-invariance", "m": 3, "k": 4},
    "history": {"model": "historical-safety", "m": 3, "n": 2},
    "history, pairwise": {"model": "historical-safety", "m": 3, "n": 2, "closure": "pairwise"},
    "history, all": {"model": "historical-safety", "m": 3, "n": 3, "closure": "pairwise"},
}


@st.composite
def populations(draw):
    """Who is present in which release, and everybody's value and attributes."""
    people, releases = draw(st.integers(8, 26)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.choice(list("abcdef"), size=people, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1])
    arrival = rng.integers(-2, releases, size=people)
    here = [(arrival <= r) & (rng.random(people) < 0.8) for r in range(releases)]
    table = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(people)],
            "age": rng.integers(20, 60, size=people),
            "town": rng.choice(["x", "y", "z"], size=people),
            "illness": values,
        }
    )
    return [table.filter(pl.Series(mask)) for mask in here]


def publish(tables, guarantee):
    """Plan a series; yields each release's plan, its verdicts, and its groups as the oracle sees them."""
    policy = load_policy(
        {
            "columns": COLUMNS,
            "values": {"change": "never"},
            "guarantee": guarantee,
            "method": {"infeasible": "withhold"},
        }
    )
    return planned(tables, policy)


def planned(tables, policy):
    """The same under any policy for these columns."""
    frames, book, numbers = [], {}, {}
    for release, table in enumerate(tables, 1):
        if table.is_empty():
            continue
        e = encode(table, policy, book)
        persons = np.array([numbers.setdefault(n, len(numbers)) for n in table["name"]], dtype=np.int64)
        e = Encoded(e.quasi, e.positions, e.sensitive, e.codes, None, persons)
        past = history(frames, book, len(numbers))
        plan = method(policy)(e, past, policy, seed=release, progress=silent)
        verdicts = [v for judge in judges(policy, Background()) for v in judge.judge(view_of(e, plan), past)]
        yield e, plan, verdicts, shown(e, plan)
        memory = memory_of(e, plan, past, person_hashes(table["name"], bytes(32), normalise=False), policy)
        number = len(frames) + 1
        frames.append({k: f.with_columns(pl.lit(number, dtype=pl.Int32).alias("release")) for k, f in memory.items()})
        book = {"illness": list(e.sensitive[0].values)}


def history(frames, book, people):
    if not frames:
        return History()
    stacked = {k: pl.concat([f[k] for f in frames]) for k in ("members", "groups", "values")}
    persons = pl.DataFrame({"hi": np.arange(people, dtype=np.uint64)}).with_columns(lo=pl.col("hi"))
    return History(len(frames), "", persons, stacked["members"], stacked["groups"], stacked["values"], book)


def view_of(e, plan):
    kept, back = plan.groups >= 0, plan.with_stand_in
    codes = np.concatenate([e.codes[kept, 0], plan.counterfeit_codes.reshape(-1)])
    return View(
        classes=np.concatenate([plan.groups[kept], plan.counterfeit_groups]).astype(np.int64),
        quasi=pl.DataFrame(),
        sensitive={"illness": pl.Series(e.sensitive[0].values, dtype=pl.String).gather(codes)},
        counterfeits=np.bincount(plan.counterfeit_groups, minlength=plan.count).astype(np.int64),
        members=pl.DataFrame({"person": e.persons[kept], "class": plan.groups[kept].astype(np.int64)}),
        stand_ins=pl.DataFrame({"person": e.persons[back], "class": plan.people_groups[back].astype(np.int64)}),
    )


def shown(e, plan):
    people, values = {}, {}
    for person, code, group in zip(e.persons.tolist(), e.codes[:, 0].tolist(), plan.groups.tolist(), strict=True):
        if group >= 0:
            people.setdefault(group, []).append(person)
            values.setdefault(group, []).append(code)
    for group, code in zip(plan.counterfeit_groups.tolist(), plan.counterfeit_codes.reshape(-1).tolist(), strict=True):
        values[group].append(code)
    return [(tuple(people[g]), tuple(values[g])) for g in sorted(values)]


def parts(series):
    """The series cut into components of people who never share a group with others."""
    for part in numbered_parts(series):
        yield [groups for _, groups in part]


def numbered_parts(series):
    """The same, with the places of the releases in the series."""
    label = {}
    groups = [(r, g) for r, release in enumerate(series) for g in release]
    for _, (people, _) in groups:
        for person in people:
            label.setdefault(person, person)
    changed = True
    while changed:
        changed = False
        for _, (people, _) in groups:
            lowest = min(label[p] for p in people)
            for p in people:
                changed |= label[p] != lowest
                label[p] = lowest
    for name in sorted(set(label.values())):
        cut = [[g for g in release if label[g[0][0]] == name] for release in series]
        yield [(number, release) for number, release in enumerate(cut) if release]


@pytest.mark.parametrize("name", GUARANTEES)
@given(populations())
@settings(max_examples=25, deadline=None)
def test_every_planned_release_is_judged_to_hold(name, tables):
    for e, plan, verdicts, groups in publish(tables, GUARANTEES[name]):
        assert all(v.holds for v in verdicts), [v.statement for v in verdicts]
        assert sum(plan.reasons.values()) == plan.withheld
        assert sum(len(people) for people, _ in groups) + plan.withheld == e.rows
        assert all(people for people, _ in groups)


@pytest.mark.parametrize("name", ["cohorts, never refilled", "cohorts", "cohorts, two known", "cohorts, nobody known"])
@given(populations())
@settings(max_examples=25, deadline=None)
def test_no_guess_exceeds_tau_in_any_world(name, tables):
    guarantee = GUARANTEES[name]
    known = guarantee.get("compromised", 1)
    series = [groups for _, _, _, groups in publish(tables, guarantee)]
    policy = load_policy({"columns": COLUMNS, "values": {"change": "never"}, "guarantee": guarantee})
    (judge,) = judges(policy, Background())
    for part in parts(series):
        if len({p for release in part for people, _ in release for p in people}) <= 9:
            assert oracle.worst_guess(part, known) <= judge.tau


HARMLESS = [name for name in GUARANTEES if "harmless" in name and "history" not in name]


@pytest.mark.parametrize("name", HARMLESS)
@given(populations())
@settings(max_examples=25, deadline=None)
def test_no_protected_value_is_guessed_above_the_bound_where_harmless_ones_repeat(name, tables):
    guarantee = GUARANTEES[name]
    policy = load_policy({"columns": COLUMNS, "values": {"change": "never"}, "guarantee": guarantee})
    known = guarantee.get("compromised", 1) if guarantee["model"] == "compromise-safety" else 0
    bound = policy.guarantee.headline.promised
    series, harmless = [], set()
    for e, _, verdicts, groups in publish(tables, guarantee):
        harmless |= {code for code, value in enumerate(e.sensitive[0].values) if value in guarantee["harmless"]}
        assert all(v.worst is None or v.worst <= bound for v in verdicts)
        series.append(groups)
    for part in parts(series):
        if len({p for release in part for people, _ in release for p in people}) <= 8:
            assert oracle.worst_guess(part, known, harmless, places=True) <= bound


@given(populations())
@settings(max_examples=25, deadline=None)
def test_k_counts_people(tables):
    for _, plan, _, groups in publish(tables, GUARANTEES["cohorts, k people"]):
        assert all(len(people) >= 3 for people, _ in groups)
        assert plan.withheld == sum(plan.reasons.values())


@given(populations())
@settings(max_examples=25, deadline=None)
def test_who_returns_finds_their_place(tables):
    homes = {}
    for _, plan, _, groups in publish(tables, GUARANTEES["cohorts, never refilled"]):
        assert "place was refilled while away" not in plan.reasons
        for people, values in groups:
            for person in people:
                assert homes.setdefault(person, sorted(values)) == sorted(values)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=8), st.integers(2, 5))
@settings(max_examples=200, deadline=None)
def test_assignment_uses_everybody_in_signatures_below_2m(counts, m):
    free = np.array(counts, dtype=np.int64)
    free = np.minimum(free, largest_share(free, m))
    left = free.copy()
    codes, ends, often = buckets.assign(left, m)
    starts = [0, *ends]
    assert not left.any()
    for a, b in pairwise(starts):
        assert m <= b - a < 2 * m
        assert len(set(codes[a:b])) == b - a
    used = np.zeros_like(free)
    for (a, b), times in zip(pairwise(starts), often, strict=True):
        used[codes[a:b]] += times
    assert used.tolist() == free.tolist()


@given(st.lists(st.integers(0, 12), min_size=2, max_size=6), st.integers(2, 4))
@settings(max_examples=200, deadline=None)
def test_the_largest_share_withholds_fewest(counts, m):
    counts = np.array(counts)
    cap = largest_share(counts, m)
    kept = np.minimum(counts, cap)
    assert kept.sum() >= m * kept.max(initial=0)
    assert cap == counts.max() or np.minimum(counts, cap + 1).sum() < m * (cap + 1)


def test_refills_take_the_nearest():
    assert vacancies.WINDOW > 8
    tables = [
        pl.DataFrame({"name": list("abc"), "age": [20, 21, 22], "town": ["x"] * 3, "illness": list("uvw")}),
        pl.DataFrame(  # half of the newcomers may refill, drawn by lot: near ones of both values are among them
            {
                "name": ["a", *map(str, range(40))],
                "age": [20, *[23] * 20, *[58] * 20],
                "town": ["x"] * 41,
                "illness": ["u", *"vw" * 20],
            }
        ),
    ]
    *_, (_, plan, _, _) = publish(tables, GUARANTEES["cohorts"])
    joined = np.flatnonzero(plan.groups[1:] == plan.groups[0])
    assert len(joined) == plan.statistics["places refilled"] == 2
    assert (joined < 20).all()
