"""Schemes side by side, and the words around schemes and suppression."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

import reveil
from reveil.base.errors import InputError
from reveil.base.progress import CancelledError
from reveil.cli.app import app
from reveil.measure.compare import COMPARED, compare
from reveil.policy.policy import load_policy

JOBS = {"Artist": ["Dancer", "Writer"], "Professional": ["Engineer", "Lawyer"]}
COLUMNS = {"job": {"role": "quasi", "hierarchy": JOBS}, "sex": "quasi"}
PEOPLE = pl.DataFrame(
    [("Dancer", "F")] * 4 + [("Writer", "F"), ("Writer", "M")] * 2 + [("Engineer", "M")] * 4 + [("Lawyer", "M")] * 2,
    schema=["job", "sex"],
    orient="row",
)


def test_freer_schemes_lose_less():
    found = compare(PEOPLE, {"columns": COLUMNS, "guarantee": {"k": 3}})
    losses = {trial.scheme: trial.loss for trial in found.trials}
    assert list(losses) == list(COMPARED)
    assert losses["full-domain"] >= losses["subtree"] >= losses["sibling"] >= losses["cell"]
    assert losses["mondrian"] >= losses["cell"]
    assert found.best is not None and found.best.loss == min(losses.values())
    assert all(trial.withheld == 0 and trial.seconds is not None for trial in found.trials)
    assert "full-domain" in repr(found) and "<table>" in found._repr_html_()


def test_a_scheme_that_cannot_keep_the_promise_says_why():
    policy = {
        "columns": {"age": "quasi", "pay": "sensitive"},
        "guarantee": {"model": "epsilon-m", "epsilon": 1, "m": 2},
    }
    table = pl.DataFrame({"age": [1, 1, 2, 2], "pay": [1, 5, 9, 20]})
    refused = {trial.scheme: trial.refused for trial in compare(table, policy).trials}
    assert refused["cell"] is not None and "epsilon-m" in refused["cell"]
    assert refused["full-domain"] is None
    impossible = compare(PEOPLE, {"columns": COLUMNS, "guarantee": {"k": 15}})
    assert all("15" in (trial.refused or "") for trial in impossible.trials)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"method": {"publish": "anatomy", "people": "exact"}, "guarantee": {"model": "l-diversity", "l": 2}},
            "anatomy",
        ),
        ({"guarantee": {"model": "m-invariance", "m": 2}, "values": {"change": "never"}}, "m-invariance"),
    ],
)
def test_what_is_no_generalisation_of_one_table_is_refused(change, words):
    columns = {"id": "identifier", "job": "quasi", "sex": "sensitive"}
    with pytest.raises(InputError, match=words) as error:
        compare(PEOPLE.with_row_index("id"), {"columns": columns, **change})
    assert [fault.code for fault in error.value.faults] == ["R790"]
    with pytest.raises(InputError, match="'best' is no scheme"):
        compare(PEOPLE, {"columns": COLUMNS, "guarantee": {"k": 2}}, schemes=["best"])


def test_the_command_line_compares(tmp_path):
    PEOPLE.write_csv(tmp_path / "people.csv")
    policy = tmp_path / "reveil.toml"
    policy.write_text('[columns]\njob = "quasi"\nsex = "quasi"\n[guarantee]\nk = 3\n', encoding="utf-8")
    call = ["plan", str(tmp_path / "people.csv"), "--policy", str(policy), "--compare"]
    shown = CliRunner().invoke(app, [*call, "--quiet"])
    assert shown.exit_code == 0 and "full-domain" in shown.stdout and "cell" in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*call, "--json"]).stdout)
    assert [trial["scheme"] for trial in found["trials"]] == list(COMPARED)
    assert not (tmp_path / ".reveil").exists()
    with pytest.raises(InputError, match="--home"):
        CliRunner().invoke(app, [*call, "--home", str(tmp_path)], catch_exceptions=False, standalone_mode=False)


@pytest.mark.parametrize(
    ("method", "guarantee", "words"),
    [
        ({"name": "subtree", "loss": "precision"}, {"k": 2}, "method.loss does nothing"),
        ({"name": "full-domain", "recode": "sets"}, {"k": 2}, "publishes hierarchy nodes"),
        ({"name": "cell", "cuts": "strict"}, {"k": 2}, "method.cuts does nothing"),
        ({"name": "sibling", "publish": "anatomy"}, {"model": "l-diversity", "l": 2}, "anatomy"),
        ({"name": "cell"}, {"model": "epsilon-m", "epsilon": 1, "m": 2}, "epsilon-m"),
        ({"name": "full-domain"}, {"model": "m-invariance", "m": 2}, "m-invariance"),
    ],
)
def test_keys_that_do_not_go_together_are_faults(method, guarantee, words):
    columns = {"id": "identifier", "job": "quasi", "sex": "sensitive"}
    policy = {"columns": columns, "guarantee": guarantee, "method": method, "values": {"change": "never"}}
    with pytest.raises(InputError, match=words):
        load_policy(policy)


@pytest.mark.parametrize("scheme", COMPARED)
@pytest.mark.parametrize("recode", ["nodes", "suppress"])
def test_every_scheme_publishes_in_a_series_and_alone(tmp_path, scheme, recode):
    """The whole way: planned, written, verified from the bytes, recorded."""
    columns = {"id": "identifier", **COLUMNS, "age": {"role": "quasi", "widths": [5, 10]}, "ill": "sensitive"}
    table = PEOPLE.with_row_index("id").with_columns(
        age=pl.Series([20 + 3 * i for i in range(14)]), ill=pl.Series(["flu", "cold"] * 7)
    )
    policy = {
        "columns": columns,
        "guarantee": {"k": 2, "l": 2},
        "method": {"name": scheme, "recode": recode, "suppress": 0.2},
    }
    release = reveil.anonymize(table, policy, seed=1)
    assert release.certificate.holds
    if recode == "suppress":
        shown = set(release.table["job"]) | set(release.table["sex"])
        assert shown <= {"Dancer", "Writer", "Engineer", "Lawyer", "F", "M", "*"}
    series = reveil.open_series(policy, tmp_path / "home")
    assert series.publish(table, seed=1).certificate.holds
    assert all(found.holds for found in series.verify().values())


def test_a_scheme_that_takes_too_long_is_stopped_and_the_others_are_shown() -> None:
    stages = []
    policy = {"columns": COLUMNS, "guarantee": {"k": 3}}
    found = compare(PEOPLE, policy, seconds=1e-9, progress=lambda stage, done: stages.append((stage, done)))
    stopped = {trial.scheme for trial in found.trials if "stopped after 1e-09 s" in (trial.refused or "")}
    assert "mondrian" in stopped
    assert all(trial.loss is not None for trial in found.trials if trial.scheme not in stopped)
    assert [done for _, done in stages] == sorted(done for _, done in stages)

    def cancel(stage: str, done: float) -> None:
        raise CancelledError(stage)

    with pytest.raises(CancelledError):
        compare(PEOPLE, policy, progress=cancel)
    with pytest.raises(InputError, match="R790 seconds"):
        compare(PEOPLE, policy, seconds=0)
    ran = CliRunner().invoke(app, ["plan", "people.csv", "--seconds", "3"])
    assert isinstance(ran.exception, InputError)
    assert "without --compare" in str(ran.exception)
