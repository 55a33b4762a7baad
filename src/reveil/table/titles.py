"""Lines of title above the names of columns, as offices export them: noticed, and left out where the policy says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reveil.base.errors import InputError
from reveil.base.words import some
from reveil.table.options import ReadOptions, refusal

HEADERS = ("R107", "R108")  # names that are missing or twice, and lines that are not as wide as the header


def titles_above(rows: Sequence[Sequence[str | None]]) -> int:
    """How many rows stand above the first one that has a text in every column; 0 if it is the first, or nowhere.

    >>> titles_above([["Patients 2025", "", ""], ["no", "age", "ill"], ["1", "40", "flu"]])
    1
    >>> titles_above([["no", "age", ""], ["1", "40", "x"]])
    0
    """
    widths = Counter(len(row) for row in rows if row)
    width = max(widths, key=lambda size: (widths[size], size), default=0)
    filled = [sum(bool(cell and cell.strip()) for cell in row) for row in rows]
    first = next((place for place, count in enumerate(filled) if count == len(rows[place]) == width), 0)
    # A header without some names is half full at least; blank lines alone are no title.
    titled = any(filled[:first]) and all(2 * count <= width for count in filled[:first])
    return first if titled and width > 1 and len(rows) > first + 1 else 0


def better_explained(error: InputError, titles: int, where: str, options: ReadOptions) -> InputError:
    """A header that is none, or the likely cause of it."""
    if not titles or options.skip_lines or not {fault.code for fault in error.faults} & set(HEADERS):
        return error
    message = f"above the names of the columns stand {some(titles, 'line')} of something else, such as a title"
    return refusal("R115", where, message, f"skip_lines = {titles} under [input] (`reveil init` writes it)", titles)
