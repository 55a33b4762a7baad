"""Two tables (anatomy), from publishing to verifying, tampering, and measuring against counting by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.audit.result.screen import lines
from reveil.background.estimate import estimate
from reveil.base.errors import GuaranteeError, InfeasibleError, InputError
from reveil.history.history import History
from reveil.measure.measure import measure
from reveil.measure.risk import risk_change
from reveil.policy.policy import load_policy
from reveil.published.anatomy import counterfeits_of
from reveil.published.notation import parse_cell
from reveil.published.reader import open_published
from reveil.verify.verify import verify
from support import put_right


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
        "method": {"publish": "anatomy", "people": "exact", **method},
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
    assert sorted(path.name for path in public.iterdir()) == ["datapackage.json", f"people.{form}", f"values.{form}"]
    package = json.loads((public / "datapackage.json").read_text())
    assert [resource["name"] for resource in package["resources"]] == ["people", "values"]
    key = {"fields": "group", "reference": {"resource": "values", "fields": "group"}}
    assert package["resources"][0]["schema"]["foreignKeys"] == [key]
    assert "foreignKeys" not in package["resources"][1]["schema"]
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
    lines = (public / "values.csv").read_text().splitlines()
    group, value, count = lines[1].split(",")

    def tampered(count: object) -> list[bool]:
        (public / "values.csv").write_text("\n".join([lines[0], f"{group},{value},{count}", *lines[2:]]) + "\n")
        found = verify(public, load_policy(policy), History())
        return [check.holds for check in found.checks if check.name in ("public files", "two tables")]

    assert tampered(count) == [True, True]
    assert tampered(int(count) + 1) == [False]  # by its hash, and if the hash is put right as well:
    put_right(public)
    assert tampered(int(count) + 1) == [True, False]  # nobody's value, where no counterfeits are allowed
    for wrong, words in ((0, "is not positive"), (-1, "is not positive"), (10**15, "out of proportion")):
        with pytest.raises(InputError, match=rf"R603 .*{words}"):
            tampered(wrong)


def test_several_sensitive_columns(tmp_path: Path) -> None:
    table = people().with_columns(drug=pl.Series(["x", "y", "z", "w"] * 20))
    policy = rules(tmp_path, {"model": "l-diversity", "l": 2})
    policy["columns"] = {**policy["columns"], "drug": "sensitive"}  # type: ignore[dict-item]
    release = reveil.anonymize(table, policy, seed=1, out=tmp_path / "out")
    assert release.values is not None
    assert list(release.values) == ["disease", "drug"]
    assert {path.stem for path in (tmp_path / "out" / "public").iterdir()} == {
        "people",
        "values-1",
        "values-2",
        "datapackage",
    }
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
        ({"k": 3}, {}, {}, "k-anonymity alone says nothing of values"),
        ({"model": "l-diversity", "l": 2}, {"count": "insensitive"}, {}, "need the column name `count`"),
        ({"model": "l-diversity", "l": 2}, {}, {"recode": "sets"}, "nothing is generalised"),
        ({"model": "presence", "population": "p.csv", "delta_max": "0.5"}, {}, {}, "tell who is present by boxes"),
        ({"model": "l-diversity", "l": 2}, {}, {"people": "boxes"}, "needs guarantee.k"),
        (
            {"model": "l-diversity", "l": 2, "k": 3},
            {},
            {"people": "boxes", "recode": "suppress"},
            "does not go with boxes",
        ),
        ({**ROBUST, "k": 2}, {}, {"people": "boxes"}, "two tables need people"),
        ({"model": "l-diversity", "l": 2}, {}, {"insensitive": "own"}, "does nothing for one release"),
        ({"model": "l-diversity", "l": 2}, {}, {"people": "some-boxes"}, "is not allowed"),
        ({"model": "l-diversity", "l": 2}, {}, {"publish": "generalized"}, "method.people does nothing"),
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
    classes = classes_of(release.table, table, policy, None)
    questions = Questions(classes, release.table, table, policy, release.values)
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


@pytest.mark.parametrize(
    ("groups", "counts", "words"),
    [
        ([0, 0], [1, 0], "a count of 'x' is not positive"),
        ([0, 0], [1, None], "a count of 'x' is not positive"),
        ([0, 1], [1, 1], "are not of the same groups"),
        ([0, 0], [1, 1], "a group has more people than values"),
    ],
)
def test_tables_that_do_not_fit_are_refused(groups: list[int], counts: list[int | None], words: str) -> None:
    people = pl.DataFrame({"group": [0, 0, 0], "age": [1, 2, 3]})
    table = pl.DataFrame({"group": groups, "x": ["a", "b"], "count": counts}, schema_overrides={"count": pl.Int64})
    with pytest.raises(ValueError, match=words):
        counterfeits_of(people, {"x": table})


def test_counts_of_billions_are_counted_and_not_written_out() -> None:
    people = pl.DataFrame({"group": [0, 0], "age": [1, 2]})
    table = pl.DataFrame({"group": [0, 0], "x": ["a", "b"], "count": [10**15, 1]})
    assert counterfeits_of(people, {"x": table}).rows() == [(0, 10**15 - 1)]
    assert counterfeits_of(people, {"x": table.with_columns(count=pl.lit(2**62))}).rows() == [(0, 2**63 - 2)]


def arrivals(n: int = 60, releases: int = 3) -> list[pl.DataFrame]:
    """People who come, go and return, all of a cohort's values frequent enough."""
    rng = np.random.default_rng(4)
    everybody = people(n).with_columns(
        id=pl.int_range(n), disease=pl.Series((["flu", "ache", "gout", "cold", "burn", "HIV"] * n)[:n])
    )
    here = [rng.random(n) < 0.8 for _ in range(releases)]
    return [everybody.filter(pl.Series(mask)) for mask in here]


