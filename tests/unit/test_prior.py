"""Priors: reading, matching, checking against a table, estimating; and every refusal."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import reveil
from reveil.background.estimate import estimate
from reveil.background.prior import Prior, check_values, match_priors, read_prior
from reveil.base.errors import InputError
from reveil.cli.app import app
from reveil.policy.policy import load_policy

QUASI, SENSITIVE = ("sex", "age", "zip", "day"), ("disease",)


def prior_of(folder: Path, text: str) -> Prior:
    path = folder / "p.csv"
    path.write_text(text, encoding="utf-8")
    return read_prior(path, QUASI, SENSITIVE)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        prior_of(folder, text)
    return str(caught.value)


def test_cells_in_any_notation_match_exact_values(tmp_path: Path) -> None:
    prior = prior_of(
        tmp_path,
        "zip,age,day,disease,probability\n"
        "476**,[20-29],2026-Q1,flu,1\n476**,[30-39],2026-Q1,flu,1\n*,>=40,2026-Q1,flu,1\n478**,[20-39],2026-Q1,flu,1\n",
    )
    day = datetime.date(2026, 2, 1)
    people = pl.DataFrame({"zip": ["47677", "47602", "99999", "47801"], "age": [29, 30, 41, 20], "day": [day] * 4})
    assert prior.match(people).tolist() == [0, 1, 2, 3]


def test_missing_values_are_a_category(tmp_path: Path) -> None:
    prior = prior_of(tmp_path, "sex;value;probability\nF;;1/2\nF;flu;1/2\n;;0.25\n;flu;0.75\n")
    signatures = prior.match(pl.DataFrame({"sex": ["F", None]}))
    assert signatures.tolist() == [0, 1]
    assert not check_values(prior, pl.Series("disease", ["flu", None]), signatures)
    assert prior.rows([None, "flu"])[1] == (Fraction(1, 4), Fraction(3, 4))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sex;value\nF;flu\n", "R430 prior p.csv: has no column `probability`"),
        ("sex;probability\nF;1\n", "R430 prior p.csv: has 0 columns of sensitive values"),
        ("value;probability\nflu;1\n", "R430 prior p.csv: has no attribute column"),
        ("sexx;value;probability\nF;flu;1\n", "'sexx' are not quasi-identifiers"),
        ("sex;value;probability\n", "R430 prior p.csv: has no rows"),
        ("sex;value;probability\nF;flu\n", "line 2 has 2 cells, not 3"),
        ("sex;value;probability\nF;flu;often\n", "R431 prior p.csv: line 2: the probability 'often'"),
        ("sex;value;probability\nF;flu;1.5\n", "'1.5' is not a number from 0 to 1"),
        ("sex;value;probability\nF;flu;0.5\nF;flu;0.5\n", "line 3: 'flu' occurs twice"),
        ("sex;value;probability\nF;flu;0.5\nF;ache;0.4\n", "R435 prior p.csv: sex 'F': the probabilities sum to 0.9"),
        ("sex;value;probability\nF;flu;1\nM;ache;1\n", "R434 prior p.csv: sex 'F': says nothing about 1 value"),
    ],
)
def test_refusals_of_a_file(tmp_path: Path, text: str, found: str) -> None:
    assert found in refusal(tmp_path, text)


def test_all_faults_of_all_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sex;value;probability\nF;flu;2\n")
    policy = load_policy(
        {
            "columns": {"sex": "quasi", "disease": "sensitive"},
            "guarantee": {"model": "r-robustness", "r": 2, "priors": ["a.csv", "b.csv"]},
            "folder": tmp_path,
        }
    )
    with pytest.raises(InputError) as caught:
        match_priors(pl.DataFrame({"sex": ["F"], "disease": ["flu"]}), policy)
    assert [fault.code for fault in caught.value.faults] == ["R431", "R430"]


def test_signatures_that_are_missing_or_overlap(tmp_path: Path) -> None:
    prior = prior_of(tmp_path, "age;value;probability\n[20-29];flu;1\n[29-39];flu;1\n")
    with pytest.raises(InputError) as caught:
        prior.match(pl.DataFrame({"age": [25, 29, 29, 50, 51]}))
    none, several = caught.value.faults
    assert (none.code, none.rows) == ("R432", 2)
    assert "age '50'" in none.message
    assert (several.code, several.rows) == ("R433", 2)
    assert "age '[20-29]' and age '[29-39]'" in several.message


def test_values_unknown_to_the_prior_or_impossible_in_it(tmp_path: Path) -> None:
    prior = prior_of(tmp_path, "sex;value;probability\nF;flu;1\nF;ache;0\n")
    people = pl.DataFrame({"sex": ["F", "F", "F"]})
    (unknown,) = check_values(prior, pl.Series(["flu", "gout", "gout"]), prior.match(people))
    assert (unknown.code, unknown.rows) == ("R434", 2)
    (impossible,) = check_values(prior, pl.Series(["flu", "ache", "flu"]), prior.match(people))
    assert (impossible.code, impossible.rows) == ("R436", 1)
    assert "'ache' for sex 'F'" in impossible.message


def test_estimate_is_a_prior_that_fits_its_table(tmp_path: Path) -> None:
    people = pl.DataFrame(
        {
            "sex": ["F"] * 40 + ["M"] * 10,
            "age": list(range(20, 70)),
            "zip": ["1"] * 50,
            "day": [datetime.date(2026, 1, 1)] * 50,
            "disease": ["flu", "ache", None, "gout", "flu"] * 10,
        }
    )
    found = estimate(people, ["sex", "age:25"], "disease", smoothing=Fraction(1, 2))
    found.write(tmp_path / "e.csv")
    prior = read_prior(tmp_path / "e.csv", QUASI, SENSITIVE)
    signatures = prior.match(people)
    assert not check_values(prior, people["disease"], signatures)
    assert list(prior.cells) == [("F", "[0-24]"), ("F", "[25-49]"), ("F", "[50-74]"), ("M", "[50-74]")]
    assert all(sum(row) == 1 for row in prior.table)
    # F, 0-24: 5 people, 2 with flu; the share of flu in the table is 2/5
    assert prior.table[0][prior.place["flu"]] == (2 + Fraction(1, 2) * Fraction(2, 5)) / (5 + Fraction(1, 2))
    assert found.small["people"].to_list() == [5, 25, 10, 10]
    unsmoothed = estimate(people, ["sex"], "disease", smoothing=Fraction(0))
    assert "3 values" not in repr(unsmoothed)
    assert unsmoothed.small.rows() == [("M", 10)]


def test_estimate_refuses_all_at_once() -> None:
    people = pl.DataFrame({"sex": ["F"], "height": [1.7], "disease": ["flu"]})
    with pytest.raises(InputError) as caught:
        estimate(people, ["sexx", "height:10", "sex:0"], "diseases", smoothing=Fraction(-1))
    assert [fault.code for fault in caught.value.faults] == ["R437"] * 5


@pytest.mark.parametrize(
    ("guarantee", "method", "columns", "found"),
    [
        ({"model": "r-robustness", "r": 2}, {}, {}, "r and priors belong together"),
        ({"model": "k-anonymity", "k": 2, "condition": "delta"}, {}, {}, "condition does nothing without r"),
        ({"model": "k-anonymity", "k": 2, "r": 2, "priors": ["p.csv"]}, {}, {}, "priors do not go with model"),
        ({"model": "r-robustness", "r": 1, "priors": ["p.csv"]}, {}, {}, "above 1"),
        ({"model": "r-robustness", "r": 2, "t": 0.2, "priors": ["p.csv"]}, {}, {}, "t cannot be planned together"),
        ({"model": "r-robustness", "r": 2, "priors": ["p.csv"]}, {"name": "mondrian"}, {}, '"signatures" or "linkage"'),
        ({"model": "k-anonymity", "k": 2}, {"name": "linkage"}, {}, "groups by priors"),
        ({"model": "r-robustness", "r": 2, "priors": ["p.csv"]}, {}, {"drug": "sensitive"}, "one sensitive column"),
        ({"model": "r-robustness", "r": 2, "priors": ["a/p.csv", "b/p.csv"]}, {}, {}, "the same name"),
        (
            {"model": "compromise-safety", "m": 3, "r": 2, "priors": ["p.csv"]},
            {},
            {"id": "identifier"},
            "its worlds over several releases are not weighed by priors",
        ),
    ],
)
def test_what_priors_do_not_go_with(
    guarantee: dict[str, object], method: dict[str, str], columns: dict[str, str], found: str
) -> None:
    rules = {
        "columns": {"sex": "quasi", "disease": "sensitive", **columns},
        "guarantee": guarantee,
        "method": method,
        "values": {"change": "never"} if "id" in columns else {},
    }
    with pytest.raises(InputError, match=found):
        load_policy(rules)


@pytest.fixture
def people(tmp_path: Path) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "id": list(range(64)),
            "sex": ["F", "M"] * 32,
            "age": [20 + i % 40 for i in range(64)],
            "disease": [("flu", "ache", "gout", "cold")[(i // 2 + i % 2) % 4] for i in range(64)],
        }
    )
    estimate(frame, ["sex"], "disease").write(tmp_path / "by-sex.csv")
    return frame


def rules(folder: Path, **more: object) -> dict[str, object]:
    return {
        "columns": {"id": "identifier", "sex": "quasi", "age": "quasi", "disease": "sensitive"},
        "guarantee": {"model": "r-robustness", "r": 2, "priors": ["by-sex.csv"], **more},
        "folder": folder,
    }


def test_with_k_l_and_alpha(people: pl.DataFrame, tmp_path: Path) -> None:
    release = reveil.anonymize(people, rules(tmp_path, k=3, l=3, alpha="1/4"), seed=1)
    assert [(v["guarantee"], v["holds"]) for v in release.certificate.verdicts] == [
        ("k-anonymity", True),
        ("l-diversity", True),
        ("alpha-k", True),
        ("r-robustness", True),
    ]
    assert release.table.group_by("group").len()["len"].min() >= 4


def test_a_series_of_robust_releases_is_verified_again(people: pl.DataFrame, tmp_path: Path) -> None:
    series = reveil.open_series(rules(tmp_path), home=tmp_path / "home")
    series.publish(people, seed=1)
    series.publish(people, seed=2, accept=["same-table"])
    for found in series.verify().values():
        assert not isinstance(found, Exception)
        assert found.holds
        assert found.verdicts[0].worst <= Fraction(1, 2)
        assert "people" in {check.name for check in found.checks}


def test_delta_says_its_warning_in_the_certificate(people: pl.DataFrame, tmp_path: Path) -> None:
    release = reveil.anonymize(people, rules(tmp_path, condition="delta"), seed=1)
    (verdict,) = release.certificate.verdicts
    assert verdict["holds"]
    assert "it does not bound this chance" in verdict["statement"]


def test_who_is_above_beforehand_is_counted_and_named(tmp_path: Path) -> None:
    people = pl.DataFrame({"sex": ["F", "F", "M", "M"], "disease": ["flu", "ache", "flu", "ache"]})
    (tmp_path / "by-sex.csv").write_text("sex;value;probability\nF;flu;0.9\nF;ache;0.1\nM;flu;0.5\nM;ache;0.5\n")
    policy = rules(tmp_path)
    policy["columns"] = {"sex": "quasi", "disease": "sensitive"}
    (verdict,) = reveil.anonymize(people, policy, seed=1).certificate.verdicts
    assert verdict["details"]["people above 1/r beforehand"] == 2
    assert verdict["details"]["signatures above 1/r beforehand"] == ["sex 'F': 'flu' 0.9"]
    assert "For 2 people the prior alone gives some value more than that" in verdict["plain"]


def test_estimate_on_the_command_line(people: pl.DataFrame, tmp_path: Path) -> None:
    people.write_csv(tmp_path / "people.csv")
    arguments = ["prior", "estimate", str(tmp_path / "people.csv"), "--by", "sex,age:20", "--value", "disease"]
    written = tmp_path / "prior.csv"
    shown = CliRunner().invoke(app, [*arguments, "--out", str(written), "--smoothing", "1/2"])
    assert shown.exit_code == 0
    assert "Fewer than 30 people" in shown.stdout
    assert len(read_prior(written, QUASI, SENSITIVE).cells) == 4
    shown = CliRunner().invoke(app, [*arguments, "--out", str(written), "--json", "--few", "2"])
    assert json.loads(shown.stdout)["few people"] == []
    with pytest.raises(InputError, match="R437"):
        CliRunner().invoke(app, [*arguments, "--smoothing", "much"], catch_exceptions=False)
