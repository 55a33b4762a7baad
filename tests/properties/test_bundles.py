"""People and households with several rows, enumerated from the published bytes."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import bundles as oracle
from reveil.audit.alone import first_verdict
from reveil.base.errors import GuaranteeError, InfeasibleError, InputError
from reveil.history.history import History
from reveil.measure.compare import compare
from reveil.plan.bundles import levelled
from reveil.verify.judges.bundles import BundlesJudge, CoveringJudge, LinkedJudge, covering
from reveil.verify.judges.contract import View
from support import cli, put_right

CASES = 250 if os.environ.get("REVEIL_EXPLORE") else 40
PROMISES: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 3},
    {"k": 2, "l": 2},
    {"k": 2, "l": 3},
    {"model": "alpha-k", "k": 2, "alpha": "1/2"},
    {"model": "alpha-k", "k": 2, "alpha": "2/3", "l": 2},
]
COLUMNS = {"who": "identifier", "home": "drop", "age": "quasi", "sex": "quasi", "ill": "sensitive"}


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    """Up to seven people with one to three rows; missing values and values that repeat; homes of several people."""
    people = draw(st.lists(st.integers(1, 3), min_size=2, max_size=7))
    rows = [
        {
            "who": f"p{person}",
            "home": f"h{person // 2}",
            "age": draw(st.sampled_from([None, 20, 21, 35, 60])),
            "sex": draw(st.sampled_from([None, "f", "m"])),
            "ill": draw(st.sampled_from([None, "a", "b", "c", "d"])),
        }
        for person, number in enumerate(people)
        for _ in range(number)
    ]
    kinds = {"who": pl.String, "home": pl.String, "age": pl.Int64, "sex": pl.String, "ill": pl.String}
    return pl.DataFrame(draw(st.permutations(rows)), schema=kinds)


def policy_of(promise: dict[str, Any], most: int | None, homes: bool) -> dict[str, Any]:
    people = {"rows": "many"} | ({} if most is None else {"most": most})
    return {
        "columns": {**COLUMNS, "home": "household" if homes else "drop"},
        "guarantee": promise,
        "people": people,
    }


def published(folder: Path) -> tuple[list[str], list[list[str]]]:
    header, *rows = csv.reader((folder / "public" / "table.csv").open(encoding="utf-8", newline=""))
    return header, rows


@settings(max_examples=CASES, deadline=None)
@given(tables(), st.sampled_from(PROMISES), st.sampled_from([None, 1, 2]), st.booleans(), st.integers(0, 9))
def test_whoever_knows_every_row_learns_no_more_than_is_promised(
    table: pl.DataFrame, promise: dict[str, Any], most: int | None, homes: bool, seed: int
) -> None:
    owner, column = ("home", "household") if homes else ("who", "person")
    known = defaultdict(list)
    for row in table.iter_rows(named=True):
        known[row[owner]].append(tuple("" if row[name] is None else str(row[name]) for name in ("age", "sex")))
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        try:
            release = reveil.anonymize(table, policy_of(promise, most, homes), out=out, seed=seed)
        except InfeasibleError:
            assert "l" in promise or "alpha" in promise or len(known) < promise["k"]
            return
        header, rows = published(out)
        assert reveil.check(out / "public" / "table.csv", policy_of(promise, most, homes)).holds
    assert header[0] == column
    found = oracle.bundles(header, rows, column, ("age", "sex"), "ill")
    assert len(found) == len(known)  # everybody is shown, and k alone is always possible
    assert most is None or max(map(len, found.values())) <= most
    groups = oracle.classes(found)
    assert min(map(len, groups)) >= promise["k"]
    for group in groups:
        assert "alpha" not in promise or oracle.highest_link(group) <= oracle.Fraction(promise["alpha"])
        assert "l" not in promise or not oracle.certain_after(group, promise["l"] - 2)
    shown = defaultdict(int)
    for row, group in zip(table[owner], release.groups.tolist(), strict=True):
        shown[row] += group >= 0
    for person, size in shown.items():
        assert oracle.candidates(found, known[person], size) >= promise["k"]


@settings(max_examples=CASES, deadline=None)
@given(
    st.lists(
        st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3), min_size=1, max_size=5),
        min_size=1,
        max_size=3,
    )
)
def test_judges_agree_with_enumeration(classes: list[list[list[str]]]) -> None:
    rows = [(c, (c, b), value) for c, group in enumerate(classes) for b, bundle in enumerate(group) for value in bundle]
    numbers = {key: n for n, key in enumerate(dict.fromkeys(key for _, key, _ in rows))}
    view = View(
        np.array([c for c, _, _ in rows]),
        pl.DataFrame({"age": [str(c) for c, _, _ in rows]}),
        {"ill": pl.Series([value for _, _, value in rows])},
        np.zeros(len(classes), dtype=np.int64),
        bundles=np.array([numbers[key] for _, key, _ in rows]),
    )
    for k in (2, 3):
        (verdict,) = BundlesJudge(k, "people").judge(view, History())
        assert verdict.holds == all(len(group) >= k for group in classes)
        assert verdict.worst == min(map(len, classes))
    for alpha in ("1/3", "1/2", "2/3"):
        (verdict,) = LinkedJudge(oracle.Fraction(alpha), "ill", "people").judge(view, History())
        assert verdict.worst == max(map(oracle.highest_link, classes))
        assert verdict.holds == (verdict.worst <= oracle.Fraction(alpha))
    for l in (2, 3, 4):  # noqa: E741
        (verdict,) = CoveringJudge(l, "ill", "people").judge(view, History())
        assert verdict.holds == all(not oracle.certain_after(group, l - 2) for group in classes)


def test_with_one_row_each_it_is_the_usual_promise() -> None:
    people = [frozenset({value}) for value in (1, 1, 2, 3)]
    assert [covering(people, l) for l in (2, 3, 4, 5)] == [2, 3, 3, 3]  # three different values  # noqa: E741


@settings(max_examples=CASES, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.none() | st.integers(1, 4), st.integers(1, 5))
def test_numbers_of_rows_hide_among_k_or_there_are_too_few(sizes: list[int], most: int | None, least: int) -> None:
    shown = levelled(np.array(sizes), most, least, np.random.default_rng(0))
    assert (shown >= 1).all() and (shown <= np.array(sizes)).all() and (most is None or shown.max() <= most)
    counts = [int((shown == number).sum()) for number in np.unique(shown)]
    assert min(counts) >= min(least, len(sizes))


PANEL = pl.DataFrame(
    {
        "who": ["a", "a", "b", "b", "c", "c", "d", "d"],
        "home": ["1", "1", "1", "1", "2", "2", "2", "2"],
        "age": [20, 21, 20, 21, 50, 51, 50, 51],
        "sex": ["f"] * 8,
        "ill": ["flu", "cold", "asthma", "cold", "flu", "asthma", "cold", "cold"],
    }
)


def test_rows_of_a_person_are_cut_side_by_side(tmp_path: Path) -> None:
    reveil.anonymize(PANEL, policy_of({"k": 2}, None, homes=False), out=tmp_path / "out")
    _, rows = published(tmp_path / "out")
    assert sorted({row[1] for row in rows}) == ["20", "21", "50", "51"]  # first rows with first rows
    certificate = reveil.anonymize(PANEL, policy_of({"k": 2}, None, homes=False)).certificate
    assert certificate.counts["input people"] == certificate.counts["published people"] == 4
    assert certificate.counts["published rows"] == 8
    assert "all rows of one of the people finds 2 people" in certificate.verdict
    homes = reveil.anonymize(PANEL, policy_of({"k": 2}, None, homes=True))
    assert homes.certificate.counts["published households"] == 2
    assert homes.table["age"].unique().sort().to_list() == ["[20-50]", "[21-51]"]


@pytest.mark.parametrize("change", ["person", "value", "cell", "row", "nobody"])
def test_changed_bytes_are_found(tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the publisher meant to write is compared with what stands in the file."""
    from reveil import publish

    emit = publish.emit

    def changed(tables: Any, counterfeits: Any, policy: Any, folder: Path) -> None:
        emit(tables, counterfeits, policy, folder)
        lines = (folder / "table.csv").read_text().splitlines()
        cells = [line.split(",") for line in lines]
        if change == "person":  # two rows of different people change places
            other = next(n for n, row in enumerate(cells[2:], 2) if row[0] != cells[1][0] and row[3] != cells[1][3])
            cells[1][0], cells[other][0] = cells[other][0], cells[1][0]
        elif change == "value":
            cells[1][3] = "cold" if cells[1][3] != "cold" else "flu"
        elif change == "cell":
            cells = [[row[0], {"20": "22"}.get(row[1], row[1]), *row[2:]] for row in cells]
        elif change == "nobody":
            cells[1][0] = ""
        else:
            cells.pop()
        (folder / "table.csv").write_text("\n".join(map(",".join, cells)) + "\n")
        put_right(folder)

    monkeypatch.setattr(publish, "emit", changed)
    with pytest.raises(GuaranteeError, match="R60"):
        reveil.anonymize(PANEL, policy_of({"k": 2}, None, homes=False), seed=1)


