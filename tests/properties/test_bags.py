"""Series of people with several rows, and of households: random small ones from their public bytes against all worlds.

python tests/properties/test_bags.py 1000     (so many series of each kind: figures, no assertions)
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is run as a program

import reveil
from oracle import bags as oracle
from oracle import waiting
from reveil.base.errors import GuaranteeError, InfeasibleError, InputError
from reveil.history.history import History
from reveil.jobs.specs import AffectedSpec
from reveil.policy.policy import load_policy
from reveil.verify.verify import verify
from reveil.verify.waiting import who_waits
from support import cli

KINDS = {  # m, how many people may be known, at most so many rows, who is followed
    "nobody known": (2, 0, None, "person"),
    "one known": (3, 1, None, "person"),
    "one known, two rows at most": (3, 1, 2, "person"),
    "two known": (4, 2, 2, "person"),
    "households": (3, 1, None, "household"),
}
SUITE = 12  # series of each kind in the suite
MOST = 6  # people of a cohort whose worlds are enumerated
HARMLESS = ("well",)


def policy_of(m: int, compromised: int, most: int | None = None, who: str = "person", **method: Any) -> dict[str, Any]:
    owner = {"who": "identifier"} if who == "person" else {"who": "household"}
    people = {} if who == "household" and most is None else {"people": {"rows": "many", "most": most}}
    if who == "household" and most is not None:
        people = {"people": {"most": most}}
    elif people and most is None:
        people = {"people": {"rows": "many"}}
    return {
        "columns": {**owner, "age": "quasi", "visit": "quasi", "ward": "insensitive", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": m, "compromised": compromised, "k": 2, "harmless": HARMLESS},
        "method": {"publish": "anatomy", "infeasible": "wait", **method},
        **people,
    }


def tables_of(rng: np.random.Generator, values: int) -> list[pl.DataFrame]:
    """People who come, go and return with all their rows; missing values, repeated values, ties everywhere."""
    count = int(rng.integers(8, 26))
    sizes = rng.choice([1, 2, 2, 3], count)
    every = [*"abcdefghijklmnopqrstuvwxyz"[:values], None, "well"]
    held = [[every[int(n)] for n in rng.integers(0, len(every), size)] for size in sizes]
    held = [[own[0], *own[:-1]] if rng.random() < 0.15 else own for own in held]  # the same value in two rows
    arrival, tables = rng.integers(-3, 3, count), []
    for release in range(int(rng.integers(2, 4))):
        here = np.flatnonzero((arrival <= release) & (rng.random(count) < 0.8)).tolist()
        rows = [
            (f"p{i:02}", 20 + i % 5 + release, int(rng.integers(0, 3)), str(rng.choice(["n", "s"])), value)
            for i in here
            for value in held[i]
        ]
        order = rng.permutation(len(rows)).tolist()
        schema = {"who": pl.String, "age": pl.Int64, "visit": pl.Int64, "ward": pl.String, "ill": pl.String}
        tables.append(pl.DataFrame([rows[i] for i in order], schema=schema, orient="row"))
    return tables


def published(kind: str, seed: int, folder: Path) -> tuple[Any, list[tuple[pl.DataFrame, Any]]]:
    m, compromised, most, who = KINDS[kind]
    rng = np.random.default_rng([seed, m, compromised])
    series, steps = reveil.open_series(policy_of(m, compromised, most, who), folder / "home"), []
    for table in tables_of(rng, 7 * m):
        try:
            steps.append((table, series.publish(table, seed=seed, new_people=True, accept=("same-table",))))
        except (InfeasibleError, InputError):
            continue
    return series, steps


def people_of(steps: list[tuple[pl.DataFrame, Any]]) -> tuple[list[list[str]], list[list[int]]]:
    """By release: who was put in, and their group; of somebody whose rows are not all shown, that of those that are."""
    names, numbers = [], []
    for table, release in steps:
        group: dict[str, int] = {}
        for name, number in zip(table["who"].to_list(), release.groups.tolist(), strict=True):
            group[name] = max(group.get(name, -1), number)
        names.append(list(group))
        numbers.append(list(group.values()))
    return names, numbers


def beliefs(kind: str, steps: list[tuple[pl.DataFrame, Any]], seed: int) -> tuple[Fraction, int, bool]:
    """The highest belief over all small cohorts, with equal and with random weights on bundles; how many these are."""
    _, known, _, who = KINDS[kind]
    folders = [release.public for _, release in steps]
    made = oracle.cohorts(folders, "ill", *people_of(steps), bundle=who)
    small = [one for one in made if len(one[0]) <= MOST]
    rng, worst = np.random.default_rng(seed), Fraction(0)
    for people, bundles in small:
        drawn: dict[tuple[str, ...], int] = {}
        worst = max(worst, oracle.worst_guess(people, bundles, known, HARMLESS))
        tied = oracle.worst_guess(
            people, bundles, known, HARMLESS, lambda one, own=drawn: own.setdefault(one, int(rng.integers(0, 4)))
        )
        worst = max(worst, tied)
    return worst, len(small), len(small) == len(made)


def bound_of(release: Any) -> Fraction:
    return next(Fraction(v["bound"]) for v in release.certificate.verdicts if v["guarantee"] == "compromise-safety")


@pytest.mark.parametrize("kind", KINDS)
def test_no_belief_is_above_the_certificate(kind: str, tmp_path: Path) -> None:
    looked_at = 0
    for seed in range(SUITE):
        series, steps = published(kind, seed, tmp_path / str(seed))
        if not steps:
            continue
        worst, cohorts, _ = beliefs(kind, steps, seed)
        looked_at += cohorts
        assert worst <= bound_of(steps[-1][1])
        assert all(found.holds for found in series.verify().values())
        for _, release in steps:
            assert min(oracle.look_alike(release.public, ("age", "visit"), KINDS[kind][3]).values()) >= 2
    assert looked_at >= SUITE // 2


def test_who_does_not_know_how_counterfeits_are_made_learns_no_more(tmp_path: Path) -> None:
    """Values never change, and nothing else is known of how the series is made: all ways of dealing out bundles."""
    looked_at = 0
    for seed in range(SUITE):
        _, steps = published("one known", 50 + seed, tmp_path / str(seed))
        together: dict[str, list[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]]] = {}
        for (_, release), who, groups in zip(steps, *people_of(steps), strict=True):
            _, bundles = oracle.read(release.public, "ill")
            for number, held in bundles.items():
                members = tuple(name for name, group in zip(who, groups, strict=True) if group == number)
                key = next((name for name, seen in together.items() if any(set(p) & set(members) for p, _ in seen)), "")
                together.setdefault(key or members[0], []).append((members, tuple(held)))
        for seen in together.values():
            if len({name for people, _ in seen for name in people}) <= 5:
                assert oracle.worst_without_places(seen, 1, HARMLESS) <= bound_of(steps[-1][1])
                looked_at += 1
    assert looked_at > 5


def test_the_judge_says_exactly_what_enumeration_says(tmp_path: Path) -> None:
    """Of first releases all of whose cohorts are small enough: the worst belief."""
    compared = 0
    for seed in range(30):
        _, steps = published("one known", 100 + seed, tmp_path / str(seed))
        if not steps:
            continue
        made = oracle.cohorts([steps[0][1].public], "ill", *people_of(steps[:1]))
        if all(len(people) <= MOST for people, _ in made):
            even = max(oracle.worst_guess(*one, 1, HARMLESS) for one in made)
            said = next(v for v in steps[0][1].certificate.verdicts if v["guarantee"] == "compromise-safety")
            assert even == Fraction(said["worst"])
            compared += 1
    assert compared > 5


def test_a_leavers_whole_bag_stays(tmp_path: Path) -> None:
    """Values of those who left are not drawn one by one: every group shows the bundles that it began with."""
    rows = [(f"p{i}", 20 + i, i, "n", value) for i in range(24) for value in ("abcdefgh"[i % 8], "pqrstuvw"[i // 3])]
    table = pl.DataFrame(rows, schema=["who", "age", "visit", "ward", "ill"], orient="row")
    series = reveil.open_series(policy_of(3, 1), tmp_path / "home")
    first = series.publish(table, seed=1)
    gone = [f"p{i}" for i in range(0, 24, 5)]
    rest = table.filter(~pl.col("who").is_in(gone))
    second = series.publish(rest, seed=2)
    made = oracle.cohorts([first.public, second.public], "ill", *people_of([(table, first), (rest, second)]))
    assert sum(len(bundles) for _, bundles in made) == 24
    counts = second.certificate.counts
    assert (counts["bundles"], counts["people shown"], counts["counterfeit rows"]) == (24, 19, 10)
    (column, values), = second.values.items()  # fmt: skip
    assert column == "ill" and values.columns == ["group", "bundle", "ill", "count"]


def test_other_values_than_before_are_refused_with_their_rows(tmp_path: Path) -> None:
    rows = [(f"p{i}", 20 + i, 1, "n", value) for i in range(12) for value in ("abcdef"[i % 6], "uvwxyz"[i % 6])]
    table = pl.DataFrame(rows, schema=["who", "age", "visit", "ward", "ill"], orient="row")
    series = reveil.open_series(policy_of(3, 1), tmp_path / "home")
    series.publish(table)
    more = pl.concat([table, table[:1].with_columns(ill=pl.lit("new"))])
    for changed, where in (
        (table.with_columns(ill=pl.when(pl.int_range(24) == 5).then(pl.lit("other")).otherwise("ill")), (5, 6)),
        (table[1:], (1,)),
        (more, (1, 2, 25)),
    ):
        with pytest.raises(InputError, match="R311") as refused:
            series.publish(changed)
        (fault,) = refused.value.faults
        assert fault.places == where and "1 person has" not in fault.message and "recorded" in fault.message
    assert len(series.releases) == 1
    assert (series.publish(table.sample(fraction=1, shuffle=True, seed=1), accept=["same-table"]).groups >= 0).all()


def test_rows_beyond_the_most_are_drawn_once_and_stay(tmp_path: Path) -> None:
    """The bag of somebody with more rows than are shown is the same in each release; other values may come to them."""
    rows = [(f"p{i}", 20 + i, n, "n", f"{'abcdef'[i % 6]}{n}") for i in range(12) for n in range(4)]
    table = pl.DataFrame(rows, schema=["who", "age", "visit", "ward", "ill"], orient="row")
    series = reveil.open_series(policy_of(3, 1, 2), tmp_path / "home")
    steps = [(table, series.publish(table, seed=n, accept=["same-table"])) for n in range(4)]
    made = oracle.cohorts([release.public for _, release in steps], "ill", *people_of(steps))
    assert all({len(one) for one in bundles} == {2} for _, bundles in made)
    assert steps[0][1].certificate.withheld == {"more rows than are shown of one of them, drawn by lot": 24}
    shown = {name for (group, name), n in Counter(zip(steps[0][1].groups, table["who"], strict=True)).items() if n == 2}
    assert len(shown) == 12
    beside = pl.concat([table, table.filter(pl.col("visit") == 0).with_columns(ill=pl.lit("more"))])
    assert series.publish(beside, seed=9).certificate.holds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"guarantee": {"model": "m-invariance", "m": 3, "k": 2}}, "follows one value of each person"),
        (
            {"guarantee": {"model": "global", "l": 2, "strategy": "greedy", "k": 2}, "values": {"change": "freely"}},
            "follows one value",
        ),
        ({"guarantee": {"model": "compromise-safety", "m": 4, "refill": 2, "k": 2}}, "exactly a leaver's values"),
        ({"guarantee": {"model": "compromise-safety", "m": 4, "l": 2, "k": 2}}, "looks at one value of each row"),
        ({"method": {"publish": "generalized"}}, "people apart from bundles"),
        ({"method": {"publish": "anatomy", "people": "exact"}}, "people apart from bundles"),
        ({"method": {"publish": "anatomy", "people": "stable-boxes"}}, "people apart from bundles"),
        ({"method": {"publish": "anatomy", "infeasible": "withhold"}}, "leaves out rows by their value"),
        ({"audit": {"gate": True}}, "[audit] gate attacks"),
    ],
)
def test_what_is_not_worked_out_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    policy = {**policy_of(3, 1), **changes}
    if "harmless" not in policy["guarantee"] and policy["guarantee"]["model"] == "compromise-safety":
        policy = {**policy, "guarantee": {**policy["guarantee"]}}
    with pytest.raises(InputError) as refused:
        load_policy(policy)
    assert words in str(refused.value)


def test_several_sensitive_columns_and_taken_names_are_refused() -> None:
    policy = policy_of(3, 1)
    two = {**policy["columns"], "drug": "sensitive"}
    for columns, words in ((two, "several sensitive columns"), ({**policy["columns"], "bundle": "quasi"}, "`bundle`")):
        with pytest.raises(InputError) as refused:
            load_policy({**policy, "columns": columns, "guarantee": {"model": "compromise-safety", "m": 3, "k": 2}})
        assert words in str(refused.value)


@pytest.mark.parametrize("change", ["value", "bundle", "person", "group", "numbers"])
def test_changed_bytes_are_found(tmp_path: Path, change: str) -> None:
    """A verifier that is told what was put in sees every change; without that, what a group of its kind cannot show."""
    rows = [(f"p{i}", 20 + i, i % 3, "n", value) for i in range(18) for value in ("abcdef"[i % 6], "uvwxyz"[i % 6])]
    table = pl.DataFrame(rows, schema=["who", "age", "visit", "ward", "ill"], orient="row")
    policy = load_policy(policy_of(3, 1))
    seen = []

    def spoiled(public: Path, *rest: Any, **more: Any) -> Any:
        people, values = pl.read_csv(public / "people.csv"), pl.read_csv(public / "values.csv")
        if change == "value":  # one value of a bundle is another one
            values = values.with_columns(
                ill=pl.when(pl.int_range(values.height) == 0).then(pl.lit("z")).otherwise("ill")
            )
        elif change == "bundle":  # a bundle has a value less
            values = values[1:]
        elif change == "person":  # two people have each other's rows
            values, numbers = values, people["person"]
            people = people.with_columns(person=pl.Series([numbers[1], numbers[0], *numbers[2:]]))
        elif change == "group":  # somebody's row stands in another group
            groups = people["group"]
            other = next(g for g in groups if g != groups[0])
            people = people.with_columns(group=pl.Series([other, *groups[1:]]))
        else:  # bundles are numbered in another order than by what they hold
            values = values.with_columns(bundle=pl.lit(4) - pl.col("bundle"))
        people.write_csv(public / "people.csv")
        values.write_csv(public / "values.csv")
        _rehash(public)
        seen.append(change)
        return verify(public, *rest, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("reveil.publish.verify", spoiled)
        with pytest.raises((GuaranteeError, InputError)) as refused:
            reveil.open_series(policy, tmp_path / "home").publish(table, seed=1)
    assert seen and refused.value.faults[0].code in ("R601", "R602", "R603")


def _rehash(public: Path) -> None:
    """The data package states the hashes of the changed files: a publisher's mistake, and no damage."""
    import hashlib
    import json

    package = json.loads((public / "datapackage.json").read_text())
    for resource in package["resources"]:
        resource["hash"] = "sha256:" + hashlib.sha256((public / resource["path"]).read_bytes()).hexdigest()
    (public / "datapackage.json").write_text(json.dumps(package))


