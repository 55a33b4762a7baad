"""What is published: cells that cover the truth, rows in no order, and files with nothing else in them."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

import reveil
from reveil import publish
from reveil.background.loading import load_hierarchies
from reveil.base.errors import GuaranteeError
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy, load_policy
from reveil.publish import draft
from reveil.published.notation import parse_cell
from reveil.table.encode import encode, positions_of
from reveil.table.roles import prepare
from reveil.verify.reading import Reading, read_published
from reveil.verify.verify import Truth, check_reading, verify
from reveil.write.emit import count_counterfeits, emit
from reveil.write.recode import ColumnBlock, Recoded, recode

ROWS = 300
TOWNS = {"Berlin": "east", "Dresden": "east", "Kiel": "north", "Bremen": "north", "St. Goar, Rhein": "west"}
JOBS = {"health": {"doctor": ["surgeon", "dentist"], "care": ["nurse"]}, "trade": ["baker", "smith, {gold}"]}
KINDS: dict[str, Any] = {
    "number": "quasi",
    "float": "quasi",
    "widths": {"role": "quasi", "widths": [5, 10, 50]},
    "float widths": {"role": "quasi", "widths": ["0.5", 2]},
    "cuts": {"role": "quasi", "cuts": [[18, 40, 65], [40]]},
    "float cuts": {"role": "quasi", "cuts": ["-1.5", 0, "2.25"]},
    "date": "quasi",
    "date levels": {"role": "quasi", "levels": ["month", "quarter", "year", "decade"]},
    "day levels": {"role": "quasi", "levels": ["day", "year"]},
    "prefixes": {"role": "quasi", "prefixes": [4, 3, 1]},
    "ordered": {"role": "quasi", "order": ["I", "II", "II-b", "III", "IV"]},
    "file": {"role": "quasi", "hierarchy": "towns.csv"},
    "nested": {"role": "quasi", "hierarchy": JOBS},
    "flat": "quasi",
    "boolean": "quasi",
}


def people(missing: bool, seed: int = 0, rows: int = ROWS) -> pl.DataFrame:
    """A table with a column of every kind, an identifier, two sensitive columns and an insensitive one."""
    rng = np.random.default_rng(seed)
    first = datetime.date(1959, 12, 1)

    def pick(values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in rng.integers(len(values), size=rows)]

    columns: dict[str, Any] = {
        "number": rng.integers(-20, 90, rows).tolist(),
        "float": (rng.integers(-400, 400, rows) / 8).tolist(),
        "widths": rng.integers(-20, 90, rows).tolist(),
        "float widths": (rng.integers(-50, 50, rows) / 10).tolist(),
        "cuts": rng.integers(0, 90, rows).tolist(),
        "float cuts": (rng.integers(-30, 30, rows) / 4).tolist(),
        "date": [first + datetime.timedelta(int(d)) for d in rng.integers(0, 9000, rows)],
        "date levels": [first + datetime.timedelta(int(d)) for d in rng.integers(0, 9000, rows)],
        "day levels": [first + datetime.timedelta(int(d)) for d in rng.integers(0, 900, rows)],
        "prefixes": pick(["10115", "10117", "10243", "20095", "20097", "01067", "4", "47"]),
        "ordered": pick(["I", "II", "II-b", "III"]),
        "file": pick(list(TOWNS)),
        "nested": pick(["surgeon", "dentist", "nurse", "baker", "smith, {gold}"]),
        "flat": pick(["a", "b,c", "{d}", 'e"f', "20-30", "[1-2]"]),
        "boolean": pick([True, False]),
    }
    if missing:
        columns = {name: [None if rng.random() < 0.1 else v for v in values] for name, values in columns.items()}
    return pl.DataFrame(
        {
            "id": [f"person-{i:05d}-secret" for i in rng.permutation(rows)],
            **columns,
            "ill": pick(["flu", "cold", 'a "b"', "c,d\ne", None]),
            "cost": pick([0.1, 1 / 3, 2.0, 1e300, None]),
            "since": pick([first, datetime.date(2024, 2, 29), None]),
            "ward": pick(["A", "B", None]),
            "note": pick(["unpublishable"]),
        }
    )


def policy_for(folder: Path, kinds: Sequence[str], **more: Any) -> Policy:
    (folder / "towns.csv").write_text("".join(f'"{t}";{side};*\n' for t, side in TOWNS.items()))
    columns = {
        "id": "identifier",
        **{kind: KINDS[kind] if kind in kinds else "drop" for kind in KINDS},
        "ill": "sensitive",
        "cost": "sensitive",
        "since": "sensitive",
        "ward": "insensitive",
        "note": "drop",
    }
    content = {"columns": columns, "guarantee": {"k": 4}, "folder": folder, **more}
    return load_policy(content)


def same_rows(table: pl.DataFrame, groups: NDArray[np.int32], frame: pl.DataFrame, policy: Policy) -> None:
    """Every input row is a published row of its group, with its own values and cells that cover them."""
    kept = frame.with_columns(pl.Series("group", groups)).filter(pl.col("group") >= 0)
    exact = ["group", *policy.named("sensitive"), *policy.named("insensitive")]
    assert Counter(kept.select(exact).rows()) == Counter(table.select(exact).rows())
    quasi = policy.named("quasi")
    cells = table.select("group", *quasi).unique()
    assert cells.height == cells["group"].n_unique()
    shown = {group: texts for group, *texts in cells.iter_rows()}
    prepared = prepare(frame, policy)
    for number, name in enumerate(quasi):
        spec = policy.columns[name]
        hierarchy, _ = positions_of(name, spec, prepared[name], load_hierarchies(policy).get(name))
        numeric = None if not prepared.schema[name].is_numeric() else True
        read = {text: parse_cell(text, hierarchy, numeric=numeric) for text in {c[number] for c in shown.values()}}
        for value, group in zip(prepared[name], groups, strict=True):
            if group >= 0:
                text = shown[group][number]
                assert read[text].covers(value), (name, value, text)


@pytest.mark.parametrize("form", ["nodes", "sets"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_verifier_finds_cells_that_are_not_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, missing: bool
) -> None:
    """Each column by itself: all groups show what another group shows, so that nothing else is wrong."""
    policy = policy_for(tmp_path, list(KINDS), method={"recode": form})
    table = people(missing)
    right = reveil.open_series(policy, home=tmp_path / "right").publish(table, seed=1).table
    write = publish.emit
    telling = [name for name in policy.named("quasi") if right[name].n_unique() > 1]
    assert len(telling) > 5
    for name in telling:

        def exchanged(tables: dict[str, Recoded], *rest: Any, column: str = name) -> None:
            shown, *others = tables["table"].parts
            moved = shown.cells.with_columns(pl.col(column).reverse())
            write({"table": Recoded((ColumnBlock(moved, shown.index), *others))}, *rest)

        monkeypatch.setattr(publish, "emit", exchanged)
        with pytest.raises(GuaranteeError) as refused:
            reveil.open_series(policy, home=tmp_path / "wrong").publish(table, seed=1)
        assert f"cells: not true: {name!r} of" in str(refused.value)


@pytest.mark.parametrize("people", ["boxes", "exact"])
def test_the_verifier_finds_two_tables_that_are_not_true(
    people: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = load_policy(
        {
            "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
            "guarantee": {"model": "l-diversity", "k": 2, "l": 2},
            "method": {"publish": "anatomy", "people": people},
        }
    )
    table = pl.DataFrame({"id": range(8), "age": range(8), "ill": list("abcdabcd")})
    reveil.open_series(policy, home=tmp_path / "right").publish(table)
    write = publish.emit

    def exchanged(tables: dict[str, Any], *rest: Any) -> None:
        shown = tables["people"].table.sort("group").with_columns(pl.col("age").reverse())
        write({**tables, "people": shown}, *rest)

    monkeypatch.setattr(publish, "emit", exchanged)
    with pytest.raises(GuaranteeError, match="quasi-identifiers"):
        reveil.open_series(policy, home=tmp_path / "wrong").publish(table)


@pytest.mark.parametrize("form", ["nodes", "sets"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_cover_the_truth(tmp_path: Path, kind: str, form: str, missing: bool) -> None:
    policy = policy_for(tmp_path, [kind], method={"recode": form})
    frame = people(missing)
    d = draft(frame, policy, None, b"", 3, silent)
    table = recode(d.frame, d.encoded, d.plan, policy, d.rng, group_column=True).table
    same_rows(table, d.plan.groups, frame, policy)
    sizes = table.group_by("group").len()["len"]
    assert sizes.len() > 1
    assert min(sizes) >= 4


@pytest.mark.parametrize("form", ["nodes", "sets"])
@pytest.mark.parametrize("file", ["csv", "parquet"])
def test_all_kinds_together(tmp_path: Path, form: str, file: str) -> None:
    policy = policy_for(tmp_path, list(KINDS), method={"recode": form, "suppress": 0.05}, output={"format": file})
    frame = people(missing=True)
    series = reveil.open_series(policy, tmp_path / "home")
    release = series.publish(frame, seed=1)
    same_rows(release.table, release.groups, frame, policy)
    assert release.certificate.counts["withheld rows"] == int((release.groups < 0).sum())
    assert_frame_equal(series.releases[0].table, release.table)
    assert_frame_equal(series.releases[0].counterfeits, release.counterfeits)
    assert series.releases[0].groups.tolist() == release.groups.tolist()


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    tables = []
    for form in ("csv", "parquet"):
        policy = policy_for(tmp_path, list(KINDS), output={"format": form})
        release = reveil.anonymize(people(missing=True), policy, seed=5, key=bytes(32), out=tmp_path / form)
        tables.append(release.table)
        text = read_published(tmp_path / form / "public" / f"table.{form}")
        assert text.cast(pl.String).fill_null("\0").height == ROWS
    assert_frame_equal(*tables)
    from_csv, from_parquet = (
        read_published(tmp_path / form / "public" / f"table.{form}") for form in ("csv", "parquet")
    )
    strings = [name for name, kind in from_parquet.schema.items() if kind == pl.String]
    assert_frame_equal(from_csv.select(strings), from_parquet.select(strings))
    assert_frame_equal(from_csv.select(pl.col("cost").cast(pl.Float64)), from_parquet.select("cost"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_public_holds_the_table_and_nothing_else(tmp_path: Path, form: str) -> None:
    policy = policy_for(tmp_path, ["number", "file"], output={"format": form}, series={"name": "Ä series/1"})
    series = reveil.open_series(policy, tmp_path / "home")
    release = series.publish(people(missing=True), seed=11)
    assert release.public is not None
    names = sorted(path.name for path in release.public.rglob("*"))
    assert names == ["counterfeits.csv", "datapackage.json", f"table.{form}"]
    package = json.loads((release.public / "datapackage.json").read_text())
    assert package["name"] == "--series-1"
    assert set(package) == {"profile", "name", "reveil", "resources"}
    for resource in package["resources"]:
        content = (release.public / resource["path"]).read_bytes()
        assert resource["hash"] == "sha256:" + hashlib.sha256(content).hexdigest()
        assert resource["bytes"] == len(content)
    fields = [field["name"] for field in package["resources"][0]["schema"]["fields"]]
    assert fields == ["group", "number", "file", "ill", "cost", "since", "ward"] == release.table.columns


def test_no_identifier_leaves_the_table(tmp_path: Path) -> None:
    """Not in what is public, and in what is private and remembered only as a keyed hash."""
    series = reveil.open_series(policy_for(tmp_path, ["number"]), tmp_path / "home")
    series.publish(people(missing=True), seed=11)
    found = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(found) > 8
    for path in found:
        content = path.read_bytes()
        assert b"-secret" not in content
        assert b"unpublishable" not in content
        if path.suffix == ".parquet":
            text = repr(pl.read_parquet(path).to_dict(as_series=False))
            assert "secret" not in text


def test_parquet_has_no_statistics_and_no_metadata(tmp_path: Path) -> None:
    policy = policy_for(tmp_path, ["number", "flat"], output={"format": "parquet"})
    reveil.anonymize(people(missing=True), policy, seed=2, out=tmp_path / "out")
    file = pq.ParquetFile(tmp_path / "out" / "public" / "table.parquet")
    assert file.metadata.metadata is None
    assert file.schema_arrow.metadata is None
    assert file.schema_arrow.names == ["number", "flat", "ill", "cost", "since", "ward"]
    for group in range(file.metadata.num_row_groups):
        for column in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(column)
            assert chunk.statistics is None
            assert not chunk.has_column_index
            assert not chunk.has_offset_index


def in_order(rows: int = 2000) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A sorted table whose rows can be told by an insensitive number, and a policy that publishes that number."""
    frame = pl.DataFrame(
        {"id": range(rows), "age": np.arange(rows) // 4, "ill": ["flu", "cold"] * (rows // 2), "row": range(rows)}
    )
    columns = {"id": "identifier", "age": "quasi", "ill": "sensitive", "row": "insensitive"}
    return frame, {"columns": columns, "guarantee": {"k": 5}}


def correlation(a: Any, b: Any) -> float:
    return float(np.corrcoef(np.asarray(a, dtype=float), np.asarray(b, dtype=float))[0, 1])


@pytest.mark.parametrize("series", [True, False])
def test_order_says_nothing(tmp_path: Path, series: bool) -> None:
    frame, policy = in_order()
    if series:
        table = reveil.open_series(policy, tmp_path / "home").publish(frame, seed=42).table
    else:
        table = reveil.anonymize(frame, policy, seed=42).table
    rows, place = table["row"].to_numpy(), np.arange(table.height)
    assert sorted(rows) == list(range(2000))
    limit = 4 / np.sqrt(2000)  # four standard deviations of what chance gives
    assert abs(correlation(rows, place)) < limit
    assert abs(correlation(rows[:-1], rows[1:])) < limit  # neighbours in the file are no neighbours in the input
    assert abs(np.mean(np.diff(rows) > 0) - 0.5) < limit
    if series:
        by_group = table.group_by("group").agg(pl.col("row").mean()).sort("group")
        assert abs(correlation(by_group["group"], by_group["row"])) < 4 / np.sqrt(by_group.height)
        inside = table.group_by("group", maintain_order=True).agg((pl.col("row").diff() > 0).drop_nulls())["row"]
        assert abs(inside.explode().cast(pl.Float64).mean() - 0.5) < limit  # type: ignore[operator, arg-type]


def test_a_seed_repeats_and_no_seed_does_not(tmp_path: Path) -> None:
    frame, policy = in_order(200)

    def order(seed: int | None, name: str) -> tuple[bytes, list[int]]:
        release = reveil.open_series(policy, tmp_path / name).publish(frame, seed=seed)
        assert release.public is not None
        return (release.public / "table.csv").read_bytes(), release.table["row"].to_list()

    for home in "abc":  # a seed repeats together with its key
        (tmp_path / home).mkdir()
        (tmp_path / home / "key").write_bytes(bytes(32))
    first, again, other = order(1, "a"), order(1, "b"), order(2, "c")
    assert first == again
    assert first[1] != other[1]
    without = [order(None, "d")[1], order(None, "e")[1]]
    assert without[0] != without[1]
    assert first[1] not in without


def counterfeit_plan(encoded_rows: int) -> Plan:
    """Two groups of three people; group 1 has two counterfeits."""
    return Plan(
        groups=np.array([0, 0, 0, 1, 1, 1, -1][:encoded_rows], dtype=np.int32),
        method="by hand",
        counterfeit_groups=np.array([1, 1], dtype=np.int32),
        counterfeit_codes=np.array([[0], [2]], dtype=np.int32),
        reasons={"by hand": 1},
    )


@pytest.fixture
def by_hand(tmp_path: Path) -> tuple[Path, Policy, pl.DataFrame, Truth]:
    columns = {"age": "quasi", "ill": "sensitive", "ward": "insensitive"}
    policy = load_policy({"columns": columns, "guarantee": {"k": 2}})
    frame = pl.DataFrame(
        {
            "age": [1, 2, 3, 7, 8, 9, 50],
            "ill": ["a", "b", "c", "a", "b", "c", "a"],
            "ward": ["x", "y", "x", "u", "v", "w", "z"],
        }
    )
    encoded, plan = encode(frame, policy), counterfeit_plan(7)
    table = recode(frame, encoded, plan, policy, np.random.default_rng(0), group_column=True).table
    public = tmp_path / "public"
    public.mkdir()
    emit({"table": table}, count_counterfeits(plan), policy, public)
    members = pl.DataFrame({"person": range(6), "group": plan.groups[:6]})
    counts = frame.group_by("ill").len("rows").rename({"ill": "value"}).cast({"rows": pl.Int64})
    return public, policy, table, Truth(7, 1, {"ill": counts}, members)


@pytest.mark.parametrize("stated", ["0,0\n0,0\n1,2", "0,0\n1,2\n7,0", "1,2", "0,0\n1,9", "0,-1\n1,2", "0,\n1,2"])
def test_counterfeit_counts_are_stated_once_for_each_group(
    stated: str, by_hand: tuple[Path, Policy, pl.DataFrame, Truth]
) -> None:
    _, policy, table, truth = by_hand
    counts = pl.read_csv(f"group,count\n{stated}\n".encode(), schema={"group": pl.Int64, "count": pl.Int64})
    found = check_reading(Reading({}, table, counts), policy, History(), truth)
    assert [check.holds for check in found.checks if check.name == "counterfeit counts"] == [False]


def test_counterfeits_are_rows_like_any_other(by_hand: tuple[Path, Policy, pl.DataFrame, Truth]) -> None:
    public, policy, table, truth = by_hand
    assert table.height == 8
    second = table.filter(pl.col("group") == 1)
    assert second["age"].unique().to_list() == ["[7-9]"]
    assert sorted(second["ill"]) == ["a", "a", "b", "c", "c"]
    assert set(second["ward"]) <= {"u", "v", "w"}  # borrowed from rows of the same group
    assert read_published(public / "counterfeits.csv").rows() == [("0", "0"), ("1", "2")]
    found = verify(public, policy, History(), truth)
    assert found.holds
    assert found.counterfeits == 2


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (lambda t: t.with_columns(ill=pl.lit("a")), "values of 'ill'"),
        (lambda t: t.head(7), "rows"),
        (lambda t: t.with_columns(group=1 - pl.col("group")), "members"),
        (lambda t: t.with_columns(age=pl.col("ward")), "one generalisation per group"),
        (lambda t: t.with_columns(id=pl.lit("p")), "published columns"),
        (lambda t: t.drop("ward"), "published columns"),
    ],
    ids=["values", "rows", "members", "cells", "extra column", "lost column"],
)
def test_the_verifier_sees_a_wrong_table(
    by_hand: tuple[Path, Policy, pl.DataFrame, Truth], spoil: Any, check: str
) -> None:
    public, policy, table, truth = by_hand
    wrong = spoil(table)
    counts = pl.DataFrame({"group": [0, 1], "count": [0, 2]})
    emit({"table": wrong}, counts, policy, public)
    found = verify(public, policy, History(), truth)
    assert check in [c.name for c in found.checks if not c.holds]
    with pytest.raises(GuaranteeError, match="R601"):
        found.insist()


