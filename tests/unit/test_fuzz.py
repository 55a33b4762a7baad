"""What a fuzzer found or kept, once more; and a few mutated policies and tables (bench/fuzz.py has many)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import fuzz

KEPT = Path(__file__).parents[1] / "fuzz"


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_what_was_found_before(name: str) -> None:
    files = sorted((KEPT / name).iterdir())
    assert files
    for path in files:
        fuzz.TARGETS[name](path.read_bytes())


def test_mutated_policies_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.mutations(40, seed=3, patience=60.0) == 0, capsys.readouterr().out


@pytest.mark.parametrize("text", ["5E20480", "9" * 5000, "[1-5E20480]", ">=9e99999"])
def test_numbers_that_would_fill_the_memory(text: str) -> None:
    fuzz.notation_target(text.encode())
    policy = '[columns]\na = "quasi"\nb = "sensitive"\n[guarantee]\nmodel = "l-diversity"\nl = "{}"\n'
    fuzz.policy_target(policy.format(text).encode())
