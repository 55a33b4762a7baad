"""The console as people use it: in a browser, from a file to hand-over, and where something goes wrong."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from console_support import Console, picture, quarter, sound

import reveil


def upload(page: Any, console: Console, file: Path) -> None:
    page.goto(f"{console.address}/new")
    page.set_input_files("#file", file)
    page.click("text=Look at it")


def go_on(page: Any, words: str, place: str) -> None:
    page.click(f"button:has-text('{words}')")
    page.wait_for_url(re.compile(place))


def test_from_a_file_to_hand_over(page: Any, console: Console, tmp_path: Path) -> None:
    """Every page on the way is without violations; the reload in the middle loses nothing."""
    sound(page)
    upload(page, console, quarter(tmp_path / "Quartal 1.csv"))
    page.wait_for_url("**/columns")
    assert "280 rows, 7 columns" in page.inner_text("main")
    assert "280 of 280 people are unique" in page.inner_text("#alone")
    sound(page)
    picture(page, "columns")
    page.select_option("#role-4", "drop")
    page.wait_for_selector("#alone-text:not(.busy)")
    page.reload()
    page.select_option("#role-4", "drop")
    page.fill("#name", "Admissions")
    go_on(page, "Go on", "/coarser$")
    assert "10***" in page.inner_text("main")  # postcodes by their first characters
    sound(page)
    go_on(page, "Go on", "/promise$")
    assert "guesses nobody else's 'Diagnosis' with more than 1/4" in page.inner_text("main")
    sound(page)
    picture(page, "promise")
    go_on(page, "Compare settings", "/compare$")
    assert "two tables, people in boxes" in page.inner_text("main")
    sound(page)
    picture(page, "compare")
    page.reload()
    go_on(page, "Take it", "/save$")
    assert 'model = "compromise-safety"' in page.inner_text("pre")
    sound(page)
    go_on(page, "Begin, and make the first release", "/proposals/")
    assert "The promise holds" in page.inner_text("main")
    sound(page)
    picture(page, "proposal")
    go_on(page, "Record and reveal", "/releases/1$")
    page.fill("#recipient", "Ministry of Health")
    sound(page)
    with page.expect_download() as started:
        page.click("text=Hand over (download)")
    started.value.save_as(tmp_path / "handed.zip")
    names = zipfile.ZipFile(tmp_path / "handed.zip").namelist()
    assert "admissions-release-0001/people.csv" in names
    assert not any("private" in name or "memory" in name for name in names)
    page.reload()
    assert "to Ministry of Health" in page.inner_text("main")
    assert not any("Quartal 1" in one["name"] for one in console.place.uploads())  # deleted as soon as it is recorded
    folder = console.place.folder / "admissions"
    series = reveil.open_series(folder / "reveil.toml")
    assert series.ledger.check() == []
    assert [str(record.state) for record in series.ledger.records()] == ["handed over"]
    next_table(page, console, tmp_path)


def next_table(page: Any, console: Console, tmp_path: Path) -> None:
    """The second quarter: withdrawn once, then published; attacked; and found tampered with."""
    page.goto(f"{console.address}/series/admissions")
    sound(page)
    picture(page, "series")
    for act in ("Withdraw", "Record and reveal"):
        page.goto(f"{console.address}/series/admissions/publish")
        page.set_input_files("#file", quarter(tmp_path / "Quartal 2.csv", 2))
        page.click("text=Make the release")
        page.wait_for_url("**/proposals/*")
        assert "came back" in page.inner_text("main")
        page.click(f"button:has-text('{act}')")
        page.wait_for_url(re.compile("/series/admissions$" if act == "Withdraw" else "/releases/2$"))
    page.goto(f"{console.address}/series/admissions/audit")
    page.click("button:has-text('Attack')")
    page.wait_for_selector(".verdict")
    assert "The promise holds" in page.inner_text(".verdict")
    sound(page)
    table = console.place.folder / "admissions" / ".reveil" / "releases" / "0002" / "public" / "people.csv"
    table.write_bytes(table.read_bytes().replace(b"F", b"M", 1))
    page.goto(f"{console.address}/series/admissions/releases/2")
    page.click("text=Verify again")
    page.wait_for_selector(".verdict.bad")
    assert "not as it was recorded" in page.inner_text("main")
    sound(page)
    page.fill("#recipient", "somebody")
    page.click("text=Hand over (download)")
    assert "R524" in page.content()  # what is not as recorded leaves by no door
    for place in ("", "jobs", "log", "explain/R524"):
        page.goto(f"{console.address}/{place}")
        sound(page)
    assert "handed over" in _text(page, f"{console.address}/log")


def _text(page: Any, address: str) -> str:
    page.goto(address)
    return str(page.inner_text("main"))


def test_one_persons_picture(page: Any, console: Console) -> None:
    """Under a promise that is none for a series, the audit shows who is exposed, and the chain of inference."""
    folder = console.place.folder / "naive"
    folder.mkdir()
    policy = (
        '[series]\nname = "naive"\n[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n[guarantee]\nk = 2\n'
    )
    (folder / "reveil.toml").write_text(policy)
    people = pl.DataFrame(
        {"id": ["Ann", "Bob", "Cid", "Dan"], "age": [20, 21, 40, 41], "ill": ["flu", "flu", "gout", "flu"]}
    )
    reveil.open_series(folder / "reveil.toml").publish(people, seed=1)
    page.goto(f"{console.address}/series/naive/audit")
    page.click("button:has-text('Attack')")
    page.wait_for_selector(".verdict.bad")
    frame = page.frame_locator("iframe")
    assert frame.locator(".box.mine").count() > 0  # groups as boxes, release by release
    assert "flu" in frame.locator(".path").first.inner_text()


def test_a_bad_file_and_a_doubtful_one(page: Any, console: Console, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n3\n")
    upload(page, console, bad)
    page.wait_for_selector(".fault")
    assert "Way out" in page.inner_text("main")
    sound(page)
    doubtful = quarter(tmp_path / "sums.csv", rows=60)
    doubtful.write_bytes(doubtful.read_bytes() + b"\nTotal;5000;;;;;")
    upload(page, console, doubtful)
    page.wait_for_selector(".fault, #alone")
    if page.locator(".fault").count():
        sound(page)
        for box in page.locator("input[type=checkbox]").all():
            box.check()
        page.click("button:has-text('Go on')")
        page.wait_for_selector(".fault, #alone")
    (tmp_path / "table.exe").write_bytes(b"MZ")
    upload(page, console, tmp_path / "table.exe")
    page.wait_for_selector(".fault")
    assert "R102" in page.content()


def test_cancelled_and_kept(page: Any, console: Console, tmp_path: Path) -> None:
    """A comparison that is cancelled leaves the draft as it was."""
    upload(page, console, quarter(tmp_path / "cancel.csv", rows=80))
    page.wait_for_url("**/columns")
    go_on(page, "Go on", "/coarser$")
    go_on(page, "Go on", "/promise$")
    page.click("button:has-text('Compare settings')")
    page.wait_for_url(re.compile("/jobs/"))
    page.click("button:has-text('Cancel')")
    page.wait_for_selector("text=It was cancelled")
    page.goto(f"{console.address}/")
    page.click("text=cancel >> nth=0")
    page.wait_for_url("**/columns")


def test_without_javascript(browser: Any, console: Console, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(90_000)
    page = context.new_page()
    page.goto(console.link())
    upload(page, console, quarter(tmp_path / "plain.csv", rows=60))
    page.wait_for_url("**/columns")  # the page of the job asks again by itself
    go_on(page, "Go on", "/coarser$")
    go_on(page, "Go on", "/promise$")
    go_on(page, "Compare settings", "/compare$")
    go_on(page, "Take it", "/save$")
    go_on(page, "Begin, and make", "/proposals/")
    go_on(page, "Withdraw", "/series/plain$")
    context.close()


def test_with_the_keyboard_alone(page: Any, console: Console) -> None:
    page.goto(f"{console.address}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == "/new":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/new")
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "file":
            break
    assert page.evaluate("document.activeElement.id") == "file"


@pytest.mark.parametrize("dark", [False, True])
def test_narrow_and_dark(browser: Any, console: Console, dark: bool) -> None:
    """Nothing is cut off on a telephone, and contrast holds in the dark."""
    context = browser.new_context(viewport={"width": 375, "height": 720}, color_scheme="dark" if dark else "light")
    page = context.new_page()
    page.goto(console.link())
    for place in ("", "new", "jobs", "log"):
        page.goto(f"{console.address}/{place}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
        sound(page)
    context.close()


HOSTILE = "<script>document.title='stolen'</script><img src=x onerror=alert(1)>"


def test_hostile_names_and_values(page: Any, console: Console, tmp_path: Path) -> None:
    lines = [f"patient id,{HOSTILE},diagnosis"]
    lines += [f"P{i},{HOSTILE if i % 2 else '{{ 7 * 7 }}'},{HOSTILE if i % 3 else 'flu'}" for i in range(40)]
    (tmp_path / "hostile.csv").write_text("\n".join(lines))
    upload(page, console, tmp_path / "hostile.csv")
    page.wait_for_selector("#alone, .fault")
    assert "stolen" not in page.title()
    assert "<script>document.title" in page.inner_text("main")
    assert page.locator("main img").count() == 0
    draft = json.dumps(console.place.drafts()[0])
    assert "stolen" in draft
