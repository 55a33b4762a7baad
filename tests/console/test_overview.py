"""The home page reads what it keeps of each series, and never keeps what is no longer so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

import reveil
from reveil.serve import overview
from reveil.serve.app import create_app
from reveil.serve.common import SHOWN_SERIES
from reveil.serve.overview import Overview
from reveil.serve.place import Place
from reveil.serve.security import Door

HOST = "127.0.0.1:8000"
POLICY = """
[series]
name = "{name}"
[columns]
who = "identifier"
age = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""


def table(number: int) -> pl.DataFrame:
    return pl.DataFrame([{"who": f"p{i}", "age": 20 + (i + number) % 9, "ill": "abc"[i % 3]} for i in range(12)])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for number in range(SHOWN_SERIES + 5):
        (tmp_path / f"s{number:03d}").mkdir()
        (tmp_path / f"s{number:03d}" / "reveil.toml").write_text(POLICY.format(name=f"series {number}"))
    place = Place(tmp_path)
    place.lay_out()
    return place


@pytest.fixture
def client(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(overview, "EVERY", 0.2)
    door = Door()
    with TestClient(create_app(place, door, (HOST,), "ann"), base_url=f"http://{HOST}") as opened:
        opened.get(f"/enter?key={door.link()}")
        yield opened


def test_what_the_command_line_did_is_seen(client: TestClient, place: Place) -> None:
    assert "<b>0</b> releases" in client.get("/").text
    series = reveil.open_series(place.folder / "s000" / "reveil.toml")
    series.publish(table(1), seed=1)
    assert "<b>1</b> release<" in client.get("/").text
    listed = client.get("/api/v1/series?limit=1").json()
    assert listed == [client.get("/api/v1/series/s000").json()]
    token = series.propose(table(2), seed=1).token
    assert client.get("/api/v1/series").json()[0]["proposals"][0]["proposal"] == token
    assert f"/series/s000/proposals/{token}" in client.get("/").text
    series.withdraw()
    assert "Waiting for a word" not in client.get("/").text
    (place.folder / "s001" / "reveil.toml").write_text("[series")
    assert "R2" in client.get("/").text
    (place.folder / "s001" / "reveil.toml").unlink()
    assert "series 1<" not in client.get("/").text


def test_a_proposal_of_a_series_that_is_not_shown_is_found(client: TestClient, place: Place) -> None:
    key = f"s{SHOWN_SERIES + 2:03d}"
    token = reveil.open_series(place.folder / key / "reveil.toml").propose(table(1), seed=1).token
    end = time.monotonic() + 60
    while f"/series/{key}/proposals/{token}" not in client.get("/").text:
        assert time.monotonic() < end
        time.sleep(0.1)
    first = client.get("/").text
    assert f'"/series/{key}"' not in first
    assert f"/?after=s{SHOWN_SERIES - 1:03d}" in first
    second = client.get(f"/?after=s{SHOWN_SERIES - 1:03d}").text
    assert f'"/series/{key}"' in second
    assert "More series" not in second


def test_nothing_is_read_again_that_did_not_change(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(overview.SETTLED)
    Overview(place).sweep()
    read: list[str] = []
    monkeypatch.setattr(overview, "series_state", lambda _, key: read.append(key))
    assert len(Overview(place).lines(place.series())) == SHOWN_SERIES + 5  # another console
    assert read == []
