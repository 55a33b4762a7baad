"""What a new user stumbled over on a first tour, each mended."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from reveil.measure.ask import ask
from reveil.published.notation import parse_cell
from support import cli


def test_a_year_is_the_days_of_it_where_cells_are_dates() -> None:
    cells = ["2023", "2023-04", "2023-Q2", "2024-01", "*"]
    people = pl.DataFrame({"group": [0] * 5, "admitted": cells})
    values = {"ill": pl.DataFrame({"group": [0], "ill": ["flu"], "count": [5]})}
    answer = ask((people, values), {"admitted": "2023"})
    assert answer.between == (3, 4)
    assert ask((people, values), {"admitted": "2024"}).between == (1, 2)


def test_cells_that_say_nothing_are_said() -> None:
    people = pl.DataFrame({"group": [0] * 5, "born": ["1940s", "*", "*", "*", "*"]})
    values = {"ill": pl.DataFrame({"group": [0], "ill": ["flu"], "count": [5]})}
    assert "nothing but *" in ask((people, values), {"born": "1960s"}).notes[0]
    assert "4 of 5 cells" in ask((people, values), {"born": "1940s"}).notes[0]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert cli("simulate", "s", "--rows", "120", "--releases", "2", "-q")[0] == 0
    return tmp_path


def test_shares_are_numbers(place: Path) -> None:
    for wrong in ("30%", "0,3", "much", "2"):
        code, _, said = cli("plan", "s/release-01.csv", "-p", "s/reveil.toml", "--ahead", "2", "--leave", wrong)
        assert code == 2
        assert "R222" in said


def test_init_notices_sums_and_suggests_what_can_be_pasted(place: Path) -> None:
    rows = [f"P{i};{20 + i % 40};{i * 100}" for i in range(30)]
    total = sum(i * 100 for i in range(30))
    Path("Quartal 1.csv").write_text("\n".join(["Patient;Alter;Kosten", *rows, f"Summe;;{total}"]) + "\n")
    assert cli("init", "Quartal 1.csv", "-p", "mein plan.toml")[0] == 2
    assert not Path("mein plan.toml").exists()
    code, said, _ = cli("init", "Quartal 1.csv", "-p", "mein plan.toml", "--accept", "total-rows")
    assert code == 0
    assert "'Quartal 1.csv' -p 'mein plan.toml'" in said


def test_who_has_a_release_is_in_the_history(place: Path) -> None:
    where = ("-p", "s/reveil.toml")
    assert cli("publish", "s/release-01.csv", *where, "-q")[0] == 0
    assert cli("hand-over", "--to", "out", "--recipient", "Landesamt", *where)[0] == 0
    assert "recipient 'Landesamt'" in cli("history", *where)[1]
    said = cli("discard", "1", *where)[2]
    assert "R532" in said
    assert "yes-no-copy-left" not in said


def test_other_files_are_no_broken_promise(place: Path) -> None:
    where = ("-p", "s/reveil.toml")
    assert cli("publish", "s/release-01.csv", *where, "-q")[0] == 0
    (place / "s/.reveil/releases/0001/public/values.csv").write_text("group,diagnosis,count\n0,flu,1\n")
    code, said, _ = cli("verify", *where)
    assert code != 0
    assert "not as they were recorded" in said
    assert "does not hold" not in said


def test_a_series_with_whole_years_is_audited_with_its_own_people(place: Path) -> None:
    """Of a date written as text, 2023 is the year; else people with such a cell fit nothing, and no world is left."""
    assert parse_cell("2023").covers("2023-03-02")
    assert not parse_cell("2023").covers("2024-03-02")
    assert cli("publish", "s/release-01.csv", "-p", "s/reveil.toml", "-q")[0] == 0
    public = "s/.reveil/releases/0001/public"
    code, _, said = cli("audit", public, "--population", "s/release-01.csv", "-p", "s/reveil.toml", "--limit", "2")
    assert code in (0, 1, 3)
    assert "R722" not in said
