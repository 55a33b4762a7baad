"""What outsiders and recipients can do with a release: link people with it, ask two tables, or make one of them."""

from pathlib import Path
from typing import Annotated

import typer

from reveil.base.errors import ExposedError, Fault, InputError
from reveil.base.text import plain_text
from reveil.base.words import agree, some
from reveil.cli.shared import POLICY, Delimiter, Json, PolicyFile, Quiet, app

FIGURES = ("rows", "people", "confidence")  # columns of the attack; all others are people's
Handed = Annotated[str, typer.Argument(help="A published table or release folder.")]


@app.command()
def link(
    published: Handed,
    people: Annotated[str, typer.Argument(help="A table of identified people, such as a voter list.")],
    original: Annotated[str | None, typer.Option(help="The table before publishing, to compare with.")] = None,
    name: Annotated[str | None, typer.Option(help="The column that identifies people.")] = None,
    by: Annotated[
        str | None, typer.Option(help="Columns to compare, such as zip,age. Default: those in common.")
    ] = None,
    delimiter: Delimiter = None,
    present: Annotated[bool, typer.Option(help="Everybody on the list is known to be in the table.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a line for each person here (CSV).")] = None,
    policy: PolicyFile = POLICY,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sweeney's attack: who of these people can be re-identified, with which confidence, before and after."""
    from reveil.cli import terminal
    from reveil.measure.link import link as attack
    from reveil.measure.link import sentences

    given = policy if policy.exists() or policy != POLICY else None
    columns = None if by is None else [column.strip() for column in by.split(",")]
    links = attack(published, people, given, original=original, name=name, by=columns, present=present,
                   delimiter=delimiter)  # fmt: skip
    if out is not None:
        links.people.write_csv(out)
    if json:
        terminal.say_json(links.to_dict())
    elif not quiet:
        terminal.say("\n".join(sentences(links)))
        worst = links.people.sort("confidence", descending=True, maintain_order=True).head(10)
        rows = [[_cell(name, c) for name, c in row.items()] for row in worst.iter_rows(named=True)]
        terminal.say(terminal.table(worst.columns, rows))
    certain = links.summary["after"]["certain"]
    if certain and not json:
        message = (
            f"{certain:,} of {some(links.summary['people'], 'person', 'people')} {agree(certain, 'is', 'are')} found "
            "for certain in the published table"
        )
        raise ExposedError(Fault("R731", "published table", message, "publish less; see `reveil explain k-anonymity`"))
    if certain:
        raise typer.Exit(ExposedError.exit_code)


def _cell(name: str, cell: object) -> object:
    """Figures of the attack as figures; a code such as a zip is no number that has thousands."""
    return (
        cell
        if isinstance(cell, float) or name.removesuffix(" before") in FIGURES
        else ""
        if cell is None
        else plain_text(cell)
    )


@app.command()
def ask(
    published: Annotated[str, typer.Argument(help="The folder of a release in two tables, or its public half.")],
    conditions: Annotated[
        list[str], typer.Argument(help="COLUMN=VALUE, or any notation: age=[30-39] zip=476** disease={flu,HIV}.")
    ],
    policy: PolicyFile = POLICY,
    json: Json = False,
) -> None:
    """COUNT the people of a release in two tables that meet all conditions: expected value and bounds."""
    from reveil.cli import terminal
    from reveil.measure.ask import ask as compute

    faults = [
        Fault("R741", f"condition {text!r}", "is not COLUMN=VALUE", "write it like age=[30-39]")
        for text in conditions
        if "=" not in text
    ]
    names = [text.partition("=")[0] for text in conditions]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    faults += [Fault("R741", f"column {name!r}", "has two conditions", "join them into one") for name in twice]
    if faults:
        raise InputError(faults)
    given = policy if policy.exists() or policy != POLICY else None  # it says what labels of hierarchies stand for
    answer = compute(published, {text.partition("=")[0]: text.partition("=")[2] for text in conditions}, given)
    if json:
        terminal.say_json(answer.to_dict())
    else:
        terminal.say(str(answer))


@app.command()
def expand(
    published: Annotated[str, typer.Argument(help="The folder of a release in two tables, or its public half.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New or empty folder for the long table and its README.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write two tables as one: a line for each person and possible value, with a weight, for ordinary tools."""
    from reveil.cli import terminal
    from reveil.measure.expand import expand as compute
    from reveil.measure.expand import write_expanded

    made = compute(published)
    files = write_expanded(made, out)
    if json:
        terminal.say_json({**made.to_dict(), "files": [str(file) for file in files]})
    elif not quiet:
        for name, table in made.tables.items():
            terminal.say(f"{name!r}: {some(table.height, 'line')} for {some(made.people, 'person', 'people')}.")
        terminal.say(f"Count with the column weight, never the lines: {files[1]} says how, in Python and in R.")
