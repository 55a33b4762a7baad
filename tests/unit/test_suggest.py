"""Suggested policies: the right roles on tables we know, and usable drafts for tables nobody has seen."""

from __future__ import annotations

import datetime as dt
import tempfile
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reveil
from reveil.base.errors import InputError
from reveil.policy.policy import Policy, load_policy
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import simulate
from reveil.start.reading import first_look
from reveil.start.suggest import draft_policy, find_hierarchies, first_period, suggest
from reveil.table.encode import encode
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from reveil.table.roles import prepare
from reveil.table.types import looked
from support import cli, workbook

ROWS = 40


def roles_of(frame: pl.DataFrame) -> dict[str, str]:
    return {found.column: found.role for found in suggest(frame)}


def one(name: str, values: Any, dtype: Any = None) -> Any:
    return suggest(pl.DataFrame({name: pl.Series(values, dtype=dtype)}))[0]


def loaded(text: str, folder: Path | None = None) -> Policy:
    """The draft as `reveil` would read it from a file."""
    with tempfile.TemporaryDirectory() as new:
        file = (folder or Path(new)) / "reveil.toml"
        file.write_text(text, encoding="utf-8")
        return load_policy(file)


def assert_usable(frame: pl.DataFrame, policy: Policy) -> None:
    """The draft encodes the very table it was made for."""
    try:
        prepared = prepare(frame, policy, series=False)
    except InputError as error:  # rows without an identifier, two rows of a person, odd names: for people to settle
        key = None if policy.identifier is None else frame[policy.identifier]
        allowed = {"R213", "R214"} if key is not None and (key.n_unique() < len(key) or key.null_count()) else set()
        allowed |= {"R217"} if any("\0" in name for name in frame.columns) else set()
        assert {fault.code for fault in error.faults} <= allowed
        return
    encoded = encode(prepared, policy)
    assert encoded.rows == frame.height
    assert len(encoded.quasi) == len(policy.named("quasi"))
    assert len(encoded.sensitive) == len(policy.named("sensitive"))


# --- single columns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("patient_id", [f"P{i:05}" for i in range(ROWS)], "identifier"),
        ("PatientID", list(range(ROWS)), "identifier"),
        ("patientennummer", [i * 7 + 100_000 for i in range(ROWS)], "identifier"),
        ("id", [float(i) for i in range(ROWS)], "identifier"),
        ("numero_paciente", [str(i) for i in range(ROWS)], "identifier"),
        ("x", [f"K-{i * 37:06}" for i in range(ROWS)], "identifier"),
        ("x", [i * i for i in range(ROWS)], "drop"),
        ("x", [f"{chr(97 + i % 26)}{'word' * (i + 1)}" for i in range(ROWS)], "drop"),
        ("mail", ["same"] * ROWS, "drop"),
        ("x", [f"somebody{i % 9}@example.org" for i in range(ROWS)], "drop"),
        ("x", [f"+49 30 12345{i:02}" for i in range(ROWS)], "drop"),
        ("x", [f"DE{i + 10} 3704 0044 0532 0130 {i + 10}" for i in range(ROWS)], "drop"),
        ("x", [f"{i + 100}-{i + 10}-{i + 1000}" for i in range(ROWS)], "drop"),
        ("Nachname", ["Meier", "Huber"] * 20, "drop"),
        ("patient_name", ["Ann", "Bob"] * 20, "drop"),
        (
            "x",
            [f"Came in with a cough and left {i} days later, feeling better." for i in range(ROWS)],
            "drop",
        ),
        ("Bemerkungen", [f"see page {i}" for i in range(ROWS)], "drop"),
        ("diagnosis", ["flu", "HIV"] * 20, "sensitive"),
        ("Hauptdiagnose", ["flu", "HIV"] * 20, "sensitive"),
        ("salaire", [1000 + i for i in range(ROWS)], "sensitive"),
        ("religión", ["a", "b"] * 20, "sensitive"),
        ("icd", ["A00.0", "E11.9", "I10", "C50.1"] * 10, "sensitive"),
        ("x", ["A93", "B11", "C10", "C50"] * 10, "quasi"),  # codes, but nothing says that they are of diseases
        ("x", ["flu", "HIV positive", "lung cancer", "asthma"] * 10, "sensitive"),
        ("smoke_yrs", [1, 2, 3, 4] * 10, "sensitive"),
        ("inc86", [1000 + i for i in range(ROWS)], "sensitive"),
        ("narr86", [0, 1] * 20, "sensitive"),
        ("union", [0, 1] * 20, "sensitive"),
        ("fnlwgt", [100.5 + i for i in range(ROWS)], "drop"),
        ("weight", [70_000 + 3 * i for i in range(ROWS)], "drop"),
        ("weight", [70 + i for i in range(ROWS)], "quasi"),
        ("saving_accounts", ["little", "rich"] * 20, "sensitive"),
        ("nr", [7 * i for i in range(ROWS)], "identifier"),
        ("id", [i // 4 for i in range(ROWS)], "identifier"),
        ("Unnamed: 0", list(range(ROWS)), "drop"),
        ("Geschlecht", ["m", "w"] * 20, "quasi"),
        ("état_civil", ["a", "b"] * 20, "quasi"),
        ("marital-status", ["a", "b"] * 20, "quasi"),
        ("país", ["a", "b"] * 20, "quasi"),
        ("age", list(range(ROWS)), "quasi"),
        ("wage", list(range(ROWS)), "sensitive"),
        ("blood_pressure", [120.5, 80.25] * 20, "sensitive"),
        ("never_heard_of", ["a", "b"] * 20, "quasi"),
        ("visited", ["14.03.2025", "15.03.2025"] * 20, "quasi"),
        ("visited", ["03/14/2025", "3/15/2025"] * 20, "quasi"),
        ("visited", ["03/04/2025", "05/06/2025"] * 20, "drop"),
        ("visited", ["14.03.25", "15.03.25"] * 20, "drop"),
        ("stars", ["*", "a"] * 20, "drop"),
        ("level", [float("inf"), 1.0] * 20, "drop"),
        ("nothing", [None] * ROWS, "drop"),
        ("tags", [["a"], ["b"]] * 20, "drop"),
    ],
)
def test_role_of_a_column(name: str, values: list[Any], role: str) -> None:
    found = one(name, values)
    assert found.role == role, found.reason
    assert found.spec["role"] == role
    assert found.reason.endswith(".")