def test_the_verifier_sees_strange_and_changed_files(by_hand: tuple[Path, Policy, pl.DataFrame, Truth]) -> None:
    public, policy, _, truth = by_hand
    (public / "notes.txt").write_text("x")
    assert not verify(public, policy, History(), truth).holds
    (public / "notes.txt").unlink()
    package = (public / "datapackage.json").read_text()
    stated = json.loads(package)
    stated["resources"].append({**stated["resources"][-1], "name": "more", "path": "more.csv"})
    (public / "datapackage.json").write_text(json.dumps(stated))
    assert "more.csv" in verify(public, policy, History(), truth).checks[0].finding
    (public / "datapackage.json").write_text(package)
    content = bytearray((public / "table.csv").read_bytes())
    content[-3] ^= 1
    (public / "table.csv").write_bytes(content)
    assert not verify(public, policy, History(), truth).holds


def test_insensitive_cells_do_not_stay_with_values_under_a_promise_about_a_series() -> None:
    """Beside the same value in each release they would tell which row is whose, and which is a counterfeit."""
    columns = {"id": "identifier", "age": "quasi", "ward": "insensitive", "bed": "insensitive", "ill": "sensitive"}
    promise = {"values": {"change": "never"}, "guarantee": {"model": "m-invariance", "m": 3}}
    policy = load_policy({"columns": columns, **promise})
    frame = pl.DataFrame(
        {"id": range(6), "age": range(6), "ward": list("uvwxyz"), "bed": [1, 2, 3, 4, 5, 6], "ill": list("abcabc")}
    )
    encoded, plan = encode(frame, policy), Plan(np.repeat([0, 1], 3).astype(np.int32), "by hand")
    beside: Counter[tuple[str, str]] = Counter()
    for seed in range(300):
        table = recode(frame, encoded, plan, policy, np.random.default_rng(seed), group_column=True).table
        assert [sorted(part["ward"]) for _, part in table.sort("group").group_by("group", maintain_order=True)] == [
            ["u", "v", "w"],
            ["x", "y", "z"],
        ]
        assert set(table.select("ward", "bed").rows()) == set(frame.select("ward", "bed").rows())  # of one person
        beside.update(table.select("ill", "ward").rows())
    assert len(beside) == 18
    assert all(70 < count < 130 for count in beside.values())  # a third of the time each


