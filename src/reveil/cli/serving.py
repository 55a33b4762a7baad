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
    demo: Annotated[bool, typer.Option("--demo", help="Try it on a hospital; nothing is kept.")] = False,
) -> None:
    """Open the console in the browser, for whoever is at this machine."""
    from reveil.cli import terminal

    try:
        from reveil.serve.run import serve as run
    except ModuleNotFoundError as error:
        message = f"the package '{error.name}' is missing"
        raise InputError(Fault("R110", "reveil serve", message, "pip install reveil[serve]")) from None
    run(folder, port, browser=browser, demo=demo, say=terminal.say)
