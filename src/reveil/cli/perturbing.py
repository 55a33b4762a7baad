"""Changed values instead of general ones: perturb."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reveil.base.doubts import accepted
from reveil.base.words import some
from reveil.cli.shared import (
    POLICY,
    Accept,
    Json,
    Key,
    PolicyFile,
    Quiet,
    SeedBesideKey,
    Source,
    Where,
    app,
    parsed,
    run_asking,
)
from reveil.jobs.specs import PerturbSpec

if TYPE_CHECKING:
    from reveil.perturb.perturb import Perturbed


@app.command()
def perturb(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder for the release.")],
    policy: PolicyFile = POLICY,
    where: Where = None,
    seed: SeedBesideKey = None,
    key: Key = None,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One release with noise, swapped, averaged or synthetic values, as the policy's [[perturb]] steps say."""
    from reveil.cli import terminal

    made = run_asking(PerturbSpec(source, policy, seed, out, key, accepted(accept), parsed(where)), quiet, json)
    if json:
        terminal.say_json(made.to_dict())
    elif not quiet:
        _show(made)


def _show(made: "Perturbed") -> None:
    from reveil.cli import terminal

    terminal.say(f"{some(made.table.height, 'row')}, changed as the policy says. Checked in the published bytes:")
    terminal.say(terminal.table(("", "what", "finding"), [("holds", c.name, c.finding) for c in made.checks]))
    near = made.report["interval disclosure"]
    header = list(dict.fromkeys(name for row in near for name in row))  # categories have fewer columns than numbers
    terminal.say("\nHow near the original is to what is published (share of rows):")
    terminal.say(terminal.table(header, [[row.get(name, "") for name in header] for row in near]))
    linkage = made.report["record linkage"]
    terminal.say(
        f"Linked to the right original row by distance: {linkage['right links']:.1%} of "
        f"{some(linkage['rows tried'], 'row')}"
        f" tried ({linkage['by chance']:.2%} by chance)."
    )
    for note in made.notes:
        terminal.say(f"Note: {note}")
    if made.path is not None:
        terminal.say(f"\nHand over only   {made.path / 'public'}")
        terminal.say(f"Keep to yourself {made.path / 'private'}   (read report.html first)")
