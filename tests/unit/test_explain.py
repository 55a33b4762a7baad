"""Explanations: complete, none orphaned, and found under any spelling."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import reveil
from reveil.base.errors import InputError
from reveil.guarantees.catalog import descriptors
from reveil.measure.measure import Utility
from reveil.report.consequences import FOLLOWS
from reveil.report.explain import Explanation, entries, explain, overview

SOURCE = Path(reveil.__file__).parent
# The words of section 2 of the design, and those a report uses.
WORDS = [
    "person",
    "identifier",
    "quasi-identifier",
    "sensitive",
    "insensitive",
    "dropped",
    "roles",
    "policy",
    "series",
    "release",
    "group",
    "signature",
    "counterfeit",
    "withheld",
    "ledger",
    "certificate",
    "class",
    "NCP",
    "prosecutor",
    "journalist",
    "marketer",
    "discernibility",
    "query-error",
    "homogeneity",
    "background-knowledge",
    "skewness",
    "similarity",
    "record-linkage",
    "attribute-linkage",
    "table-linkage",
    "generalisation",
]


def of_kind(kind: str) -> dict[str, Explanation]:
    return {name: entry for name, entry in entries().items() if entry.kind == kind}


def test_every_code_in_the_source_is_explained_and_no_other() -> None:
    used: dict[str, str] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for code in re.findall(r"[\"'](R\d{3})[\"']", file.read_text(encoding="utf-8")):
            used.setdefault(code, file.name)
    explained = set(of_kind("code"))
    missing = {code: file for code, file in used.items() if code not in explained}
    assert not missing, f"codes without an entry in explanations.toml: {missing}"
    assert not explained - set(used), f"entries of codes that nothing raises: {sorted(explained - set(used))}"


def test_every_guarantee_is_explained_with_what_it_does_not_withstand() -> None:
    assert set(of_kind("guarantee")) == set(descriptors())
    for name, entry in of_kind("guarantee").items():
        assert entry.exact, name
        assert "Withstands:" in entry.limits, name
        assert "Does not" in entry.limits or "does not" in entry.limits or "None of" in entry.limits, name
        assert "series" in entry.limits, f"{name} must say that it does not protect a series"


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_explained(word: str) -> None:
    entry = explain(word)
    assert entry.plain.endswith(".")
    assert entry.exact


def reasons() -> set[str]:
    """What plans say of people whom they do not show: constants in lower case."""
    texts: set[str] = set()
    for folder in ("plan", "jobs"):
        for file in sorted((SOURCE / folder).rglob("*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                    name, value = ast.unparse(node.targets[0]), node.value.value
                    if name.isupper() and isinstance(value, str) and " " in value and value[0].islower():
                        texts.add(value)
    return texts


def test_every_reason_for_being_left_out_is_explained() -> None:
    listed = reasons()
    assert {"place was refilled while away", "too little of the budget left"} <= listed
    for reason in listed:
        assert explain(reason).kind == "word", reason
        assert reason in FOLLOWS, reason


def test_nothing_follows_from_a_reason_that_is_no_longer_given() -> None:
    planned = "".join(
        file.read_text(encoding="utf-8") for folder in ("plan", "policy") for file in (SOURCE / folder).rglob("*.py")
    )
    for reason in FOLLOWS:
        assert f'"{reason}"' in planned, reason


@pytest.mark.parametrize("word", ["transitions", "dalenius", "pii", "specialization", "box", "harmless", "four eyes"])
def test_words_that_people_try(word: str) -> None:
    assert explain(word).exact


def names_of_attacks() -> set[str]:
    """What `made(...)` and `Attack(...)` are called with, or the `name` that they are given."""
    found: set[str] = set()
    for file in sorted((SOURCE / "audit").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            value = None
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("self.made", "Attack"):
                value = node.args[0]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("name", "NAME"):
                value = node.value
            texts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            found |= {str(text.value) for text in texts if isinstance(text, ast.Constant)}
    return found


def test_every_attack_is_explained_as_an_attack() -> None:
    names = names_of_attacks()
    assert {"record linkage", "update-graph pruning", "joint updates", "linkability", "minimality"} <= names
    for name in names:
        assert explain(name).kind == "attack", name
        assert explain(name).exact and explain(name).limits, name


def test_every_figure_of_an_audit_is_explained() -> None:
    """The labels of the summary: two spaces, words, and a number or the first words of a sentence after it."""
    source = (SOURCE / "audit" / "result" / "screen.py").read_text(encoding="utf-8")
    labels = set(re.findall(r'"  ([a-z][a-z0-9/ ]+?) +\{', source))
    assert {"exposed with certainty", "guessed above 1/2", "highest belief", "undecided"} <= labels
    for label in labels:
        assert explain(label).kind == "word", label


def test_every_measure_is_explained() -> None:
    for field in fields(Utility):
        if field.name not in ("rows", "counted"):
            assert explain(field.name).exact, field.name
    for printed in ("NCP", "entropy", "classes", "discernibility", "suppressed", "counterfeit", "COUNT queries"):
        assert explain(printed).exact, printed


def test_overview_names_everything_in_a_few_lines() -> None:
    text = overview()
    assert [line.partition(":")[0] for line in text.splitlines() if line[0] != " "] == [
        "guarantees", "attacks", "measures", "words", "codes",
    ]  # fmt: skip
    assert all(name in text for name, entry in entries().items() if entry.kind != "code")
    assert len(text.splitlines()) < 25 and max(map(len, text.splitlines())) <= 100


def test_every_entry_is_whole() -> None:
    for name, entry in entries().items():
        assert entry.title and not entry.title.endswith("."), name
        assert entry.plain[0].isupper() or entry.plain[0] in "|`1", name
        assert entry.plain.endswith("."), name
        if entry.kind == "code":
            assert entry.limits.endswith("."), f"{name} has no way out"
        for other in entry.more:
            assert other in entries(), f"{name} points to {other}, which is not explained"
            assert other != name


def test_no_name_means_two_things() -> None:
    content = tomllib.loads((SOURCE / "report" / "explanations.toml").read_text(encoding="utf-8"))
    names = [name for section in content.values() for name in section]
    others = [other for section in content.values() for entry in section.values() for other in entry.get("also", [])]
    assert len(names + others) == len(set(names + others))
    keys = {key for section in content.values() for entry in section.values() for key in entry}
    assert keys <= {"title", "plain", "exact", "limits", "also", "more"}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("r101", "R101"),
        (" R101 ", "R101"),
        ("K_ANONYMITY", "k-anonymity"),
        ("(α,k)-anonymity", "alpha-k"),
        ("ℓ-diversity", "l-diversity"),
        ("δ-presence", "presence"),
        ("Earth mover's distance", "t-closeness"),
        ("equivalence class", "class"),
        ("prosecutor risk", "prosecutor"),
        ("homogeneity attack", "homogeneity"),
    ],
)
def test_spelling_does_not_matter(spelling: str, name: str) -> None:
    assert explain(spelling).name == name


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("k-anonimity", "k-anonymity"), ("R1001", "R101"), ("ledgre", "ledger"), ("???", "R201")],
)
def test_unknown_name_is_refused_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(InputError) as refusal:
        explain(wrong)
    (fault,) = refusal.value.faults
    assert fault.code == "R291"
    assert near in fault.remedy
    assert wrong in fault.where


def test_text_has_plain_words_first_and_the_way_out() -> None:
    text = str(explain("k-anonymity"))
    places = [text.index(part) for part in ("nobody stands out", "looks like", "Exactly:", "Withstands", "See also:")]
    assert places == sorted(places)
    assert max(map(len, text.splitlines())) <= 100
    code = str(explain("R301"))
    assert "Way out:" in code
    assert "Exactly:" not in code
    assert explain("R301").to_dict()["more"] == ["generalisation"]


def test_texts_are_read_only_when_asked_for() -> None:
    """Importing must stay cheap for the command line."""
    size = "print(e._content.cache_info().currsize)"
    check = f"import reveil.report.explain as e; {size}; e.entries(); {size}"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]


def test_an_entry_read_alone_is_the_one_in_the_whole_file() -> None:
    for name, entry in entries().items():
        assert explain(name) == entry
