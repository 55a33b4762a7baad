"""What all commands share: where they register, their options, and how releases are shown.

Modules of commands have plain annotations (no `from __future__ import annotations`): the command line reads them when
one of their commands starts, and texts would have to be evaluated first.
"""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reveil.base.errors import Fault
    from reveil.jobs.past import Past
    from reveil.jobs.release import Release
    from reveil.jobs.spec import Spec
    from reveil.verify.certificate import Certificate

app = typer.Typer(rich_markup_mode=None)  # modules of commands register here when `app.py` loads them

Home = Annotated[
    Path | None, typer.Option(help="Folder of the series' private memory. Default: .reveil beside the policy.")
]
Catalog = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="postgresql://HOST/DATABASE: a new series keeps its ledger there."),
]
PolicyFile = Annotated[Path, typer.Option("--policy", "-p", help="The policy file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and results that were asked for.")]
Seed = Annotated[
    int | None,
    typer.Option(help="Make it repeatable, together with the key of the home."),
]
SeedBesideKey = Annotated[
    int | None,
    typer.Option(help="Make it repeatable, together with --key."),
]
Key = Annotated[
    Path | None,
    typer.Option(help="Make a release again, with its --seed: the file private/key that it kept."),
]
NewPeople = Annotated[
    bool,
    typer.Option("--yes-new-people", help="Far fewer people than usual come back, and that is right."),
]
Accept = Annotated[
    str,
    typer.Option(help="What is right though it looks like a mistake, such as total-rows (reveil explain R130)."),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help="Only these rows, such as year=1985. May be repeated."),
]
Source = Annotated[str, typer.Argument(help="CSV, Parquet, Excel, Stata/SPSS/SAS file, or a database URL.")]
Delimiter = Annotated[
    str | None, typer.Option(help='What sets the cells of a text file apart; "blanks": any number of blanks.')
]
POLICY = Path("reveil.toml")


def load_kernels() -> None:
    """Load Numba without SciPy's linear algebra, which it looks for at once: no kernel of ours multiplies matrices.

    In a process of our own, that is; in somebody else's it would be missing from their kernels.
    """
    absent = "scipy.linalg" not in sys.modules
    if absent:
        sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    try:
        import_module("numba.np.arraymath")
    finally:
        if absent:
            del sys.modules["scipy.linalg"]


def parsed(where: list[str] | None) -> dict[str, list[str]] | None:
    """The rows that --where names, by column."""
    if not where:
        return None
    from reveil.table.where import by_column

    return by_column(where)


def command(
    words: str,
    source: str,
    policy: Path,
    home: Path | None = None,
    where: "Sequence[str] | None" = None,
    accept: str = "",
    catalog: str | None = None,
) -> str:
    """A command that can be pasted into a shell as it is.

    >>> command("plan", "Quartal 1.csv", Path("mein plan.toml"), where=["Jahr=1985"])
    "reveil plan 'Quartal 1.csv' -p 'mein plan.toml' --where Jahr=1985"
    """
    from shlex import quote

    from reveil.base.addresses import masked

    given = f"reveil {words} {quote(masked(source))}"
    given += "" if policy == POLICY else f" -p {quote(str(policy))}"
    given += "".join(f" --where {quote(one)}" for one in where or ())
    given += f" --accept {quote(accept)}" if accept else ""
    given += f" --catalog {quote(catalog)}" if catalog else ""
    return given if home is None else f"{given} --home {quote(str(home))}"


def run_asking(spec: "Spec", quiet: bool, json: bool) -> Any:
    """Run a job; what it doubts is asked about on a terminal, and refused elsewhere."""
    from reveil.base.doubts import doubts_of
    from reveil.base.errors import InputError
    from reveil.cli import terminal

    job: Any = spec
    while True:
        try:
            with terminal.progress(quiet) as show:
                return job.run(show)
        except InputError as error:
            names = doubts_of(error)
            if not names or json or not terminal.can_ask() or not terminal.ask(error, names):
                raise
            job = replace(job, accept=(*job.accept, *names))


def prepare_to_publish(policy: Path, home: Path | None, quiet: bool, catalog: str | None = None) -> None:
    """What a command that plans does first: kernels, and whatever an interrupted one had left."""
    load_kernels()
    from reveil.publish import open_series

    say_settled(open_series(policy, home, catalog=catalog).settle(), quiet)


def say_past(policy: Path, past: "Past", quiet: bool) -> None:
    """Under which policy a series is looked back at, and what had to be settled first."""
    say_changes(policy, past.changes)
    say_settled(past.settled, quiet)


def say_changes(policy: Path, changes: "Sequence[Fault]") -> None:
    """Looking back is done under the recorded policy, and says so on stderr."""
    from reveil.cli import terminal

    if changes:
        lines = [f"Note: {policy} is not the policy of this series. It is read under the recorded one:"]
        lines += [f"  {fault.message}" for fault in changes]
        terminal.warn("\n".join([*lines, "Publishing refuses this change: reveil explain R502"]))


def say_settled(sentences: "Sequence[str]", quiet: bool) -> None:
    """What a crash had left is finished or cleared away first; said on stderr."""
    from reveil.cli import terminal

    for sentence in sentences if not quiet else ():
        terminal.warn(sentence)


def show_release(release: "Release", json: bool, quiet: bool) -> None:
    from reveil.base.words import some
    from reveil.cli import terminal
    from reveil.history.returning import sentence

    if json:
        terminal.say_json(release.to_dict())
        return
    if quiet:
        return
    certificate = release.certificate
    name = "The release" if release.number is None else f"Release {release.number} of {certificate.series!r}"
    terminal.say(f"{name}: {terminal.counts_line(certificate.counts)}.")
    if people := sentence(certificate.counts, certificate.release):
        terminal.say(people)
    show_findings(certificate)
    show_types(release.decided)
    if release.path is not None:
        terminal.say(f"\nHand over only   {release.path / 'public'}")
        if files := getattr(release, "files", 0):
            terminal.say(f"Made in blocks: {some(files, 'file mixes', 'files mix')} all groups")
        terminal.say(f"Keep to yourself {release.path / 'private'}   (read report.html first)")


def show_types(decided: "Mapping[str, str]") -> None:
    """What the policy left open and this table has settled."""
    from reveil.cli import terminal

    if decided:
        types = ", ".join(f"{name} {kind}" for name, kind in decided.items())
        terminal.say(f"Types found in this table, which a series keeps (state others in the policy): {types}.")


def show_findings(certificate: "Certificate") -> None:
    from reveil.cli import terminal

    terminal.say(certificate.verdict)
    terminal.say(terminal.verdict_lines(certificate.verdicts))
    for check in certificate.checks:
        if not check["holds"]:
            terminal.say(f"  FAILS  {check['name']}: {check['finding']}")
    for limit in certificate.limits:
        terminal.say(f"Note: {limit}")
