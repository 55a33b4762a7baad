"""infeasible = "wait": what waiting and being shown later tell together, over all worlds.

python tests/properties/test_waiting_crowds.py 200     (so many random settings: figures, no assertions)
python tests/properties/test_waiting_crowds.py lots    (over all worlds and lots, a dozen newcomers: minutes)
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is run as a program

import reveil
from oracle import waiting
from reveil.base.errors import InfeasibleError, InputError
from reveil.guarantees.lasting import CohortTerms
from reveil.jobs.specs import AffectedSpec
from reveil.plan.persistent.drawing import draw_crowd
from reveil.plan.persistent.waiting import chance_of_crowd
from reveil.policy.policy import load_policy
from reveil.verify.waiting import _never_above, who_waits

SETTINGS = [  # m, people known, tau, people who come by release, values
    (2, 0, Fraction(1, 2), (2, 2, 3), 3),
    (2, 0, Fraction(1, 2), (3, 4), 3),
    (2, 0, Fraction(2, 3), (2, 5), 3),
    (3, 1, Fraction(1, 2), (3, 4), 4),
    (3, 1, Fraction(2, 3), (1, 3, 3), 3),
]
POLICY = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 2, "compromised": 0, "tau": "2/3"},
}


def even(values):
    return [Fraction(1, values)] * values


def skewed(values, rng):
    drawn = [int(n) for n in rng.integers(1, 6, values)]
    return [Fraction(n, sum(drawn)) for n in drawn]


@pytest.mark.parametrize(("m", "known", "tau", "batches", "values"), SETTINGS)
def test_no_belief_is_above_the_promise(m, known, tau, batches, values):
    rule = waiting.in_crowds(m, known, tau)
    for weights in (even(values), skewed(values, np.random.default_rng(m))):
        worst, _ = waiting.beliefs(batches, values, weights, rule, known)
        assert worst <= tau


@pytest.mark.parametrize(
    ("m", "known", "tau", "batches", "values"),
    [(2, 0, Fraction(1, 2), (5,), 3), (2, 0, Fraction(1, 2), (1, 4), 2)],
)  # fmt: skip
def test_who_is_drawn_to_wait_and_who_is_shown_stay_within_their_bounds(m, known, tau, batches, values):
    """Over all worlds and all lots: the promise for who is shown, twice its odds for who is drawn (nobody known)."""
    rule = waiting.parted_by_lot(m, known, tau, many=4)
    for weights in (even(values), skewed(values, np.random.default_rng(m))):
        shown, drawn, parted = waiting.beliefs_by_lot(batches, values, weights, rule, known)
        assert shown <= tau and drawn <= 2 * tau / (1 + tau) and parted


@pytest.mark.parametrize("weights", [{0: 4, 1: 4, 2: 1}, {(0, 0): 3, (1, 1): 2, (0, 1): 1}])
def test_counting_says_what_listing_all_lots_says(weights):
    """One column, and two that go together."""
    tau, chances = Fraction(1, 2), shares(weights)
    listed = waiting.beliefs_by_lot((5,), list(weights), chances, waiting.parted_by_lot(2, 0, tau, many=4), 0)
    shown, drawn, parted = waiting.beliefs_of_one_batch(5, chances, 2, 0, tau)
    assert listed[1] == drawn <= Fraction(2, 3) and listed[0] == shown == tau and parted


def test_who_is_known_of_those_drawn_is_left_out_of_account():
    """Eight newcomers, one of whom may be known: nobody of a crowd is guessed with more than twice the odds."""
    chances, tau = shares({0: 5, 1: 3, 2: 2}), Fraction(1, 2)
    assert waiting.waits_at((0, 0, 0, 0, 0, 1, 1, 2), 3, 1, tau) is None  # 3 of 5 would be 3/4 with one of them known
    shown, drawn, _ = waiting.beliefs_of_one_batch(8, chances, 3, 1, tau)
    assert shown <= tau and drawn <= Fraction(2, 3)


def test_those_who_are_drawn_are_guessed_with_twice_the_odds_at_most():
    """If all who wait were drawn; where no crowd will do, all wait, with whatever share a value has."""
    rng, parts = np.random.default_rng(5), 0
    for _ in range(400):
        m, known = int(rng.integers(2, 5)), int(rng.integers(0, 2))
        if m - known < 2:
            continue
        tau, held = Fraction(1, m - known), rng.integers(0, rng.integers(2, 6), int(rng.integers(m, 40))).tolist()
        terms = load_policy({**POLICY, "guarantee": {"model": "compromise-safety", "m": m, "compromised": known}})
        if rng.random() < 0.5:  # two columns
            held = list(zip(held, rng.integers(0, rng.integers(2, 7), len(held)).tolist(), strict=True))
        codes = np.array(held, dtype=np.int32).reshape(len(held), -1)
        codes += np.arange(codes.shape[1], dtype=np.int32) * 10  # no two columns share a code
        drawn = draw_crowd(codes, m, terms.guarantee.require(CohortTerms))
        if waiting.fits(held, m, known, tau):
            continue
        wanted = waiting.waits_at(held, m, known, tau)
        assert (None if drawn is None else np.flatnonzero(drawn).tolist()) == wanted
        if wanted is not None:
            left, others = [held[p] for p in wanted], [v for p, v in enumerate(held) if p not in wanted]
            share = 2 * tau / (1 + tau)
            for column in waiting.columns_of(left):  # who is known may have other values
                assert max(column.count(v) for v in column) <= share * (len(left) - known)
            assert waiting.fits(others, m, known, tau)
            parts += 1
    assert parts > 30


def test_many_newcomers_are_parted_and_the_judge_counts_for_itself(tmp_path):
    """Thirty newcomers, half of them alike, m = 3: some wait for good, others are shown, who waits stays out."""
    policy = {**POLICY, "guarantee": {"model": "compromise-safety", "m": 3}}
    series = reveil.open_series(policy, tmp_path / "home")
    names = [chr(ord("A") + n) for n in range(36)]
    values = "uvwxyz" + "a" * 15 + "bcdef" * 3
    series.publish(people(names[:6], values[:6]))
    release = series.publish(people(names, values), new_people=True)
    left = np.flatnonzero(release.groups < 0)
    held = [values[p] for p in left]
    assert 0 < len(left) < 15 and held.count("a") <= Fraction(2, 3) * (len(held) - 1) and release.certificate.holds
    (limit,) = [text for text in release.certificate.limits if "drawn by lot" in text]
    assert f"{len(left)} newcomers" in limit and "with 1 of them known)" in limit
    (why,) = release.certificate.withheld
    found = AffectedSpec(policy, people(names, values), None, tmp_path / "home").run()
    assert {(state, reason) for _, state, reason in found.people} == {("out for good", why)} and "by lot" in why
    third = series.publish(people([*names, "#"], values + "g"), new_people=True)
    assert (third.groups[left] < 0).all() and third.certificate.holds
    members = pl.DataFrame({"person": range(36), "group": [0] * 36, "illness": list(values)})
    one_value = members.with_columns(group=pl.when(pl.col("person").is_in([6, 7])).then(-1).otherwise(pl.col("group")))
    assert who_waits(one_value, series.history().until(2), load_policy(policy)).too_sure == 2


def test_people_who_are_drawn_in_several_columns_are_judged(tmp_path):
    """Thirty newcomers, 13 of them alike in one column, 13 others in the other column; one person may be known."""
    rng = np.random.default_rng(2)
    columns = {**POLICY["columns"], "drug": {"role": "sensitive", "change": "never"}}
    promise = {"model": "compromise-safety", "m": 4, "k": 3}
    policy = {
        **POLICY,
        "columns": columns,
        "guarantee": promise,
        "method": {"publish": "anatomy", "infeasible": "wait"},
    }
    series = reveil.open_series(policy, tmp_path / "home")
    base = people("ABCD", "wxyz").with_columns(drug=pl.Series(list("stuv")))
    many = pl.DataFrame(
        {
            "name": [f"p{n}" for n in range(30)],
            "age": rng.integers(20, 60, 30),
            "illness": ["a"] * 13 + [f"i{n % 9}" for n in range(17)],
            "drug": [f"d{n % 9}" for n in range(17)] + ["p"] * 13,
        }
    )
    series.publish(base)
    release = series.publish(base.vstack(many), new_people=True)
    left = np.flatnonzero(release.groups < 0)
    assert 0 < len(left) < 26 and release.certificate.holds and all(found.holds for found in series.verify().values())
    (limit,) = [text for text in release.certificate.limits if "drawn by lot" in text]
    for column, top in (("illness", "a"), ("drug", "p")):
        held = base.vstack(many)[column].gather(left).to_list()
        assert Fraction(held.count(top), len(left) - 1) <= Fraction(1, 2)  # tau = 1/3, twice its odds
        assert f"{column!r} with a chance of" in limit


def test_crowds_of_homes_that_drew_no_lots_are_judged_by_their_own_rule(tmp_path, monkeypatch):
    """Thirteen of two values never fit tau = .51; with thirteen more they do, and their waiting was certain."""
    policy = {**POLICY, "guarantee": {**POLICY["guarantee"], "tau": "51/100"}}
    series = reveil.open_series(policy, tmp_path / "home")
    base, names = people("WXYZ", "klmn"), "ABCDEFGHIJKLMabcdefghijklm"
    series.publish(base)
    with monkeypatch.context() as before:  # as it was when crowds could be of any size
        before.setattr("reveil.publish.RULE_OF_WAITING", {"waits": True})
        before.setattr("reveil.plan.persistent.founding.are_many", lambda *_: False)
        second = series.publish(base.vstack(people(names[:13], "uvuvuvuvuvuvu")), new_people=True)
    assert (second.groups[4:] < 0).all()
    third = series.publish(base.vstack(people(names, "uv" * 13)), new_people=True)
    assert (third.groups[4:] >= 0).all() and third.certificate.holds
    assert all(found.holds for found in series.verify().values())
    history = series.history()
    members = history.members.filter(pl.col("release") == 3).select("person", "group", "illness")
    held = members.with_columns(illness=pl.col("illness").cast(pl.String))
    assert who_waits(held, history.until(3), load_policy(policy)).shown == 0
    drawn = replace(history.until(3), by_lot=frozenset({2}))  # had its rule been that of today
    assert who_waits(held, drawn, load_policy(policy)).shown == 13


def test_a_first_release_that_does_not_fit_is_refused_not_parted(tmp_path):
    series = reveil.open_series({**POLICY, "guarantee": {"model": "compromise-safety", "m": 3}}, tmp_path / "home")
    with pytest.raises(InfeasibleError, match="is promised"):
        series.publish(people([chr(ord("A") + n) for n in range(30)], "a" * 15 + "bcdef" * 3))


def test_showing_a_crowd_as_soon_as_its_values_fit_is_refuted():
    """Two people who wait though two would do have the same value; then {i, k, j, l}: aabc makes both certain."""
    worst, late = waiting.beliefs((2, 2), 3, even(3), waiting.as_soon_as_it_fits(2, 0, Fraction(1, 2)), 0)
    assert worst == 1 and late
    kept, _ = waiting.beliefs((2, 2), 3, even(3), waiting.in_crowds(2, 0, Fraction(1, 2)), 0)
    assert kept == Fraction(1, 2)


def test_some_who_waited_in_a_crowd_are_shown():
    """The rule is not empty: where promise and size leave room, the crowd is shown with those who came later."""
    tau = Fraction(3, 5)
    worst, late = waiting.beliefs((3, 5), 3, even(3), waiting.in_crowds(2, 0, tau), 0)
    assert late and worst <= tau


def test_a_small_crowd_is_shown_when_many_come(tmp_path):
    """Eight newcomers, two alike, do not fit m = 6; after forty more of the same ten values that tells little."""
    policy = {**POLICY, "guarantee": {"model": "compromise-safety", "m": 6}}
    series = reveil.open_series(policy, tmp_path / "home")
    names = "".join(chr(ord("A") + n) for n in range(54))
    values = "uvwxyz" + "aabcdefg" + "abcdefghij" * 4
    assert (series.publish(people(names[:6], values[:6])).groups >= 0).all()
    second = series.publish(people(names[:14], values[:14]))
    assert (second.groups[6:] < 0).all()
    third = series.publish(people(names, values))
    assert (third.groups >= 0).all() and len(set(third.groups[6:])) == 1 and third.certificate.holds
    assert third.certificate.verdicts[0]["worst"] == "1/5"


@pytest.mark.parametrize("seed", range(6))
def test_chances_of_crowds_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        counts = rng.integers(1, 5, int(rng.integers(1, 4))).tolist()
        size = sum(counts) + int(rng.integers(0, 3))
        known, there = int(rng.integers(0, 2)), int(rng.integers(1, size + 1))
        most = int(rng.integers(1, 4))
        if there <= known or size <= known:
            continue
        wanted = waiting.chance_of_crowd(counts, size, there, most, known)
        assert chance_of_crowd(counts, size, there, most, known) == wanted
        assert 1 - _never_above(counts, size, there, most, known) == wanted


def people(names, values):
    return pl.DataFrame({"name": list(names), "age": [20 + n for n in range(len(names))], "illness": list(values)})


def rule_of(series, steps):
    """What the program showed: by release, who is in the cohort that was founded, and who waits."""
    return [{name for name, g in zip(table["name"], release.groups, strict=True) if g >= 0} for table, release in steps]


def test_a_second_wave_that_does_not_fit_alone_is_known_as_such(tmp_path):
    """Five wait, then eight, of whom the last three do not fit by themselves: who counts only the eight gives 17/45."""
    policy = {**POLICY, "guarantee": {**POLICY["guarantee"], "m": 3, "compromised": 0, "tau": "1/3"}}
    series = reveil.open_series(policy, tmp_path / "home")
    standing, held = people("XYZ", "abc"), "abbcdaacb"
    series.publish(standing)
    for count in (5, 8, 9):
        table = standing.vstack(people("123456789"[:count], held[:count]))
        made = series.publish(table, new_people=True)
        assert (made.groups[3:] < 0).all()  # as one cohort of nine they would be above 1/3
    cohorts, _ = waiting.in_crowds(3, 0, Fraction(1, 3))((5, 3, 1), ["abcd".index(value) for value in held])
    assert cohorts == ()
    history = series.history()
    shown = pl.DataFrame({"person": range(3, 12), "group": [0] * 9, "illness": list(held)})
    assert who_waits(shown, history, load_policy(policy)).shown == 9  # the judge would not let them pass


def test_waves_are_enumerated():
    """The settings in which a second wave waits: nobody is above the promise with the rule as it is."""
    for batches, values, m in (((2, 3, 1), 2, 2), ((3, 3, 1), 3, 2), ((3, 2, 2), 2, 2), ((4, 3, 1), 2, 3)):
        tau = Fraction(1, m)
        worst, _ = waiting.beliefs(batches, values, even(values), waiting.in_crowds(m, 0, tau), 0)
        assert worst <= tau


@pytest.mark.parametrize("seed", range(8))
def test_the_program_does_what_the_rule_says(tmp_path, seed):
    """Random small series against the oracle's rule, release by release: who is shown and who waits."""
    rng = np.random.default_rng(seed)
    batches = tuple(int(n) for n in rng.integers(1, 6, 4))
    held = rng.integers(0, 3, sum(batches)).tolist()
    known, m, tau = (0, 2, Fraction(2, 3)) if seed % 2 else (1, 3, Fraction(3, 4))
    policy = {**POLICY, "guarantee": {**POLICY["guarantee"], "m": m, "compromised": known, "tau": str(tau)}}
    cohorts, _ = waiting.in_crowds(m, known, tau)(batches, held)
    founded = {p: release for release, who, _ in cohorts for p in who}
    series = reveil.open_series(policy, tmp_path / "home")
    assert series.policy.method.infeasible == "wait"  # unless the policy says something else
    names, base = "abcdefghijklmnopqrstuvwxyz", people("YZ", "yz")
    values = "uvw"
    series.publish(base.vstack(people("WX", "wx")).with_columns(illness=pl.Series(list("klmn"))))
    standing = people("YZWX", "klmn")
    for release in range(len(batches)):
        count = sum(batches[: release + 1])
        table = standing.vstack(people(names[:count], "".join(values[v] for v in held[:count])))
        made = series.publish(table, new_people=True, accept=("same-table",))
        shown = {p for p in range(count) if made.groups[4 + p] >= 0}
        assert shown == {p for p in range(count) if founded.get(p, 99) <= release}
        assert made.certificate.holds
    assert all(found.holds for found in series.verify().values())
    assert series.audit().holds