def test_numbers_of_rows_are_series_of_their_own(tmp_path: Path) -> None:
    """Too few people with three rows wait, whatever they have; everybody of a group shows as many rows."""
    held = {f"p{i:02}": ["abcdef"[i % 6], "uvwxyz"[i % 6]] for i in range(12)} | {
        "q1": ["k", "l", "m"],
        "q2": ["n", "o", "r"],
    }
    rows = [(name, 20, 1, "n", value) for name, values in held.items() for value in values]
    table = pl.DataFrame(rows, schema=["who", "age", "visit", "ward", "ill"], orient="row")
    series = reveil.open_series(policy_of(3, 1), tmp_path / "home")
    first = series.publish(table, seed=1)
    assert first.certificate.withheld == {"newcomers are too few for a group so far": 6}
    third = [("q3", 21, 2, "n", value) for value in ("c", "s", "t")]
    more = pl.concat([table, pl.DataFrame(third, schema=table.schema, orient="row")])
    second = series.publish(more, seed=2)
    assert (second.groups >= 0).all() and second.certificate.holds
    waited = AffectedSpec(policy_of(3, 1), table, 1, tmp_path / "home").run()
    assert waited.people == tuple((name, "waits", "newcomers are too few for a group so far") for name in ("q1", "q2"))
    alone = more.filter(pl.col("who") != "q3").filter(pl.col("who") != "q2")  # one of three is left: fewer than k
    third_release = series.publish(alone, seed=3)
    assert third_release.certificate.withheld == {"fewer than k people with as many rows are there": 3}
    back = series.publish(more, seed=4, accept=["same-table"])
    assert (back.groups >= 0).all() and all(found.holds for found in series.verify().values())


