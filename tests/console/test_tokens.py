"""The page of tokens, and the adversary by questions: what is asked for is what the audit is told."""

from __future__ import annotations

from typing import Any

import httpx
import polars as pl
from console_support import Console, sound

import reveil

POLICY = """
[series]
name = "explored"
[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""


def test_a_token_is_made_used_and_ended(page: Any, console: Console) -> None:
    page.goto(console.address)
    page.click("text=Tokens")
    sound(page)
    page.fill("#name", "nightly <b>")
    page.click("button:has-text('Make it')")
    secret = page.inner_text(".verdict pre")
    sound(page)
    asked = {"Authorization": f"Bearer {secret}"}
    me = httpx.get(f"{console.address}/api/v1/me", headers=asked)
    assert (me.status_code, me.json()["may"]) == (200, ["see"])
    page.goto(f"{console.address}/tokens")
    assert secret not in page.content()
    assert "last used" in page.inner_text("main")
    page.click("button:has-text('End it')")
    page.wait_for_selector("text=You have none")
    assert httpx.get(f"{console.address}/api/v1/me", headers=asked).status_code == 401
    page.fill("#name", "nothing")
    page.uncheck("input[value=see]")
    page.click("button:has-text('Make it')")
    assert "R857" in page.content()


def test_the_adversary_by_questions(page: Any, console: Console) -> None:
    folder = console.place.folder / "explored"
    folder.mkdir()
    (folder / "reveil.toml").write_text(POLICY)
    ids = [f"p{i}" for i in range(8)]
    table = pl.DataFrame({"id": ids, "age": [20 + 5 * i for i in range(8)], "ill": ["flu", "gout"] * 4})
    reveil.open_series(folder / "reveil.toml").publish(table, seed=1)
    address = f"{console.address}/series/explored/audit"
    page.goto(f"{address}?share=0.25&change=freely&promise=1/2&limit=5")
    assert page.locator("#share").input_value() == "0.25"
    assert page.locator("#change").input_value() == "freely"
    assert "reveil audit --share 0.25 --limit 5.0 --change freely --promise 1/2" in page.text_content("pre")
    page.goto(f"{address}?share=0")
    page.fill("#promise", "3/4")
    page.select_option("#change", "never")
    page.click("summary:has-text('What they know of single people')")
    page.fill("#compromised", "p0")
    page.fill("#priors", "p2; flu; 3\np2; gout; 1")
    page.click("button:has-text('Attack')")
    page.wait_for_selector(".verdict")
    sound(page)
    (job,) = console.app.state.queue.jobs("explored")
    settings = {"share": "0", "promise": "3/4", "change": "never", "compromised": ["p0"], "limit": 30.0}
    assert job["job"]["settings"] == {**settings, "priors": {"p2": {"flu": "3", "gout": "1"}}}
    result = console.app.state.queue.job(job["id"])["result"]
    how = {**settings, "priors": {"p2": {"flu": 3, "gout": 1}}}
    same = reveil.open_series(folder / "reveil.toml").audit(**how).to_dict()
    assert result["summary"] == same["summary"]
    assert result["summary"]["people"] == 8
    other = console.app.state.queue.jobs("explored")[0]["id"]
    assert page.goto(f"{console.address}/series/naive/audit?job={other}").status in (404, 422)
    page.goto(f"{address}?job={other}")
    page.fill("#priors", "p2; flu")
    page.click("button:has-text('Attack')")
    page.wait_for_selector(".fault:has-text('line 1')")
