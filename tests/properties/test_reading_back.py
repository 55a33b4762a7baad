"""Whoever reads a release sees the same: the publisher, the audit, measures and links, and the verifier.

Values are of all kinds that a reader might take for something else: codes with points or leading zeros, decimal commas,
days, numbers beyond 53 bits, texts that look like notation or like nothing. Types are those that were published.
"""

from __future__ import annotations

import datetime
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import reveil
from reveil.audit.input.series import observe_series, sources_of, truth_of
from reveil.audit.input.tables import observe
from reveil.base.errors import GuaranteeError, InputError, TamperedError
from reveil.base.text import plain_text
from reveil.policy.policy import load_policy
from reveil.published.reader import open_published, read_release
from reveil.table.roles import prepare
from reveil.verify import reading

SOME = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),  # publishing takes long: a failing case is small as it is
)
CODES = ["250.10", "250.1", "250.00", "250", "401.90", "00501", "501", "007", "+7", "-0", "0", "1e5", "1E5", "12E5"]
COMMAS = ["1,5", "1.5", "1,50", "1.234,5", "1 234"]
DAYS = ["2026-03-14", "14.03.2026", "2026-03", "2026", "2026-03-14 00:00:00"]
WORDS = [
    "true",
    "false",
    "True",
    "NA",
    "NULL",
    "nan",
    "None",
    "inf",
    "Köln",
    "Ko\u0308ln",
    "日本",
    "🙂",
    "#17",
    "a@1=b",
]
BLANKS = [" ", " a", "a ", "a", "\t", "a\tb", "line\nbreak", "a\rb", "\u00a0"]
MARKS = ["2*", "**", "*", "[20-29]", "<5", ">=7", "{a,b}", "{}", '"', 'a"b', "a,b", "a;b", "'", "\\", "[I-III]"]
HUGE = ["9007199254740993", "9007199254740992", "123456789012345678901234567890", "-9223372036854775809"]
TEXTS = [*CODES, *COMMAS, *DAYS, *WORDS, *BLANKS, *MARKS, *HUGE]
WHOLE = [0, 7, -7, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
DECIMAL = [0.5, 250.1, 3.0, 1e20, 1e16, -0.25, 0.1, 1e-7, 123456789.125]
DATES = [datetime.date(2026, 3, 14), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2026, 3, 1)]
KINDS = {
    "category": (TEXTS, pl.String),
    "boolean": ([True, False], pl.Boolean),
    "whole": (WHOLE, pl.Int64),
    "decimal": (DECIMAL, pl.Float64),
    "date": (DATES, pl.Date),
}


