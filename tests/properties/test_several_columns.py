"""Several sensitive columns in a series: random small ones from their public bytes against all worlds.

python tests/properties/test_several_columns.py 1000     (so many series of each kind: figures, no assertions)
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is run as a program

import reveil
from oracle import several
from reveil.base.errors import InfeasibleError, InputError
from reveil.dp.count_policy import Counting
from reveil.plan.persistent.founding import Bound, deal
from reveil.policy.policy import load_as, load_policy
from reveil.verify.comparing import Truth
from reveil.verify.reading import read_release
from reveil.verify.verify import check_reading

COLUMNS = ("illness", "drug")
HARMLESS = {"drug": ("none",)}
KINDS = {  # m, and how many people may be known
    "nobody known": (2, 0),
    "one known": (3, 1),
    "two known": (4, 2),
}
SUITE = 10  # series of each kind in the suite
MOST = 5  # people of a cohort whose worlds are enumerated


def policy_of(m, compromised, k, infeasible="withhold"):
    return {
        "columns": {
            "name": "identifier",
            "age": "quasi",
            "illness": "sensitive",
            "drug": {"role": "sensitive", "change": "never", "harmless": ["none"]},
        },
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": m, "compromised": compromised, "k": k},
        "method": {"publish": "anatomy", "infeasible": infeasible},
    }


def tables_of(rng):
    """People who come, go and return, with an illness and a drug that go together somewhat."""
    people = int(rng.integers(6, 15))
    illness = rng.choice(list("abcdefgh"), people)
    drug = np.where(rng.random(people) < 0.4, illness, rng.choice(["p", "q", "r", "s", "t", "none"], people))
    arrival = rng.integers(-2, 3, people)
    for release in range(int(rng.integers(2, 4))):
        here = np.flatnonzero((arrival <= release) & (rng.random(people) < 0.8))
        ages = [20 + 3 * int(i) + release for i in here]
        names = [f"p{i:02}" for i in here]
        yield pl.DataFrame({"name": names, "age": ages, "illness": illness[here], "drug": drug[here]})


def published(kind, seed, folder):
    m, compromised = KINDS[kind]
    rng = np.random.default_rng([seed, m])
    series, steps = reveil.open_series(policy_of(m, compromised, int(rng.integers(2, 4))), folder / "home"), []
    for table in tables_of(rng):
        if table.is_empty():
            continue
        try:
            steps.append((table, series.publish(table, seed=seed, new_people=True)))
        except InfeasibleError:
            continue
    return series, steps


def dependent(rng):
    """A random weight on tuples: how columns go together, as an adversary may know it."""
    drawn = {}
    return lambda held: drawn.setdefault(held, int(rng.integers(0, 4)))


def beliefs(kind, steps, seed):
    """By column: highest belief with all people equal, highest with columns that go together, and cohorts looked at."""
    _, known = KINDS[kind]
    made = several.cohorts(
        [release.public for _, release in steps],
        COLUMNS,
        [table["name"].to_list() for table, _ in steps],
        [release.groups.tolist() for _, release in steps],
    )
    small = [one for one in made if len(one[0]) <= MOST]
    rng, found = np.random.default_rng(seed), {}
    for number, column in enumerate(COLUMNS):
        mild = HARMLESS.get(column, ())
        even = [several.worst_guess(*one, known, number, mild) for one in small]
        tied = [several.worst_guess(*one, known, number, mild, dependent(rng)) for one in small]
        found[column] = max(even, default=Fraction(0)), max(tied, default=Fraction(0)), len(small) == len(made)
    return found, len(small)


@pytest.mark.parametrize("kind", KINDS)
def test_no_belief_is_above_the_certificate(kind, tmp_path):
    looked_at = 0
    for seed in range(SUITE):
        series, steps = published(kind, seed, tmp_path / str(seed))
        if not steps:
            continue
        found, cohorts = beliefs(kind, steps, seed)
        looked_at += cohorts
        verdicts = {v["details"]["column"]: v for v in steps[-1][1].certificate.verdicts if "column" in v["details"]}
        for column, (even, tied, _) in found.items():
            assert max(even, tied) <= Fraction(verdicts[column]["bound"])
        assert all(checked.holds for checked in series.verify().values())
        assert all(series.audit(sensitive=column).holds for column in COLUMNS)
    assert looked_at >= SUITE // 2


def test_the_judge_says_exactly_what_enumeration_says(tmp_path):
    """Of a first release, all of whose cohorts are small enough: the worst belief, column by column."""
    compared = 0
    for seed in range(12):
        _, steps = published("one known", 100 + seed, tmp_path / str(seed))
        if not steps:
            continue
        found, _ = beliefs("one known", steps[:1], seed)
        verdicts = {v["details"]["column"]: v for v in steps[0][1].certificate.verdicts if "column" in v["details"]}
        for column, (even, _, complete) in found.items():
            if complete and "none" not in steps[0][1].values[column][column]:
                assert even == Fraction(verdicts[column]["worst"])
                compared += 1
    assert compared > 5


def tied(held):
    """An illness a always with drug p, b with q: known to everybody."""
    return int(held in (("a", "p"), ("b", "q")))


def test_who_is_known_in_any_column_counts_as_known():
    """(a,p), (b,q), two people: one's drug makes the other's illness certain."""
    cohort = (("A", "B"), (("a", "b"), ("p", "q")))
    assert several.worst_guess(*cohort, known=0, column=0, weight=tied) == Fraction(1, 2)
    assert several.worst_guess(*cohort, known=1, column=0, weight=tied, told=[1]) == 1
    with pytest.raises(InputError, match="promises nothing"):
        reveil.open_series(policy_of(2, 1, 2))


def test_a_person_known_in_one_column_has_no_bound_on_the_others(tmp_path):
    cohort = (("A", "B", "C"), (("a", "a", "b"), ("p", "p", "q")))
    assert several.own_other_column(*cohort, column=0, weight=tied) == 1
    table = pl.DataFrame({"name": list("ABCD"), "age": [1, 2, 3, 4], "illness": list("abcd"), "drug": list("pqrs")})
    release = reveil.open_series(policy_of(3, 1, 2), tmp_path / "home").publish(table)
    (limit,) = [text for text in release.certificate.limits if "any sensitive column is known" in text]
    assert "no bound" in limit and "'illness' and 'drug'" in limit


def test_counterfeits_drawn_by_column_are_refused(tmp_path):
    """{A,B}: ab, pq; then A alone beside a counterfeit (b, r): B's drug is gone, so that it was q and A's is p."""
    series = reveil.open_series(policy_of(2, 0, 2), tmp_path / "home")
    four = pl.DataFrame({"name": list("ABCD"), "age": [1, 2, 8, 9], "illness": list("abab"), "drug": list("pqpq")})
    series.publish(four)
    series.publish(four[[0, 2, 3]])
    folder = series.releases[1].public
    values = pl.read_csv(folder / "values-2.csv")
    alone = int(pl.read_csv(folder / "people.csv")["group"].value_counts().filter(pl.col("count") == 1)["group"][0])
    changed = values.with_columns(
        drug=pl.when((pl.col("group") == alone) & (pl.col("drug") == "q")).then(pl.lit("r")).otherwise("drug")
    )
    policy, past = load_policy(policy_of(2, 0, 2)), series.history()
    truth_of = {name: number for number, name in enumerate("ABCD")}
    members = pl.DataFrame({"person": [truth_of[name] for name in "ACD"], "group": series.releases[1].groups})
    read = read_release(folder, policy)
    good = check_reading(read, policy, past.until(2), Truth(3, 0, members=members))
    assert {v.details.get("column"): v.holds for v in good.verdicts if v.guarantee == "compromise-safety"} == {
        "illness": True, "drug": True,
    }  # fmt: skip
    changed.write_csv(folder / "values-2.csv")
    bad = check_reading(read_release(folder, policy), policy, past.until(2), Truth(3, 0, members=members))
    assert {v.details.get("column"): v.holds for v in bad.verdicts if v.guarantee == "compromise-safety"} == {
        "illness": True, "drug": False,
    }  # fmt: skip


def test_leavers_leave_whole_tuples(tmp_path):
    """What vacant places show is what those who left have, in all columns at once."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(60)],
            "age": rng.integers(20, 70, 60),
            "illness": rng.choice(list("abcdef"), 60),
            "drug": rng.choice(list("pqrstu"), 60),
        }
    )
    series = reveil.open_series(policy_of(3, 1, 3, "refuse"), tmp_path / "home")
    first = series.publish(table)
    second = series.publish(table[::2])
    where = dict(zip(table["name"], first.groups, strict=True))
    for column in COLUMNS:
        old = Counter(zip(first.groups.tolist(), table[column], strict=True))
        renamed = {int(where[name]): int(g) for name, g in zip(table["name"][::2], second.groups, strict=True)}
        shown = {(g, v): n for g, v, n in second.values[column].iter_rows()}
        assert shown == {(renamed[g], v): n for (g, v), n in old.items() if g in renamed}


