"""Bad tables, policies and homes: exit 2, a message to act on, and nothing written."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.policy.policy import recorded_policy
from reveil.simulation.scenario import Scenario
from reveil.simulation.simulate import simulate
from support import cli

POLICY = """
[series]
name = "desk"

[columns]
id = "identifier"
age = "quasi"
town = { role = "quasi", hierarchy = "towns.csv" }
seen = { role = "quasi", levels = ["month", "year"] }
ill = "sensitive"

[values]
change = "never"

[guarantee]
k = 2
"""
TOWNS = "Berlin;east;*\nDresden;east;*\nKiel;north;*\nBremen;north;*\n"
ILL = ("flu", "cold", "gout")
ROWS = 12


def rows() -> list[list[str]]:
    towns = [line.split(";")[0] for line in TOWNS.split()]
    return [[f"p{i}", str(20 + 3 * i), towns[i % 4], f"2024-{i % 3 + 1:02d}-10", ILL[i % 3]] for i in range(ROWS)]


@dataclass
class Desk:
    """A folder with a policy, a hierarchy, a table and the home of a series."""

    folder: Path

    @property
    def table(self) -> Path:
        return self.folder / "table.csv"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def policy(self, old: str, new: str) -> None:
        file = self.folder / "reveil.toml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def write(self, table: list[list[str]], header: str = "id,age,town,seen,ill") -> None:
        self.table.write_text("\n".join([header, *(",".join(row) for row in table)]) + "\n")

    def cell(self, row: int, column: int, value: str) -> None:
        table = rows()
        table[row][column] = value
        self.write(table)

    def run(self, *arguments: str, command: str = "publish") -> tuple[int, str, str]:
        policy = ["--policy", str(self.folder / "reveil.toml")]
        accepted = ["--accept", "same-table"]  # each case spoils something else
        return cli(command, str(self.table), "--home", str(self.home), *policy, *accepted, *arguments)


def tree(folder: Path) -> dict[str, str]:
    """Every path below a folder, with the hash of what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with one release; each test works on a copy."""
    desk = Desk(tmp_path_factory.mktemp("begun"))
    (desk.folder / "reveil.toml").write_text(POLICY)
    (desk.folder / "towns.csv").write_text(TOWNS)
    desk.write(rows())
    code, _, err = desk.run("--quiet")
    assert code == 0, err
    return desk.folder


@pytest.fixture
def desk(begun: Path, tmp_path: Path) -> Desk:
    return Desk(Path(shutil.copytree(begun, tmp_path / "desk")))


def write_bytes(content: bytes) -> Callable[[Desk], object]:
    return lambda desk: desk.table.write_bytes(content)


def text() -> str:
    return "id,age,town,seen,ill\n" + "\n".join(",".join(row) for row in rows()) + "\n"


# What is done to the desk, the codes of the refusal, and words that its message must have.
IN_SERIES: dict[str, tuple[Callable[[Desk], object], list[str], list[str]]] = {
    "missing column": (
        lambda d: d.write([[r[0], *r[2:]] for r in rows()], "id,town,seen,ill"),
        ["R210"],
        ["column 'age'", "not in the table"],
    ),
    "misspelt column": (
        lambda d: d.write(rows(), "id,aeg,town,seen,ill"),
        ["R210", "R211"],
        ["column 'age'", "the table has 'aeg'", "no role", "(12 rows)"],
    ),
    "column without a role": (
        lambda d: d.write([[*r, "x"] for r in rows()], "id,age,town,seen,ill,note"),
        ["R211"],
        ["column 'note'", "(12 rows)", '"drop"'],
    ),
    "duplicate people": (
        lambda d: d.cell(3, 0, "p5"),
        ["R214"],
        ["identifier 'id'", "1 person has", "(2 rows: no. 4, 6)"],
    ),
    "missing identifier": (lambda d: d.cell(3, 0, ""), ["R213"], ["identifier 'id'", "(1 row: no. 4)"]),
    "unknown category": (
        lambda d: d.cell(3, 2, "Brelin"),
        ["R301"],
        ["column 'town'", "towns.csv", "'Brelin' (1 row, nearest 'Berlin')", "add these values"],
    ),
    "huge unknown category": (
        lambda d: d.cell(3, 2, "x" * 10_000_000),
        ["R301"],
        ["column 'town'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'", "(1 row: no. 4)"],
    ),
    "text amid numbers": (lambda d: d.cell(3, 1, "old"), ["R218"], ["column 'age'", "'old'", "(1 row: no. 4)"]),
    "no such day": (lambda d: d.cell(3, 3, "2024-13-45"), ["R218"], ["'seen'", "'2024-13-45'", "yyyy-mm-dd"]),
    "a persistent value changed": (
        lambda d: d.cell(0, 4, "gout"),
        ["R311"],
        ["column 'ill'", "'flu' -> 'gout' (1)", '"never"', "(1 row: no. 1)"],
    ),
    "a persistent value went missing": (lambda d: d.cell(0, 4, ""), ["R311"], ["'flu' -> None (1)"]),
    "several at once": (
        lambda d: d.write(
            [
                ["p1" if i < 2 else r[0], r[1], r[2], "soon" if i == 4 else r[3], r[4], "x"]
                for i, r in enumerate(rows())
            ],
            "id,aeg,town,seen,ill,note",
        ),
        ["R210", "R211", "R211", "R214", "R218"],
        ["'age'", "'aeg'", "'note'", "'id'", "'seen'", "'soon'"],
    ),
    "no such table": (lambda d: d.table.unlink(), ["R101"], ["table.csv", "no such file"]),
    "empty file": (write_bytes(b""), ["R103"], ["table.csv", "empty"]),
    "header only": (write_bytes(b"id,age,town,seen,ill\n"), ["R212"], ["no rows", "right file"]),
    "ragged": (write_bytes(text().encode() + b"p99,40\n"), ["R108"], ["5 fields", "line 14 has 2"]),
    "damaged text": (
        write_bytes(text().replace("p0", "pü").encode() + b"p99,40,\xff\xfe,2024-01-10,flu\n"),
        ["R105"],
        ["0xff", "line 14", "cp1252"],
    ),
    "not text": (write_bytes(b"PK\x03\x04\x00\x00\x00" * 9), ["R104"], ["NUL"]),
    "hierarchy file gone": (
        lambda d: (d.folder / "towns.csv").unlink(),
        ["R302"],
        ["towns.csv", "column 'town'", "No such file"],
    ),
    "hierarchy ragged": (
        lambda d: (d.folder / "towns.csv").write_text(TOWNS + "Ulm;*\n"),
        ["R303"],
        ["towns.csv", "lines 5", "same number of levels"],
    ),
    "hierarchy with two parents": (
        lambda d: (d.folder / "towns.csv").write_text(TOWNS + "Kiel;east;*\n"),
        ["R303"],
        ["'Kiel' stands on two lines"],
    ),
    "a leaf moved to another known label": (
        lambda d: (d.folder / "towns.csv").write_text(TOWNS.replace("Dresden;east", "Dresden;north") + "Jena;east;*\n"),
        ["R310"],
        ["column 'town'", "Dresden", "earlier releases"],
    ),
    "hierarchy and table at once": (
        lambda d: ((d.folder / "towns.csv").unlink(), d.cell(3, 0, "p5")),
        ["R302", "R214"],
        ["towns.csv", "identifier 'id'"],
    ),
    "another series in this home": (
        lambda d: d.policy('"desk"', '"shop"'),
        ["R502"],
        ["series.name", '"desk" -> "shop"', "new home"],
    ),
    "policy changed in mid-series": (
        lambda d: d.policy("k = 2", "k = 3"),
        ["R502"],
        ["guarantee.k: 2 -> 3", "recorded -> given"],
    ),
    "policy changed twice": (
        lambda d: (d.policy("k = 2", "k = 3\nl = 2"), d.policy('change = "never"', 'change = "freely"')),
        ["R502", "R502", "R502"],
        ["guarantee.k", "guarantee.l", "values.change"],
    ),
}

FRESH: dict[str, tuple[Callable[[Desk], object], list[str], list[str]]] = {
    "missing values refused": (
        lambda d: (d.policy('age = "quasi"', 'age = { role = "quasi", missing = "refuse" }'), d.cell(2, 1, "")),
        ["R215"],
        ["column 'age'", "(1 row: no. 3)", '"category"'],
    ),
    "numbers that are text": (
        lambda d: (d.policy('age = "quasi"', 'age = { role = "quasi", widths = [5] }'), d.cell(2, 1, "about 30")),
        ["R218"],
        ["column 'age'", "'about 30'", "(1 row: no. 3)"],
    ),
    "an encoding that does not fit": (
        lambda d: (
            d.policy("[guarantee]", '[input]\nencoding = "utf-8"\n[guarantee]'),
            d.table.write_bytes(b"id,\xfc\n"),
        ),
        ["R105"],
        ["0xfc", "utf-8"],
    ),
    "an order of text": (
        lambda d: d.policy("k = 2", 'k = 2\nt = 0.3\ndistance = "ordered"'),
        ["R412"],
        ["column 'ill'", "order", '"equal"'],
    ),
    "numbers out of range": (
        lambda d: d.policy("k = 2", 'k = 0\nt = 2\nalpha = "much"\nl = true'),
        ["R201", "R201", "R201", "R201"],
        ["guarantee.k: 0 is not allowed", "not below 1", "guarantee.t: 2 is not allowed", "not above 1"],
    ),
    "two keys that do nothing": (
        lambda d: d.policy("k = 2", "k = 2\nc = 2\nproximity = 'relative'"),
        ["R201", "R201"],
        ["c does nothing without l", "proximity does nothing without epsilon", "change the keys"],
    ),
    "no promise": (
        lambda d: d.policy("[guarantee]\nk = 2", ""),
        ["R201"],
        ["guarantee: is missing", "add a section [guarantee]"],
    ),
    "one value in all rows": (
        lambda d: (d.policy("k = 2", "k = 2\nl = 2"), d.write([[*r[:4], "flu"] for r in rows()])),
        ["R402"],
        ["column 'ill'", "1 different", "l = 2"],
    ),
    "k larger than the table": (
        lambda d: d.policy("k = 2", "k = 13"),
        ["R401"],
        ["guarantee.k", "12 rows", "k = 13", "lower k"],
    ),
    "several promises that cannot be kept": (
        lambda d: d.policy("k = 2", "k = 13\nl = 4"),
        ["R401", "R402"],
        ["k = 13", "l = 4"],
    ),
    "no table could satisfy it": (
        lambda d: d.policy("k = 2", 'model = "compromise-safety"\nm = 2\ncompromised = 1'),
        ["R201"],
        ["reveil.toml, guarantee", "promises nothing"],
    ),
    "presence bounds crossed": (
        lambda d: (
            d.policy("k = 2", 'k = 2\npopulation = "p.csv"\ndelta_min = 0.5\ndelta_max = 0.2'),
            d.policy("[values]", '[method]\nrecode = "sets"\n[values]'),
        ),
        ["R201"],
        ["delta_min is larger"],
    ),
    "unknown keys": (
        lambda d: (d.policy("k = 2", "k = 2\nkk = 3"), d.policy("[values]", "[valeus]")),
        ["R201", "R201"],
        ["guarantee.kk", "valeus", "did you mean values"],
    ),
    "wrong words": (
        lambda d: (d.policy('ill = "sensitive"', 'ill = "secret"'), d.policy("k = 2", "k = 0")),
        ["R201", "R201"],
        ["columns.ill", '"secret" is not allowed', "guarantee.k"],
    ),
    "an empty list of widths": (
        lambda d: d.policy('age = "quasi"', 'age = { role = "quasi", cuts = [] }'),
        ["R201"],
        ["columns.age", "empty cuts"],
    ),
    "population file missing": (
        lambda d: (
            d.policy("k = 2", 'k = 2\npopulation = "people.csv"\ndelta_max = 0.5'),
            d.policy("[values]", '[method]\nrecode = "sets"\n[values]'),
        ),
        ["R101"],
        ["people.csv", "no such file"],
    ),
    "two hierarchies at once": (
        lambda d: (
            d.policy('age = "quasi"', 'age = { role = "quasi", hierarchy = "ages.csv" }'),
            (d.folder / "towns.csv").unlink(),
        ),
        ["R302", "R302"],
        ["ages.csv", "towns.csv"],
    ),
    "a column called group": (
        lambda d: (d.policy('age = "quasi"', 'group = "quasi"'), d.write(rows(), "id,group,town,seen,ill")),
        ["R217"],
        ["column 'group'", "rename"],
    ),
    "no identifier": (
        lambda d: d.policy('id = "identifier"', 'id = "drop"'),
        ["R216"],
        ["identifier", "never published"],
    ),
    "policy is not TOML": (lambda d: d.policy("k = 2", "k = = 2"), ["R200"], ["not valid TOML", "line"]),
    "policy is not text": (
        lambda d: (d.folder / "reveil.toml").write_bytes(b"\xff\xfe"),
        ["R200"],
        ["not UTF-8", "reveil.toml"],
    ),
    "policy missing": (lambda d: (d.folder / "reveil.toml").unlink(), ["R200"], ["reveil.toml", "reveil init"]),
}


def refused(desk: Desk, codes: list[str], words: list[str]) -> None:
    """Exit 2, every code and word, the same as JSON, and not a byte changed."""
    before = tree(desk.folder)
    code, out, err = desk.run()
    assert code == 2, out + err
    assert out == ""
    for part in (*codes, *words, "Way out:"):
        assert part in err
    assert len(err) < 5000  # whatever the table holds, people can read the message
    code, out, err = desk.run("--json")
    answer = json.loads(out)
    assert (code, err) == (2, "")
    assert sorted(fault["code"] for fault in answer["faults"]) == sorted(codes)
    assert all(fault["where"] and fault["message"] and fault["remedy"] for fault in answer["faults"])
    assert desk.run(command="plan")[0] == 2
    assert tree(desk.folder) == before


@pytest.mark.parametrize("name", IN_SERIES)
def test_a_series_is_untouched_by(desk: Desk, name: str) -> None:
    spoil, codes, words = IN_SERIES[name]
    spoil(desk)
    refused(desk, codes, words)


@pytest.mark.parametrize("name", FRESH)
def test_no_series_is_begun_by(desk: Desk, name: str) -> None:
    shutil.rmtree(desk.home)
    spoil, codes, words = FRESH[name]
    spoil(desk)
    refused(desk, codes, words)
    assert not desk.home.exists()


def test_the_good_table_is_published_again(desk: Desk) -> None:
    """The cases above fail for what was spoilt, not for the desk."""
    assert desk.run()[0] == 0
    assert (desk.home / "releases" / "0002").is_dir()


def test_home_is_a_file(desk: Desk) -> None:
    shutil.rmtree(desk.home)
    desk.home.write_text("a letter")
    refused(desk, ["R501"], ["this is a file", "--home"])


def test_home_holds_other_things(desk: Desk) -> None:
    shutil.rmtree(desk.home)
    desk.home.mkdir()
    (desk.home / "letters.txt").write_text("private")
    refused(desk, ["R501"], ["letters.txt", "new folder"])


def test_negative_seed(desk: Desk) -> None:
    code, _, err = desk.run("--seed", "-3")
    assert code == 2
    assert "R222" in err


def test_new_values_may_be_added_to_a_hierarchy(desk: Desk) -> None:
    (desk.folder / "towns.csv").write_text("Ulm;south;*\n" + TOWNS + "Jena;east;*\n")
    desk.cell(3, 2, "Jena")
    assert desk.run()[0] == 0


def test_missing_is_a_category_unless_refused(desk: Desk) -> None:
    table = rows()
    for row in (0, 1, 2):
        table[row][1] = table[row][2] = ""
    desk.write(table)
    code, _, err = desk.run()
    assert code == 0, err


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("x", [[1], [2], [3], [4]]),
        pl.Series("x", [{"a": 1}] * 4),
        pl.Series("x", [b"\xff", b"a", b"b", b"c"]),
        pl.Series("x", [1, 2, 3, 4]).cast(pl.Duration),
    ],
    ids=["list", "struct", "binary", "duration"],
)
@pytest.mark.parametrize("role", ["quasi", "sensitive", "insensitive", "identifier"])
def test_types_that_cannot_be_published(column: pl.Series, role: str) -> None:
    table = pl.DataFrame({"age": [1, 2, 3, 4]}).with_columns(column)
    with pytest.raises(InputError, match=r"R221 column 'x'.*4 rows"):
        reveil.anonymize(table, {"columns": {"age": "quasi", "x": role}, "guarantee": {"k": 2}})


@pytest.mark.parametrize(
    ("values", "spec", "code"),
    [
        (pl.Series([2**63, 2**63 + 1], dtype=pl.UInt64), "quasi", "R218"),
        (pl.Series([20241301, 20240102]), {"role": "quasi", "levels": ["month"]}, "R218"),
        (pl.Series([19_000, 19_001]), {"role": "quasi", "type": "date"}, "R218"),
        (pl.Series([1.0, float("inf")]), "quasi", "R218"),
        (pl.Series([0, 5_000_000], dtype=pl.Int32).cast(pl.Date), "quasi", "R218"),
        (pl.Series(["*", "a"]), "quasi", "R304"),
    ],
    ids=["64 bits", "number as month", "number as date", "infinite", "year 15659", "star"],
)
def test_values_that_would_be_read_wrongly(values: pl.Series, spec: object, code: str) -> None:
    table = pl.DataFrame({"x": values})
    with pytest.raises(InputError, match=code):
        reveil.anonymize(table, {"columns": {"x": spec}, "guarantee": {"k": 2}})


@pytest.mark.parametrize("command", [["history"], ["show", "1"], ["verify"], ["verify", "1"], ["audit"]])
def test_looking_back_works_under_the_recorded_policy(desk: Desk, command: list[str]) -> None:
    where = ["--home", str(desk.home), "--policy", str(desk.folder / "reveil.toml")]
    as_recorded = cli(*command, *where)
    desk.policy("k = 2", "k = 3")
    desk.policy('change = "never"', 'change = "freely"')
    desk.policy("[guarantee]", '[method]\nrecode = "sets"\n[guarantee]')
    before = tree(desk.folder)
    code, out, err = cli(*command, *where)
    assert (code, out) == as_recorded[:2]
    for part in ("not the policy of this series", "guarantee.k: 2 -> 3", "values.change", "method.recode", "R502"):
        assert part in err
    assert tree(desk.folder) == before
    for writing in ("plan", "publish"):
        code, out, err = desk.run(command=writing)
        assert (code, err.count("R502  ")) == (2, 3)
    assert tree(desk.folder) == before


def test_what_cannot_be_kept_in_mid_series_says_what_is_fixed(desk: Desk) -> None:
    desk.write(rows()[:1])
    code, _, err = desk.run("--yes-new-people")
    assert (code, "R401" in err) == (2, True)
    assert "keeps its promise" in err
    assert "method.infeasible may be changed now" in err
    assert "keeps its promise" in json.loads(desk.run("--yes-new-people", "--json")[1])["notes"][0]
    shutil.rmtree(desk.home)
    assert "keeps its promise" not in desk.run()[2]


def test_the_order_of_columns_in_the_policy_may_change(desk: Desk) -> None:
    desk.policy('age = "quasi"\n', "")
    desk.policy('ill = "sensitive"\n', 'ill = "sensitive"\nage = "quasi"\n')
    code, out, err = cli("verify", "--home", str(desk.home), "--policy", str(desk.folder / "reveil.toml"))
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize("values", ["never", "freely", "transitions"])
def test_a_policy_comes_back_from_the_ledger_as_it_was(values: str) -> None:
    made = reveil.load_policy(simulate(Scenario(values=values, rows=50)).policy)
    other = reveil.load_policy({"columns": {"x": "quasi"}, "guarantee": {"k": 2}, "output": {"format": "parquet"}})
    again = recorded_policy(json.loads(json.dumps(made.fixed())), other)
    assert again.fixed() == made.fixed()
    assert again.output.format == "parquet"


def test_places_are_rows_whatever_the_lines(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(
        'note,age,id\n"two\nlines",old,p1\n"","40",p2\n,young,p2\n"a\n\nb",41,\n,old,p3\n,old,p4\n,odd,p5\n'
    )
    policy = {"columns": {"note": "drop", "age": {"role": "quasi", "type": "number"}, "id": "identifier"}}
    with pytest.raises(InputError) as refusal:
        reveil.anonymize(table, {**policy, "guarantee": {"k": 2}})
    found = {fault.code: (fault.rows, fault.places) for fault in refusal.value.faults}
    assert found == {"R218": (5, (1, 3, 5, 6)), "R213": (1, (4,)), "R214": (2, (2, 3))}
    assert "(5 rows: no. 1, 3, 5, 6 and 1 more)" in str(refusal.value)
    assert refusal.value.faults[0].to_dict()["places"] == [1, 3, 5, 6]


def test_places_of_the_population_are_not_those_of_the_table(tmp_path: Path) -> None:
    people = pl.DataFrame({"town": ["Kiel", "Bonn"]})
    people.write_csv(tmp_path / "all.csv")
    hierarchy = {"north": ["Kiel"], "west": ["Bonn"]}
    policy = {
        "columns": {"town": {"role": "quasi", "hierarchy": {"north": ["Kiel"], "south": ["Ulm"]}}},
        "guarantee": {"model": "presence", "population": str(tmp_path / "all.csv"), "delta_max": 0.9},
        "method": {"recode": "sets"},
    }
    with pytest.raises(InputError, match=r"column 'town' of the population.*\(1 row: no. 2\)"):
        reveil.anonymize(people.head(1), policy)
    both = r"column 'town':.*\(1 row: no. 2\).*\n.*column 'town' of the population:.*\(1 row: no. 2\)"
    with pytest.raises(InputError, match=both):
        reveil.anonymize(people, policy)
    policy["columns"]["town"]["hierarchy"] = hierarchy
    assert reveil.anonymize(people.head(1), policy).certificate.holds


def days(values: list[object], **given: str) -> list[object]:
    """What is published of dates written like this."""
    policy = {"columns": {"x": {"role": "quasi", "type": "date"}}, "input": given, "guarantee": {"k": 2}}
    if not given:
        del policy["input"]
    return sorted(set(reveil.anonymize(pl.DataFrame({"x": [*values, *values]}), policy).table["x"]), key=str)


@pytest.mark.parametrize(
    "written",
    [
        ["27.02.2024", "1.3.2024"],
        ["27/02/2024", "01/03/2024", "31/03/2024"],
        ["02/27/2024", "3/1/2024", "3/31/2024"],
        ["27-02-2024", "01-03-2024", "31-03-2024"],
        ["2024/02/27", "2024/3/1"],
        ["20240227", "20240301"],
        [20240227, 20240301],
        ["2024-02-27T23:59", "2024-03-01 00:00:01"],
        ["2024-02-27 23:59:59.5Z", "2024-03-01T00:00:00+09:00"],
    ],
    ids=str,
)
def test_dates_as_people_write_them(written: list[object]) -> None:
    assert days(written) == ["2024-02-27", "2024-03-01", "2024-03-31"][: len(written)]


def test_a_time_belongs_to_the_day_of_its_own_clock() -> None:
    late = pl.Series([datetime(2024, 2, 26, 23, 30), datetime(2024, 2, 29, 15)]).dt.replace_time_zone("UTC")
    assert days(late.dt.convert_time_zone("Asia/Tokyo").to_list()) == ["2024-02-27", "2024-03-01"]
    assert days(late.to_list()) == ["2024-02-26", "2024-02-29"]


def test_dates_that_do_not_say_what_is_first(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"R218.*'03/04/2024' and all others could be dd/mm/yyyy or mm/dd/yyyy.*day-first"
    ):
        days(["02/02/2024", "03/04/2024"])
    assert days(["02/02/2024", "03/03/2024"]) == ["2024-02-02", "2024-03-03"]  # either way the same
    table = tmp_path / "table.csv"
    table.write_text("x\n" + "02/03/2024\n03/04/2024\n" * 2)
    policy = {"columns": {"x": {"role": "quasi", "type": "date"}}, "guarantee": {"k": 2}}
    for first, wanted in (("day-first", ["2024-03-02", "2024-04-03"]), ("month-first", ["2024-02-03", "2024-03-04"])):
        found = reveil.anonymize(table, {**policy, "input": {"dates": first}}).table["x"]
        assert sorted(set(found)) == wanted
    with pytest.raises(InputError, match=r"1 value is not a date \(dd/mm/yyyy\): '02/27/2024' \(1 row: no. 2\)"):
        reveil.anonymize(pl.DataFrame({"x": ["03/04/2024", "02/27/2024"]}), {**policy, "input": {"dates": "day-first"}})


@pytest.mark.parametrize(
    "written", ["27.02.24", "31.02.2024", "2024-02", "27 Feb 2024", "13/13/2024", "00.01.2024", "29.02.1900"]
)
def test_dates_that_are_none(written: str) -> None:
    with pytest.raises(InputError, match=r"R218 column 'x': 1 value is not a date"):
        days(["2024-01-31", written])


@pytest.mark.parametrize("time", ["24:01", "12:60", "12:30 or so", "12"])
def test_a_time_that_is_none_is_no_date(time: str) -> None:
    with pytest.raises(InputError, match=r"R218 column 'x': 1 value is not a date \(yyyy-mm-dd and a time\)"):
        days(["2024-01-31 12:00", "2024-01-31 12:01", f"2024-01-31 {time}"])


def test_a_column_keeps_the_type_of_its_first_release(tmp_path: Path) -> None:
    policy = {"columns": {"id": "identifier", "age": "quasi", "code": "sensitive"}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, tmp_path / "home")
    series.publish(pl.DataFrame({"id": [1, 2], "age": [30, 40], "code": ["a1", "n/a"]}))
    second = series.publish(pl.DataFrame({"id": [1, 2], "age": [30.5, 40], "code": [1, 2]}))
    assert sorted(second.table["code"]) == ["1", "2"]
    assert series.history().codebook["code"] == ["a1", "n/a", "1", "2"]
    with pytest.raises(InputError, match=r"R218 column 'age'.*'n/a'"):
        series.publish(pl.DataFrame({"id": [1, 2], "age": ["30", "n/a"], "code": [1, 2]}))


@pytest.mark.parametrize("name", ["person", "release", "group"])
@pytest.mark.parametrize("role", ["quasi", "sensitive", "insensitive"])
def test_names_that_a_series_needs(tmp_path: Path, name: str, role: str) -> None:
    policy = {"columns": {"id": "identifier", "age": "quasi", name: role}, "guarantee": {"k": 2}}
    table = pl.DataFrame({"id": [1, 2], "age": [30, 40], name: ["a", "b"]})
    with pytest.raises(InputError, match=f"R217 column '{name}'"):
        reveil.open_series(policy, tmp_path / "home").publish(table)
    columns = {"age": "quasi", name: role}
    single = reveil.anonymize(table.drop("id"), {"columns": columns, "guarantee": {"k": 2}})
    assert single.certificate.holds  # outside a series they are names like any other
    assert single.certificate.counts["groups"] == 1


AWKWARD = ["rows", "known", "published", "value", "count", "class", "code", "column", "a", "len", 'q"q', "x\ny", "é,;"]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("role", ["quasi", "sensitive", "insensitive"])
def test_awkward_names_are_published(tmp_path: Path, name: str, role: str) -> None:
    policy = {"columns": {"id": "identifier", "age": "quasi", name: role}, "guarantee": {"k": 2}}
    table = pl.DataFrame({"id": [1, 2], "age": [30, 40], name: ["a", "b"]})
    series = reveil.open_series(policy, tmp_path / "home")
    series.publish(table)
    assert series.releases[0].table.columns == ["group", "age", name]


def test_a_cell_of_ten_megabytes(tmp_path: Path) -> None:
    giant = "long " * 2_000_000
    policy = {"columns": {"id": "identifier", "age": "quasi", "note": "sensitive"}, "guarantee": {"k": 2}}
    series = reveil.open_series(policy, tmp_path / "home")
    release = series.publish(pl.DataFrame({"id": [1, 2], "age": [30, 40], "note": [giant, "short"]}))
    assert release.certificate.holds
    assert sorted(release.table["note"], key=len) == ["short", giant]
    never = {**policy, "values": {"change": "never"}}
    series = reveil.open_series(never, tmp_path / "other")
    series.publish(pl.DataFrame({"id": [1, 2], "age": [30, 40], "note": [giant, "short"]}))
    with pytest.raises(InputError) as refusal:
        series.publish(pl.DataFrame({"id": [1, 2], "age": [30, 40], "note": ["short", giant]}))
    assert len(str(refusal.value)) < 1000


def test_an_insensitive_column_that_names_rows_would_break_a_promise_about_a_series(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": range(40), "age": range(40), "cost": range(40), "ill": ["a", "b"] * 20})
    columns = {"id": "identifier", "age": "quasi", "cost": "insensitive", "ill": "sensitive"}
    policy = {"columns": columns, "values": {"change": "never"}, "guarantee": {"model": "m-invariance", "m": 2}}
    with pytest.raises(InputError, match=r"R226 column 'cost'.*40 of 40 rows"):
        reveil.open_series(policy, home=tmp_path / "home").publish(table)
    assert not (tmp_path / "home").exists()
    reveil.open_series(policy, home=tmp_path / "home").publish(table.with_columns(pl.col("cost") // 10))


ONE_FAULT = {
    "values.transitions.a": {"values": {"change": "transitions", "transitions": {"a": "b"}}},
    "values.transitions.a.b": {"values": {"change": "transitions", "transitions": {"a": {"b": "often"}}}},
    "values.transitions.level": {"values": {"change": "transitions", "transitions": {"level": 0}}},
    "values.transitions.a.1": {"values": {"change": "transitions", "transitions": {"a": ["b", ["c"]]}}},
    "values.transitions": {"values": {"change": "transitions", "transitions": 5}},
    "columns.age.cuts.1": {"columns": {"age": {"role": "quasi", "cuts": [[1, 2], 3]}}},
    "columns.age.cuts": {"columns": {"age": {"role": "quasi", "cuts": 5}}},
    "columns.age.hierarchy": {"columns": {"age": {"role": "quasi", "hierarchy": ["a"]}}},
    "columns.age.weight": {"columns": {"age": {"role": "quasi", "weight": float("inf")}}},
    "columns.age": {"columns": {"age": 5}},
    "guarantee.k": {"guarantee": {"k": True}},
    "guarantee.refill": {"guarantee": {"model": "compromise-safety", "m": 3, "refill": 2.5}},
    "guarantee.protect": {"guarantee": {"model": "global", "l": 2, "strategy": "greedy", "protect": []}},
}


@pytest.mark.parametrize("place", ONE_FAULT)
def test_a_slip_in_the_policy_is_one_fault_in_plain_words(place: str) -> None:
    usual = {"columns": {"age": "quasi"}, "guarantee": {"k": 2}}
    with pytest.raises(InputError) as refusal:
        reveil.load_policy({**usual, **ONE_FAULT[place]})
    (fault,) = refusal.value.faults
    assert fault.where == f"policy, {place}"
    for word in ("constrained", "function", "Input should", "Tuple", "instance of", "valid"):
        assert word not in str(fault)


def test_groups_of_others_may_have_names() -> None:
    rules = {"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}
    table = pl.DataFrame({"age": ["2*"] * 4, "ill": ["flu", "cold"] * 2, "group": ["A", "A", "B", "B"]})
    assert reveil.check(table, rules).holds
    assert not reveil.check(table.with_columns(group=pl.Series(["A", "A", "A", "B"])), rules).holds


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("8.206,72", "write 8206,72 instead of 8.206,72"),
        ("-12.345.678", "write 8206,72 instead of 8.206,72"),
        ("1,234,567.5", "write 8206.72 instead of 8,206.72"),
        ("8'206.72", "write 8206.72 instead of 8'206.72"),
        ("1,234", None),
        ("192.168.1.1", None),
    ],
)
def test_thousands_separators_are_not_read_and_the_way_out_says_so(text: str, way_out: str | None) -> None:
    policy = {"columns": {"x": {"role": "quasi", "type": "number"}}, "guarantee": {"k": 2}}
    with pytest.raises(InputError, match="R218") as refusal:
        reveil.anonymize(pl.DataFrame({"x": ["512", text]}), policy)
    (fault,) = refusal.value.faults
    assert ("thousands" in fault.remedy) == (way_out is not None)
    assert (way_out or "") in fault.remedy


@pytest.mark.parametrize(
    ("text", "kind"),
    [("NaN", "number"), ("1_000", "number"), ("9" * 20, "number of 64 bits"), (f"{2**53 + 1}", "number of 64 bits")],
)
def test_a_text_that_would_be_another_number_is_refused(text: str, kind: str) -> None:
    policy = {"columns": {"x": {"role": "quasi", "type": "number"}}, "guarantee": {"k": 2}}
    with pytest.raises(InputError, match=rf"R218 column 'x': 1 value is not a {kind}: '{text}' \(1 row: no. 2\)"):
        reveil.anonymize(pl.DataFrame({"x": ["0.5", text]}), policy)
    whole = reveil.anonymize(pl.DataFrame({"x": ["7", f"{2**53 + 1}"] * 2}), policy)
    assert sorted(set(whole.table["x"])) == ["7", f"{2**53 + 1}"]


def test_a_folder_that_is_no_release_says_what_it_lacks(tmp_path: Path) -> None:
    policy = tmp_path / "k.toml"
    policy.write_text('[columns]\nage = "quasi"\n[guarantee]\nk = 2\n')
    for content, lacks in (
        (None, "holds no datapackage.json"),
        ('{"resources": []}', "its data package names no 'table'"),
    ):
        folder = tmp_path / f"folder{lacks[:3]}"
        folder.mkdir()
        if content:
            (folder / "datapackage.json").write_text(content)
        code, _, error = cli("verify", str(folder), "--policy", str(policy))
        assert (code, lacks in error) == (2, True)


def test_a_demo_of_nobody_leaves_no_folder(tmp_path: Path) -> None:
    assert cli("demo", "--rows", "-1", "--folder", str(tmp_path / "demo"))[0] == 2
    assert not (tmp_path / "demo").exists()
