"""How many threads a job may use: all cores, unless whoever runs many jobs beside each other says less."""

from __future__ import annotations

import os

THREADS = "REVEIL_THREADS"


def threads() -> int:
    stated = os.environ.get(THREADS, "")
    return int(stated) if stated.isdecimal() and int(stated) else os.cpu_count() or 1
