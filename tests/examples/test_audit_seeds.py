"""Every inference of the papers and the slides, found from the published tables, and told in words."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

import reveil
from reveil.audit.audit import audit
from reveil.audit.input.observed import from_groups
from reveil.audit.result.screen import ever_text


def table(columns, *rows):
    return pl.DataFrame([list(row) for row in rows], schema=list(columns), orient="row")


def exposed(found):
    """(person, release) -> value, of those who were not known."""
    rows = found.certain.filter(~pl.col("known"))
    return {(p, r): v for p, r, v in rows.select("person", "release", "value").iter_rows()}


def belief(found, person, release="1"):
    rows = found.posterior.filter((pl.col("person") == person) & (pl.col("release") == release))
    return {v: Fraction(p).limit_denominator(10**6) for v, p in rows.select("value", "probability").iter_rows()}


def letters(*groups, signature=None):
    """Groups of single-character people, each with the first letters as values."""
    return [(tuple(g), "abcdefghijkl"[: signature or len(g)]) for g in groups]


# --- seed 000: values that change freely ----------------------------------------------------------------------------

PEOPLE_000 = table(
    ("id", "Sex", "Zipcode", "release"),
    ("o1", "M", "65001", 1), ("o2", "M", "65002", 1), ("o3", "F", "65014", 1), ("o4", "F", "65015", 1),
    ("o1", "M", "65001", 2), ("o2", "M", "65002", 2), ("o3", "F", "65014", 2), ("o5", "F", "65010", 2),
)  # fmt: skip


@pytest.mark.parametrize(
    ("sex", "zips", "linked"),
    [(("M", "F"), ("6500*", "6501*"), Fraction(3, 4)), (("*", "*"), ("650**", "650**"), Fraction(7, 16))],
)
def test_seed_000_figures_2_and_4(sex, zips, linked):
    one = table(
        ("Sex", "Zipcode", "Disease"),
        (sex[0], zips[0], "flu"),
        (sex[0], zips[0], "chlamydia"),
        (sex[1], zips[1], "flu"),
        (sex[1], zips[1], "fever"),
    )
    two = table(
        ("Sex", "Zipcode", "Disease"),
        (sex[0], zips[0], "chlamydia"),
        (sex[0], zips[0], "flu"),
        (sex[1], zips[1], "fever"),
        (sex[1], zips[1], "flu"),
    )
    found = audit([one, two], PEOPLE_000, change="freely")
    person, value = found.observed.persons.to_list().index("o2"), found.observed.values.index("chlamydia")
    assert found.score.ever[person, value] == pytest.approx(float(linked))
    assert exposed(found) == {}
    told = ever_text(audit([one, two], PEOPLE_000, change="freely", people=["o2"]), person)
    if linked == Fraction(3, 4):
        assert told in {
            f"o2, over all releases: {v} at least once, with 0.7500 = 1 - (1 - 0.5000) x (1 - 0.5000)."
            for v in ("chlamydia", "flu")
        }


# --- seed 002: values that never change -----------------------------------------------------------------------------

PEOPLE_002 = table(
    ("Name", "Age", "Gender", "Zip", "release"),
    ("Alice", 33, "Female", 12000, 1), ("Betty", 31, "Female", 11000, 1), ("Carl", 35, "Male", 12000, 1),
    ("Doris", 40, "Female", 13000, 1), ("Erica", 41, "Female", 14000, 1), ("Fiona", 37, "Female", 13000, 1),
    ("Carl", 35, "Male", 12000, 2), ("Doris", 40, "Female", 13000, 2), ("Fiona", 37, "Female", 13000, 2),
    ("Erica", 41, "Female", 14000, 2), ("Grace", 42, "Female", 13000, 2), ("Hanna", 42, "Female", 13000, 2),
)  # fmt: skip
BOX = {
    1: ("[31,35]", "*", "[11000,12000]"),
    2: ("[37,41]", "Female", "[13000,14000]"),
    3: ("[35,40]", "*", "[12000,13000]"),
    4: ("[41,42]", "Female", "[13000,14000]"),
}
TABLE_1B = table(
    ("Age", "Gender", "Zip", "Disease"), *((*BOX[g], d) for g in (1, 2) for d in ("cancer", "bronchitis", "AIDS"))
)
TABLE_1D = table(
    ("Age", "Gender", "Zip", "Disease"), *((*BOX[g], d) for g in (3, 4) for d in ("cancer", "bronchitis", "AIDS"))
)


def test_seed_002_example_1():
    before = audit([TABLE_1B, TABLE_1D], PEOPLE_002, sensitive="Disease")
    assert exposed(before) == {}
    assert set(before.posterior["probability"].round(9)) == {round(1 / 3, 9)}
    after = audit([TABLE_1B, TABLE_1D], PEOPLE_002, sensitive="Disease", compromised=["Carl=AIDS"])
    assert exposed(after) == {("Erica", "1"): "AIDS", ("Erica", "2"): "AIDS"}
    half = {"cancer": Fraction(1, 2), "bronchitis": Fraction(1, 2)}
    assert all(belief(after, p) == half for p in ("Alice", "Betty", "Doris", "Fiona"))
    assert all(belief(after, p, "2") == half for p in ("Grace", "Hanna"))
    told = str(after.explain("Erica"))
    assert told.startswith("Carl is known to have AIDS. Release 2 group")
    assert "are the same people except Carl and Erica, and show the same values. So Erica has AIDS." in told
    assert "Withholding release 2 group 1 would have prevented this" in told


COUNTEREXAMPLES = {
    "triangle": ([letters("012"), letters("034"), letters("135")], "3", {"2"}),
    "triangle with lifespans": ([letters("012"), letters("034", "167"), letters("135")], "3", {"2"}),
    "union": ([letters("0123", "4567"), letters("0145", "2368")], "8", {"7"}),
    "union of six": ([letters("123456", "789abc"), letters("123789", "456abd")], "d", {"c"}),
    "star": ([letters("123456"), letters("s12378"), letters("s459ab")], "s", {"6"}),
    "merge": ([letters("012", "345"), [(tuple("012346"), "aabbcc")]], "6", {"5"}),
    "merge of two": ([letters("01", "23"), [(tuple("0124"), "aabb")]], "4", {"3"}),
    "chain": ([letters("1234"), letters("1256"), letters("5783"), letters("4789")], "3", {"6", "9"}),
    "counterfeit": ([letters("abc"), [(("a", "b"), "abc")], letters("abd")], "c", {"d"}),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_what_pairwise_tests_miss(name):
    series, known, revealed = COUNTEREXAMPLES[name]
    assert exposed(audit(from_groups(series))) == {}
    found = audit(from_groups(series), compromised=[f"{known}=a"])
    assert {p for p, _ in exposed(found)} >= revealed
    for person in revealed:
        told = found.explain(person)
        assert told.sentences[-1].startswith(f"So {person} has a")
        assert len(told.groups) > 1


def test_grid_and_harmless_counterfeit():
    grid = [letters("012", "345", "678"), letters("036", "147", "258"), letters("048", "156", "237")]
    assert {p for p, _ in exposed(audit(from_groups(grid), compromised=["0=a"]))} >= {"5"}
    laundered = [[(("a", "b"), "abc")], letters("abd")]
    assert exposed(audit(from_groups(laundered), compromised=["d=a"])) == {}


def test_global_lemma_is_no_bound_when_values_persist():
    found = audit(from_groups([[("AB", "xy")], [("AC", "xz")]]))
    assert exposed(found) == {("A", "1"): "x", ("A", "2"): "x", ("B", "1"): "y", ("C", "2"): "z"}
    again = audit(from_groups([[("AB", "xy")]] * 5))
    assert belief(again, "A", "5") == {"x": Fraction(1, 2), "y": Fraction(1, 2)}
    tuples = audit(from_groups([[("A", "aaab")]]))
    assert belief(tuples, "A") == {"a": Fraction(3, 4), "b": Fraction(1, 4)}


# --- seed 003: values that change by a relation ---------------------------------------------------------------------

UPDATES = {
    "Dyspepsia": ["Gastritis"], "Gastritis": ["Dyspepsia"], "Pneumonia": ["Lung Cancer", "Flu"],
    "Flu": ["Pneumonia"], "Glaucoma": ["Cataract"], "Lung Cancer": [], "Cataract": [],
}  # fmt: skip
PEOPLE_003 = table(
    ("Name", "Zip", "H", "release"),
    ("Ken", 14, 20, 1), ("Julia", 16, 23, 1), ("Tom", 24, 32, 1),
    ("Harry", 26, 35, 1), ("Lily", 29, 17, 1), ("Ben", 31, 19, 1),
    ("Ken", 14, 20, 2), ("Julia", 18, 31, 2), ("Tom", 15, 27, 2),
    ("Harry", 23, 32, 2), ("Lily", 12, 17, 2), ("Ben", 26, 35, 2),
)  # fmt: skip
COLUMNS = ("Zip", "H", "Disease")
TABLE_III = table(
    COLUMNS,
    ("[14,16]", "[20,23]", "Dyspepsia"),
    ("[14,16]", "[20,23]", "Pneumonia"),
    ("[24,26]", "[32,35]", "Pneumonia"),
    ("[24,26]", "[32,35]", "Gastritis"),
    ("[29,31]", "[17,19]", "Glaucoma"),
    ("[29,31]", "[17,19]", "Flu"),
)
TABLE_IV = table(
    COLUMNS,
    ("[12,14]", "[17,20]", "Dyspepsia"),
    ("[12,14]", "[17,20]", "Glaucoma"),
    ("[15,18]", "[27,31]", "Lung Cancer"),
    ("[15,18]", "[27,31]", "Pneumonia"),
    ("[23,26]", "[32,35]", "Dyspepsia"),
    ("[23,26]", "[32,35]", "Pneumonia"),
)
TABLE_V = table(
    ("group", *COLUMNS),
    (1, "[14,15]", "[19,27]", "Dyspepsia"),
    (1, "[14,15]", "[19,27]", "Pneumonia"),
    (2, "[18,23]", "[31,32]", "Lung Cancer"),
    (2, "[18,23]", "[31,32]", "Dyspepsia"),
    (3, "[10,25]", "[16,17]", "Glaucoma"),
    (3, "[10,25]", "[16,17]", "Pneumonia"),
    (4, "[26,27]", "[35,37]", "Pneumonia"),
    (4, "[26,27]", "[35,37]", "Cataract"),
)
TABLE_VI = table(("group", "count"), (3, 1), (4, 1))


def test_seed_003_tables_3_and_4():
    found = audit([TABLE_III, TABLE_IV], PEOPLE_003, transitions=UPDATES)
    sure = exposed(found)
    assert {p: v for (p, r), v in sure.items() if r == "1"} == {
        "Ken": "Dyspepsia",
        "Julia": "Pneumonia",
        "Tom": "Pneumonia",
        "Harry": "Gastritis",
        "Lily": "Glaucoma",
        "Ben": "Flu",
    }
    assert sure["Ben", "2"] == "Pneumonia"
    assert set(belief(found, "Julia", "2")) == {"Lung Cancer", "Pneumonia"}
    assert found.inference.posterior  # the two worlds were counted
    assert "no possible change links" in str(found.explain("Ben"))


def test_seed_003_tables_5_and_6():
    found = audit([TABLE_III, TABLE_V], PEOPLE_003, transitions=UPDATES, counterfeits=[None, TABLE_VI])
    assert exposed(found) == {}
    assert len(belief(found, "Ben", "1")) == len(belief(found, "Ben", "2")) == 2
    known = audit(
        [TABLE_III, TABLE_V],
        PEOPLE_003,
        transitions=UPDATES,
        counterfeits=[None, TABLE_VI],
        compromised=["Ken@1=Dyspepsia"],
    )
    assert {p for p, _ in exposed(known)} >= {"Julia", "Tom", "Harry"}


def relation(text):
    """`a=acdf b=bdef`: what each value may become (itself listed)."""
    return {item[0]: list(item[2:]) for item in text.split()}


@pytest.mark.parametrize(
    ("updates", "series", "sure"),
    [
        (
            "a=acdf b=bdef x=xce y=ydf",
            [[("AB", "ab"), ("CD", "xy")], [("AC", "cd"), ("BD", "ef")]],
            {("A", "1"): "a", ("B", "1"): "b"},
        ),
        (
            "a=adfgh b=bcegh c=ch d=dg e=eg f=fgh",
            [[("AB", "ab")], [("A", "cd"), ("B", "ef")], [("AB", "gh")]],
            {("A", "1"): "b", ("B", "1"): "a", ("A", "3"): "h"},
        ),
    ],
)
def test_individual_lemmas_fail_jointly(updates, series, sure):
    found = audit(from_groups(series), transitions=relation(updates))
    assert sure.items() <= exposed(found).items()


def test_one_world_for_everybody():
    found = audit(
        from_groups([[("AB", "ab"), ("CD", "xy")], [("AC", "cd"), ("BD", "ef")]]),
        transitions=relation("a=adf b=bce x=xde y=ycef"),
    )
    assert len(exposed(found)) == 8


def test_three_distinct_star():
    updates = relation("a=ap1 b=bq2 c=cr3 d=dp2 e=eq1 f=fr3")
    found = audit(
        from_groups([[("ABC", "abc"), ("DEF", "def")], [("ABD", "pqr"), ("CEF", "123")]]), transitions=updates
    )
    assert {p for p, _ in exposed(found)} >= {"C", "D"}


def test_no_world_is_said():
    with pytest.raises(reveil.ReveilError, match="R722"):
        audit(from_groups([[("ABC", "abc")], [("ABC", "def")]]), transitions=relation("a=ade b=bf c=cf"))


def test_unequal_update_sets():
    updates = {"a": [f"a{n}" for n in range(1, 10)], "b": []}
    open_group = audit(from_groups([[("AB", ("a", "b"))], [("AC", ("a1", "b"))]]), transitions=updates)
    assert belief(open_group, "A")["b"] == Fraction(10, 11)
    closed = audit(from_groups([[("AB", ("a", "b"))], [("AB", ("a1", "b"))]]), transitions=updates)
    assert belief(closed, "A") == {"a": Fraction(1, 2), "b": Fraction(1, 2)}


# --- seed 004 and the slides ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("other", "expected"), [((0.9, 0.997), 0.9736), ((0.5, 0.5), 0.9709)])
def test_seed_004_alan_from_an_anatomy(other, expected):
    voters = table(
        ("Name", "Gender", "Age"),
        ("Alan", "Male", 41),
        ("Betty", "Female", 42),
        ("Catherine", "Female", 63),
        ("Diana", "Female", 64),
    )
    quasi = table(
        ("Gender", "Age", "GID"), ("Male", 41, "L1"), ("Female", 42, "L1"), ("Female", 63, "L2"), ("Female", 64, "L2")
    )
    values = table(("GID", "Disease"), ("L1", "Lung Cancer"), ("L1", "Hypertension"), ("L2", "Flu"), ("L2", "HIV"))
    priors = {
        "Alan": {"Lung Cancer": 0.1, "Hypertension": other[0]},
        "Betty": {"Lung Cancer": 0.003, "Hypertension": other[1]},
    }
    found = audit([(quasi, values)], voters, adversary={"priors": priors})
    assert float(belief(found, "Alan")["Lung Cancer"]) == pytest.approx(expected, abs=5e-5)
    assert belief(found, "Diana") == {"Flu": Fraction(1, 2), "HIV": Fraction(1, 2)}


def test_slides_homogeneity_and_background_knowledge():
    published = table(
        ("Zip", "Age", "Disease"),
        ("476**", "2*", "Heart"), ("476**", "2*", "Heart"), ("476**", "2*", "Heart"),
        ("4790*", "≥40", "Flu"), ("4790*", "≥40", "Heart"), ("4790*", "≥40", "Cancer"),
        ("476**", "3*", "Heart"), ("476**", "3*", "Cancer"), ("476**", "3*", "Cancer"),
    )  # fmt: skip
    people = table(("Name", "Zip", "Age", "release"), ("Bob", "47678", 27, 1), ("Umeko", "47673", 36, 1))
    found = audit(published, people, presence="known")
    assert exposed(found) == {("Bob", "1"): "Heart"}
    assert "Everybody in release 1 group" in str(found.explain("Bob"))
    assert {a.name: a.rate for a in found.attacks}["homogeneity"] == 0.5
    assert {a.name: a.rate for a in found.attacks}["background knowledge"] == 1.0
    knowing = audit(published, people, adversary={"priors": {"Umeko": {"Cancer": 1, "Heart": 0}}})
    assert exposed(knowing)["Umeko", "1"] == "Cancer"
