"""After a release was published: hand-over and discard."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from reveil.base.errors import Fault, InputError
from reveil.cli.shared import POLICY, Home, Json, PolicyFile, Quiet, app, say_settled
from reveil.jobs.specs import DiscardSpec, HandOverSpec


@app.command("hand-over")
def hand_over(
    number: Annotated[int | None, typer.Argument(help="Number of the release. Default: the latest.")] = None,
    to: Annotated[Path | None, typer.Option(help="New or empty folder for the copy.")] = None,
    recipient: Annotated[str, typer.Option(help="Who gets it; recorded with it.")] = "",
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy the public files of a release out, and record that others have them from now on."""
    from reveil.cli import terminal

    if to is None:
        raise InputError(Fault("R513", "--to", "is missing: where shall the copy be?", "give a new or an empty folder"))
    done = HandOverSpec(policy, to, number, recipient, home).run()
    say_settled(done.settled, quiet)
    if json:
        terminal.say_json(done.to_dict())
    elif not quiet:
        terminal.say(f"Release {done.number} is in {done.folder}, and is recorded as handed over ({done.event.at}).")
        terminal.say("It can no longer be discarded: what others have, every later release must take into account.")


@app.command()
def discard(
    number: Annotated[int, typer.Argument(help="Number of the newest release.")],
    reason: Annotated[str, typer.Option(help="Why; recorded with it.")] = "",
    no_copy_left: Annotated[
        bool, typer.Option("--yes-no-copy-left", help="No copy of it has left your hands, and that is certain.")
    ] = False,
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take back the newest release, as long as nobody has it. Its entry stays in the ledger."""
    from reveil.cli import terminal

    sure = no_copy_left or (sys.stdin.isatty() and _asked(number))
    done = DiscardSpec(policy, number, reason, sure, home).run()
    say_settled(done.settled, quiet)
    if json:
        terminal.say_json(done.to_dict())
    elif not quiet:
        terminal.say(f"Release {done.number} is discarded ({done.event.at}); its files are deleted, its entry stays.")
        terminal.say(f"The next release is number {done.number} again, planned as if this one had never been.")


def _asked(number: int) -> bool:
    typer.echo(
        f"Whoever has a copy of release {number} can compare it with what follows, and later releases would not know.",
        err=True,
    )
    return typer.confirm("Is it certain that no copy of it has left your hands?", default=False, err=True)
