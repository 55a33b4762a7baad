"""The API for programs: tokens, requests that are done once, lists that go on, events that resume, anything at all."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from starlette.testclient import TestClient

from reveil.base.errors import ConflictError
from reveil.serve import kept, people, security
from reveil.serve.app import create_app
from reveil.serve.log import Log
from reveil.serve.people import ROLES, Accounts
from reveil.serve.place import Place
from reveil.serve.queue import Queue
from reveil.serve.security import Door

HOST, PASSWORD = "127.0.0.1:8000", "correct horse battery"
POLICY = '[series]\nname = "{name}"\n[columns]\nage = "quasi"\nill = "sensitive"\n[guarantee]\nk = 2\n'
EXAMPLES = 300 if os.environ.get("REVEIL_EXPLORE") else 8  # requests of each kind, as each role


def furnished(folder: Path, *names: str) -> Place:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "reveil.toml").write_text(POLICY.format(name=name))
    place = Place(folder)
    place.lay_out()
    return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return furnished(tmp_path, *(f"s{number}" for number in range(5)))


@pytest.fixture
def client(place: Place) -> Iterator[TestClient]:
    door = Door()
    with TestClient(create_app(place, door, (HOST,), "ann"), base_url=f"http://{HOST}") as opened:
        opened.get(f"/enter?key={door.link()}")
        opened.headers["x-reveil-token"] = opened.get("/api/v1/me").json()["token"]
        yield opened


def state(client: TestClient) -> Any:
    return client.app.state  # type: ignore[attr-defined]


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def test_a_token_acts_within_its_scopes_and_never_signs(client: TestClient, place: Place) -> None:
    asked = client.post("/api/v1/tokens?name=nightly&scopes=see,steward&days=7", headers={"idempotency-key": "k"})
    assert asked.status_code == 201
    made = asked.json()
    assert made["token"].encode() not in place.state.joinpath("kept.sqlite").read_bytes()
    assert "token" not in client.get("/api/v1/tokens").json()[0]
    program = TestClient(client.app, base_url=f"http://{HOST}", headers=bearer(made["token"]))
    assert program.get("/api/v1/me").json() == {"who": "ann", "may": ["see", "steward"], "token": ""}
    assert program.put("/api/v1/uploads/x.csv", content=b"a,b\n").status_code == 201
    assert program.post("/api/v1/series/s1/proposals/x/sign").status_code == 403
    assert program.post("/api/v1/tokens?name=more&scopes=see").status_code == 403
    assert program.get("/series/s1", follow_redirects=False).status_code == 401  # tokens are for the API
    for wrong in ("scopes=sign", "scopes=admin,see", "scopes=", "scopes=see&days=400", "scopes=see&days=0"):
        assert client.post(f"/api/v1/tokens?name=x&{wrong}").json()["faults"][0]["code"] == "R857"
    assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 404
    gone = program.get("/api/v1/series")
    assert (gone.status_code, gone.headers["content-type"]) == (401, "application/problem+json")


def program(client: TestClient, scopes: str) -> TestClient:
    secret = client.post(f"/api/v1/tokens?name=x&scopes={scopes}").json()["token"]
    return TestClient(client.app, base_url=f"http://{HOST}", headers=bearer(secret))


@pytest.mark.parametrize(("series", "scopes"), [("", "log"), ("s1", "log"), ("s1", "see,data"), ("s1", "data,steward")])
def test_a_token_reaches_its_owners_jobs_only_within_its_scopes(client: TestClient, series: str, scopes: str) -> None:
    job = state(client).queue.ask({"job": "nothing"}, "mine", "ann", series=series)
    asked, sees, cancels = program(client, scopes), "data" in scopes, {"steward", "see"} <= {*scopes.split(",")}
    assert [one["id"] for one in asked.get("/api/v1/jobs").json()] == [job] * sees
    for path in (f"/api/v1/jobs/{job}", f"/api/v1/jobs/{job}/events"):
        assert asked.get(path).status_code == (200 if sees else 404)
    assert (asked.delete(f"/api/v1/jobs/{job}").status_code == 202) == cancels
    assert client.get(f"/api/v1/jobs/{job}").status_code == 200  # the owner in person


def test_a_token_gives_no_upload_of_its_owner_to_a_job_beyond_its_scopes(client: TestClient) -> None:
    upload = client.put("/api/v1/uploads/x.csv", content=b"age,ill\n1,a\n").json()["id"]
    path = f"/api/v1/series/s1/proposals?upload={upload}"
    assert program(client, "see,steward").post(path).status_code == 202
    assert program(client, "see,data").post(path).status_code == 403


def test_a_token_ends_by_itself(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = client.post("/api/v1/tokens?name=x&scopes=see&days=1").json()["token"]
    client.cookies.clear()
    assert client.get("/api/v1/series", headers=bearer(secret)).status_code == 200
    later = time.time() + 86_401
    monkeypatch.setattr(kept.time, "time", lambda: later)
    assert client.get("/api/v1/series", headers=bearer(secret)).status_code == 401


def test_a_request_that_is_sent_twice_is_done_once(client: TestClient) -> None:
    upload = client.put("/api/v1/uploads/x.csv", content=b"age,ill\n1,a\n").json()["id"]
    key, path = {"idempotency-key": "k1"}, f"/api/v1/series/s1/proposals?upload={upload}"
    first, second = client.post(path, headers=key), client.post(path, headers=key)
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    assert first.headers["location"] == second.headers["location"]
    assert second.headers["idempotency-replayed"] == "true"
    assert len(client.get("/api/v1/jobs").json()) == 1
    other = client.post(f"/api/v1/series/s2/proposals?upload={upload}", headers=key)
    assert (other.status_code, other.json()["faults"][0]["code"]) == (422, "R858")
    refused = client.post("/api/v1/series/none/proposals?upload=x", headers={"idempotency-key": "k2"})
    assert refused.status_code == 404  # what was refused can be tried again
    assert client.post(path, headers={"idempotency-key": "k2"}).status_code == 202
    assert client.post(path, headers={"idempotency-key": "k" * 201}).status_code == 422


def test_an_answer_is_given_again_only_to_who_may_ask(client: TestClient) -> None:
    upload = client.put("/api/v1/uploads/x.csv", content=b"age,ill\n1,a\n").json()["id"]
    key, path = {"idempotency-key": "k"}, f"/api/v1/series/s1/proposals?upload={upload}"
    assert program(client, "see,steward").post(path, headers=key).status_code == 202
    other = program(client, "log").post(path, headers=key)
    assert (other.status_code, other.json()["faults"][0]["code"]) == (422, "R858")
    again = program(client, "see,steward").post(path, headers=key)  # another token that may the same
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")


def test_what_ended_in_an_error_may_be_done_and_is_not_done_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()
    app = create_app(place, door, (HOST,), "ann")
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as client:
        client.get(f"/enter?key={door.link()}")
        client.headers["x-reveil-token"] = client.get("/api/v1/me").json()["token"]
        upload = client.put("/api/v1/uploads/x.csv", content=b"age,ill\n1,a\n").json()["id"]
        key, path = {"idempotency-key": "k"}, f"/api/v1/series/s1/proposals?upload={upload}"
        with monkeypatch.context() as broken:
            broken.setattr(Log, "note", lambda *_, **__: 1 / 0)  # the disk is full, after the job was asked for
            assert client.post(path, headers=key).status_code == 500
        again = client.post(path, headers=key)
        assert (again.status_code, again.json()["faults"][0]["code"]) == (409, "R859")
        assert len(client.get("/api/v1/jobs").json()) == 1


def test_a_request_that_was_cut_off_is_not_done_again(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    store = state(client).kept
    assert store.ask("ann", "k", "request") is None
    with pytest.raises(ConflictError, match="R859"):
        store.ask("ann", "k", "request")
    assert store.ask("ben", "k", "request") is None  # another person's key
    later = time.time() + kept.ANSWERS_SECONDS + 1
    monkeypatch.setattr(kept.time, "time", lambda: later)
    assert store.ask("ann", "k", "another request") is None


@pytest.mark.parametrize("path", ["series", "jobs"])
def test_lists_go_on_where_they_ended(client: TestClient, path: str) -> None:
    for number in range(5):
        state(client).queue.ask({"job": "nothing"}, f"t{number}", "ann")
    name = "key" if path == "series" else "id"
    whole = client.get(f"/api/v1/{path}")
    assert "link" not in whole.headers
    pieces, following = [], f"/api/v1/{path}?limit=2"
    while following:
        answer = client.get(following)
        pieces += answer.json()
        following = answer.headers.get("link", "").partition(">")[0].lstrip("<")
    assert [one[name] for one in pieces] == [one[name] for one in whole.json()]
    assert len(pieces) == 5
    assert client.get(f"/api/v1/{path}?limit=0").json()["faults"][0]["code"] == "R860"


def test_events_resume(client: TestClient) -> None:
    token = state(client).queue.ask({"job": "nothing"}, "t", "ann")
    state(client).queue.wait(token, 60)
    told = client.get(f"/api/v1/jobs/{token}/events").text
    last = told.split("id: ")[-1].split("\n")[0]
    assert json.loads(told.split("data: ")[-1])["over"]
    assert client.get(f"/api/v1/jobs/{token}/events", headers={"last-event-id": last}).text == ""
    assert client.get(f"/api/v1/jobs/{token}/events", headers={"last-event-id": "other"}).text == told


def test_a_session_survives_a_restart(place: Place) -> None:
    def opened(**more: Any) -> TestClient:
        return TestClient(create_app(place, Door(), (HOST,), "ann"), base_url=f"http://{HOST}", **more)

    first = opened()
    first.get(f"/enter?key={state(first).door.link()}")
    cookies, token = dict(first.cookies), first.get("/api/v1/me").json()["token"]
    second = opened(cookies=cookies)
    assert second.get("/api/v1/me").json()["token"] == token
    assert second.post("/leave", data={"token": token}, follow_redirects=False).status_code == 303
    assert second.get("/api/v1/me").status_code == 401
    assert opened(cookies=cookies).get("/api/v1/me").status_code == 401


def test_sessions_that_are_over_are_not_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = kept.Kept(place.state / "kept.sqlite")
    doors = [Door(kept=store), Door(kept=store)]
    for door in doors:
        door.begin("ann")
    later = time.time() + security.IDLE_SECONDS + 1
    monkeypatch.setattr(security.time, "time", lambda: later)
    fresh = doors[0].begin("ann")
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT secret FROM sessions").fetchall() == [(security.hashed(fresh),)]
    assert [*doors[0].sessions] == [security.hashed(fresh)]


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/series/none", "/api/v1/jobs/x", "/api/v1/series?limit=x"])
def test_every_refusal_is_problem_details(client: TestClient, path: str) -> None:
    for answer in (client.get(path), client.patch("/api/v1/series"), client.get(path, headers={"host": "evil"})):
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "status", "detail"} <= answer.json().keys()
        assert answer.json()["status"] == answer.status_code


@pytest.mark.parametrize("role", ["nobody", *ROLES])
def test_nothing_that_is_sent_breaks_it(role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemathesis over the whole API, as each role: whatever is sent, no answer is an error of the server."""
    hasher = people.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(people, "PasswordHasher", lambda: hasher)
    place = furnished(tmp_path, "own", "other")
    accounts = Accounts(place.state / "people.sqlite")
    accounts.found("root", PASSWORD)
    accounts.add("visitor")
    if role != "nobody":
        accounts.grant("visitor", "own", role, by="root")
    door = Door()
    app = create_app(place, door, (HOST,), "", accounts, queue=Queue(place, at_once=0))  # jobs are not begun
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as client:
        client.get(f"/enter?key={door.link('visitor')}")
        change = {"x-reveil-token": client.get("/api/v1/me").json()["token"]}
        schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
        operations = [one.ok() for one in schema.get_all_operations()]
        asked = [one for one in operations if not one.path.endswith("/events")]
        statuses = [status for one in asked for status in sent(client, one, change)]
    assert len(operations) >= 15
    assert max(statuses) < 500
    assert {200, 422} <= set(statuses)


def sent(client: TestClient, operation: Any, headers: dict[str, str]) -> list[int]:
    """The answers to anything that the description of an operation allows."""
    statuses = []

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy())
    def send(case: Any) -> None:
        path = case.path
        for name, value in (case.path_parameters or {}).items():
            path = path.replace(f"{{{name}}}", "own" if name == "key" and len(str(value)) % 2 else str(value))
        answer = client.request(case.method, path, params=case.query, headers=headers)
        assert answer.status_code < 500, (operation.label, path, case.query, answer.text[:300])
        statuses.append(answer.status_code)

    send()
    return statuses
