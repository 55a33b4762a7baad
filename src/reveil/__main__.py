"""The program `reveil`, also as `python -m reveil`.

Starting makes thousands of small objects and no garbage. Collecting waits until a command runs: it would take a fifth
of the time of `reveil --help`. So would looking through all installed packages for plugins of Pydantic.
"""

import gc
import os


def main() -> None:
    """Start the command line."""
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    from reveil.cli.app import main as run

    try:
        run()
    finally:
        gc.freeze()  # the end of the process looks for garbage several times: a quarter of a small `reveil publish`


if __name__ == "__main__":
    main()