def test_a_crowd_is_certified_with_its_figure_and_the_judge_knows_it(tmp_path):
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(people("abcd", "wxyz"))
    release = series.publish(people("abcdefgh", "wxyzuuuv"))
    assert (release.groups[4:] < 0).all() and release.certificate.holds
    (limit,) = [text for text in release.certificate.limits if "wait all together" in text]
    assert "4 newcomers" in limit and "0.75" in limit
    assert "all newcomers wait" in " ".join(release.certificate.withheld)
    # a publisher who shows them alone later is found out
    history = series.history()
    policy = load_policy(POLICY)
    later = pl.DataFrame({"person": [4, 5, 6, 7, 8, 9], "group": [0] * 6, "illness": list("uuuvxy")})
    assert who_waits(later, history, policy).shown == 4
    assert who_waits(later.with_columns(group=pl.lit(-1)), history, policy).shown == 0


def test_wait_is_refused_where_the_rule_does_not_hold():
    for guarantee in ({"model": "m-invariance", "m": 3}, {"model": "compromise-safety", "m": 4, "refill": 2},
                      {"model": "compromise-safety", "m": 4, "l": 2}):  # fmt: skip
        with pytest.raises(InputError, match='infeasible = "wait" needs'):
            load_policy({**POLICY, "guarantee": guarantee, "method": {"infeasible": "wait"}})
        assert load_policy({**POLICY, "guarantee": guarantee}).method.infeasible == "refuse"


