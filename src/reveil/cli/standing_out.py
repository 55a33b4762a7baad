"""Who stands out in a table before it is published, by which columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reveil.base.errors import Fault, stop_if
from reveil.base.words import agree, some
from reveil.cli.shared import Delimiter, Json, Source, app

if TYPE_CHECKING:
    from reveil.measure.combinations import CombinationRisk


@app.command()
def risk(
    source: Source,
    keys: Annotated[str | None, typer.Option(help="Columns to combine, such as zip,birth,sex. Default: all.")] = None,
    size: Annotated[int, typer.Option(help="Columns of a combination at most.")] = 3,
    sampled: Annotated[
        str | None,
        typer.Option(help="Share of the population in the table; DIS scores take 0.01 if it is not told."),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of how many people each row stands for.")] = None,
    population: Annotated[str | None, typer.Option(help="A table of everybody the rows were drawn from.")] = None,
    delimiter: Delimiter = None,
    show: Annotated[int, typer.Option(min=1, help="How many combinations to show.")] = 10,
    picture: Annotated[Path | None, typer.Option(help="Draw the combinations here (HTML).")] = None,
    harbor: Annotated[
        bool, typer.Option("--safe-harbor", help="Instead: which of HIPAA's eighteen identifiers it shows.")
    ] = False,
    json: Json = False,
) -> None:
    """Who is unique by which columns: combinations, minimal uniques, SUDA and DIS scores. Changes nothing."""
    from reveil.cli import terminal
    from reveil.measure.table_risk import risk as look

    if harbor:
        _refuse_beside({"--keys": keys, "--sampled": sampled, "--weight": weight, "--population": population,
                        "--picture": picture})  # fmt: skip
        _say_identifiers(source, delimiter, json)
        return
    chosen = None if keys is None else [name.strip() for name in keys.split(",")]
    asked = {"sampled": sampled, "weight": weight, "population": population, "delimiter": delimiter}
    found = look(source, chosen, size=size, **asked)
    if picture is not None:
        from reveil.report.standing_out import risk_page

        picture.write_text(risk_page(found, show), encoding="utf-8")
    if json:
        terminal.say_json(found.to_dict())
    else:
        _say(found, show)


def _refuse_beside(others: Mapping[str, object]) -> None:
    message = "is not for --safe-harbor, which looks at names and cells"
    stop_if([Fault("R903", name, message, "leave it out") for name, given in others.items() if given is not None])


def _say_identifiers(source: str, delimiter: str | None, json: bool) -> None:
    """Exit code 1 where something was found, or could not be looked at."""
    from reveil.cli import terminal
    from reveil.start.safe_harbor import safe_harbor

    seen = safe_harbor(source, delimiter=delimiter)
    if json:
        terminal.say_json(seen.to_dict())
    elif not seen.found:
        terminal.say(
            "None of HIPAA's eighteen identifiers was found in names or cells. Combinations are not looked at."
        )
    else:
        lines = [(one.column, f"{one.what} ({one.rule})", one.rows, one.way) for one in seen.found]
        terminal.say(terminal.table(("column", "shows", "rows", "way out"), lines))
    if seen.unread and not json:
        terminal.say(f"Not looked into, because cells are neither text, numbers nor dates: {', '.join(seen.unread)}.")
    if not seen.clear:
        raise typer.Exit(1)


def _say(found: "CombinationRisk", show: int) -> None:
    from reveil.cli import terminal

    terminal.say(f"{found.headline}.")
    header = ["columns", "unique", "% of rows", "smallest k", "distinction", "separation"]
    rows = [
        (", ".join(one.columns), f"{one.unique:,}", f"{100 * float(one.share):.1f}", f"{one.smallest:,}",
         f"{float(one.distinction):.4f}", f"{float(one.separation):.4f}")
        for one in found.combinations[:show]
    ]  # fmt: skip
    terminal.say(terminal.table(header, rows))
    alone = sum(1 for score in found.scores if score)
    terminal.say(
        f"{some(alone, 'row')} {agree(alone, 'has', 'have')} a minimal unique of up to {some(found.size, 'column')}; "
        f"highest SUDA score {max(found.scores, default=0):,}, DIS score {max(found.dis_scores, default=0):.4f}."
    )
    if found.population is not None:
        people = found.population
        terminal.say(f"{people}.")
        terminal.say(
            f"Highest individual risk {max(people.risks, default=0):.4f}, journalist {people.journalist:.4f}, "
            f"marketer {people.marketer:.4f}."
        )
    terminal.say(
        terminal.table(["column", "part in SUDA scores"], [(n, f"{float(s):.1%}") for n, s in found.columns.items()])
    )