def test_sets_of_periods_cover_their_days(tmp_path: Path) -> None:
    for level in ("month", "quarter", "year", "decade"):
        columns = {"id": "identifier", "day": {"role": "quasi", "type": "date", "levels": [level]}, "ill": "sensitive"}
        policy = {"columns": columns, "guarantee": {"k": 4}, "method": {"recode": "sets"}}
        days = [datetime.date(1999 + 3 * n, 1 + n % 12, 7) if n % 5 else None for n in range(20)]
        table = pl.DataFrame({"id": range(20), "day": days, "ill": list("abcd") * 5})
        assert reveil.open_series(policy, home=tmp_path / level).publish(table, seed=1).certificate.holds


def test_one_person_left_beside_counterfeits_is_told(tmp_path: Path) -> None:
    policy = {
        "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": 3, "compromised": 1, "refill": "never"},
    }
    table = pl.DataFrame({"id": range(6), "age": range(6), "ill": list("abcabc")})
    series = reveil.open_series(policy, home=tmp_path / "home")
    assert not [limit for limit in series.publish(table, seed=1).certificate.limits if "one person is left" in limit]
    group = series.releases[0].groups
    rest = [row for row in range(6) if group[row] != group[0] or row == 0]
    limits = series.publish(table[rest], seed=2).certificate.limits
    assert [limit.split(" one person")[0] for limit in limits if "one person is left" in limit] == ["In 1 group"]


