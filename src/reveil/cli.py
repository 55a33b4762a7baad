"""The command line: arguments to the same calls that Python users make.

Exit codes: 0 good; 1 a guarantee does not hold or an exposure was found; 2 bad input or use. Heavy parts are imported
inside the commands, so that `reveil --help` is quick.
"""

from __future__ import annotations

import sys

from reveil.commands import counting, linking, perturbing, publishing, risks, using
from reveil.commands.options import app
from reveil.errors import Fault, InputError, ReveilError

__all__ = [
    "app",
    "counting",
    "linking",
    "main",
    "perturbing",
    "publishing",
    "risks",
    "using",
]  # importing the modules registers their commands


def main() -> None:
    """Run the command line; refusals become messages and exit codes."""
    try:
        app()
    except ReveilError as error:
        from reveil import terminal

        terminal.refuse(error, "--json" in sys.argv)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        from reveil import terminal

        place = error.filename or "this machine"
        fault = Fault("R223", f"'{place}'", error.strerror or str(error), "check that place, its rights and its space")
        terminal.refuse(InputError(fault), "--json" in sys.argv)
        sys.exit(InputError.exit_code)
