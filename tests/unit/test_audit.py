"""The audit around its inference: reading tables of others, series, gate, command line, report."""

from __future__ import annotations

import datetime
import io
import json
import re
import sys
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import reveil
from oracle import joint
from reveil.audit.audit import audit
from reveil.audit.infer import infer, linear, settling
from reveil.audit.infer.exact import Limits
from reveil.audit.input.knowledge import Adversary, adversary_from
from reveil.audit.input.observed import from_groups
from reveil.audit.model.model import build
from reveil.audit.result.audit_report import html
from reveil.audit.result.score import score
from reveil.audit.result.screen import lines
from reveil.background.transitions import stated_weights
from reveil.base.errors import GuaranteeError, InputError
from reveil.cli import terminal
from reveil.cli.app import app
from reveil.start.demo import compare, exposed_lines
from reveil.start.picture import write_picture

POLICY = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "l-diversity", "l": 2, "k": 2},
}
FIRST = pl.DataFrame(
    {"name": list("abcdef"), "age": [20, 21, 40, 41, 60, 61], "illness": ["flu", "cold", "flu", "gout", "cold", "gout"]}
)
SECOND = FIRST.with_columns(age=pl.Series([20, 40, 21, 60, 41, 61]))  # everybody sits beside somebody else


def arx(*rows):
    return pl.DataFrame(rows, schema=["zip", "age", "job", "illness"], orient="row")


def test_arx_notation_with_a_taxonomy():
    policy = {
        "columns": {
            "name": "identifier", "zip": "quasi", "age": "quasi", "illness": "sensitive",
            "job": {"role": "quasi", "hierarchy": {"medical": ["nurse", "doctor"], "other": ["clerk"]}},
        },
        "guarantee": {"k": 2},
    }  # fmt: skip
    one = arx(
        ("476**", "[20, 30[", "medical", "flu"),
        ("476**", "[20, 30[", "medical", "cold"),
        ("{47901,47902}", ">=30", "*", "flu"),
        ("{47901,47902}", ">=30", "*", "gout"),
    )
    two = arx(("4****", "20-34", "medical", "flu"), ("4****", "20-34", "medical", "gout"))
    people = pl.DataFrame(
        [
            ("Ann", "47601", 20, "nurse", 1), ("Bob", "47602", 29, "doctor", 1), ("Cid", "47901", 30, "clerk", 1),
            ("Dee", "47902", 77, "nurse", 1), ("Bob", "47602", 30, "doctor", 2), ("Eve", "48000", 33, "nurse", 2),
        ],
        schema=["name", "zip", "age", "job", "release"], orient="row",
    )  # fmt: skip
    found = audit([one, two], people, policy=policy, change="never")
    sure = dict(found.certain.select("person", "value").iter_rows())
    assert sure == {"Ann": "cold", "Bob": "flu", "Eve": "gout"}
    assert found.explain("Eve").sentences[-1] == "So Eve has gout in release 2."


def test_overlapping_boxes_and_unknown_presence():
    table = pl.DataFrame(
        {"age": ["[20-29]", "[20-29]", "[25-39]", "[25-39]"], "illness": ["flu", "flu", "cold", "cold"]}
    )
    people = pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dee"], "age": [21, 27, 28, 35]})
    found = audit(table, people)  # four people, four rows: all are there
    assert dict(found.certain.select("person", "value").iter_rows()) == {"Ann": "flu", "Dee": "cold"}
    half = found.posterior.filter(pl.col("person") == "Bob")["probability"].to_list()
    assert half == pytest.approx([0.5, 0.5])
    more = pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dee", "Eve"], "age": [21, 23, 28, 35, 22]})
    unsure = audit(table, more)  # the older group needs Cid and Dee; one of the others is missing
    assert set(unsure.certain["person"]) == {"Cid", "Dee"}
    assert {a.name: a.rate for a in unsure.attacks}["table linkage"] == pytest.approx(2 / 5)


