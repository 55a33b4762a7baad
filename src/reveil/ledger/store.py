"""The folders and files of a home: layout, permissions, locks, hashes, and getting bytes to the disk.

    home/ledger.sqlite            the catalog
    home/key                      32 secret bytes
    home/staging/<token>/         a release being made: public/ private/ memory/
    home/staging/<token>.lock     held by the publisher that makes it, for as long as it lives
    home/releases/0001/           public/ private/ memory/, moved here by one rename

The lock lies beside its folder, not in it: it exists before the folder and never travels with a release.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path

from reveil.base.errors import Fault, InputError
from reveil.ledger.record import Entry, Manifest

PARTS = {"public": (0o755, 0o644), "private": (0o700, 0o600), "memory": (0o700, 0o600)}
OWN_NAMES = {"ledger.sqlite", "ledger.sqlite-journal", "key", "key.new", "staging", "releases"}
KEY_BYTES = 32


def catalog_file(home: Path) -> Path:
    return home / "ledger.sqlite"


def release_name(number: int) -> str:
    return f"{number:04d}"


def release_folder(home: Path, number: int) -> Path:
    return home / "releases" / release_name(number)


def staging_folder(home: Path, token: str) -> Path:
    return home / "staging" / token


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


def lay_out(home: Path) -> None:
    """Make the folders of a new home. A folder with other things in it is refused: it would be locked up."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        foreign = sorted(entry.name for entry in home.iterdir() if entry.name not in OWN_NAMES)
    except FileExistsError:
        raise InputError(
            Fault("R501", f"home '{home}'", "this is a file, not a folder", "give a folder with --home")
        ) from None
    except OSError as error:
        raise cannot_use(home, error) from None
    if foreign:
        raise InputError(
            Fault(
                "R501",
                f"home '{home}'",
                f"there is no series here, but other files are: {', '.join(foreign[:3])}"
                + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""),
                "give an empty or a new folder with --home; a home is closed to other users of the machine",
            )
        )
    try:
        home.chmod(0o700)
        for name in ("staging", "releases"):
            (home / name).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_use(home, error) from None


def released(home: Path) -> list[str]:
    """Names of everything in releases/, known or not."""
    folder = home / "releases"
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def make_key(home: Path) -> bytes:
    """Write a new key and return it; one left by an interrupted start is used, nothing was hashed with it."""
    path = key_file(home)
    if path.is_file() and path.stat().st_size == KEY_BYTES:
        return path.read_bytes()
    key = secrets.token_bytes(KEY_BYTES)
    fresh = home / "key.new"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    sync(home)
    return key


def key_file(home: Path) -> Path:
    return home / "key"


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


# --- staging and its locks ---------------------------------------------------------------------------------


def take_lock(path: Path, *, new: bool) -> int | None:
    """Lock a file without waiting; None when somebody living holds it or has just removed it.

    `flock` belongs to the open file, so it also keeps two publishers of one process apart, and it is free
    again the moment its process is dead, however it died.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_EXCL if new else 0), 0o600)
    except FileExistsError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between opening and locking, a settling process may have removed the name: then we lock nothing.
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def stage(home: Path) -> tuple[Path, int]:
    """A new staging folder with its three parts, and the lock that keeps it from being cleared away."""
    (home / "staging").mkdir(mode=0o700, exist_ok=True)
    while True:
        folder = staging_folder(home, secrets.token_hex(8))
        lock = take_lock(lock_file(folder), new=True)
        if lock is not None:
            break
    try:
        folder.mkdir(mode=0o700)
        for part, (mode, _) in PARTS.items():
            (folder / part).mkdir()
            (folder / part).chmod(mode)
    except OSError:
        clear(folder, lock)
        raise
    return folder, lock


def lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + ".lock")


def staged_tokens(home: Path) -> list[str]:
    """Every token that has a folder or a lock in staging/."""
    folder = home / "staging"
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted({name.removesuffix(".lock") for name in names})


def clear(folder: Path, lock: int) -> None:
    """Remove a staging folder whose lock we hold, then the lock: a crash in between is cleared up later."""
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
        lock_file(folder).unlink(missing_ok=True)
    finally:
        os.close(lock)


def move_to_releases(home: Path, token: str, number: int) -> None:
    """The one step that reveals. Done twice, or by two processes, it is done once."""
    source, target = staging_folder(home, token), release_folder(home, number)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        source.rename(target)
    except OSError:
        if source.exists() or not target.is_dir():
            raise
    sync(target.parent)
    sync(source.parent)


# --- contents ----------------------------------------------------------------------------------------------


def files_in(folder: Path) -> Iterator[Path]:
    """Everything below a folder that is not itself a folder, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path


def seal(folder: Path) -> Manifest:
    """Set the permissions of a staged release, force it to the disk and return its manifest."""
    strange = [path for path in folder.iterdir() if path.name not in PARTS]
    strange += [path for path in files_in(folder) if path.is_symlink() or not path.is_file()]
    if strange:
        raise InputError(
            Fault(
                "R511",
                f"staging folder '{folder.name}'",
                f"'{path.relative_to(folder)}' is not a plain file in public/, private/ or memory/",
                "write plain files into these three folders only",
            )
            for path in strange
        )
    files = []
    for part, (folder_mode, file_mode) in PARTS.items():
        for path in [folder / part, *sorted((folder / part).rglob("*"))]:
            path.chmod(folder_mode if path.is_dir() else file_mode)
            sync(path)
            files += [path] if path.is_file() else []
    with ThreadPoolExecutor(cpu_count() or 1) as files_at_once:
        described = files_at_once.map(describe, files)
    manifest = {path.relative_to(folder).as_posix(): entry for path, entry in zip(files, described, strict=True)}
    sync(folder)
    sync(folder.parent)
    return manifest


def describe(path: Path) -> Entry:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return Entry(sha256=sha256, size=file.tell())


@dataclass(frozen=True)
class Difference:
    """How a release folder differs from its manifest; all paths are inside the release."""

    missing: list[str]
    changed: list[str]
    extra: list[str]

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.extra)


def compare(folder: Path, manifest: Manifest) -> Difference:
    """Read every byte of a release again and say where it is not what was recorded."""
    try:
        return _compare(folder, manifest)
    except FileNotFoundError:  # moved away while we read: to the caller, nothing is there
        return Difference(missing=list(manifest), changed=[], extra=[])


def _compare(folder: Path, manifest: Manifest) -> Difference:
    found = {path.relative_to(folder).as_posix(): path for path in files_in(folder)}
    common = [name for name in manifest if name in found]
    return Difference(
        missing=[name for name in manifest if name not in found],
        changed=[name for name in common if not _matches(found[name], manifest[name])],
        extra=[name for name in found if name not in manifest],
    )


def _matches(path: Path, entry: Entry) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != entry["size"]:
        return False
    return describe(path)["sha256"] == entry["sha256"]


def read_recorded(folder: Path, name: str, entry: Entry) -> bytes | None:
    """The bytes of a file if they are the recorded ones: what was hashed is what is returned."""
    try:
        data = (folder / name).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == entry["sha256"] else None


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
