"""The benchmark of start-up runs at its smallest size; what it measures is nobody's business here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "startup.py"


def test_it_runs() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "1", "30"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines[1:4]] == ["--help", "history", "publish"]
    assert [line.split()[0] for line in lines[-3:]] == ["k-anonymity", "compromise-safety", "global"]