@pytest.mark.parametrize("homes", [False, True])
@pytest.mark.parametrize("rows", [1, 8])
def test_rows_of_nobody_are_a_finding(tmp_path: Path, homes: bool, rows: int) -> None:
    policy, table = policy_of({"k": 2}, None, homes), tmp_path / "out" / "public" / "table.csv"
    reveil.anonymize(PANEL, policy, out=tmp_path / "out")
    assert reveil.check(table, policy).holds
    header, *lines = table.read_text().splitlines()
    lines = [",".join(["", *line.split(",")[1:]]) if n < rows else line for n, line in enumerate(lines)]
    table.write_text("\n".join([header, *lines]) + "\n")
    found = reveil.check(table, policy)
    assert not found.holds
    wrong = [(check["name"], check["finding"]) for check in found.checks if not check["holds"]]
    name = "household" if homes else "person"
    assert wrong == [(f"rows by {name}", f"{rows} row{'s' * (rows > 1)} of nobody")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"guarantee": {"model": "t-closeness", "t": 0.2, "k": 2}}, "t-closeness has no meaning"),
        ({"guarantee": {"k": 2, "l": 2, "diversity": "entropy"}}, "has no meaning for several rows"),
        (
            {"guarantee": {"model": "compromise-safety", "m": 4}, "values": {"change": "never"}},
            "people apart from bundles",
        ),
        ({"guarantee": {"k": 2}, "method": {"name": "full-domain"}}, 'use "mondrian"'),
        ({"guarantee": {"k": 2, "l": 2}, "method": {"infeasible": "withhold"}}, "leaves out rows by their value"),
        ({"guarantee": {"k": 2, "l": 2}, "method": {"publish": "anatomy"}}, 'use "generalized"'),
        ({"columns": {**COLUMNS, "who": "drop"}}, "needs a column with the role identifier"),
        ({"columns": {**COLUMNS, "home": "household", "who": "household"}}, "several columns with the role household"),
        ({"people": {"most": 2}}, "people.most does nothing"),
    ],
)
def test_what_has_no_meaning_is_refused(changes: dict[str, Any], words: str) -> None:
    policy = {"columns": COLUMNS, "guarantee": {"k": 2}, "people": {"rows": "many"}} | changes
    with pytest.raises(InputError, match="R201") as refused:
        reveil.load_policy(policy)
    assert words in str(refused.value)


