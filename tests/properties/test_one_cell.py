"""One cell never changes another person's cell, whatever the source: neighbouring tables are read alike, or refused.

Neighbours differ in one row: added, removed or changed. Where both are read, every other row has the same identifier,
the same typed values and the same published texts. Where one is refused, the refusal names rows.
"""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.dp.count_policy import Counting
from reveil.dp.counting import bound, cells, read
from reveil.policy.policy import load_as, load_policy
from reveil.table.cells import texts
from reveil.table.identify import keyed_hashes
from reveil.table.read import declares_types, read_table
from reveil.table.roles import options, prepare
from support import workbook

NAMES = ("id", "age", "code", "seen", "kind")
WRITTEN = [
    *(
        "1",
        "2",
        "17",
        "2.5",
        "-0.25",
        "007",
        "+7",
        "1e5",
        "1.5e3",
        "250.00",
        "250.0",
        "401.90",
        "V45.1",
        "1,5",
        "1,234",
    ),
    *("1,234", "1.234", "8.206,72", "old", "k.A.", "-", "NA", "nan", "inf", "", " 1", "x", "é", "9007199254740993"),
    *("2024-02-27", "2024-02-30", "27.02.2024", "01/02/2024", "27/02/2024", "02/27/2024", "2024-02-27 10:00"),
    *("true", "9" * 25),
]
USUAL = {
    "number": ["1", "2", "17", "30"],
    "decimal": ["1.5", "2.25", "3"],
    "comma": ["1,5", "2,25", "3"],
    "day": ["2024-02-27", "2023-01-01"],
    "slashed": ["27/02/2024", "01/02/2024", "31/01/2024"],
    "code": ["250.00", "401.90"],
    "word": ["flu", "cold"],
}
OBJECTS: list[Any] = [
    *(1, 2, 17, 2.5, 7.0, 1e20, 0.1, True, None, "x", "7", "007", "2.50", "old", 2**53 + 1, 2**70, "2024-02-27"),
    *(Decimal("7.00"), Decimal("100.10"), date(2024, 2, 27), datetime(2024, 2, 27, 10, 30)),
]
Row = tuple[Any, ...]
Table = list[Row]


def policy(**kinds: str) -> Any:
    columns: dict[str, Any] = {"id": "identifier", "age": "quasi", "code": "sensitive", "seen": "quasi"}
    columns["kind"] = "insensitive"
    for name, kind in kinds.items():
        columns[name] = {"role": columns[name], "type": kind}
    return load_policy({"columns": columns, "guarantee": {"k": 2}})


@st.composite
def neighbours(draw: st.DrawFn, cells_of: Callable[[str], Any]) -> tuple[Table, Table, int]:
    """Two tables, the second with row `place` added or changed; rows are told by their identifier."""
    looks = [draw(st.sampled_from(sorted(USUAL))) for _ in NAMES[1:]]
    usual = st.tuples(*(cells_of(look) for look in looks))
    odd = st.tuples(*(cells_of("odd") | cells_of(look) for look in looks))
    rows = [(f"p{n}", *draw(usual)) for n in range(draw(st.integers(2, 6)))]
    if draw(st.booleans()):
        rows[draw(st.integers(0, len(rows) - 1))] = ("q", *draw(odd))
    place = draw(st.integers(0, len(rows)))
    other = [*rows[:place], ("new", *draw(odd)), *rows[place + draw(st.integers(0, 1)) :]]
    return rows, other, place


def from_csv(rows: Table, folder: Path) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([NAMES, *rows])
    path = folder / "t.csv"
    path.write_bytes(text.getvalue().encode())
    return path


def from_pandas(rows: Table, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(NAMES))  # pandas types whole columns as it likes


def from_excel(rows: Table, folder: Path) -> Path:
    plain = [[v if isinstance(v, (str, int, float)) or v is None else str(v) for v in row] for row in rows]
    return workbook(folder / "t.xlsx", {"s": [list(NAMES), *plain]})


