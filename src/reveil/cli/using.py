"""Everything beside: measure, explain, simulate, demo, bench."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.cli.shared import POLICY, Json, PolicyFile, Quiet, Where, app, parsed
from reveil.jobs.specs import MeasureSpec

if TYPE_CHECKING:
    from reveil.measure.analysis import Analysis
    from reveil.measure.measure import Utility


@app.command()
def measure(
    published: Annotated[str, typer.Argument(help="A published table (ours or ARX's notation) or release folder.")],
    original: Annotated[str, typer.Argument(help="The table it was made from.")],
    policy: PolicyFile = POLICY,
    where: Where = None,
    queries: Annotated[int, typer.Option(help="Random COUNT queries per selectivity; 0 for none.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the random queries.")] = 0,
    analysis: Annotated[bool, typer.Option("--analysis", help="What analysts would find, before and after.")] = False,
    predict: Annotated[str | None, typer.Option(help="A column to predict: a model of it, before and after.")] = None,
    json: Json = False,
) -> None:
    """Utility: information loss and query error of a published table."""
    from reveil.cli import terminal

    with terminal.busy("measuring"):
        utility = MeasureSpec(published, original, policy, queries, seed, analysis, predict, parsed(where)).run()
    if json:
        terminal.say_json(utility.to_dict())
    else:
        _show_utility(utility)


def _show_utility(utility: "Utility") -> None:
    from reveil.cli import terminal

    if utility.unexplained:
        terminal.say(
            f"At least {some(utility.unexplained, 'published row stands', 'published rows stand')} for nobody of this "
            "original: is it the table that they were made from? What follows compares tables of different people.\n"
        )
    terminal.say("Lost by column, from 0 (nothing) to 1 (everything):")
    rows = [(name, utility.ncp[name], utility.entropy[name]) for name in utility.ncp]
    rows.append(("all cells", utility.ncp_mean, utility.entropy_mean))
    terminal.say(terminal.table(("column", "NCP", "entropy"), rows))
    size = f"{some(utility.classes, 'class', 'classes')} of {utility.average_class:.1f} {utility.counted} on average"
    by_k = "" if utility.c_avg is None else f" ({utility.c_avg:.2f} times k)"
    terminal.say(f"{size}{by_k}; discernibility {utility.discernibility:,}")
    terminal.say(
        f"{utility.suppressed:,} of {some(utility.rows, 'row')} suppressed, {utility.counterfeits:,} counterfeit"
    )
    for error in utility.queries:
        skipped = f"{error.skipped:.1%} of {error.queries:,} skipped, because nobody matches"
        terminal.say(f"COUNT queries over {error.selectivity:.0%} of the rows: {error.words}; {skipped}")
    if utility.queries:
        terminal.say(utility.answerable)
    if utility.analysis is not None:
        _show_analysis(utility.analysis)


def _show_analysis(analysis: "Analysis") -> None:
    from reveil.cli import terminal

    terminal.say(
        "\nWhat analysts would find. Distances from 0 (the same) to 1; expected squared error over the spread:"
    )
    rows = [(name, far, analysis.squared_error.get(name, "")) for name, far in analysis.distributions.items()]
    terminal.say(terminal.table(("column", "distribution", "squared error"), rows))
    if analysis.correlations:
        pairs = [(name, *both) for name, both in analysis.correlations.items()]
        terminal.say(terminal.table(("correlation", "before", "after"), pairs))
    if (found := analysis.prediction) is not None:
        kept = "" if found.kept is None else f"; {found.kept:.0%} of what the original tells beyond that"
        terminal.say(
            f"{found.target!r} is predicted right in {found.before:.1%} from the original, {found.after:.1%} from the "
            f"release, {found.baseline:.1%} by its most frequent value{kept} ({found.method})"
        )
    if (fit := analysis.regression) is not None:
        lines = [(one.feature, one.before[0], one.after[0], one.overlap) for one in fit.coefficients]
        terminal.say(terminal.table((f"{fit.target} by", "before", "after", "overlap"), lines))
        explained = " and ".join(f"{share:.1%}" for share in fit.r_squared)
        terminal.say(
            f"Intervals (95 %) overlap by {fit.overlap:.0%} on average; explained before and after: {explained}"
        )


@app.command()
def explain(
    words: Annotated[
        list[str] | None, typer.Argument(help="An error code, a guarantee, or words of a report. Default: list them.")
    ] = None,
    json: Json = False,
) -> None:
    """What an error code, a guarantee or a word means, in plain words."""
    from reveil.cli import terminal
    from reveil.report.explain import entries, overview
    from reveil.report.explain import explain as look_up

    name = " ".join(words or ())
    if not name and json:
        terminal.say_json({entry.name: entry.kind for entry in entries().values()})
    elif not name:
        terminal.say(overview())
    else:
        explanation = look_up(name)
        terminal.say_json(explanation.to_dict()) if json else terminal.say(str(explanation))


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
    quiet: Quiet = False,
) -> None:
    """Make an evolving population as a series of tables, with a policy for it."""
    from reveil.cli import terminal
    from reveil.simulation.scenario import Scenario
    from reveil.simulation.simulate import write

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
        terminal.say_json({"files": [str(path) for path in paths]})
    elif not quiet:
        terminal.say("\n".join(map(str, paths)))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to put the demonstration; made anew each time.")] = Path(
        "demo-output"
    ),
    rows: Annotated[int, typer.Option(help="People in the first release.")] = 3_000,
) -> None:
    """The main job on a built-in series: publish it, verify it, and show where to look."""
    from reveil.start.demo import run

    run(folder, rows)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark: the name of a script in bench/.")] = "single",
    words: Annotated[list[str] | None, typer.Argument(help="What that script takes: see its first lines.")] = None,
) -> None:
    """Measure Reveil on this machine, as ratios within one run. Needs a checkout of the source."""
    import runpy
    import sys

    folder = Path(__file__).resolve().parents[3] / "bench"
    script = folder / f"{name}.py"
    if not script.exists():
        known = (
            ", ".join(sorted(path.stem for path in folder.glob("*.py")))
            or "none here; benchmarks need a source checkout"
        )
        raise InputError(Fault("R220", f"benchmark {name!r}", "is not there", f"use one of: {known}"))
    sys.argv = [str(script), *(words or ())]
    runpy.run_path(str(script), run_name="__main__")