def test_facts_count_missing_as_a_value() -> None:
    facts = one("ward", ["a", "a", None, "b"]).facts
    assert (facts.rows, facts.distinct, facts.missing, facts.top, facts.top_share) == (4, 3, 1, "a", 0.5)
    assert (facts.low, facts.high) == (None, None)
    numbers = one("age", [5, None, 9]).facts
    assert (numbers.low, numbers.high, numbers.unique) == (5, 9, False)


@pytest.mark.parametrize(
    ("values", "prefixes"),
    [
        (["47602", "47677", "01234"], [4, 3, 2]),
        ([47602, 47677, 90210], [4, 3, 2]),
        (["1010", "4020"], [3, 2, 1]),
        (["SW1A 1AA", "EC1A 1BB"], [5, 4, 3]),
        (["1", "2"], None),
    ],
)
def test_postcodes_keep_their_first_characters(values: list[Any], prefixes: list[int] | None) -> None:
    found = one("PLZ", values)
    assert (found.role, found.spec["type"], found.spec.get("prefixes")) == ("quasi", "category", prefixes)


@pytest.mark.parametrize(
    ("name", "days", "levels"),
    [
        ("admitted", 20, ["day", "month", "year"]),
        ("admitted", 90, ["month", "quarter", "year"]),
        ("admitted", 3000, ["quarter", "year", "decade"]),
        ("admitted", 20000, ["year", "decade"]),
        ("Geburtsdatum", 90, ["year", "decade"]),
    ],
)
def test_levels_of_dates_follow_their_span(name: str, days: int, levels: list[str]) -> None:
    start = dt.date(1950, 1, 1)
    found = one(name, [start, start + dt.timedelta(days=days)])
    assert (found.role, dict(found.spec)) == ("quasi", {"role": "quasi", "type": "date", "levels": levels})


@pytest.mark.parametrize(
    "written",
    [
        ["2025-03-14 10:00", "2024-01-02 11:30"],
        ["2025-03-14", "2024-01-02"],
        [20250314, 20240102],
        ["14.03.2025", "2.1.2024"],
        ["03/14/2025", "01/02/2024"],
        ["2025/03/14", "2024/01/02"],
    ],
    ids=str,
)
def test_dates_as_text_get_levels(written: list[Any]) -> None:
    frame = pl.DataFrame({"seen": written * 3})
    assert suggest(frame)[0].spec["levels"] == ["month", "quarter", "year"]
    policy = loaded(draft_policy(suggest(frame), "visits"))
    assert prepare(frame, policy)["seen"].unique().sort().to_list() == [dt.date(2024, 1, 2), dt.date(2025, 3, 14)]


def test_dates_of_which_some_are_none() -> None:
    assert one("seen", [*(f"2025-03-14 10:{i:02}" for i in range(39)), "later"]).spec["prefixes"] == [7, 4]
    assert "could be dd/mm/yyyy or mm/dd/yyyy" in one("seen", ["03/04/2025", "05/06/2025"] * 20).reason


def test_numbers_that_are_codes_are_categories() -> None:
    assert one("sex", [1, 2, 1]).spec["type"] == "category"
    assert one("admission_type_id", [1, 2, 1, 2, 1]).spec["type"] == "category"
    assert one("education", [1, 2, 1]).spec["type"] == "number"


