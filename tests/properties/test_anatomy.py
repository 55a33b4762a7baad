"""Anatomy: two tables from publishing to verifying, tampering, and measuring against counting by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.background.estimate import estimate
from reveil.base.errors import InputError
from reveil.history.history import History
from reveil.measure.measure import measure
from reveil.policy.policy import load_policy
from reveil.published.anatomy import pair
from reveil.verify.verify import verify


def people(n: int = 80, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(20, 60, n),
            "ward": rng.choice(["A", "B"], n),
            "disease": rng.choice(["flu", "ache", "gout", "cold", None], n),
        }
    )


def rules(folder: Path, guarantee: dict[str, object], **method: object) -> dict[str, object]:
    return {
        "columns": {"sex": "quasi", "age": "quasi", "ward": "insensitive", "disease": "sensitive"},
        "guarantee": guarantee,
        "method": {"publish": "anatomy", **method},
        "folder": folder,
    }


ROBUST = {"model": "r-robustness", "r": 3, "priors": ["by-sex.csv"]}
GUARANTEES = [
    {"model": "l-diversity", "l": 3},
    {"model": "l-diversity", "l": 3, "k": 4},
    {"model": "t-closeness", "t": "0.4"},
    {"model": "alpha-k", "alpha": "1/2", "k": 2},
    ROBUST,
]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: "-".join(g))
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_published_as_two_tables(guarantee: dict[str, object], form: str, tmp_path: Path) -> None:
    table = people()
    estimate(table, ["sex"], "disease").write(tmp_path / "by-sex.csv")
    policy = {**rules(tmp_path, guarantee, infeasible="withhold"), "output": {"format": form}}
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    public = tmp_path / "out" / "public"
    assert sorted(path.name for path in public.iterdir()) == ["datapackage.json", f"qit.{form}", f"st.{form}"]
    package = json.loads((public / "datapackage.json").read_text())
    assert [resource["name"] for resource in package["resources"]] == ["qit", "st"]
    kept = release.groups >= 0
    shown = release.table.select("sex", "age", "ward").sort(pl.all())
    assert shown.equals(table.filter(pl.Series(kept)).select("sex", "age", "ward").sort(pl.all()))
    assert release.values is not None
    true = table.filter(pl.Series(kept)).with_columns(group=pl.Series(release.groups[kept], dtype=pl.Int64))
    counts = true.group_by("group", "disease").len("count").cast({"count": pl.Int64})
    assert counts.sort(pl.all()).equals(release.values["disease"].sort(pl.all()))
    again = verify(public, load_policy(policy), History())
    assert again.holds
    assert [v.guarantee for v in again.verdicts] == [v["guarantee"] for v in release.certificate.verdicts]


def test_robust_from_the_bytes_alone(tmp_path: Path) -> None:
    """With exact quasi-identifiers the verifier needs nothing private: it sums over worlds, and finds a swap out."""
    table = people()
    estimate(table, ["sex"], "disease").write(tmp_path / "by-sex.csv")
    policy = rules(tmp_path, ROBUST, infeasible="withhold")
    reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    public = tmp_path / "out" / "public"
    (verdict,) = verify(public, load_policy(policy), History()).verdicts
    assert verdict.holds
    assert "people" not in verdict.details
    assert verdict.worst <= Fraction(1, 3)


def test_tampering_is_found(tmp_path: Path) -> None:
    policy = rules(tmp_path, {"model": "l-diversity", "l": 3})
    reveil.anonymize(people(), policy, seed=1, out=tmp_path / "out")
    public = tmp_path / "out" / "public"
    lines = (public / "st.csv").read_text().splitlines()
    group, value, count = lines[1].split(",")
    (public / "st.csv").write_text("\n".join([lines[0], f"{group},{value},{int(count) + 1}", *lines[2:]]) + "\n")
    with pytest.raises(InputError, match=r"R603 .*the groups of the two tables differ in size for 'disease'"):
        verify(public, load_policy(policy), History())


def test_several_sensitive_columns(tmp_path: Path) -> None:
    table = people().with_columns(drug=pl.Series(["x", "y", "z", "w"] * 20))
    policy = rules(tmp_path, {"model": "l-diversity", "l": 2})
    policy["columns"] = {**policy["columns"], "drug": "sensitive"}  # type: ignore[dict-item]
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    assert release.values is not None
    assert list(release.values) == ["disease", "drug"]
    assert {path.stem for path in (tmp_path / "out" / "public").iterdir()} == {"qit", "st-1", "st-2", "datapackage"}
    assert len(release.certificate.verdicts) == 2


def test_a_series_in_two_tables(tmp_path: Path) -> None:
    policy = rules(tmp_path, {"model": "l-diversity", "l": 3})
    policy["columns"] = {"id": "identifier", **policy["columns"]}  # type: ignore[dict-item]
    table = people().with_row_index("id")
    series = reveil.open_series(policy, home=tmp_path / "home")
    first = series.publish(table, seed=1)
    assert all(not isinstance(found, Exception) and found.holds for found in series.verify().values())
    (loaded,) = series.releases
    assert loaded.values is not None
    assert loaded.values["disease"].equals(first.values["disease"])  # type: ignore[index]
    assert loaded.table.equals(first.table)


@pytest.mark.parametrize(
    ("guarantee", "columns", "method", "found"),
    [
        ({"k": 3}, {}, {}, "so k-anonymity hides nobody"),
        ({"model": "l-diversity", "l": 2}, {"count": "insensitive"}, {}, "needs the column name `count`"),
        ({"model": "l-diversity", "l": 2}, {}, {"recode": "sets"}, "nothing is generalised"),
        ({"model": "presence", "population": "p.csv", "delta_max": "0.5"}, {}, {}, "shows who is present"),
        ({"model": "m-invariance", "m": 3}, {"id": "identifier"}, {}, "has no exact quasi-identifiers to show"),
    ],
)
def test_what_anatomy_cannot_promise(
    guarantee: dict[str, object], columns: dict[str, str], method: dict[str, str], found: str
) -> None:
    policy = rules(Path(), guarantee, **method)
    policy["columns"] = {**policy["columns"], **columns}  # type: ignore[dict-item]
    with pytest.raises(InputError, match=found):
        load_policy(policy)


def test_query_estimates_equal_counting_by_hand(tmp_path: Path) -> None:
    """For each query: sum over groups of (matching rows) x (share of matching values)."""
    from reveil.measure.axes import classes_of
    from reveil.measure.queries import Questions

    table = people(60)
    policy = load_policy(rules(tmp_path, {"model": "l-diversity", "l": 3}))
    release = reveil.anonymize(table, policy, seed=5)
    assert release.values is not None
    paired = pair(release.table, release.values)
    rows = paired.with_columns(pl.int_range(pl.len()).alias("group"))
    questions = Questions(classes_of(rows, table, policy, None), rows, table, policy, paired["group"].to_numpy())
    asked = questions.draw(200, 0.1, 7)
    estimates = questions.estimates(asked)
    sex, ages = sorted(table["sex"].unique()), release.table["age"].to_numpy()
    ranks = {value: rank for rank, value in enumerate([None, *sorted(table["disease"].drop_nulls().unique())])}
    places = np.array([sex.index(value) for value in release.table["sex"]])
    groups = release.table["group"].to_numpy()
    for query in range(len(asked)):
        inside = np.ones(len(groups), dtype=bool)
        for place, (low, high), pick in zip((places, ages), asked.quasi, asked.picks, strict=True):
            inside &= (place >= low[pick[query]]) & (place <= high[pick[query]])
        low, high = asked.sensitive[0]
        by_hand = 0.0
        for group, value, count in release.values["disease"].iter_rows():
            if low[asked.value[query]] <= ranks[value] <= high[asked.value[query]]:
                by_hand += (inside & (groups == group)).sum() * count / (groups == group).sum()
        assert estimates[query] == pytest.approx(by_hand)


def test_measuring_an_anatomy(tmp_path: Path) -> None:
    policy = rules(tmp_path, {"model": "l-diversity", "l": 3})
    table = people()
    release = reveil.anonymize(table, policy, seed=1)
    found = measure(release.table, table, policy, values=release.values, queries=200)
    assert found.ncp_mean == 0
    assert found.counterfeits == 0
    assert found.classes == release.table["group"].n_unique()
    assert found.average_class == pytest.approx(80 / found.classes)


def test_pair_refuses_counts_that_make_no_sense() -> None:
    quasi = pl.DataFrame({"group": [0], "age": [1]})
    with pytest.raises(ValueError, match="a count of 'x' is not positive"):
        pair(quasi, {"x": pl.DataFrame({"group": [0, 0], "x": ["a", "b"], "count": [1, 0]})})


def test_pair_counts_before_it_spreads() -> None:
    """A count of billions is refused for what it is: it is not written out first."""
    quasi = pl.DataFrame({"group": [0, 0], "age": [1, 2]})
    for counts in ([10**15, 1], [2**62, 2**62], [2, 1], [1, None]):
        table = pl.DataFrame({"group": [0, 0], "x": ["a", "b"], "count": counts}, schema_overrides={"count": pl.Int64})
        with pytest.raises(ValueError, match="not positive" if None in counts else "differ in size"):
            pair(quasi, {"x": table})
