"""What an adversary makes of releases: audit, and the odds that are known beforehand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from reveil.base.errors import Fault, GuaranteeError, InputError, UnmatchedError
from reveil.base.words import agree, some_people
from reveil.cli.shared import POLICY, Home, Json, PolicyFile, Quiet, app, say_past
from reveil.jobs.specs import AuditSpec

if TYPE_CHECKING:
    from reveil.audit.audit import Audit


UNDECIDED = 3  # exit code: neither that the promise holds nor that it does not


@app.command()
def audit(
    tables: Annotated[
        list[Path] | None,
        typer.Argument(help="Released tables, in order, or a folder of them for each publisher. Default: the series."),
    ] = None,
    policy: PolicyFile = POLICY,
    home: Home = None,
    population: Annotated[
        Path | None, typer.Option(help="Who has which quasi-identifiers; columns `release` and `publisher` say where.")
    ] = None,
    presence: Annotated[
        Literal["auto", "known", "unknown"], typer.Option(help="Whether all of the population are in the releases.")
    ] = "auto",
    accept_missing: Annotated[
        bool, typer.Option("--accept-missing", help="People of the population may fit no group of the releases.")
    ] = False,
    sensitive: Annotated[str | None, typer.Option(help="The sensitive column to look at.")] = None,
    adversary: Annotated[
        Path | None, typer.Option(help="TOML file: change, transitions, priors, compromised, share.")
    ] = None,
    change: Annotated[str | None, typer.Option(help="How values change: never, freely, transitions.")] = None,
    transitions: Annotated[
        Path | None, typer.Option(help="File of changes: from;to[;probability]. Default: the policy's.")
    ] = None,
    compromised: Annotated[
        list[str] | None, typer.Option(help="Somebody known: NAME, NAME=VALUE or NAME@RELEASE=VALUE. May be repeated.")
    ] = None,
    share: Annotated[str | None, typer.Option(help="Share of the people known at random, such as 0.04.")] = None,
    draws: Annotated[int, typer.Option(help="How often to draw them.")] = 1,
    publisher: Annotated[
        str | None, typer.Option(help="Known to cut groups as far as the promise allows: any or median.")
    ] = None,
    promise: Annotated[
        str | None, typer.Option(help="Highest belief allowed, such as 1/4. Default: the policy's.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds of computing for counting and searching.")] = 60.0,
    samples: Annotated[int | None, typer.Option(help="Steps of sampling; default: as time allows.")] = None,
    people: Annotated[list[str] | None, typer.Option(help="Look at these people only. May be repeated.")] = None,
    worst: Annotated[int | None, typer.Option(help="How many exposed people to explain. Default: 5.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    external: Annotated[bool, typer.Option(help="Name nobody, wherever it is shown.")] = False,
    notation: Annotated[
        bool, typer.Option("--notation", help="Only say how the cells of the tables are read.")
    ] = False,
    identifier: Annotated[str | None, typer.Option(help="The column of the population that says who is who.")] = None,
    seed: Annotated[int, typer.Option(help="Of random draws and sampling.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The adversary's view of this series, or of any released tables: who is exposed, and why."""
    from reveil.cli import terminal
    from reveil.jobs.past import settle_and_look_back

    _refuse_idle(bool(tables), home, external, worst, notation)
    if notation:
        _show_notations([str(table) for table in tables or ()], json)
        return
    how: dict[str, Any] = {
        "sensitive": sensitive, "identifier": identifier, "adversary": adversary, "change": change,
        "compromised": compromised or (), "transitions": transitions, "share": share, "draws": draws,
        "publisher": publisher, "promise": promise,
        "limit": limit, "samples": samples, "people": people or None, "seed": seed,
        "presence": presence, "accept_missing": accept_missing,
        "worst": 0 if external else 5 if worst is None else worst,
    }  # fmt: skip
    if tables and population is None:
        _refuse_unknown_people({**how, "worst": worst, "report": report, "external": external})
        _show_first_verdict([str(table) for table in tables], sensitive, json)
    if tables:
        given = policy if policy.exists() or policy != POLICY else None
        spec = AuditSpec([str(table) for table in tables], population, given, settings=how)
    else:
        spec = AuditSpec(None, population, policy, home, how)
        say_past(policy, settle_and_look_back(policy, home), quiet)
    with terminal.progress(quiet) as show:
        outcome = spec.run(show)
    _show_audit(outcome, report, external, json, quiet)
    _refuse_exposure(outcome, json)
    if outcome.unmatched and not accept_missing:
        _refuse_unmatched(outcome.unmatched, outcome.observed.unmatched, json)


