"""Plain values as TOML text, to print a policy as people write it. The standard library reads TOML only."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def toml_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of keys; tables inside them are written inline.

    >>> print(toml_text({"columns": {"age": "quasi", "zip code": {"role": "quasi", "prefixes": [3, 2]}}}))
    [columns]
    age = "quasi"
    "zip code" = { role = "quasi", prefixes = [3, 2] }
    """
    parts = []
    for section, content in sections.items():
        lines = [f"{key(name)} = {inline(item)}" for name, item in content.items() if item is not None]
        parts.append("\n".join([f"[{key(section)}]", *lines]))
    return "\n\n".join(parts)


def key(name: str) -> str:
    """A name as TOML has it: quoted where it is more than a plain word."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """JSON's quoting is TOML's, but for the delete character, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(value: Any) -> str:
    """A value on one line.

    >>> inline({"role": "quasi", "levels": ["month", "year"]})
    '{ role = "quasi", levels = ["month", "year"] }'
    """
    if isinstance(value, Mapping):
        items = [f"{key(str(name))} = {inline(item)}" for name, item in value.items() if item is not None]
        return f"{{ {', '.join(items)} }}" if items else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(inline(item) for item in value)}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)