def test_one_identifier_and_it_is_the_person() -> None:
    frame = pl.DataFrame(
        {
            "encounter_id": list(range(ROWS)),
            "patient_nbr": [i // 2 for i in range(ROWS)],
            "row_key": [f"r{i}" for i in range(ROWS)],
            "age": [i % 7 for i in range(ROWS)],
        }
    )
    found = {suggestion.column: suggestion for suggestion in suggest(frame)}
    roles = {name: suggestion.role for name, suggestion in found.items()}
    assert roles == {"encounter_id": "drop", "patient_nbr": "identifier", "row_key": "drop", "age": "quasi"}
    assert "20 rows repeat it" in found["patient_nbr"].reason
    assert found["patient_nbr"].confidence == "likely"


# --- drafts ----------------------------------------------------------------------------------------


def table(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"age": [20 + i % 9 for i in range(ROWS)], **columns})


def test_draft_without_sensitive_column_promises_k_anonymity() -> None:
    policy = loaded(draft_policy(suggest(table()), "people"))
    assert (policy.guarantee.model, policy.guarantee.stated["k"], policy.series.name) == ("k-anonymity", 5, "people")


@pytest.mark.parametrize(
    ("values", "model", "l"),
    [
        (["a", "b", "c", "d"] * 10, "l-diversity", 3),
        (["a", "b"] * 20, "l-diversity", 2),
        (["a"] * 19 + ["b"] * 11 + ["c"] * 10, "l-diversity", 2),
        (["a"] * 21 + ["b"] * 19, "t-closeness", None),
        (["a"] * 20 + [None] * 20, "l-diversity", 2),
    ],
)
def test_draft_promises_what_the_most_frequent_value_allows(values: Any, model: str, l: Any) -> None:  # noqa: E741
    guarantee = loaded(draft_policy(suggest(table(diagnosis=values)), "people")).guarantee
    assert (guarantee.model, guarantee.stated.get("l"), guarantee.stated["k"]) == (model, l, 5)


def test_several_sensitive_columns_are_bound_by_the_most_one_sided() -> None:
    frame = table(diagnosis=["a", "b", "c", "d"] * 10, religion=["x"] * 30 + ["y"] * 10)
    assert loaded(draft_policy(suggest(frame), "people")).guarantee.model == "t-closeness"


def test_small_table_gets_a_k_it_can_keep() -> None:
    draft = draft_policy(suggest(pl.DataFrame({"age": [1, 2, 2]})), "few")
    assert loaded(draft).guarantee.stated["k"] == 3
    assert "The table has 3 rows" in draft


def test_empty_table_gets_the_usual_promise() -> None:
    frame = pl.DataFrame(schema={"age": pl.Int64, "diagnosis": pl.String})
    guarantee = loaded(draft_policy(suggest(frame), "none yet")).guarantee
    assert (guarantee.stated["k"], guarantee.stated["l"]) == (5, 3)


@pytest.mark.parametrize("frame", [pl.DataFrame(), pl.DataFrame({"id": [1, 2, 3], "diagnosis": ["a", "b", "a"]})])
def test_table_without_quasi_identifier_is_refused(frame: pl.DataFrame) -> None:
    with pytest.raises(InputError) as refusal:
        draft_policy(suggest(frame), "people")
    assert [fault.code for fault in refusal.value.faults] == ["R290"]


def test_draft_explains_every_column_and_warns_of_many() -> None:
    frame = pl.DataFrame({f"trait{i}": ["a", "b"] * 20 for i in range(11)})
    found = suggest(frame)
    draft = draft_policy(found, "people")
    lines = draft.splitlines()
    assert "# These are 11, and each one costs detail" in draft
    for suggestion in found:
        place = next(i for i, line in enumerate(lines) if line.startswith(f"{suggestion.column} = "))
        assert lines[place - 1] == "# guess: 2 distinct values, the most frequent in 50.0 % of rows"
        assert lines[place - 2].startswith("# Not recognised")
    assert max(map(len, lines)) <= 110


def test_suggestion_as_json_has_no_values() -> None:
    found = one("age", [41, 41, 97]).to_dict()
    assert found["spec"] == {"role": "quasi", "type": "number"}
    assert (found["distinct"], found["top_share"]) == (2, 0.6667)
    assert not {41, 97} & {value for value in found.values() if isinstance(value, int)}


# --- a promise for a series ------------------------------------------------------------------------


def test_a_table_of_known_people_gets_a_promise_for_a_series() -> None:
    frame = table(patient_id=list(range(ROWS)), diagnosis=[f"d{i % 10}" for i in range(ROWS)])
    draft = draft_policy(suggest(frame), "people")
    policy = loaded(draft)
    g = policy.guarantee.headline
    assert (policy.guarantee.model, g.m, g.compromised, g.refill, policy.values.change) == (
        "compromise-safety",
        6,
        1,
        "never",
        "never",
    )
    assert policy.method.boxed and policy.guarantee.stated["k"] == 5
    assert "which allows m up to 10" in draft
    for other in ('model = "global"', 'model = "m-distinct"', "is refused"):
        assert other in draft
    assert "look twice" not in draft
    assert max(map(len, draft.splitlines())) <= 110
    assert "look twice" in draft_policy(suggest(frame.rename({"diagnosis": "treatment"})), "people")


