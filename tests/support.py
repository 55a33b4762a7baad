"""What tests share: the command line in this process."""

from __future__ import annotations

import contextlib
import io
import sys

from reveil.cli.app import main


def cli(*arguments: str) -> tuple[int, str, str]:
    """The command line in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["reveil", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()
