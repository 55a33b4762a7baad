"""Reading: every kind of source, every refusal, and that nothing is lost on the way."""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import gzip
import io
import re
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from reveil.base.errors import Fault, InputError
from reveil.table.encodings import SAMPLE_BYTES
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from reveil.table.types import looked
from support import workbook

PEOPLE = pl.DataFrame({"zip": ["02139", "10115"], "age": [41, None], "city": ["Zürich", "Berlin"]})


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def typed(source: Any, options: ReadOptions = ReadOptions()) -> pl.DataFrame:  # noqa: B008
    """A table that no policy describes, as `reveil init` looks at it: cells are texts, and typed by their look."""
    return looked(read_table(source, options))


def refused(source: Any, **options: Any) -> list[Fault]:
    with pytest.raises(InputError) as caught:
        read_table(source, ReadOptions(**options))
    return list(caught.value.faults)


def column(folder: Path, *values: str, **options: Any) -> pl.Series:
    """The values as the second column of a file, after a first one that is always there."""
    lines = [f'{place}\t"{value}"' for place, value in enumerate(values)]
    return typed(write(folder, "\n".join(["n\tx", *lines])), ReadOptions(**options))["x"]


# Types of columns in text files


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("1", "-20", "0"), pl.Int64),
        (("9223372036854775807", "-9223372036854775808"), pl.Int64),
        (("9223372036854775808", "1"), pl.String),
        (("1.5", "2", "-.5", "0.0", "1.5e3", "1e-05"), pl.Float64),
        (("1.5", "9007199254740993"), pl.String),
        (("12E5", "13E5"), pl.String),
        (("1e999", "1.5"), pl.String),
        (("nan", "1.5"), pl.String),
        (("inf", "1.5"), pl.String),
        (("2020-02-29", "1999-12-31"), pl.Date),
        (("2020-02-30", "1999-12-31"), pl.String),
        (("2020-1-2",), pl.String),
        (("0000-01-01",), pl.String),
        (("2020-01-02 10:00",), pl.String),
        (("02139", "10115"), pl.String),
        (("10115", "00"), pl.String),
        (("1", "-0"), pl.Int64),
        (("01.5", "2.5"), pl.String),
        (("+41", "42"), pl.String),
        (("+1.5", "2.5"), pl.String),
        (("true", "false"), pl.String),
        (("1,234", "5,678"), pl.String),
        (("1 000", "2"), pl.String),
        ((" 1", "2"), pl.String),
        (("1_000", "2"), pl.String),
        (("0x10", "2"), pl.String),
        (("", ""), pl.String),
    ],
)
def test_a_column_has_a_type_only_if_every_value_has_it(tmp_path: Path, values: tuple[str, ...], kind: Any) -> None:
    result = column(tmp_path, *values)
    assert result.dtype == kind
    if kind == pl.String:
        assert result.to_list() == [value or None for value in values]
    else:
        expected: Any = {pl.Int64: int, pl.Float64: float, pl.Date: dt.date.fromisoformat}[kind]
        assert result.to_list() == [expected(value) for value in values]


@pytest.mark.parametrize("late", ["007", "x", "+5", "99999999999999999999", " 5"])
def test_one_late_value_keeps_the_column_text(tmp_path: Path, late: str) -> None:
    values = [str(number) for number in range(1, 30_000)] + [late]
    assert column(tmp_path, *values).to_list() == values


def test_a_late_fraction_makes_floats_and_a_late_text_keeps_dates_text(tmp_path: Path) -> None:
    assert column(tmp_path, *["1"] * 5000, "2.5").to_list() == [1.0] * 5000 + [2.5]
    assert column(tmp_path, *["2020-01-01"] * 5000, "2020-1-01").dtype == pl.String


def test_values_first_seen_after_the_sample_decide(tmp_path: Path) -> None:
    assert column(tmp_path, *[""] * 5000, "3").to_list() == [None] * 5000 + [3]


def test_values_are_not_stripped_but_headers_are(tmp_path: Path) -> None:
    frame = typed(write(tmp_path, " a , b\n x ,y \n"))
    assert frame.to_dict(as_series=False) == {"a": [" x "], "b": ["y "]}


