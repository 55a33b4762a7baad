"""A few rounds of the trouble that `bench/rounds.py` makes by the hundred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "rounds.py"


def test_nothing_is_lost_doubled_or_unsigned() -> None:
    words = [sys.executable, str(SCRIPT), "--rounds", "4"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n| sqlite | 2 |") == done.stdout.count("\n| postgresql | 2 |") == 1
