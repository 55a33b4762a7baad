"""The console as people use it: in a browser, from a file to hand-over, and where something goes wrong."""

from __future__ import annotations

import random
import re
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
from console_support import ILLS, Console, picture, quarter, sound

import reveil
from reveil.start.reading import first_look
from reveil.start.suggest import draft_policy, suggest
from reveil.table.options import ReadOptions
from support import workbook


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
    assert "guesses nobody else's 'Diagnosis' with more than 1/3" in page.inner_text("main")
    frame = first_look(str(tmp_path / "Quartal 1.csv"), ReadOptions()).frame
    assert "\nm = 4 " in draft_policy(suggest(frame), "x")  # with one known, `reveil init` suggests the same
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


def press(page: Any, words: str, key: str = "Enter") -> None:
    """Tab to a button, link or field by what it says, and press a key there."""
    said = (
        "(e => (e.labels && e.labels.length ? e.labels[0].textContent : e.textContent).trim())(document.activeElement)"
    )
    for _ in range(120):
        page.keyboard.press("Tab")
        if words in page.evaluate(said):
            page.keyboard.press(key)
            return
    raise AssertionError(f"no way to {words!r} with the keyboard")


def test_the_wizard_with_the_keyboard_alone(page: Any, console: Console, tmp_path: Path) -> None:
    """From the first page to a release, but for the file, which the system's own window chooses."""
    page.goto(f"{console.address}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    press(page, "New series" if page.locator("text=New series").count() else "Start a series")
    page.wait_for_url("**/new")
    page.set_input_files("#file", quarter(tmp_path / "keys.csv", rows=80))
    press(page, "Look at it")
    page.wait_for_url("**/columns")
    press(page, "Role of Admitted", "End")  # the last role: left out
    press(page, "Go on")
    page.wait_for_url("**/coarser")
    press(page, "Make a tree of Sex")
    page.wait_for_url("**/tree/2")
    for value in ("F", "M"):
        press(page, f"{value} ", "Space")
    page.focus("#group")
    page.keyboard.type("anybody")
    page.keyboard.press("Enter")
    page.wait_for_selector("strong:has-text('anybody')")
    press(page, "Back to all columns")
    page.wait_for_url("**/coarser")
    press(page, "Go on")
    page.wait_for_url("**/promise")
    press(page, "Best guess", "ArrowUp")
    press(page, "Compare settings")
    page.wait_for_url("**/compare")
    press(page, "Take it")
    page.wait_for_url("**/save")
    assert "hierarchy-2.csv" in page.inner_text("pre")
    press(page, "Begin, and make")
    page.wait_for_url("**/proposals/*")
    press(page, "Record and reveal")
    page.wait_for_url("**/releases/1")


HOSTILE = "<script>document.title='stolen'</script><img src=x>"


def test_hostile_content_on_every_page(page: Any, console: Console, tmp_path: Path) -> None:
    """Names of columns and values, of the series, notes and recipients are shown as they are, and do nothing."""
    lines = [f"patient id,age,{HOSTILE},diagnosis"]
    values = [f"{HOSTILE}{n}" for n in range(8)]
    lines += [f"P{i},{20 + i % 60},{HOSTILE if i % 2 else '{{ 7 * 7 }}'},{values[i % 8]}" for i in range(160)]
    (tmp_path / "hostile.csv").write_text("\n".join(lines))
    seen: list[str] = []

    def look(*more: str) -> None:
        for text in (HOSTILE, *more):
            assert text in page.inner_text("body"), page.url
        assert "stolen" not in page.title() or HOSTILE in page.title(), page.url
        assert page.locator("main img, main script").count() == 0, page.url
        seen.append(page.url)

    upload(page, console, tmp_path / "hostile.csv")
    page.wait_for_url("**/columns")
    look()
    page.fill("#name", HOSTILE[:80])
    for number, role in enumerate(("identifier", "quasi", "quasi", "sensitive")):
        page.select_option(f"#role-{number}", role)
    go_on(page, "Go on", "/coarser$")
    look("{{ 7 * 7 }}")
    page.click("button:has-text('Make a tree of')")
    page.wait_for_url("**/tree/2")
    look("{{ 7 * 7 }}")
    page.locator("input[name=node]").first.check()
    page.fill("#group", f"{HOSTILE[:60]}group")
    page.click("button:has-text('Put the ticked')")
    page.wait_for_selector("strong")
    look()
    page.click("text=Back to all columns")
    go_on(page, "Go on", "/promise$")
    look()
    for place, words in (("/compare$", "Compare settings"), ("/save$", "Take it"), ("/proposals/", "Begin, and make")):
        go_on(page, words, place)
        look()
    go_on(page, "Record and reveal", "/releases/1$")
    page.fill("#recipient", HOSTILE)
    with page.expect_download():
        page.click("text=Hand over (download)")
    page.reload()
    look()
    key = page.url.split("/series/")[1].split("/")[0]
    page.goto(f"{console.address}/series/{key}/years")
    page.fill("#note", HOSTILE)
    page.click("button:has-text('Retract')")
    page.wait_for_selector("text=Done and recorded")
    page.goto(f"{console.address}/series/{key}/audit")
    page.fill("#people", HOSTILE)
    page.click("button:has-text('Attack')")
    page.wait_for_selector(".fault, .verdict")
    assert page.locator("main img, main script").count() == 0
    for place in ("", "/publish", "/years"):
        page.goto(f"{console.address}/series/{key}{place}")
        look()
        sound(page)
    for place in ("", "jobs", "log", "tokens"):
        page.goto(f"{console.address}/{place}")
        assert page.locator("main img, main script").count() == 0
    assert len(seen) > 10


def messy(path: Path, *, sums: bool) -> Path:
    """A workbook as somebody keeps it: notes on another sheet, a title above, sums below."""
    chance, people = random.Random(5), list[list[Any]]()
    for i in range(200):
        person = [f"P{1000 + i}", chance.randint(18, 90), chance.choice(["m", "w"]), chance.randint(10000, 10999)]
        people.append([*person, chance.choice(ILLS)])
    header = ["Patient No", "Age", "Sex", "Postcode", "Diagnosis"]
    total = [[None] * 5, ["Total", sum(int(one[1]) for one in people), None, None, None]]
    rows = [["Admissions, first quarter", *[None] * 4], [None] * 5, header, *people, *(total if sums else [])]
    return workbook(path, {"Notes": [["ask Eva about ward 3"]], "Patients": rows})


def test_a_messy_workbook_to_hand_over(page: Any, console: Console, tmp_path: Path) -> None:
    """Whatever is doubted is asked about on the way; who corrects the workbook is led back to sending it."""
    upload(page, console, messy(tmp_path / "Patients 2025.xlsx", sums=True))
    for sums in (True, False):
        page.wait_for_selector("#sheet")
        sound(page)
        page.fill("#sheet", "Patients")
        page.click("button:has-text('Go on')")
        if sums:
            page.wait_for_selector(".fault:has-text('looks like a sum')")
            page.click("text=Choose another file")
            page.set_input_files("#file", messy(tmp_path / "Patients 2025.xlsx", sums=False))
            page.click("text=Look at it")
    page.wait_for_url("**/columns")
    assert "200 rows, 5 columns" in page.inner_text("main")
    assert "Above the names of columns: 2 lines, left out" in page.inner_text("main")
    go_on(page, "Go on", "/coarser$")
    go_on(page, "Go on", "/promise$")
    go_on(page, "Compare settings", "/compare$")
    go_on(page, "Take it", "/save$")
    go_on(page, "Begin, and make", "/proposals/")
    go_on(page, "Record and reveal", "/releases/1$")
    with page.expect_download() as started:
        page.click("text=Hand over (download)")
    assert started.value.suggested_filename.endswith("-release-0001.zip")
