"""Linking people with releases, against counting by hand; and questions to an anatomy, against all worlds."""

from __future__ import annotations

import datetime
import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import reveil
from reveil.base.errors import ExposedError, InputError
from reveil.cli.app import app
from reveil.measure.ask import ask
from reveil.measure.link import link, sentences
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy
from reveil.published.notation import parse_cell
from reveil.published.reader import open_published

AGES = st.integers(20, 24)
SEXES = st.sampled_from("FM")
CELLS = st.sampled_from(["20", "21", "[20-22]", "[22-24]", "{20,24}", "*", ">=23", "2*"])
SEX_CELLS = st.sampled_from(["F", "M", "*", "{F,M}"])


@settings(max_examples=40)
@given(
    st.lists(st.tuples(AGES, SEXES), min_size=1, max_size=8),
    st.lists(st.tuples(CELLS, SEX_CELLS, st.sampled_from(["flu", "HIV"])), min_size=1, max_size=8),
    st.booleans(),
)
def test_linking_is_counting_rows_and_rivals(
    people: list[tuple[int, str]], rows: list[tuple[str, str, str]], present: bool
) -> None:
    listed = pl.DataFrame(people, schema=["age", "sex"], orient="row").with_row_index("name").cast({"name": pl.String})
    published = pl.DataFrame(rows, schema=["age", "sex", "ill"], orient="row")
    found = link(published, listed, by=["age", "sex"], name="name", present=present).people

    def covers(row: tuple[str, str, str], person: tuple[int, str]) -> bool:
        return parse_cell(row[0], numeric=True).covers(person[0]) and parse_cell(row[1]).covers(person[1])

    for person, line in zip(people, found.to_dicts(), strict=True):
        fitting = [row for row in rows if covers(row, person)]
        rivals = min((sum(covers(row, other) for other in people) for row in fitting), default=0)
        assert line["rows"] == len(fitting)
        assert line["people"] == rivals
        size = len(fitting) if present else max(len(fitting), rivals)
        assert line["confidence"] == (1 / size if fitting else 0)
        ills = [row[2] for row in fitting]
        most = max((ills.count(ill) for ill in ills), default=0)
        assert line["ill chance"] == (most / len(ills) if ills else 0)
        assert not ills or ills.count(line["ill"]) == most


def test_before_and_after_a_release(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(200)],
            "age": rng.integers(20, 80, 200),
            "zip": rng.choice(["47677", "47602", "02139", "10115"], 200),
            "born": [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 9000, 200)],
            "ill": rng.choice(["flu", "cold", "gout"], 200),
        }
    )
    columns = {"name": "identifier", "age": "quasi", "zip": {"role": "quasi", "prefixes": [3]}, "born": "quasi"}
    policy = {"columns": {**columns, "ill": "sensitive"}, "guarantee": {"k": 5}}
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    voters = table.drop("ill")
    for published in (release, tmp_path / "out", tmp_path / "out" / "public" / "table.csv"):
        found = link(published, voters, policy, original=table)
        assert found.summary["before"]["certain"] > 190
        assert found.summary["after"]["certain"] == 0
        assert found.people["rows"].min() >= 5
        assert found.people["confidence"].max() <= 0.2
        assert found.people.columns[:4] == ["name", "age", "zip", "born"]
    text = " ".join(sentences(found))
    assert "a list of 200 people with age, zip, born" in text
    assert "0 are found for certain" in text


def test_labels_of_a_hierarchy_and_people_beyond_it(tmp_path: Path) -> None:
    """The list has places that the hierarchy does not know; a label without its hierarchy is named, not passed over."""
    published = pl.DataFrame({"town": ["North", "North", "Ulm"], "ill": ["flu", "flu", "gout"]})
    people = pl.DataFrame({"who": ["a", "b", "c", "d"], "town": ["Kiel", "Bonn", "Ulm", "Rome"]})
    hierarchy = {"North": ["Kiel", "Bonn"], "South": ["Ulm"]}
    policy = {
        "columns": {"who": "identifier", "town": {"role": "quasi", "hierarchy": hierarchy}, "ill": "sensitive"},
        "guarantee": {"k": 2},
    }
    found = link(published, people, policy)
    assert found.people["rows"].to_list() == [2, 2, 1, 0]
    assert found.people["confidence"].to_list() == [0.5, 0.5, 1.0, 0.0]
    assert found.people["ill"].to_list() == ["flu", "flu", "gout", None]
    assert found.found["who"].to_list() == ["c"]
    assert found.summary["after"]["values"] == {"ill": 3}
    blind = link(published, people)
    assert blind.summary["fit nobody"] == {"town": {"count": 1, "such as": ["'North'"]}}
    assert any("'North'" in line for line in sentences(blind))