@pytest.mark.parametrize("seed", range(4))
def test_cohorts_are_within_the_bound_and_no_larger_than_need_be(seed):
    """Dealing of random regions: every row once, sizes of at least m, no value too often in any column."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(12, 60, 8)
    codes = rng.integers(0, 12, (int(sizes.sum()), 2)).astype(np.int32)
    codes[:, 1] += 12  # no two columns share a code
    codes[rng.random(codes.shape) < 0.1] = -1
    first = np.concatenate([[0], np.cumsum(sizes)])
    cohort = np.full(len(codes), -1, dtype=np.int32)
    count = deal(codes, rng.permutation(len(codes)), first, 24, Bound(4, 1, 1, 3), cohort)
    assert set(cohort.tolist()) == set(range(count)) and count > len(sizes)
    people = np.bincount(cohort)
    assert people.min() >= 4
    for number in np.flatnonzero(people < 12):  # larger ones may be whole regions, which are looked at before
        for column in (0, 1):
            held = codes[cohort == number, column]
            assert np.bincount(held[held >= 0]).max() <= (people[number] - 1) // 3


def test_what_no_groups_are_planned_for_is_refused():
    policy = policy_of(3, 1, 3)
    freely = {**policy["columns"], "drug": {"role": "sensitive", "change": "freely", "harmless": ["none"]}}
    with pytest.raises(InputError, match="another kind of change"):
        reveil.open_series({**policy, "columns": freely})
    with pytest.raises(InputError, match="reads the others beside it"):
        reveil.open_series({**policy, "method": {}})
    with pytest.raises(InputError, match='need refill = "never"'):
        reveil.open_series({**policy, "guarantee": {**policy["guarantee"], "refill": 2}})
    with pytest.raises(InputError, match="needs exactly one sensitive column: compromise-safety keeps several"):
        reveil.open_series({**policy, "guarantee": {"model": "m-invariance", "m": 3, "k": 3}})


def test_what_one_column_says_is_what_the_policy_says():
    """A single sensitive column: its own harmless values and change are those of [guarantee] and [values]."""
    columns = {"name": "identifier", "age": "quasi"}
    plain = {"columns": {**columns, "ill": "sensitive"}, "values": {"change": "never"}}
    plain |= {"guarantee": {"model": "m-invariance", "m": 3, "harmless": ["none", "0"]}}
    said = {"columns": {**columns, "ill": {"role": "sensitive", "change": "never", "harmless": ["none", 0]}}}
    said |= {"guarantee": {"model": "m-invariance", "m": 3}}
    assert load_policy(plain).fixed() == load_policy(said).fixed()
    with pytest.raises(InputError, match="only sensitive values are protected"):
        load_policy({"columns": {"age": {"role": "quasi", "harmless": [1]}}, "guarantee": {"k": 2}})
    with pytest.raises(InputError, match=r"does nothing without \[guarantee\]"):
        counts = [{"name": "all", "by": ["ill"], "spend": 1}]
        columns = {"name": "identifier", "ill": {"role": "sensitive", "harmless": [1]}}
        load_as(Counting, {"columns": columns, "dp": {"epsilon": 1, "bins": {"ill": ["a"]}, "counts": counts}})


def main(count):
    for kind in KINDS:
        cohorts, worst, above = 0, {}, 0
        for seed in range(count):
            with tempfile.TemporaryDirectory() as folder:
                _, steps = published(kind, seed, Path(folder))
                if not steps:
                    continue
                found, looked_at = beliefs(kind, steps, seed)
                cohorts += looked_at
                bound = {v["details"]["column"]: Fraction(v["bound"]) for v in steps[-1][1].certificate.verdicts
                         if "column" in v["details"]}  # fmt: skip
                for column, (even, tied_, _) in found.items():
                    above += max(even, tied_) > bound[column]
                    worst[column] = max(worst.get(column, 0), even, tied_)
        print(kind, f"{count} series, {cohorts} cohorts, worst", {c: str(w) for c, w in worst.items()}, "above", above)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SUITE)
