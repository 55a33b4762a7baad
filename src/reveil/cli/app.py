"""The command line: arguments to the same calls that Python users make.

Exit codes: 0 good; 1 a guarantee does not hold or an exposure was found; 2 bad input or use. A module of commands is
loaded when one of its commands runs, and heavy parts inside the commands, so that `reveil --help` is quick.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from reveil.base.errors import Fault, InputError, ReveilError
from reveil.base.version import __version__

COMMANDS = {  # as they are needed: the module of each, and its line in `reveil --help`
    "serve": ("serving", "The console in the browser: from a table to hand-over."),
    "work": ("serving", "More workers for the jobs of a console."),
    "init": ("starting", "Look at a table and suggest a policy, with reasons."),
    "hierarchy": ("building", "A hierarchy of values, by their order or priority."),
    "plan": ("publishing", "What would be published, and what it costs. Changes nothing."),
    "publish": ("publishing", "One more release of the series: planned, verified, recorded."),
    "propose": ("proposing", "The next release, made and sealed; it waits for a word."),
    "accept": ("proposing", "Record and reveal what was proposed."),
    "withdraw": ("proposing", "Give a proposal up: nobody outside has seen it."),
    "proposals": ("proposing", "What was proposed, and how far each proposal has come."),
    "history": ("publishing", "The series so far, and whether all is as it was recorded."),
    "show": ("publishing", "One release of the series: its certificate, in words."),
    "verify": ("publishing", "Check again, from the published bytes."),
    "hand-over": ("afterwards", "Copy a release out, and record that others have it."),
    "discard": ("afterwards", "Take back the newest release, while nobody has it."),
    "retract": ("amending", "A release that others have must not be used."),
    "correct": ("amending", "A value that never changes was recorded wrong."),
    "erase": ("amending", "Forget who somebody is, and never show them again."),
    "people": ("amending", "Two identifiers are one person, or one is two."),
    "rotate": ("amending", "Another key for the hashes of identifiers."),
    "end": ("amending", "The series ends; also where its key is lost."),
    "catalog": ("databases", "Keep the ledger of a series in PostgreSQL."),
    "db": ("databases", "Upgrade the layout of a ledger now."),
    "audit": ("risks", "Attack this series, or any released tables: who is exposed?"),
    "risk": ("standing_out", "Who is unique by which columns, before publishing."),
    "measure": ("using", "Utility: information loss and query error of a table."),
    "anonymize": ("publishing", "One release of one table, verified; no series, no memory."),
    "explain": ("using", "An error code, a guarantee or a word, in plain words."),
    "link": ("linking", "Sweeney's attack: who of these people can be re-identified?"),
    "ask": ("linking", "COUNT people of two tables: expected value and bounds."),
    "expand": ("linking", "Two tables as one weighted table, for ordinary tools."),
    "prior": ("estimating", "What others may know beforehand: odds of sensitive values."),
    "transitions": ("estimating", "How values change, counted in what people did."),
    "perturb": ("perturbing", "One release with noise, swapped or synthetic values."),
    "count": ("counts", "One more release of noisy counts, within a budget."),
    "spent": ("counts", "What noisy counts have spent of the budget so far."),
    "simulate": ("using", "Make an evolving population as a series of tables."),
    "demo": ("using", "The main job on a built-in series, and where to look."),
    "bench": ("using", "Measure Reveil on this machine. Needs its source."),
}


def all_accepted(words: list[str]) -> list[str]:
    """The words of a command with what several --accept name in one: of an option with one value the last would win.

    >>> all_accepted(["plan", "t.csv", "--accept", "same-table", "--json", "--accept=row-index"])
    ['plan', 't.csv', '--json', '--accept', 'same-table,row-index']
    """
    rest, named, coming = list[str](), list[str](), iter(words)
    for word in coming:
        name, equals, value = word.partition("=")
        if word == "--":
            return words
        if name != "--accept" or not (equals or (value := next(coming, ""))):
            rest.append(word)
        else:
            named.append(value)
    return [*rest, "--accept", ",".join(named)] if len(named) > 1 else words


class Commands(TyperGroup):
    """The commands of `COMMANDS`, in that order, each loaded when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(COMMANDS)})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, all_accepted(args))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"reveil.cli.{COMMANDS[cmd_name][0]}")
        alone = typer.Typer(rich_markup_mode=None)  # reading the options of all other commands takes a while
        alone.registered_commands = [c for c in module.app.registered_commands if _name(c) == cmd_name]
        alone.registered_groups = [g for g in module.app.registered_groups if g.name == cmd_name]
        return typer.main.get_group(alone).commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _name(command: Any) -> str:
    return str(command.name or command.callback.__name__)


app = typer.Typer(
    cls=Commands,
    name="reveil",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"reveil {__version__}\n")
        raise typer.Exit


@app.callback()
def begin(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Publish tables about people again and again, without the series giving anyone away."""
    # `__main__` has it wait until a command runs. What the parts of a command set up stays as well: looking through it
    # again and again would take a tenth of the time of a small `reveil publish`.
    gc.set_threshold(1_000_000)
    gc.enable()


def main() -> None:
    """Run the command line; refusals become messages and exit codes."""
    try:
        app()
    except ReveilError as error:
        from reveil.cli import terminal

        terminal.refuse(error, "--json" in sys.argv)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        from reveil.cli import terminal

        place = error.filename or "this machine"
        fault = Fault("R223", f"'{place}'", error.strerror or str(error), "check that place, its rights and its space")
        terminal.refuse(InputError(fault), "--json" in sys.argv)
        sys.exit(InputError.exit_code)
