"""The tutorial runs as it is written, and the site is built without a warning; its reference names all there is."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reveil.cli.app import COMMANDS
from reveil.report.explain import entries
from support import cli

DOCS = Path(__file__).parents[2] / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def steps(page: Path) -> list[tuple[str, str]]:
    """Each command of a page and what it says that is printed."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [(block.partition("\n")[0].removeprefix("$ reveil "), block.partition("\n")[2]) for block in blocks]


def test_the_first_hour_goes_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(shutil.copytree(DOCS / "first-hour", tmp_path / "hour"))
    monkeypatch.chdir(place)
    asked = steps(DOCS / "first-hour.md")
    assert len(asked) == 7
    for command, wanted in asked:
        code, out, err = cli(*shlex.split(command))
        assert code == 0, f"{command}: {err}"
        assert doctest.OutputChecker().check_output(wanted, out, FLAGS), f"{command} says\n{out}\nnot\n{wanted}"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    source = shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "reference"))
    words = ["-q", "-W", "--keep-going", "-b", "html", str(source), str(tmp_path / "site")]
    built = subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    commands = (source / "reference" / "commands.md").read_text(encoding="utf-8")
    assert all(f"## reveil {name}\n" in commands for name in COMMANDS)
    explained = "".join(
        (source / "reference" / f"{page}.md").read_text(encoding="utf-8") for page in ("words", "codes")
    )
    assert all(f"## {name}\n" in explained for name in entries())
    assert (tmp_path / "site" / "first-hour.html").is_file()