def test_faults_name_the_way_out():
    with pytest.raises(InputError, match="R723"):
        audit(pl.DataFrame({"age": ["2*"], "illness": ["flu"]}))
    with pytest.raises(InputError, match="R724"):
        audit(
            pl.DataFrame({"age": ["2*"], "illness": ["flu"]}),
            pl.DataFrame({"name": ["x"], "age": [50], "release": [1]}),
        )
    unsure = pl.DataFrame({"name": ["x", "y"], "age": [50, 21], "release": [1, 1]})
    assert audit(pl.DataFrame({"age": ["2*"], "illness": ["flu"]}), unsure, presence="unknown").summary["people"] == 1
    with pytest.raises(InputError, match="R721"):
        audit(from_groups([[("AB", "xy")]]), compromised=["Z=x"])
    with pytest.raises(InputError, match="R727"):
        audit(from_groups([[("AB", "xy")]]), compromised=["A"])
    with pytest.raises(InputError, match="R720"):
        adversary_from({"change": "sometimes"}, None)
    with pytest.raises(InputError, match="R726"):
        audit(from_groups([[("AB", "xy")]])).explain("A")


def test_transition_weights():
    given = stated_weights({"a": {"b": 0.25}}, Path())
    assert given["a"] == {"b": Fraction(1, 4), "a": Fraction(3, 4)}
    assert stated_weights({"a": ["b", "c"]}, Path())["a"]["c"] == Fraction(1, 3)


@pytest.fixture
def series(tmp_path):
    made = reveil.open_series(POLICY, tmp_path / "home")
    made.publish(FIRST, seed=1)
    made.publish(SECOND, seed=1)
    return made


def test_series_audit_knows_people_by_their_identifiers(series):
    found = series.audit()
    assert found.summary["exposed"] > 0
    assert not found.holds
    known = series.audit(compromised=["a"])
    assert known.summary["known"] == 1
    alone = series.audit(people=["b"])
    assert alone.posterior["person"].n_unique() == 1
    with pytest.raises(InputError, match="R721"):
        series.audit(people=["nobody"])


def test_people_asked_about_are_told_of_by_name(tmp_path):
    """Also where nothing is certain, and in the words that they were asked about with."""
    calm = reveil.open_series(
        POLICY | {"guarantee": {"model": "compromise-safety", "m": 3, "tau": "1/2"}}, tmp_path / "calm"
    )
    calm.publish(FIRST, seed=1)
    found = calm.audit(people=["b", "#0"], compromised=["c"])
    text = lines(found)
    assert "b, release 1: nothing is certain. Best guess: " in text
    first = calm.audit(people=["#0"]).standings[0].person  # people are numbered in the order of their hashes
    called = {n: name for name in FIRST["name"] for n in calm.audit(people=[name]).asked}[0]
    assert first == "#0"
    expected = called if called in ("b", "c") else "#0"  # whoever is named otherwise keeps that name
    assert {s.person for s in found.standings} == {"b", expected} and f"{expected}, release 1: " in text
    first = found.to_dict()["people"][0]
    assert first["person"] == "b" and first["settled"] and not first["known"]
    assert sum(belief["probability"] for belief in first["beliefs"]) == pytest.approx(1)
    assert "b, release 1" in html(found) and "b, release 1" not in html(found, external=True)
    assert "c, release 1: flu, known beforehand." in lines(calm.audit(people=["c"], compromised=["c"]))


def test_people_asked_about_where_values_are_certain_or_unlikely():
    seen = from_groups([[("AB", "xy"), ("CD", "xz")], [("AE", "xw"), ("CD", "xz")]])
    text = lines(audit(seen, people=["A", "C"]))
    assert "A, releases 1 and 2: x, with certainty." in text
    assert "A, release 1: x (certain once release 2 was out)" in text
    assert "C, releases 1 and 2: nothing is certain. Best guess: x, with 0.5000; then z 0.5000." in text
    assert "B," not in text


