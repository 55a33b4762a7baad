"""Write the table of guarantees and engines into docs/scale.md, from what the guarantees say of themselves.

.venv/bin/python scripts/write_engines.py
"""

from __future__ import annotations

from pathlib import Path

from reveil.engine.choice import table_of_engines

DOCUMENT = Path(__file__).parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- engines: written by scripts/write_engines.py -->\n", "<!-- /engines -->\n"


def main() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + table_of_engines() + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
