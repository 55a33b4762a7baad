"""Each line of the table of features leads to an example, and the example runs (the other tests of this folder)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LINES = [
    line for line in (DOCS / "compared.md").read_text(encoding="utf-8").splitlines() if re.search(r"\]\(.*\) \|$", line)
]


def section(page: str, anchor: str) -> str:
    """The text under a heading of this anchor, up to the next heading of its level or above."""
    text = (DOCS / page).read_text(encoding="utf-8")
    headings = [(m.start(), len(m[1]), m[2]) for m in re.finditer(r"^(#+) (.*)$", text, flags=re.MULTILINE)]
    for start, level, title in headings:
        if re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") == anchor:
            later = (at for at, depth, _ in headings if at > start and depth <= level)
            return text[start : next(later, len(text))]
    raise AssertionError(f"{page} has no heading for #{anchor}")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("|")[1].strip()[:40])
def test_every_line_leads_to_an_example(line: str) -> None:
    (page, anchor), *_ = re.findall(r"\]\(([^)#]*)#([^)]*)\)", line)
    found = section(page or "compared.md", anchor)
    assert re.search(r"^>>> |```(?:sh|console|python)\n", found, flags=re.MULTILINE), anchor


def test_the_table_is_there() -> None:
    assert len(LINES) >= 15