def test_missing_is_what_nulls_says_quoted_or_not(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n1,""\n,x\nNA,"NA"\n')
    assert typed(path).rows() == [("1", None), (None, "x"), ("NA", "NA")]
    assert typed(path, ReadOptions(nulls=("", "NA"))).rows() == [(1, None), (None, "x"), (None, None)]
    assert typed(path, ReadOptions(nulls=("NA",))).rows() == [("1", ""), ("", "x"), (None, None)]


# Delimiter, decimal mark, encoding


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_or_given(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "t.csv"
    PEOPLE.write_csv(path, separator=mark)
    assert_frame_equal(typed(path), PEOPLE)
    assert_frame_equal(typed(path, ReadOptions(delimiter=mark)), PEOPLE)


def test_delimiters_inside_values_do_not_mislead(tmp_path: Path) -> None:
    text = "name;note\nDoe, J;a, b, c\nRoe, R;|\n"
    assert typed(write(tmp_path, text)).rows() == [("Doe, J", "a, b, c"), ("Roe, R", "|")]


def test_an_unusual_delimiter_can_be_given(tmp_path: Path) -> None:
    assert typed(write(tmp_path, "a^b\n1^2\n"), ReadOptions(delimiter="^")).rows() == [(1, 2)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delimiter": ";"}, "a,b\n1,2\n"),
        ({"delimiter": ",,"}, "a,b\n1,2\n"),
        ({"delimiter": '"'}, "a,b\n1,2\n"),
        ({"decimal": "x"}, "a,b\n1,2\n"),
    ],
)
def test_a_wrong_delimiter_or_decimal_mark_is_refused(tmp_path: Path, options: dict[str, str], text: str) -> None:
    (fault,) = refused(write(tmp_path, text), **options)
    assert fault.code == "R106"
    assert repr(next(iter(options.values()))) in fault.message


def test_all_wrong_options_are_reported_at_once(tmp_path: Path) -> None:
    faults = refused(write(tmp_path, "a,b\n1,2\n"), delimiter=";", decimal="x")
    assert [fault.code for fault in faults] == ["R106", "R106"]


def test_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b;c\n1,5;x;1,234\n-0,25;y;2,000\n")
    assert typed(path).rows() == [(1.5, "x", 1.234), (-0.25, "y", 2.0)]
    path = write(tmp_path, "a;b\n1,5;1.234\n-0,25;2.000\n")  # two marks: nobody can tell, so all stay texts
    assert typed(path).rows() == [("1,5", "1.234"), ("-0,25", "2.000")]
    path = write(tmp_path, "a;b\n1,234;x\n2,345;y\n")  # thousands, or three decimals: nobody can tell
    assert typed(path)["a"].to_list() == ["1,234", "2,345"]
    path = write(tmp_path, 'a,b\n"1,5","x"\n"2,5","y"\n')
    assert typed(path)["a"].to_list() == [1.5, 2.5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, PEOPLE.write_csv().encode(encoding))
    assert_frame_equal(typed(path), PEOPLE)
    assert_frame_equal(typed(path, ReadOptions(encoding=encoding)), PEOPLE)


def test_more_encodings(tmp_path: Path) -> None:
    text = PEOPLE.write_csv()
    big_endian = write(tmp_path, codecs.BOM_UTF16_BE + text.encode("utf-16-be"))
    assert_frame_equal(typed(big_endian), PEOPLE)
    bare = write(tmp_path, text.encode("utf-16-le"))
    assert refused(bare)[0].code == "R104"
    assert_frame_equal(typed(bare, ReadOptions(encoding="utf-16-le")), PEOPLE)
    assert typed(write(tmp_path, b"a,b\n\x81\xe9,1\n"))["a"].to_list() == ["\x81é"]  # not in cp1252
    late = b"a,b\n" + b"x,1\n" * SAMPLE_BYTES + b"\xe9,1\n"
    assert typed(write(tmp_path, late))["a"][-1] == "é"


def test_bytes_that_cannot_be_decoded_are_named(tmp_path: Path) -> None:
    content = "a,b\né,1\n".encode() + b"x\xe9y,2\n"
    (fault,) = refused(write(tmp_path, content))
    assert fault.code == "R105"
    assert f"0xe9 at offset {content.index(b'x') + 1} (line 3)" in fault.message
    assert "cp1252" in fault.remedy
    for encoding in ("ascii", "utf-8"):
        (fault,) = refused(write(tmp_path, b"a,b\n\xe9,1\n"), encoding=encoding)
        assert f"0xe9 at offset 4 (line 2) is not {encoding}" in fault.message


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"a,b\n1,2\n", "klingon"),
        (b"a,b\n1,2\n", "base64"),
        (b"a,b\n1,2\n", "utf-16"),
        ("a,b\n1,2\n".encode("utf-16"), "cp1252"),
        (b"\xef\xbb\xbfa,b\n1,2\n", "latin-1"),
    ],
)
def test_a_wrong_encoding_is_refused(tmp_path: Path, content: bytes, encoding: str) -> None:
    (fault,) = refused(write(tmp_path, content), encoding=encoding)
    assert fault.code == "R105"
    assert encoding in fault.message