def test_report_and_external_version(series):
    found = series.audit()
    full, discreet = html(found), html(found, external=True)
    assert "Who, and why" in full and "<svg" in full and "http" not in full.replace("http-equiv", "")
    assert "Who, and why" not in discreet
    assert not any(f"{e.person}," in discreet for e in found.explanations)
    assert "exposed with certainty" in lines(found)
    assert json.dumps(found.to_dict(), default=str)
    assert "certain" not in found.to_dict(names=False)


def test_priors_of_the_policy_and_criteria(tmp_path):
    """Ann is a woman, so flu is likelier for her than for Bob: 3/4 * 1/2 against 1/4 * 1/2."""
    (tmp_path / "by-sex.csv").write_text(
        "sex;value;probability\nF;flu;3/4\nF;cold;1/4\nM;flu;1/2\nM;cold;1/2\n", encoding="utf-8"
    )
    policy = reveil.policy.policy.load_policy(
        {
            "columns": {"name": "identifier", "sex": "quasi", "illness": "sensitive"},
            "guarantee": {"model": "r-robustness", "r": "1.2", "priors": [str(tmp_path / "by-sex.csv")]},
        }
    )
    table = pl.DataFrame({"sex": ["*", "*"], "illness": ["flu", "cold"]})
    people = pl.DataFrame({"name": ["Ann", "Bob"], "sex": ["F", "M"], "release": [1, 1]})
    found = audit(table, people, policy=policy)
    belief = {(p, v): share for p, _, v, share in found.posterior.iter_rows()}
    assert belief["Ann", "flu"] == pytest.approx(3 / 4)
    assert belief["Bob", "flu"] == pytest.approx(1 / 4)
    assert {"singling out", "inference"} <= {a.name for a in found.attacks}


def test_rows_of_successive_releases_are_linked_by_their_values():
    """Together: each value has one row in both releases. Apart: A and B go different ways, so x is a toss-up."""
    together, apart = from_groups([[("AB", "xy")]] * 2), from_groups([[("AB", "xy")], [("AC", "xy"), ("BD", "xy")]])
    link = {a.name: a for a in audit(together).attacks}["linkability"]
    assert (link.rate, link.baseline) == pytest.approx((1.0, 1 / 2))
    link = {a.name: a for a in audit(apart).attacks}["linkability"]
    assert (link.rate, link.baseline) == pytest.approx((1 / 2, 1 / 4))
    risk = audit(together).summary["risk"]
    assert risk["journalist_highest"] == risk["prosecutor_highest"] == 1 / 2


def test_gate_refuses_before_anything_is_recorded(tmp_path):
    made = reveil.open_series(POLICY | {"audit": {"gate": True}}, tmp_path / "home")
    made.publish(FIRST, seed=1)
    with pytest.raises(GuaranteeError, match="R728"):
        made.publish(SECOND, seed=1)
    assert len(made.releases) == 1