def test_what_is_not_known_of_a_person_rules_nothing_out() -> None:
    published = pl.DataFrame({"age": ["20", "[20-29]", "30"], "sex": ["F", "F", "M"]})
    people = pl.DataFrame({"who": ["a", "b", "c"], "age": [20, None, 30], "sex": ["F", "F", None]})
    found = link(published, people)
    assert found.people["rows"].to_list() == [2, 2, 1]
    assert found.people["people"].to_list() == [2, 2, 1]


def test_anatomy_hides_values_and_not_people() -> None:
    table = pl.DataFrame({"age": list(range(20, 40)), "ill": ["flu", "cold", "gout", "ache"] * 5})
    policy = {
        "columns": {"age": "quasi", "ill": "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 4},
        "method": {"publish": "anatomy", "people": "exact"},
    }
    release = reveil.anonymize(table, policy, seed=1)
    people = pl.DataFrame({"who": [f"p{i}" for i in range(20)], "age": list(range(20, 40))})
    found = link(release, people, policy)
    assert found.summary["after"]["certain"] == 20
    assert release.values is not None
    shares = release.values["ill"].select(pl.col("count") / pl.col("count").sum().over("group")).to_series()
    assert found.people["ill chance"].max() == shares.max()
    assert found.summary["after"]["values"] == {"ill": 0}


def test_many_people_and_classes() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.integers(0, 300, 40_000), "b": rng.integers(0, 300, 40_000)})
    people = table.with_row_index("who")
    exact = link(table.cast(pl.String), people, by=["a", "b"], name="who")
    counts = table.group_by("a", "b").len().filter(pl.col("len") == 1).height
    assert exact.summary["after"]["certain"] == counts
    tens = table.select(pl.format("[{}-{}]", pl.col(c) // 10 * 10, pl.col(c) // 10 * 10 + 9).alias(c) for c in "ab")
    wide = link(tens, people, by=["a", "b"], name="who")
    sizes = table.group_by(pl.col("a") // 10, pl.col("b") // 10).len()
    assert wide.people["rows"].min() == sizes["len"].min()
    assert (wide.people["rows"] == wide.people["people"]).all()


@pytest.mark.parametrize(
    ("people", "how", "part"),
    [
        ({"who": ["a"], "height": [1]}, {}, "no column in common"),
        ({"who": ["a"], "age": [20], "city": ["x"]}, {}, "2 columns that are not compared"),
        ({"who": ["a"], "age": [20]}, {"name": "whom"}, "no column 'whom'"),
        ({"who": ["a"], "age": [20]}, {"by": ["age", "zip"]}, "no column 'zip'"),
        ({"who": pl.Series([], dtype=pl.String), "age": pl.Series([], dtype=pl.Int64)}, {}, "has no rows"),
    ],
)
def test_lists_that_cannot_be_linked(people: dict[str, Any], how: dict[str, Any], part: str) -> None:
    published = pl.DataFrame({"age": ["2*"], "ill": ["flu"]})
    with pytest.raises(InputError) as refusal:
        link(published, pl.DataFrame(people), **how)
    assert {fault.code for fault in refusal.value.faults} == {"R730"}
    assert part in str(refusal.value)


def test_link_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"age": ["29", "4*", "4*"], "ill": ["flu", "cold", "flu"]}).write_csv("published.csv")
    pl.DataFrame({"name": ["Ann", "Bob"], "age": [29, 41]}).write_csv("voters.csv")
    run = CliRunner().invoke(app, ["link", "published.csv", "voters.csv", "-o", "people.csv"])
    assert isinstance(run.exception, ExposedError)
    assert run.exception.faults[0].code == "R731"
    assert "1 are found for certain" in run.stdout
    assert pl.read_csv("people.csv")["confidence"].to_list() == [1.0, 0.5]
    as_json = CliRunner().invoke(app, ["link", "published.csv", "voters.csv", "--json"])
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["after"]["certain"] == 1
    pl.DataFrame({"age": ["*", "4*", "4*"], "ill": ["flu", "cold", "flu"]}).write_csv("published.csv")
    how = ["--by", "age", "--name", "name"]
    safe = CliRunner().invoke(app, ["link", "published.csv", "voters.csv", *how])
    assert safe.exit_code == 0
    there = CliRunner().invoke(app, ["link", "published.csv", "voters.csv", *how, "--present"])
    assert isinstance(there.exception, ExposedError)  # Ann's is the only row that fits her


# --- questions to an anatomy ---------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from("xyz")), min_size=1, max_size=7),
    st.sampled_from(["0", "[1-2]", "*", "{0,3}"]),
    st.sampled_from(["x", "{x,y}", "*"]),
)
def test_answers_are_those_of_all_worlds(rows: list[tuple[int, int, str]], age: str, value: str) -> None:
    """A world gives the values of each group to its people in some order; all orders are equally likely."""
    table = pl.DataFrame(rows, schema=["group", "age", "ill"], orient="row")
    counts = table.group_by("group", "ill").len("count").cast({"count": pl.Int64})
    found = ask((table.select("group", "age"), {"ill": counts}), {"age": age, "ill": value})
    ages, values = parse_cell(age, numeric=True), parse_cell(value)
    by_group = []
    for group in table["group"].unique():
        inside = [row for row in rows if row[0] == group]
        match = [ages.covers(row[1]) for row in inside]
        orders = itertools.permutations([values.covers(row[2]) for row in inside])
        by_group.append([sum(a and b for a, b in zip(match, order, strict=True)) for order in orders])
    assert found.expected == sum((Fraction(sum(world), len(world)) for world in by_group), Fraction(0))
    assert found.least == sum(min(world) for world in by_group)
    assert found.most == sum(max(world) for world in by_group)
    variance = sum(np.var(world) for world in by_group)
    assert found.deviation == pytest.approx(variance**0.5, abs=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4),
    st.lists(st.sampled_from("xyz"), min_size=4, max_size=6),
    st.sampled_from(["1", "[1-2]", "*", "{0,3}", ">=2"]),
    st.sampled_from(["x", "{x,y}"]),
)
def test_answers_about_boxes_are_those_of_all_worlds(
    rows: list[tuple[int, int, int]], shown: list[str], age: str, value: str
) -> None:
    """People may have any age of their box, and of the values of their group (more than people) any, in any order."""
    groups = sorted({group for group, _, _ in rows})
    boxes = [(group, low, low + width) for group, low, width in rows]
    people = pl.DataFrame(
        [(g, f"[{a}-{b}]" if a < b else str(a)) for g, a, b in boxes], schema=["group", "age"], orient="row"
    )
    counts = Counter((group, text) for group in groups for text in shown)
    table = pl.DataFrame(
        [(g, text, n) for (g, text), n in counts.items()], schema=["group", "ill", "count"], orient="row"
    )
    found = ask((people, {"ill": table}), {"age": age, "ill": value})
    ages, values = parse_cell(age, numeric=True), parse_cell(value)
    expected, variance, least, most = Fraction(0), 0.0, 0, 0
    for group in groups:
        mine = [[ages.covers(x) for x in range(a, b + 1)] for g, a, b in boxes if g == group]
        having = [values.covers(text) for text in shown]
        worlds = [
            sum(a and b for a, b in zip(match, order, strict=True))
            for match in itertools.product(*mine)
            for order in itertools.permutations(having, len(mine))
        ]
        expected += Fraction(sum(worlds), len(worlds))
        variance += float(np.var(worlds))
        least, most = least + min(worlds), most + max(worlds)
    assert found.expected == expected
    assert (found.least, found.most) == (least, most)
    assert found.deviation == pytest.approx(variance**0.5, abs=1e-9)


