"""Chances of change counted in what people did: against counting by hand, and what the file tells of single people."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reveil
from oracle import changes as oracle
from reveil.background.observed_changes import estimate_changes, seen_in_tables
from reveil.background.transitions import relation_between, stated_weights
from reveil.base.errors import InputError
from support import cli

PARTS = 1_000_000
people = st.dictionaries(
    st.tuples(st.integers(0, 9), st.sampled_from([1, 2, 5, 7])), st.sampled_from("abcd"), min_size=2
)


def frame(seen: list[tuple[int, int, str]]) -> pl.DataFrame:
    return pl.DataFrame(seen, schema={"person": pl.Int64, "release": pl.Int64, "value": pl.String}, orient="row")


@given(people, st.integers(1, 3), st.sampled_from([0, 1, Fraction(1, 2)]), st.booleans())
def test_chances_are_those_counted_by_hand(
    had: dict[tuple[int, int], str], least: int, smoothing: Fraction, spread: bool
) -> None:
    seen = [(person, release, value) for (person, release), value in had.items()]
    made = oracle.steps(seen)
    if not made:
        with pytest.raises(InputError, match="nobody is in two releases"):
            estimate_changes(frame(seen))
        return
    found = estimate_changes(frame(seen), least=least, smoothing=Fraction(smoothing), spread=spread)
    assert found.steps == len(made)
    wanted = oracle.chances(seen, least, Fraction(smoothing), spread)
    told = {(a, b): Fraction(text) for a, b, text in found.table.rows()}
    for a, chances in wanted.items():
        assert sum(told.get((a, b), 0) for b in wanted) in (1, pytest.approx(1, abs=1e-5))
        for b in wanted:
            chance = chances.get(b, Fraction(0))
            if b != a:
                assert abs(told.get((a, b), 0) - chance) <= Fraction(1, PARTS)
                assert ((a, b) in told) == (chance > 0)


@given(st.integers(0, 2**32 - 1), st.data())
def test_which_rare_changes_were_seen_is_not_in_the_file(seed: int, data: st.DataObject) -> None:
    """Two people who go from a to rare values: whichever these are, if all values stay as frequent."""
    rest = [(100 + n, 1, "abcd"[n % 4]) for n in range(40)]
    stays = rest + [(person, 2, value) for person, _, value in rest]
    one, two = data.draw(st.permutations("bcd"))[:2]
    movers = [(1, 1, "a"), (1, 2, one), (2, 1, "a"), (2, 2, two)]
    swapped = [(1, 1, "a"), (1, 2, two), (2, 1, "a"), (2, 2, one)]
    tables = [estimate_changes(frame(stays + these), least=5).table.rows() for these in (movers, swapped)]
    nobody = [(1, 1, "a"), (1, 3, one), (2, 1, "a"), (2, 3, two)]  # the same over a gap: no step at all
    apart = estimate_changes(frame([*stays, *nobody, (300, 3, "a")]), least=5)
    assert tables[0] == tables[1]
    assert apart.gaps == 2
    assert all(Fraction(text) < Fraction(1, 10) for a, b, text in tables[0] if a == "a" and b != "a")


def test_the_file_is_a_transitions_file(tmp_path: Path) -> None:
    seen = [(n, release, "ab"[(n * release) % 2]) for n in range(30) for release in (1, 2)]
    found = estimate_changes(frame(seen), least=2)
    found.write(tmp_path / "t.csv")
    weights = stated_weights("t.csv", tmp_path)
    assert relation_between(["a", "b"], weights).allowed.all()
    assert weights["a"]["a"] + weights["a"]["b"] == 1


POLICY = """
[columns]
who = "identifier"
age = "quasi"
job = "sensitive"
[guarantee]
model = "l-diversity"
l = 2
k = 2
"""


def panel() -> pl.DataFrame:
    """60 people in three years; every third goes from x to y, and on to z."""
    rows = [
        (f"p{n}", 1990 + year, 20 + n % 7, "xyz"[(n + year * (n % 3 == 0)) % 3]) for n in range(60) for year in range(3)
    ]
    return pl.DataFrame(rows, schema=["who", "year", "age", "job"], orient="row")


def test_a_panel_and_its_tables_tell_the_same(tmp_path: Path) -> None:
    parts = [part.drop("year") for part in panel().partition_by("year", maintain_order=True)]
    together = seen_in_tables([panel()], "who", "job", "year")
    apart = seen_in_tables(parts, "who", "job", None)
    assert estimate_changes(together).table.equals(estimate_changes(apart).table)


def test_the_command_counts_tables_and_the_series_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    panel().write_csv("panel.csv")
    code, said, _ = cli("transitions", "estimate", "panel.csv", "--value", "job", "--person", "who", "--period", "year")
    assert code == 0
    assert "120 steps from one release to the next; 2 changes stated" in said
    Path("reveil.toml").write_text(POLICY, encoding="utf-8")
    series = reveil.open_series("reveil.toml", home=tmp_path / "home")
    for part in panel().partition_by("year", maintain_order=True):
        series.publish(part.drop("year"))
    assert cli("transitions", "estimate", "--home", "home", "--out", "own.csv", "-q")[0] == 0
    assert Path("own.csv").read_text() == Path("transitions.csv").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("panel.csv",), "--value, --person"),
        (("panel.csv", "--value", "jbo", "--person", "who"), "no column 'jbo'"),
        (("panel.csv", "--value", "job", "--person", "who"), "several rows in one release"),
        (("panel.csv", "--value", "job", "--person", "who", "--period", "year", "--rare", "no"), "spread or drop"),
        (("panel.csv", "--value", "job", "--person", "who", "--period", "year", "--smoothing", "x"), "smoothing"),
        (("--value", "job", "--home", "h", "--period", "year"), "no table is named"),
    ],
)
def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str) -> None:
    monkeypatch.chdir(tmp_path)
    panel().write_csv("panel.csv")
    if "--home" in words:
        Path("reveil.toml").write_text(POLICY, encoding="utf-8")
    code, _, said = cli("transitions", "estimate", *words)
    assert code == 2
    assert told in said
    assert not Path("transitions.csv").exists()
