"""Attacks by name, each computed by hand: success, what guessing gives, and how many it is tried on."""

from __future__ import annotations

import polars as pl
import pytest

from examples.test_slides_linkage import ELECTORS, GENERALISED, PATIENTS, RECORDS, VOTERS
from reveil.audit.audit import audit
from reveil.audit.input.observed import from_groups
from reveil.audit.result.attacks import wilson


def attacks(releases, *given, **how):
    return {a.name: a for a in audit(releases, *given, **how).attacks}


def told(attack):
    return attack.rate, attack.baseline, attack.targets


def test_one_release():
    """Six people: AAA show x x y (x twice of three), B and C show z z, D alone shows y. Values: x 2, y 2, z 2 of 6."""
    found = attacks(from_groups([[("abc", "xxy"), ("de", "zz"), ("f", "y")]]))
    assert told(found["record linkage"]) == pytest.approx(((3 * 1 / 3 + 2 * 1 / 2 + 1) / 6, 1 / 6, 6))
    assert told(found["attribute linkage"]) == pytest.approx(((3 * 2 / 3 + 2 + 1) / 6, 1 / 3, 6))
    assert told(found["homogeneity"]) == pytest.approx((3 / 6, 0, 6))
    assert told(found["background knowledge"]) == pytest.approx((1, 3 / 6, 6))  # without it, the homogeneous three
    assert told(found["skewness"]) == pytest.approx((1, 0, 6))  # 2/3 of x against 1/3 of all; z; y
    assert told(found["singling out"]) == pytest.approx((1 / 6, 1 / 6, 6))
    assert told(found["inference"]) == pytest.approx((3 / 6, 3 / 6, 6))
    assert all((a.low, a.high) == wilson(a.rate, a.targets) for a in found.values())
    assert not {"table linkage", "similarity", "intersection", "prior knowledge"} & set(found)  # nothing to try


def test_skewness_is_of_one_value():
    """Half of a group, twice as often as elsewhere, is one and the same value (the lecture: 1 % HIV+ in all, half of
    the class)."""
    found = attacks(from_groups([[("ab", "+-"), ("cdefghijkl", "----------")]]))
    assert told(found["skewness"]) == pytest.approx((2 / 12, 0, 12))
    mixed = attacks(from_groups([[("abcd", "---+"), ("efghijkl", "-------+")]]))
    assert mixed["skewness"].rate == 0  # + is 1/4 against 1/6, - is no rarer elsewhere


def test_similarity_of_the_lecture():
    """Bob's salary is between 3 and 5 thousand, and he has some stomach-related disease."""
    rows = [
        ("476**", "2*", 3000, "Gastric Ulcer"), ("476**", "2*", 4000, "Gastritis"),
        ("476**", "2*", 5000, "Stomach Cancer"),
        ("4790*", "≥40", 6000, "Gastritis"), ("4790*", "≥40", 11000, "Flu"), ("4790*", "≥40", 8000, "Bronchitis"),
        ("476**", "3*", 7000, "Bronchitis"), ("476**", "3*", 9000, "Pneumonia"),
        ("476**", "3*", 10000, "Stomach Cancer"),
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema=["Zip", "Age", "Salary", "Disease"], orient="row")
    people = pl.DataFrame({"Name": ["Bob", "Umeko"], "Zip": ["47678", "47673"], "Age": [27, 36], "release": [1, 1]})
    found = attacks(table.drop("Disease"), people, sensitive="Salary")
    assert told(found["similarity"]) == pytest.approx((1 / 2, 0, 2))
    kinds = {"stomach": ["Gastric Ulcer", "Gastritis", "Stomach Cancer"], "lungs": ["Flu", "Bronchitis", "Pneumonia"]}
    policy = {
        "columns": {
            "Name": "identifier",
            "Zip": "quasi",
            "Age": "quasi",
            "Disease": {"role": "sensitive", "hierarchy": kinds},
        },
        "guarantee": {"k": 3},
    }
    found = attacks(table.drop("Salary"), people, policy=policy)
    assert told(found["similarity"]) == pytest.approx((1 / 2, 0, 2))
    assert "similarity" not in attacks(table.drop("Salary"), people)  # nothing says what is alike


