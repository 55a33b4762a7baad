"""What the command line shows: results on stdout, progress and refusals on stderr, JSON when asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reveil.base.errors import ReveilError
from reveil.base.words import some

if TYPE_CHECKING:
    from reveil.plan.plan import Progress


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def say_json(content: object) -> None:
    say(json.dumps(content, indent=2, ensure_ascii=False, default=str))


def refuse(error: ReveilError, as_json: bool) -> None:
    """Every fault with its way out, on stderr; as JSON on stdout for programs."""
    notes = getattr(error, "__notes__", [])
    if as_json:
        say_json({"error": error.title, "faults": [fault.to_dict() for fault in error.faults], "notes": notes})
        return
    lines = [f"{error.title}:"]
    for fault in error.faults:
        lines += [f"  {fault.code}  {fault.where}: {fault.message}{fault.extent}", f"        Way out: {fault.remedy}"]
    if any(fault.places for fault in error.faults):
        lines.append("Rows are counted from 1, the first below the header.")
    lines += notes
    codes = sorted({fault.code for fault in error.faults})
    lines.append(f"More: reveil explain {codes[0]}")
    sys.stderr.write("\n".join(lines) + "\n")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """A bar on stderr while something long runs; nothing at all when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        from reveil.plan.plan import silent

        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(what: str, done: float) -> None:
            bar.update(task, description=what, completed=done)

        yield show


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Aligned columns; numbers to the right."""
    texts = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    right = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        parts = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  " + "  ".join(parts).rstrip()

    return "\n".join([line(header), *(line(row) for row in texts)])


def statistic(name: str, value: object) -> str:
    """One figure of a plan: a number, a list of numbers, a table of numbers, or rows of a table."""
    if isinstance(value, Mapping):
        value = [{"": key, name: figure} for key, figure in value.items()]
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
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def verdict_lines(verdicts: Sequence[Mapping[str, Any]]) -> str:
    rows = [("holds" if v["holds"] else "FAILS", v["guarantee"], v["statement"]) for v in verdicts]
    return table(("", "guarantee", "what was checked"), rows)


def counts_line(counts: Mapping[str, int]) -> str:
    return (
        f"{some(counts['published rows'], 'row')} in {some(counts['groups'], 'group')} "
        f"({counts['smallest group']:,} to {some(counts['largest group'], 'row')} each), "
        f"{counts['withheld rows']:,} withheld, {counts['counterfeit rows']:,} counterfeit"
    )