def from_sqlite(rows: Table, folder: Path) -> str:
    (folder / "t.db").unlink(missing_ok=True)
    base = sqlite3.connect(folder / "t.db")
    base.execute(f"CREATE TABLE t ({', '.join(NAMES)})")
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [[_stored(v) for v in row] for row in rows])
    base.commit()
    base.close()
    return f"sqlite:///{folder / 't.db'}"


def _stored(value: Any) -> Any:
    plain = value is None or isinstance(value, (str, float)) or (isinstance(value, int) and abs(value) < 2**63)
    return value if plain else str(value)


def outcome(source: Any, rules: Any) -> pl.DataFrame | list[Any]:
    asked = options(rules)
    if isinstance(source, str):
        asked = type(asked)(query="SELECT * FROM t")
    try:
        return prepare(read_table(source, asked), rules, declared=declares_types(source))
    except InputError as error:
        return list(error.faults)


def seen(frame: pl.DataFrame) -> dict[str, Row]:
    """What each person is to Reveil: hash of the identifier, and of every cell its kind, value and text."""
    hashes = keyed_hashes(frame["id"], bytes(32)).rows()
    columns = []
    for name in NAMES[1:]:
        kind = "number" if frame[name].dtype.is_numeric() else str(frame[name].dtype)
        columns.append([(kind, *cell) for cell in zip(frame[name], texts(frame[name]), strict=True)])
    return dict(zip(frame["id"], zip(hashes, *columns, strict=True), strict=True))


def check(rows: Table, other: Table, make: Callable[[Table, Path], Any], folder: Path, rules: Any) -> None:
    first, second = outcome(make(rows, folder), rules), outcome(make(other, folder), rules)
    for found in (first, second):
        if isinstance(found, list):
            assert any(fault.places or "and all others" in fault.message for fault in found), found
    if isinstance(first, pl.DataFrame) and isinstance(second, list):
        added = next(number for number, row in enumerate(other, 1) if row[0] == "new")
        assert all(blamed(fault, added) for fault in second), (added, second)
    if isinstance(first, list) or isinstance(second, list):
        return
    assert isinstance(first, pl.DataFrame) and isinstance(second, pl.DataFrame)
    before, after = seen(first), seen(second)
    for person in before.keys() & after.keys():
        filled = [pl.DataFrame([frame[n] for n in NAMES]) for frame in (first, second)]
        for place, name in enumerate(NAMES[1:], 1):
            alone = any(frame[name].drop_nulls().is_empty() for frame in filled)  # a column without values has no kind
            old, new = before[person][place], after[person][place]
            assert old[1:] == new[1:] and (alone or old[0] == new[0]), (person, name)
        assert before[person][0] == after[person][0]


def blamed(fault: Any, added: int) -> bool:
    """Whether a refusal names exactly the row that was added to a good table: where the type is known, it must.

    Where nothing says what a column holds, the majority may be the odd ones, so that others are named as well.
    """
    if " not a " not in fault.message:
        return bool(fault.places or "and all others" in fault.message)
    return bool(fault.places == (added,) and fault.rows == 1)


TEXT_CELLS = neighbours(lambda look: st.sampled_from(USUAL.get(look, WRITTEN)))
MIXED_CELLS = neighbours(
    lambda look: (
        st.sampled_from([int(v) for v in USUAL["number"]] if look != "odd" else OBJECTS)
        if look in ("odd", "number")
        else st.sampled_from(USUAL[look])
    )
)
KINDS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(["number", "category", "date"]) for name in NAMES[1:]}
)


