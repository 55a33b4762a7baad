"""Where the ledger of a series is kept, and in which layout: catalog, db upgrade."""

from typing import Annotated

import typer

from reveil.base.words import some
from reveil.cli.shared import POLICY, Home, Json, PolicyFile, Quiet, app


@app.command()
def catalog(
    address: Annotated[str, typer.Argument(help="postgresql://HOST/DATABASE, without a password.")],
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Keep the ledger of this series in PostgreSQL from now on; what is in its file moves there."""
    from reveil.base.addresses import masked
    from reveil.cli import terminal
    from reveil.jobs.past import place_of
    from reveil.ledger.moving import move

    place = place_of(policy, home)
    moved = move(place, address)
    if json:
        terminal.say_json({"catalog": masked(address), "releases": moved})
    elif not quiet:
        terminal.say(f"The ledger of {place} is in {masked(address)} now, with {some(moved, 'release')}.")


db_app = typer.Typer(help="The database that a ledger is kept in.", no_args_is_help=True)
app.add_typer(db_app, name="db")


@db_app.callback()
def _db() -> None:
    """The database that a ledger is kept in."""


@db_app.command()
def upgrade(policy: PolicyFile = POLICY, home: Home = None, json: Json = False, quiet: Quiet = False) -> None:
    """Rewrite the ledger of this series in the newest layout now, and not with the next write."""
    from reveil.cli import terminal
    from reveil.jobs.past import place_of
    from reveil.ledger.upgrading import upgrade as rewrite

    done = rewrite(place_of(policy, home))
    if json:
        terminal.say_json(done.to_dict())
    elif not quiet and done.before == done.after:
        terminal.say(f"The {done.where} has the newest layout already ({done.after}). Nothing was changed.")
    elif not quiet:
        terminal.say(f"The {done.where} was rewritten from layout {done.before} to {done.after}, in one transaction.")
        kept = f"{some(done.releases, 'release')} and {some(done.events, 'event')}"
        terminal.say(f"Its {kept} read the same before and after. An older Reveil now says that it is too old (R505).")
