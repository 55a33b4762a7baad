"""From a policy to a series of releases, and back to what was published: plan, publish, history, show, verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reveil.base.doubts import accepted
from reveil.base.errors import Fault, GuaranteeError, InputError, TamperedError, UndecidedError
from reveil.base.words import some, some_people
from reveil.cli.planning import refuse_idle, show_advice, show_ahead, show_comparison, show_forms, show_moving
from reveil.cli.shared import (
    POLICY,
    Accept,
    Catalog,
    Home,
    Json,
    Key,
    NewPeople,
    PolicyFile,
    Quiet,
    Seed,
    SeedBesideKey,
    Source,
    Where,
    app,
    command,
    load_kernels,
    parsed,
    prepare_to_publish,
    run_asking,
    say_past,
    show_findings,
    show_release,
    show_types,
)
from reveil.jobs.specs import (
    AdviceSpec,
    AffectedSpec,
    AheadSpec,
    AnonymizeSpec,
    CompareSpec,
    HistorySpec,
    PlanSpec,
    PublishSpec,
    VerifySpec,
)

if TYPE_CHECKING:
    from reveil.jobs.results import HandedOver, Rechecked
    from reveil.verify.certificate import Certificate

# Columns of the history. Releases of older versions did not count who came back.
COUNTS = ("input rows", "published rows", "withheld rows", "counterfeit rows", "groups")
EVENT_DETAILS = ("recipient", "reason", "note", "people", "key", "memory", "for")
PEOPLE = ("came back", "returned", "new people")


@app.command()
def plan(
    source: Source,
    policy: PolicyFile = POLICY,
    home: Home = None,
    catalog: Catalog = None,
    compare: Annotated[bool, typer.Option("--compare", help="Generalisation schemes side by side.")] = False,
    seconds: Annotated[float | None, typer.Option(help="With --compare: time for each scheme (60).")] = None,
    ahead: Annotated[int | None, typer.Option(help="Forecast so many releases, from how people came and went.")] = None,
    leave: Annotated[str | None, typer.Option(help="With --ahead: share that leaves from release to release.")] = None,
    back: Annotated[str | None, typer.Option(help="With --ahead: share of those away who return.")] = None,
    arrive: Annotated[str | None, typer.Option(help="With --ahead: newcomers per person.")] = None,
    report: Annotated[Path | None, typer.Option(help="With --ahead: plots of the forecast, as a page.")] = None,
    advice: Annotated[bool, typer.Option("--advice", help="Try what would lower the loss, one change each.")] = False,
    where: Where = None,
    seed: Seed = None,
    new_people: NewPeople = False,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What would be published, what it costs, what is infeasible. Changes nothing."""
    from reveil.cli import terminal
    from reveil.history.returning import sentence

    rates = (leave, back, arrive)
    about: dict[str, Any] = {"rates": (*rates, report), "seconds": seconds, "catalog": catalog}
    refuse_idle(compare=compare, ahead=ahead, advice=advice, home=home, **about)
    doubts, rows = accepted(accept), parsed(where)
    if ahead is not None:
        spec = AheadSpec(source, policy, ahead, home, *rates, seed or 0, new_people, doubts, rows)
        show_ahead(spec, policy, home, report, json, quiet)
        return
    if advice:
        show_advice(AdviceSpec(source, policy, home, seed=seed or 0, accept=doubts, where=rows), json, quiet)
        return
    if compare:
        show_comparison(CompareSpec(source, policy, seed or 0, doubts, seconds, rows), json, quiet)
        return
    prepare_to_publish(policy, home, quiet, catalog)
    preview = run_asking(PlanSpec(source, policy, home, seed, new_people, doubts, rows, catalog), quiet, json)
    if json:
        terminal.say_json(preview.to_dict())
        return
    terminal.say(f"Release {preview.number} under {preview.model} would be:")
    shown = preview.rows - preview.plan.withheld
    published = shown - preview.plan.stood_in + preview.plan.counterfeits
    form = f"{some(published, 'row')}"
    if preview.several is not None:
        form = f"{some(shown, 'row')} of {some_people(preview.several)}"
        form = f"two tables: {form}, their values" if preview.two_tables else form
    elif preview.two_tables:
        form = f"two tables: {some(shown, 'person', 'people')}, and {some(published, 'value')}"
    terminal.say(
        f"  {form} in {some(preview.plan.count, 'group')}, "
        f"{preview.plan.withheld:,} of {preview.rows:,} withheld, {preview.plan.counterfeits:,} counterfeit"
    )
    if preview.plan.stood_in:
        back = some(preview.plan.stood_in, "person is", "people are")
        terminal.say(f"  {back} shown while a counterfeit stands in for their value (`reveil explain stand-in`)")
    if came := sentence(preview.people, preview.number):
        terminal.say(f"  {came}")
    for reason, rows in preview.plan.reasons.items():
        terminal.say(f"  withheld: {rows:,} ({reason})")
    losses = [(column, loss) for column, loss in preview.loss.columns.items()]
    terminal.say(f"  information lost (NCP; 0 exact, 1 nothing said): {preview.loss.mean:.4f} per cell")
    terminal.say(terminal.table(("column", "NCP"), losses))
    for name, value in preview.plan.statistics.items():
        terminal.say(terminal.statistic(name, value))
    show_moving(preview.moving)
    show_forms(preview.forms)
    show_types(preview.decided)
    how = "anonymize" if preview.alone else "publish"
    again = command(how, source, policy, *((None, where, accept) if preview.alone else (home, where, accept, catalog)))
    terminal.say(f"Nothing was written. To publish: {again}{' --out FOLDER' if preview.alone else ''}")


