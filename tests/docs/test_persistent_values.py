"""The example of docs/persistent-values.md does what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "persistent-values.md"


def test_the_example_prints_what_its_comments_say(tmp_path, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {"home": tmp_path / "home"})
    expected = [line.split("#")[1].split(",")[0].strip() for line in code.splitlines() if line.startswith("print")]
    assert capsys.readouterr().out.split() == expected == ["1/2", "1", "1/2"]
