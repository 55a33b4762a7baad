"""`reveil hierarchy`: a hierarchy of a column's values, by their order or their priority."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.words import some
from reveil.cli.shared import Source, app


@app.command()
def hierarchy(
    source: Source,
    column: Annotated[str, typer.Argument(help="The column whose values are put in order.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the hierarchy here (ARX's form).")],
    sizes: Annotated[
        str | None, typer.Option(help="By order: so many values in a run, then so many runs, such as 3,2.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="By priority: so many values stay on each level, such as 20,5.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            help="The values in their order, such as low,fair,high. Default: by number or letter, or frequency."
        ),
    ] = None,
) -> None:
    """Make a hierarchy of a column's values, by their order or their priority, to be corrected by hand."""
    from reveil.cli import terminal
    from reveil.hierarchies.builders import as_csv, by_order, by_priority
    from reveil.start.values import listed

    if (sizes is None) == (keep is None):
        raise InputError(Fault("R305", "--sizes, --keep", "are two ways, and one is needed", "give one of them"))
    stop_if([Fault("R305", f"file {out}", "exists already", "remove it, or name another")] if out.exists() else [])
    ordered = listed(source, column, values, frequent=keep is not None)
    numbers = _numbers(sizes or keep or "")
    rows = by_order(ordered, numbers) if sizes is not None else by_priority(ordered, numbers)
    out.write_text(as_csv(rows), encoding="utf-8")
    terminal.say(f"Wrote {out}: {some(len(rows), 'value')}, {some(len(rows[0]) - 2, 'level')} between value and `*`.")
    key = column if re.fullmatch(r"[A-Za-z0-9_-]+", column) else json.dumps(column, ensure_ascii=False)
    terminal.say(f'Look at it, then name it in the policy: {key} = {{ role = "quasi", hierarchy = "{out.name}" }}')
    terminal.say("The file is looked for beside the policy.")


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(Fault("R305", repr(text), "is no list of whole numbers", "write 3,2 or the like")) from None
