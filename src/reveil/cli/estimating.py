"""What others may know beforehand, counted in tables: odds of values, and chances of their changes."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reveil.base.errors import Fault, InputError
from reveil.base.words import some, some_people
from reveil.cli.shared import POLICY, Home, Json, PolicyFile, Quiet, Source, app

if TYPE_CHECKING:
    import polars as pl

SHOWN = 10  # values with few steps


prior_app = typer.Typer(help="What others may know beforehand: the odds of sensitive values.", no_args_is_help=True)
transitions_app = typer.Typer(help="How values change, counted in what people did.", no_args_is_help=True)
app.add_typer(prior_app, name="prior")
app.add_typer(transitions_app, name="transitions")


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
    from reveil.background.estimate import estimate
    from reveil.cli import terminal
    from reveil.table.read import read_table

    amount = _amount(smoothing, "R437")
    prior = estimate(read_table(source), by.split(","), value, smoothing=amount, few=few)
    prior.write(out)
    if json:
        terminal.say_json({"file": str(out), **prior.to_dict()})
    elif not quiet:
        terminal.say(f"{out}: {prior!r}")
        if prior.small.height:
            terminal.say(f"Fewer than {some_people(few)}, so their odds are guesses:")
            terminal.say(terminal.table(prior.small.columns, [tuple(map(str, row)) for row in prior.small.iter_rows()]))


@transitions_app.callback()
def transitions() -> None:
    """How values change from release to release, for change = "transitions"."""


@transitions_app.command("estimate")
def transitions_estimate(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="A table with --period, or one table a release. Default: the releases of this series."),
    ] = None,
    value: Annotated[str | None, typer.Option(help="The sensitive column. Default: the policy's only one.")] = None,
    person: Annotated[str | None, typer.Option(help="Who a row is about. Default: the policy's identifier.")] = None,
    period: Annotated[str | None, typer.Option(help="Column that says which release a row belongs to.")] = None,
    out: Annotated[Path, typer.Option(help="The transitions file to write.")] = Path("transitions.csv"),
    least: Annotated[int, typer.Option(help="Changes that fewer people made are rare.")] = 5,
    few: Annotated[int, typer.Option(help="Flag values with fewer steps than this.")] = 30,
    smoothing: Annotated[str, typer.Option(help="Steps' worth of all other values that each value is given.")] = "1",
    rare: Annotated[str, typer.Option(help="Rare changes: spread over all other values, or drop.")] = "spread",
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the chances of change: what values became what, from one release to the next."""
    from reveil.background.observed_changes import estimate_changes
    from reveil.cli import terminal

    if rare not in ("spread", "drop"):
        raise InputError(Fault("R319", "rare", f"{rare!r} is not known", "use spread or drop"))
    amount = _amount(smoothing, "R319")
    seen = _seen(tables or [], person, value, period, policy, home)
    found = estimate_changes(seen, least=least, few=few, smoothing=amount, spread=rare == "spread")
    found.write(out)
    if json:
        terminal.say_json({"file": str(out), **found.to_dict()})
    elif not quiet:
        terminal.say(f"{out}: {found!r}.")
        if found.few.height:
            terminal.say(f"Fewer than {some(few, 'step')}, so their chances are guesses:")
            few_of = found.few.sort("steps").head(SHOWN)
            terminal.say(terminal.table(few_of.columns, [tuple(map(str, row)) for row in few_of.iter_rows()]))
            terminal.say(f"and {found.few.height - SHOWN:,} more values." if found.few.height > SHOWN else "")
        if not found.stated:
            terminal.say("No change was made by enough people to be stated: group values, or lower --least.")
        terminal.say(
            "Readers of the series may know this file: the promise assumes it. It does not say which of the rarer "
            "changes were seen.\n"
            f'Under [values]: change = "transitions" and transitions = "{out.name}"'
        )


def _seen(
    tables: list[str], person: str | None, value: str | None, period: str | None, policy: Path, home: Path | None
) -> "pl.DataFrame":
    """Who had which value when: in tables, or in the releases of the series."""
    from reveil.background.observed_changes import seen_in_series, seen_in_tables

    rules = None
    if policy.exists() or policy != POLICY or not tables:
        from reveil.policy.policy import load_policy

        rules = load_policy(policy)
    sensitive = () if rules is None else rules.named("sensitive")
    value = value or (sensitive[0] if len(sensitive) == 1 else None)
    if not tables and (person or period):
        what = ", ".join(name for name, given in (("--person", person), ("--period", period)) if given)
        raise InputError(Fault("R319", what, "says how a table is read, and no table is named", "name a table"))
    person = person or (rules.identifier if rules is not None else None)
    lacking = [name for name, given in (("--value", value), ("--person", person)) if given is None]
    if value is None or person is None:
        remedy = f"write {' and '.join(f'{name} COLUMN' for name in lacking)}"
        several = f": sensitive are {', '.join(sensitive)}" if value is None and len(sensitive) > 1 else ""
        raise InputError(Fault("R319", ", ".join(lacking), f"is not told, and no policy tells it{several}", remedy))
    if tables:
        from reveil.table.read import read_table

        return seen_in_tables([read_table(table) for table in tables], person, value, period)
    from reveil.history.recorded import history_of
    from reveil.jobs.past import look_back

    return seen_in_series(history_of(look_back(policy, home).ledger), value)


def _amount(smoothing: str, code: str) -> Fraction:
    from reveil.base.sections import exact

    try:
        return exact(smoothing)
    except ValueError as error:
        raise InputError(Fault(code, "smoothing", f"{smoothing!r}: {error}", "use 0, 1 or 1/2")) from None