@settings(max_examples=150)
@given(case=TEXT_CELLS, kinds=KINDS)
def test_text_files(
    case: tuple[Table, Table, int], kinds: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(case[0], case[1], from_csv, tmp_path_factory.getbasetemp(), policy(**kinds))


@pytest.mark.parametrize("make", [from_pandas, from_excel, from_sqlite])
@settings(max_examples=60)
@given(case=MIXED_CELLS, kinds=KINDS)
def test_sources_whose_cells_have_types_of_their_own(
    make: Callable[[Table, Path], Any],
    case: tuple[Table, Table, int],
    kinds: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    check(case[0], case[1], make, tmp_path_factory.getbasetemp(), policy(**kinds))


TYPED = {
    "int": (pl.Int64, st.integers(-(2**60), 2**60)),
    "float": (pl.Float64, st.sampled_from([1.0, 2.5, 1e20, 1e-7, 0.1, 7.0, float("nan")])),
    "decimal": (pl.Decimal(30, 10), st.decimals("-1e15", "1e15", places=6)),
    "flag": (pl.Boolean, st.booleans()),
    "day": (pl.Date, st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "time": (
        pl.Datetime("ms"),
        st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.replace(microsecond=0)),
    ),
    "text": (pl.String, st.sampled_from(WRITTEN)),
}


@pytest.mark.parametrize("suffix", ["", "parquet", "arrow", "ipc", "pyarrow"])
@settings(max_examples=60)
@given(data=st.data())
def test_typed_sources(suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    chosen = [data.draw(st.sampled_from(sorted(TYPED))) for _ in NAMES[1:]]
    row = st.tuples(*(st.none() | TYPED[name][1] for name in chosen))
    schema: dict[str, Any] = {"id": pl.String} | {n: TYPED[k][0] for n, k in zip(NAMES[1:], chosen, strict=True)}
    rows: Table = [(f"p{n}", *data.draw(row)) for n in range(data.draw(st.integers(2, 5)))]
    other: Table = [*rows[:1], ("new", *data.draw(row)), *rows[data.draw(st.integers(1, 2)) :]]

    def make(table: Table, folder: Path) -> Any:
        frame = pl.DataFrame(table, schema=schema, orient="row")
        if suffix in ("", "pyarrow"):
            return frame.to_arrow() if suffix else frame
        writers = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "ipc": frame.write_ipc_stream}
        writers[suffix](folder / f"t.{suffix}")
        return folder / f"t.{suffix}"

    check(rows, other, make, tmp_path_factory.getbasetemp(), policy())


POSTGRES = {
    "int": ("bigint", TYPED["int"][1]),
    "float": ("float8", TYPED["float"][1]),
    "decimal": ("numeric", st.decimals("-1e15", "1e15", places=6) | st.sampled_from([Decimal("1.0"), Decimal("2.50")])),
    "flag": ("boolean", TYPED["flag"][1]),
    "day": ("date", TYPED["day"][1]),
    "time": ("timestamp", TYPED["time"][1]),
    "text": ("text", TYPED["text"][1]),
}


@settings(max_examples=60)
@given(data=st.data())
def test_postgres(data: st.DataObject, postgres: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    import psycopg

    chosen = [data.draw(st.sampled_from(sorted(POSTGRES))) for _ in NAMES[1:]]
    row = st.tuples(*(st.none() | POSTGRES[name][1] for name in chosen))
    rows: Table = [(f"p{n}", *data.draw(row)) for n in range(data.draw(st.integers(2, 5)))]
    other: Table = [*rows[:1], ("new", *data.draw(row)), *rows[data.draw(st.integers(1, 2)) :]]
    kinds = ["text", *(POSTGRES[name][0] for name in chosen)]

    def make(table: Table, folder: Path) -> str:
        with psycopg.connect(postgres) as base, base.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS t")
            cursor.execute(f"CREATE TABLE t ({', '.join(' '.join(c) for c in zip(NAMES, kinds, strict=True))})")
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s)", table)
        return postgres

    try:
        check(rows, other, make, tmp_path_factory.getbasetemp(), policy())
    finally:  # other tests of this server look whether somebody made a table
        with psycopg.connect(postgres) as base:
            base.execute("DROP TABLE IF EXISTS t")


@pytest.mark.parametrize("suffix", ["sav", "dta", "xpt"])
@pytest.mark.parametrize("odd", [1.0, 2.5, 9.0, 77.0, None])
def test_statistics_files(suffix: str, odd: float | None, tmp_path: Path) -> None:
    import pyreadstat

    labels: dict[str, dict[int | float, str]] = {"code": {9: "none", 77: "other"}, "kind": {1: "a"}}

    def make(table: Table, folder: Path) -> Path:
        path = folder / f"t.{suffix}"
        frame = pd.DataFrame(table, columns=list(NAMES))
        stated = {} if suffix == "xpt" else {"variable_value_labels": labels}  # SAS keeps labels in another file
        getattr(pyreadstat, "write_xport" if suffix == "xpt" else f"write_{suffix}")(frame, path, **stated)
        return path

    rows: Table = [("p1", 30.0, 1.0, 1.5, 1.0), ("p2", 40.0, 9.0, 2.0, 2.0), ("p3", 50.0, 3.0, 2.5, 1.0)]
    check(rows, [*rows, ("new", odd, odd, odd, odd)], make, tmp_path, policy(code="category", kind="category"))


# Counts: neighbours differ by what one person may add

COUNTED = {
    "columns": {
        "who": "identifier",
        "sex": "quasi",
        "age": "quasi",
        "seen": {"role": "quasi", "levels": ["month"]},
        "code": {"role": "quasi", "prefixes": [3]},
        "note": "drop",
    },
    "dp": {
        "epsilon": 1,
        "contributions": 3,
        "bins": {"sex": ["F", "M", "1", "2.50"], "age": [18, "2.5e1", 2**53 + 1], "seen": ["2024-02"], "code": ["250"]},
        "counts": [
            {"name": "all", "by": ["sex", "age"], "spend": "0.1"},
            {"name": "rest", "by": ["seen", "code"], "spend": "0.1"},
        ],
    },
}
FIELDS = ("who", "sex", "age", "seen", "code", "note")


def counts_of(source: Any, rules: Counting) -> list[np.ndarray[Any, Any]]:
    kept, _ = bound(read(source, rules), "who", rules.dp.contributions)
    return [cells(kept, marginal, rules.dp) for marginal in rules.dp.counts]


def random_table(rng: np.random.Generator, mixed: bool) -> dict[str, list[Row]]:
    """Up to three rows of each person, with odd cells, missing codes and, in text, bytes of other encodings."""
    usual: list[Any] = ["F", "M", "17", "30", "2024-02-27", "250.00", "1", "2.50", "Köln", "99"]
    pool = [*usual, *WRITTEN, *(OBJECTS if mixed else ["K\udcf6ln", "\0", 'say "x"', "two\nlines"])]
    return {f"p{n}": [_random_row(rng, n, pool) for _ in range(int(rng.integers(1, 4)))] for n in range(5)}


def _random_row(rng: np.random.Generator, person: int, pool: list[Any]) -> Row:
    name = None if rng.random() < 0.05 else f"p{person}"
    return (name, *(pool[int(rng.integers(len(pool)))] for _ in FIELDS[1:]))


def as_file(rows: Table, folder: Path, encoding: str) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([FIELDS, *rows])
    path = folder / "counted.csv"
    path.write_bytes(text.getvalue().encode(encoding, errors="surrogateescape" if encoding == "utf-8" else "replace"))
    return path


def compare(seed: int, folder: Path) -> None:
    """A table, the same with one person removed, and with one person's rows changed."""
    rng = np.random.default_rng(seed)
    mixed, encoding = bool(seed % 2), ["utf-8", "cp1252"][seed // 2 % 2]
    people, changed = random_table(rng, mixed), random_table(rng, mixed)
    person = f"p{rng.integers(5)}"
    tables = [
        people,
        {name: rows for name, rows in people.items() if name != person},
        people | {person: changed[person]},
    ]
    reading = {
        "nulls": ["", "99", "NA"],
        **({} if mixed else {"encoding": encoding, "decimal": [".", ","][seed % 3 % 2]}),
    }
    rules = load_as(Counting, {**COUNTED, "input": reading})
    found = []
    for table in tables:
        rows = [row for own in table.values() for row in own]
        source = pd.DataFrame(rows, columns=list(FIELDS)) if mixed else as_file(rows, folder, encoding)
        found.append(counts_of(source, rules))
    for whole, without, other in zip(*found, strict=True):
        assert np.abs(whole - without).sum() <= 3, seed
        assert np.abs(whole - other).sum() <= 6, seed


def test_counts_of_neighbours_differ_by_what_one_person_may_add(tmp_path: Path) -> None:
    for seed in range(150):
        compare(seed, tmp_path)
