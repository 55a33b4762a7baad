"""Who came back: counted and said; respelled people and tables of strangers are refused."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil import publish
from reveil.base.errors import InputError
from reveil.history.history import SPELLED
from reveil.history.memory import memory_of
from reveil.table.identify import plain_spelling
from support import cli

POLICY: dict[str, Any] = {
    "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "m-invariance", "m": 2},
}
NORMALISED = {**POLICY, "input": {"identifiers": "normalise"}}


def table(names: list[str]) -> pl.DataFrame:
    ages = [20 + number % 40 for number in range(len(names))]
    return pl.DataFrame({"id": names, "age": ages, "ill": [f"illness {number % 5}" for number in range(len(names))]})


NUMBERS = [f"{number:05d}" for number in range(100, 220)]  # 00100, ...
WORDS = [f"Ärztin-é{number}" for number in range(120)]
DECOMPOSED = [unicodedata.normalize("NFD", name) for name in WORDS]
RESPELLED: dict[str, tuple[list[str], Callable[[str], str]]] = {
    "leading zeros lost": (NUMBERS, lambda name: name.lstrip("0")),
    "leading zeros added": (NUMBERS, lambda name: "000" + name),
    "blank after": (NUMBERS, lambda name: name + " "),
    "blank before": (WORDS, lambda name: " " + name),
    "no-break space": (WORDS, lambda name: name + "\u00a0"),
    "tab": (NUMBERS, lambda name: name + "\t"),
    "capitals": (WORDS, str.upper),
    "small letters": (WORDS, str.lower),
    "a point and a zero": (NUMBERS, lambda name: f"{int(name)}.0"),
    "plus": (NUMBERS, lambda name: f"+{int(name)}"),
    "exponent": (NUMBERS, lambda name: f"{int(name)}e0"),
    "large exponent": (NUMBERS, lambda name: f"{int(name) / 100:.2f}E+2"),
    "decomposed letters": (WORDS, lambda name: unicodedata.normalize("NFD", name)),
    "composed letters": (
        [unicodedata.normalize("NFD", name) for name in WORDS],
        lambda n: unicodedata.normalize("NFC", n),
    ),
    "full-width digits": (NUMBERS, lambda name: "".join(chr(ord(digit) + 0xFEE0) for digit in name)),
    "invisible mark": (WORDS, lambda name: "\ufeff" + name),
    "apostrophe of a spreadsheet": (NUMBERS, lambda name: "'" + name),
}


@pytest.mark.parametrize("way", RESPELLED)
def test_respelled_people_are_not_newcomers(way: str, tmp_path: Path) -> None:
    names, respell = RESPELLED[way]
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    series.publish(table(names))
    for new_people in (False, True):  # it is not a question of new people
        with pytest.raises(InputError) as refusal:
            series.publish(table([respell(name) for name in names]), new_people=new_people)
        fault = refusal.value.faults[0]
        assert (fault.code, fault.rows, fault.places) == ("R317", 120, (1, 2, 3, 4))
        assert "normalise" in fault.remedy
    assert len(series.releases) == 1


@pytest.mark.parametrize("way", RESPELLED)
def test_normalised_identifiers_know_everybody_again(way: str, tmp_path: Path) -> None:
    names, respell = RESPELLED[way]
    series = reveil.open_series(NORMALISED, home=tmp_path / "home")
    series.publish(table(names))
    counts = series.publish(table([respell(name) for name in names])).certificate.counts
    assert (counts["came back"], counts["returned"], counts["new people"]) == (120, 0, 0)


def test_one_fraction_among_whole_numbers(tmp_path: Path) -> None:
    """A source of numbers with one 4.5: all others are written as 7.0."""
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    series.publish(table([str(number) for number in range(120)]))
    later = table([str(number) for number in range(120)]).with_columns(
        id=pl.Series([4.5, *map(float, range(1, 120))]).cast(pl.String)
    )
    with pytest.raises(InputError, match="R317"):
        series.publish(later)


def test_a_few_respelled_people_are_found(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    series.publish(table(NUMBERS))
    series.publish(table(NUMBERS[10:]))  # the first ten are away for a release
    names = [*NUMBERS[12:], "new1", NUMBERS[3].lstrip("0"), "new2", NUMBERS[11] + " "]
    with pytest.raises(InputError) as refusal:
        series.publish(table(names))
    (fault,) = refusal.value.faults
    assert (fault.code, fault.rows, fault.places) == ("R317", 2, (110, 112))


def test_people_who_differ_in_spelling_only_may_be_two_as_long_as_both_are_there(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    series.publish(table([*NUMBERS, "100"]))
    again = series.publish(table([*NUMBERS, "100"]), accept=["same-table"])
    assert again.certificate.counts["came back"] == 121
    assert series.publish(table([*NUMBERS, "100", "0100", "x"])).certificate.counts["new people"] == 2


def test_normalised_identifiers_may_not_collide(tmp_path: Path) -> None:
    series = reveil.open_series(NORMALISED, home=tmp_path / "home")
    for collided in (table([*NUMBERS, "100", "x"]), table(["x", "X", *NUMBERS])):
        with pytest.raises(InputError, match="R281") as refusal:
            series.publish(collided)
        assert refusal.value.faults[0].rows == 2
    series.publish(table(NUMBERS))
    with pytest.raises(InputError, match="R281"):
        series.publish(table([*NUMBERS, "100"]))


def test_how_people_are_known_again_is_fixed_with_the_series(tmp_path: Path) -> None:
    for first, second in ((POLICY, NORMALISED), (NORMALISED, POLICY)):
        home = tmp_path / str(first is POLICY)
        reveil.open_series(first, home=home).publish(table(NUMBERS))
        with pytest.raises(InputError, match=r"input\.identifiers"):
            reveil.open_series(second, home=home).publish(table(NUMBERS))


def test_what_the_plainest_spelling_leaves_apart() -> None:
    names = ["1-2", "12", "1.25", "1,25", "-7", "7", "a7", "a07", "7a", "1e5x", "0x10", "½"]
    assert plain_spelling(pl.Series(names)).n_unique() == len(names)
    assert plain_spelling(pl.Series(["0", "000", "-0", "0.0", "+0", "0e5"])).unique().to_list() == ["0"]
    assert plain_spelling(pl.Series(["100.10", "100.1", "1.001e2"])).unique().to_list() == ["100.1"]
    assert plain_spelling(pl.Series(["1" * 400, None])).to_list() == ["1" * 400, None]
    assert plain_spelling(pl.Series(["STRASSE", "straße"])).n_unique() == 1


def test_who_came_back_is_counted_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(
        '[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n[values]\nchange = "never"\n'
        '[guarantee]\nmodel = "m-invariance"\nm = 2\n'
    )
    for number, names in enumerate((NUMBERS[:100], NUMBERS[20:110], [*NUMBERS[:5], *NUMBERS[25:120]]), 1):
        table(names).with_columns(
            age=pl.Series([int(n) % 50 for n in names]), ill="illness " + pl.Series(names).str.slice(-1)
        ).write_csv(f"{number}.csv")
    assert "All 100 people are new" in cli("publish", "1.csv")[1]
    assert "80 people of release 1 came back, 0 returned from earlier ones, 10 are new." in cli("plan", "2.csv")[1]
    assert "80 people of release 1 came back, 0 returned from earlier ones, 10 are new." in cli("publish", "2.csv")[1]
    made = json.loads(cli("publish", "3.csv", "--json")[1])
    told = "85 people of release 2 came back, 5 returned from earlier ones, 10 are new."
    assert (
        made["certificate"]["counts"] | {"came back": 85, "returned": 5, "new people": 10}
        == made["certificate"]["counts"]
    )
    assert told in cli("show")[1]
    listed = json.loads(cli("history", "--json")[1])["releases"]
    assert [(r["came back"], r["returned"], r["new people"]) for r in listed] == [(0, 0, 100), (80, 0, 10), (85, 5, 10)]
    assert "came back" in cli("history")[1]
    private = Path(".reveil/releases/0003/private")
    assert told in (private / "report.html").read_text(encoding="utf-8")
    assert told not in (private / "report-external.html").read_text(encoding="utf-8")


def test_a_table_of_strangers_needs_a_word(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    series.publish(table(NUMBERS))
    half = [*NUMBERS[:60], *(f"new{n}" for n in range(60))]
    fewer = [*NUMBERS[:59], *(f"new{n}" for n in range(61))]
    with pytest.raises(InputError) as refusal:
        series.plan(table(fewer))
    (fault,) = refusal.value.faults
    assert fault.code == "R318"
    assert "59 of 120" in fault.message and "--yes-new-people" in fault.remedy
    series.publish(table(half))  # one half is enough at release 2
    quarter = [*half[:30], *(f"later{n}" for n in range(90))]
    fewer = [*half[:29], *(f"later{n}" for n in range(91))]
    with pytest.raises(InputError, match="R318"):
        series.publish(table(fewer))
    series.publish(table(quarter))  # half of the lowest so far
    others = [f"other{n}" for n in range(120)]
    with pytest.raises(InputError, match="R318"):
        series.publish(table(others))
    counts = series.publish(table(others), new_people=True).certificate.counts
    assert (counts["came back"], counts["returned"], counts["new people"]) == (0, 0, 120)


def test_homes_without_the_second_hash_go_on_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def before(*given: Any) -> dict[str, pl.DataFrame]:
        kept = memory_of(*given)
        return {**kept, "standing": kept["standing"].drop(SPELLED)}

    monkeypatch.setattr(publish, "memory_of", before)
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    series.publish(table(NUMBERS))
    monkeypatch.undo()
    release = series.publish(table(NUMBERS[20:]))
    assert any("20 people of earlier releases were recorded" in limit for limit in release.certificate.limits)
    # Who was there meanwhile is known by both hashes; who was not can still be respelled unnoticed.
    with pytest.raises(InputError) as refusal:
        series.publish(table([*NUMBERS[40:], *(name.lstrip("0") for name in NUMBERS[:40])]))
    assert refusal.value.faults[0].rows == 20
