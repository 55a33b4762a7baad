"""From a table to a series of releases, and back to what was published: init, plan, publish, history, show, verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reveil.base.errors import Fault, GuaranteeError, InputError, ReveilError, TamperedError
from reveil.base.words import some
from reveil.cli.shared import (
    POLICY,
    Home,
    Json,
    PolicyFile,
    Quiet,
    Seed,
    Source,
    app,
    load_kernels,
    past_of,
    series_of,
    series_so_far,
    show_findings,
    show_release,
)

if TYPE_CHECKING:
    from reveil.publish import Series


@app.command()
def init(
    source: Source,
    policy: PolicyFile = POLICY,
    name: Annotated[str | None, typer.Option(help="Name of the series. Default: the table's name.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at the columns, suggest roles and hierarchies with reasons, and write a policy to edit."""
    from reveil.cli import terminal
    from reveil.start.suggest import draft_policy, find_hierarchies, suggest
    from reveil.table.read import read_table

    if policy.exists():
        raise InputError(Fault("R219", f"policy {policy}", "exists already", "remove it, or pass --policy NEW-FILE"))
    frame = read_table(source)
    folder = Path(source).parent if Path(source).exists() else Path()
    suggestions = suggest(frame)
    hierarchies = find_hierarchies(folder, frame.columns) if folder == policy.parent else {}
    policy.write_text(draft_policy(suggestions, name or Path(source).stem, hierarchies), encoding="utf-8")
    if json:
        terminal.say_json({"policy": str(policy), "columns": [suggestion.to_dict() for suggestion in suggestions]})
    elif not quiet:
        rows = [(s.column, s.role, s.confidence, s.reason) for s in suggestions]
        terminal.say(terminal.table(("column", "suggested role", "", "why"), rows))
        terminal.say(
            f"\nWrote {policy}. Read it and correct it: only you know what others can know about these people."
        )
        known_again = any(suggestion.role == "identifier" for suggestion in suggestions)
        terminal.say(f"Then: reveil {'plan' if known_again else 'anonymize --out NEW-FOLDER'} {source}")


