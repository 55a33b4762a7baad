"""Homes made before guarantees had parameters of their own: their policies are read, and written, as they were.

`recorded_policies.json` holds policies and what the version before recorded of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from reveil.jobs.past import look_back
from reveil.ledger.ledger import Ledger
from reveil.policy.policy import load_policy, recorded_policy
from reveil.publish import Series, open_series

KNOWN = json.loads((Path(__file__).parent / "recorded_policies.json").read_text(encoding="utf-8"))
OTHER = {"columns": {"age": "quasi"}, "guarantee": {"k": 7}}
PEOPLE = pl.DataFrame(
    {"id": range(24), "age": range(20, 44), "ill": [("flu", "cold", "asthma", "gout")[i % 4] for i in range(24)]}
)


@pytest.mark.parametrize("name", KNOWN)
def test_a_policy_is_recorded_as_it_always_was(name: str) -> None:
    recorded = KNOWN[name]["recorded"]
    given = load_policy(KNOWN[name]["given"])
    assert json.loads(json.dumps(given.fixed())) == recorded
    again = recorded_policy(recorded, load_policy(OTHER))
    assert again.guarantee.model_dump() == given.guarantee.model_dump()
    assert json.loads(json.dumps(again.fixed())) == recorded


@pytest.mark.parametrize("name", ["k", "compromise"])
def test_a_home_with_a_policy_of_the_version_before_goes_on(name: str, tmp_path: Path) -> None:
    """The ledger is opened with the old JSON as it stands, and everything after that with today's policy."""
    home, given, recorded = tmp_path / "home", KNOWN[name]["given"], KNOWN[name]["recorded"]
    first = Series(load_policy(given), home)
    first.__dict__["ledger"] = Ledger.create_or_open(home, series="series", policy=recorded)
    first.publish(PEOPLE, seed=1)
    series = open_series(given, home=home)
    series.publish(PEOPLE, seed=2)
    assert all(found.holds for found in series.verify().values())  # type: ignore[union-attr]
    assert series.audit().summary["releases"] == 2
    looked = look_back(OTHER, home=home)
    again = Series(looked.policy, home).verify()
    assert looked.changes and all(found.holds for found in again.values())  # type: ignore[union-attr]
    assert looked.policy.fixed() == load_policy(given).fixed()
