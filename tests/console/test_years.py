"""A series that lives for years, in the browser and over HTTP: what is done, who may, and what is kept of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from console_support import Console, sound
from starlette.testclient import TestClient

import reveil
from reveil.history.recorded import history_of
from reveil.ledger.ledger import Ledger
from reveil.serve import people as accounts
from reveil.serve.app import create_app
from reveil.serve.people import Accounts
from reveil.serve.place import Place
from reveil.serve.security import Door

HOST, PASSWORD = "127.0.0.1:8000", "correct horse battery"
POLICY = """
[series]
name = "years"
[columns]
who = "identifier"
age = "quasi"
illness = "sensitive"
[values]
change = "never"
[guarantee]
model = "compromise-safety"
m = 3
[method]
infeasible = "withhold"
"""


def table(**values: str) -> pl.DataFrame:
    rows = [{"who": f"p{i}", "age": 20 + i, "illness": values.get(f"p{i}", "abcdef"[i % 6])} for i in range(30)]
    return pl.DataFrame(rows)


def begun(place: Place, name: str) -> Ledger:
    """A series with one release that somebody has."""
    folder = place.folder / name
    folder.mkdir()
    (folder / "reveil.toml").write_text(POLICY)
    series = reveil.open_series(folder / "reveil.toml")
    series.publish(table(), seed=1)
    series.hand_over(folder / "out", recipient="the ministry")
    return series.ledger


def test_in_the_browser(page: Any, console: Console, tmp_path: Path) -> None:
    ledger = begun(console.place, "years")
    address = f"{console.address}/series/years"
    page.goto(address)
    page.click("text=Years later")
    sound(page)
    wrong = tmp_path / "right.csv"
    table(p5="z").filter(pl.col("who") == "p5").write_csv(wrong)
    page.set_input_files("#file", wrong)
    page.click("button:has-text('Correct')")
    page.wait_for_selector("text=1 person would be corrected")
    page.goto(f"{address}/years")
    page.set_input_files("#file", wrong)
    page.locator("form[action$=correct] input[name=sure]").check()
    page.click("button:has-text('Correct')")
    page.wait_for_selector("li:has-text('corrected')")
    assert "corrected by ann (1 person)" in page.inner_text("main")
    page.fill("#identifiers", "p7\np8")
    page.click("button:has-text('Erase')")
    page.wait_for_selector("text=2 people would be erased")
    page.go_back()
    page.fill("#identifiers", "p7\np8")
    page.locator("form[action$=erase] input[name=sure]").check()
    page.click("button:has-text('Erase')")
    page.wait_for_selector("text=release 1 to the ministry")
    sound(page)
    page.click("a.button:has-text('Back')")
    page.fill("#note", "two columns were swapped")
    page.click("button:has-text('Retract')")
    page.wait_for_selector("text=Done and recorded")
    everybody, key = tmp_path / "everybody.csv", (console.place.folder / "years" / ".reveil" / "key").read_bytes()
    table().write_csv(everybody)
    for tables, end in (([wrong], ".fault:has-text('right.csv')"), ([everybody, wrong], "li:has-text('key changed')")):
        page.goto(f"{address}/years")
        page.set_input_files("#tables", tables)
        page.locator("form[action$=rotate] input[name=forget]").check()
        page.click("button:has-text('Take another key')")
        page.wait_for_selector(end if "key changed" in end else ".fault")
    assert (console.place.folder / "years" / ".reveil" / "key").read_bytes() != key
    page.goto(f"{address}/years")
    page.locator("form[action$=end] input[name=sure]").check()
    page.click("button:has-text('End the series')")
    page.wait_for_selector("text=Done and recorded")
    page.goto(address)
    assert "Publish a table" not in page.inner_text("main")
    sound(page)
    past = history_of(ledger, ledger.snapshot())
    assert (past.corrections.height, past.erased.height) == (1, 2)
    files = [path for path in console.place.state.rglob("*") if path.is_file()]
    kept = [path for path in files if re.search(rb"\bp7\b", path.read_bytes())]
    assert kept == []  # no job, log or draft says who was erased
    actions = [line["action"] for line in console.app.state.log.lines() if line["object"] == "years"]
    assert actions[:5] == ["ended", *["asked for another key"] * 2, "retracted", "erased"]


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TestClient, Door, Ledger]:
    hasher = accounts.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(accounts, "PasswordHasher", lambda: hasher)
    place = Place(tmp_path)
    place.lay_out()
    people = Accounts(place.state / "people.sqlite")
    people.found("root", PASSWORD)
    for name, role in (("ann", "steward"), ("eve", "officer"), ("ben", "reader")):
        people.add(name)
        people.set_password(name, PASSWORD)
        people.grant(name, "years", role, by="root")
    ledger, door = begun(place, "years"), Door()
    return TestClient(create_app(place, door, (HOST,), "", people), base_url=f"http://{HOST}"), door, ledger


def asked(client: TestClient, door: Door, who: str, password: str = PASSWORD) -> Any:
    client.get(f"/enter?key={door.link(who)}")
    form = {"token": client.get("/api/v1/me").json()["token"], "password": password}
    return client.post("/series/years/years/erase", data={**form, "identifiers": "p7", "sure": "yes"})


def test_two_people_of_a_team(office: tuple[TestClient, Door, Ledger]) -> None:
    client, door, ledger = office
    assert asked(client, door, "eve").status_code == 403  # without four eyes it is the steward's
    ledger.approval.require_four_eyes(True, by="root")
    assert asked(client, door, "ben").status_code == 403
    assert "R856" in asked(client, door, "ann", "wrong").text
    assert "Noted, not done yet" in asked(client, door, "ann").text
    again = asked(client, door, "ann")
    assert (again.status_code, "R552" in again.text) == (422, True)
    assert "Done and recorded" in asked(client, door, "eve").text
    assert history_of(Ledger.open(ledger.home)).erased.height == 1
    assert "asked to be erased" in client.get("/series/years/years").text


def test_what_the_page_says_of_the_command_line(office: tuple[TestClient, Door, Ledger]) -> None:
    client, door, _ = office
    client.get(f"/enter?key={door.link('ann')}")
    form = {"token": client.get("/api/v1/me").json()["token"], "password": PASSWORD, "sure": "yes"}
    for number in ("\u00b2", "7", "x"):
        refused = client.post("/series/years/years/retract", data={**form, "number": number})
        assert (refused.status_code, "R510" in refused.text) == (422, True)
    merged = client.post("/series/years/years/merge", data={**form, "one": "p3", "other": "p4"})
    assert "see reveil people merge --help" in merged.text
