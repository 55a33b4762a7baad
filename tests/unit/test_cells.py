"""Cells, types and limits: each case of "one cell must not change what others mean" that was found by attacking."""

from __future__ import annotations

import gzip
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reveil
from reveil.base.errors import Fault, InputError
from reveil.base.text import plain_text
from reveil.dp.count_policy import Counting
from reveil.dp.counting import bound, cells, grid, read
from reveil.policy.policy import load_as, load_policy
from reveil.table.cells import texts
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from reveil.table.roles import options, prepare

POLICY: dict[str, Any] = {"columns": {"id": "identifier", "x": "quasi", "v": "sensitive"}, "guarantee": {"k": 2}}


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def prepared(source: Any, **changes: Any) -> pl.DataFrame:
    rules = load_policy({**POLICY, **changes})
    return prepare(read_table(source, options(rules)), rules, declared=False)


def refused(source: Any, **changes: Any) -> list[Fault]:
    with pytest.raises(InputError) as caught:
        prepared(source, **changes)
    return list(caught.value.faults)


def table(*values: Any, ids: Any = None) -> pl.DataFrame:
    numbers = [str(n) for n in range(len(values))] if ids is None else ids
    return pl.DataFrame({"id": numbers, "x": [str(n % 3) for n in range(len(values))], "v": values}, strict=False)


# One text for each value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((7, "7"), (7.0, "7"), (Decimal("7.00"), "7"), (Decimal("100.10"), "100.1"), (np.float32(0.1), "0.1")),
        *((1e20, "1" + "0" * 20), (10**30, "1" + "0" * 30), (1e-7, "0.0000001"), (-0.0, "0"), (Fraction(1, 4), "0.25")),
        (Decimal("1234567890123456789.1234567890"), "1234567890123456789.123456789"),
        *((True, "true"), (np.bool_(False), "false"), (np.int64(3), "3"), (None, ""), (float("nan"), "")),
        *((date(2024, 2, 27), "2024-02-27"), (datetime(2024, 2, 27, 8, 5), "2024-02-27 08:05:00")),
        *(("250.00", "250.00"), ("02139", "02139"), ("+7", "+7"), ("1e5", "1e5"), (" x ", " x ")),
    ],
)
def test_plain_text(value: object, text: str) -> None:
    assert plain_text(value) == text


@given(
    st.lists(st.none() | st.floats(allow_infinity=False))
    | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))
    | st.lists(st.none() | st.decimals("-1e12", "1e12", places=4))
    | st.lists(st.none() | st.booleans())
    | st.lists(st.none() | st.dates())
    | st.lists(st.none() | st.datetimes())
)
def test_columns_have_the_texts_of_their_values(values: list[Any]) -> None:
    assert texts(pl.Series(values, strict=False)).to_list() == [plain_text(value) or None for value in values]


def test_units_of_time_leave_no_trace() -> None:
    moments = [datetime(2024, 2, 27, 8, 30, 1, 500_000), datetime(2024, 2, 27), None]
    for unit in ("ms", "us", "ns"):
        found = texts(pl.Series(moments).cast(pl.Datetime(unit)))  # type: ignore[arg-type]
        assert found.to_list() == ["2024-02-27 08:30:01.5", "2024-02-27", None]


# Identifiers


def known_again(tmp_path: Path, first: Any, second: Any) -> int:
    """How many people of the first table are in the second."""
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(first)
    before = series.history().persons.height
    series.publish(second, accept=["same-table"])
    return before + second.height - series.history().persons.height


