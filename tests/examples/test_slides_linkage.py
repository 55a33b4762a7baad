"""The lecture's linkage examples and its anatomy of ten rows: what the slides state, computed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import reveil
from reveil.measure.ask import ask
from reveil.measure.link import Linked, link
from reveil.measure.measure import measure

PATIENTS = pl.DataFrame(
    [
        ("47677", 29, "F", "Ovarian Cancer"),
        ("47602", 22, "F", "Ovarian Cancer"),
        ("47678", 27, "M", "Prostate Cancer"),
        ("47905", 43, "M", "Flu"),
        ("47909", 52, "F", "Heart Disease"),
        ("47906", 47, "M", "Heart Disease"),
    ],
    schema=["zip", "age", "sex", "disease"],
    orient="row",
)
VOTERS = pl.DataFrame(
    [
        ("Alice", "47677", 29, "F"),
        ("Bob", "47983", 65, "M"),
        ("Carol", "47677", 22, "F"),
        ("Dan", "47532", 23, "M"),
        ("Ellen", "46789", 43, "F"),
    ],
    schema=["name", "zip", "age", "sex"],
    orient="row",
)
GENERALISED = pl.DataFrame(
    [
        ("476**", "2*", "*", "Ovarian Cancer"),
        ("476**", "2*", "*", "Ovarian Cancer"),
        ("476**", "2*", "*", "Prostate Cancer"),
        ("4790*", "[43,52]", "*", "Flu"),
        ("4790*", "[43,52]", "*", "Heart Disease"),
        ("4790*", "[43,52]", "*", "Heart Disease"),
    ],
    schema=["zip", "age", "sex", "disease"],
    orient="row",
)


def by_name(found: Linked) -> dict[str, dict[str, object]]:
    return {line["name"]: line for line in found.people.to_dicts()}


def test_alice_is_found_in_the_raw_table_and_not_in_the_generalised_one() -> None:
    raw = link(PATIENTS, VOTERS)
    assert raw.found["name"].to_list() == ["Alice"]
    assert by_name(raw)["Alice"]["disease"] == "Ovarian Cancer"
    assert by_name(raw)["Alice"]["disease chance"] == 1
    assert raw.people["rows"].to_list() == [1, 0, 0, 0, 0]
    after = link(GENERALISED, VOTERS, original=PATIENTS)
    alice, carol = by_name(after)["Alice"], by_name(after)["Carol"]
    assert alice["confidence before"] == 1
    assert alice["rows"] == carol["rows"] == 3  # "he still does not know which of the first 3 records is Alice's"
    assert alice["people"] == 2
    assert alice["confidence"] == pytest.approx(1 / 3)
    assert alice["disease chance"] == pytest.approx(2 / 3)  # "is that correct?": her disease is likely all the same
    assert after.summary["before"]["certain"] == 1
    assert after.summary["after"]["certain"] == 0


RECORDS = pl.DataFrame(
    [
        ("10598", 24, "HIV"),
        ("90210", 37, "Hepatitis C"),
        ("10547", 26, "HIV"),
        ("90345", 38, "Hepatitis C"),
        ("89119", 36, "Diabetes"),
        ("02139", 25, "HIV"),
    ],
    schema=["zip", "age", "disease"],
    orient="row",
)
ELECTORS = pl.DataFrame(
    [
        ("Mary A.", "90345", 38),
        ("John S.", "89119", 36),
        ("Ann L.", "02139", 31),
        ("Jack M.", "10562", 57),
        ("Joy M.", "10547", 26),
        ("Victor B.", "90345", 46),
        ("Peter P.", "01239", 25),
        ("Diana X.", "10598", 24),
        ("William W.", "90210", 37),
        ("Sue G.", "10547", 26),
    ],
    schema=["name", "zip", "age"],
    orient="row",
)
REGIONS = pl.DataFrame(
    [
        ("[20, 30]", "Northeastern US", "HIV"),
        ("[30, 40]", "Western US", "Hepatitis C"),
        ("[20, 30]", "Northeastern US", "HIV"),
        ("[30, 40]", "Western US", "Hepatitis C"),
        ("[30, 40]", "Western US", "Diabetes"),
        ("[20, 30]", "Northeastern US", "HIV"),
    ],
    schema=["age", "zip", "disease"],
    orient="row",
)
US = {
    "Northeastern US": ["10598", "10547", "02139", "10562", "01239"],
    "Western US": ["90210", "90345", "89119"],
}


def test_ssn_table_raw() -> None:
    found = link(RECORDS, ELECTORS)
    assert sorted(found.found["name"]) == ["Diana X.", "John S.", "Mary A.", "William W."]
    people = by_name(found)
    assert people["William W."]["disease"] == "Hepatitis C"  # QID = <90210, 37>
    for name in ("Joy M.", "Sue G."):  # QID = <10547, 26>: one record, two people
        assert (people[name]["rows"], people[name]["people"], people[name]["confidence"]) == (1, 2, 0.5)
    for name in ("Ann L.", "Jack M.", "Victor B.", "Peter P."):
        assert people[name]["rows"] == 0
    present = link(RECORDS, ELECTORS, present=True)
    assert by_name(present)["Joy M."]["confidence"] == 1


def test_ssn_table_3_anonymised() -> None:
    policy = {
        "columns": {"zip": {"role": "quasi", "hierarchy": US}, "age": "quasi", "disease": "sensitive"},
        "guarantee": {"k": 3},
    }
    assert reveil.check(REGIONS, policy).holds
    found = link(REGIONS, ELECTORS, policy, original=RECORDS)
    people = by_name(found)
    assert found.summary["before"]["certain"] == 4
    assert found.summary["after"]["certain"] == 0
    for name in ("Mary A.", "John S.", "William W."):
        assert (people[name]["rows"], people[name]["people"]) == (3, 3)
    for name in ("Joy M.", "Sue G.", "Diana X.", "Peter P."):
        assert (people[name]["rows"], people[name]["people"], people[name]["confidence"]) == (3, 4, 0.25)
        assert people[name]["disease chance"] == 1  # 3-anonymous, and yet: all three have HIV (homogeneity)
    assert people["Ann L."]["rows"] == 0


QIT = pl.DataFrame(
    {
        "age": [30, 30, 30, 32, 32, 32, 36, 38, 38, 38],
        "sex": ["Male"] * 6 + ["Female"] * 4,
        "group": [1] * 6 + [2] * 4,
    }
)
ST = pl.DataFrame({"group": [1, 1, 2, 2], "disease": ["Hepatitis", "HIV", "Flu", "Heart"], "count": [3, 3, 2, 2]})
ANATOMY = {
    "columns": {"age": "quasi", "sex": "quasi", "disease": "sensitive"},
    "guarantee": {"model": "l-diversity", "l": 2},
    "method": {"publish": "anatomy", "people": "exact"},
}


def both_tables() -> pl.DataFrame:
    """People beside the values of their group, in any order."""
    values = ST.select("group", pl.col("disease").repeat_by("count")).explode("disease")
    return QIT.sort("group").with_columns(values.sort("group")["disease"])


def test_anatomy_of_ten_rows() -> None:
    both = both_tables()
    assert reveil.check(both, ANATOMY).holds
    assert not reveil.check(both, {**ANATOMY, "guarantee": {"model": "l-diversity", "l": 3}}).holds
    # "The probability of linking a record to a sensitive value is 1/l = 1/2 = 50 %."
    people = QIT.drop("group").with_row_index("name")
    found = link(_release(), people, by=["age", "sex"], name="name")
    assert (found.people["disease chance"] == 0.5).all()


def _release() -> object:
    """What a recipient holds, as `reveil.measure.link` and `reveil.ask` take it."""
    return SimpleNamespace(certificate=None, table=QIT, counterfeits=None, values={"disease": ST})


@pytest.mark.parametrize(
    ("where", "expected", "least", "most"),
    [
        ({"disease": "HIV"}, 3, 3, 3),
        ({"age": 30, "disease": "HIV"}, Fraction(3, 2), 0, 3),
        ({"age": 36, "disease": "Heart"}, Fraction(1, 2), 0, 1),
        ({"sex": "Female", "disease": "Flu"}, 2, 2, 2),
        ({"age": "[30-36]", "disease": "{HIV,Flu}"}, Fraction(7, 2), 3, 4),
        ({"sex": "Female", "disease": "HIV"}, 0, 0, 0),
        ({"age": ">=32"}, 7, 7, 7),
    ],
)
def test_counting_in_the_anatomy(where: dict[str, object], expected: Fraction, least: int, most: int) -> None:
    found = ask((QIT, {"disease": ST}), where)
    assert (found.expected, found.least, found.most) == (expected, least, most)


def test_the_anatomy_as_files(tmp_path: Path) -> None:
    QIT.write_csv(tmp_path / "people.csv")
    ST.write_csv(tmp_path / "values.csv")
    assert ask(tmp_path, {"age": "30", "disease": "HIV"}).expected == Fraction(3, 2)
    original = both_tables().drop("group")
    found = measure(QIT, original, ANATOMY, values={"disease": ST}, queries=200)
    assert found.ncp_mean == 0  # quasi-identifiers are exact
    assert found.classes == 2
    assert found.average_class == 5
