"""The adversary with teeth: has the input, the program, its source and the seed, and not the key."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.audit.result.attacks import wilson

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import leaks
import truth

COLUMNS = {"name": "identifier", "age": "quasi", "ill": "sensitive"}
POLICY = {
    "columns": COLUMNS,
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 4},
    "method": {"publish": "generalized"},
}


def table(people):
    people = list(people)
    return pl.DataFrame(
        {"name": [f"p{n}" for n in people], "age": [20 + n % 40 for n in people], "ill": [f"v{n % 8}" for n in people]}
    )


def series(folder, name):
    made = reveil.open_series(POLICY, home=folder / name)
    return [made.publish(table(people), seed=7) for people in (range(48), range(12, 56))]


def test_running_the_program_again_tells_neither_rows_nor_counterfeits(tmp_path):
    """Same tables, same seeds, the adversary's own key: no row is found again more often than by chance."""
    hits = rows = 0
    for trial in range(3):
        mine, theirs = (series(tmp_path, f"{who}{trial}") for who in ("publisher", "adversary"))
        assert mine[1].counterfeits["count"].sum() > 0
        for one, other in zip(mine, theirs, strict=True):
            shown, guessed = one.table["ill"].to_list(), other.table["ill"].to_list()
            hits += sum(a == b for a, b in zip(shown, guessed, strict=False))
            rows += min(len(shown), len(guessed))
            assert not one.table.equals(other.table)
    assert wilson(hits / rows, rows, 4.0)[0] <= 1 / 8  # eight values, equally frequent


def test_group_numbers_and_the_order_of_rows_say_nothing_about_the_input(tmp_path):
    """Where a person's group stands among the numbers is a lot: the first line of the input is in any of them."""
    first = Counter()
    for trial in range(24):
        release = reveil.open_series(POLICY, home=tmp_path / str(trial)).publish(table(range(16)), seed=trial)
        first[int(release.groups[0])] += 1
        assert set(release.groups.tolist()) == set(range(release.groups.max() + 1))
    assert max(first.values()) <= 20 and len(first) >= 2


@pytest.mark.parametrize("attack", ["respelled", "seeds", "withheld", "program known", "restored home, anchored"])
def test_no_attack_is_above_what_is_stated(attack):
    """The small version of `reveil bench leaks`; those with too few guesses at this size are measured there."""
    assert leaks.measured(attack, 200, 2 if attack == "program known" else 1).verdict in ("within", "refused")


@pytest.mark.parametrize("model", truth.CASES)
def test_certificates_and_audits_are_the_truth(model):
    """The small version of bench/truth.py: every world of a few random series."""
    for seed in range(3):
        _, _, findings = truth.judge(model, seed)
        assert not findings
