"""Somebody who was away comes back to a large cohort of changing values: what everybody is told about it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import GuaranteeError
from reveil.published.format import PUBLIC
from support import cli

POLICY = """
[columns]
name = "identifier"
age = "quasi"
illness = "sensitive"
[values]
change = "transitions"
transitions = { a = ["a", "b"], b = ["a", "b"], c = ["c", "d"], d = ["c", "d"] }
[guarantee]
model = "m-distinct"
m = 3
compromised = 1
places = 12
k = 3
[method]
publish = "anatomy"
infeasible = "withhold"
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve people, three of whom are away in the second of three releases."""
    folder = tmp_path_factory.mktemp("office")
    (folder / "reveil.toml").write_text(POLICY)
    people = pl.DataFrame(
        {"name": [f"p{i:02}" for i in range(12)], "age": range(30, 42), "illness": ["abcd"[i % 4] for i in range(12)]}
    )
    people.write_csv(folder / "1.csv")
    people[3:].write_csv(folder / "2.csv")
    people.with_columns(pl.col("age") + 2).write_csv(folder / "3.csv")
    for number in (1, 2, 3):
        code, out, err = cli("publish", str(folder / f"{number}.csv"), "-p", str(folder / "reveil.toml"), "--seed", "1")
        assert code == 0, err
        if number == 3:
            assert "12 people" in out and "3 of which stand in for people who are shown" in out
            assert "3 people have a stand-in" in out
    return folder


def test_everybody_is_among_the_people_and_the_values_are_those_of_places(office: Path) -> None:
    series = reveil.open_series(office / "reveil.toml")
    first, second, third = series.releases
    assert [release.table.height for release in series.releases] == [12, 9, 12]
    assert third.with_stand_in is not None and third.with_stand_in.tolist() == [True] * 3 + [False] * 9
    assert set(third.groups.tolist()) == {0} and third.values is not None
    assert third.values["illness"]["count"].sum() == 12
    assert third.counterfeits is not None and third.counterfeits["count"].to_list() == [0]
    assert second.counterfeits is not None and second.counterfeits["count"].to_list() == [3]
    assert third.certificate.counts["people with a stand-in"] == 3
    assert (third.certificate.counts["withheld rows"], third.certificate.counts["counterfeit rows"]) == (0, 3)
    assert "stand" not in str(first.certificate.counts)


def test_verify_audit_and_the_commands_that_look_back_agree(office: Path) -> None:
    series = reveil.open_series(office / "reveil.toml")
    found = series.verify()
    assert all(one.holds for one in found.values()) and found[3].stand_ins == 3
    audit = series.audit(limit=5.0)
    assert audit.summary["exposed"] == 0 and audit.summary["above_promise"] == 0
    policy = ["-p", str(office / "reveil.toml")]
    code, out, err = cli("show", "3", "--affected", str(office / "3.csv"), *policy)
    assert code == 0 and "0 people of this table are not shown" in out, out + err
    for command in ("history", "verify", "audit"):
        code, out, err = cli(command, *policy)
        assert code == 0, (command, out, err)
    code, out, err = cli("expand", str(office / ".reveil" / "releases" / "0003"), "--out", str(office / "long"))
    assert code == 0, err
    assert pl.read_csv(office / "long" / "expanded.csv")["weight"].sum() == pytest.approx(12)
    code, out, err = cli("plan", str(office / "3.csv"), *policy, "--accept", "same-table")
    assert code == 0 and "12 people" in out and "3 people are shown while a counterfeit stands in" in out
    code, out, err = cli("plan", str(office / "3.csv"), *policy, "--ahead", "2", "--accept", "same-table")
    assert code == 0, out + err


def test_a_publisher_who_forgets_who_was_away_is_found_out(office: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the word about stand-ins people and values do not fit what was put in."""
    from reveil import publish

    said = publish.truth_of

    def silent(*about: object) -> object:
        from dataclasses import replace

        return replace(said(*about), stand_ins=None)  # type: ignore[arg-type]

    monkeypatch.setattr(publish, "truth_of", silent)
    series = reveil.open_series(office / "reveil.toml")
    with pytest.raises(GuaranteeError):
        series.publish(office / "3.csv", accept=["same-table"])
    assert len(series.releases) == 3 and not list((office / ".reveil" / "staging").glob("*"))


def test_public_bytes_do_not_say_who_is_stood_in_for(office: Path) -> None:
    public = office / ".reveil" / "releases" / "0003" / PUBLIC
    assert sorted(path.name for path in public.iterdir()) == ["datapackage.json", "people.csv", "values.csv"]
    assert b"stand" not in b"".join(path.read_bytes() for path in public.iterdir())