def test_who_waited_is_grouped_by_the_values_that_were_drawn_then(tmp_path: Path) -> None:
    """Of somebody who waits, the values were drawn when they were first seen: rows drawn later do not count."""
    schema = {"who": pl.String, "age": pl.Int64, "visit": pl.Int64, "ward": pl.String, "ill": pl.String}

    def people(names: str) -> pl.DataFrame:
        rows = [(name, 20 + place, 1, "n", f"{value}") for place, name in enumerate(names) for value in "abcdefgh"]
        return pl.DataFrame(rows, schema=schema, orient="row")

    shown = 0
    for seed in range(8):
        series = reveil.open_series(policy_of(3, 1, 2), tmp_path / str(seed))
        base = [(f"z{n}", 40, 1, "n", f"z{n}{place}") for n in range(3) for place in range(2)]
        standing = pl.DataFrame(base, schema=schema, orient="row")
        series.publish(standing, seed=seed)
        series.publish(pl.concat([standing, people("pq")]), seed=seed + 100)
        last = series.publish(pl.concat([standing, people("pqrst")]), seed=seed + 200, new_people=True)
        assert last.certificate.holds
        books, members = series.history().codebook["ill"], series.history().members.sort("release", "person")
        drawn = members.filter(pl.col("person") == 3)["ill"].to_list()
        assert len(drawn) == 2 and len(set(drawn)) == 1 and len(books) > 3
        shown += int((last.groups[6:] >= 0).any())
    assert shown


