"""The console in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from reveil.base.errors import Fault, InputError
from reveil.cli.shared import app


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
) -> None:
    """Open the console in the browser, for whoever is at this machine; or for a team behind a proxy."""
    from reveil.cli import terminal

    try:
        from reveil.serve.run import serve as run
    except ModuleNotFoundError as error:
        message = f"the package '{error.name}' is missing"
        raise InputError(Fault("R110", "reveil serve", message, "pip install reveil[serve]")) from None
    run(folder, port, browser=browser, demo=demo, team=team, names=name or (), say=terminal.say)
