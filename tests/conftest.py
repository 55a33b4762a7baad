"""Random tests are repeatable: the same code always sees the same cases. REVEIL_EXPLORE=1 looks for new ones."""

from __future__ import annotations

import hashlib
import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator

import pytest
from hypothesis import settings

from reveil.base import lots

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("REVEIL_EXPLORE") else "repeatable")

_drawn = itertools.count()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keys are other ones within a test, and the same ones each time it runs: what it finds is found again."""
    global _drawn
    _drawn = itertools.count()


lots.fresh_key = lambda: hashlib.sha256(f"key {next(_drawn)}".encode()).digest()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server on a socket of its own. As root, pgserver runs it as the user `pgserver`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgserver.postgres_server import get_server

    # A short path: the name of a socket has at most 107 characters.
    folder = tempfile.mkdtemp(prefix="reveil-pg-")
    server = get_server(folder, cleanup_mode="delete")
    try:
        server.psql(
            "CREATE TABLE people (zip text, age int, born date, weight numeric(5,1), tags jsonb, ok boolean);"
            "INSERT INTO people VALUES ('02139', 41, '1980-01-02', 70.5, '{\"a\": 1}', true),"
            " ('10115', NULL, NULL, NULL, NULL, false);"
            "CREATE SEQUENCE counted;"
        )
        yield server.get_uri()
    finally:
        server.cleanup()
