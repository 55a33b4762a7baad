"""People who are left out because of their value: counted, weighed, and not shown later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from reveil.base.errors import InfeasibleError, InputError
from reveil.publish import Series, open_series

POLICY: dict[str, Any] = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3, "compromised": 0},
    "method": {"infeasible": "withhold"},
}


def people(names: str, values: str) -> pl.DataFrame:
    return pl.DataFrame({"name": list(names), "age": [20 + n for n in range(len(names))], "illness": list(values)})


def series(folder: Path, **guarantee: Any) -> Series:
    return open_series({**POLICY, "guarantee": POLICY["guarantee"] | guarantee}, home=folder / "home")


def test_who_waits_for_their_value_is_counted_weighed_and_never_shown(tmp_path: Path) -> None:
    made = series(tmp_path)
    first = made.publish(people("abcdefgh", "xyzxyzzz"), seed=1)
    assert first.certificate.counts["withheld rows"] == 2
    (limit,) = [text for text in first.certificate.limits if "wait because of their value" in text]
    assert "2 newcomers" in limit and "chance of 1." in limit
    waited = [row for row in (5, 2, 6, 7) if first.groups[row] < 0]
    later = made.publish(people("abcdefghij", "xyzxyzzzxy"), seed=2)
    assert all(later.groups[row] < 0 for row in waited)
    assert later.certificate.withheld["left out because of their value, which showing them later would tell"] == 2
    assert all(found.holds for found in made.verify().values())  # type: ignore[union-attr]


def test_who_waits_because_all_are_too_few_is_shown_later(tmp_path: Path) -> None:
    made = series(tmp_path)
    made.publish(people("abc", "xyz"), seed=1)
    second = made.publish(people("abcd", "xyzx"), seed=2)
    assert second.groups[3] == -1 and not any("because of their value" in text for text in second.certificate.limits)
    third = made.publish(people("abcdef", "xyzxyz"), seed=3)
    assert third.groups[3] >= 0 and third.certificate.holds


def test_a_frequent_harmless_value_breaks_nothing(tmp_path: Path) -> None:
    table = people("abcdefgh", "xyhhhhhh")
    with pytest.raises(InfeasibleError, match=r"harmless = \['h'\]; .*merge.*or leave people out"):
        policy = {**POLICY, "method": {"infeasible": "refuse"}}
        open_series(policy, home=tmp_path / "other").publish(table, seed=1)
    made = series(tmp_path, harmless=["h"])
    release = made.publish(table, seed=1)
    assert (release.groups >= 0).all() and release.certificate.holds
    assert any(text.startswith("Harmless") and "h" in text for text in release.certificate.assumptions)
    (verdict,) = release.certificate.verdicts
    assert "harmless 'h'" in verdict["statement"] and "harmless 'h'" in verdict["plain"]


def test_assumptions_people_may_not_share_are_stated(tmp_path: Path) -> None:
    told = series(tmp_path).publish(people("abc", "xyz"), seed=1).certificate.assumptions
    assert any("Who leaves does not depend on their value" in text for text in told)
    assert any("How frequent values are is the same for everybody" in text for text in told)


@pytest.mark.parametrize("model", [{"model": "m-distinct-star"}, {"model": "m-distinct", "view": "individual"}])
def test_harmless_values_are_refused_where_nothing_repeats(model: dict[str, str]) -> None:
    policy = {
        **POLICY,
        "values": {"change": "transitions", "transitions": {"x": ["y"]}},
        "guarantee": {"m": 3, "harmless": ["x"], **model},
    }
    with pytest.raises(InputError, match="harmless values repeat"):
        open_series(policy)


def changing(folder: Path, stay: float, rows: int = 120) -> list[str]:
    """The limits of a second release after which a share of people kept their value, transitions being a plain list."""
    names = [f"p{n}" for n in range(rows)]
    before = [f"{'abc'[n % 3]}{n // 3 % 2}" for n in range(rows)]
    kept = int(rows * stay)
    after = [value if n < kept else value[0] + str(1 - int(value[1])) for n, value in enumerate(before)]
    policy = {
        **POLICY,
        "values": {
            "change": "transitions",
            "transitions": {f"{k}{i}": [f"{k}0", f"{k}1"] for k in "abc" for i in range(2)},
        },
        "guarantee": {"model": "m-distinct-star", "m": 3},
    }
    made = open_series(policy, home=folder)
    for number, values in enumerate((before, after)):
        table = pl.DataFrame({"name": names, "age": list(range(rows)), "illness": values})
        release = made.publish(table, seed=number)
    return [text for text in release.certificate.limits if "stated chances" in text]


def test_changes_that_disagree_with_the_stated_chances_are_certified_as_a_limit(tmp_path: Path) -> None:
    (limit,) = changing(tmp_path / "sticky", 0.95)
    assert "0.5 is stated" in limit and "Counterfeits change as is stated" in limit
    assert not changing(tmp_path / "even", 0.5)


def test_refills_and_near_people_are_limits_of_the_certificate(tmp_path: Path) -> None:
    told = series(tmp_path, m=4, refill=2).publish(people("abcd", "wxyz"), seed=1).certificate.limits
    assert any("stays vacant" in text for text in told) and any("Near people" in text for text in told)


def test_an_attribute_named_twice_is_refused() -> None:
    from reveil.background.estimate import estimate

    with pytest.raises(InputError, match="named twice"):
        estimate(people("ab", "xy"), ["age", "age:10"], "illness")