def test_numbers_of_counterfeits_may_be_fractions_of_the_past() -> None:
    """A counterfeit repeats 1.5 of an earlier release amid whole numbers."""
    policy = load_policy({"columns": {"age": "quasi", "cost": "sensitive"}, "guarantee": {"k": 2}})
    frame = pl.DataFrame({"age": [1, 2], "cost": [2, 3]})
    encoded = encode(frame, policy, {"cost": [1.5, 2.0]})
    plain = Plan(np.zeros(2, dtype=np.int32), "by hand")
    faked = Plan(np.zeros(2, dtype=np.int32), "by hand", np.zeros(1, dtype=np.int32), np.zeros((1, 1), dtype=np.int32))
    rng = np.random.default_rng(0)
    table = recode(frame, encoded, plain, policy, rng, group_column=True).table
    assert table.schema["cost"] == pl.Int64
    assert sorted(table["cost"]) == [2, 3]
    table = recode(frame, encoded, faked, policy, rng, group_column=True).table
    assert sorted(table["cost"]) == [1.5, 2.0, 3.0]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_anatomy_parts_people_from_values(tmp_path: Path, form: str) -> None:
    frame, policy = in_order(400)
    policy = {
        **policy,
        "guarantee": {"model": "l-diversity", "l": 2},
        "method": {"publish": "anatomy", "people": "exact"},
        "output": {"format": form},
    }
    release = reveil.open_series(policy, tmp_path / "home").publish(frame, seed=7)
    assert release.public is not None
    assert release.table.columns == ["group", "age", "row"]
    assert abs(correlation(release.table["row"], np.arange(400))) < 4 / np.sqrt(400)
    tables = [path for path in release.public.iterdir() if path.stem not in ("datapackage")]
    assert len(tables) == 2
    stated: Counter[tuple[int, str]] = Counter()
    for path in tables:
        columns = read_published(path)
        if "ill" in columns.columns:
            assert "row" not in columns.columns
            for group, value, count in columns.select("group", "ill", pl.all().exclude("group", "ill")).iter_rows():
                stated[int(group), value] += int(count)
    assert stated == Counter(zip(release.groups.tolist(), frame["ill"], strict=True))
    by_row = dict(release.table.select("row", "group").iter_rows())
    assert [by_row[row] for row in range(400)] == release.groups.tolist()
