"""A release that is looked at before it is recorded: propose, accept, withdraw, proposals."""

from typing import Annotated

import typer

from reveil.base.doubts import accepted
from reveil.base.words import some
from reveil.cli.shared import (
    POLICY,
    Accept,
    Catalog,
    Home,
    Json,
    NewPeople,
    PolicyFile,
    Quiet,
    Seed,
    Source,
    Where,
    app,
    load_kernels,
    parsed,
    prepare_to_publish,
    run_asking,
    say_settled,
    show_release,
)
from reveil.jobs.approval_specs import AcceptSpec, ProposalsSpec, ProposeSpec, WithdrawSpec

Token = Annotated[str, typer.Argument(help="Which proposal, or the beginning of its name. Default: the open one.")]


@app.command()
def propose(
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
    """The next release, made, verified and sealed. It is recorded when it is accepted, and not before."""
    from reveil.cli import terminal

    prepare_to_publish(policy, home, quiet, catalog)
    spec = ProposeSpec(source, policy, home, seed, new_people, accepted(accept), parsed(where), catalog)
    made = run_asking(spec, quiet, json)
    if json:
        terminal.say_json(made.to_dict())
    elif not quiet:
        terminal.say(f"Proposal {made.token}, to be release {made.number}: {terminal.counts_line(made.counts)}.")
        terminal.say(f"Look at it: {made.folder / 'private' / 'report.html'}")
        terminal.say(f"Then: reveil accept {made.token}   or: reveil withdraw {made.token}")


@app.command("accept")
def accept_proposal(
    token: Token = "",
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record a proposal and reveal it, if not a byte of it has changed and nothing was published since."""
    load_kernels()
    show_release(AcceptSpec(policy, token, home).run(), json, quiet)


@app.command()
def withdraw(
    token: Token = "",
    note: Annotated[str, typer.Option(help="Why; recorded with it.")] = "",
    policy: PolicyFile = POLICY,
    home: Home = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Give a proposal up. Its files are removed, its entry stays; nobody outside has seen it."""
    from reveil.cli import terminal

    done = WithdrawSpec(policy, token, note, home).run()
    if json:
        terminal.say_json(done.to_dict())
    elif not quiet:
        terminal.say(f"Proposal {done.token} is withdrawn; its files are removed.")


@app.command()
def proposals(policy: PolicyFile = POLICY, home: Home = None, json: Json = False, quiet: Quiet = False) -> None:
    """All proposals of the series: how far each has come, who made it, and when."""
    from reveil.cli import terminal

    found = ProposalsSpec(policy, home).run()
    say_settled(found.settled, quiet)
    if json:
        terminal.say_json(found.to_dict())
        return
    rule = "Releases need a second person's signature." if found.four_eyes else "No signature is needed."
    terminal.say(f"{some(len(found.listed), 'proposal')}. {rule}")
    rows = [(p.token, p.number, str(p.state), p.made[:16], p.by, p.counts["published rows"]) for p in found.listed]
    if rows:
        terminal.say(terminal.table(("proposal", "release", "state", "made (UTC)", "by", "rows"), rows))