# Lines and headers


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a,b\n1,2\n1,2,3\n", ["line 3 has 3"]),
        ("a,b\n1,2\n3\n4,5\n", ["line 3 has 1"]),
        ("a,b\n1,2\n\n3\n4,\n", ["line 3 has 0", "line 4 has 1"]),
        ("\n\na,b\n1,2\n\n3,4\n", ["line 5 has 0"]),
        ('a,b\n"x\ny",2\n3\n', ["line 4 has 1"]),
        ('a,b\n"x,y",\n"z"\n', ["line 3 has 1"]),
        ("a,b\n1\n2,2\n1,2,3\n", ["line 2 has 1", "line 4 has 3"]),
    ],
)
def test_ragged_lines_are_refused_with_their_numbers(tmp_path: Path, text: str, lines: list[str]) -> None:
    (fault,) = refused(write(tmp_path, text), delimiter=",")
    assert (fault.code, fault.rows) == ("R108", len(lines))
    assert all(line in fault.message for line in lines)


def test_missing_last_values_and_blank_lines_around_the_table_are_not_ragged(tmp_path: Path) -> None:
    text = '\n\na,b\n1,\n"x,y",""\n2,z\n\n\n'
    for end in ("\n", "\r\n"):
        frame = typed(write(tmp_path, text.replace("\n", end)))
        assert frame.rows() == [("1", None), ("x,y", None), ("2", "z")]


def test_line_ends_of_old_macintosh_files(tmp_path: Path) -> None:
    assert typed(write(tmp_path, "a,b\r1,x\r2,y\r")).rows() == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("text", ['a,b\n1,2\n"x,3\n4,5\n', 'a,b\n1,2\n5" pipe,1\n', 'a,b\n1,2\n"x"y,3\n'])
def test_broken_quotation_marks_are_refused(tmp_path: Path, text: str) -> None:
    (fault,) = refused(write(tmp_path, text))
    assert fault.code == "R109"
    assert "line 3" in fault.message


@pytest.mark.parametrize("text", ['a"b,c\n1,2\nx"y,3\n4,5\n', 'a"b,c\n1,2\n', '"a,c\n1,2\n', '\na"b,c\n1,2\nx,"3"\n'])
def test_a_quotation_mark_left_open_in_the_header_swallows_no_rows(tmp_path: Path, text: str) -> None:
    (fault,) = refused(write(tmp_path, text))
    assert fault.code == "R109"
    assert f"line {1 + text.startswith(chr(10))} " in fault.message


def test_headers_without_name_and_with_the_same_name_are_all_reported(tmp_path: Path) -> None:
    faults = refused(write(tmp_path, ",a, ,a ,b\n1,2,3,4,5\n"))
    assert [fault.code for fault in faults] == ["R107", "R107"]
    assert "column 1, 3 of 5" in faults[0].message
    assert "'a' occurs 2 times" in faults[1].message


def test_a_header_without_rows_is_an_empty_table(tmp_path: Path) -> None:
    for text in ("a,b", "a,b\n", "a,b\r\n\r\n"):
        frame = typed(write(tmp_path, text))
        assert (frame.columns, frame.height) == (["a", "b"], 0)


