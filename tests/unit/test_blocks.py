"""Blocks around the promise: many files in and out, what is refused and how, and the engine that is chosen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from reveil.audit.audit import audit
from reveil.base.errors import InputError
from reveil.engine.blocks import Blocks, PiecesHere
from reveil.engine.choice import refusals, table_of_engines
from reveil.guarantees.catalog import descriptors
from reveil.guarantees.descriptor import ONE_RELEASE
from reveil.history.history import History
from reveil.jobs import engines
from reveil.jobs.engines import EngineAsked, in_parts
from reveil.jobs.in_parts import anonymize_in_blocks
from reveil.jobs.table_in_parts import Sizes
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy
from reveil.publish import anonymize, open_series
from reveil.published.reader import open_published
from reveil.table.parts import CELL, needed
from reveil.verify.judges.contract import Verdict
from reveil.verify.judges.single import KAnonymityJudge
from reveil.verify.merging import merged
from reveil.verify.verify import Bench, verify

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS = {"age": "quasi", "ill": "sensitive"}
POLICY = {"columns": COLUMNS, "guarantee": {"k": 2}}


def people(rows: int = 40) -> pl.DataFrame:
    return pl.DataFrame({"age": [20 + i % 9 for i in range(rows)], "ill": [f"i{i % 3}" for i in range(rows)]})


def codes(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [fault.code for fault in error.value.faults]


def folder_of(tmp_path: Path, frames: list[pl.DataFrame], kind: str = "parquet") -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    for number, frame in enumerate(frames):
        file = folder / f"{number}.{kind}"
        frame.write_parquet(file) if kind == "parquet" else frame.write_csv(file)
    return folder


def test_rows_of_one_key_come_together_in_their_order(tmp_path: Path) -> None:
    blocks = [np.array([[i, i % 3]], dtype=np.int32) for i in range(10)]
    rows = Blocks(tmp_path, 4).rows(blocks)
    assert [len(block) for block in rows] == [4, 4, 2]
    by_key = rows.together(lambda block: block[:, 1].astype(np.int64), 5).each(lambda block: block[:, :1]).kept()
    assert [block.ravel().tolist() for block in by_key] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert by_key.fold(len, int.__add__) == 10


@pytest.mark.parametrize("year", [2020, 2021])
def test_blocks_without_a_chosen_row_are_passed_over(tmp_path: Path, year: int) -> None:
    years = [people(10).with_columns(pl.lit(n).alias("y")).with_row_index("who") for n in (2020, 2021)]
    policy = {**POLICY, "columns": {**COLUMNS, "y": "drop", "who": "identifier"}}
    how: dict[str, Any] = {"engine": "blocks", "where": {"y": year}, "accept": ["row-index"]}
    release = anonymize(folder_of(tmp_path, years), policy, out=tmp_path / "out", **how)
    assert release.certificate.counts["published rows"] == 10


@pytest.mark.parametrize("engine", ["whole", "blocks"])
@pytest.mark.parametrize("pattern", [False, True])
def test_a_folder_or_a_pattern_is_one_table(tmp_path: Path, engine: str, pattern: bool) -> None:
    folder = folder_of(tmp_path, [people(10), people(30)])
    source = str(folder / "*.parquet") if pattern else folder
    release = anonymize(source, POLICY, out=tmp_path / "out", engine=engine)
    assert release.certificate.counts["published rows"] == 40


def test_files_of_a_table_are_alike(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [people(), people().with_columns(pl.col("age").cast(pl.String))])
    for engine in ("whole", "blocks"):
        with pytest.raises(InputError) as error:
            anonymize(folder, POLICY, out=tmp_path / "out", engine=engine)
        assert codes(error) == ["R871"]


def test_text_files_need_stated_types(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [people(10), people(30)], "csv")
    with pytest.raises(InputError) as error:
        anonymize(folder, POLICY, out=tmp_path / "out", engine="blocks")
    assert codes(error) == ["R873", "R873"]
    stated = {"age": {"role": "quasi", "type": "number"}, "ill": {"role": "sensitive", "type": "category"}}
    release = anonymize(folder, {**POLICY, "columns": stated}, out=tmp_path / "out", engine="blocks")
    assert release.table.height == 40


def made(tmp_path: Path, file: int = 15, form: str = "csv") -> Path:
    people().write_parquet(tmp_path / "p.parquet")
    policy = load_policy({**POLICY, "output": {"format": form}})
    sizes = Sizes(9, part=12, file=file, sample=40)
    anonymize_in_blocks([tmp_path / "p.parquet"], policy, tmp_path / "out", sizes, seed=1, key=bytes(32))
    return tmp_path / "out"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_both_readers_read_many_files(tmp_path: Path, form: str) -> None:
    out = made(tmp_path, form=form)
    assert len(list((out / "public").glob(f"table-*.{form}"))) == 3
    assert open_published(out).table["ill"].sort().to_list() == people()["ill"].sort().to_list()
    found = verify(out / "public", load_policy(POLICY), History())
    assert found.holds
    assert found.rows == 40


def test_a_release_of_many_files_is_measured_and_audited_as_one_table(tmp_path: Path) -> None:
    out = made(tmp_path)
    assert measure(out, tmp_path / "p.parquet", POLICY, queries=10).rows == 40
    who = people().select("age").with_row_index("name").with_columns(pl.col("name").cast(pl.String))
    assert audit([out], who, policy=POLICY).to_dict()["summary"]["rows"] == 40


def test_parquet_footers_say_nothing_of_the_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for file in (made(tmp_path, form="parquet") / "public").glob("*.parquet"):
        about = pq.read_metadata(file)
        assert about.metadata is None
        assert all(not about.row_group(0).column(i).is_stats_set for i in range(about.num_columns))


def test_a_changed_file_is_noticed_from_its_bytes(tmp_path: Path) -> None:
    from reveil.verify.comparing import Truth
    from reveil.verify.in_parts import verify_in_parts

    public, policy = made(tmp_path) / "public", load_policy(POLICY)
    values = {"ill": people().group_by(value="ill").len("rows").cast({"rows": pl.Int64})}
    (tmp_path / "rows").mkdir()

    def judged(rows: int = 40) -> Any:
        engine = Blocks(tmp_path / "rows", 11)
        files = PiecesHere(engine, sorted(public.glob("table-*.csv")))
        return verify_in_parts(public, files, policy, Truth(rows, 0, values), Bench.seat(policy), engine)

    assert judged().holds
    assert not judged(41).holds
    file = public / "table-00001.csv"
    head, first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([head, "99," + first.split(",")[1], *rest]) + "\n")
    found = judged()
    assert {check.name for check in found.checks if not check.holds} == {"public files"}


def test_verdicts_of_parts_are_merged() -> None:
    good = Verdict("k", "every class has at least 3 rows; the smallest has 3", "", True, 3, 3, details={"class": 0})
    bad = replace(
        good, statement="1 of 2 classes has fewer", holds=False, worst=1, violating_classes=1, violating_rows=1
    )
    both = merged(KAnonymityJudge(3), [good, replace(good, worst=5), bad, bad], 9)
    assert not both.holds
    assert (both.violating_classes, both.violating_rows, both.worst) == (2, 2, 1)
    assert both.statement.startswith("2 of 9 classes in all parts")
    assert merged(KAnonymityJudge(3), [replace(good, worst=5), good], 9).worst == 3


@pytest.mark.parametrize(
    "change",
    [
        {"guarantee": {"model": "epsilon-m", "epsilon": 1, "m": 2}},
        {"method": {"name": "full-domain"}},
        {"method": {"recode": "sets"}},
        {"guarantee": {"model": "l-diversity", "k": 2, "l": 2}, "method": {"publish": "anatomy"}},
        {"method": {"infeasible": "withhold"}},
        {"guarantee": {"model": "t-closeness", "t": 0.4}, "method": {"suppress": 0.1}},
    ],
    ids=str,
)
def test_what_does_not_come_apart_is_refused_by_name_before_any_work(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "p.parquet").write_bytes(b"not read")
    with pytest.raises(InputError) as error:
        anonymize(tmp_path / "p.parquet", {**POLICY, **change}, out=tmp_path / "out", engine="blocks")
    assert set(codes(error)) == {"R870"}


def test_the_table_of_the_documents_is_what_the_guarantees_say() -> None:
    text = (DOCS / "scale.md").read_text(encoding="utf-8")
    written = text.split("write_engines.py -->\n")[1].split("\n<!-- /engines")[0]
    assert written == table_of_engines(), "run scripts/write_engines.py"
    stated = dict(line.strip("| ").split(" | ", 1) for line in written.splitlines()[2:])
    assert stated.keys() == descriptors().keys()
    numbers = {"k": 2, "l": 2, "t": 0.5, "beta": 2, "delta": 1, "alpha": 0.5, "epsilon": 1, "m": 2}
    alone = [one for one in descriptors().values() if one.family == ONE_RELEASE and {*one.needs} <= {*numbers}]
    assert len(alone) > 6
    for one in alone:
        asked = {"model": one.name, **{key: numbers[key] for key in one.needs}}
        assert (stated[one.name] == "yes | yes | yes") == (not refusals(load_policy({**POLICY, "guarantee": asked})))


def test_people_with_two_rows_and_without_identifier_are_refused(tmp_path: Path) -> None:
    table = people().with_columns(id=pl.Series([f"p{i // 2}" for i in range(40)]))
    policy = {**POLICY, "columns": {"id": "identifier", **COLUMNS}}
    for number, (frame, code) in enumerate([(table, "R214"), (table.with_columns(id=pl.lit(None, pl.String)), "R213")]):
        frame.write_parquet(tmp_path / f"{number}.parquet")
        with pytest.raises(InputError) as error:
            anonymize(tmp_path / f"{number}.parquet", policy, out=tmp_path / "out", engine="blocks")
        assert codes(error) == [code]


def test_blocks_are_chosen_where_memory_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people().write_parquet(tmp_path / "p.parquet")
    policy, file = load_policy(POLICY), tmp_path / "p.parquet"
    assert in_parts(file, policy, tmp_path / "out", EngineAsked("auto", None)) is None
    with pytest.raises(InputError) as error:  # no job keeps this, however small its blocks
        in_parts(file, policy, tmp_path / "out", EngineAsked("auto", "1KB"))
    assert codes(error) == ["R878"]
    monkeypatch.setattr(engines, "PROGRAM", 0)
    assert in_parts(file, policy, tmp_path / "out", EngineAsked("auto", "1KB")) is not None
    less = load_policy({**POLICY, "engine": {"memory": "1KB"}})
    assert in_parts(file, less, tmp_path / "out", EngineAsked("auto", None)) is not None
    assert in_parts(people(), policy, None, EngineAsked("auto", None)) is None


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"engine": "flink"}, "R874"),
        ({"engine": "whole", "memory": "1KB"}, "R878"),
        ({"engine": "blocks", "seed": -1}, "R222"),
        ({"memory": "much"}, "R874"),
        ({"engine": "blocks", "out": None}, "R875"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path: Path, how: dict[str, Any], code: str) -> None:
    people().write_parquet(tmp_path / "p.parquet")
    with pytest.raises(InputError) as error:
        anonymize(tmp_path / "p.parquet", POLICY, **{"out": tmp_path / "out", **how})
    assert codes(error) == [code]


def test_a_series_beyond_the_memory_of_its_policy_is_refused(tmp_path: Path) -> None:
    people().with_columns(id=pl.int_range(40)).write_parquet(tmp_path / "p.parquet")
    policy = {**POLICY, "columns": {"id": "identifier", **COLUMNS}, "engine": {"memory": "1KB"}}
    with pytest.raises(InputError) as error:
        open_series(policy, tmp_path / "home").publish(tmp_path / "p.parquet")
    assert codes(error) == ["R870"]


def test_nobody_keeps_the_groups_of_rows(tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "p.parquet")
    release = anonymize(tmp_path / "p.parquet", POLICY, out=tmp_path / "out", engine="blocks", seed=2)
    assert json.loads(json.dumps(release.to_dict()))["number"] is None
    assert (tmp_path / "out" / "private" / "key").is_file()
    with pytest.raises(InputError) as error:
        _ = release.groups
    assert codes(error) == ["R876"]


def test_rows_are_chosen_in_blocks_as_at_once(tmp_path: Path) -> None:
    table = people().with_columns(year=pl.Series([1985 + i // 20 for i in range(40)]))
    table.write_parquet(tmp_path / "p.parquet", row_group_size=7)
    policy = load_policy({**POLICY, "columns": {**COLUMNS, "year": "drop"}})
    sizes = Sizes(9, part=12, file=15, sample=40)

    def made(where: dict[str, object], out: str) -> Any:
        how: dict[str, Any] = {"seed": 1, "key": bytes(32), "where": where}
        return anonymize_in_blocks([tmp_path / "p.parquet"], policy, tmp_path / out, sizes, **how)

    assert made({"year": 1986}, "out").table["ill"].sort().to_list() == table[20:]["ill"].sort().to_list()
    faults = []
    for engine in ("whole", "blocks"):
        with pytest.raises(InputError) as error:
            anonymize(tmp_path / "p.parquet", policy, out=tmp_path / engine, engine=engine, where={"year": 1999})
        faults.append(error.value.faults)
    assert faults[0] == faults[1]
    for where in ({"ill": "i1"}, {"when": 1}):
        with pytest.raises(InputError) as error:
            made(where, "none")
        assert codes(error) == ["R138"]


def test_an_accepted_row_index_is_left_out_of_every_block(tmp_path: Path) -> None:
    people().with_row_index("index").write_parquet(tmp_path / "p.parquet")
    sizes = Sizes(9, part=12, file=15, sample=40)
    with pytest.raises(InputError) as error:
        anonymize_in_blocks([tmp_path / "p.parquet"], load_policy(POLICY), tmp_path / "a", sizes, seed=1, key=bytes(32))
    assert codes(error) == ["R132"]
    how: dict[str, Any] = {"seed": 1, "key": bytes(32), "accept": ["row-index"]}
    found = anonymize_in_blocks([tmp_path / "p.parquet"], load_policy(POLICY), tmp_path / "b", sizes, **how)
    assert found.table.columns == ["age", "ill"]


def test_a_stated_memory_holds_for_whole_frames_and_queries(tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "p.parquet")
    less = {**POLICY, "engine": {"memory": "1KB"}}
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (tmp_path / "p.parquet", {"engine": "whole"}, "R878"),
        (people(), {}, "R878"),
        (people().lazy(), {}, "R878"),
        (people().to_arrow(), {}, "R878"),
        ("sqlite:///people.db", {}, "R875"),
    ]
    for table, how, code in cases:
        with pytest.raises(InputError) as error:
            anonymize(table, less, **how)
        assert codes(error) == [code]
    for table in (people(), tmp_path / "p.parquet"):
        assert anonymize(table, POLICY, memory="1MB").certificate.holds
    series = {**less, "columns": {"id": "identifier", **COLUMNS}}
    with pytest.raises(InputError) as error:
        open_series(series, tmp_path / "home").plan(people().with_row_index("id"))
    assert codes(error) == ["R870"]


def test_text_without_an_order_is_refused_where_one_is_needed(tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "p.parquet")
    policy = {**POLICY, "guarantee": {"model": "t-closeness", "t": 0.4, "distance": "ordered"}}
    for engine in ("whole", "blocks"):
        with pytest.raises(InputError) as error:
            anonymize(tmp_path / "p.parquet", policy, out=tmp_path / "out", engine=engine)
        assert codes(error) == ["R412"]


def test_the_reports_are_those_of_the_same_release_at_once(tmp_path: Path) -> None:
    """Everybody in one group: then both ways make the same release, and say the same about it."""
    table = people().with_columns(ward=pl.Series([f"w{i % 5}" for i in range(40)]))
    table.write_parquet(tmp_path / "p.parquet")
    policy = {**POLICY, "columns": {**COLUMNS, "ward": "quasi"}, "guarantee": {"k": 40}}
    pages = {}
    for engine in ("whole", "blocks"):
        anonymize(tmp_path / "p.parquet", policy, out=tmp_path / engine, engine=engine, seed=1)
        private = tmp_path / engine / "private"
        pages[engine] = [(private / name).read_text() for name in ("report.html", "report-external.html")]
    assert all("Prosecutor" in page for page in pages["blocks"])
    for blocks, whole in zip(pages["blocks"], pages["whole"], strict=True):
        # rows as published, and the share of cells that say nothing, are not looked up in the files again
        told = re.sub(r'<div class="wide"><table class="example">.*?</table></div>', "", whole, flags=re.S)
        lines = re.sub(r'<td class="n hide">[0-9]+ %</td>', '<td class="n hide"></td>', told).splitlines()
        assert [line for line in lines if line not in blocks and "table" not in line and "SHA-256" not in line] == []
    plans = [json.loads((tmp_path / engine / "private" / "plan.json").read_text()) for engine in ("whole", "blocks")]
    del plans[0]["statistics"], plans[1]["statistics"]
    assert plans[0] == plans[1]


def test_a_text_file_is_estimated_by_its_cells(tmp_path: Path) -> None:
    for number, name in enumerate(("i", "a much longer name of an illness ")):
        people(20_000).with_columns(pl.lit(name).alias("ill")).write_csv(tmp_path / f"{number}.csv")
        taken, size = needed([tmp_path / f"{number}.csv"]), (tmp_path / f"{number}.csv").stat().st_size
        assert abs(taken - size - CELL * 2 * 20_001) < 0.05 * taken
