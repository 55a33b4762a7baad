"""A table with several rows per person, in the browser: one release by itself, and the same as `anonymize` makes."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
from console_support import Console, sound

import reveil
from reveil.jobs.specs import VerifySpec


def visits(path: Path) -> Path:
    chance, ills = random.Random(3), ["flu", "gout", "asthma", "ulcer"]
    lines = ["patient id;age;sex;ward;diagnosis"]
    for person in range(120):
        for _ in range(chance.randint(1, 3)):
            known = f"P{person};{20 + person % 60};{'FM'[person % 2]}"
            lines.append(f"{known};{chance.choice('ABC')};{chance.choice(ills)}")
    path.write_text("\n".join(lines))
    return path


def test_visits_become_one_release(page: Any, console: Console, tmp_path: Path) -> None:
    page.goto(f"{console.address}/new")
    page.set_input_files("#file", visits(tmp_path / "visits.csv"))
    page.click("text=Look at it")
    page.wait_for_url("**/columns")
    assert "120 people by patient id, with up to 3 rows" in page.inner_text("main")
    for number, role in enumerate(("identifier", "quasi", "quasi", "quasi", "sensitive")):
        page.select_option(f"#role-{number}", role)
    page.click("button:has-text('Go on')")
    page.wait_for_url("**/coarser")
    page.click("button:has-text('Go on')")
    page.wait_for_url("**/alone")
    sound(page)
    page.fill("#k", "1")
    page.click("button:has-text('Show what follows')", no_wait_after=True)
    assert page.evaluate("document.querySelector('#k').validity.rangeUnderflow")
    page.fill("#k", "4")
    page.fill("#most", "2")
    page.click("button:has-text('Show what follows')")
    page.wait_for_selector("summary:has-text('The policy')")
    assert "most = 2" in page.text_content("details pre")
    page.click("button:has-text('Make the release')")
    page.wait_for_url("**/alone/*")
    assert "The promise holds" in page.inner_text("main")
    sound(page)
    page.fill("#recipient", "the <b>ministry</b>")
    with page.expect_download() as started:
        page.click("text=Hand over (download)")
    started.value.save_as(tmp_path / "handed.zip")
    zipfile.ZipFile(tmp_path / "handed.zip").extractall(tmp_path / "handed")
    (table,) = (tmp_path / "handed").glob("*/table.csv")
    published = pl.read_csv(table)
    assert published["person"].n_unique() <= 120
    assert published.group_by("person").len()["len"].max() <= 2
    page.reload()
    assert "to the <b>ministry</b>" in page.inner_text("main")
    folder = console.place.entry("alone", page.url.rpartition("/")[2])
    alone = reveil.anonymize(str(tmp_path / "visits.csv"), folder / "reveil.toml")
    checked: Any = VerifySpec(folder / "reveil.toml", str(folder / "out" / "public")).run()
    assert checked.holds
    assert alone.certificate.counts["input people"] == 120
    assert not any("visits" in one["name"] for one in console.place.uploads())
    page.goto(console.address)
    page.click("section:has-text('Releases by themselves') >> a")
    page.click("button:has-text('Delete it here')")
    page.wait_for_url(f"{console.address}/")
    assert not folder.exists()
    actions = [line["action"] for line in console.app.state.log.lines()]
    assert {"asked for a release by itself", "handed over", "deleted a release by itself"} <= set(actions)