def test_a_very_wide_header_and_a_very_long_value(tmp_path: Path) -> None:
    names = [f"column{place}" for place in range(4_000)]
    wide = "\n".join([",".join(names), ",".join("1" for _ in names)])
    assert typed(write(tmp_path, wide)).columns == names
    long = "x" * 300_000
    assert typed(write(tmp_path, f'a,b\n"{long}",\n')).rows() == [(long, None)]
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("t.csv", b"", "R103"),
        ("t.csv", b"\n \r\n", "R103"),
        ("t.csv", b"\xef\xbb\xbf", "R103"),
        ("t.csv", b"a,b\n1,2\n3,x\0y\n", "R104"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n" * 9, mtime=0) + b"\0", "R104"),
        ("t.csv.gz", b"a,b\n1,2\n", "R113"),
        ("t.parquet", b"a,b\n1,2\n", "R113"),
        ("t.feather", b"a,b\n1,2\n", "R113"),
        ("t.xlsx", b"a,b\n1,2\n", "R113"),
        ("t.dta", b"a,b\n1,2\n", "R113"),
        ("t.doc", b"a,b\n1,2\n", "R102"),
        ("t.doc.gz", b"a,b\n1,2\n", "R102"),
        ("t", b"a,b\n1,2\n", "R102"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    path = write(tmp_path, content, name)
    (fault,) = refused(path)
    assert (fault.code, fault.where) == (code, str(path))


def test_the_line_of_a_nul_byte_is_named(tmp_path: Path) -> None:
    assert "line 3 " in refused(write(tmp_path, b"a,b\n1,2\n3,x\0y\n"))[0].message


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none.csv")[0].message
    (tmp_path / "folder.csv").mkdir()
    assert "folder" in refused(str(tmp_path / "folder.csv"))[0].message


def test_options_without_meaning_are_refused(tmp_path: Path) -> None:
    faults = refused(write(tmp_path, "a\n1\n"), query="SELECT 1", sheet="x")
    assert [fault.code for fault in faults] == ["R106", "R106"]
    assert refused(PEOPLE, delimiter=",")[0].code == "R106"
    PEOPLE.write_parquet(tmp_path / "t.parquet")
    assert refused(tmp_path / "t.parquet", delimiter=";")[0].code == "R106"


# Other files


def test_compressed_text_parquet_and_arrow(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(PEOPLE.write_csv(separator="\t").encode()), "t.TSV.gz")
    assert_frame_equal(typed(path), PEOPLE)
    PEOPLE.write_parquet(tmp_path / "odd[1]*.parquet")
    assert_frame_equal(typed(tmp_path / "odd[1]*.parquet"), PEOPLE)
    for suffix in ("arrow", "feather", "ipc"):
        PEOPLE.write_ipc(tmp_path / f"t.{suffix}")
        assert_frame_equal(typed(str(tmp_path / f"t.{suffix}")), PEOPLE)
    PEOPLE.write_ipc_stream(tmp_path / "s.arrow")
    assert_frame_equal(typed(tmp_path / "s.arrow"), PEOPLE)


def test_an_index_that_pandas_left_in_parquet_is_dropped(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2]}, index=[7, 9]).to_parquet(tmp_path / "t.parquet")
    assert "__index_level_0__" in pl.read_parquet_schema(tmp_path / "t.parquet")
    assert typed(tmp_path / "t.parquet").to_dict(as_series=False) == {"a": [1, 2]}


def test_excel(tmp_path: Path) -> None:
    first = [[" zip", "age", "city"], *([*row] for row in PEOPLE.rows())]
    path = workbook(tmp_path / "t.xlsx", {"people": first, "more": [["a"], [1.5]], "void": []})
    assert [fault.code for fault in refused(path)] == ["R133"]
    frame = typed(path, ReadOptions(accept=("several-sheets",)))
    assert frame.columns == PEOPLE.columns
    assert frame.rows() == PEOPLE.rows()
    assert typed(path, ReadOptions(sheet="more")).rows() == [(1.5,)]
    assert refused(path, sheet="void")[0].code == "R103"
    (fault,) = refused(path, sheet="less")
    assert (fault.code, "more" in fault.remedy) == ("R106", True)


def test_excel_headers_are_checked_and_late_text_is_kept(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"s": [["a", "a", None, "b"], [1, 2, 3, 4]]})
    assert [fault.code for fault in refused(path)] == ["R107", "R107"]
    path = workbook(tmp_path / "u.xlsx", {"s": [["a"], *([[1]] * 3000), ["x"]]})
    assert typed(path)["a"].to_list() == ["1"] * 3000 + ["x"]
    path = workbook(tmp_path / "v.xlsx", {"s": [["a", "b"]]})
    assert (typed(path).columns, typed(path).height) == (["a", "b"], 0)