@app.command()
def plan(
    source: Source,
    policy: PolicyFile = POLICY,
    home: Home = None,
    compare: Annotated[bool, typer.Option("--compare", help="Generalisation schemes side by side.")] = False,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What would be published, what it costs, what is infeasible. Changes nothing."""
    from reveil.cli import terminal

    if compare and home is not None:
        raise InputError(Fault("R790", "--home", "does nothing with --compare: no series is looked at", "leave it out"))
    if compare:
        _compare(source, policy, seed, json, quiet)
        return
    series = series_of(policy, home, quiet)
    with terminal.progress(quiet) as show:
        preview = series.plan(source, seed=seed, progress=show)
    if json:
        terminal.say_json(preview.to_dict())
        return
    terminal.say(f"Release {preview.number} under {preview.model} would be:")
    published = preview.rows - preview.plan.withheld + preview.plan.counterfeits
    terminal.say(
        f"  {some(published, 'row')} in {some(preview.plan.count, 'group')}, "
        f"{preview.plan.withheld:,} of {preview.rows:,} withheld, {preview.plan.counterfeits:,} counterfeit"
    )
    for reason, rows in preview.plan.reasons.items():
        terminal.say(f"  withheld: {rows:,} ({reason})")
    losses = [(column, loss) for column, loss in preview.loss.columns.items()]
    terminal.say(f"  information lost (NCP; 0 exact, 1 nothing said): {preview.loss.mean:.4f} per cell")
    terminal.say(terminal.table(("column", "NCP"), losses))
    for name, value in preview.plan.statistics.items():
        terminal.say(terminal.statistic(name, value))
    terminal.say("Nothing was written. To publish: reveil publish " + source)


def _compare(source: str, policy: Path, seed: int | None, json: bool, quiet: bool) -> None:
    from reveil.cli import terminal
    from reveil.measure.compare import compare

    with terminal.progress(quiet) as show:
        found = compare(source, policy, seed=seed or 0, progress=show)
    if json:
        terminal.say_json(found.to_dict())
        return
    terminal.say(
        f"{some(found.rows, 'row')}; information lost (NCP; 0 exact, 1 nothing said) per cell, by method.name:"
    )
    terminal.say(terminal.table(*found.table()))


@app.command()
def publish(
    source: Source,
    policy: PolicyFile = POLICY,
    home: Home = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One more release of the series: planned, verified, recorded, revealed. Or nothing, with the reason."""
    from reveil.cli import terminal

    series = series_of(policy, home, quiet)
    with terminal.progress(quiet) as show:
        release = series.publish(source, seed=seed, progress=show)
    show_release(release, json, quiet)


@app.command()
def history(policy: PolicyFile = POLICY, home: Home = None, json: Json = False, quiet: Quiet = False) -> None:
    """The series so far, and whether everything is as it was recorded."""
    from reveil.cli import terminal
    from reveil.verify.certificate import limits

    series = past_of(policy, home, quiet)
    records, faults = series.ledger.records(), series.ledger.check()
    if json:
        listed = [{"number": r.number, "made": r.made, "id": r.id, **r.facts["counts"]} for r in records]
        terminal.say_json({"series": series.ledger.series, "releases": listed, "faults": [f.to_dict() for f in faults]})
    else:
        columns = ("input rows", "published rows", "withheld rows", "counterfeit rows", "groups")
        rows = [
            (r.number, r.made[:16], *(r.facts["counts"][c] for c in columns), r.facts["loss"]["mean_ncp"], r.id[:12])
            for r in records
        ]
        terminal.say(f"Series {series.ledger.series!r} in {series.ledger.home}: {some(len(records), 'release')}.")
        if rows:
            terminal.say(terminal.table(("no", "made (UTC)", *columns, "NCP", "id"), rows))
        for limit in limits(series.policy, 1)[1:]:
            terminal.say(f"Note: {limit}")
    if faults and json:
        raise typer.Exit(TamperedError.exit_code)
    if faults:
        raise TamperedError(faults)


@app.command()
def show(
    number: Annotated[int | None, typer.Argument(help="Number of the release. Default: the latest.")] = None,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One release of the series: its certificate, in words."""
    from reveil.cli import terminal
    from reveil.jobs.release import Release

    series = past_of(policy, home, quiet)
    records = {record.number: record for record in series.ledger.records()}
    wanted = max(records, default=None) if number is None else number
    if wanted not in records:
        where = "the latest release" if wanted is None else f"release {wanted}"
        message = f"is not in this series (it has {list(records)})"
        raise InputError(Fault("R510", where, message, "see `reveil history`"))
    release = Release.load(series.ledger, records[wanted])
    show_release(release, json, False)
    if not json:
        for check in release.certificate.checks:
            terminal.say(f"  checked: {check['name']}: {check['finding']}")
        for assumption in release.certificate.assumptions:
            terminal.say(f"  assumed: {assumption}")


@app.command()
def verify(
    what: Annotated[
        str | None, typer.Argument(help="Number of a release, a folder, or a published table. Default: all releases.")
    ] = None,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check again, from the published bytes."""
    if what is not None and not what.isdecimal():
        holds = _verify_elsewhere(what, policy, json)
    else:
        series = series_so_far(policy, home, quiet)
        holds = _verify_series(None if what is None else int(what), series, json)
    if not holds and json:
        raise typer.Exit(GuaranteeError.exit_code)
    if not holds:
        fault = Fault("R602", "verification", "does not confirm what was promised", "see above what was found")
        raise GuaranteeError(fault)


def _verify_elsewhere(what: str, policy: Path, json: bool) -> bool:
    from reveil.cli import terminal
    from reveil.policy.policy import load_policy
    from reveil.verify.recheck import check_folder, check_published

    loaded = load_policy(policy)
    certificate = check_folder(Path(what), loaded) if Path(what).is_dir() else check_published(what, loaded)
    if json:
        terminal.say_json(certificate.to_dict())
    else:
        show_findings(certificate)
    return certificate.holds


def _verify_series(number: int | None, series: "Series", json: bool) -> bool:
    from reveil.cli import terminal

    found = series.verify(number)
    content: dict[int, Any] = {}
    for release, result in found.items():
        if isinstance(result, ReveilError):
            content[release] = {"holds": False, "faults": [fault.to_dict() for fault in result.faults]}
        else:
            verdicts = [verdict.to_dict() for verdict in result.verdicts]
            content[release] = {
                "holds": result.holds,
                "verdicts": verdicts,
                "checks": [c.to_dict() for c in result.checks],
            }
    if json:
        terminal.say_json(content)
    for release, result in content.items() if not json else ():
        terminal.say(f"Release {release}: {'holds' if result['holds'] else 'DOES NOT HOLD'}")
        if "verdicts" in result:
            terminal.say(terminal.verdict_lines(result["verdicts"]))
        for item in [c for c in result.get("checks", ()) if not c["holds"]]:
            terminal.say(f"  FAILS  {item['name']}: {item['finding']}")
        for fault in result.get("faults", ()):
            terminal.say(f"  {fault['code']}  {fault['where']}: {fault['message']}\n        Way out: {fault['remedy']}")
    return all(result["holds"] for result in content.values())


@app.command()
def anonymize(
    source: Source,
    out: Annotated[Path, typer.Option(help="New folder for the release.")],
    policy: PolicyFile = POLICY,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One release of one table, verified; no series, no memory."""
    from reveil.cli import terminal

    load_kernels()
    from reveil.publish import anonymize as make

    with terminal.progress(quiet) as show:
        release = make(source, policy, seed=seed, out=out, progress=show)
    show_release(release, json, quiet)