def test_command_line(tmp_path):
    (tmp_path / "one.csv").write_text("age,illness\n2*,flu\n2*,cold\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("age,illness\n[25-39],flu\n[25-39],gout\n", encoding="utf-8")
    (tmp_path / "who.csv").write_text("name,age,release\nAnn,21,1\nBob,28,1\nBob,28,2\nCid,35,2\n", encoding="utf-8")
    call = ["audit", str(tmp_path / "one.csv"), str(tmp_path / "two.csv"), "--population", str(tmp_path / "who.csv")]
    result = CliRunner().invoke(app, [*call, "--json", "--report", str(tmp_path / "audit.html")])
    assert result.exit_code == 1
    content = json.loads(result.stdout)  # one answer, also where somebody is exposed
    assert {row["person"] for row in content["certain"]} == {"Ann", "Bob", "Cid"}
    assert (tmp_path / "audit.html").read_text(encoding="utf-8").count("<svg") > 1
    fine = CliRunner().invoke(app, ["audit", str(tmp_path / "one.csv"), "--population", str(tmp_path / "who.csv")])
    assert fine.exit_code == 0, fine.output


def test_an_anatomy_as_it_is_published(tmp_path):
    """The folder of an anatomy of ours, read without its ledger."""
    policy = {
        "columns": POLICY["columns"],
        "guarantee": {"model": "l-diversity", "l": 2},
        "method": {"publish": "anatomy", "people": "exact"},
    }
    made = reveil.open_series(policy, tmp_path / "home")
    made.publish(FIRST, seed=1)
    found = audit([made.releases[0].path], FIRST.drop("illness").with_columns(release=pl.lit(1)), sensitive="illness")
    shown = {row["person"] for row in found.posterior.to_dicts()}
    assert shown == set("abcdef") and found.summary["groups"] == 3
    assert found.posterior["probability"].to_list() == pytest.approx([0.5] * 12)


def test_progress_is_for_terminals(tmp_path):
    """Nothing on stderr when it is no terminal; quiet says nothing at all, and the exit code stays."""
    (tmp_path / "one.csv").write_text("age,illness\n2*,flu\n2*,flu\n", encoding="utf-8")
    (tmp_path / "who.csv").write_text("name,age,release\nAnn,21,1\nBob,28,1\n", encoding="utf-8")
    call = ["audit", str(tmp_path / "one.csv"), "--population", str(tmp_path / "who.csv"), "--limit", "1"]
    result = CliRunner().invoke(app, [*call, "--json"])
    assert (result.exit_code, result.stderr) == (1, "")
    assert CliRunner().invoke(app, [*call, "--quiet"]).stdout == ""
    text = CliRunner().invoke(app, [*call, "--people", "Ann"]).stdout
    assert "Ann, release 1: flu, with certainty." in text and "1 of 1 person asked about" in text
    bad = CliRunner().invoke(app, [*call, "--people", "Zoe"])
    assert isinstance(bad.exception, InputError) and bad.exception.exit_code == 2


def test_presence_is_said_on_the_command_line(tmp_path):
    """Whoever fits no group is refused where everybody is said to be there."""
    (tmp_path / "one.csv").write_text("age,illness\n2*,flu\n2*,cold\n", encoding="utf-8")
    (tmp_path / "who.csv").write_text("name,age\nAnn,21\nBob,28\n", encoding="utf-8")
    call = ["audit", str(tmp_path / "one.csv"), "--population", str(tmp_path / "who.csv"), "--presence"]
    sure, unsure = (json.loads(CliRunner().invoke(app, [*call, how, "--json"]).stdout) for how in ("known", "unknown"))
    assert ["table linkage" in {a["name"] for a in found["attacks"]} for found in (sure, unsure)] == [False, True]
    with (tmp_path / "who.csv").open("a", encoding="utf-8") as file:
        file.write("Cid,55\n")
    refused = CliRunner().invoke(app, [*call, "known"]).exception
    assert [fault.code for fault in refused.faults] == ["R724"]
    unmatched = CliRunner().invoke(app, [*call, "unknown"])
    assert [fault.code for fault in unmatched.exception.faults] == ["R734"] and unmatched.exception.exit_code == 1
    assert "WARNING: 1 person of the population fits no group" in unmatched.stdout
    assert CliRunner().invoke(app, [*call, "unknown", "--json"]).exit_code == 1
    for how in ("known", "unknown"):
        accepted = CliRunner().invoke(app, [*call, how, "--accept-missing"])
        assert accepted.exception is None and "WARNING: 1 person" in accepted.stdout
    assert CliRunner().invoke(app, [*call, "perhaps"]).exit_code == 2


def test_progress_on_a_terminal(tmp_path, monkeypatch):
    """A bar on stderr says what is being done; the answer on stdout is the same."""
    (tmp_path / "one.csv").write_text("age,illness\n2*,flu\n2*,cold\n", encoding="utf-8")
    (tmp_path / "who.csv").write_text("name,age,release\nAnn,21,1\nBob,28,1\n", encoding="utf-8")
    call = ["audit", str(tmp_path / "one.csv"), "--population", str(tmp_path / "who.csv")]
    plain = CliRunner().invoke(app, call)
    told = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda self, task, **what: told.append(what))

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal.progress(quiet=False) as show:
        found = audit(str(tmp_path / "one.csv"), str(tmp_path / "who.csv"), progress=show)
    assert lines(found) in plain.stdout
    assert {"excluding", "worlds", "components", "trend"} <= {what["description"] for what in told}
    assert all(0 <= what["completed"] <= 1 for what in told)
    told.clear()
    with terminal.progress(quiet=True) as show:
        audit(str(tmp_path / "one.csv"), str(tmp_path / "who.csv"), progress=show)
    assert not told