def test_stata_and_spss(tmp_path: Path) -> None:
    import pyreadstat

    frame = pd.DataFrame({"sex": [1, 2, 1], "city": ["Zürich", "", "Bern"], "born": [dt.date(1980, 1, 2)] * 3})
    labels: dict[str, dict[int | float, str]] = {"sex": {1: "female", 2: "male"}}
    for name, writer in (("t.dta", pyreadstat.write_dta), ("t.sav", pyreadstat.write_sav)):
        writer(frame, tmp_path / name, variable_value_labels=labels)
        result = typed(tmp_path / name)
        assert result["sex"].to_list() == ["female", "male", "female"]
        assert result["city"][0] == "Zürich"
        assert result["born"].to_list() == [dt.date(1980, 1, 2)] * 3
        writer(frame, tmp_path / name, variable_value_labels={"sex": {1: "female"}})
        assert typed(tmp_path / name)["sex"].to_list() == ["female", "2", "female"]
    scores = pd.DataFrame({"score": [1.0, 9.0, 2.5]})
    pyreadstat.write_sav(scores, tmp_path / "m.sav", missing_ranges={"score": [9]})
    assert typed(tmp_path / "m.sav")["score"].to_list() == [1.0, None, 2.5]


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("t.xlsx", "fastexcel", "excel"),
        ("t.dta", "pyreadstat", "stats"),
        ("t.sas7bdat", "pyreadstat", "stats"),
        ("t.xpt", "pyreadstat", "stats"),
    ],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (fault,) = refused(write(tmp_path, "x", name))
    assert (fault.code, fault.remedy) == ("R110", f"pip install reveil[{extra}]")
    assert module in fault.message


# Frames


def test_frames_in_memory() -> None:
    arrow = pa.table(PEOPLE.to_dict(as_series=False))
    pandas = PEOPLE.to_pandas().set_index(pd.Index([5, 6], name="row"))
    for source in (PEOPLE, PEOPLE.lazy(), arrow, arrow.to_batches()[0]):
        assert_frame_equal(typed(source), PEOPLE)
    assert_frame_equal(typed(pandas), PEOPLE, check_dtypes=False)  # pandas knows no missing integers


class OnlyStream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return PEOPLE.__arrow_c_stream__(requested_schema)


class OnlyInterchange:
    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        return pa.table(PEOPLE.to_dict(as_series=False)).__dataframe__(nan_as_null, allow_copy)


def test_anything_that_speaks_arrow_or_interchange() -> None:
    assert_frame_equal(typed(OnlyStream()), PEOPLE)
    assert_frame_equal(typed(OnlyInterchange()), PEOPLE)


def test_names_and_types_of_frames_are_tidied_and_the_source_is_left_alone() -> None:
    kinds: dict[str, Any] = {" c ": pl.Categorical, "e": pl.Enum(["u", "v"]), "n": pl.Null}
    source = pl.DataFrame({" c ": ["x", "y"], "e": ["u", "v"], "n": [None, None]}, schema=kinds)
    result = typed(source)
    assert dict(result.schema) == {"c": pl.String, "e": pl.String, "n": pl.String}
    assert source.columns == [" c ", "e", "n"]
    assert typed(pd.DataFrame({1: pd.Categorical(["x"])})).to_dict(as_series=False) == {"1": ["x"]}
    assert typed(pd.DataFrame({"x": [1.5, float("nan")]}))["x"].to_list() == [1.5, None]


def test_frames_that_cannot_be_used() -> None:
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert refused(twice)[0].code == "R107"
    assert refused(pa.table([[1], [2]], names=["a", "a"]))[0].code == "R107"
    assert refused(pl.DataFrame({"a": [1], " a": [2]}))[0].code == "R107"
    assert read_table(pd.DataFrame({"a": [1, "x", 2.0, None]}))["a"].to_list() == ["1", "x", "2", None]
    assert refused(pa.chunked_array([[1, 2]]))[0].code == "R113"
    assert refused(3)[0].code == "R102"
    assert refused(None)[0].code == "R102"