def _refuse_unmatched(message: str, people: int, json: bool) -> None:
    if json:
        raise typer.Exit(UnmatchedError.exit_code)
    remedy = "correct the population, or say that it may hold others with --accept-missing"
    raise UnmatchedError(Fault("R734", "population", message.rstrip("."), remedy, people))


def _refuse_unknown_people(said: dict[str, Any]) -> None:
    """What is said about people or their attack, where nobody is listed."""
    plain = {"draws": 1, "limit": 60.0, "seed": 0, "presence": "auto", "compromised": ()}
    message = "is for an attack on people, and no --population is given"
    idle = [
        Fault("R732", name, message, "give --population, or leave it out")
        for name, value in said.items()
        if name != "sensitive" and value not in (None, False) and value != plain.get(name)
    ]
    if idle:
        raise InputError(idle)


def _show_first_verdict(tables: list[str], sensitive: str | None, json: bool) -> None:
    """What the tables tell by themselves; never that nobody is exposed."""
    from textwrap import fill

    from reveil.audit.alone import first_lines, first_verdict
    from reveil.cli import terminal

    seen = first_verdict(tables, sensitive)
    if json:
        terminal.say_json(seen.to_dict())
    else:
        terminal.say("\n".join(fill(text, 110, subsequent_indent="  ") for text in first_lines(seen)))
    raise typer.Exit(GuaranteeError.exit_code if seen.found else UNDECIDED)


def _show_notations(tables: list[str], json: bool) -> None:
    """How each notation of each column is read."""
    from reveil.audit.input.notations import notations
    from reveil.cli import terminal

    listed = notations(tables)
    if json:
        terminal.say_json([one.to_dict() for one in listed])
        return
    rows = [(one.column, f"{one.rows:,}", f"{one.cells:,}", one.example, one.meaning) for one in listed]
    for table in dict.fromkeys(one.source for one in listed):
        mine = [row for row, one in zip(rows, listed, strict=True) if one.source == table]
        terminal.say(f"\n{table}")
        terminal.say(terminal.table(["column", "rows", "different cells", "such as", "read as"], mine))


def _refuse_idle(tables: bool, home: Path | None, external: bool, worst: int | None, notation: bool) -> None:
    """Options that would do nothing beside the others."""
    faults = []
    if notation and not tables:
        faults.append(Fault("R732", "--notation", "no released table is named", "name the tables to read"))
    if tables and home is not None:
        message = "is that of a series, and released tables are named"
        faults.append(Fault("R732", "--home", message, "leave one of them out"))
    if external and worst is not None:
        message = "nobody is named, so nobody's case is explained"
        faults.append(Fault("R732", "--worst with --external", message, "leave one of them out"))
    if faults:
        raise InputError(faults)


def _show_audit(outcome: "Audit", report: Path | None, external: bool, json: bool, quiet: bool) -> None:
    from reveil.audit.result.audit_report import write_html
    from reveil.audit.result.screen import lines
    from reveil.cli import terminal

    if report is not None:
        write_html(outcome, report, external=external)
    if json:
        terminal.say_json(outcome.to_dict(names=not external))
    elif not quiet:
        terminal.say(lines(outcome, external=external))


def _refuse_exposure(outcome: "Audit", json: bool) -> None:
    from reveil.audit.result.outcome import TOO_MANY

    if outcome.undecided:
        if not json:
            s = outcome.summary
            count = f"{s['undecided']:,} undecided, {s['without_belief']:,} without a belief"
            limit = f"more than one in {TOO_MANY}"
            typer.echo(f"{count}: {limit}, too many to say anything. Raise --limit, or name --people.", err=True)
        raise typer.Exit(UNDECIDED)
    if outcome.holds:
        return
    if json:
        raise typer.Exit(GuaranteeError.exit_code)  # the answer is on the screen; a second one would not be JSON
    s = outcome.summary
    message = (
        f"{some_people(s['exposed'])} {agree(s['exposed'], 'is', 'are')} exposed, {s['above_promise']:,} "
        f"{agree(s['above_promise'], 'is', 'are')} above the promise"
    )
    raise GuaranteeError(
        Fault("R728", "audit", message, "see the reasons (`--worst`, `--report FILE`); `reveil explain R728`")
    )
