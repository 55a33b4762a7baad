"""The command line: arguments to the same calls that Python users make.

Exit codes: 0 good; 1 a guarantee does not hold or an exposure was found; 2 bad input or use. Heavy parts are imported
inside the commands, so that `reveil --help` is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reveil.errors import Fault, GuaranteeError, InputError, ReveilError, TamperedError

if TYPE_CHECKING:
    from reveil.audit.api import Audit
    from reveil.certificate import Certificate
    from reveil.policy import Policy
    from reveil.publish import Series
    from reveil.release import Release

app = typer.Typer(
    name="reveil",
    help="Publish tables about people again and again, without the series giving anyone away.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Home = Annotated[
    Path | None, typer.Option(help="Folder of the series' private memory. Default: .reveil beside the policy.")
]
PolicyFile = Annotated[Path, typer.Option("--policy", help="The policy file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and results that were asked for.")]
Seed = Annotated[int | None, typer.Option(help="Make it repeatable. Keep the seed secret: it undoes the shuffling.")]
Source = Annotated[str, typer.Argument(help="CSV, Parquet, Excel, Stata/SPSS/SAS file, or a database URL.")]
POLICY = Path("reveil.toml")


def main() -> None:
    """Run the command line; refusals become messages and exit codes."""
    try:
        app()
    except ReveilError as error:
        from reveil import terminal

        terminal.refuse(error, "--json" in sys.argv)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        from reveil import terminal

        place = error.filename or "this machine"
        fault = Fault("R223", f"'{place}'", error.strerror or str(error), "check that place, its rights and its space")
        terminal.refuse(InputError(fault), "--json" in sys.argv)
        sys.exit(InputError.exit_code)


def _series(policy: Path, home: Path | None, quiet: bool, *, begun: bool = False) -> Series:
    """The series; `begun` for commands that only look back, which must not begin one in a mistyped place."""
    from reveil.ledger.ledger import Ledger
    from reveil.publish import open_series

    series = open_series(policy, home)
    if begun and not series.begun:
        Ledger.open(series.home)  # refuses, and says so
    for sentence in series.settled if not quiet else ():
        sys.stderr.write(sentence + "\n")
    return series


@app.command()
def init(
    source: Source,
    policy: PolicyFile = POLICY,
    name: Annotated[str | None, typer.Option(help="Name of the series. Default: the table's name.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at the columns, suggest roles and hierarchies with reasons, and write a policy to edit."""
    from reveil import terminal
    from reveil.read import read_table
    from reveil.suggest import draft_policy, find_hierarchies, suggest

    if policy.exists():
        raise InputError(Fault("R219", f"policy {policy}", "exists already", "remove it, or pass --policy NEW-FILE"))
    frame = read_table(source)
    folder = Path(source).parent if Path(source).exists() else Path()
    suggestions = suggest(frame)
    hierarchies = find_hierarchies(folder, frame.columns) if folder == policy.parent else {}
    policy.write_text(draft_policy(suggestions, name or Path(source).stem, hierarchies), encoding="utf-8")
    if json:
        terminal.say_json([suggestion.to_dict() for suggestion in suggestions])
    elif not quiet:
        rows = [(s.column, s.role, s.confidence, s.reason) for s in suggestions]
        terminal.say(terminal.table(("column", "suggested role", "", "why"), rows))
        terminal.say(
            f"\nWrote {policy}. Read it and correct it: only you know what others can know about these people."
        )
        terminal.say(f"Then: reveil plan {source}")


