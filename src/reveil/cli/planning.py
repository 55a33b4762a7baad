"""How `reveil plan` answers further questions: schemes side by side, both forms, what comes next, what would help."""

from pathlib import Path
from typing import TYPE_CHECKING

from reveil.base.errors import Fault, stop_if
from reveil.base.words import some
from reveil.cli.shared import load_kernels, prepare_to_publish, run_asking
from reveil.jobs.specs import AdviceSpec, AheadSpec, CompareSpec

if TYPE_CHECKING:
    from reveil.jobs.forms import Form


def show_forms(forms: tuple["Form", ...]) -> None:
    """The release in one table and in two, side by side, with the first rows of each."""
    from reveil.cli import terminal

    if not forms:
        return
    planned = [form for form in forms if form.refusal is None]
    figures = [("chosen" if form.chosen else "", form.title, form.promise, *form.figures()) for form in planned]
    terminal.say("  in both forms (query error: median of COUNT queries with 5 % of the people each):")
    headings = ("", "form", "promise", "withheld", "counterfeit", "NCP", "query error")
    terminal.say(terminal.table(headings, figures))
    for form in forms:
        if form.refusal is not None:
            terminal.say(f"  {form.title}: cannot be planned: {form.refusal}")
        for rows in form.examples:
            terminal.say(f"  {form.title}, for example:\n{rows}")


def refuse_idle(
    *,
    compare: bool,
    ahead: int | None,
    advice: bool,
    home: Path | None,
    rates: tuple[str | Path | None, ...],
    seconds: float | None = None,
    catalog: str | None = None,
) -> None:
    """Each of --compare, --ahead and --advice answers a question of its own."""
    asked = [name for name, given in (("--compare", compare), ("--ahead", ahead), ("--advice", advice)) if given]
    faults = []
    if len(asked) > 1:
        faults.append(Fault("R790", asked[1], f"answers another question than {asked[0]}", "ask for one at a time"))
    if home is not None and compare:
        message = "does nothing with --compare: no series is looked at"
        faults.append(Fault("R790", "--home", message, "leave it out"))
    if catalog is not None and asked:
        message = f"does nothing with {asked[0]}: nothing begins there"
        faults.append(Fault("R790", "--catalog", message, "leave it out"))
    if ahead is None and any(rate is not None for rate in rates):
        options = ("--leave", "--back", "--arrive", "--report")
        names = [n for n, rate in zip(options, rates, strict=True) if rate is not None]
        faults += [Fault("R790", name, "does nothing without --ahead", "leave it out") for name in names]
    if seconds is not None and not compare:
        faults.append(Fault("R790", "--seconds", "does nothing without --compare", "leave it out"))
    stop_if(faults)


def show_ahead(spec: AheadSpec, policy: Path, home: Path | None, report: Path | None, json: bool, quiet: bool) -> None:
    """The forecast as a table, and as a page of plots where one is asked for."""
    from reveil.cli import terminal
    from reveil.report.forecast import write_page

    prepare_to_publish(policy, home, quiet)
    forecast = run_asking(spec, quiet, json)
    if report is not None:
        write_page(forecast, report)
    if json:
        terminal.say_json(forecast.to_dict())
        return
    p = forecast.pace
    terminal.say(
        f"From one release to the next {float(p.leave):.1%} leave, {float(p.back):.1%} of those away return, and "
        f"{float(p.arrive):.1%} arrive ({p.source}). Made in a copy of the series, and deleted:"
    )
    terminal.say(terminal.table(*forecast.table()))


def show_moving(columns: tuple[str, ...]) -> None:
    """Columns that change for everybody, and what that costs."""
    from reveil.cli import terminal

    for name in columns:
        terminal.say(
            f"  {name!r} is later for everybody than in the last release, as dates of visits are: each release tells a "
            "new fact of the same people, who are known again by all of them together; groups of one table get wider. "
            "If it is about the visit, begin a series without it (drop), or by year (`reveil explain moving`)"
        )


def show_advice(spec: AdviceSpec, json: bool, quiet: bool) -> None:
    from reveil.cli import terminal

    load_kernels()
    advice = run_asking(spec, quiet, json)
    if json:
        terminal.say_json(advice.to_dict())
        return
    rows = [(name, f"{advice.loss[name]:.4f}", f"{share:.0%}") for name, share in advice.nothing_said.items()]
    terminal.say("As a first release:")
    terminal.say(terminal.table(("column", "NCP", "cells that say nothing"), rows))
    for line in advice.lines():
        terminal.say(f"  {line}")
    terminal.say("Each was tried on this table. A series that has begun keeps its promise and its columns.")


def show_comparison(spec: CompareSpec, json: bool, quiet: bool) -> None:
    from reveil.cli import terminal

    comparison = run_asking(spec, quiet, json)
    if json:
        terminal.say_json(comparison.to_dict())
        return
    terminal.say(
        f"{some(comparison.rows, 'row')}; information lost (NCP; 0 exact, 1 nothing said) per cell, by method.name:"
    )
    terminal.say(terminal.table(*comparison.table()))