BAGS = [frozenset(one) for one in ((0, 1), (0, 2), (1, 3), (2, 3), (0, 3))]


@pytest.mark.parametrize(
    ("m", "known", "tau", "batches"),
    [(2, 0, Fraction(1, 2), (2, 3)), (2, 0, Fraction(3, 4), (3, 3)), (3, 1, Fraction(3, 4), (1, 3, 1))],
)
def test_waiting_with_bags_keeps_the_promise_over_all_worlds(
    m: int, known: int, tau: Fraction, batches: tuple[int, ...]
) -> None:
    """Who waits and who is shown tells no more than is promised of any value in anybody's rows."""
    rng = np.random.default_rng(m)
    for chances in ([1] * 5, rng.integers(1, 5, 5).tolist()):
        weights = {bag: Fraction(int(n), sum(chances)) for bag, n in zip(BAGS, chances, strict=True)}
        worst, _ = waiting.beliefs(batches, BAGS, weights, waiting.in_crowds(m, known, tau), known)
        assert worst <= tau


def test_drawing_with_bags_keeps_both_bounds_over_all_worlds_and_lots() -> None:
    tau, bags = Fraction(1, 2), BAGS[:3]
    weights = dict(zip(bags, (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), strict=True))
    rule = waiting.parted_by_lot(2, 0, tau, many=4)
    shown, drawn, parted = waiting.beliefs_by_lot((5,), bags, weights, rule, 0)
    assert shown <= tau and drawn <= 2 * tau / (1 + tau)
    assert parted