@st.composite
def columns(draw, name, rows):
    """A column of one kind, with missing values; no value has more than half of the rows."""
    values, dtype = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    some = draw(st.lists(st.sampled_from(values), min_size=2, max_size=rows // 2, unique=True))
    cells = [None, *some] if draw(st.booleans()) else some
    dealt = [cells[number % len(cells)] for number in range(rows)]
    return pl.Series(name, draw(st.permutations(dealt)), dtype=dtype)


@st.composite
def tables(draw, rows=8):
    """People whose columns are all of a kind of their own. Quasi-identifiers that look like `*` are refused anyway."""
    plain = [text for text in TEXTS if "*" not in text]
    town = draw(st.lists(st.sampled_from(plain) | st.none(), min_size=rows, max_size=rows))
    return pl.DataFrame(
        [
            pl.Series("who", [f"p{number}" for number in range(rows)]),
            pl.Series("age", draw(st.lists(st.integers(20, 23), min_size=rows, max_size=rows))),
            pl.Series("town", town, dtype=pl.String),
            draw(columns("note", rows)),
            draw(columns("ill", rows)),
        ]
    )


def policy_of(form, publish, **more):
    roles = {"who": "identifier", "age": "quasi", "town": "quasi", "note": "insensitive", "ill": "sensitive"}
    guarantee = {"model": "l-diversity", "l": 2} if publish == "anatomy" else {"k": 2}
    method = {"publish": publish, "people": "exact", "infeasible": "withhold"} if publish == "anatomy" else {}
    return {"columns": roles, "guarantee": guarantee, "method": method, "output": {"format": form}, **more}


def texts(column):
    return Counter(plain_text(value) for value in column)


def by_group(table, column="ill", count=None):
    """How often each group has each value, with its type, whatever the order of rows."""
    found = Counter()
    for row in table.iter_rows(named=True):
        found[row["group"], row[column], type(row[column])] += 1 if count is None else row[count]
    return found


def whole(table):
    return Counter(zip(table.iter_rows(), strict=True)), table.schema


def check_public(public, policy, table, values):
    """The reader that everybody shares, and the verifier's, show what the publisher holds."""
    for source in (public, public.parent):
        read = open_published(source)
        assert read.table.equals(table)
        assert read.table.schema == table.schema
        assert (read.values is None) == (values is None)
    found = reading.read_release(public, load_policy(policy))
    seen = found.table
    if values is None:
        assert seen.equals(table)
        assert seen.schema == table.schema
        return read
    assert read.values["ill"].equals(values["ill"])
    assert found.people.equals(table)
    assert found.people.schema == table.schema
    assert by_group(seen) == by_group(values["ill"], count="count")
    assert seen.schema["ill"] == values["ill"].schema["ill"]
    return read


FORMS = pytest.mark.parametrize(("form", "publish"), [(f, p) for f in ("csv", "parquet") for p in ("table", "anatomy")])


@FORMS
@SOME
@given(tables())
def test_one_release(form, publish, table):
    policy = policy_of(form, publish)
    folder = Path(tempfile.mkdtemp())
    release = reveil.anonymize(table, policy, seed=1, out=folder / "out")
    read = check_public(release.public, policy, release.table, release.values)
    given = prepare(table, load_policy(policy))
    kept = given.filter(pl.Series(release.groups >= 0))
    shown = (
        release.table["ill"]
        if publish == "table"
        else release.values["ill"].select(pl.col("ill").repeat_by("count").explode())["ill"]
    )
    assert texts(shown) == texts(kept["ill"])
    assert shown.dtype == given["ill"].dtype
    assert texts(read.table["note"]) == texts(kept["note"])
    if publish == "anatomy":  # as they are; in one table they are generalised
        assert texts(read.table["town"]) == texts(kept["town"])
    listed = table.select("who", "age", "town").filter(pl.Series(release.groups >= 0))
    if listed.height:  # everybody who was published fits some row, for whoever reads it
        assert reveil.link(release.path, listed, policy).people["rows"].min() >= 1
        observe([release.public], listed, policy=load_policy(policy), presence="known")
    seen = observe([release.public], table.select("who", "age", "town"), policy=load_policy(policy), presence="unknown")
    counted = Counter()
    for value, rows in zip(seen.cell_value, seen.cell_rows, strict=True):
        counted[seen.values[value]] += int(rows)
    assert counted == texts(shown)
    shutil.rmtree(folder)


@FORMS
@settings(SOME, max_examples=10)
@given(tables(), st.data())
def test_a_series(form, publish, table, data):
    policy = policy_of(form, publish)
    folder = Path(tempfile.mkdtemp())
    series = reveil.open_series(policy, folder / "home")
    later = table.with_columns(
        pl.Series("ill", data.draw(st.permutations(table["ill"].to_list())), dtype=table["ill"].dtype)
    )
    for release, again in zip(
        [series.publish(t, seed=1, accept=["same-table"]) for t in (table, later)], series.releases, strict=True
    ):
        read = check_public(release.public, policy, release.table, release.values)
        assert again.table.equals(release.table)
        assert again.table.schema == release.table.schema
        assert again.counterfeits.equals(read.counterfeits)
    sources = sources_of(series.ledger)
    seen = observe_series(sources, "ill")
    counted = Counter()
    for group, value, rows in zip(seen.cell_group, seen.cell_value, seen.cell_rows, strict=True):
        counted[int(seen.group_release[group]), int(seen.group_label[group]), seen.values[value]] += int(rows)
    expected = Counter()
    for number, release in enumerate(series.releases):
        shown = release.table if release.values is None else release.values["ill"]
        count = None if release.values is None else "count"
        for (group, value, _), rows in by_group(shown, count=count).items():
            expected[number, group, plain_text(value)] += rows
    assert counted == expected
    truth = truth_of(sources, "ill", seen)
    held = [prepare(t, load_policy(policy))["ill"] for t in (table, later)]
    for person, release, code in zip(seen.app_person, seen.app_release, truth, strict=True):
        assert seen.values[code] == plain_text(held[release][int(person)])
    shutil.rmtree(folder)


# --- what was wrong --------------------------------------------------------------------------------------------------


def people(values, seed):
    """120 people in three releases, of whom some leave and others come; everybody keeps one of the values."""
    shuffled = pl.Series(range(160)).shuffle(seed=seed).to_list()
    rows = [(f"p{n}", 20 + n * 7 % 60, values[number % len(values)]) for number, n in enumerate(shuffled)]
    everybody = pl.DataFrame(rows, schema=["who", "age", "ill"], orient="row").sort("who")
    return [everybody.slice(start, 120) for start in (0, 20, 40)]


def test_codes_with_points_are_as_exposed_as_words(tmp_path):
    words = ["ache", "acne", "cold", "cough", "flu", "gout"]  # in the order of the codes, so that lots are the same
    codes = ["250.0", "250.00", "250.1", "250.10", "401.9", "401.90"]
    found = {}
    for name, values in {"words": words, "codes": codes}.items():
        policy = {
            "columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"},
            "values": {"change": "never"},
            "guarantee": {"model": "m-invariance", "m": 3},
        }
        series = reveil.open_series(policy, tmp_path / name)
        for table in people(values, seed=1):
            series.publish(table, seed=1, accept=["same-table"])
        found[name] = series.audit(share="0.3", seed=1)
        assert sorted(found[name].observed.values) == sorted(values)
    assert found["words"].summary["exposed"] == found["codes"].summary["exposed"] > 0


def test_the_gate_refuses_codes_with_points_as_it_refuses_words(tmp_path):
    policy = {
        "columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "m-invariance", "m": 3},
        "audit": {"gate": True, "compromised": "0.3"},
    }
    series = reveil.open_series(policy, tmp_path / "home")
    with pytest.raises(GuaranteeError, match="R728"):
        for table in people(["250.0", "250.00", "250.1", "250.10", "401.9", "401.90"], seed=1):
            series.publish(table, seed=1, accept=["same-table"])


def test_the_verifier_takes_the_types_of_a_single_file_from_its_release(tmp_path):
    table = pl.DataFrame({"age": [1, 1], "ill": ["250.10", "250.1"]})
    columns = {"age": "quasi", "ill": "sensitive"}
    policy = {"columns": columns, "guarantee": {"model": "l-diversity", "l": 2}}
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    assert reveil.check(release.public / "table.csv", policy).holds  # as one number they would be one value
    shutil.copy(release.public / "table.csv", tmp_path / "alone.csv")
    stated = {**policy, "columns": {**columns, "ill": {"role": "sensitive", "type": "category"}}}
    assert reveil.check(tmp_path / "alone.csv", stated).holds


def test_numbers_that_are_whole_in_one_release_only(tmp_path):
    """A cost of 10^16 is the same value in a column of whole numbers and in one of others."""
    policy = {"columns": {"who": "identifier", "age": "quasi", "cost": "sensitive"}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, tmp_path / "home")
    first = pl.DataFrame({"who": list("abcd"), "age": [1, 1, 2, 2], "cost": [10**16, 2**53 + 1, 2**53, 7]})
    series.publish(first, seed=1)
    series.publish(first.with_columns(cost=pl.Series([1e16, 0.5, 7.0, 2.5])), seed=1)
    sources = sources_of(series.ledger)
    seen = observe_series(sources, "cost")
    truth = truth_of(sources, "cost", seen)
    told = {(int(p), int(r)): seen.values[v] for p, r, v in zip(seen.app_person, seen.app_release, truth, strict=True)}
    assert told[0, 0] == told[0, 1]
    assert told[1, 0] != told[2, 0]
    assert told[2, 1] == told[3, 0] == "7"
    assert all(found.holds for found in series.verify().values())


def test_a_ledger_that_the_release_does_not_bear_out_is_refused(tmp_path):
    policy = {"columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, tmp_path / "home")
    series.publish(pl.DataFrame({"who": list("abcd"), "age": [1, 1, 9, 9], "ill": ["x", "y", "z", "x"]}), seed=1)
    (source,) = sources_of(series.ledger)
    seen = observe_series([source], "ill")
    (one, *_), other = source.books["ill"], {**source.books, "ill": ["other", *source.books["ill"][1:]]}
    assert one == "x"
    with pytest.raises(TamperedError, match=r"R733.*2 values of members in the ledger are not among"):
        truth_of([type(source)(source.public, source.members, other)], "ill", seen)
    moved = source.members.with_columns(group=pl.lit(7, dtype=pl.Int32))
    with pytest.raises(TamperedError, match=r"R733.*4 members of the ledger are in groups that it does not show"):
        observe_series([type(source)(source.public, moved, source.books)], "ill")
    swapped = source.members.with_columns(group=1 - pl.col("group"))
    with pytest.raises(TamperedError, match="R733"):  # their own group must show it, not just any
        truth_of(
            [type(source)(source.public, swapped, source.books)],
            "ill",
            observe_series([type(source)(source.public, swapped, source.books)], "ill"),
        )


def test_counterfeit_counts_are_about_the_groups_that_are_shown(tmp_path):
    policy = {"columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, tmp_path / "home")
    release = series.publish(pl.DataFrame({"who": list("abcd"), "age": [1, 1, 9, 9], "ill": list("xyzx")}), seed=1)
    sources = sources_of(series.ledger)
    (release.public / "counterfeits.csv").write_text("group,count\n0,0\n2,0\n", encoding="utf-8")
    with pytest.raises(TamperedError, match=r"R733.*2 groups have no counterfeit count, or are not shown"):
        observe_series(sources, "ill")
    with pytest.raises(TamperedError, match="R524"):  # the audit compares files with what was recorded before
        series.audit()


def test_who_is_known_has_a_value_in_the_truth():
    table = pl.DataFrame({"age": ["2*", "2*"], "ill": ["flu", "cold"]})
    who = pl.DataFrame({"name": ["Ann", "Bob"], "age": [21, 28]})
    truth = pl.DataFrame({"person": ["Ann"], "release": [1], "value": ["flu"]})
    assert reveil.audit([table], who, truth=truth, compromised=["Ann"]).summary["exposed"] == 1
    with pytest.raises(InputError, match=r"R727.*does not say what 1 person has, who is to be known: Bob"):
        reveil.audit([table], who, truth=truth, compromised=["Bob"])


def test_conditions_mean_texts_as_they_are_written(tmp_path):
    """250.10 and 250.1 are two codes, and one number."""
    codes, costs = ["250.10", "250.1", "401.9", "401.90"], [250.1, 1.5, 2.0, 3.0]
    table = pl.DataFrame({"age": [1, 2, 3, 4], "ill": codes, "cost": costs})
    columns = {"age": "quasi", "ill": "sensitive", "cost": "sensitive"}
    anatomy = {"guarantee": {"model": "l-diversity", "l": 2}, "method": {"publish": "anatomy", "people": "exact"}}
    release = reveil.anonymize(table, {"columns": columns, **anatomy}, seed=1, out=tmp_path / "out")
    for published in (release, release.path):
        assert [reveil.ask(published, {"ill": code}).expected for code in codes] == [1, 1, 1, 1]
        assert reveil.ask(published, {"cost": "250.10"}).expected == 1


def test_truth_that_matches_nothing_is_refused():
    table = pl.DataFrame({"age": ["2*", "2*"], "ill": ["250.10", "401.90"]})
    who = pl.DataFrame({"name": ["Ann", "Bob"], "age": [21, 28]})
    good = pl.DataFrame({"person": ["Ann", "Bob"], "release": [1, 1], "value": ["250.10", "401.90"]})
    assert reveil.audit([table], who, truth=good).summary["people"] == 2
    for column, values, words in (
        ("value", [250.1, 401.9], "2 values are shown by no release: '250.1', '401.9'"),
        ("person", ["Ann", "Eve"], "1 line is about people that are not there: 'Eve'"),
        ("release", [1, 2], "1 line is about releases that are not there: '2'"),
    ):
        with pytest.raises(InputError) as refusal:
            reveil.audit([table], who, truth=good.with_columns(pl.Series(column, values)))
        assert [(fault.code, fault.message) for fault in refusal.value.faults] == [("R733", words)]


def test_a_population_that_names_no_release_is_refused():
    table = pl.DataFrame({"age": ["2*", "2*"], "ill": ["flu", "cold"]})
    who = pl.DataFrame({"name": ["Ann", "Bob"], "age": [21, 28], "release": [1.0, None]})
    with pytest.raises(InputError, match=r"R724.*release has 2 different entries"):
        reveil.audit([table], who)
    assert reveil.audit([table], who.with_columns(release=1.0)).summary["people"] == 2


def test_files_of_others_are_read_as_they_are_written(tmp_path):
    (tmp_path / "their.csv").write_text("age;ill;cost\n2*;250.10;3.0\n2*;250.1;04\n", encoding="utf-8")
    assert open_published(tmp_path / "their.csv").table.rows() == [("2*", "250.10", "3.0"), ("2*", "250.1", "04")]
    columns = {"age": "quasi", "ill": "sensitive", "cost": {"role": "sensitive", "type": "number"}}
    policy = load_policy({"columns": columns, "guarantee": {"k": 2}})
    assert open_published(tmp_path / "their.csv", policy).table["cost"].to_list() == [3.0, 4.0]
    who = pl.DataFrame({"name": ["Ann", "Bob"], "age": [21, 28]})
    assert reveil.audit([tmp_path / "their.csv"], who, sensitive="ill").observed.values == ("250.1", "250.10")


@pytest.mark.parametrize("short", ["123", "1234"])
def test_short_codes_that_were_filled_up_are_found(short, tmp_path):
    """`123*` stands for 123 as well where the longest code has four characters."""
    columns = {"who": "identifier", "zip": {"role": "quasi", "prefixes": [3]}, "ill": "sensitive"}
    policy = {"columns": columns, "guarantee": {"k": 2}}
    table = pl.DataFrame({"who": ["a", "b"], "zip": [short, "1234"], "ill": ["hiv", "hiv"]})
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    assert release.table["zip"].to_list() == ["123*", "123*"]
    listed = table.select("who", "zip")
    assert reveil.link(release.path, listed, policy).people["ill chance"].to_list() == [1.0, 1.0]
    assert reveil.audit([release.path], listed, policy=policy).summary["exposed"] == 2


def test_a_folder_that_lost_a_table_is_refused(tmp_path):
    table = pl.DataFrame({"age": [1, 1], "ill": ["x", "y"]})
    columns = {"age": "quasi", "ill": "sensitive"}
    release = reveil.anonymize(table, {"columns": columns, "guarantee": {"k": 2}}, seed=1, out=tmp_path / "out")
    (release.public / "table.csv").unlink()
    with pytest.raises(InputError, match=r"R603.*cannot be read"):
        read_release(release.public)
