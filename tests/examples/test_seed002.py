"""Riboni and Bettini 2009, Table 1 and Examples 1 to 4: their second release gives Erica away, ours does not."""

from __future__ import annotations

import json
from fractions import Fraction

import polars as pl
import pytest

from oracle import worlds as oracle
from properties import lasting
from reveil.background.breach_formulas import figure_2, n_choose, p_hc, p_pb
from reveil.base.errors import InfeasibleError, InputError
from reveil.guarantees.historical_safety import HistoricalSafety
from reveil.plan.persistent.degree import degree
from reveil.policy.policy import load_policy
from reveil.publish import open_series
from reveil.verify.judges.cohorts import CompromiseSafetyJudge
from reveil.verify.judges.correlation import HistoricalSafetyJudge
from reveil.verify.judges.invariance import MInvarianceJudge
from reveil.verify.verify import Truth, verify

FIRST = pl.DataFrame(
    {
        "name": ["Alice", "Betty", "Carl", "Doris", "Erica", "Fiona"],
        "age": [33, 31, 35, 40, 41, 37],
        "gender": ["Female", "Female", "Male", "Female", "Female", "Female"],
        "zip": [12000, 11000, 12000, 13000, 14000, 13000],
        "disease": ["cancer", "bronchitis", "AIDS", "cancer", "AIDS", "bronchitis"],
    }
)
SECOND = pl.DataFrame(
    {
        "name": ["Carl", "Doris", "Fiona", "Erica", "Grace", "Hanna"],
        "age": [35, 40, 37, 41, 42, 42],
        "gender": ["Male", "Female", "Female", "Female", "Female", "Female"],
        "zip": [12000, 13000, 13000, 14000, 13000, 13000],
        "disease": ["AIDS", "cancer", "bronchitis", "AIDS", "bronchitis", "cancer"],
    }
)
VALUES = ("AIDS", "bronchitis", "cancer")
PAPER = [
    [(("Alice", "Betty", "Carl"), VALUES), (("Doris", "Erica", "Fiona"), VALUES)],
    [(("Carl", "Doris", "Fiona"), VALUES), (("Erica", "Grace", "Hanna"), VALUES)],
]
COLUMNS = {"name": "identifier", "age": "quasi", "gender": "quasi", "zip": "quasi", "disease": "sensitive"}
MODELS = {
    "compromise-safety": {"model": "compromise-safety", "m": 3, "compromised": 1},
    "historical-safety": {"model": "historical-safety", "m": 3, "n": 2},
    "historical-safety, pairwise": {"model": "historical-safety", "m": 3, "n": 2, "closure": "pairwise"},
}


def numbered(series):
    people = sorted({p for release in series for members, _ in release for p in members})
    return [[(tuple(people.index(p) for p in members), values) for members, values in r] for r in series]


def policy(guarantee, **method):
    return {"columns": COLUMNS, "values": {"change": "never"}, "guarantee": guarantee, "method": method}


def published(release, table):
    """The groups of a release as the oracle sees them."""
    shown = release.table.group_by("group").agg(pl.col("disease").sort())
    values = {g: tuple(v) for g, v in shown.iter_rows()}
    people = {g: [] for g in values}
    for name, g in zip(table["name"], release.groups.tolist(), strict=True):
        if g >= 0:
            people[g].append(name)
    return [(tuple(sorted(people[g])), values[g]) for g in sorted(values)]


def test_example_1_counts():
    possible = oracle.worlds(PAPER)
    assert len(possible) == 24
    given = [world for world in possible if world["Carl"] == "AIDS"]
    assert len(given) == 8
    assert oracle.posteriors(given)["Erica"] == {"AIDS": 1}
    for name in ("Doris", "Fiona", "Alice", "Betty", "Grace", "Hanna"):
        assert oracle.posteriors(given)[name] == {"cancer": Fraction(1, 2), "bronchitis": Fraction(1, 2)}


def test_the_papers_second_release_is_m_invariant_and_unsafe():
    series = numbered(PAPER)
    assert all(v.holds for v in lasting.judged(MInvarianceJudge(3, "illness"), series))
    for judge in (
        HistoricalSafetyJudge(3, 2, "pairwise", "illness"),
        HistoricalSafetyJudge(3, 2, "transitive", "illness"),
        CompromiseSafetyJudge(3, 1, Fraction(1, 2), "illness"),
    ):
        first, second = lasting.judged(judge, series)
        assert first.holds
        assert not second.holds


@pytest.mark.parametrize("name", MODELS)
def test_our_second_release_lets_nobody_infer_erica_from_carl(tmp_path, name):
    series = open_series(policy(MODELS[name], infeasible="withhold"), home=tmp_path / "home")
    releases = [series.publish(FIRST, seed=1), series.publish(SECOND, seed=1)]
    shown = [published(r, t) for r, t in zip(releases, (FIRST, SECOND), strict=True)]
    assert "Erica" not in oracle.revealed(shown, {"Carl": "AIDS"})
    assert oracle.worst_guess(shown, 1) <= Fraction(1, 2)
    assert all(v.holds for v in series.verify().values())