# Databases


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "odd #%41.db"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE people (zip TEXT, age INTEGER, mixed, number, big)")
    rows = [("02139", 41, 1, 1, 2**60), ("10115", None, "x", 2.5, 0.5)]
    base.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    base.commit()
    base.close()
    url = f"sqlite:///{quote(str(path))}"
    frame = typed(url, ReadOptions(query="SELECT * FROM people WHERE zip LIKE '%1%'"))
    assert frame.rows() == [
        ("02139", 41, "1", 1.0, "1152921504606846976"),
        ("10115", None, "x", 2.5, "0.5"),
    ]
    empty = typed(url, ReadOptions(query="SELECT zip, age FROM people WHERE age > 99"))
    assert (empty.columns, empty.height) == (["zip", "age"], 0)
    for query, code in (
        ("SELECT * FROM nobody", "R112"),
        ("DELETE FROM people", "R112"),
        ("SELECT 1; SELECT 2", "R112"),
        ("PRAGMA nonsense = 1", "R112"),
        ("SELECT zip, zip FROM people", "R107"),
        (None, "R111"),
        ("  ", "R111"),
    ):
        assert [fault.code for fault in refused(url, query=query)] == [code]
    assert refused(url, query="SELECT 1", sheet="x")[0].code == "R106"
    assert typed(url, ReadOptions(query="SELECT count(*) AS n FROM people")).item() == 2


def test_a_mistyped_sqlite_file_is_not_created(tmp_path: Path) -> None:
    assert refused(f"sqlite:///{tmp_path}/none.db", query="SELECT 1")[0].code == "R101"
    assert list(tmp_path.iterdir()) == []
    write(tmp_path, "not a database, only text" * 9, "t.db")
    assert refused(f"sqlite:///{tmp_path}/t.db", query="SELECT * FROM t")[0].code == "R112"
    assert refused("sqlite://", query="SELECT 1")[0].code == "R101"


@pytest.mark.parametrize("url", ["mysql://u:secret@h/d", "http://h/t.csv", "://", "postgresql://h:port/d"])
def test_unknown_urls_are_refused(url: str) -> None:
    (fault,) = refused(url, query="SELECT 1")
    assert fault.code == "R102"
    assert "secret" not in str(fault)


def test_postgres(postgres: str) -> None:
    query = "SELECT zip, age, born, weight::float8 AS weight, ok FROM people WHERE zip LIKE '%1%' ORDER BY zip"
    rows = [("02139", 41, dt.date(1980, 1, 2), 70.5, True), ("10115", None, None, None, False)]
    for url in (postgres, postgres.replace("postgresql:", "postgres:")):
        assert typed(url, ReadOptions(query=query)).rows() == rows
    empty = typed(postgres, ReadOptions(query="SELECT zip, age FROM people WHERE false"))
    assert (empty.columns, empty.height) == (["zip", "age"], 0)
    uuid = "00000000-0000-0000-0000-000000000001"
    odd = f"SELECT weight, tags->'a' AS tag, 'NaN'::numeric + weight AS nan, '{uuid}'::uuid AS id FROM people"
    frame = typed(postgres, ReadOptions(query=odd))
    assert frame.select("weight", "tag", "nan", "id").row(0) == (70.5, 1, None, uuid)


def test_one_decimal_in_postgres_changes_no_other(postgres: str) -> None:
    """The scale of a numeric column must not show in other people's identifiers and values."""
    few = "SELECT * FROM (VALUES (1.0, 'a'), (2.50, 'b')) AS t(n, v)"
    more = "SELECT * FROM (VALUES (1.0, 'a'), (2.50, 'b'), (1.2345, 'c')) AS t(n, v)"
    first, second = (read_table(postgres, ReadOptions(query=query)) for query in (few, more))
    assert first.rows() == second.head(2).rows() == [("1", "a"), ("2.5", "b")]


def test_postgres_is_only_read(postgres: str) -> None:
    (fault,) = refused(postgres, query="INSERT INTO people (zip) VALUES ('x') RETURNING zip")
    assert (fault.code, "read-only" in fault.message) == ("R112", True)
    assert typed(postgres, ReadOptions(query="SELECT count(*) AS n FROM people")).item() == 2
    assert refused(postgres, query="SELECT * FROM nobody")[0].code == "R112"
    assert refused(postgres)[0].code == "R111"


