"""Some rows of a table: by the command line, in Python, and what is refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from support import cli

POLICY = {
    "columns": {"nr": "identifier", "year": "drop", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 2, "compromised": 0, "refill": "never", "k": 2},
    "method": {"publish": "anatomy"},
}
PANEL = pl.DataFrame(
    {
        "nr": ["a", "b", "c", "d"] * 2,
        "year": [1985] * 4 + [1986] * 4,
        "age": [20, 21, 40, 41, 21, 22, 41, 42],
        "illness": ["x", "y"] * 4,
    }
)


def test_a_panel_is_published_period_by_period(tmp_path: Path) -> None:
    series = reveil.open_series(POLICY, home=tmp_path / "home")
    with pytest.raises(InputError, match="R214"):  # everybody twice is no table of one release
        series.publish(PANEL)
    assert series.plan(PANEL, where={"year": 1985}).rows == 4
    first, second = (series.publish(PANEL, where={"year": year}, seed=1) for year in (1985, 1986))
    apart = reveil.open_series(POLICY, home=tmp_path / "apart").publish(PANEL.filter(year=1985), seed=1)
    assert first.certificate.counts == apart.certificate.counts
    assert second.certificate.counts["came back"] == 4
    assert "<th>came back</th>" in series._repr_html_()
    assert reveil.audit(series).holds


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"illness": "x"}, "is sensitive"),
        ({"jahr": 1985}, "no such column"),
        ({"year": 1999}, r"no row has '1999'; there are '1985' \(4 rows\), '1986' \(4 rows\)"),
    ],
)
def test_rows_that_cannot_be_chosen(where: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        reveil.open_series(POLICY, home=tmp_path / "home").publish(PANEL, where=where)
    assert not (tmp_path / "home").exists()


def test_from_init_to_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that `init` suggests for a panel can be pasted, and works."""
    monkeypatch.chdir(tmp_path)
    people = [f"P{n}" for n in range(40)]
    rows = {"person_id": people * 2, "year": [1985] * 40 + [1986] * 40, "age": [*range(20, 60), *range(21, 61)]}
    pl.DataFrame(rows | {"diagnosis": ["flu", "cold", "asthma", "ulcer"] * 20}).write_csv("panel.csv")
    _, said, _ = cli("init", "panel.csv")
    assert "Then: reveil plan panel.csv --where year=1985" in said
    code, said, _ = cli("plan", "panel.csv", "--where", "year=1985")
    assert code == 0 and "of 40 withheld" in said and "reveil publish panel.csv --where year=1985" in said
    code, said, _ = cli("plan", "panel.csv", "--where", "year=1985", "--advice")
    assert code == 0 and "As a first release" in said
    assert cli("plan", "panel.csv", "--where", "year")[0] == 2


def test_suggestions_in_python(tmp_path: Path) -> None:
    PANEL.write_csv(tmp_path / "panel.csv")
    suggested = reveil.suggest(tmp_path / "panel.csv")
    assert [s.column for s in suggested.columns] == PANEL.columns
    assert "[columns]" in suggested.policy("panel") and "<td>illness</td>" in suggested._repr_html_()


@pytest.mark.parametrize("gate", [False, True])
def test_the_audit_of_a_series_that_says_nothing_of_change_looks_at_what_it_saw(tmp_path: Path, gate: bool) -> None:
    """A policy that `init` writes for a panel whose values change leaves `change` open; its own audit must not stop."""
    rows = [(f"p{n}", year, 20 + n % 9, "abcdefgh"[n % 4 + 4 * year]) for n in range(36) for year in range(2)]
    panel = pl.DataFrame(rows, schema=["who", "year", "age", "ill"], orient="row")
    policy = {
        "columns": {"who": "identifier", "year": "drop", "age": "quasi", "ill": "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 3, "k": 3},
        "audit": {"gate": gate, "compromised": 0},
    }
    series = reveil.open_series(policy, home=tmp_path / "home")
    for year in (0, 1):
        assert series.publish(panel, where={"year": year}).certificate.holds
    assert "values change freely" in series.audit().summary["adversary"]
    with pytest.raises(InputError, match="R722"):
        series.audit(change="never")
