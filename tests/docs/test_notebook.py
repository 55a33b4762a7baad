"""The notebook in docs: every cell runs, and shows what is kept in it, but for what is drawn by lot."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def runner() -> Any:
    spec = importlib.util.spec_from_file_location("run_notebook", ROOT / "scripts" / "run_notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds(outputs: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(output["output_type"], sorted(output.get("data", {}))) for output in outputs]


def test_every_cell_runs_and_shows_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "docs" / "first-hour", tmp_path / "first-hour")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    shown: dict[str, str] = {}
    for cell, outputs in runner().ran(notebook):
        assert kinds(outputs) == kinds(cell["outputs"])
        for output in outputs:
            shown["".join(cell["source"]).split("\n")[-1]] = "".join(output.get("data", {}).get("text/plain", ""))
    assert "the promise holds" in shown["first"]
    assert shown["audit"].endswith("nobody is exposed>")
    assert shown["suggested"] == "".join(notebook["cells"][3]["outputs"][0]["data"]["text/plain"])
