"""The documents are kept true: examples run, policies load, commands and files that they name exist."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import pytest

from reveil.cli.app import COMMANDS
from reveil.policy.policy import load_policy

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = "\n".join(block for block in blocks(path, "python") if ">>>" in block)
    test = doctest.DocTestParser().get_doctest(examples, {}, path.name, str(path), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.failures == 0, f"{runner.failures} of {runner.tries} examples of {path.name} fail (see above)"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_policies_load(path: Path) -> None:
    for block in blocks(path, "toml"):
        content = tomllib.loads(block)
        if "columns" in content and "guarantee" in content:
            load_policy(content)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(path: Path) -> None:
    shell = "\n".join(blocks(path, "sh") + blocks(path, "console"))
    named = set(re.findall(r"^(?:\$ )?reveil ([a-z-]+)", shell, flags=re.MULTILINE))
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_named_tests_exist(path: Path) -> None:
    """The proofs name the tests that compare them with enumeration."""
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", path.read_text(encoding="utf-8")):
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{path.name} names {file}::{name}"