def test_whether_counterfeits_are_known():
    """Ann fits one group only. If one of its rows is known to be invented, she has the other; if that is not known,
    nobody need be there at all, and groups that are full for those who know are not for those who do not."""
    table = pl.DataFrame(
        {"group": [1, 1, 2, 2], "age": ["[20-29]"] * 2 + ["[25-39]"] * 2, "illness": ["flu", "flu", "cold", "gout"]}
    )
    counts = [pl.DataFrame({"group": [1], "count": [1]})]
    people = pl.DataFrame({"name": ["Ann", "Bob", "Cid"], "age": [21, 27, 35], "release": [1] * 3})
    knowing = audit(table, people, counterfeits=counts)
    belief = {(p, v): share for p, _, v, share in knowing.posterior.iter_rows()}
    assert dict(knowing.certain.select("person", "value").iter_rows()) == {"Ann": "flu"}
    assert belief == {("Ann", "flu"): 1, ("Bob", "cold"): 0.5, ("Bob", "gout"): 0.5} | {
        ("Cid", "cold"): 0.5, ("Cid", "gout"): 0.5
    }  # fmt: skip
    unknowing = audit(table, people, counterfeits=counts, adversary={"counterfeits_known": False})
    assert "counterfeit counts are not known" in unknowing.summary["adversary"]
    # Bob beside Ann (2 ways to give out the rows, Cid 2: 4 worlds), or beside Cid (Ann 2, Bob and Cid 2: 4 worlds)
    belief = {(p, v): share for p, _, v, share in unknowing.posterior.iter_rows()}
    assert belief["Bob", "flu"] == pytest.approx(1 / 2)
    assert belief["Bob", "cold"] == belief["Bob", "gout"] == pytest.approx(1 / 4)


def test_what_is_too_much_work_is_said(monkeypatch):
    """A component whose equalities are not looked for is not passed over: its people are undecided, it is counted."""

    def lazy(state, label, wanted, seconds):
        return linear.Closure([], np.unique(label[wanted]))

    monkeypatch.setattr(settling, "equalities", lazy)
    monkeypatch.setattr(settling, "near_worlds", lambda s, _: np.zeros(s.state.model.factors, dtype=bool))
    monkeypatch.setattr(settling, "program_of", lambda *_: None)
    monkeypatch.setattr(infer, "search", lambda *_: None)
    seen = from_groups([[("ABC", "xyz"), ("DEF", "xyz")], [("ABD", "xyz"), ("CEF", "xyz")]])
    found = infer.infer(build(seen, Adversary()), limits=Limits(people=0))
    assert found.methods == {"undecided": 1, "equalities too much work": 1}
    assert not found.decided.any()
    text = html(replace(audit(seen), inference=found, score=score(found, None, None)))
    assert "too large to look for everybody who must have the same value" in text
    assert "Not settled" in text