PAIRS = [(0, 0), (1, 1), (0, 1), (1, 0)]
LOTS = [  # newcomers, values or tuples with their weights, m, people known, tau
    (5, {0: 4, 1: 4, 2: 1}, 2, 0, Fraction(1, 2)),
    (12, {0: 4, 1: 5}, 2, 0, Fraction(2, 3)),
    (10, {0: 5, 1: 3, 2: 2}, 3, 1, Fraction(1, 2)),
    (12, {0: 6, 1: 1, 2: 1}, 3, 1, Fraction(1, 2)),
    (10, {0: 2, 1: 5, 2: 5, 3: 2}, 3, 1, Fraction(1, 2)),
    (8, dict(zip(PAIRS[:3], (5, 3, 2), strict=True)), 2, 0, Fraction(1, 2)),
    (9, dict(zip(PAIRS, (5, 3, 3, 5), strict=True)), 2, 0, Fraction(1, 2)),
    (10, {(0, 0): 2, (1, 1): 3, (2, 2): 1, (0, 1): 4}, 3, 1, Fraction(1, 2)),
    (10, {(0, 0): 4, (1, 1): 3, (2, 0): 5, (0, 2): 3}, 3, 1, Fraction(1, 2)),
]


def shares(weights):
    return {kind: Fraction(weight, sum(weights.values())) for kind, weight in weights.items()}


