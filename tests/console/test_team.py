"""A team: accounts, roles, who may what on every route, and four eyes in two browsers."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from console_support import Console, quarter, sound, started
from starlette.routing import Route
from starlette.testclient import TestClient

import reveil
from reveil.base.errors import InputError
from reveil.serve import people as accounts
from reveil.serve.app import create_app
from reveil.serve.people import ROLES, Accounts
from reveil.serve.place import Place
from reveil.serve.security import Door
from reveil.serve.visitors import ALL

HOST = "127.0.0.1:8000"
PASSWORD = "correct horse battery"
POLICY = """
[series]
name = "{name}"
[columns]
"Patient No" = "identifier"
Age = "quasi"
Sex = "quasi"
Postcode = "drop"
Admitted = "drop"
Diagnosis = "sensitive"
Notes = "drop"
[guarantee]
k = 3
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing that is slow on purpose is fast in tests."""
    hasher = accounts.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(accounts, "PasswordHasher", lambda: hasher)


def staffed(place: Place) -> Accounts:
    """An administrator, and somebody of each role in the series `own`."""
    place.lay_out()
    people = Accounts(place.state / "people.sqlite")
    people.found("root", PASSWORD)
    for role in ROLES:
        people.add(f"one-{role}")
        people.set_password(f"one-{role}", PASSWORD)
        people.grant(f"one-{role}", "own", role, by="root")
    return people


# --- accounts ----------------------------------------------------------------------------------------------


def test_accounts(tmp_path: Path) -> None:
    people = staffed(Place(tmp_path))
    assert PASSWORD.encode() not in people.path.read_bytes()
    assert b"$argon2id$" in people.path.read_bytes()
    assert people.path.stat().st_mode & 0o077 == 0
    assert people.check("root", PASSWORD, "here")
    for name in ("root", "nobody"):
        assert not people.check(name, "wrong", f"{name}'s")
    for bad in (
        lambda: people.found("second", PASSWORD),
        lambda: people.add("root"),
        lambda: people.add("../etc"),
        lambda: people.set_password("root", "short"),
        lambda: people.grant("root", ALL, "steward", by="root"),
        lambda: people.grant("one-reader", "own", "king", by="root"),
    ):
        with pytest.raises(InputError):
            bad()
    people.revoke("one-admin", "own", "admin", by="root")
    with pytest.raises(InputError, match="last administrator"):
        people.revoke("root", ALL, "admin", by="root")
    assert people.grants("root") == [(ALL, "admin")]


def test_five_wrong_passwords_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = staffed(Place(tmp_path))
    for number in range(5):
        assert not people.check("root", "wrong", f"address {number}")
    with pytest.raises(InputError, match="R853"):
        people.check("root", PASSWORD, "another")
    assert people.check("one-reader", PASSWORD, "another")
    monkeypatch.setattr(accounts, "WITHIN", 0.0)
    assert people.check("root", PASSWORD, "another")


def test_four_eyes_need_two_people(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.lay_out()
    people = Accounts(place.state / "people.sqlite")
    people.found("root", PASSWORD)
    people.add("ann")
    for role in ("steward", "officer"):
        people.grant("ann", "own", role, by="root")
    assert not people.eligible("own")
    people.add("ben")
    people.grant("ben", "other", "officer", by="root")
    assert not people.eligible("own")
    people.grant("ben", ALL, "officer", by="root")
    assert people.eligible("own")


# --- who may what ------------------------------------------------------------------------------------------

ANYBODY, SIGNED_IN, OWN = "anybody", "signed in", "own"
PERMITS = {
    **dict.fromkeys(
        ("GET /health", "GET /enter", "GET /login", "POST /login", "GET /welcome", "POST /welcome"), ANYBODY
    ),
    **dict.fromkeys(("GET /static/console.css", "GET /static/console.js"), ANYBODY),
    **dict.fromkeys(("GET /", "GET /jobs", "GET /explain/{name}", "POST /leave", "GET /openapi.json"), SIGNED_IN),
    **dict.fromkeys(("GET /api/v1/health", "GET /api/v1/me", "GET /api/v1/explain/{name}"), SIGNED_IN),
    **dict.fromkeys(("GET /api/v1/series", "GET /api/v1/jobs", "GET /api/v1/tokens"), SIGNED_IN),
    **dict.fromkeys(("GET /tokens", "POST /tokens", "POST /tokens/{token}/end"), SIGNED_IN),
    **dict.fromkeys(("POST /api/v1/tokens", "DELETE /api/v1/tokens/{token}"), SIGNED_IN),
    "GET /log": "log",
    **dict.fromkeys(("GET /people", "POST /people", "POST /people/link", "POST /people/grant"), "admin"),
    "POST /series/{key}/four-eyes": "admin",
    **dict.fromkeys(("GET /new", "POST /new", "PUT /api/v1/uploads/{name}"), "steward"),
    **dict.fromkeys(("GET /jobs/{token}", "GET /jobs/{token}/status", "GET /jobs/{token}/events"), OWN),
    **dict.fromkeys(("POST /jobs/{token}/cancel", "GET /jobs/{token}/report.html", "GET /api/v1/jobs/{token}"), OWN),
    **dict.fromkeys(("DELETE /api/v1/jobs/{token}", "GET /api/v1/jobs/{token}/events"), OWN),
    **{
        f"{verb} /drafts/{{token}}/{step}": OWN
        for verb in ("GET", "POST")
        for step in ("columns", "coarser", "promise")
    },
    **{f"{verb} /drafts/{{token}}/{step}": OWN for verb in ("GET", "POST") for step in ("compare", "save")},
    **dict.fromkeys(("GET /drafts/{token}/alone", "POST /drafts/{token}/alone"), OWN),
    **dict.fromkeys(("GET /alone/{token}", "GET /alone/{token}/{which}.html", "POST /alone/{token}/again"), OWN),
    **dict.fromkeys(("POST /alone/{token}/hand-over", "POST /alone/{token}/delete"), OWN),
    **dict.fromkeys(("GET /drafts/{token}/tree/{number}", "POST /drafts/{token}/tree/{number}"), OWN),
    **dict.fromkeys(("GET /drafts/{token}/unique", "POST /drafts/{token}/look", "POST /drafts/{token}/delete"), OWN),
    **dict.fromkeys(("GET /series/{key}", "GET /series/{key}/releases/{number}"), "see"),
    **dict.fromkeys(("GET /api/v1/series/{key}", "GET /api/v1/series/{key}/releases/{number}"), "see"),
    "POST /series/{key}/releases/{number}/verify": "see",
    "GET /series/{key}/releases/{number}/{which}.html": "data",
    **dict.fromkeys(("GET /series/{key}/publish", "POST /series/{key}/publish"), "steward"),
    **dict.fromkeys(("POST /series/{key}/propose/{upload}", "POST /api/v1/series/{key}/proposals"), "steward"),
    "POST /series/{key}/releases/{number}/hand-over": "steward",
    "POST /series/{key}/releases/{number}/discard": "steward",
    "GET /series/{key}/years": "data",
    **dict.fromkeys(("POST /series/{key}/years/correct", "POST /series/{key}/years/{act}"), "steward"),
    "POST /series/{key}/years/rotate": "steward",
    **dict.fromkeys(("GET /series/{key}/audit", "POST /series/{key}/audit"), "audit"),
    "GET /series/{key}/proposals/{token}": "data",
    "GET /series/{key}/proposals/{token}/{which}.html": "data",
    "POST /series/{key}/proposals/{token}/accept": "steward",
    "POST /series/{key}/proposals/{token}/{act}": "sign",
    "POST /api/v1/series/{key}/proposals/{token}/{act}": "sign",
}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, str, str]:
    """Two series, each with a release and an open proposal, and a draft of somebody."""
    place = Place(tmp_path_factory.mktemp("office"))
    place.lay_out()
    tokens = []
    for name in ("own", "other"):
        (place.folder / name).mkdir()
        (place.folder / name / "reveil.toml").write_text(POLICY.format(name=name))
        series = reveil.open_series(place.folder / name / "reveil.toml")
        series.publish(quarter(place.folder / f"{name}-1.csv", 1, rows=20), seed=1)
        tokens.append(series.propose(quarter(place.folder / f"{name}-2.csv", 2, rows=20), seed=1, by="somebody").token)
    return place, *tokens  # type: ignore[return-value]


def routes(app: Any) -> Iterator[str]:
    """Every verb and path of the service, routers included."""
    listed = [*app.routes]
    while listed:
        one = listed.pop()
        inner = getattr(one, "original_router", None) or getattr(one, "router", None)
        if inner is not None:
            listed += inner.routes
        elif isinstance(one, Route) or hasattr(one, "methods"):
            yield from (f"{verb} {one.path}" for verb in sorted(one.methods - {"HEAD"}))


def test_every_route_says_who_may(office: tuple[Place, str, str]) -> None:
    """A route that nobody has thought about fails here."""
    place, *_ = office
    app = create_app(place, Door(), (HOST,), "", Accounts(place.state / "people.sqlite"))
    assert set(routes(app)) == set(PERMITS)


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
def test_who_may_what(office: tuple[Place, str, str], role: str, tmp_path: Path) -> None:
    """Each role on each route, in the series it was given for and in another one."""
    place, own, other = office
    people = Accounts(tmp_path / "people.sqlite")
    people.found("root", PASSWORD)
    people.add("visitor")
    if role != "nobody":
        people.grant("visitor", "own", role, by="root")
    door = Door()
    app = create_app(place, door, (HOST,), "", people)
    draft = app.state.drafts.begin("0" * 16, "a draft", "somebody")["id"]
    job = app.state.queue.ask({"job": "nothing"}, "somebody's", "somebody")
    alone, folder = place.new_entry("alone")
    (folder / "about.json").write_text(f'{{"id": "{alone}", "by": "somebody", "name": "theirs", "at": ""}}')
    allowed = ROLES.get(role, frozenset())
    with TestClient(app, base_url=f"http://{HOST}", follow_redirects=False, raise_server_exceptions=False) as client:
        client.get(f"/enter?key={door.link('visitor')}")
        for route, permit in PERMITS.items():
            for key, token in (("own", own), ("other", other)):
                if route == "POST /leave" or route.endswith("/events") or permit == ANYBODY:
                    continue
                verb, path = route.split(" ")
                kind = draft if "/drafts/" in path else job if "/jobs/" in path else token
                kind = alone if path.startswith("/alone/") else kind
                path = path.replace("{token}", kind).replace("{number}", "1").replace("{upload}", "0" * 16)
                path = path.replace("{key}", key).replace("{which}", "report").replace("{act}", "sign")
                path = path.replace("{name}", "k-anonymity.csv" if "uploads" in path else "k-anonymity")
                status = client.request(verb, path, params={"upload": "0" * 16} if "api" in path else None).status_code
                may = permit == SIGNED_IN or (permit in allowed and ("{key}" not in route or key == "own"))
                assert status != 500, (route, key)
                assert (status not in (403, 404)) == may, (route, key, status)


# --- four eyes ---------------------------------------------------------------------------------------------


@pytest.fixture
def team(tmp_path: Path) -> Iterator[tuple[Console, Accounts]]:
    place = Place(tmp_path / "office")
    place.folder.mkdir()
    (place.folder / "own").mkdir()
    (place.folder / "own" / "reveil.toml").write_text(POLICY.format(name="own"))
    people = staffed(place)
    people.add("ann")
    people.set_password("ann", PASSWORD)
    for role in ("steward", "officer"):  # she may do both, and never both to one release
        people.grant("ann", "own", role, by="root")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port, door = bound.getsockname()[1], Door()
        app = create_app(place, door, (f"127.0.0.1:{port}",), "", people)
        end = started(app, bound)
        yield Console(f"http://127.0.0.1:{port}", door, place, app), people
        end()


def signed_in(browser: Any, console: Console) -> Callable[[str], Any]:
    def come(name: str) -> Any:
        page = browser.new_context().new_page()
        page.set_default_timeout(90_000)
        page.goto(console.address)
        page.fill("#name", name)
        page.fill("#password", PASSWORD)
        page.click("button:has-text('Sign in')")
        page.wait_for_url(f"{console.address}/")
        return page

    return come


def test_two_people_and_four_eyes(browser: Any, team: tuple[Console, Accounts], tmp_path: Path) -> None:
    """Proposed, submitted, returned with a note, submitted again, signed by somebody else, revealed."""
    console, _ = team
    come = signed_in(browser, console)
    root, ann, ben = come("root"), come("ann"), come("one-officer")
    root.goto(f"{console.address}/people")
    root.click("button:has-text('Require a signature')")
    root.wait_for_selector("text=every release needs a second person's signature")
    sound(root)
    ann.goto(f"{console.address}/series/own/publish")
    ann.set_input_files("#file", quarter(tmp_path / "q1.csv", rows=40))
    ann.click("text=Make the release")
    ann.wait_for_url("**/proposals/*")
    assert ann.locator("button:has-text('Record and reveal')").count() == 0
    ann.fill("#note", "first quarter")
    ann.click("button:has-text('Submit for signature')")
    ann.wait_for_selector("text=It waits for the signature")
    assert ann.locator("button:has-text('Sign exactly this')").count() == 0  # though she is officer too
    ben.goto(ann.url)
    ben.fill("#note", "why is Sex shown?")
    ben.click("button:has-text('Return with the note')")
    ben.wait_for_selector("text=returned")
    ann.reload()
    assert "why is Sex shown?" in ann.inner_text("main")
    ann.click("button:has-text('Submit for signature')")
    ann.wait_for_selector("text=It waits for the signature")
    ben.reload()
    ben.fill("#password", "not his password")
    ben.click("button:has-text('Sign exactly this')")
    ben.wait_for_selector("text=is not yours")
    ben.goto(ann.url)
    ben.fill("#password", PASSWORD)
    ben.click("button:has-text('Sign exactly this')")
    ben.wait_for_selector(".tag:has-text('signed')")
    ann.reload()
    ann.fill("#password", PASSWORD)
    ann.click("button:has-text('Record and reveal')")
    ann.wait_for_url(re.compile("/releases/1$"))
    log = console.app.state.log
    assert log.fault() == ""
    done = [(line["actor"], line["action"]) for line in reversed(log.lines())]
    for step in (("ann", "submit"), ("one-officer", "return"), ("one-officer", "sign"), ("ann", "accepted")):
        assert step in done
    assert PASSWORD not in log.path.read_text()


def test_ann_cannot_sign_what_she_made(team: tuple[Console, Accounts], tmp_path: Path) -> None:
    """Not even by sending the form herself: the ledger refuses, in the transaction that would note it."""
    console, _ = team
    series = reveil.open_series(console.place.folder / "own" / "reveil.toml")
    series.ledger.approval.require_four_eyes(True, by="root")
    token = series.propose(quarter(tmp_path / "q.csv", rows=20), seed=1, by="ann").token
    series.ledger.approval.submit(token, by="ann")
    with TestClient(console.app, base_url=console.address) as client:
        client.get(f"/enter?key={console.door.link('ann')}")
        form = {"token": client.get("/api/v1/me").json()["token"], "password": PASSWORD}
        answer = client.post(f"/series/own/proposals/{token}/sign", data=form)
        assert (answer.status_code, "R537" in answer.text) == (409, True)
        header = {"x-reveil-token": form["token"]}
        for act in ("sign", "accept"):
            over_http = client.post(f"/api/v1/series/own/proposals/{token}/{act}", headers=header)
            assert over_http.status_code == 403
    assert [state.value for _, state in series.ledger.approval.open()] == ["submitted"]


def test_a_new_password_ends_sessions_and_tokens(tmp_path: Path) -> None:
    place = Place(tmp_path)
    people = staffed(place)

    def opened(door: Door) -> TestClient:
        return TestClient(create_app(place, door, (HOST,), "", people), base_url=f"http://{HOST}")

    door = Door()
    thief, other, owner = opened(door), opened(door), opened(door)
    thief.get(f"/enter?key={door.link('one-steward')}")
    other.get(f"/enter?key={door.link('one-reader')}")
    change = {"x-reveil-token": thief.get("/api/v1/me").json()["token"]}
    token = thief.post("/api/v1/tokens?name=x&scopes=see", headers=change).json()["token"]
    program = {"authorization": f"Bearer {token}"}
    assert opened(door).get("/api/v1/me", headers=program).status_code == 200
    form = {"key": door.link("one-steward", "welcome"), "password": f"{PASSWORD} new"}
    assert owner.post("/welcome", data=form, follow_redirects=False).status_code == 303
    assert owner.get("/api/v1/me").json()["who"] == "one-steward"
    assert other.get("/api/v1/me").json()["who"] == "one-reader"
    restarted = opened(Door())
    for client in (thief, restarted):
        assert client.get("/api/v1/me", cookies=dict(thief.cookies)).status_code == 401
        assert opened(door).get("/api/v1/me", headers=program).status_code == 401


def test_the_first_administrator_invites(tmp_path: Path) -> None:
    place, door = Place(tmp_path), Door()
    place.lay_out()
    people = Accounts(place.state / "people.sqlite")
    app = create_app(place, door, (HOST,), "", people)
    with TestClient(app, base_url=f"http://{HOST}") as client:
        assert client.get("/", follow_redirects=False).headers["location"] == "/login"
        key = door.link(what="welcome")
        assert "become administrator" in client.get(f"/welcome?key={key}").text
        short = client.post("/welcome", data={"key": key, "name": "root", "password": "short"})
        assert "R852" in short.text
        assert client.get("/welcome?key=guessed").status_code == 422
        assert people.names() == [] or people.grants("root") == []
        people.path.unlink()
        assert client.post("/welcome", data={"key": key, "name": "root", "password": PASSWORD}).status_code == 200
        form = {"token": client.get("/api/v1/me").json()["token"]}
        asked = client.post("/people", data={**form, "name": "ann", "role": "steward", "series": "*"})
        link = re.search(r"/welcome\?key=([\w-]+)", asked.text)
        assert link is not None
        itself = {**form, "name": "root", "role": "steward", "series": "*"}
        assert client.post("/people/grant", data=itself).status_code == 403
        client.cookies.clear()
        welcome = {"key": link[1], "password": "another good password"}
        assert client.post("/welcome", data=welcome).status_code == 200
        assert client.get("/api/v1/me").json()["may"] == ["audit", "data", "see", "steward"]
        assert client.post("/welcome", data=welcome).status_code == 422  # once
