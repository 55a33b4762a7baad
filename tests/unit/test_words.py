"""What people read agrees in number: one person is, two people are."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "reveil"
NOUNS = "people|rows|groups|releases|cohorts|classes|counterfeits"
COUNTED = re.compile(rf"\{{[^{{}}]*:,\}} (?:{NOUNS})\b")  # of `1 of 12 rows` only the larger number may stay


def test_counts_are_written_with_the_noun_that_agrees():
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if COUNTED.search(line)
    ]
    assert not found, "use some() of words.py"