@pytest.mark.parametrize(
    ("diagnoses", "model", "m"),
    [
        ([f"d{i % 5}" for i in range(ROWS)], "compromise-safety", 4),  # 5 would leave no room
        ([f"d{i % 4}" for i in range(ROWS)], "compromise-safety", 3),
        ([f"d{i % 3}" for i in range(ROWS)], "l-diversity", None),
        (["a"] * 25 + ["b"] * 15, "t-closeness", None),
    ],
)
def test_m_is_what_the_table_allows_with_room_for_more(diagnoses: list[str], model: str, m: int | None) -> None:
    frame = table(patient_id=list(range(ROWS)), diagnosis=diagnoses)
    draft = draft_policy(suggest(frame), "people")
    assert (loaded(draft).guarantee.model, loaded(draft).guarantee.stated.get("m")) == (model, m)
    assert ("but not all of them together" in draft) == (m is None)


def test_m_is_what_the_worst_of_several_sensitive_columns_allows() -> None:
    values, religions = [f"d{i % 10}" for i in range(ROWS)], [f"r{i % 5}" for i in range(ROWS)]
    draft = draft_policy(suggest(table(patient_id=list(range(ROWS)), diagnosis=values, religion=religions)), "people")
    policy = loaded(draft)
    assert policy.named("sensitive") == ("diagnosis", "religion") and policy.method.two_tables
    assert (policy.guarantee.model, policy.guarantee.stated["m"]) == ("compromise-safety", 4)


