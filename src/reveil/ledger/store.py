"""A home: its folder, its key, and what the operating system may refuse.

home/ledger.sqlite            the catalog; or home/catalog, which says where in PostgreSQL it is
home/key                      32 secret bytes
home/staging/, home/releases/ the files of releases (see `folder.py`)
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from reveil.base.errors import Fault, InputError
from reveil.base.lots import KEY_BYTES, KEY_FILE

OWN_NAMES = {
    *(
        "ledger.sqlite",
        "ledger.sqlite-journal",
        "catalog",
        "catalog.new",
        "key",
        "key.new",
        "staging",
        "releases",
    ),
}

KEY_BESIDE = "memory/key"  # in a folder of staging/: the key that is to take the old one's place


def catalog_file(home: Path) -> Path:
    return home / "ledger.sqlite"


def pointer_file(home: Path) -> Path:
    """Where a home whose ledger is in PostgreSQL says so: its address, and the key of the series there."""
    return home / "catalog"


def cannot_use(home: Path, error: OSError) -> InputError:
    """The operating system does not let us use the home at all."""
    return InputError(
        Fault(
            "R503",
            f"home '{home}'",
            f"the folder cannot be read and written: {reason(error)}",
            "make the folder yours and writable, or give another one with --home",
        )
    )


def refused_by_disk(error: OSError) -> InputError:
    """A release could not be written in full. To be raised after the staging folder is gone."""
    full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    return InputError(
        Fault(
            "R506",
            "release in the making",
            f"it could not be written: {reason(error)}. Nothing was recorded, nothing was revealed",
            f"{'free some space on' if full else 'check'} the disk of the home folder and publish again",
        )
    )


def reason(error: OSError) -> str:
    return error.strerror or str(error)


def vacant(home: Path) -> bool:
    """Whether nothing is in this place yet, so that nothing need be written before there is a release."""
    try:
        return not home.exists() or (home.is_dir() and not any(home.iterdir()))
    except OSError:
        return False  # opening it says what is wrong


def foreign(home: Path) -> list[str]:
    """What is in this folder and belongs to no home."""
    return sorted(entry.name for entry in home.iterdir() if entry.name not in OWN_NAMES)


def lay_out(home: Path) -> None:
    """Make the folders of a new home. A folder with other things in it is refused: it would be locked up."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        strange = foreign(home)
    except FileExistsError:
        raise InputError(
            Fault("R501", f"home '{home}'", "this is a file, not a folder", "give a folder with --home")
        ) from None
    except OSError as error:
        raise cannot_use(home, error) from None
    if strange:
        raise InputError(
            Fault(
                "R501",
                f"home '{home}'",
                f"there is no series here, but other files are: {', '.join(strange[:3])}"
                + (f" and {len(strange) - 3} more" if len(strange) > 3 else ""),
                "give an empty or a new folder with --home; a home is closed to other users of the machine",
            )
        )
    try:
        home.chmod(0o700)
        for name in ("staging", "releases"):
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_use(home, error) from None


def make_key(home: Path, key: bytes) -> bytes:
    """Write a new key and return it; one left by an interrupted start is used, nothing was hashed with it."""
    path = key_file(home)
    if path.is_file() and path.stat().st_size == KEY_BYTES:
        return path.read_bytes()
    fresh = home / "key.new"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    sync(home)
    return key


def lay_key_beside(staged: Path, key: bytes) -> None:
    """Write the key that is to take the old one's place among the files that wait with it.

    It is on the disk before anything depends on it, and whoever else changes the key at this moment has files of their
    own.
    """
    with os.fdopen(os.open(staged / KEY_BESIDE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    sync((staged / KEY_BESIDE).parent)


def take_key_beside(home: Path, token: str, wanted: str) -> None:
    """Let the key that waits under this token take the old one's place, if it is the one that is wanted."""
    beside = home / "staging" / token / KEY_BESIDE
    with suppress(FileNotFoundError):
        if fingerprint(beside.read_bytes()) == wanted:
            beside.replace(key_file(home))
            sync(home)


def destroy_key(home: Path) -> None:
    key_file(home).unlink(missing_ok=True)
    sync(home)


def key_file(home: Path) -> Path:
    return home / KEY_FILE


def fingerprint(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def key_fault(home: Path, recorded: str) -> Fault | None:
    """Is the key the one the series began with? With another, nobody is recognised from earlier releases."""
    remedy = "restore the file 'key' from a backup; without it no further release can be planned safely"
    try:
        key = key_file(home).read_bytes()
    except OSError as error:
        return Fault("R520", f"key of '{home}'", f"it cannot be read: {reason(error)}", remedy)
    if fingerprint(key) != recorded:
        return Fault("R520", f"key of '{home}'", "it is not the key this series began with", remedy)
    return None


def sync(path: Path) -> None:
    """Force a file's bytes, or a folder's list of names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def new_folder(path: Path) -> Path:
    """An empty folder for a release outside any series; existing files are never overwritten."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = any(path.iterdir())
    except OSError as error:
        message, remedy = f"cannot be used: {reason(error)}", "name a new or an empty folder that you may write to"
        raise InputError(Fault("R513", f"folder '{path}'", message, remedy)) from None
    if occupied:
        raise InputError(Fault("R513", f"folder '{path}'", "is not empty", "name a new or an empty folder"))
    return path