def by_lot():
    for people, weights, m, known, tau in LOTS:
        shown, drawn, parted = waiting.beliefs_of_one_batch(people, shares(weights), m, known, tau)
        figures = f"shown {shown} of {tau}, drawn {drawn} of {2 * tau / (1 + tau)}, {parted} multisets parted"
        print(f"{people} newcomers, {weights}, m = {m}, {known} known: {figures}", flush=True)


def main(count):
    rng, worst, above, late = np.random.default_rng(1), Fraction(0), 0, 0
    for _ in range(count):
        known, values = int(rng.integers(0, 2)), int(rng.integers(2, 4))
        m, tau = known + 2, Fraction(int(rng.integers(8, 14)), 16)
        batches = (int(rng.integers(1, 4)), *(int(n) for n in rng.integers(1, 6 - values, int(rng.integers(1, 3)))), 3)
        weights = even(values) if rng.random() < 0.5 else skewed(values, rng)
        found, shown = waiting.beliefs(batches, values, weights, waiting.in_crowds(m, known, tau), known)
        above, late, worst = above + (found > tau), late + shown, max(worst, found / tau)
    print(
        f"{count} settings, {late} outcomes in which a crowd was shown, worst belief / promise {worst}, above {above}"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["lots"]:
        by_lot()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