def series_rules(folder: Path, guarantee: dict[str, object], **method: object) -> dict[str, object]:
    policy = rules(folder, guarantee, people="boxes", **method)
    columns = {"id": "identifier", **policy["columns"]}  # type: ignore[dict-item]
    return {**policy, "columns": columns, "values": {"change": "never"}}


COHORTS: dict[str, object] = {"model": "compromise-safety", "m": 3, "k": 4}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_counterfeits_are_counts_and_people_are_real(form: str, tmp_path: Path) -> None:
    policy = {**series_rules(tmp_path, COHORTS, infeasible="withhold"), "output": {"format": form}}
    series = reveil.open_series(policy, home=tmp_path / "home")
    for table in arrivals():
        release = series.publish(table, new_people=True)
        assert release.values is not None and release.counterfeits is not None
        kept = table.filter(pl.Series(release.groups >= 0))
        assert release.table.height == kept.height
        shown = release.values["disease"]
        beyond = shown["count"].sum() - kept.height
        assert beyond == release.counterfeits["count"].sum() == release.certificate.counts["counterfeit rows"]
        sizes = release.table.group_by("sex", "age").len()["len"]
        assert sizes.min() >= 4 and release.certificate.counts["smallest box"] == sizes.min()
        files = sorted(path.name for path in release.public.iterdir())  # type: ignore[union-attr]
        assert files == ["datapackage.json", f"people.{form}", f"values.{form}"]
        opened = open_published(release.path)
        assert opened.counterfeits is not None and opened.counterfeits["count"].sum() == beyond
    assert beyond > 0
    assert all(found.holds for found in series.verify().values())  # type: ignore[union-attr]


def test_insensitive_cells_are_dealt_unless_they_are_to_stay(tmp_path: Path) -> None:
    """Everybody's ward tells whether their age is even: whether a row shows its own is seen from outside."""
    table = arrivals()[0].with_columns(ward=(pl.col("age") % 2).cast(pl.String))
    found = {}
    for kind in ("dealt", "own"):
        policy = series_rules(tmp_path, {"model": "compromise-safety", "m": 3})
        policy["method"] = {"publish": "anatomy", "people": "exact", "insensitive": kind, "infeasible": "withhold"}
        release = reveil.open_series(policy, home=tmp_path / kind).publish(table, seed=1)
        odd = release.table["age"].cast(pl.Int64) % 2
        found[kind] = (release.table["ward"] == odd.cast(pl.String)).mean()
        given = table.with_columns(group=pl.Series(release.groups)).group_by("group", "ward").len()
        shown = release.table.group_by("group", "ward").len()
        assert set(shown.iter_rows()) == set(given.filter(pl.col("group") >= 0).iter_rows())
        limits = " ".join(release.certificate.limits)
        assert ("Insensitive cells stay with their person (ward)" in limits) == (kind == "own")
    assert found["own"] == 1 and found["dealt"] < 0.9


def test_boxes_look_neither_at_values_nor_at_groups(tmp_path: Path) -> None:
    """The same people with values dealt anew, under the same lots: the same boxes."""
    table = arrivals()[0]
    shown = []
    for number in range(3):
        rng = np.random.default_rng(number)
        mixed = table.with_columns(disease=table["disease"].gather(rng.permutation(table.height)))
        home = tmp_path / str(number)
        home.mkdir()
        (home / "key").write_bytes(bytes(32))
        release = reveil.open_series(series_rules(tmp_path, COHORTS), home=home).publish(mixed, seed=1)
        shown.append(release.table.select("sex", "age").sort(pl.all()))
    assert all(one.equals(shown[0]) for one in shown)


def test_a_box_needs_k_people(tmp_path: Path) -> None:
    policy = series_rules(tmp_path, {**COHORTS, "k": 50})
    with pytest.raises(InfeasibleError, match=r"R681 .*a box is shared by at least k = 50"):
        reveil.open_series(policy, home=tmp_path / "home").publish(arrivals()[0])


def test_a_box_with_too_few_people_is_found_in_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reveil.plan import people as boxing

    policy = series_rules(tmp_path, COHORTS)
    table = arrivals()[0]
    monkeypatch.setattr(boxing, "box_people", lambda encoded, *rest: np.arange(encoded.rows, dtype=np.int32))
    with pytest.raises(GuaranteeError, match=r"k-anonymity: \d+ of \d+ boxes have fewer than 4 people"):
        reveil.open_series(policy, home=tmp_path / "home").publish(table, seed=1)