def test_similarity_is_compared_exactly():
    """A quarter of the range of 0 to 0.4 is 0.1, and 0.1 to 0.2 is just that; in floats it is more."""
    assert 0.3 - 0.2 < 0.4 / 4 < 0.2 + 0.1 - 0.2
    seen = from_groups([[("AB", ["0.1", "0.2"]), ("CD", ["0", "0.4"]), ("EF", ["0.2", "0.3"])]])
    similar = {a.name: a for a in audit(seen).attacks}["similarity"]
    assert similar.rate == pytest.approx(4 / 6)
    huge = from_groups([[("AB", ["0", "1"]), ("CD", ["3", "4.0000000000000000000001"]), ("EF", ["3", "2"])]])
    similar = {a.name: a for a in audit(huge).attacks}["similarity"]
    assert similar.rate == pytest.approx(4 / 6)  # 3 to 4 and a little is more than a quarter of the range
    for values in (["flu", "1"], ["nan", "1"], ["1/2", "1"]):
        assert "similarity" not in {a.name for a in audit(from_groups([[("AB", values)]])).attacks}


def test_overlapping_groups_that_show_the_same_value_tell_it():
    """Bob is in one group or the other, and both show flu only: his value is certain, whichever row is his."""
    table = pl.DataFrame({"group": [1, 1, 2, 2], "age": ["[20-29]"] * 2 + ["[25-39]"] * 2, "illness": ["flu"] * 4})
    people = pl.DataFrame({"name": ["Ann", "Bob", "Cid", "Dee"], "age": [21, 27, 28, 35], "release": [1] * 4})
    rates = {a.name: a.rate for a in audit(table, people).attacks}
    assert rates["homogeneity"] == rates["inference"] == 1
    other = table.with_columns(illness=pl.Series(["flu", "flu", "cold", "cold"]))
    rates = {a.name: a.rate for a in audit(other, people).attacks}
    assert rates["homogeneity"] == rates["inference"] == 1 / 2 and rates["background knowledge"] == 1


def test_comparison_of_ways_to_publish(tmp_path):
    table = compare(tmp_path / "compare", 120, 2, shares=(0.04,), limit=1.0)
    last = dict(table.filter(pl.col("release") == "2").select("way", "exposed").iter_rows())
    assert len(last) == 6
    assert last["closed cohorts, one table"] == last["closed cohorts, two tables (default)"] == 0
    assert last["each release l-diverse (Mondrian)"] > 20
    assert "after 2" in exposed_lines(table)
    errors = dict(table.select("way", "query error").unique().iter_rows())
    assert len(errors) == 6
    assert all(0 < error < 1 for error in errors.values())
    drawn = write_picture(table, tmp_path / "compared.html").read_text()
    assert drawn.count("<svg") == 2
    assert "two tables (default)" in drawn


def test_evolving_values_of_a_series_by_the_policys_relation(tmp_path):
    """m-Distinct with stated chances: the audit takes the policy's relation, and believes what enumeration does."""
    policy = {
        "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
        "values": {"change": "transitions", "transitions": {"a": {"b": "1/10"}, "c": {"d": "1/5"}, "e": {"f": "1/2"}}},
        "guarantee": {"model": "m-distinct", "view": "individual", "m": 2},
    }
    made = reveil.open_series(policy, tmp_path / "home")
    for values in ("aceace", "bceade"):
        made.publish(pl.DataFrame({"name": list("uvwxyz"), "age": [20, 21, 22, 40, 41, 42], "illness": list(values)}))
    found = made.audit()
    assert "transition relation" in found.summary["adversary"]
    assert found.summary["undecided"] == 0
    o = found.observed
    groups = [[] for _ in o.releases]
    shown = {g: [] for g in range(len(o.group_release))}
    for g, v, rows in zip(o.cell_group, o.cell_value, o.cell_rows, strict=True):
        shown[g] += [o.values[v]] * int(rows)
    for g, release in enumerate(o.group_release):
        groups[release].append((tuple(o.app_person[o.cand_group == g].tolist()), tuple(shown[g])))
    chances = {v: {w: Fraction(share) for w, share in row.items()} for v, row in found.adversary.transitions.items()}
    _, beliefs, _ = joint.beliefs(groups, chances, {}, {})
    belief = {(p, r, v): share for p, r, v, share in found.posterior.iter_rows()}
    assert len(belief) == sum(map(len, beliefs.values()))
    for (person, release), row in beliefs.items():
        for value, share in row.items():
            assert belief[f"#{person}", str(release + 1), value] == pytest.approx(float(share))


