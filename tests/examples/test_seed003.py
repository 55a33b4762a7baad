"""Seed 003, section I: Tables I to VI, published by us; what the judge says of the paper's own releases."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

import reveil
from properties import lasting
from reveil.background.update_graph import update_graph
from reveil.base.errors import InfeasibleError, InputError
from reveil.policy.policy import load_policy
from reveil.verify.judges.contract import Background
from reveil.verify.judges.registry import judges

UPDATES = {
    "Dyspepsia": ["Gastritis"],
    "Gastritis": ["Dyspepsia"],
    "Pneumonia": ["Lung Cancer", "Flu"],
    "Flu": ["Pneumonia", "Lung Cancer"],
    "Glaucoma": ["Cataract"],
}
BLOCKS = [
    ["Dyspepsia", "Gastritis", "Colitis"],
    ["Pneumonia", "Flu", "Lung Cancer"],
    ["Glaucoma", "Cataract", "Uveitis"],
]
EVEN = {disease: block for block in BLOCKS for disease in block}
NAMES = ["Ken", "Julia", "Tom", "Harry", "Lily", "Ben"]
FIRST = ["Dyspepsia", "Pneumonia", "Pneumonia", "Gastritis", "Glaucoma", "Flu"]
SECOND = ["Dyspepsia", "Lung Cancer", "Pneumonia", "Dyspepsia", "Glaucoma", "Pneumonia"]
TABLE_I = pl.DataFrame(
    {"Name": NAMES, "Zip": [14, 16, 24, 26, 29, 31], "H": [20, 23, 32, 35, 17, 19], "Disease": FIRST}
)
TABLE_II = pl.DataFrame(
    {"Name": NAMES, "Zip": [14, 18, 15, 23, 12, 26], "H": [20, 31, 27, 32, 17, 35], "Disease": SECOND}
)
KEN, JULIA, TOM, HARRY, LILY, BEN = range(6)
TABLE_III = [
    ((KEN, JULIA), ("Dyspepsia", "Pneumonia")),
    ((TOM, HARRY), ("Pneumonia", "Gastritis")),
    ((LILY, BEN), ("Glaucoma", "Flu")),
]
TABLE_IV = [
    ((KEN, LILY), ("Dyspepsia", "Glaucoma")),
    ((JULIA, TOM), ("Lung Cancer", "Pneumonia")),
    ((HARRY, BEN), ("Dyspepsia", "Pneumonia")),
]
TABLE_V = [
    ((KEN, TOM), ("Dyspepsia", "Pneumonia")),
    ((JULIA, HARRY), ("Lung Cancer", "Dyspepsia")),
    ((LILY,), ("Glaucoma", "Pneumonia")),
    ((BEN,), ("Pneumonia", "Cataract")),
]


def policy(model="m-distinct", sensitive="Disease", transitions=UPDATES):
    columns = {"Name": "identifier", "Zip": "quasi", "H": "quasi", sensitive: "sensitive"}
    return {
        "columns": columns,
        "values": {"change": "transitions", "transitions": transitions},
        "guarantee": {"model": model, "m": 2, "view": "individual"},
    }


def test_tables_3_and_4_are_refused_and_table_5_is_not():
    (judge,) = judges(load_policy(policy(sensitive="illness")), Background())
    diverse = lasting.judged(judge, [TABLE_III, TABLE_IV])
    assert [v.holds for v in diverse] == [True, False]
    assert diverse[1].worst == 1  # Ben, among others, is certain
    assert diverse[1].violating_classes == 3
    counterfeited = lasting.judged(judge, [TABLE_III, TABLE_V])
    assert [v.holds for v in counterfeited] == [True, True]


def test_julia_and_ben_followed_alone():
    julia = update_graph([["Dyspepsia", "Pneumonia"], ["Lung Cancer", "Pneumonia"]], UPDATES)
    assert julia.risk(["Pneumonia", "Lung Cancer"]) == (1, Fraction(1, 2))
    ben = update_graph([["Glaucoma", "Flu"], ["Dyspepsia", "Pneumonia"]], UPDATES)
    assert ben.risk(["Flu", "Pneumonia"]) == (1, 1)
    protected = update_graph([["Glaucoma", "Flu"], ["Pneumonia", "Cataract"]], UPDATES)
    assert protected.possible(0) == ["Glaucoma", "Flu"] and protected.possible(1) == ["Pneumonia", "Cataract"]


@pytest.mark.parametrize("transitions", [UPDATES, EVEN])
def test_our_releases_of_tables_1_and_2(transitions, tmp_path):
    model = "m-distinct" if transitions is UPDATES else "m-distinct-star"
    series = reveil.open_series(policy(model, transitions=transitions), home=tmp_path / "home")
    first = series.publish(TABLE_I, seed=1)
    second = series.publish(TABLE_II, seed=1)
    for release in (first, second):
        assert release.certificate.holds and (release.groups >= 0).all()
        assert set(release.table["group"].value_counts()["count"]) == {2}
    for person, values in enumerate(zip(FIRST, SECOND, strict=True)):
        graph = update_graph([shown_with(release, person) for release in (first, second)], transitions)
        assert all(len(graph.possible(n)) == 2 for n in range(2))
        assert max(graph.risk(values)) < 1
        assert model == "m-distinct" or set(graph.risk(values)) == {Fraction(1, 2)}  # Lemma 4
    assert "Update graph of one person" in (second.path / "private" / "report.html").read_text()
    assert "Update graph of one person" not in (second.path / "private" / "report-external.html").read_text()
    assert all(found.holds for found in series.verify().values())


def test_the_star_of_the_paper_needs_update_sets_of_one_size(tmp_path):
    series = reveil.open_series(policy("m-distinct-star"), home=tmp_path / "home")
    series.publish(TABLE_I, seed=1)
    with pytest.raises(InfeasibleError, match=r"R452.*likelier than 1/2.*lemma"):
        series.publish(TABLE_II, seed=1)


def shown_with(release, person):
    return release.table.filter(pl.col("group") == release.groups[person])["Disease"].to_list()


def test_an_update_that_is_not_in_the_relation_is_refused(tmp_path):
    series = reveil.open_series(policy(), home=tmp_path / "home")
    series.publish(TABLE_I, seed=1)
    wrong = TABLE_II.with_columns(Disease=pl.Series([*SECOND[:4], "Flu", "Cataract"]))
    with pytest.raises(InputError, match=r"R311.*Glaucoma.*Flu.*\(1\)|R311.*Flu.*Cataract.*\(1\)"):
        series.publish(wrong)