def test_the_form_of_an_earlier_version_is_refused_by_name(tmp_path: Path) -> None:
    people(4).select("age").with_columns(group=1).write_csv(tmp_path / "qit.csv")
    pl.DataFrame({"group": [1], "disease": ["flu"], "count": [4]}).write_csv(tmp_path / "st.csv")
    with pytest.raises(InputError, match=r"R680 .*tables qit and st, now people and values"):
        open_published(tmp_path)


def test_the_audit_counts_what_boxes_of_several_releases_leave(tmp_path: Path) -> None:
    series = reveil.open_series(series_rules(tmp_path, COHORTS, infeasible="withhold"), home=tmp_path / "home")
    trails: dict[int, list[object]] = {}
    least = 99
    for number, table in enumerate(arrivals()):
        series.publish(table, seed=number, new_people=True)
        boxes = series.ledger.memory(number + 1, "boxes")
        least = min(least, *boxes["box"].value_counts()["count"])
        for person, box in boxes.iter_rows():
            trails.setdefault(person, [None] * 3)[number] = box
    alike = [sum(other == trail for other in trails.values()) for trail in trails.values()]
    found = series.audit(worst=0)
    assert found.summary["presence"] == {
        "people": len(alike),
        "smallest_box": least,
        "fewer_than_a_box": sum(size < least for size in alike),
        "alone": alike.count(1),
        "median": float(np.median(alike)),
    }
    assert "Presence: in each release" in lines(found)


def test_measuring_and_asking_two_tables_of_a_series(tmp_path: Path) -> None:
    """A group's values, counterfeits among them, are its people's in equal parts; boxes match by their parts."""
    policy = series_rules(tmp_path, COHORTS, infeasible="withhold")
    series = reveil.open_series(policy, home=tmp_path / "home")
    for table in arrivals():
        release = series.publish(table, seed=1, new_people=True)
    assert release.values is not None
    found = measure(release, table, policy, queries=200)
    assert found.counterfeits == release.certificate.counts["counterfeit rows"] > 0
    assert 0 < found.ncp_mean < 1 and found.queries[-1].median_relative is not None
    total = release.values["disease"].group_by("group").agg(pl.col("count").sum())
    flu = release.values["disease"].filter(pl.col("disease") == "flu")
    shares = {g: Fraction(c, t) for g, _, c, t in flu.join(total, on="group").iter_rows()}
    everybody = reveil.ask(release, {"disease": "flu"})
    assert everybody.expected == sum(shares.get(group, Fraction(0)) for group in release.table["group"])
    young = reveil.ask(release, {"age": "[20-39]", "disease": "flu"}, policy)
    cells = [parse_cell(str(cell)) for cell in release.table["age"]]
    inside = [sum(cell.covers(age) for age in range(20, 40)) for cell in cells]
    sizes = [sum(cell.covers(age) for age in range(100)) for cell in cells]
    parts = [Fraction(a, b) for a, b in zip(inside, sizes, strict=True)]
    assert young.matching == sum(parts)
    assert young.between == (sum(part == 1 for part in parts), sum(part > 0 for part in parts))
    groups = release.table["group"]
    assert young.expected == sum(part * shares.get(group, 0) for part, group in zip(parts, groups, strict=True))
    assert young.least <= young.expected <= young.most


def test_the_gate_audits_two_tables(tmp_path: Path) -> None:
    """A series of releases that are l-diverse one by one is refused by the gate, closed cohorts are not."""
    alone = {"model": "l-diversity", "l": 3, "k": 4}
    for number, guarantee in enumerate((COHORTS, alone)):
        policy = {**series_rules(tmp_path, guarantee, infeasible="withhold"), "audit": {"gate": True}}
        series = reveil.open_series(policy, home=tmp_path / str(number))
        refused = 0
        for table in arrivals():
            try:
                series.publish(table, seed=1, new_people=True)
            except GuaranteeError as error:
                refused += any(fault.code == "R728" for fault in error.faults)
        assert refused == (0 if guarantee is COHORTS else 2)


def test_rows_look_alike_by_their_box_and_not_by_their_group(tmp_path: Path) -> None:
    table, policy = arrivals()[0], series_rules(tmp_path, COHORTS)
    release = reveil.open_series(policy, home=tmp_path / "home").publish(table, seed=1)
    found = risk_change(release.table, table, policy)
    assert found.after.smallest == release.certificate.counts["smallest box"] >= 4
    assert found.after.prosecutor.maximum == Fraction(1, found.after.smallest)


def test_a_list_of_people_finds_boxes_and_not_rows(tmp_path: Path) -> None:
    table = arrivals()[0]
    release = reveil.open_series(series_rules(tmp_path, COHORTS), home=tmp_path / "home").publish(table, seed=1)
    found = reveil.link(release, table.select("id", "sex", "age"), {**series_rules(tmp_path, COHORTS)}, present=True)
    assert found.people["rows"].min() >= 4
    assert found.people["disease chance"].max() <= Fraction(1, 3) + Fraction(1, 10**9)
