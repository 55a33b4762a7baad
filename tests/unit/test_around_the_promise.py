"""Odds and ends that once lied, locked or crashed: each as it was met."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.dp.count import count
from reveil.jobs.specs import PublishSpec
from reveil.perturb.noise import add_noise
from reveil.published.reader import read_tables
from reveil.report.explain import explain
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from support import cli

COLUMNS = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
TOML = '[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n'
LASTING = TOML + '[values]\nchange = "never"\n[guarantee]\nmodel = "compromise-safety"\nm = 4\ncompromised = 1\n'
PEOPLE = pl.DataFrame({"id": range(24), "age": range(20, 44), "ill": [f"ill {n % 6}" for n in range(24)]})


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("preserve", ["mean", "variance"])
def test_noise_on_large_numbers_beside_small_ones(correlated: bool, preserve: str) -> None:
    rng = np.random.default_rng(4)
    small = rng.normal(size=200)
    people = pl.DataFrame({"id": range(200), "small": small, "large": 1e10 * (1 + small + rng.normal(size=200))})
    step = {"method": "noise", "columns": ["small", "large"], "amount": 0.5}
    step |= {"correlated": correlated, "preserve": preserve}
    policy = {"columns": {"id": "identifier", "small": "quasi", "large": "quasi"}, "perturb": [step]}
    assert all(check.holds for check in reveil.perturb(people, policy, seed=1).checks)


def test_independent_noise_that_keeps_variances_does_not_keep_covariances() -> None:
    """As docs/perturbation.md says: they are divided by 1 + amount squared."""
    rng = np.random.default_rng(5)
    first = rng.normal(size=500)
    values = np.column_stack([first, first + rng.normal(size=500)])
    before = np.cov(values.T, bias=True)
    made = add_noise(values, 1.0, correlated=False, keep_variance=True, rng=rng)
    after = np.cov(made.T, bias=True)
    assert np.allclose(np.diag(after), np.diag(before))
    assert np.isclose(after[0, 1], before[0, 1] / 2)


def test_no_advice_overspends_a_budget() -> None:
    said = str(explain("R526"))
    assert "Do not move the folder away" in said and "twice" in said


def test_raw_links_are_no_broken_guarantee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zips = [10172 + 1000 * n for n in range(4)]
    pl.DataFrame({"zip": zips, "ill": list("abcd")}).write_csv("raw.csv")
    pl.DataFrame({"name": list("wxyz"), "zip": zips}).write_csv("people.csv")
    code, out, err = cli("link", "raw.csv", "people.csv")
    assert code == 1 and "People can be found" in err and "guarantee" not in err.splitlines()[0]
    assert "10172" in out and "10,172" not in out


def test_codes_in_statistics_have_no_thousands() -> None:
    from reveil.cli import terminal

    assert "10172" in terminal.statistic("rows", {10172: 5}) and "10,172" not in terminal.statistic("rows", {10172: 5})


def test_a_description_shows_no_password() -> None:
    spec = PublishSpec("postgresql://ann:S3cret@host/db?password=S3cret", "reveil.toml")
    assert "S3cret" not in repr(spec) and "ann:***@host" in repr(spec)
    assert spec.to_dict()["table"].count("S3cret") == 2  # over a wire it is needed


def test_plain_files_have_limits_too(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "12345,67890\n" * 100_000)
    for name, limit in (("max_megabytes", 1), ("max_columns", 1), ("max_cell", 4)):
        with pytest.raises(InputError, match=rf"R114.*{name}"):
            read_table(path, ReadOptions(**{name: limit}))  # type: ignore[arg-type]
    base = sqlite3.connect(tmp_path / "people.db")
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
    base.execute(f"CREATE TABLE people AS {many} SELECT i AS a, i AS b, i AS c FROM n")
    base.commit()
    base.close()
    asked = ReadOptions(query="SELECT * FROM people", max_megabytes=1)
    with pytest.raises(InputError, match="R114"):
        read_table(f"sqlite:///{tmp_path / 'people.db'}", asked)


def test_a_first_policy_from_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = sqlite3.connect("people.db")
    base.execute("CREATE TABLE people (patient_id TEXT, age INTEGER, diagnosis TEXT)")
    base.executemany(
        "INSERT INTO people VALUES (?, ?, ?)", [(f"p{n}", 20 + n % 40, "abcdef"[n % 6]) for n in range(60)]
    )
    base.commit()
    base.close()
    query = "SELECT patient_id, age, diagnosis FROM people WHERE age > 0"
    code, _, err = cli("init", "sqlite:///people.db", "--query", query)
    assert (code, err) == (0, "")
    assert reveil.load_policy("reveil.toml").input.query == query
    assert cli("plan", "sqlite:///people.db")[0] == 0
    assert "R111" in cli("init", "sqlite:///people.db", "-p", "new.toml")[2]
    PEOPLE.write_csv("people.csv")
    assert "R106" in cli("init", "people.csv", "-p", "new.toml", "--query", query)[2]  # it would do nothing


def test_counts_say_whose_they_are(tmp_path: Path) -> None:
    dp = {"epsilon": 3, "bins": {"ill": ["=a", "-b"]}, "counts": [{"name": "ills", "by": ["ill"], "spend": 1}]}
    policy = {"columns": {**COLUMNS, "age": "drop"}, "dp": dp}
    people = PEOPLE.with_columns(ill=pl.Series(["=a", "-b", "@c"] * 8))
    packages = []
    for _ in range(3):
        made = count(people, policy, home=tmp_path / "home")
        packages.append(json.loads((made.path / "public" / "datapackage.json").read_bytes())["reveil"])
        assert read_tables(made.path / "public")["ills"]["ill"].to_list()[:2] == ["=a", "-b"]  # escaped, read back
        assert "'=a" in (made.path / "public" / "ills.csv").read_text()
    assert [package["release"] for package in packages] == [1, 2, 3]
    assert len({package["series"] for package in packages}) == 1
    assert [package["predecessor"] for package in packages] == [None, packages[0]["id"], packages[1]["id"]]


@pytest.mark.parametrize("step", [{"method": "pram", "keep": 0.5}, {"method": "swap", "share": 1}])
def test_formulas_are_perturbed_and_read_back(step: dict[str, Any], tmp_path: Path) -> None:
    people = PEOPLE.with_columns(ill=pl.Series(["=a", "-b", "@c", "'+d"] * 6))
    policy = {"columns": COLUMNS, "perturb": [{**step, "columns": ["ill"]}]}
    made = reveil.perturb(people, policy, seed=1, out=tmp_path / "out")
    assert all(check.holds for check in made.checks)
    table = read_tables(tmp_path / "out" / "public")["table"]
    assert set(table["ill"]) <= {"=a", "-b", "@c", "'+d"}
    written = (tmp_path / "out" / "public" / "table.csv").read_text()
    assert not any(line.partition(",")[2].startswith(("=", "@", "-b")) for line in written.splitlines())


def test_private_files_of_a_release_alone_are_private(tmp_path: Path) -> None:
    policy = {"columns": COLUMNS, "guarantee": {"k": 2}}
    reveil.anonymize(PEOPLE, policy, seed=1, out=tmp_path / "out")
    private = tmp_path / "out" / "private"
    assert private.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in private.iterdir()} == {0o600}


def test_a_folder_alone_cannot_show_a_promise_about_a_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reveil.toml").write_text(LASTING)
    series = reveil.open_series("reveil.toml")
    folders = [str(series.publish(PEOPLE.with_columns(age=pl.col("age") + n)).path) for n in range(2)]
    for words in (folders[:1], folders):
        code, out, err = cli("verify", *words)
        assert code == 3 and "R540" in err and "cannot be shown" in out
        assert "does not hold" not in (out + err).casefold()
        code, out, err = cli("verify", *words, "--json")
        assert code == 3 and json.loads(out)["holds"] is False
    assert cli("verify")[0] == 0
    table = Path(folders[1]) / "public" / "table.csv"
    table.write_text(table.read_text().replace("ill 1", "ill 2"))
    code, out, err = cli("verify", folders[1])  # damage is damage
    assert code == 1 and "R602" in err