@pytest.mark.parametrize("seed", range(6))
def test_the_program_does_what_the_rule_says(tmp_path: Path, seed: int) -> None:
    """Random small series against the oracle's rule, release by release: who is shown and who waits."""
    rng = np.random.default_rng(seed)
    batches = tuple(int(n) for n in rng.integers(1, 6, 4))
    held = [BAGS[int(n)] for n in rng.integers(0, len(BAGS), sum(batches))]
    known, m, tau = (0, 2, Fraction(2, 3)) if seed % 2 else (1, 3, Fraction(3, 4))
    policy = policy_of(m, known)
    promise = {"model": "compromise-safety", "m": m, "compromised": known, "k": 2, "tau": str(tau)}
    policy["guarantee"] = promise
    cohorts, _ = waiting.in_crowds(m, known, tau)(batches, held)
    founded = {p: release for release, who, _ in cohorts for p in who}
    series = reveil.open_series(policy, tmp_path / "home")
    base = [
        (name, 30, 1, "n", value)
        for name, values in zip("WXYZ", ("kl", "mn", "op", "qr"), strict=True)
        for value in values
    ]
    schema = {"who": pl.String, "age": pl.Int64, "visit": pl.Int64, "ward": pl.String, "ill": pl.String}
    series.publish(pl.DataFrame(base, schema=schema, orient="row"))
    for release in range(len(batches)):
        count = sum(batches[: release + 1])
        rows = [(f"p{p:02}", 30 + p, 1, "n", "abcd"[v]) for p in range(count) for v in sorted(held[p])]
        table = pl.DataFrame(base + rows, schema=schema, orient="row")
        made = series.publish(table, new_people=True, accept=("same-table",))
        (names,), (groups,) = people_of([(table, made)])
        shown = {int(name[1:]) for name, group in zip(names, groups, strict=True) if group >= 0 and name[0] == "p"}
        assert shown == {p for p in range(count) if founded.get(p, 99) <= release}
        assert made.certificate.holds
    assert all(found.holds for found in series.verify().values())


