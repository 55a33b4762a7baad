"""Lots are secret: a seed repeats a release only together with its key, and is not to be found without it."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError
from reveil.base.lots import generator, secret_of
from reveil.perturb.perturb import perturb
from support import cli

PEOPLE = pl.DataFrame({"id": range(60), "age": range(20, 80), "ill": [f"illness {i % 6}" for i in range(60)]})
COLUMNS = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
ONE: dict[str, Any] = {"columns": COLUMNS, "guarantee": {"k": 60}}  # one group: the order of rows is all there is
SERIES: dict[str, Any] = {
    "columns": COLUMNS,
    "values": {"change": "never"},
    "guarantee": {"model": "compromise-safety", "m": 4, "compromised": 1},
}
NOISY: dict[str, Any] = {
    "columns": {"id": "identifier", "age": "quasi", "ill": "drop"},
    "perturb": [{"method": "noise", "columns": ["age"], "amount": 0.5}],
}


def test_a_seed_below_a_hundred_thousand_is_not_found_from_the_public_half() -> None:
    """The attack of SOUNDNESS section 7: try seeds, and compare the order of rows with what was published."""
    seed = 4_711
    published = reveil.anonymize(PEOPLE, ONE, seed=seed).table["ill"].to_list()
    ill = PEOPLE["ill"].to_numpy()
    tried = range(100_000)
    assert seed in tried
    # What was done until now (the first permutation numbers the groups), and the new way with the seed for a secret.
    ways = (lambda guess: np.random.default_rng(guess), lambda guess: generator(guess))
    for way in ways:
        for guess in (*range(2_000), *range(4_000, 5_000)) if way is ways[1] else tried:
            rng = way(guess)
            rng.permutation(1)
            assert ill[rng.permutation(60)].tolist() != published


def test_another_key_is_no_help() -> None:
    published = reveil.anonymize(PEOPLE, ONE, seed=3).table
    for key in (bytes(32), bytes([255] * 32), b"reveil" + bytes(26)):
        for seed in range(5):
            assert not reveil.anonymize(PEOPLE, ONE, seed=seed, key=key).table.equals(published)


def test_seed_and_key_repeat_a_release(tmp_path: Path) -> None:
    first = reveil.anonymize(PEOPLE, ONE, seed=3, out=tmp_path / "a")
    key = tmp_path / "a" / "private" / "key"
    assert reveil.anonymize(PEOPLE, ONE, seed=3, key=key).table.equals(first.table)
    assert reveil.anonymize(PEOPLE, ONE, seed=3, key=key.read_bytes()).table.equals(first.table)
    assert not reveil.anonymize(PEOPLE, ONE, seed=3).table.equals(first.table)
    assert not reveil.anonymize(PEOPLE, ONE, seed=4, key=key).table.equals(first.table)
    noisy = perturb(PEOPLE, NOISY, seed=3, key=key).table
    assert noisy.equals(perturb(PEOPLE, NOISY, seed=3, key=str(key)).table)
    assert not noisy.equals(perturb(PEOPLE, NOISY, seed=3).table)


def test_seed_and_home_repeat_a_series(tmp_path: Path) -> None:
    def publish(home: str, times: int = 2) -> list[bytes]:
        series = reveil.open_series(SERIES, home=tmp_path / home)
        made = [series.publish(PEOPLE, seed=8, accept=["same-table"]) for _ in range(times)]
        return [(release.public / "table.csv").read_bytes() for release in made if release.public]

    first = publish("one")
    assert first[0] != first[1]
    assert publish("two") != first
    (tmp_path / "three").mkdir()
    shutil.copy(tmp_path / "one" / "key", tmp_path / "three")
    assert publish("three") == first


def test_without_a_seed_nothing_is_kept_that_repeats_it(tmp_path: Path) -> None:
    reveil.anonymize(PEOPLE, ONE, out=tmp_path / "a")
    assert not (tmp_path / "a" / "private" / "key").exists()


def test_private_files_are_for_the_publisher_only(tmp_path: Path) -> None:
    reveil.anonymize(PEOPLE, ONE, seed=1, out=tmp_path / "a")
    perturb(PEOPLE, NOISY, seed=1, out=tmp_path / "b")
    for folder in (tmp_path / "a" / "private", tmp_path / "b" / "private"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(("seed", "key"), [(None, bytes(32)), (1, bytes(31)), (1, "no-such-key")])
def test_a_key_that_cannot_be_used_is_refused(seed: int | None, key: Any) -> None:
    with pytest.raises(InputError, match="R280"):
        reveil.anonymize(PEOPLE, ONE, seed=seed, key=key)
    with pytest.raises(InputError, match="R280"):
        perturb(PEOPLE, NOISY, seed=seed, key=key)


def test_the_command_line_takes_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("people.csv")
    columns = '[columns]\nid = "identifier"\nage = "quasi"\nill = "sensitive"\n'
    Path("reveil.toml").write_text(columns + "[guarantee]\nk = 60\n")
    how = ("anonymize", "people.csv", "--seed", "5")
    assert cli(*how, "--out", "a")[0] == 0
    assert cli(*how, "--out", "b", "--key", "a/private/key")[0] == 0
    assert cli(*how, "--out", "c")[0] == 0
    a, b, c = (Path(name, "public", "table.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_releases_and_purposes_have_lots_of_their_own() -> None:
    secrets = {secret_of(bytes(32), seed, release) for seed in range(4) for release in range(4)}
    assert len(secrets) == 16
    drawn = {tuple(generator(secret, purpose).permutation(20)) for secret in secrets for purpose in range(4)}
    assert len(drawn) == 64