@app.command()
def publish(
    source: Source,
    policy: PolicyFile = POLICY,
    home: Home = None,
    catalog: Catalog = None,
    where: Where = None,
    seed: Seed = None,
    new_people: NewPeople = False,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One more release of the series: planned, verified, recorded, revealed. Or nothing, with the reason."""
    prepare_to_publish(policy, home, quiet, catalog)
    spec = PublishSpec(source, policy, home, seed, new_people, accepted(accept), parsed(where), catalog)
    release = run_asking(spec, quiet, json)
    show_release(release, json, quiet)


@app.command()
def history(policy: PolicyFile = POLICY, home: Home = None, json: Json = False, quiet: Quiet = False) -> None:
    """The series so far, and whether everything is as it was recorded."""
    from reveil.cli import terminal

    past = HistorySpec(policy, home).run()
    say_past(policy, past.past, quiet)
    if json:
        terminal.say_json(past.to_dict())
    else:
        rows = [
            (
                r["number"],
                r["made"][:16],
                *(r[c] for c in COUNTS),
                *(r.get(c, "-") for c in PEOPLE),
                r["NCP"],
                r["state"],
                r["id"][:12],
            )
            for r in past.releases
        ]
        count = sum(r["state"] != "discarded" for r in past.releases)
        terminal.say(f"Series {past.series!r} in {past.home}: {some(count, 'release')}.")
        if rows:
            terminal.say(terminal.table(("no", "made (UTC)", *COUNTS, *PEOPLE, "NCP", "state", "id"), rows))
        for e in past.events:
            more = "".join(f", {name} {e[name]!r}" for name in EVENT_DETAILS if name in e)
            what = f"Release {e['release']} was" if e["release"] else "Series:"
            terminal.say(f"{what} {e['action']} on {e['at'][:16]} by {e['by']}{more}.")
        for note in past.notes:
            terminal.say(f"Note: {note}")
    if past.faults and json:
        raise typer.Exit(TamperedError.exit_code)
    if past.faults:
        raise TamperedError(past.faults)


@app.command()
def show(
    number: Annotated[int | None, typer.Argument(help="Number of the release. Default: the latest.")] = None,
    affected: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="The table of the release: list who of it is not shown, and why."),
    ] = None,
    policy: PolicyFile = POLICY,
    home: Home = None,
    where: Where = None,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One release of the series: its certificate, in words; or who of its table is not shown."""
    from reveil.cli import terminal
    from reveil.jobs.past import settle_and_look_back
    from reveil.jobs.results import release_of

    if affected is not None:
        listed = AffectedSpec(policy, affected, number, home, accepted(accept), parsed(where)).run()
        terminal.say_json(listed.to_dict()) if json else terminal.say("\n".join(listed.lines()))
        return
    if idle := [name for name, given in (("accept", accept), ("where", where)) if given]:
        raise InputError(
            [Fault("R732", name, "means nothing without --affected TABLE", "leave it out") for name in idle]
        )
    past = settle_and_look_back(policy, home)
    say_past(policy, past, quiet)
    release = release_of(past, number)
    show_release(release, json, False)
    if not json:
        for check in release.certificate.checks:
            terminal.say(f"  checked: {check['name']}: {check['finding']}")
        for assumption in release.certificate.assumptions:
            terminal.say(f"  assumed: {assumption}")


@app.command()
def verify(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Number of a release, folders, or a published table. Default: all releases."),
    ] = None,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check again, from the published bytes."""
    from reveil.cli import terminal
    from reveil.jobs.results import HandedOver, Rechecked

    named = what[0] if what and len(what) == 1 else what or None
    with terminal.busy("verifying", quiet):
        result = VerifySpec(policy, int(named) if isinstance(named, str) and named.isdecimal() else named, home).run()
    if isinstance(result, HandedOver):
        _show_handed_over(result, json)
    elif isinstance(result, Rechecked):
        say_past(policy, result.past, quiet)
        _show_rechecked(result, json)
    else:
        _show_certificate(result, json)
    undecided = not isinstance(result, Rechecked) and result.undecided
    if not result.holds and json:
        raise typer.Exit(UndecidedError.exit_code if undecided else GuaranteeError.exit_code)
    if undecided:
        message = "the promise is about a series (or about people's odds), and these files do not say who is in them"
        remedy = "verify it where the series is kept: reveil verify NUMBER --home HOME"
        raise UndecidedError(Fault("R540", "verification", message, remedy))
    if not result.holds:
        fault = Fault("R602", "verification", "does not confirm what was promised", "see above what was found")
        raise GuaranteeError(fault)


def _show_handed_over(checked: "HandedOver", json: bool) -> None:
    from reveil.cli import terminal

    if json:
        terminal.say_json(checked.to_dict())
        return
    for where, certificate in checked.certificates.items():
        terminal.say(f"{where}:")
        show_findings(certificate)
    if checked.forks:
        raise TamperedError(checked.forks)
    terminal.say("No two of these packages contradict each other about the series they belong to.")


def _show_certificate(certificate: "Certificate", json: bool) -> None:
    from reveil.cli import terminal

    if json:
        terminal.say_json(certificate.to_dict())
    else:
        show_findings(certificate)


def _show_rechecked(checked: "Rechecked", json: bool) -> None:
    from reveil.cli import terminal

    content = checked.to_dict()
    if json:
        terminal.say_json(content)
        return
    for release, result in content.items():
        terminal.say(f"Release {release}: {result['verdict']}")
        if "verdicts" in result:
            terminal.say(terminal.verdict_lines(result["verdicts"]))
        for item in [c for c in result.get("checks", ()) if not c["holds"]]:
            terminal.say(f"  FAILS  {item['name']}: {item['finding']}")
        for fault in result.get("faults", ()):
            terminal.say(f"  {fault['code']}  {fault['where']}: {fault['message']}\n        Way out: {fault['remedy']}")


@app.command()
def anonymize(
    source: Source,
    out: Annotated[Path, typer.Option(help="New folder for the release.")],
    policy: PolicyFile = POLICY,
    where: Where = None,
    seed: SeedBesideKey = None,
    key: Key = None,
    accept: Accept = "",
    engine: Annotated[
        str, typer.Option(help="whole, blocks (out of core), spark, or auto: blocks if too large.")
    ] = "auto",
    memory: Annotated[
        str | None, typer.Option(help="What the job may take, such as 4GB. Default: what is free.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="With --engine spark: the URL of its master.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One release of one table, verified; no series, no memory."""
    load_kernels()
    spec = AnonymizeSpec(source, policy, seed, out, key, accepted(accept), parsed(where), engine, memory, master)
    release = run_asking(spec, quiet, json)
    show_release(release, json, quiet)
