"""Small files for people and programs."""

from __future__ import annotations

import json
from pathlib import Path


def write_json(path: Path, content: object) -> None:
    """A JSON file that people can read as well: indented, with letters as they are."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
