"""Run every cell of a notebook in one process, and keep what each shows: no Jupyter is needed.

python scripts/run_notebook.py docs/notebook.ipynb

Cells run in the folder of the notebook. What a cell shows is its last expression, as HTML where it has one; pictures
in frames are left out, since most readers of notebooks do not show them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def ran(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each cell of code, and its outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield cell, outputs("".join(cell["source"]), names)


def outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    *statements, last = ast.parse(source).body
    shown = isinstance(last, ast.Expr)
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module([*statements, *([] if shown else [last])], []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
        if html and "<iframe" not in html:
            data["text/html"] = lines(html)
        found.append({"output_type": "execute_result", "execution_count": None, "data": data, "metadata": {}})
    return found


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    before = Path.cwd()
    os.chdir(path.parent)
    for cell, found in ran(notebook):
        cell["outputs"] = found
    os.chdir(before)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