@pytest.mark.parametrize(
    "query",
    [
        "SET search_path TO public",
        "SELECT zip FROM people; DELETE FROM people",
        "SELECT zip FROM people; COMMIT; DELETE FROM people; SELECT 1",
        "COMMIT; DELETE FROM people",
        "CREATE TEMP TABLE t AS SELECT 1 AS a",
        "SELECT 1 AS a INTO TEMP t",
        "CREATE TABLE t AS SELECT 1 AS a",
        "WITH gone AS (DELETE FROM people RETURNING zip) SELECT * FROM gone",
        "DELETE FROM people RETURNING zip",
        "COPY people TO '/tmp/reveil-copied'",
        "SELECT setval('counted', 9)",
        "DO $$ BEGIN DELETE FROM people; END $$",
        "VACUUM",
    ],
)
def test_postgres_takes_one_query_that_reads(postgres: str, query: str) -> None:
    """Second statements, temporary tables, sequences and files are writing, whatever comes back."""
    assert refused(postgres, query=query)[0].code == "R112"
    left = "SELECT (SELECT count(*) FROM people) AS n, last_value, to_regclass('t')::text AS t FROM counted"
    assert typed(postgres, ReadOptions(query=left)).row(0) == (2, 1, None)
    assert not Path("/tmp/reveil-copied").exists()


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    (fault,) = refused("postgresql://u:secret@127.0.0.1:1/d", query="SELECT 1")
    assert fault.code == "R111"
    assert "127.0.0.1" in fault.where
    assert "secret" not in str(fault)


def test_a_missing_postgres_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    (fault,) = refused("postgresql://u@127.0.0.1:1/d", query="SELECT 1")
    assert (fault.code, fault.remedy) == ("R110", "pip install reveil[postgres]")


# What is written is what is read

NUMBER = re.compile(r"-?((0|[1-9]\d*)?[.,]\d+(e[+-]?\d+)?|(0|[1-9]\d*)(e[+-]\d+)?)|\d{4}-\d\d-\d\d", re.A | re.I)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
CODES = st.from_regex(r"[-+]?0\d{0,4}", fullmatch=True) | st.sampled_from(["true", "1,234,567", " 1", "1 "])
INTEGERS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    height = draw(st.integers(0, 6))
    table = {}
    for place in range(draw(st.integers(1, 4))):
        values = draw(st.sampled_from([INTEGERS, WORDS, CODES, WORDS | CODES | INTEGERS.map(str)]))
        cells: list[Any] = draw(st.lists(st.none() | values, min_size=height, max_size=height))
        if any(isinstance(value, str) for value in cells):
            # Without one value that is plainly text, text that looks like numbers reads as numbers.
            cells = ["x" + value if value and NUMBER.fullmatch(value) else value for value in cells]
        table[f"column{place}"] = cells
    return table


@settings(max_examples=150, deadline=None)
@given(table=tables(), mark=st.sampled_from(",;\t|"), end=st.sampled_from(["\n", "\r\n"]), quoted=st.booleans())
def test_any_table_comes_back(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[Any]], mark: str, end: str, quoted: bool
) -> None:
    text = io.StringIO(newline="")
    # Before Python 3.13, csv leaves a bare carriage return without the quotes it needs.
    quoted = quoted or any("\r" in str(value) for values in table.values() for value in values)
    style: dict[str, Any] = {"quoting": csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL}
    writer = csv.writer(text, delimiter=mark, lineterminator=end, **style)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    path = write(tmp_path_factory.getbasetemp(), text.getvalue())
    frame = typed(path, ReadOptions(delimiter=mark))
    expected = {name: [None if v == "" else v for v in values] for name, values in table.items()}
    assert frame.to_dict(as_series=False) == expected
    for name, values in expected.items():
        assert frame.schema[name] == (pl.Int64 if any(type(v) is int for v in values) else pl.String)


def test_reading_is_not_much_slower_than_polars(tmp_path: Path) -> None:
    height = 100_000
    numbers = pl.int_range(height, eager=True)
    columns: dict[str, pl.Series] = {f"n{place}": (numbers * 7919 + place) % 1000 for place in range(4)}
    columns |= {"f": numbers / 7, "zip": (numbers % 99999).cast(pl.String).str.zfill(5)}
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")

    def best(read: Any) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            read(tmp_path / "t.csv")
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(read_table) < 6 * best(pl.read_csv) + 0.05  # about 2.2 when the machine is quiet