def test_the_judge_of_waiting_counts_values_in_any_row() -> None:
    """Three people share a value in one of two rows: whoever shows them early is found out."""
    policy = load_policy(
        {**policy_of(2, 0), "guarantee": {"model": "compromise-safety", "m": 2, "compromised": 0, "k": 2}}
    )
    bags = ['["a","b"]', '["a","c"]', '["a","d"]', '["e","f"]']
    first = pl.DataFrame({"release": 1, "person": [0, 1, 2], "group": [-1] * 3, "ill": [0, 1, 2]})
    past = History(head=1, members=first, codebook={"ill": bags}, waits=frozenset({1}), by_lot=frozenset({1}))
    now = pl.DataFrame({"person": [0, 1, 2, 3], "group": [0] * 4, "ill": bags})
    assert who_waits(now, past, policy).shown == 3
    kept = who_waits(now.with_columns(group=pl.lit(-1)), past, policy)
    assert kept.shown == 0
    limits = who_waits(first.drop("release").with_columns(ill=pl.Series(bags[:3])), History(), policy).limits()
    assert limits and limits[0].startswith("Of those who show 2 rows:") and "a chance of 1" in limits[0]


def test_the_commands_know_people_with_several_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = ["who,age,visit,ward,ill"]
    for i in range(60):
        held = rng.choice(list("abcdefghij"), 1 + i % 3, replace=False).tolist()
        lines += [f"p{i:02},{20 + i % 30},{int(rng.integers(1, 5))},n,{value}" for value in held]
    table, policy = tmp_path / "visits.csv", tmp_path / "reveil.toml"
    table.write_text("\n".join(lines) + "\n")
    policy.write_text(
        '[columns]\nwho = "identifier"\nage = "quasi"\nvisit = "quasi"\nward = "insensitive"\nill = "sensitive"\n'
        '[values]\nchange = "never"\n[guarantee]\nmodel = "compromise-safety"\nm = 3\nk = 3\n'
        '[method]\npublish = "anatomy"\n[people]\nrows = "many"\n'
    )
    where = ("--policy", str(policy))
    code, out, err = cli("plan", str(table), *where)
    assert code == 0 and "two tables: 120 rows of 60 people, their values in" in out, out + err
    code, out, err = cli("plan", str(table), *where, "--advice")
    assert code == 0, err
    code, out, err = cli("publish", str(table), *where)
    assert code == 0 and "60 people (boxes of 3 or more), and 120 values of 60 bundles" in out, out + err
    assert "guesses no value in any row of another with more than 1/2" in out
    half = tmp_path / "half.csv"
    half.write_text("\n".join([lines[0], *(line for line in lines[1:] if int(line[1:3]) % 5)]) + "\n")
    code, out, err = cli("plan", str(half), *where, "--ahead", "1")
    assert code == 0, err
    code, out, err = cli("publish", str(half), *where)
    assert code == 0 and "48 people of release 1 came back" in out, out + err
    release = tmp_path / ".reveil" / "releases" / "0002"
    code, out, err = cli("measure", str(release), str(half), *where, "--queries", "50")
    assert code == 0 and "people on average" in out, err
    code, out, err = cli("ask", str(release), "ill=a")
    assert code == 0 and "expected" in out, err
    for command in (
        ("expand", str(release), "--out", str(tmp_path / "long")),
        ("audit", *where),
        ("correct", str(half), *where),
    ):
        code, _, err = cli(*command)
        assert code == 2 and any(word in err for word in ("R690", "R910", "R918")), err
    for name in ("report.html", "report-external.html"):
        page = release / "private" / name
        assert not page.exists() or "bundle" in page.read_text()
    shutil.rmtree(tmp_path / ".reveil")


