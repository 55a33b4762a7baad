"""The service without a browser: who is let in, what is refused, and what programs get."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from console_support import quarter
from starlette.testclient import TestClient

from reveil.serve import api, forms, security
from reveil.serve.app import create_app
from reveil.serve.log import Log
from reveil.serve.place import Place, now, write_atomically
from reveil.serve.queue import Queue
from reveil.serve.security import Door

HOST = "127.0.0.1:8000"
POLICY = """
[series]
name = "service"
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


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "reveil.toml").write_text(POLICY)
    return Place(tmp_path)


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def client(place: Place, door: Door) -> Iterator[TestClient]:
    app = create_app(place, door, (HOST,), "ann")
    with TestClient(app, base_url=f"http://{HOST}") as opened:
        assert opened.get(f"/enter?key={door.link()}").status_code == 200
        yield opened


def test_nobody_comes_in_without_a_link(place: Place, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(place, door, (HOST,), "ann")
    with TestClient(app, base_url=f"http://{HOST}") as stranger:
        for path in ("/", "/series/service", "/api/v1/series", "/log", "/openapi.json", "/docs"):
            assert stranger.get(path).status_code == 401, path
        assert stranger.get("/enter?key=guessed").status_code == 401
        link = door.link()
        assert stranger.get(f"/enter?key={link}").status_code == 200
        stranger.cookies.clear()
        assert stranger.get(f"/enter?key={link}").status_code == 401  # once
        late = door.link()
        monkeypatch.setattr(security, "LINK_SECONDS", -1)
        assert stranger.get(f"/enter?key={door.link()}").status_code == 401
        assert stranger.get(f"/enter?key={late}").status_code == 200


def test_sessions_end(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = door.begin("ann")
    assert secret not in repr(door.sessions)  # only its hash is kept
    assert door.session(secret) is not None
    monkeypatch.setattr(security, "IDLE_SECONDS", 0)
    time.sleep(0.01)
    assert door.session(secret) is None


def test_other_hosts_and_foreign_pages_are_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    token = client.get("/api/v1/me").json()["token"]
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
        assert client.post("/leave", data={"token": token}, headers=headers).status_code == 403
    assert client.post("/leave", data={"token": "another"}).status_code == 422
    assert "R847" in client.post("/leave", data={}).text
    assert client.put("/api/v1/uploads/x.csv", content=b"a").json()["faults"][0]["code"] == "R847"
    assert client.get("/").status_code == 200
    assert client.post("/leave", data={"token": token}).status_code == 401


def test_every_answer_says_what_a_browser_may_do(client: TestClient) -> None:
    for path in ("/", "/new", "/series/service", "/jobs", "/log", "/nothing", "/api/v1/series", "/series/none"):
        answer = client.get(path)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert "unsafe" not in security.POLICY


@pytest.mark.parametrize("key", ["%2e%2e", "..%2f..", ".console", "service%2f..%2f..", "none", "%00", "a" * 300])
def test_addresses_lead_nowhere_else(client: TestClient, key: str) -> None:
    for path in (f"/series/{key}", f"/api/v1/series/{key}", f"/jobs/{key}", f"/drafts/{key}/columns"):
        assert client.get(path).status_code in (404, 405, 422), path


def finished(client: TestClient, token: str) -> Any:
    end = time.monotonic() + 90
    while (job := client.get(f"/api/v1/jobs/{token}").json())["state"] in ("queued", "running"):
        assert time.monotonic() < end
        time.sleep(0.1)
    return job


def test_programs_publish_too(client: TestClient, tmp_path: Path, place: Place) -> None:
    """Upload, propose, accept over HTTP; a stranger's step is none; problems are problem details."""
    change = {"x-reveil-token": client.get("/api/v1/me").json()["token"]}
    table = quarter(tmp_path / "q1.csv", rows=40).read_bytes()
    sent = client.put("/api/v1/uploads/q1.csv", content=table, headers=change)
    assert (sent.status_code, sent.json()["size"]) == (201, len(table))
    asked = client.post(f"/api/v1/series/service/proposals?upload={sent.json()['id']}", headers=change)
    assert asked.status_code == 202
    job = finished(client, asked.headers["location"].rpartition("/")[2])
    assert job["state"] == "succeeded", job
    token = job["result"]["proposal"]
    again = client.post(f"/api/v1/series/service/proposals?upload={sent.json()['id']}", headers=change)
    refused = finished(client, again.json()["id"])
    assert (refused["state"], refused["faults"][0]["code"]) == ("failed", "R535")
    wrong = client.post(f"/api/v1/series/service/proposals/{token}/bless", headers=change)
    assert (wrong.status_code, wrong.headers["content-type"]) == (404, "application/problem+json")
    assert wrong.json()["type"] == "/explain/R840"
    page = client.get(f"/series/service/proposals/{token}")
    assert "The promise holds" in page.text
    report = client.get(f"/series/service/proposals/{token}/report.html")
    assert "sandbox" in report.headers["content-security-policy"]
    done = client.post(f"/api/v1/series/service/proposals/{token}/accept", headers=change)
    assert finished(client, done.json()["id"])["state"] == "succeeded"
    series = client.get("/api/v1/series/service").json()
    assert [one["number"] for one in series["releases"]] == [1]
    assert client.get("/api/v1/series/service/releases/1").json()["counts"]["input rows"] == 80
    assert client.get("/api/v1/series/service/releases/2").status_code == 404
    events = client.get(f"/jobs/{job['id']}/events").text
    assert '"state": "succeeded"' in events
    paths = client.get("/openapi.json").json()
    assert paths["openapi"].startswith("3.1")
    assert "/api/v1/series/{key}/proposals" in paths["paths"]
    assert not [line for line in place.state.joinpath("log.jsonl").read_text().splitlines() if "P1000" in line]


def test_every_page_says_how_it_is_done_elsewhere(client: TestClient, tmp_path: Path) -> None:
    token = client.get("/api/v1/me").json()["token"]
    with quarter(tmp_path / "q1.csv", rows=40).open("rb") as file:
        sent = client.post("/new", data={"token": token, "name": "x"}, files={"file": ("q1.csv", file)})
    assert sent.status_code == 200
    assert finished(client, client.get("/api/v1/jobs").json()[0]["id"])["state"] == "succeeded"
    (draft,) = client.app.state.place.drafts()  # type: ignore[attr-defined]
    steps = [f"/drafts/{draft['id']}/{step}" for step in ("columns", "coarser", "promise")]
    for path in ("/", "/new", "/jobs", "/log", "/series/service", "/series/service/publish", "/explain/R101", *steps):
        assert "Same thing elsewhere" in client.get(path).text, path


def test_an_edited_log_is_noticed(client: TestClient, place: Place) -> None:
    assert "The chain is whole" in client.get("/log").text
    log = Log(place.state / "log.jsonl")
    for _ in range(3):
        log.note("ann", "looked")
    assert log.fault() == ""
    text = log.path.read_text()
    for changed in (text.replace("looked", "liked", 1), "\n".join(text.splitlines()[1:]) + "\n", text + "{}\n"):
        log.path.write_text(changed)
        assert log.fault()
        assert "The log was changed" in client.get("/log").text
    log.path.write_text(text)
    assert log.fault() == ""


def test_jobs_of_a_console_that_ended_are_lost_not_repeated(place: Place) -> None:
    place.lay_out()
    token, folder = place.new_entry("jobs")
    write_atomically(folder / "job.json", {"id": token, "title": "t", "by": "ann", "at": "", "job": {"job": "accept"}})
    write_atomically(folder / "status.json", {"state": "running", "stage": "planning"})
    queue = Queue(place)
    queue.settle()
    job = queue.job(token)
    assert (job["state"], job["faults"][0]["code"]) == ("lost", "R843")


def test_what_is_unexpected_names_no_cell(place: Place) -> None:
    place.lay_out()
    queue = Queue(place)
    asked = queue.ask({"job": "unique", "table": "/nowhere", "columns": ["x"]}, "t", "ann")
    job = queue.wait(asked, 60)
    assert (job["state"], job["faults"][0]["code"]) == ("failed", "R842")
    assert "Traceback" in (queue.folder(asked) / "stderr").read_text()
    queue.close()


def test_what_is_too_large_leaves_nothing(client: TestClient, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before a byte is kept where its length is said, and in the middle where it is not."""
    change = {"x-reveil-token": client.get("/api/v1/me").json()["token"]}
    for module in (forms, api):
        monkeypatch.setattr(module, "LARGEST", 1000)
    for content in (b"x" * 2000, (b"x" * 100 for _ in range(20))):
        answer = client.put("/api/v1/uploads/t.csv", content=content, headers=change)
        assert (answer.status_code, answer.json()["faults"][0]["code"]) == (413, "R846")
    assert list((place.state / "uploads").iterdir()) == []
    assert client.put("/api/v1/uploads/t.csv", content=b"x" * 900, headers=change).status_code == 201


def test_old_uploads_are_deleted(place: Place) -> None:
    place.lay_out()
    tokens = []
    for at in ("2020-01-01T00:00:00+00:00", now()):
        token, folder = place.new_entry("uploads")
        (folder / "table.csv").write_text("a")
        write_atomically(folder / "meta.json", {"id": token, "file": "table.csv", "name": "t", "at": at, "by": "ann"})
        tokens.append(token)
    create_app(place, Door(), (HOST,), "ann")
    assert [one["id"] for one in place.uploads()] == tokens[1:]
    assert not (place.state / "uploads" / tokens[0]).exists()