def test_the_command_counts_people(tmp_path: Path) -> None:
    PANEL.write_csv(tmp_path / "panel.csv")
    (tmp_path / "p.toml").write_text(
        '[columns]\nwho = "identifier"\nhome = "drop"\nage = "quasi"\nsex = "quasi"\nill = "sensitive"\n'
        '[guarantee]\nk = 2\n[people]\nrows = "many"\n'
    )
    asked = ("anonymize", str(tmp_path / "panel.csv"), "--policy", str(tmp_path / "p.toml"))
    code, out, err = cli(*asked, "--out", str(tmp_path / "out"))
    assert code == 0, err
    assert "8 rows of 4 people in 2 groups (2 to 2 people each)" in out
    code, out, err = cli("verify", str(tmp_path / "out"), "--policy", str(tmp_path / "p.toml"))
    assert code == 0 and "every class has the rows of at least 2 people" in out, err


def test_blocks_and_audit_refuse_by_name(tmp_path: Path) -> None:
    policy = policy_of({"k": 2}, None, homes=False)
    PANEL.write_csv(tmp_path / "panel.csv")
    with pytest.raises(InputError, match="R870"):
        reveil.anonymize(tmp_path / "panel.csv", policy, engine="blocks", out=tmp_path / "out")
    with pytest.raises(InputError, match="R918"):
        reveil.open_series(policy, home=tmp_path / "home").publish(PANEL)
    assert [trial.scheme for trial in compare(PANEL, policy).trials if trial.refused is None] == ["mondrian"]
    assert not (tmp_path / "home").exists()
    with pytest.raises(InputError, match="R910"):
        reveil.audit([PANEL], PANEL, policy=policy)
    release = reveil.anonymize(PANEL, policy, seed=1, out=tmp_path / "visits")
    with pytest.raises(InputError, match="R910"):  # the number of a person is nothing that anybody knows
        reveil.audit([release.path], PANEL)
    with pytest.raises(InputError, match="R910"):
        first_verdict([release.path])
    with pytest.raises(InputError, match="R213"):
        reveil.anonymize(PANEL.with_columns(home=pl.lit(None, pl.String)), policy_of({"k": 2}, None, homes=True))
    with pytest.raises(InputError, match="R604"):  # nobody says which rows belong together
        reveil.check(PANEL.drop("who", "home"), policy)


def test_covering_ends_where_many_values_of_many_people_are_looked_at() -> None:
    """The most frequent values alone say that two, or three, are not enough: no search is made."""
    people = [frozenset((7 * person + 13 * place) % 400 for place in range(60)) for person in range(200)]
    assert covering(people, 3) == 3
    few = [frozenset({person, 1000 + person % 3}) for person in range(200)]
    assert [covering(few, l) for l in (3, 4, 5)] == [3, 3, 3]  # noqa: E741


def test_rows_of_nobody_are_a_finding_and_no_crash(tmp_path: Path) -> None:
    policy = {"columns": {"who": "identifier", "age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2}}
    policy |= {"people": {"rows": "many"}}
    rows = pl.DataFrame({"who": list("aabbccdd"), "age": [20, 21] * 4, "ill": list("xyxyxyxy")})
    reveil.anonymize(rows, policy, out=tmp_path / "out")
    table = tmp_path / "out/public/table.csv"
    lines = table.read_text().splitlines()
    place = lines[0].split(",").index("person")
    cells = lines[1].split(",")
    cells[place] = ""
    table.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    put_right(tmp_path / "out/public")
    found = reveil.check(tmp_path / "out/public", policy)
    assert not found.holds