def test_a_panel_says_what_tells_its_releases_apart() -> None:
    frame = table(person_id=[i // 4 for i in range(ROWS)], year=[2000 + i % 4 for i in range(ROWS)])
    found = {suggestion.column: suggestion for suggestion in suggest(frame)}
    assert "publish one year at a time" in found["person_id"].reason
    assert "at a time" not in one("person_id", list(range(ROWS))).reason


@pytest.mark.parametrize("changes", [False, True])
def test_a_panel_tells_whether_values_change(tmp_path: Path, changes: bool) -> None:
    """With `never` the second release of a panel whose values change would be refused."""
    rows = [
        (f"p{n}", 2000 + year, 20 + n % 30, f"d{(n + (n % 7 == 0) * year * changes) % 8}")
        for n in range(80)
        for year in range(3)
    ]
    panel = pl.DataFrame(rows, schema=["person_id", "year", "age", "diagnosis"], orient="row")
    found = suggest(panel)
    told = next(suggestion for suggestion in found if suggestion.column == "diagnosis")
    assert told.changed == (Fraction(2 * 12, 2 * 80) if changes else 0)
    assert ("changes for 15.0 % of people" in told.reason) == changes
    (tmp_path / "reveil.toml").write_text(draft_policy(found, "panel"), encoding="utf-8")
    series = reveil.open_series(tmp_path / "reveil.toml")
    assert (series.policy.guarantee.model == "compromise-safety") != changes
    for year in (2000, 2001, 2002):
        assert series.publish(panel, where={"year": year}).certificate.holds


@pytest.mark.parametrize("churn", [0.05, 0.3])
def test_a_suggested_policy_publishes_a_series_as_it_is(tmp_path: Path, churn: float) -> None:
    tables = simulate(Scenario(rows=200, releases=4, arrive=churn, leave=churn)).tables
    (tmp_path / "reveil.toml").write_text(draft_policy(suggest(tables[0]), "x"))
    series = reveil.open_series(tmp_path / "reveil.toml")
    assert series.policy.guarantee.model == "compromise-safety"
    for frame in tables:
        assert series.publish(frame, seed=1).certificate.holds


# --- hierarchies beside the table ------------------------------------------------------------------


def test_hierarchies_are_found_by_their_names(tmp_path: Path) -> None:
    files = {
        "adult_hierarchy_age.csv": "20;young;*\n21;young;*\n",
        "age.csv": "20;x;*\n",
        "adult_hierarchy_marital-status.csv": "a;*\nb;*\n",
        "country hierarchy v2.csv": "DE;Europe;*\n",
        "zip.csv": "01234;012**;*\n",
        "sex.csv": "F\nM\n",
        "hierarchy_job.csv": "a;x;*\na;y;*\n",
        "people.csv": "age;sex\n20;F\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    columns = ["age", "age_group", "marital_status", "country", "zip", "sex", "job"]
    assert find_hierarchies(tmp_path, columns) == {
        "age": "adult_hierarchy_age.csv",
        "marital_status": "adult_hierarchy_marital-status.csv",
        "country": "country hierarchy v2.csv",
        "zip": "zip.csv",
    }
    assert find_hierarchies(tmp_path / "nowhere", columns) == {}


def test_draft_uses_hierarchies_of_quasi_identifiers(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("".join(f"{20 + i};twenties;*\n" for i in range(9)), encoding="utf-8")
    frame = table(diagnosis=["a", "b"] * 20)
    draft = draft_policy(suggest(frame), "people", {"age": "age.csv", "diagnosis": "icd.csv"})
    policy = loaded(draft, tmp_path)
    assert (policy.columns["age"].hierarchy, policy.columns["age"].type) == ("age.csv", "category")
    assert policy.columns["diagnosis"].hierarchy is None
    assert '# Add hierarchy = "icd.csv"' in draft
    assert_usable(frame, policy)


# --- any table -------------------------------------------------------------------------------------

NAMES = [
    "age",
    "zip",
    "sex",
    "diagnosis",
    "income",
    "admitted",
    "birth",
    "note",
    "x",
    "code",
    "id",
    "Größe",
    'a "b" = 1',
]
names = st.one_of(st.sampled_from(NAMES), st.text(st.characters(codec="utf-8"), max_size=8).map(str.strip).filter(len))
words_ = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=6)
days = st.dates(dt.date(1900, 1, 1), dt.date(2030, 1, 1))
VALUES: list[tuple[Any, Any]] = [
    (st.integers(-5, 5), pl.Int64),
    (st.integers(0, 10**12), pl.Int64),
    (st.floats(-1e9, 1e9, width=32), pl.Float64),
    (days, pl.Date),
    (days.map(lambda day: dt.datetime(day.year, day.month, day.day, 9)), pl.Datetime),
    (days.map(str), pl.String),
    (days.map(lambda day: f"{day} 10:00"), pl.String),
    (st.booleans(), pl.Boolean),
    (words_, pl.String),
    (st.sampled_from(["red", "green", "blue"]), pl.Categorical),
    (st.from_regex(r"[0-9]{5}", fullmatch=True), pl.String),
    (st.from_regex(r"[A-C][0-9]{2}\.[0-9]", fullmatch=True), pl.String),
]


@st.composite
def frames(draw: Any) -> pl.DataFrame:
    rows = draw(st.integers(1, 12))
    columns = {}
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        values, dtype = draw(st.sampled_from(VALUES))
        some = values if draw(st.booleans()) else st.none() | values
        columns[name] = pl.Series(draw(st.lists(some, min_size=rows, max_size=rows)), dtype=dtype)
    return pl.DataFrame(columns)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(frames(), words_)
def test_draft_of_any_table_loads_and_can_be_used(frame: pl.DataFrame, name: str) -> None:
    found = suggest(frame)
    assert [suggestion.column for suggestion in found] == frame.columns
    roles = [suggestion.role for suggestion in found]
    assert roles.count("identifier") <= 1
    assert "insensitive" not in roles
    if "quasi" not in roles:
        with pytest.raises(InputError, match="R290"):
            draft_policy(found, name)
        return
    policy = loaded(draft_policy(found, name))
    assert policy.series.name == (name or "series")
    assert {column: spec.role for column, spec in policy.columns.items()} == dict(
        zip(frame.columns, roles, strict=True)
    )
    for suggestion in found:
        if suggestion.role == "sensitive" and "l" in policy.guarantee.stated:
            assert suggestion.facts.top_rows * policy.guarantee.stated["l"] <= frame.height
    assert policy.guarantee.stated.get("k", 0) <= max(frame.height, 2)
    assert_usable(frame, policy)


KEY_NAMES = [
    "id",
    "ID",
    "patient_id",
    "PersonNr",
    "kundennummer",
    "case_no",
    "record id",
    "uuid",
    "mrn",
    "member-key",
]
keys = st.lists(st.integers(0, 10**9), min_size=3, max_size=30, unique=True)
forms = st.sampled_from([str, int, float, "P{:09}".format, "{:04x}-{}".format, "DE/{}".format])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KEY_NAMES), keys, forms, st.sampled_from(["age", "zip", "sex", "zz"]))
def test_named_key_is_never_published(name: str, numbers: list[int], form: Any, other: str) -> None:
    cells = [form(n, n) if form is not str and not isinstance(form, type) else form(n) for n in numbers]
    frame = pl.DataFrame({other: ["a"] * len(cells), name: cells})
    assert roles_of(frame)[name] in ("identifier", "drop")


@settings(max_examples=100, deadline=None)
@given(st.text("bcdfgqz", max_size=5), keys, st.sampled_from([str, int, float, "P{:09}".format, "ref {}".format]))
def test_unique_values_without_a_telling_name_are_never_published(name: str, numbers: list[int], form: Any) -> None:
    assert roles_of(pl.DataFrame({name: [form(n) for n in numbers]}))[name] in ("identifier", "drop")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(10**11, 10**12), min_size=6, max_size=20, unique=True),
    st.sampled_from([int, "v{}".format]),
)
def test_draft_quotes_no_values(numbers: list[int], form: Any) -> None:
    cells = [form(n) for n in numbers]
    frame = pl.DataFrame({"id": cells, "diagnosis": cells, "age": numbers, "city": [f"c{n}" for n in numbers]})
    draft = draft_policy(suggest(frame), "people")
    assert not [n for n in numbers if str(n) in draft]
    assert set(tomllib.loads(draft)["columns"]) == {"id", "diagnosis", "age", "city"}


