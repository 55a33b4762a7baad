"""Release folders outside a series: two halves, of which only the public one is for others."""

from __future__ import annotations

import shutil
from pathlib import Path

from reveil.published.format import PRIVATE, PUBLIC


def make_halves(folder: Path) -> None:
    """The two halves of a release in the making; nobody else on this machine may look into the private one."""
    (folder / PUBLIC).mkdir()
    (folder / PRIVATE).mkdir(mode=0o700)


def copy_release(staged: Path, target: Path) -> Path:
    """Both halves of a finished release into an empty folder, or none of them."""
    for file in (staged / PRIVATE).iterdir():
        file.chmod(0o600)  # copying keeps it, so that nobody else may look into them for a moment either
    try:
        for half in (PRIVATE, PUBLIC):
            shutil.copytree(staged / half, target / half)
    except OSError:
        for half in (PRIVATE, PUBLIC):
            shutil.rmtree(target / half, ignore_errors=True)
        raise
    return target
