"""What the command line shows: results on stdout, progress and refusals on stderr, JSON when asked."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from reveil.base.errors import ReveilError
from reveil.base.progress import Progress, silent
from reveil.base.words import some

# What a terminal obeys instead of showing it: control characters, and marks that turn the direction of text.
_OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
OBEYED, OBEYED_OR_LINE = re.compile(f"[{_OBEYED}]"), re.compile(f"[{_OBEYED}\n\t]")

PATIENCE = 2.0  # seconds of silence where nobody sees a bar


def shown(text: str) -> str:
    """A text with every character spelled out that a terminal would obey.

    >>> shown("red \\x1b[31m"), line("one\\nline")
    ('red \\\\x1b[31m', 'one\\\\nline')
    """
    return OBEYED.sub(_spelled_out, text)


def line(text: str) -> str:
    """The same for what must stay in its line: cells, names, and what refusals say."""
    return OBEYED_OR_LINE.sub(_spelled_out, text)


def _spelled_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def say(text: str = "") -> None:
    sys.stdout.write(shown(text) + "\n")


def warn(text: str) -> None:
    sys.stderr.write(shown(text) + "\n")


def say_json(content: object) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write(OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def refuse(error: ReveilError, as_json: bool) -> None:
    """Every fault with its way out, on stderr; as JSON on stdout for programs."""
    notes = getattr(error, "__notes__", [])
    if as_json:
        say_json({"error": error.title, "faults": [fault.to_dict() for fault in error.faults], "notes": notes})
        return
    lines = [f"{error.title}:"]
    for fault in error.faults:
        what = line(f"{fault.where}: {fault.message}{fault.extent}")
        lines += [f"  {fault.code}  {what}", f"        Way out: {line(fault.remedy)}"]
    if any(fault.places for fault in error.faults):
        lines.append("Rows are counted from 1, the first below the header.")
    lines += notes
    codes = sorted({fault.code for fault in error.faults})
    lines.append(f"More: reveil explain {codes[0]}")
    warn("\n".join(lines))


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(error: ReveilError, names: Sequence[str]) -> bool:
    """What looks like a mistake, and whether it is right; only a yes is one."""
    for fault in error.faults:
        warn(f"  {fault.code}  {line(f'{fault.where}: {fault.message}{fault.extent}')}")
    sys.stderr.write(f"Is that right, so that it goes on ({', '.join(names)})? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def stages(patience: float) -> Progress:
    """A line on stderr for each stage that begins after so many seconds; what is quick says nothing."""
    started, last = monotonic(), ""

    def show(stage: str, done: float) -> None:
        nonlocal last
        elapsed = monotonic() - started
        if stage != last and elapsed >= patience:
            warn(f"{stage} ({elapsed:.0f} s)")
        last = stage

    return show


@contextmanager
def busy(what: str, quiet: bool = False) -> Iterator[None]:
    """The same for work that cannot say how far it is: time goes on."""
    with progress(quiet) as show:
        show(what, 0.0)
        yield


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """How far something long is, on stderr: a bar on a terminal, elsewhere a line for each stage once it takes long."""
    if quiet or not sys.stderr.isatty():
        yield silent if quiet else stages(PATIENCE)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(what: str, done: float) -> None:
            bar.update(task, description=what, completed=done)

        yield show


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Aligned columns; numbers to the right."""
    texts = [[_cell(cell) for cell in row] for row in rows]
    names = [line(name) for name in header]
    widths = [max(map(len, column)) for column in zip(names, *texts, strict=True)]
    right = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]

    def row_of(cells: Sequence[str]) -> str:
        parts = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  " + "  ".join(parts).rstrip()

    return "\n".join([row_of(names), *(row_of(row) for row in texts)])


def statistic(name: str, value: object) -> str:
    """One figure of a plan: a number, a list of numbers, a table of numbers, or rows of a table."""
    if isinstance(value, Mapping):
        value = [{"": str(key), name: figure} for key, figure in value.items()]  # keys are names and codes
        name = ""
    if isinstance(value, Sequence) and value and all(isinstance(row, Mapping) for row in value):
        header = list(value[0])
        lines = table(header, [[row.get(key, "") for key in header] for row in value])
        return f"  {name}:\n{lines}" if name else lines
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"  {name}: {', '.join(_cell(figure) for figure in value)}"
    return f"  {name}: {_cell(value)}"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else line(str(value))


def _word(verdict: Mapping[str, Any]) -> str:
    return "holds" if verdict["holds"] else "FAILS" if verdict.get("decided", True) else "cannot be shown"


def verdict_lines(verdicts: Sequence[Mapping[str, Any]]) -> str:
    rows = [(_word(v), v["guarantee"], v["statement"]) for v in verdicts]
    return table(("", "guarantee", "what was checked"), rows)


def _stood_in(counts: Mapping[str, int]) -> str:
    people = counts.get("people with a stand-in", 0)
    return f", {people:,} of which stand in for people who are shown" if people else ""


def counts_line(counts: Mapping[str, int]) -> str:
    if "people shown" in counts:
        boxes = f" (boxes of {counts['smallest box']:,} or more)" if "smallest box" in counts else ""
        one, many = ("household", "households") if "input households" in counts else ("person", "people")
        bundles = f" of {some(counts['bundles'], 'bundle')}" if "bundles" in counts else ""
        return (
            f"two tables: {some(counts['people shown'], one, many)}{boxes}, and "
            f"{some(counts['published rows'], 'value')}{bundles} in {some(counts['groups'], 'group')} "
            f"({counts['smallest group']:,} to {counts['largest group']:,} each), "
            f"{counts['withheld rows']:,} withheld, {counts['counterfeit rows']:,} counterfeit{_stood_in(counts)}"
        )
    bundled = next((who for who in ("people", "households") if f"published {who}" in counts), None)
    of_whom = "" if bundled is None else f" of {counts[f'published {bundled}']:,} {bundled}"
    sizes = f"{counts['largest group']:,} {bundled}" if bundled else some(counts["largest group"], "row")
    return (
        f"{some(counts['published rows'], 'row')}{of_whom} in {some(counts['groups'], 'group')} "
        f"({counts['smallest group']:,} to {sizes} each), "
        f"{counts['withheld rows']:,} withheld, {counts['counterfeit rows']:,} counterfeit"
    )