@pytest.mark.parametrize("shape", ["hospital", "census"])
def test_simulated_tables_get_the_roles_they_were_made_with(shape: Any) -> None:
    made = simulate(Scenario(shape=shape, rows=500, releases=1))
    frame, intended = made.tables[0], load_policy({"columns": made.policy["columns"], "guarantee": {"k": 2}})
    policy = loaded(draft_policy(suggest(frame), shape))
    assert policy.identifier == intended.identifier
    for column in intended.named("quasi"):
        assert policy.columns[column].role == "quasi"
    assert shape == "census" or policy.named("sensitive") == intended.named("sensitive")
    assert_usable(frame, policy)


def test_numbers_with_thousands_separators_are_pointed_out(tmp_path: Path) -> None:
    """In the reason, without showing a value; written as it says, the column is one of numbers."""
    pay = ["8.206,72", "912,50", "1.030.000,00", "77"] * 5
    found = one("gehalt", pay)
    assert found.role == "sensitive"
    assert "write 8206,72 instead of 8.206,72" in found.reason
    assert "1.030" not in found.reason
    for other in (["8.206,72 EUR", "a few"] * 10, ["512,5", "1,234"] * 10, ["01.02.2024", "03.12.2023"] * 10):
        assert "thousands" not in one("x", other).reason
    file = tmp_path / "pay.csv"
    file.write_text("\n".join(["id;gehalt", *(f"{n};{text.replace('.', '')}" for n, text in enumerate(pay))]))
    assert looked(read_table(file))["gehalt"].dtype == pl.Float64


# --- what the other columns tell, and how the table is read ------------------------------------------


def test_a_table_about_health_makes_nameless_measurements_sensitive() -> None:
    flags = {name: [0, 1, 1, 0] * 10 for name in ("asthma", "diabetes", "hepatitis", "z30")}
    roles = {s.column: (s.role, s.confidence) for s in suggest(pl.DataFrame({"age": list(range(40)), **flags}))}
    assert roles["z30"] == ("sensitive", "guess")
    assert roles["age"] == ("quasi", "sure")
    assert roles_of(pl.DataFrame({"age": list(range(40)), "z30": flags["z30"]}))["z30"] == "quasi"


def test_squares_and_logarithms_are_what_their_columns_are() -> None:
    frame = pl.DataFrame({"exper": range(1, 41), "wage": range(100, 140), "expersq": range(40), "lwage": range(40)})
    assert list(roles_of(frame).values()) == ["quasi", "sensitive", "quasi", "sensitive"]


def test_logarithms_of_numbered_columns_are_seen_and_numbers_are_no_squares() -> None:
    frame = pl.DataFrame({"inc74": range(100, 140), "linc74": range(40), "z1": range(40), "z12": range(40)})
    assert [s.reason.startswith("By its name it is made from another") for s in suggest(frame)] == [0, 1, 0, 0]


def test_a_key_that_few_rows_lack_and_an_index_with_gaps() -> None:
    frame = pl.DataFrame(
        {
            "Unnamed: 0": [3 * i for i in range(200)],
            "id": [None if i % 20 == 0 else i % 50 for i in range(200)],
            "HbA1c": [4 + i % 50 / 10 for i in range(200)],
        }
    )
    assert list(roles_of(frame).values()) == ["drop", "identifier", "sensitive"]