@pytest.mark.parametrize("name", MODELS)
def test_reveil_verify_reports_the_papers_second_release(tmp_path, name):
    """The bytes of Table 1 (d), judged with the history of Table 1 (b)."""
    loaded = load_policy(policy(MODELS[name]))
    public = tmp_path / "public"
    public.mkdir()
    table = pl.DataFrame(
        {
            "group": [0, 0, 0, 1, 1, 1],
            "age": ["[35-40]"] * 3 + ["[41-42]"] * 3,
            "gender": ["*"] * 3 + ["Female"] * 3,
            "zip": ["[12000-13000]"] * 3 + ["[13000-14000]"] * 3,
            "disease": [*VALUES, *VALUES],
        }
    )
    from reveil.write.emit import emit

    emit({"table": table}, pl.DataFrame({"group": [0, 1], "count": [0, 0]}), loaded, public)
    people = sorted({p for release in PAPER for members, _ in release for p in members})
    members = [(people.index(p), g) for g, (names, _) in enumerate(PAPER[1]) for p in names]
    truth = Truth(6, 0, members=pl.DataFrame(members, schema=["person", "group"], orient="row"))
    past = lasting.history_of(numbered(PAPER)[:1])
    past = type(past)(
        head=1,
        members=past.members,
        groups=past.groups,
        values=past.values.with_columns(pl.lit("disease").alias("column")),
        codebook={"disease": list(VALUES)},
    )
    found = verify(public, loaded, past, truth)
    assert not found.holds
    assert [v.holds for v in found.verdicts] == [False]
    assert all(check.holds for check in found.checks)


def test_a_changed_value_is_refused(tmp_path):
    series = open_series(policy(MODELS["compromise-safety"]), home=tmp_path / "home")
    series.publish(FIRST, seed=1)
    changed = FIRST.with_columns(pl.lit("flu").alias("disease"))
    with pytest.raises(InputError, match="rules out changes"):
        series.publish(changed, seed=1)


def test_too_frequent_values_are_refused_with_numbers(tmp_path):
    series = open_series(policy(MODELS["compromise-safety"]), home=tmp_path / "home")
    skewed = FIRST.with_columns(pl.Series("disease", ["flu"] * 4 + ["AIDS", "cancer"]))
    with pytest.raises(InfeasibleError, match=r"'flu' occurs 4 times: with 1 person known .* 4/5") as refusal:
        series.publish(skewed, seed=1)
    assert refusal.value.faults[0].code == "R420"
    assert "withholds 3 rows" in str(refusal.value)


def test_rows_are_withheld_after_l_releases(tmp_path):
    for model in (*MODELS, "m-invariance"):
        guarantee = MODELS.get(model, {"model": "m-invariance", "m": 3})
        series = open_series(policy({**guarantee, "L": 2}, infeasible="withhold"), home=tmp_path / model)
        newcomers = FIRST.with_columns(pl.Series("name", ["Ida", "Jane", "Kim", "Lea", "Mia", "Nina"]))
        tables = [FIRST, FIRST, pl.concat([FIRST, newcomers])]
        same = ["same-table"]
        withheld = [series.publish(table, seed=1, accept=same).certificate.withheld for table in tables]
        assert withheld[:2] == [{}, {}]
        assert withheld[2] == {"published L times already": 6}


def test_n_choose_and_its_curve():
    p, h = Fraction(4, 100), Fraction(1, 10)
    expected = {21: 2, 22: 2, 23: 3, 24: 3, 25: None}
    assert {L: n_choose(p, L, 6, h).n for L in expected} == expected
    curve = [round(float(f), 4) for f in n_choose(p, 21, 6, h).curve]
    assert curve == [0.9707, 0.0806, 0.0636, 0.0632, 0.0632, 0.0632]
    assert [round(float(p_pb(p, 6, n, 24)), 4) for n in range(1, 7)] == [0.9858, 0.1192, 0.0956, 0.0951, 0.0951, 0.0951]
    assert p_hc(p, 6, 1, 1) == 1 - (1 - Fraction(1, 30)) ** 6
    assert set(figure_2()) == {"a", "b", "c"}
    guarantee = load_policy(policy({"model": "historical-safety", "m": 6, "p": 0.04, "L": 25, "h": 0.1})).guarantee
    with pytest.raises(InputError, match=r"lower L to 24") as refusal:
        degree(guarantee.require(HistoricalSafety))
    assert refusal.value.faults[0].code == "R421"


def test_report_and_certificate_name_the_adversary(tmp_path):
    series = open_series(policy(MODELS["compromise-safety"], infeasible="withhold"), home=tmp_path / "home")
    release = series.publish(FIRST, seed=1)
    content = json.loads((release.path / "private" / "certificate.json").read_text(encoding="utf-8"))
    assert "true values of any 1 person" in content["verdicts"][0]["details"]["adversary"]