@app.command()
def plan(
    source: Source,
    policy: PolicyFile = POLICY,
    home: Home = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What would be published, what it costs, what is infeasible. Changes nothing."""
    from reveil import terminal

    series = _series(policy, home, quiet)
    with terminal.progress(quiet) as show:
        preview = series.plan(source, seed=seed, progress=show)
    if json:
        terminal.say_json(preview.to_dict())
        return
    terminal.say(f"Release {preview.number} under {preview.model} would be:")
    published = preview.rows - preview.plan.withheld + preview.plan.counterfeits
    terminal.say(
        f"  {published:,} rows in {preview.plan.count:,} groups, "
        f"{preview.plan.withheld:,} of {preview.rows:,} withheld, {preview.plan.counterfeits:,} counterfeit"
    )
    for reason, rows in preview.plan.reasons.items():
        terminal.say(f"  withheld: {rows:,} ({reason})")
    losses = [(column, loss) for column, loss in preview.loss.columns.items()]
    terminal.say(f"  information lost (NCP; 0 exact, 1 nothing said): {preview.loss.mean:.4f} per cell")
    terminal.say(terminal.table(("column", "NCP"), losses))
    for name, value in preview.plan.statistics.items():
        terminal.say(f"  {name}: {value}")
    terminal.say("Nothing was written. To publish: reveil publish " + source)


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
    from reveil import terminal

    series = _series(policy, home, quiet)
    with terminal.progress(quiet) as show:
        release = series.publish(source, seed=seed, progress=show)
    _show_release(release, json, quiet)


def _show_release(release: Release, json: bool, quiet: bool) -> None:
    from reveil import terminal

    if json:
        terminal.say_json(release.to_dict())
        return
    if quiet:
        return
    certificate = release.certificate
    name = "The release" if release.number is None else f"Release {release.number} of {certificate.series!r}"
    terminal.say(f"{name}: {terminal.counts_line(certificate.counts)}.")
    _show_findings(certificate)
    if release.path is not None:
        terminal.say(f"\nHand over only   {release.path / 'public'}")
        terminal.say(f"Keep to yourself {release.path / 'private'}   (read report.html first)")


def _show_findings(certificate: Certificate) -> None:
    from reveil import terminal

    terminal.say(terminal.verdict_lines(certificate.verdicts))
    for check in certificate.checks:
        if not check["holds"]:
            terminal.say(f"  FAILS  {check['name']}: {check['finding']}")
    for limit in certificate.limits:
        terminal.say(f"Note: {limit}")


@app.command()
def history(policy: PolicyFile = POLICY, home: Home = None, json: Json = False, quiet: Quiet = False) -> None:
    """The series so far, and whether everything is as it was recorded."""
    from reveil import terminal
    from reveil.certificate import limits

    series = _series(policy, home, quiet, begun=True)
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
        terminal.say(f"Series {series.ledger.series!r} in {series.ledger.home}: {len(records)} releases.")
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
    number: Annotated[int, typer.Argument(help="Number of the release.")],
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
) -> None:
    """One release of the series: its certificate, in words."""
    from reveil import terminal
    from reveil.release import Release

    series = _series(policy, home, True, begun=True)
    records = {record.number: record for record in series.ledger.records()}
    if number not in records:
        raise InputError(
            Fault(
                "R510", f"release {number}", f"is not in this series (it has {list(records)})", "see `reveil history`"
            )
        )
    release = Release.load(series.ledger, records[number])
    _show_release(release, json, False)
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
        series = _series(policy, home, quiet, begun=True)
        holds = _verify_series(None if what is None else int(what), series, json)
    if not holds and json:
        raise typer.Exit(GuaranteeError.exit_code)
    if not holds:
        fault = Fault("R602", "verification", "does not confirm what was promised", "see above what was found")
        raise GuaranteeError(fault)


def _verify_elsewhere(what: str, policy: Path, json: bool) -> bool:
    from reveil import terminal
    from reveil.policy import load_policy
    from reveil.recheck import check_folder, check_published

    loaded = load_policy(policy)
    certificate = check_folder(Path(what), loaded) if Path(what).is_dir() else check_published(what, loaded)
    if json:
        terminal.say_json(certificate.to_dict())
    else:
        _show_findings(certificate)
    return certificate.holds


def _verify_series(number: int | None, series: Series, json: bool) -> bool:
    from reveil import terminal

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
    from reveil import terminal
    from reveil.publish import anonymize as make

    with terminal.progress(quiet) as show:
        release = make(source, policy, seed=seed, out=out, progress=show)
    _show_release(release, json, quiet)


@app.command()
def audit(
    tables: Annotated[
        list[Path] | None,
        typer.Argument(help="Released tables or folders, in order. Default: the releases of the series."),
    ] = None,
    policy: PolicyFile = POLICY,
    home: Home = None,
    population: Annotated[
        Path | None, typer.Option(help="Who has which quasi-identifiers; a column `release` says when.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="The sensitive column to look at.")] = None,
    adversary: Annotated[
        Path | None, typer.Option(help="TOML file: change, transitions, priors, compromised, share.")
    ] = None,
    change: Annotated[str | None, typer.Option(help="How values change: never, freely, transitions.")] = None,
    compromised: Annotated[
        list[str] | None, typer.Option(help="Somebody known: NAME, NAME=VALUE or NAME@RELEASE=VALUE. May be repeated.")
    ] = None,
    share: Annotated[str, typer.Option(help="Share of the people known at random, such as 0.04.")] = "0",
    draws: Annotated[int, typer.Option(help="How often to draw them.")] = 1,
    promise: Annotated[
        str | None, typer.Option(help="Highest belief allowed, such as 1/4. Default: the policy's.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds for counting and searching.")] = 60.0,
    samples: Annotated[int, typer.Option(help="Steps of sampling where counting is too long; 0 for none.")] = 0,
    people: Annotated[list[str] | None, typer.Option(help="Look at these people only. May be repeated.")] = None,
    worst: Annotated[int, typer.Option(help="How many exposed people to explain.")] = 5,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    external: Annotated[bool, typer.Option(help="The report names nobody.")] = False,
    seed: Annotated[int, typer.Option(help="Of random draws and sampling.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The adversary's view of this series, or of any released tables: who is exposed, and why."""
    from reveil import terminal
    from reveil.audit.api import audit as attack
    from reveil.errors import GuaranteeError

    how: dict[str, Any] = {
        "sensitive": sensitive,
        "adversary": adversary,
        "change": change,
        "compromised": compromised or (),
        "share": share,
        "draws": draws,
        "promise": promise,
        "limit": limit,
        "samples": samples,
        "people": people,
        "worst": worst,
        "seed": seed,
    }
    with terminal.progress(quiet) as show:
        if tables:
            given = policy if policy.exists() or policy != POLICY else None
            found = attack([str(t) for t in tables], population, policy=given, progress=show, **how)
        else:
            found = _series(policy, home, quiet, begun=True).audit(progress=show, **how)
    _show_audit(found, report, external, json, quiet)
    if not found.holds:
        s = found.summary
        message = f"{s['exposed']:,} people are exposed, {s['above_promise']:,} are above the promise"
        raise GuaranteeError(Fault("R728", "audit", message, "see the reasons above; `reveil explain closed-cohorts`"))


def _show_audit(found: Audit, report: Path | None, external: bool, json: bool, quiet: bool) -> None:
    from reveil import terminal
    from reveil.audit.report import lines, write_html

    if report is not None:
        write_html(found, report, external=external)
    if json:
        terminal.say_json(found.to_dict(names=not external))
    elif not quiet:
        terminal.say(lines(found))


@app.command()
def measure(
    published: Annotated[str, typer.Argument(help="A published table (ours or ARX's notation) or release folder.")],
    original: Annotated[str, typer.Argument(help="The table it was made from.")],
    policy: PolicyFile = POLICY,
    queries: Annotated[int, typer.Option(help="Random COUNT queries per selectivity; 0 for none.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the random queries.")] = 0,
    json: Json = False,
) -> None:
    """Utility: information loss and query error of a published table."""
    from reveil import terminal
    from reveil.measure import measure as compute
    from reveil.policy import load_policy
    from reveil.publish import options
    from reveil.read import read_table
    from reveil.roles import prepare

    loaded = load_policy(policy)
    table, counterfeits, values = _published(Path(published), loaded)
    truth = prepare(read_table(original, options(loaded)), loaded)
    utility = compute(table, truth, loaded, counterfeits=counterfeits, values=values, queries=queries, seed=seed)
    if json:
        terminal.say_json(utility.to_dict())
    else:
        terminal.say(str(utility))


def _published(path: Path, policy: Policy) -> tuple[Any, Any, Any]:
    import polars as pl

    from reveil.read import read_table
    from reveil.verify import read_published

    public = path / "public" if (path / "public").is_dir() else path
    if not public.is_dir():
        return read_table(str(path)), None, None
    if policy.method.publish == "anatomy":
        return _anatomy(public, policy)
    table = next((public / name for name in ("table.csv", "table.parquet") if (public / name).exists()), None)
    if table is None:
        raise InputError(Fault("R603", f"folder {path}", "holds no published table", "name a release folder or a file"))
    fakes = public / "counterfeits.csv"
    return read_published(table), pl.read_csv(fakes) if fakes.exists() else None, None


def _anatomy(public: Path, policy: Policy) -> tuple[Any, Any, Any]:
    from reveil.parted import COUNT, GROUP, QUASI, value_tables
    from reveil.verify import read_published

    names = value_tables(policy.named("sensitive"))
    files = {path.stem: path for path in public.iterdir() if path.suffix in (".csv", ".parquet")}
    lost = [name for name in (QUASI, *names.values()) if name not in files]
    if lost:
        raise InputError(
            Fault("R603", f"folder {public}", f"has no {' and no '.join(lost)}", "name an anatomy release")
        )
    values = {column: read_published(files[name]).cast({GROUP: int, COUNT: int}) for column, name in names.items()}
    return read_published(files[QUASI]).cast({GROUP: int}), None, values


prior_app = typer.Typer(help="What others may know beforehand: the odds of sensitive values.", no_args_is_help=True)
app.add_typer(prior_app, name="prior")


@prior_app.callback()
def prior() -> None:
    """What others may know beforehand: the odds of sensitive values, for the guarantee r-robustness."""


@prior_app.command("estimate")
def prior_estimate(
    source: Source,
    by: Annotated[str, typer.Option(help="Attributes, such as sex,age:10 (bands of ten).")],
    value: Annotated[str, typer.Option(help="The sensitive column.")],
    out: Annotated[Path, typer.Option(help="The prior file to write.")] = Path("prior.csv"),
    smoothing: Annotated[
        str, typer.Option(help="People's worth of the whole table that each signature is given.")
    ] = "1",
    few: Annotated[int, typer.Option(help="Flag signatures with fewer people than this.")] = 30,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate a prior from a table: the distribution of a sensitive column by some attributes."""
    from reveil import terminal
    from reveil.prior import estimate
    from reveil.promise import exact
    from reveil.read import read_table

    try:
        amount = exact(smoothing)
    except ValueError as error:
        raise InputError(Fault("R437", "smoothing", f"{smoothing!r}: {error}", "use 0, 1 or 1/2")) from None
    found = estimate(read_table(source), by.split(","), value, smoothing=amount, few=few)
    found.write(out)
    if json:
        terminal.say_json({"file": str(out), **found.to_dict()})
    elif not quiet:
        terminal.say(f"{out}: {found!r}")
        if found.small.height:
            terminal.say(f"Fewer than {few} people, so their odds are guesses:")
            terminal.say(terminal.table(found.small.columns, [tuple(map(str, row)) for row in found.small.iter_rows()]))


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="An error code, a guarantee, or a word of a report.")], json: Json = False
) -> None:
    """What an error code, a guarantee or a word means, in plain words."""
    from reveil import terminal
    from reveil.explain import explain as look_up

    found = look_up(name)
    if json:
        terminal.say_json(found.to_dict())
    else:
        terminal.say(str(found))


@app.command()
def simulate(
    folder: Annotated[Path, typer.Argument(help="New or empty folder for the tables and a policy.")],
    rows: Annotated[int, typer.Option(help="People in the first release.")] = 2_000,
    releases: Annotated[int, typer.Option(help="Number of tables.")] = 4,
    shape: Annotated[str, typer.Option(help="hospital, or census as in the papers.")] = "hospital",
    values: Annotated[str, typer.Option(help="How a sensitive value changes: never, freely, transitions.")] = "never",
    churn: Annotated[float, typer.Option(help="Share that leaves, and that arrives, per release.")] = 0.1,
    format: Annotated[str, typer.Option(help="csv or parquet.")] = "csv",
    seed: Annotated[int, typer.Option(help="The same seed gives the same people.")] = 0,
    json: Json = False,
) -> None:
    """Make an evolving population as a series of tables, with a policy for it."""
    from reveil import terminal
    from reveil.simulate import Scenario, write

    made = {
        "shape": shape,
        "rows": rows,
        "releases": releases,
        "values": values,
        "arrive": churn,
        "leave": churn,
        "seed": seed,
    }
    paths = write(Scenario(**made), folder, format)  # type: ignore[arg-type]
    if json:
        terminal.say_json([str(path) for path in paths])
        return
    for path in paths:
        terminal.say(str(path))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to put the demonstration; made anew each time.")] = Path(
        "demo-output"
    ),
    rows: Annotated[int, typer.Option(help="People in the first release.")] = 3_000,
) -> None:
    """The main job on a built-in series: publish it, verify it, and show where to look."""
    from reveil.demo import run

    run(folder, rows)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark: the name of a script in bench/.")] = "single",
) -> None:
    """Measure Reveil on this machine, as ratios within one run. Needs a checkout of the source."""
    import runpy

    folder = Path(__file__).resolve().parents[2] / "bench"
    script = folder / f"{name}.py"
    if not script.exists():
        known = (
            ", ".join(sorted(path.stem for path in folder.glob("*.py")))
            or "none here; benchmarks need a source checkout"
        )
        raise InputError(Fault("R220", f"benchmark {name!r}", "is not there", f"use one of: {known}"))
    runpy.run_path(str(script), run_name="__main__")