def test_questions_to_a_release_on_disk(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "zip": ["02139", "02140"] * 20,
            "age": list(range(20, 60)),
            "ill": ["flu", "cold"] * 20,
            "drug": ["a", "b", "c", None] * 10,
        }
    )
    policy = {
        "columns": {"zip": "quasi", "age": "quasi", "ill": "sensitive", "drug": "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 2},
        "method": {"publish": "anatomy", "people": "exact"},
    }
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    for published in (release, tmp_path / "out", tmp_path / "out" / "public"):
        assert ask(published, {"ill": "flu"}).expected == 20
        assert ask(published, {"zip": "02139"}).expected == 20
        assert ask(published, {"drug": None}).expected == 10
        found = ask(published, {"age": "[20-39]", "ill": "flu"})
        assert found.least <= 10 <= found.most
        assert found.matching == 20
    run = CliRunner().invoke(app, ["ask", str(tmp_path / "out"), "age=[20-39]", "ill={flu,cold}"])
    assert run.stdout.startswith("20 expected")
    assert json.loads(CliRunner().invoke(app, ["ask", str(tmp_path / "out"), "ill=flu", "--json"]).stdout)["most"] == 20
    assert found.notes == ()
    slip = ask(release, {"ill": "flue", "zip": "99999"})
    assert (slip.expected, len(slip.notes)) == (0, 2)
    assert slip.notes[0] == "no published value of 'ill' is 'flue', so the answer is 0; did you mean 'flu'"
    told = CliRunner().invoke(app, ["ask", str(tmp_path / "out"), "ill=flue"]).stdout
    assert "Note: no published value of 'ill'" in told
    for words, part in ((["age"], "is not COLUMN=VALUE"), (["age=1", "age=2"], "two conditions")):
        refused = CliRunner().invoke(app, ["ask", str(tmp_path / "out"), *words])
        assert part in str(refused.exception)
    with pytest.raises(InputError) as refusal:
        ask(release, {"ill": "flu", "drug": "a", "colour": "red"})
    assert [fault.code for fault in refusal.value.faults] == ["R741", "R741"]
    with pytest.raises(InputError, match="is not in two tables"):
        ask(table, {"ill": "flu"})


def test_measuring_an_anatomy_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({"age": list(range(20, 60)), "ill": ["flu", "cold", "gout", "ache"] * 10})
    table.write_csv("table.csv")
    Path("reveil.toml").write_text(
        '[columns]\nage = "quasi"\nill = "sensitive"\n'
        '[guarantee]\nmodel = "l-diversity"\nl = 4\n[method]\npublish = "anatomy"\npeople = "exact"\n'
    )
    release = reveil.anonymize(table, "reveil.toml", seed=1, out="out")
    run = CliRunner().invoke(app, ["measure", "out", "table.csv", "--json"])
    assert run.exit_code == 0
    again = measure(release.table, table, load_policy("reveil.toml"), values=release.values)
    assert json.loads(run.stdout) == json.loads(json.dumps(again.to_dict()))
    assert again.ncp_mean == 0
    assert release.values is not None
    with pytest.raises(InputError) as refusal:
        measure(pl.concat([release.table] * 2), table, load_policy("reveil.toml"), values=release.values)
    assert refusal.value.faults[0].code == "R707"


def test_an_anatomy_whose_tables_do_not_fit_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"group": [1, 1], "age": [20, 30]}).write_csv(tmp_path / "people.csv")
    with pytest.raises(InputError, match="has no values"):
        open_published(tmp_path)
    pl.DataFrame({"group": [1], "ill": ["flu"], "count": [1]}).write_csv(tmp_path / "values.csv")
    with pytest.raises(InputError, match="a group has more people than values"):
        open_published(tmp_path)
    pl.DataFrame({"ill": ["flu"], "count": [3]}).write_csv(tmp_path / "values.csv")
    with pytest.raises(InputError, match="no column 'group'"):
        open_published(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no published table"):
        open_published(tmp_path / "empty")


def test_numbers_of_which_floats_are_the_same_are_told_apart() -> None:
    codes = [10**17, 10**17 + 1, 2**63 - 1, 2**63 - 2]
    published = pl.DataFrame({"a": codes, "s": ["x", "y", "z", "z"]})
    found = reveil.link(published, pl.DataFrame({"n": ["A", "B", "C", "D"], "a": codes}))
    assert found.people["confidence"].to_list() == [1.0] * 4


# --- names -----------------------------------------------------------------------------------------------------------

INSIDE = ["class", "weight", "kind", "rows", "people", "confidence", "total", "chance", "len", "value", "n", "0"]


@pytest.mark.parametrize("name", INSIDE)
def test_no_name_of_a_column_is_special_to_linking(name: str) -> None:
    published = pl.DataFrame({"age": ["2*", "2*", "[43-52]"], "ill": ["flu", "flu", "gout"]})
    voters, original = pl.DataFrame({"name": ["Ann", "Bob"], "age": [29, 47]}), pl.DataFrame({"age": [29, 28, 47]})
    for old in ("ill", "name", "age"):
        new = {old: name}
        found = link(
            published.rename(new, strict=False),
            voters.rename(new, strict=False),
            original=original.rename(new, strict=False),
        )
        assert found.people["rows"].to_list() == [2, 1]
        assert found.people["rows before"].to_list() == [1, 1]
        assert found.people["confidence"].to_list() == [0.5, 1.0]
        taken = name in ("rows", "people", "confidence")
        shown = f"{name} ({'published' if old == 'ill' else 'listed'})" if taken else name
        wanted = {"ill": ["flu", "gout"], "name": ["Ann", "Bob"], "age": [29, 47]}[old]
        assert found.people[shown].to_list() == wanted
        assert found.summary["after"]["values"] == {name if old == "ill" else "ill": 2}


def test_a_column_that_both_tables_have_is_shown_twice() -> None:
    published = pl.DataFrame({"age": ["2*", "3*"], "pay": [1.0, 2.0]})
    voters = pl.DataFrame({"pay": [7.0, 8.0], "age": [20, 30]})
    found = link(published, voters, by=["age"], name="pay")
    assert found.people["pay"].to_list() == [7, 8]
    assert found.people["pay (published)"].to_list() == [1, 2]
    assert found.summary["after"]["values"] == {"pay": 2}  # a number is a value, never a chance


@pytest.mark.parametrize("name", ["class", "weight", "rows", "people", "n", "match"])
@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_no_name_of_a_column_is_special_to_an_anatomy(name: str, role: str) -> None:
    quasi, ill = (name, "ill") if role == "quasi" else ("age", name)
    table = pl.DataFrame({quasi: list(range(20, 40)), ill: ["flu", "cold", "gout", "ache"] * 5})
    policy = {
        "columns": {quasi: "quasi", ill: "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 4},
        "method": {"publish": "anatomy", "people": "exact"},
    }
    release = reveil.anonymize(table, policy, seed=1)
    listed = pl.DataFrame({"who": [f"p{i}" for i in range(20)], quasi: list(range(20, 40))})
    assert link(release, listed, policy).summary["after"]["certain"] == 20
    assert measure(release.table, table, load_policy(policy), values=release.values).ncp_mean == 0
    assert ask(release, {ill: "flu"}).expected == 5


@pytest.mark.parametrize("publish", ["anatomy", "table"])
@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_rows_is_a_name_like_any_other_to_measures_and_audits(publish: str, role: str, tmp_path: Path) -> None:
    quasi, ill = ("rows", "ill") if role == "quasi" else ("age", "rows")
    table = pl.DataFrame(
        {"who": [f"p{i}" for i in range(20)], quasi: list(range(20, 40)), ill: ["flu", "cold", "gout", "ache"] * 5}
    )
    policy: dict[str, Any] = {
        "columns": {"who": "identifier", quasi: "quasi", ill: "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 4},
        "method": {"publish": "anatomy", "people": "exact"} if publish == "anatomy" else {},
    }
    series = reveil.open_series(policy, home=tmp_path / "home")
    release = series.publish(table, seed=1)
    assert measure(release.table, table, load_policy(policy), values=release.values).ncp_mean >= 0
    assert series.audit()


def test_an_anatomy_without_its_columns_is_refused() -> None:
    people = pl.DataFrame({"group": [1, 1], "age": [30, 35]})
    illnesses = pl.DataFrame({"group": [1, 1], "ill": ["flu", "HIV"], "count": [1, 1]})
    for first, second, parts in (
        (people.drop("group"), illnesses, ["published table: has no column 'group'"]),
        (people, illnesses.drop("group", "count"), ["'ill': has no column 'group'", "'ill': has no column 'count'"]),
        (people, illnesses.drop("ill"), ["table of 'ill': has no column 'ill'"]),
    ):
        with pytest.raises(InputError) as refusal:
            ask((first, {"ill": second}), {"age": "30", "ill": "flu"})
        assert [fault.code for fault in refusal.value.faults] == ["R740"] * len(parts)
        assert all(part in str(refusal.value) for part in parts)
