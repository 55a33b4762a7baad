"""`reveil init`: from a table, or a project of ARX, to a policy."""

from pathlib import Path
from typing import Annotated

import typer

from reveil.base.addresses import masked
from reveil.base.doubts import accepted
from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.cli.shared import POLICY, Accept, Json, PolicyFile, Quiet, Source, app, command


@app.command()
def init(
    source: Source,
    policy: PolicyFile = POLICY,
    name: Annotated[str | None, typer.Option(help="Name of the series. Default: the table's name.")] = None,
    query: Annotated[str | None, typer.Option(help="What to read from a database: one SELECT.")] = None,
    no_header: Annotated[bool, typer.Option("--no-header", help="A text file without a line of names.")] = False,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at the columns, suggest roles and hierarchies with reasons, and write a policy to edit."""
    from reveil.cli import terminal
    from reveil.start.reading import first_look
    from reveil.start.several_rows import hindrance
    from reveil.start.suggest import draft_policy, find_hierarchies, first_period, rows_of_people, suggest
    from reveil.table.options import ReadOptions

    if policy.exists():
        raise InputError(Fault("R219", f"policy {policy}", "exists already", "remove it, or pass --policy NEW-FILE"))
    if Path(source).suffix.lower() == ".deid" and Path(source).is_file():
        _from_arx(Path(source), policy, name, json, quiet)
        return
    look = first_look(source, ReadOptions(query=query, header=not no_header, accept=accepted(accept)))
    frame = look.frame
    folder = Path(source).parent if Path(source).exists() else Path()
    suggestions = suggest(frame)
    hierarchies = find_hierarchies(folder, frame.columns) if folder == policy.parent else {}
    called = name or Path(masked(source).partition("?")[0]).stem
    several = rows_of_people(frame, suggestions)
    policy.write_text(draft_policy(suggestions, called, hierarchies, look.input, several), encoding="utf-8")
    if json:
        terminal.say_json({"policy": str(policy), "columns": [suggestion.to_dict() for suggestion in suggestions]})
    elif not quiet:
        rows = [(s.column, s.role, s.confidence, s.reason) for s in suggestions]
        terminal.say(terminal.table(("column", "suggested role", "", "why"), rows))
        for remark in look.remarks:
            terminal.say(f"\n{remark}")
        if unsure := [s.column for s in suggestions if s.confidence == "guess"]:
            terminal.say(f"\nWorth a second look, because nothing about them is known: {', '.join(unsure)}.")
        terminal.say(
            f"\nWrote {policy}. Read it and correct it: only you know what others can know about these people."
        )
        keys = [suggestion for suggestion in suggestions if suggestion.role == "identifier"]
        known_again = bool(keys) and not several
        if hindered := next((hindrance(key.column, key.facts) for key in keys), ""):
            terminal.say(hindered)
        period = first_period(frame, suggestions)
        chosen = None if period is None else ["=".join(period)]
        words = "plan" if known_again else "anonymize --out NEW-FOLDER"
        terminal.say(f"Then: {command(words, source, policy, where=chosen, accept=accept)}")
        if several:
            terminal.say('People have several rows, which are published together: `reveil explain "several rows"`.')
        elif chosen:
            terminal.say(
                'Or all of it in one release, where people count and not rows: `reveil explain "several rows"`.'
            )


def _from_arx(source: Path, policy: Path, name: str | None, json: bool, quiet: bool) -> None:
    """A project of ARX as a policy, with its table and hierarchies beside it."""
    from reveil.cli import terminal
    from reveil.start.arx_policy import import_project

    imported, table = import_project(source, policy, name)
    if json:
        made = {"policy": str(policy), "table": str(table), "hierarchies": list(imported.hierarchies)}
        terminal.say_json({**made, "no_equivalent": imported.unknown, "notes": imported.notes})
    elif not quiet:
        terminal.say(f"Wrote {policy}, {table} and {some(len(imported.hierarchies), 'hierarchy', 'hierarchies')}.")
        for note in imported.notes:
            terminal.say(f"\n{note}")
        terminal.say(
            "\nThese have no equivalent here:" if imported.unknown else "\nAll that it says has an equivalent."
        )
        for line in imported.unknown:
            terminal.say(f"- {line}")
        terminal.say(f"Then: {command('anonymize --out NEW-FOLDER', str(table), policy)}")