def test_one_release_of_people_with_several_rows_is_planned_and_compared(tmp_path: Path) -> None:
    """`plan` says what `anonymize` would do, and `compare` which schemes part rows of a person."""
    policy = {"columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2, "l": 2},
              "people": {"rows": "many"}}  # fmt: skip
    table = pl.DataFrame({"who": list("aabbccdd"), "age": [20, 21, 22, 23, 50, 51, 52, 54], "ill": list("fcacfkcx")})
    preview = reveil.open_series(policy, tmp_path / "home").plan(table, seed=1)
    assert (preview.rows, preview.plan.withheld) == (8, 0) and not (tmp_path / "home").exists()
    assert preview.loss.mean == pytest.approx(reveil_loss(table, policy))
    trials = {trial.scheme: trial for trial in reveil.compare(table, policy).trials}
    assert trials["mondrian"].loss == pytest.approx(preview.loss.mean)
    assert "recodes rows one by one" in (trials["full-domain"].refused or "")


def reveil_loss(table: pl.DataFrame, policy: dict[str, Any]) -> float:
    from reveil.measure.measure import measure

    return measure(reveil.anonymize(table, policy, seed=1), table, policy, queries=0).ncp_mean


def main(count: int) -> None:
    for kind in KINDS:
        series, cohorts, worst, above, releases = 0, 0, Fraction(0), 0, 0
        for seed in range(count):
            with tempfile.TemporaryDirectory() as folder:
                _, steps = published(kind, seed, Path(folder))
                if not steps:
                    continue
                highest, looked_at, _ = beliefs(kind, steps, seed)
                series, cohorts, releases = series + 1, cohorts + looked_at, releases + len(steps)
                worst, above = max(worst, highest), above + (highest > bound_of(steps[-1][1]))
        print(f"{kind}: {series} series, {releases} releases, {cohorts} cohorts, highest belief {worst}, above {above}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SUITE)
