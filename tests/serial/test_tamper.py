"""A part of bench/tamper.py: damaged homes through every command, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "tamper.py"


@pytest.mark.parametrize(("kind", "every"), [("rows", "70"), ("counts", "60")])
def test_damage_is_named_or_harmless(kind: str, every: str) -> None:
    """In another process: one that has threads cannot be copied for each command."""
    words = [sys.executable, str(SCRIPT), "--kind", kind, "--every", every]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "FINDINGS" not in run.stdout and "refused" in run.stdout
