"""`together`: values of several sensitive columns side by side, and what that tells."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.history.recorded import history_of
from reveil.measure.ask import ask
from reveil.measure.expand import expand, write_expanded
from reveil.policy.policy import load_policy
from reveil.publish import Series
from reveil.verify.comparing import Truth
from reveil.verify.reading import read_release
from reveil.verify.recheck import _with_values
from reveil.verify.verify import check_reading, verify

POLICY: dict[str, Any] = {
    "columns": {"name": "identifier", "age": "quasi", "illness": "sensitive", "drug": "sensitive", "cost": "sensitive"},
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 3, "k": 4},
    "method": {"publish": "anatomy", "together": ["illness", "drug"]},
}
ROWS = 80


def table() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    return pl.DataFrame(
        {
            "name": [f"p{n}" for n in range(ROWS)],
            "age": rng.integers(20, 80, ROWS),
            "illness": rng.choice(list("abcdefg"), ROWS),
            "drug": rng.choice(list("pqrstuv"), ROWS),
            "cost": rng.integers(0, 9, ROWS),
        }
    )


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    made = reveil.open_series(POLICY, tmp_path_factory.mktemp("together") / "home")
    made.publish(table())
    made.publish(table()[20:], new_people=True)
    return made


def test_tuples_are_those_of_people_and_leavers(series: Series) -> None:
    first, second = series.releases
    assert first.tuples is not None and second.tuples is not None
    everybody = Counter(table().select("illness", "drug").rows())
    for release in (first, second):
        assert release.tuples is not None
        shown = Counter[Any]()
        for _, illness, drug, count in release.tuples.rows():
            shown[illness, drug] += count
        assert shown == everybody  # the places of those who left stay
    before = {(g, *t): n for g, *t, n in first.tuples.rows()}
    renamed = {int(a): int(b) for a, b in zip(first.groups[20:], second.groups, strict=True)}
    assert {(renamed[g], *t): n for (g, *t), n in before.items()} == {(g, *t): n for g, *t, n in second.tuples.rows()}
    assert all(found.holds for found in series.verify().values())  # type: ignore[union-attr]
    assert all(series.audit(sensitive=name).holds for name in ("illness", "drug", "cost"))


def test_the_certificate_says_what_they_tell(series: Series) -> None:
    release = series.releases[1]
    (limit,) = [text for text in release.certificate.limits if "side by side" in text]
    assert release.tuples is not None
    kinds: dict[Any, set[Any]] = {}
    for group, illness, drug, _ in release.tuples.rows():
        kinds.setdefault((group, illness), set()).add(drug)
    sure = sum(count for g, illness, _, count in release.tuples.rows() if len(kinds[g, illness]) == 1)
    assert f"'drug' from 'illness' in {sure:,} of {ROWS} places" in limit
    assert {check["name"] for check in release.certificate.checks} >= {"values side by side"}


def test_combinations_that_are_nobodys_are_found_out(series: Series, tmp_path: Path) -> None:
    """Two combinations of one group with drugs exchanged: every column shows what it did, and people are not these."""

    release, policy = series.releases[1], load_policy(POLICY)
    assert release.public is not None and release.tuples is not None
    public = Path(shutil.copytree(release.public, tmp_path / "public"))
    counts = release.tuples.filter(pl.col("count") == 1)
    group = counts.group_by("group").len().sort("len")["group"][-1]
    own = counts.filter(pl.col("group") == group)
    one, other = next((a, b) for a in own.rows() for b in own.rows() if a[1] != b[1] and a[2] != b[2])
    rows = [r for r in release.tuples.rows() if r not in (one, other)]
    rows += [(group, one[1], other[2], 1), (group, other[1], one[2], 1)]
    changed = pl.DataFrame(rows, schema=release.tuples.schema, orient="row")
    changed = changed.group_by("group", "illness", "drug").agg(pl.col("count").sum()).sort("group", "illness", "drug")
    changed.write_csv(public / "tuples.csv")
    past = history_of(series.ledger)
    members = _with_values(past.members.filter((pl.col("release") == 2) & (pl.col("group") >= 0)), past)
    found = verify(public, policy, past.until(2), Truth(60, 0, members=members))
    package = json.loads((public / "datapackage.json").read_text())
    names = {resource["name"] for resource in package["resources"]}
    assert names == {"people", "values-1", "values-2", "values-3", "tuples"} and not found.holds
    judged = check_reading(read_release(public, policy), policy, past.until(2), Truth(60, 0, members=members))
    held = {check.name: check.holds for check in judged.checks}
    assert held["values side by side"] and not held["values of people side by side"]


def test_questions_about_both_columns_are_answered(series: Series, tmp_path: Path) -> None:
    release = series.releases[0]
    truth = table().filter((pl.col("illness") == "a") & (pl.col("drug") == "p")).height
    answer = ask(release, {"illness": "a", "drug": "p"})
    assert answer.expected == truth == answer.least == answer.most  # everybody matches, nobody has left
    with pytest.raises(InputError, match=r"method\.together publishes"):
        ask(release, {"illness": "a", "cost": 3})
    expanded = expand(release)
    both = expanded.tables["illness and drug"]
    assert both.filter((pl.col("illness") == "a") & (pl.col("drug") == "p"))["weight"].sum() == pytest.approx(truth)
    written = write_expanded(expanded, tmp_path / "long")
    text = written[-1].read_text()
    assert 't.groupby(["illness", "drug"])["weight"]' in text and 't[c("illness", "drug")]' in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": {"publish": "anatomy", "together": ["illness"]}}, "two or more different sensitive columns"),
        ({"method": {"publish": "anatomy", "together": ["illness", "age"]}}, "two or more different sensitive columns"),
        ({"method": {"together": ["illness", "drug"]}}, "does nothing unless publish"),
        ({"guarantee": {"model": "l-diversity", "l": 2, "k": 4}, "values": {}}, "is for compromise-safety"),
    ],
)
def test_what_cannot_be_shown_together_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_policy(POLICY | change)
