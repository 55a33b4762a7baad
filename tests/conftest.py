"""Random tests are repeatable: the same code always sees the same cases. REVEIL_EXPLORE=1 looks for new ones."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("REVEIL_EXPLORE") else "repeatable")
