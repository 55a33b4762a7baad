"""A series that lives for years: correct, erase, merge, split, retract, rotate, end."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from reveil.base.doubts import accepted
from reveil.base.errors import Fault, InputError
from reveil.cli.shared import POLICY, Accept, Home, Json, PolicyFile, Quiet, Source, app, say_settled
from reveil.jobs.amending_specs import (
    CorrectSpec,
    EndSpec,
    EraseSpec,
    MergeSpec,
    RetractSpec,
    RotateSpec,
    SplitSpec,
)

Sure = Annotated[bool, typer.Option("--yes", help="That is meant; without it you are told what would be done.")]
Who = Annotated[str, typer.Argument(help="Identifier, as in the tables.")]


def _do(spec: Any, json: bool, quiet: bool) -> None:
    """Run it; what has to be meant is asked about on a terminal, and refused elsewhere."""
    from reveil.cli import terminal

    try:
        done = spec.run()
    except InputError as error:
        if json or not sys.stdin.isatty() or [fault.code for fault in error.faults] != ["R560"]:
            raise
        typer.echo(f"{error.faults[0].where}: {error.faults[0].message}.", err=True)
        if not typer.confirm("Is that meant?", default=False, err=True):
            raise
        done = replace(spec, sure=True).run()
    say_settled(done.settled, quiet)
    if json:
        terminal.say_json(done.to_dict())
    elif not quiet:
        terminal.say(_head(done))
        for note in () if done.waits else done.notes:
            terminal.say(note)


def _head(done: Any) -> str:
    if done.waits:
        asked = f"Asked for ({done.event.at}, by {done.event.actor}): nothing was done yet."
        return f"{asked} This series needs two people: another one must give the same command."
    return f"Done and recorded: {done.event.action} ({done.event.at}, by {done.event.actor})."


@app.command()
def correct(
    source: Source,
    sure: Sure = False,
    policy: PolicyFile = POLICY,
    home: Home = None,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Values of this table are true, and the series has recorded others. Releases go on showing what was recorded.

    For values that never change. The table may hold the corrected people alone.
    """
    _do(CorrectSpec(policy, source, sure, home, accept=accepted(accept)), json, quiet)


@app.command()
def erase(
    identifiers: Annotated[list[str] | None, typer.Argument(help="Identifiers, as in the tables.")] = None,
    listed: Annotated[Path | None, typer.Option("--from", help="A text file with one identifier in each line.")] = None,
    sure: Sure = False,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forget who somebody is. Their place goes on as a counterfeit, and they are never shown again."""
    names = [*(identifiers or ()), *(_lines_of(listed) if listed is not None else ())]
    if not names:
        message = "nobody is named"
        raise InputError(Fault("R553", "identifier", message, "name them, or give a file of them with --from"))
    _do(EraseSpec(policy, names, sure, home), json, quiet)


def _lines_of(file: Path) -> list[str]:
    """The lines of a text file, without what programs add to them."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte 0x{error.object[error.start]:02x} at offset {error.start} is not utf-8"
        raise InputError(Fault("R105", str(file), message, "write the list as UTF-8")) from None
    return [line.strip() for line in text.splitlines() if line.strip()]


people_app = typer.Typer(help="Identifiers that are one person, or two.", no_args_is_help=True)
app.add_typer(people_app, name="people")


@people_app.command()
def merge(
    one: Who,
    other: Who,
    sure: Sure = False,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Two identifiers are one person. One place stays, the other goes on as a counterfeit."""
    _do(MergeSpec(policy, one, other, sure, home), json, quiet)


@people_app.command()
def split(
    one: Who,
    new: Annotated[str, typer.Argument(help="The identifier that the second person has from now on.")],
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One identifier was two people. It keeps its place; the second person comes as a newcomer."""
    _do(SplitSpec(policy, one, new, home), json, quiet)


@app.command()
def retract(
    number: Annotated[int, typer.Argument(help="Number of a release that was handed over.")],
    note: Annotated[str, typer.Option(help="Why. PUBLIC: it stands in the packages of later releases.")] = "",
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A release that others have must not be used: recorded, and said in every later package."""
    _do(RetractSpec(policy, number, note, home), json, quiet)


@app.command()
def rotate(
    tables: Annotated[list[str], typer.Argument(help="Tables that together hold everybody the series has ever seen.")],
    forget_erased: Annotated[
        bool, typer.Option("--forget-erased", help="Who asked to be erased is no longer known; you keep them out.")
    ] = False,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Another key for the hashes of identifiers, where the old one may be known to others."""
    _do(RotateSpec(policy, tables, forget_erased, home), json, quiet)


@app.command()
def end(
    destroy_key: Annotated[bool, typer.Option("--destroy-key", help="Delete the key.")] = False,
    destroy_memory: Annotated[
        bool, typer.Option("--destroy-memory", help="Delete key and memory: the promise cannot be judged again.")
    ] = False,
    sure: Sure = False,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The series ends: no further release. Also for a home whose key is lost."""
    _do(EndSpec(policy, destroy_key, destroy_memory, sure, home), json, quiet)
