"""Random tests are repeatable: the same code always sees the same cases. REVEIL_EXPLORE=1 looks for new ones."""

from __future__ import annotations

import hashlib
import itertools
import os

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
