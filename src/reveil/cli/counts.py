"""Counts instead of rows: noisy ones under differential privacy (count, spent)."""

from typing import TYPE_CHECKING

from reveil.base.doubts import accepted
from reveil.base.words import agree, some
from reveil.cli.shared import (
    POLICY,
    Accept,
    Catalog,
    Home,
    Json,
    PolicyFile,
    Quiet,
    Source,
    app,
    run_asking,
    say_changes,
    say_settled,
)
from reveil.jobs.specs import CountSpec

if TYPE_CHECKING:
    from reveil.dp.count import Spent


@app.command()
def count(
    source: Source,
    policy: PolicyFile = POLICY,
    home: Home = None,
    catalog: Catalog = None,
    accept: Accept = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One more release of noisy counts under the budget of the policy's [dp]; spent before it is revealed."""
    from reveil.cli import terminal
    from reveil.dp.count import look_back

    say_settled(look_back(policy, home)[0], quiet)
    made = run_asking(CountSpec(source, policy, home, accepted(accept), catalog), quiet, json)
    if json:
        terminal.say_json(made.to_dict())
    elif not quiet:
        terminal.say(f"Release {made.number} of {made.budget.series!r}:")
        terminal.say(terminal.table(made.privacy.columns, made.privacy.rows()))
        if made.left_out:
            terminal.say(
                f"  {some(made.left_out, 'row')} beyond what one person may contribute "
                f"{agree(made.left_out, 'was', 'were')} not counted (private)"
            )
        _show(made.budget)
        terminal.say(f"\nHand over only   {made.path / 'public'}")
        terminal.say(f"Keep to yourself {made.path / 'private'}")


@app.command()
def spent(policy: PolicyFile = POLICY, home: Home = None, json: Json = False, quiet: Quiet = False) -> None:
    """What a series of noisy counts has spent of its budget, and what is left."""
    from reveil.cli import terminal
    from reveil.dp.count import look_back
    from reveil.dp.count import spent as look

    settled, changes = look_back(policy, home)
    say_changes(policy, changes)
    say_settled(settled, quiet)
    budget = look(policy, home)
    if json:
        terminal.say_json(budget.to_dict())
        return
    rows = [(r["number"], r["made"][:16], r["spend"], ", ".join(r["tables"])) for r in budget.releases]
    if rows:
        terminal.say(terminal.table(("no", "made (UTC)", budget.measure, "tables"), rows))
    _show(budget)


def _show(budget: "Spent") -> None:
    from reveil.cli import terminal
    from reveil.dp.counting import exact_text

    gone, whole, left = map(exact_text, (budget.spent, budget.budget, budget.left))
    terminal.say(f"Spent so far: {budget.measure} {gone} of {whole}; {left} is left.")
    if budget.epsilon is not None:
        terminal.say(f"  which is epsilon {budget.epsilon:.4g} at the policy's delta")
    terminal.say(budget.statement)