def test_changes_are_tried_where_groups_overlap() -> None:
    """Who may be in a group that is withheld need not be in another: the rest can still be given out."""
    people = pl.DataFrame({"person": ["a", "b", "c", "d"], "age": [1, 2, 3, 4]})
    table = pl.DataFrame({"age": ["[1-2]", "[1-3]", "[2-3]", "4"], "ill": ["flu", "flu", "flu", "cold"]})
    found = reveil.audit([table], population=people, change="never")
    told = {explanation.person: explanation.change for explanation in found.explanations}
    labels = dict(zip(found.observed.group_label, ("4", "[1-2]", "[1-3]", "[2-3]"), strict=True))
    places = {"a": ("[1-2]", "[1-3]"), "b": ("[1-2]", "[1-3]", "[2-3]"), "c": ("[1-3]", "[2-3]"), "d": ("4",)}
    assert set(told) == set(places)
    for person, change in told.items():
        group = re.match(r"Withholding release 1 group (\d+) would have prevented this", change)
        assert group is not None
        assert labels[group[1]] in places[person]


def test_a_population_that_fits_nothing_is_refused() -> None:
    people = pl.DataFrame({"person": ["a", "b"], "age": [1, 2]})
    with pytest.raises(reveil.ReveilError, match="R724 population: nobody in it fits any group"):
        reveil.audit([pl.DataFrame({"age": ["[30-39]"] * 2, "ill": ["flu", "cold"]})], population=people)


def test_years_of_a_set_are_matched_with_birthdays() -> None:
    born = [datetime.date(2001, 1, 5), datetime.date(2003, 2, 2)]
    table = pl.DataFrame({"born": ["{2001,2003}"] * 2, "ill": ["flu", "flu"]})
    found = reveil.audit([table], population=pl.DataFrame({"person": ["a", "b"], "born": born}))
    assert found.summary["exposed"] == 2


def test_a_value_may_be_known_of_one_release_only() -> None:
    """Values that change freely: who knows one of them does not know the next."""
    columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
    policy = {"columns": columns, "guarantee": {"k": 2}, "values": {"change": "freely"}}
    table = pl.DataFrame({"id": range(4), "age": [1, 1, 5, 5], "ill": list("abcd")})
    with tempfile.TemporaryDirectory() as home:
        series = reveil.open_series(policy, home=home)
        for seed in (1, 2):
            series.publish(table, seed=seed, accept=["same-table"])
        certain = {known: series.audit(compromised=[known]).certain for known in ("0@1", "0")}
        assert {known: sorted(set(found["release"])) for known, found in certain.items()} == {
            "0@1": ["1"],
            "0": ["1", "2"],
        }
        with pytest.raises(InputError, match="release '9' is not among 1, 2"):
            series.audit(compromised=["0@9"])


def test_somebody_known_who_is_nowhere_is_refused() -> None:
    people = pl.DataFrame({"name": ["Ann", "Bob", "Cid"], "age": [21, 28, 55]})
    table = pl.DataFrame({"age": ["2*", "2*"], "illness": ["flu", "cold"]})
    with pytest.raises(InputError, match="person 'Cid': fits no group of the released tables"):
        audit(table, people, compromised=["Cid=flu"])
