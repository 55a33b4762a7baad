"""No option of the audit is accepted and ignored: each is honoured or refused, in every combination."""

from __future__ import annotations

import json
from fractions import Fraction

import polars as pl
import pytest
from typer.testing import CliRunner

import reveil
from reveil.audit.audit import audit
from reveil.audit.input.knowledge import Adversary, Known
from reveil.audit.input.observed import from_groups
from reveil.audit.result.audit_report import html
from reveil.audit.result.screen import lines
from reveil.base.errors import InputError
from reveil.cli.app import app

SEEN = from_groups([[("AB", "xy"), ("CD", "xy")], [("AC", "xy"), ("BD", "xy")]])
POLICY = """
[columns]
name = "identifier"
age = "quasi"
illness = "sensitive"
[values]
change = "never"
[guarantee]
model = "l-diversity"
l = 2
k = 2
"""
FIRST = pl.DataFrame(
    {"name": list("abcdef"), "age": [20, 21, 40, 41, 60, 61], "illness": ["flu", "cold", "flu", "gout", "cold", "gout"]}
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reveil.toml").write_text(POLICY, encoding="utf-8")
    series = reveil.open_series("reveil.toml")
    series.publish(FIRST, seed=1)
    series.publish(FIRST.with_columns(age=pl.Series([20, 40, 21, 60, 41, 61])), seed=1)
    (tmp_path / "one.csv").write_text("age,illness\n2*,flu\n2*,cold\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("age,illness\n[25-39],flu\n[25-39],gout\n", encoding="utf-8")
    (tmp_path / "who.csv").write_text("name,age,release\nAnn,21,1\nBob,28,1\nBob,28,2\nCid,35,2\n", encoding="utf-8")
    return series


def refused(*arguments):
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    return sorted((fault.code, fault.where) for fault in result.exception.faults)


# The adversary: an object, a table or a file, and what is stated besides.


def test_keywords_go_before_an_adversary_object():
    given = Adversary(compromised=(Known("A", "x"),))
    assert audit(SEEN, adversary=given).summary["exposed"] == 3
    assert audit(SEEN, adversary=given, change="freely").adversary.change == "freely"
    more = audit(SEEN, adversary=given, compromised=["D=x"])
    assert more.summary["known"] == 2
    courses = audit(SEEN, adversary=given, transitions={"x": ["y"]}).adversary
    assert courses.change == "transitions" and courses.transitions["x"]["y"] == Fraction(1, 2)
    assert audit(SEEN, adversary=Adversary(), priors={"A": {"x": 3, "y": 1}}).adversary.priors["A"]["x"] == 3
    with pytest.raises(InputError, match="R727"):  # the share is not dropped: it needs the truth
        audit(SEEN, adversary=Adversary(), share="0.5")
    with pytest.raises(InputError, match="R729"):  # nor is the publisher: it needs the quasi-identifiers
        audit(SEEN, adversary=Adversary(), publisher="any")
    with pytest.raises(InputError, match="belong together"):
        audit(SEEN, adversary=Adversary("transitions", {"x": {"x": Fraction(1)}}), change="never")


def test_keywords_go_before_a_file_and_known_people_add_up(place, tmp_path):
    (tmp_path / "who.toml").write_text('compromised = ["a", "#3=gout"]\nshare = 0.5\n', encoding="utf-8")
    series = place
    number = series.audit(people=["d"]).asked[0]
    (tmp_path / "who.toml").write_text(f'compromised = ["a", "#{number}=gout"]\nshare = 0.5\n', encoding="utf-8")
    told = series.audit(adversary="who.toml", share=0, compromised=["b"])
    assert told.adversary.share == 0 and told.summary["known"] == 3  # people of the file are known by identifiers, too
    result = CliRunner().invoke(app, ["audit", "--adversary", "who.toml", "--json"])
    assert "50.0% of the people" in json.loads(result.stdout)["summary"]["adversary"]
    (tmp_path / "who.toml").write_text("[priors.a]\nflu = 9\ncold = 1\n", encoding="utf-8")
    found = series.audit(adversary="who.toml", people=["a"])
    assert list(found.adversary.priors) == ["a"]


def test_what_the_policy_says_of_changes_is_the_default(tmp_path):
    policy = reveil.policy.policy.load_policy(
        {
            "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
            "values": {"change": "transitions", "transitions": {"x": ["y"]}},
            "guarantee": {"model": "m-distinct", "m": 4},
        }
    )
    assert audit(SEEN, policy=policy, change="transitions").adversary.transitions is not None
    assert audit(SEEN, policy=policy, change="freely").adversary.transitions is None
    (tmp_path / "changes.csv").write_text("from;to\nx;y\ny;x\n", encoding="utf-8")
    own = audit(SEEN, policy=policy, transitions=tmp_path / "changes.csv").adversary
    assert own.transitions["y"]["x"] == Fraction(1, 2)


@pytest.mark.parametrize(
    "content",
    [
        {"chnage": "never"},
        {"change": "sometimes"},
        {"share": 1},
        {"share": "much"},
        {"counterfeits_known": "no"},
        {"counterfeits_go_on": 1},
        {"priors": {"A": {"x": -1, "y": 2}}},
        {"priors": {"A": {"x": 0}}},
        {"priors": {"A": {"x": "likely"}}},
        {"compromised": [{"name": "A"}]},
        {"compromised": [{"person": "A", "when": 1}]},
        {"publisher": "all"},
    ],
)
def test_what_an_adversary_cannot_be(content):
    with pytest.raises(InputError, match="R720"):
        audit(SEEN, adversary=content)


def test_all_faults_at_once():
    with pytest.raises(InputError) as refusal:
        audit(
            SEEN, population="who.csv", presence="known", draws=0, limit=-1, samples=-1, worst=-1, seed=-1, promise=2,
            people=[], adversary={"share": 2, "change": "sometimes"},
        )  # fmt: skip
    places = [fault.where for fault in refusal.value.faults]
    expected = ["population", "presence", "draws", "limit", "samples", "worst", "seed", "promise", "people"]
    assert places == [*expected, "adversary: share", "adversary: change"]
    assert all(fault.remedy for fault in refusal.value.faults)


def test_draws_need_a_share():
    with pytest.raises(InputError, match="R732 draws"):
        audit(SEEN, draws=3)


def test_priors_of_nobody_are_refused():
    with pytest.raises(InputError, match="R721 priors: 1 person in no release: 'Z'"):
        audit(SEEN, priors={"Z": {"x": 1}})


def test_counterfeit_counts_must_fit_the_tables():
    table = pl.DataFrame({"group": [1, 1], "age": ["2*"] * 2, "illness": ["flu", "cold"]})
    who = pl.DataFrame({"name": ["Ann"], "age": [21]})
    fine = audit(table, who, counterfeits=[pl.DataFrame({"group": [1], "count": [1]})])
    assert fine.summary["counterfeits"] == 1
    for group, count in ((2, 1), (1, 3), (1, -1)):
        with pytest.raises(InputError, match="R704"):
            audit(table, who, counterfeits=[pl.DataFrame({"group": [group], "count": [count]})])
    with pytest.raises(InputError, match="R704"):
        audit(table, who, counterfeits=[None, None])


# The command line.


def test_options_that_would_do_nothing_are_refused(place):
    tables = ["one.csv", "two.csv", "--population", "who.csv"]
    assert refused("--population", "who.csv") == [("R732", "population")]
    assert refused(*tables, "--home", "elsewhere") == [("R732", "--home")]
    assert refused("--draws", "3") == [("R732", "draws")]
    assert refused("--external", "--worst", "3") == [("R732", "--worst with --external")]
    assert refused("--promise", "often", "--limit", "-1", "--population", "who.csv") == [
        ("R732", "limit"), ("R732", "population"), ("R732", "promise")
    ]  # fmt: skip
    assert CliRunner().invoke(app, ["audit", "one.csv"]).exit_code == 3  # a first look: nothing is shown by it
    assert refused("one.csv", "--share", "0.2", "--people", "Ann") == [("R732", "people"), ("R732", "share")]
    assert CliRunner().invoke(app, ["audit", "--draws", "3", "--share", "0.2"]).exit_code in (0, 1)
    assert CliRunner().invoke(app, ["audit", "--home", ".reveil"]).exit_code == 1


def test_transitions_by_flag(place, tmp_path):
    (tmp_path / "changes.csv").write_text("from;to\nflu;gout\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["audit", "--transitions", "changes.csv", "--json"])
    assert "transition relation" in json.loads(result.stdout)["summary"]["adversary"]
    assert refused("--transitions", "changes.csv", "--change", "never") == [("R720", "adversary")]


def test_people_narrow_everything_that_is_counted(place):
    everybody, one = place.audit(), place.audit(people=["b"])
    assert everybody.summary["trend"][-1]["people"] == 6 and one.summary["trend"][-1]["people"] == 1
    assert one.summary["trend"][-1]["exposed"] == one.summary["exposed"] <= 1
    assert {a.targets for a in one.attacks if a.name == "inference"} == {2}
    drawn = place.audit(people=["b"], share="0.3", draws=4)
    assert len(drawn.draws) == 4 and max(drawn.draws) <= 1


# The external version.


def test_the_external_version_names_classes_not_people(place):
    call = ["audit", "one.csv", "two.csv", "--population", "who.csv", "--people", "Bob", "--people", "Cid"]
    inside, outside = (CliRunner().invoke(app, [*call, *more]) for more in ([], ["--external"]))
    assert inside.exit_code == outside.exit_code == 1
    assert "Bob, releases 1 and 2: flu, with certainty." in inside.stdout
    assert not any(name in outside.stdout + outside.stderr for name in ("Ann", "Bob", "Cid", "group 1"))
    assert "2 of 2 people asked about" in outside.stdout
    assert "      1  their own groups in several releases leave one value" in outside.stdout
    assert "      1  all groups and everything known are put together" in outside.stdout
    result = CliRunner().invoke(app, [*call, "--external", "--json", "--report", "out.html"])
    content = json.loads(result.stdout)
    assert [row["people"] for row in content["classes"]] == [1, 1]
    text = result.stdout + (place.ledger.home.parent / "out.html").read_text(encoding="utf-8")
    assert not any(name in text for name in ("Ann", "Bob", "Cid", "group 1"))


def test_classes_count_everybody_who_is_exposed_once():
    seen = from_groups([[("AB", "xx"), ("CDE", "xyz"), ("FG", "xy")], [("CD", "xy"), ("EH", "zw"), ("FG", "xy")]])
    found = audit(seen, compromised=["F=x"])
    assert dict(found.classes) == {
        "their group shows one value only": 2,
        "their own groups in several releases leave one value": 1,
        "one value is left when rows of known people are taken out": 1,
        "all groups and everything known are put together": 1,
    }
    assert sum(dict(found.classes).values()) == found.summary["exposed"]
    assert "exposed because" in lines(found, external=True) and "How people are found out" in html(found, external=True)
    assert audit(SEEN).classes == ()