def test_codes_as_identifiers_stay_the_texts_that_they_are(tmp_path: Path) -> None:
    ids = [f"{n}.{tail}0" for n in range(100, 250) for tail in (1, 2)]
    values = ["a", "b", "c"] * 100
    text = "\n".join(f"{name},{n % 9},{v}" for n, (name, v) in enumerate(zip(ids, values, strict=True)))
    first = write(tmp_path, f"id,x,v\n{text}\n", "one.csv")
    second = write(tmp_path, f"id,x,v\n{text}\n400.1A,1,a\n", "two.csv")
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(first)
    series.publish(second)
    assert series.history().persons.height == 301
    many = write(tmp_path, "id,x,v\n" + "".join(f"2023.{n},1,a\n" for n in range(1, 1001)))
    assert prepared(many)["id"].n_unique() == 1000


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pl.Series([1, 2, 3, 4]), pl.Series(["1.00", "2.00", "3.00", "4.00"]).cast(pl.Decimal(10, 2))),
        (pl.Series([1, 2, 3, 4]), pl.Series([1.0, 2.0, 3.0, 4.0])),
        (pl.Series([1, 2, 3, 4]), pl.Series(["1", "2", "3", "4"])),
        (
            pl.Series([datetime(2024, 1, n, 9, 30) for n in range(1, 5)]).cast(pl.Datetime("us")),
            pl.Series([datetime(2024, 1, n, 9, 30) for n in range(1, 5)]).cast(pl.Datetime("ms")),
        ),
    ],
    ids=["decimal", "float", "text", "time"],
)
def test_people_are_known_again_from_another_type(tmp_path: Path, first: pl.Series, second: pl.Series) -> None:
    values = ["a", "b", "a", "b"]
    assert known_again(tmp_path, table(*values, ids=first), table(*values, ids=second)) == 4


# Types


@pytest.mark.parametrize("odd", ["old", "k.A.", "-", "V45.1", "007"])
def test_numbers_but_for_a_few_texts_are_refused_with_the_ways_out(tmp_path: Path, odd: str) -> None:
    path = write(
        tmp_path, "id,x,v\n" + "".join(f"{n},{n},{'a' if n % 2 else 'b'}\n" for n in range(9)) + f"9,{odd},a\n"
    )
    (fault,) = refused(path)
    assert (fault.code, fault.rows, fault.places) == ("R227", 1, (10,))
    assert repr(odd) in fault.message and f'"{odd}"' in fault.remedy and 'type = "category"' in fault.remedy
    assert prepared(path, input={"nulls": ["", odd]})["x"].to_list() == [*range(9), None]
    codes = {"columns": {**POLICY["columns"], "x": {"role": "quasi", "type": "category"}}}
    assert prepared(path, **codes)["x"].to_list() == [*map(str, range(9)), odd]


def test_days_but_for_one_are_refused_and_categories_with_some_numbers_are_not() -> None:
    days = table("2024-01-02", "2024-02-03", "2024-13-01")
    assert [(fault.code, fault.places) for fault in refused(days)] == [("R227", (3,))]
    assert prepared(table("9th", "10th", "Bachelors", "5"))["v"].to_list() == ["9th", "10th", "Bachelors", "5"]


def test_values_that_may_be_codes_are_asked_about_and_kept() -> None:
    for values in (["250.00", "250.0", "401.90"], ["250.0", "250"]):
        assert refused(table(*values))[0].code == "R228"
        codes = {"columns": {**POLICY["columns"], "v": {"role": "sensitive", "type": "category"}}}
        assert prepared(table(*values), **codes)["v"].to_list() == values
    assert prepared(table("1.0", "2.5"))["v"].to_list() == [1.0, 2.5]
    exact = Decimal("12345678901234567890.1234567890")
    codes = {"columns": {**POLICY["columns"], "v": {"role": "sensitive", "type": "category"}}}
    frame = table("x").with_columns(v=pl.Series([exact], dtype=pl.Decimal(38, 10)))
    assert prepared(frame, **codes)["v"].to_list() == ["12345678901234567890.123456789"]


def test_a_number_is_published_as_it_is_whatever_others_have(tmp_path: Path) -> None:
    for values in ([1, 2, 1, 2], [1, 2, 1, 2.5]):
        release = reveil.anonymize(table(*map(float, values)), POLICY, out=tmp_path / str(values[-1]), seed=1)
        assert release.path is not None
        written = (release.path / "public" / "table.csv").read_text().splitlines()[1:]
        assert sorted(line.rpartition(",")[2] for line in written) == sorted(f"{value:g}" for value in values)