def test_people_who_come_again_are_known_by_their_key() -> None:
    panel = pl.DataFrame({"fam": [i // 4 * 3 for i in range(40)], "wave": [i % 4 for i in range(40)], "age": range(40)})
    suggestions = {s.column: s for s in suggest(panel)}
    assert suggestions["fam"].role == "identifier"
    assert "publish one wave at a time" in suggestions["fam"].reason


def test_first_look_settles_how_a_table_is_read(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    rows = [f"{i}, {20 + i}, {'NA' if i % 7 == 0 else 1000 + i}, {'abcde'[i % 5]}" for i in range(1, 41)]
    file.write_text("\n".join([", age, income, town", *rows]))
    look = first_look(file, ReadOptions())
    assert look.input == {"row_index": True, "strip": True, "nulls": ["", "NA"]}
    assert len(look.remarks) == 3
    (tmp_path / "reveil.toml").write_text(draft_policy(suggest(look.frame), "people", reading=look.input))
    release = reveil.anonymize(file, tmp_path / "reveil.toml")  # read in the same way, without a word
    assert release.certificate.holds


def test_a_file_without_a_header(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("".join(f"{i},{20 + i % 9},{'MF'[i % 2]}\n" for i in range(1, 41)))
    assert any("--no-header" in remark for remark in first_look(file, ReadOptions()).remarks)
    look = first_look(file, ReadOptions(header=False))
    assert (look.frame.columns, look.frame.height) == (["column_1", "column_2", "column_3"], 40)
    assert look.input == {"header": False}
    with pytest.raises(InputError, match=r"R107.*--no-header"):
        file.write_text("1,1,M\n2,1,F\n")
        first_look(file, ReadOptions())


def test_frequent_values_that_mean_none_are_harmless_where_a_series_needs_it(tmp_path: Path) -> None:
    ill = [["asthma", "ulcer", "flu", "gout"][i // 5 % 4] if i % 5 == 0 else "none" for i in range(60)]
    frame = pl.DataFrame({"patient_id": range(60), "age": [20 + i % 30 for i in range(60)], "diagnosis": ill})
    draft = draft_policy(suggest(frame), "people")
    policy = loaded(draft)
    assert policy.guarantee.model == "compromise-safety"
    assert 'harmless = ["none"]' in draft
    assert reveil.open_series(policy, tmp_path / "home").publish(frame).certificate.holds
    mixed = frame.with_columns(diagnosis=pl.Series(["none", "flu", "gout", "asthma", "ulcer", "cold"] * 10))
    assert "harmless" not in draft_policy(suggest(mixed), "people").split("[values]")[0]


def test_titles_above_the_header_are_found_and_left_out(tmp_path: Path) -> None:
    header, people = ["Nr", "Alter", "Krankheit"], [[f"P{i}", 20 + i % 9, "abcde"[i % 5]] for i in range(40)]
    sheet = workbook(tmp_path / "k.xlsx", {"s": [["Klinik", None, None], ["Stand 1.10.", None, None], header, *people]})
    lines = ["Klinik, Haus A", "", ";;", *(";".join(map(str, row)) for row in (header, *people))]
    text = tmp_path / "k.csv"
    text.write_text("\n".join(lines))
    for file, above in ((sheet, 2), (text, 3)):
        look = first_look(file, ReadOptions())
        assert (look.input, look.frame.columns, look.frame.height) == ({"skip_lines": above}, header, 40)
        with pytest.raises(InputError, match=rf"R115.*{above} lines.*skip_lines = {above}"):
            read_table(file, ReadOptions())
    text.write_text("\n".join([*lines, "P99;1"]))  # lines are counted as in the file
    with pytest.raises(InputError, match=r"R108.*line 45 has 2"):
        read_table(text, ReadOptions(skip_lines=3))


def test_cells_set_apart_by_blanks_are_found(tmp_path: Path) -> None:
    file = tmp_path / "k.dat"
    rows = [f'  {n:<4} {20 + n % 9}\t  "New  York"   {"abcde"[n % 5]}  ' for n in range(40)]
    file.write_text("\n".join(["  nr   age  town ill", *rows]))
    look = first_look(file, ReadOptions())
    assert look.input == {"delimiter": "blanks"}
    assert look.frame.columns == ["nr", "age", "town", "ill"]
    assert look.frame.row(3) == (3, 23, "New  York", "d")
    with pytest.raises(InputError, match=r"R116.*4 cells"):
        read_table(file, ReadOptions())
    file.write_text("\n".join(["age town ill", *rows]))  # as R writes it: the rows are numbered
    look = first_look(file, ReadOptions())
    assert (look.input, look.frame.columns) == ({"delimiter": "blanks", "row_index": True}, ["age", "town", "ill"])
    file.write_text("name\nAnn Lee\nBo Lind\n")
    assert read_table(file, ReadOptions()).width == 1


def test_who_comes_again_is_seen_without_names() -> None:
    people = [(n, 50 + n % 7, n % 2, 100 + 3 * n % 40) for n in range(30)]
    visits = [(n, visit, *fixed, 7 * n * visit % 11) for n, *fixed in people for visit in range(4)]
    panel = pl.DataFrame(visits, schema=[f"column_{place}" for place in range(1, 7)], orient="row")
    found = suggest(panel)
    assert [one.column for one in found if one.role == "identifier"] == ["column_1"]
    assert first_period(panel, found) == ("column_2", "0")
    named = panel.rename({f"column_{place}": name for place, name in enumerate("abcdef", 1)})
    assert not [one for one in suggest(named) if one.role == "identifier"]  # names of theirs say more


@pytest.mark.parametrize(
    ("name", "code"), [("patient", "P{:05}"), ("Fallnummer", "P{:05}"), ("case", "C{:04}"), ("insurance_no", "A{:04}")]
)
def test_numbers_of_people_that_come_again_are_no_diagnoses(name: str, code: str) -> None:
    ids = [code.format(1 + n % 80) for n in range(200)]
    frame = pl.DataFrame({name: ids, "diagnosis": [f"{'AEIJ'[n % 4]}{10 + n % 9}.{n % 3}" for n in range(200)]})
    assert [one.role for one in suggest(frame)] == ["identifier", "sensitive"]
    assert suggest(frame.rename({name: "kv"}))[0].role != "sensitive"
    kinds = pl.DataFrame({"patient": [n % 2 for n in range(60)], "age": [20 + n % 40 for n in range(60)]})
    assert suggest(kinds)[0].role != "identifier"


def test_people_with_several_rows_are_published_whole(tmp_path: Path) -> None:
    days = [f"2024-{1 + n * 7 % 12:02}-{1 + n * 5 % 28:02}" for n in range(120)]
    visits = {"patient_id": [n % 50 for n in range(120)], "visited": days, "age": [20 + n % 50 % 6 for n in range(120)]}
    visits["diagnosis"] = ["abcdef"[n * n % 50 % 6] for n in range(120)]
    pl.DataFrame(visits).write_csv(tmp_path / "visits.csv")
    policy = tmp_path / "reveil.toml"
    out = cli("init", str(tmp_path / "visits.csv"), "-p", str(policy))[1]
    assert "reveil anonymize --out NEW-FOLDER" in out and "People have several rows" in out
    release = reveil.anonymize(tmp_path / "visits.csv", policy)
    assert (release.certificate.holds, load_policy(policy).people.rows) == (True, "many")
    assert load_policy(policy).guarantee.model == "l-diversity"
    assert reveil.suggest(tmp_path / "visits.csv").policy("visits") == policy.read_text()
    often = pl.DataFrame(visits).with_columns(diagnosis=pl.lit("flu"))
    assert loaded(reveil.suggest(often).policy()).guarantee.model == "k-anonymity"


def test_people_who_cannot_be_published_yet_are_named(tmp_path: Path) -> None:
    """Rows without a key, and a key of one person only: said before the command that they would stop."""
    table, policy = tmp_path / "visits.csv", tmp_path / "reveil.toml"
    visits = pl.DataFrame({"patient_id": [n % 30 for n in range(60)], "age": [20 + n % 30 % 3 for n in range(60)]})
    lacking = visits.with_columns(patient_id=pl.when(pl.int_range(60) > 3).then("patient_id"))
    lacking.write_csv(table)
    out = cli("init", str(table), "-p", str(policy))[1]
    assert "First fill in 'patient_id', or remove the 4 rows without it" in out
    assert "# First fill in 'patient_id', or remove the 4 rows" in policy.read_text()
    release = reveil.anonymize(lacking.drop_nulls(), policy)
    assert (release.certificate.holds, load_policy(policy).people.rows) == (True, "many")

    alone = visits.head(9).with_columns(patient_id=pl.lit(1))
    draft = reveil.suggest(alone).policy()
    assert "# By 'patient_id' all rows are about one person" in draft and "[people]" not in draft
    dropped = draft.replace('patient_id = "identifier"', 'patient_id = "drop"')
    assert reveil.anonymize(alone, loaded(dropped)).certificate.holds


def test_a_header_without_some_names_is_no_title(tmp_path: Path) -> None:
    file = tmp_path / "k.csv"
    file.write_text("Nr;Alter;;Krankheit\n1;2;3;4\n2;3;4;5\n")
    with pytest.raises(InputError, match=r"R107.*column 3 of 4 has no name"):
        first_look(file, ReadOptions())


def test_one_impossible_date_does_not_cost_the_column() -> None:
    born = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1950 + i % 40}" for i in range(60)]
    born[7] = "31.02.1970"
    (found,) = suggest(pl.DataFrame({"Geburtsdatum": born}))
    assert (found.role, found.spec["type"]) == ("quasi", "date")
    assert "1 cell is none (row 8)" in found.reason
    (many,) = suggest(pl.DataFrame({"Geburtsdatum": [*born[:20], *["31.02.1970"] * 5]}))
    assert many.role == "drop"


def test_a_day_of_visit_is_no_period_to_publish_one_at_a_time() -> None:
    visits = [(f"P{n}", f"2024-{1 + n % 12:02d}-{1 + turn * 9 + n % 7:02d}") for n in range(60) for turn in range(3)]
    frame = pl.DataFrame(visits, schema=["patient_id", "visit_date"], orient="row")
    assert first_period(frame, suggest(frame)) is None
    waves = frame.with_columns(wave=pl.int_range(pl.len()) % 3).drop("visit_date")
    assert first_period(waves, suggest(waves)) == ("wave", "0")


def test_a_column_of_which_nothing_is_known_and_that_is_nearly_empty_is_dropped() -> None:
    (found,) = suggest(pl.DataFrame({"z1": [3, 3, *[None] * 98]}))
    assert (found.role, found.confidence) == ("drop", "guess")
    assert "98 % of rows" in found.reason