def test_linkage_of_the_lecture():
    """Whoever knows that Alice is in the raw table finds her row and her disease; in the generalised one, one of three.
    Who is on a list that lacks others may be in the table or not: 13 ways, 6 of them give Alice that disease."""
    alice = VOTERS.filter(pl.col("name") == "Alice")
    known = audit(PATIENTS, alice, presence="known")
    assert known.certain["value"].to_list() == ["Ovarian Cancer"]
    assert told({a.name: a for a in known.attacks}["record linkage"]) == pytest.approx((1, 1 / 6, 1))
    explained = str(known.explain("Alice"))
    assert explained.startswith("Everybody in release 1 group") and "joining it with a group" in explained
    listed = attacks(GENERALISED, VOTERS)
    assert told(listed["record linkage"]) == pytest.approx((1 / 3, 1 / 6, 2))
    assert told(listed["table linkage"]) == (0, 0, 2)
    believed = audit(GENERALISED, VOTERS).posterior.filter(pl.col("person") == "Alice")
    assert dict(believed.select("value", "probability").iter_rows()) == pytest.approx(
        {"Ovarian Cancer": 6 / 13, "Prostate Cancer": 3 / 13}
    )
    voters = audit(RECORDS, ELECTORS)  # Joy and Sue are alike, and one row fits both
    assert voters.summary["exposed"] == 0
    joy = voters.posterior.filter(pl.col("person") == "Joy M.")
    assert joy["probability"].to_list() == pytest.approx([1 / 3])
    assert {a.name: a for a in voters.attacks}["record linkage"].rate == pytest.approx((4 + 2 * 1 / 2) / 6)


SERIES = [[("ABC", "xyz"), ("DE", "vw")], [("AFG", "xuw"), ("BC", "yz"), ("DE", "vw")]]


def test_several_releases():
    """A was with B and C, then with F and G: only x is in both of A's groups. Twelve appearances of seven people."""
    found = attacks(from_groups(SERIES))
    assert told(found["intersection"]) == pytest.approx((2 / 12, 0, 12))  # A, twice
    assert told(found["critical absence"]) == pytest.approx((6 / 12, 0, 12))  # A, B and C lack a value later
    assert told(found["historical correlation"]) == pytest.approx((2 / 12, 0, 12))  # B, C and F, G stay two and two
    knowing = attacks(from_groups(SERIES), compromised=["B=y", "F=u"])
    assert told(knowing["compromised rows"]) == pytest.approx((4 / 9, 0, 9))  # A and C, twice
    assert told(knowing["historical correlation"]) == pytest.approx((5 / 9, 0, 9))  # A has x, so G does not


def test_historical_correlation_needs_all_groups_together():
    """Seed 002: Carl and Erica. Taking Carl's row out narrows the others down, and only the correlation names Erica."""
    groups = [[("ABC", "xyz"), ("DEF", "xyz")], [("CDF", "xyz"), ("EGH", "xyz")]]
    found = attacks(from_groups(groups), compromised=["C=x"])
    assert told(found["compromised rows"]) == pytest.approx((0, 0, 10))
    assert told(found["historical correlation"]) == pytest.approx((2 / 10, 0, 10))  # E, twice


def test_update_graph_and_joint_updates():
    """Seed 003, Ben: glaucoma leads nowhere, so he had flu and then pneumonia. Cid's own groups leave two courses."""
    changes = {"flu": ["pneumonia"], "glaucoma": [], "dyspepsia": [], "pneumonia": []}
    groups = [[(("Ben", "Lil"), ("glaucoma", "flu"))], [(("Ben", "Cid"), ("dyspepsia", "pneumonia"))]]
    found = attacks(from_groups(groups), transitions=changes)
    assert told(found["update-graph pruning"]) == pytest.approx((2 / 4, 0, 4))  # Ben, twice
    assert told(found["joint updates"]) == pytest.approx((1, 0, 4))  # so Lil had glaucoma, and Cid has dyspepsia


def test_prior_knowledge():
    """x is three times as likely for A as for B: 3/4 against 1/4 if they share a group; nobody is above 1/2 without."""
    priors = {"A": {"x": 3, "y": 1}, "B": {"x": 1, "y": 1}}
    found = attacks(from_groups([[("AB", "xy"), ("CD", "xy")]]), adversary={"priors": priors})
    assert told(found["prior knowledge"]) == pytest.approx((2 / 4, 0, 4))