def test_the_type_of_the_first_release_is_kept(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, tmp_path / "home")
    series.publish(table("1", "2", "1", "2").to_pandas())
    assert series.history().types["v"] == "number"
    with pytest.raises(InputError, match=r"R218 column 'v'.*'old'"):
        series.publish(table("1", "2", "1", "old").to_pandas())
    series.publish(table("1", "2", "01", "+2").to_pandas(), accept=["same-table"])  # numbers in other words


# Encoding and decimal mark


def test_one_cell_of_another_encoding_is_a_fault_with_its_line(tmp_path: Path) -> None:
    good = "".join(f"{n},{n % 2},Köln\n" for n in range(100)).encode()
    for content in (b"id,x,v\n" + good + b"x,1,K\xf6ln\n", b"id,x,v\nx,1,K\xf6ln\n" + good):
        (fault,) = refused(write(tmp_path, content))
        line = content[: content.index(b"K\xf6")].count(b"\n") + 1
        assert (fault.code, fault.rows) == ("R105", 1)
        assert f"these are not: {line}" in fault.message
    few = b"id,x,v\n" + good.replace("ö".encode(), b"\xf6") + "x,1,Köln\n".encode()
    assert "these are, unlike the others: 102" in refused(write(tmp_path, few))[0].message
    typographic = b"id,x,v\n1,1,\x80\n2,2,\x81\n"  # a euro in cp1252, where the other byte means nothing
    assert "neither UTF-8 nor cp1252" in refused(write(tmp_path, typographic))[0].message


def test_a_contrary_decimal_mark_is_a_fault_or_stated(tmp_path: Path) -> None:
    path = write(tmp_path, "id;x;v\n1;1,5;a\n2;2,5;b\n3;1.234;a\n")
    (fault,) = refused(path)
    assert (fault.code, fault.places) == ("R218", (3,))
    (fault,) = refused(
        path, input={"decimal": ","}, columns=POLICY["columns"] | {"x": {"role": "quasi", "type": "number"}}
    )
    assert (fault.code, fault.places) == ("R218", (3,))
    unclear = write(tmp_path, "id;x;v\n1;1,234;a\n2;2,345;b\n")
    assert "nothing in the table tells" in refused(unclear)[0].message
    assert prepared(unclear, input={"decimal": ","})["x"].to_list() == [1.234, 2.345]


def test_one_row_does_not_tell_whether_the_day_is_first() -> None:
    dated = {"columns": {**POLICY["columns"], "v": {"role": "sensitive", "type": "date"}}}
    one = table("01/02/2024", "27/02/2024")
    assert refused(one, **dated)[0].code == "R218"
    assert prepared(table("01/02/2024", "27/02/2024", "31/01/2024"), **dated)["v"][0] == date(2024, 2, 1)
    assert refused(table("01/02/2024", "27/02/2024", "01/31/2024"), **dated)[0].code == "R218"


# Lines, quotes, sizes


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('id,x,v\n1,2,5" pipe\n3,4,6" pipe\n', 2),
        ('id,x,v\n1,2,a\n1,x "y,3\n3,4,b"\n', 3),
        ('id,x,v\n1,2,"a\n3,4,b\n', 2),
        ('id,x,v\n1,"a,2\n3,b,4\n5,"c,6\n', 2),
    ],
)
def test_a_lone_quote_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    (fault,) = refused(write(tmp_path, text))
    assert fault.code == "R109"
    assert f"line {line} " in fault.message


def test_two_lone_quotes_do_not_make_one_row_of_several(tmp_path: Path) -> None:
    swallowing = write(tmp_path, 'id,x,v\n0,1,a\n1,"1,a\n2,2,b\n3,3",b\n4,1,c\n')
    (fault,) = refused(swallowing)
    assert (fault.code, fault.places) == ("R109", (2,))
    assert read_table(swallowing, ReadOptions(multiline=True)).height == 3
    meant = write(tmp_path, 'id,x,v\n0,1,"two\nlines, with a comma"\n1,1,a\n')
    assert prepared(meant).height == 2


