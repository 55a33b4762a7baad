"""Text files whose cells are set apart by blanks, as statistics packages print them: each run becomes a tab."""

from __future__ import annotations

import re

BLANKS = "blanks"  # this delimiter's name under [input]
LEAST = 3  # cells in a line; fewer may be words of one cell
AROUND, BETWEEN = re.compile(rb"(?<=\n)[ \t]+|[ \t]+(?=\r?\n)"), re.compile(rb"[ \t]+")
CELL = re.compile(rb'(?:"[^"]*")+|[^ \t\r"]+')


def tabbed(data: bytes, header: bool) -> bytes:
    r"""Runs of blanks as one tab, but for those inside quotation marks and around lines.

    >>> tabbed(b' id  town\n 1  "New  York" \n', True)
    b'id\ttown\n1\t"New  York"\n'

    A header with one name less than the first row has cells is given a first name of nothing: rows are numbered.

    >>> tabbed(b'age zip\n"1" 30 02139\n', True)
    b'""\tage\tzip\n"1"\t30\t02139\n'
    """
    parts = data.strip(b" \t").split(b'"')
    parts[0::2] = (BETWEEN.sub(b"\t", AROUND.sub(b"", part)) for part in parts[0::2])
    lines = b'"'.join(parts)
    below = lines.lstrip(b"\r\n")
    first, *second = (len(CELL.findall(line)) for line in below.split(b"\n", 2)[:2])
    if header and second == [first + 1]:
        return lines[: len(lines) - len(below)] + b'""\t' + below
    return lines


def cells_apart(lines: bytes) -> int:
    r"""How many cells blanks set apart, if in every line as many and not just two; else 0.

    >>> cells_apart(b"id age zip\n1 30 02139\n"), cells_apart(b"name\nAnn van Lee\n")
    (3, 0)

    A header may have one name less: the first cells then number the rows.

    >>> cells_apart(b'age zip job\n"1" 30 02139 "a b"\n')
    4
    """
    first, *rows = [len(CELL.findall(line)) for line in lines.splitlines() if line.strip()]
    width = max(rows, default=0)
    return width if width >= LEAST and {*rows} == {width} and first in (width - 1, width) else 0
