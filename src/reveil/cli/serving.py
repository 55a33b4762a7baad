"""The console in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from reveil.base.errors import Fault, InputError
from reveil.cli.shared import app

AtOnce = Annotated[int, typer.Option(min=0, help="Long jobs at the same time; 0: all are left to `reveil work`.")]
QueueAt = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="postgresql://HOST/DATABASE keeps the queue of this folder.")
]


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="Folder of the series. Default: this one.")] = Path(),
    port: Annotated[int, typer.Option(help="Port on this machine. Default: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    demo: Annotated[bool, typer.Option("--demo", help="A hospital and a team of two; nothing is kept.")] = False,
    team: Annotated[bool, typer.Option("--team", help="With accounts, roles and four eyes.")] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="Name under which a TLS proxy on this machine serves it.")
    ] = None,
    at_once: AtOnce = 2,
    queue: QueueAt = None,
) -> None:
    """Open the console in the browser, for whoever is at this machine; or for a team behind a proxy."""
    from reveil.cli import terminal

    try:
        from reveil.serve.run import Wanted
        from reveil.serve.run import serve as run
    except ModuleNotFoundError as error:
        raise _missing("serve", error) from None
    asked = Wanted(folder, port, browser=browser, demo=demo, team=team, names=name or (), at_once=at_once, queue=queue)
    run(asked, terminal.say)


@app.command()
def work(
    folder: Annotated[Path, typer.Argument(help="Folder of a console. Default: this one.")] = Path(),
    at_once: AtOnce = 2,
    queue: QueueAt = None,
) -> None:
    """Work on what a console was asked for, beside it: on this machine, or on another that sees its folder."""
    from reveil.cli import terminal

    try:
        from reveil.serve.work import work as run
    except ModuleNotFoundError as error:
        raise _missing("work", error) from None
    run(folder, at_once, queue, terminal.say)


def _missing(command: str, error: ModuleNotFoundError) -> InputError:
    message = f"the package '{error.name}' is missing"
    return InputError(Fault("R110", f"reveil {command}", message, "pip install reveil[serve]"))