def test_limits_of_size(tmp_path: Path) -> None:
    bomb = write(tmp_path, gzip.compress(b"id,x,v\n" + b"1,1,a\n" * 400_000), "t.csv.gz")
    (fault,) = refused(bomb, input={"max_megabytes": 1})
    assert (fault.code, "max_megabytes" in fault.remedy) == ("R114", True)
    assert read_table(bomb).height == 400_000
    pl.DataFrame({"id": pl.zeros(10**6, eager=True)}).write_parquet(tmp_path / "t.parquet")
    assert refused(tmp_path / "t.parquet", input={"max_megabytes": 1})[0].code == "R114"
    wide = write(tmp_path, "a,b,c,d\n1,2,3,4\n")
    for source in (wide, pl.read_csv(wide)):
        with pytest.raises(InputError, match=r"R114.*4 columns"):
            read_table(source, ReadOptions(max_columns=3))
    (fault,) = refused(write(tmp_path, "id,x,v\n1,1,a\n2,1,aaaaaa\n"), input={"max_cell": 5})
    assert (fault.code, fault.places) == ("R114", (2,))


def test_labels_of_missing_codes_leave_a_number_a_number(tmp_path: Path) -> None:
    import pyreadstat

    frame = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 99.0, 2.5], "v": [1.0, 2.0, 1.0]})
    labels: dict[str, dict[int | float, str]] = {"x": {99: "refused"}, "v": {1: "yes", 2: "no"}}
    pyreadstat.write_sav(frame, tmp_path / "t.sav", missing_ranges={"x": [99]}, variable_value_labels=labels)
    found = prepared(tmp_path / "t.sav")
    assert found["x"].to_list() == [1.0, None, 2.5]
    assert found["v"].to_list() == ["yes", "no", "yes"]


def test_nulls_hold_for_every_source() -> None:
    frame = pd.DataFrame({"id": ["a", "b", "c"], "x": [1, 99, 2], "v": ["u", "k.A.", "w"]})
    found = prepared(frame, input={"nulls": ["", "99", "k.A."]})
    assert (found["x"].to_list(), found["v"].to_list()) == ([1, None, 2], ["u", None, "w"])


# Counts


def counted(source: Any, bins: list[Any], **reading: Any) -> dict[str, int]:
    dp = {"epsilon": 1, "bins": {"v": bins}, "counts": [{"name": "n", "by": ["v"], "spend": 1}]}
    columns = {"id": "identifier", "x": "drop", "v": "quasi"}
    rules = load_as(Counting, {"columns": columns, "dp": dp, "input": reading})
    kept, _ = bound(read(source, rules), "id", 1)
    return dict(grid(rules.dp.counts[0], rules.dp, cells(kept, rules.dp.counts[0], rules.dp)).iter_rows())


def test_an_odd_cell_changes_no_other_count(tmp_path: Path) -> None:
    rows = [f"{n},0,{'250.00' if n % 2 else '401.90'}" for n in range(200)]
    bins = ["250.00", "401.90"]
    for extra, other in (([], 0), (["x,0,V45.1"], 1), (["x,0,2.5"], 1)):
        path = write(tmp_path, "\n".join(["id,x,v", *rows, *extra]))
        wanted = {"250.00": 100, "401.90": 100, "(other)": other, "(missing)": 0}
        assert counted(path, bins, encoding="utf-8") == wanted
    whole = [1, 2, 3] * 100
    for extra_value in ([], [2.5]):
        frame = table(*whole, *extra_value)
        assert list(counted(frame, ["1", "2", "3"]).values()) == [100, 100, 100, len(extra_value), 0]
    assert list(counted(table("30", "old", None, "inf"), [18]).values()) == [0, 1, 2, 1]


def test_counts_need_the_encoding_and_survive_contrary_bytes(tmp_path: Path) -> None:
    content = "id,x,v\n" + "".join(f"{n},0,Köln\n" for n in range(100))
    path = write(tmp_path, content.encode() + b"x,0,K\xf6ln\ny,0,\0\n")
    with pytest.raises(InputError, match=r"R105.*encoding is not stated"):
        counted(path, ["Köln"])
    assert list(counted(path, ["Köln"], encoding="utf-8").values()) == [100, 2, 0]


def test_rows_that_are_nobodys_are_not_counted() -> None:
    frame = table("a", "b", "c", ids=["p", None, None])
    assert list(counted(frame, ["a", "b", "c"]).values()) == [1, 0, 0, 0, 0]
