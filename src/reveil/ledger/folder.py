"""The files of releases in the folders of a home.

    home/staging/<token>/         a release being made: public/ private/ memory/
    home/staging/<token>.lock     held by the publisher that makes it, for as long as it lives
    home/releases/0001/           public/ private/ memory/, moved here by one rename

The lock lies beside its folder, not in it: it exists before the folder and never travels with a release.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import weakref
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from reveil.base.errors import Fault, InputError
from reveil.ledger.record import Difference, Entry, Manifest, Record, release_name
from reveil.ledger.store import sync

PARTS = {"public": (0o755, 0o644), "private": (0o700, 0o600), "memory": (0o700, 0o600)}
LARGE = 1 << 22  # bytes of a release from which on its files are read by several threads


class Folders:
    """Staged and revealed releases of one home."""

    def __init__(self, home: Path) -> None:
        self._staging, self._releases = home / "staging", home / "releases"
        self._locks: dict[str, int] = {}  # token -> open lock file of a release that is mine
        weakref.finalize(self, _close_all, self._locks)

    # --- a release in the making ---------------------------------------------------------------------------

    def stage(self) -> Path:
        self._staging.mkdir(mode=0o700, exist_ok=True)
        while True:
            folder = self._staging / secrets.token_hex(8)
            lock = take_lock(lock_file(folder), new=True)
            if lock is not None:
                break
        self._locks[folder.name] = lock
        try:
            folder.mkdir(mode=0o700)
            for part, (mode, _) in PARTS.items():
                (folder / part).mkdir()
                (folder / part).chmod(mode)
        except OSError:
            self.discard(folder.name)
            raise
        return folder

    def put(self, staged: Path, name: str, data: bytes | memoryview) -> None:
        (staged / name).write_bytes(data)

    def seal(self, staged: Path) -> Manifest:
        _refuse_strange(staged)
        files: list[Path] = []
        folders: list[Path] = []
        for part, (folder_mode, file_mode) in PARTS.items():
            for path in [staged / part, *sorted((staged / part).rglob("*"))]:
                path.chmod(folder_mode if path.is_dir() else file_mode)
                (folders if path.is_dir() else files).append(path)
        described = _each(files, sum(path.stat().st_size for path in files))
        # The bytes are on the disk; their names are in these folders, up to the name of the release in staging/.
        for folder in (*folders, staged, staged.parent):
            sync(folder)
        return {path.relative_to(staged).as_posix(): entry for path, entry in zip(files, described, strict=True)}

    # --- whose it is ---------------------------------------------------------------------------------------

    def mine(self, token: str) -> bool:
        return token in self._locks

    def token_of(self, staged: Path) -> str | None:
        return staged.name if staged.parent == self._staging and self.mine(staged.name) else None

    def claim(self, token: str) -> bool:
        lock = take_lock(lock_file(self._staging / token), new=False)
        if lock is not None:
            self._locks[token] = lock
        return lock is not None

    def let_go(self, token: str) -> None:
        os.close(self._locks.pop(token))

    def discard(self, token: str) -> bool:
        folder = self._staging / token
        existed = folder.is_dir()
        try:  # the folder, then the lock: a crash in between is cleared up later
            if existed:
                shutil.rmtree(folder)
            lock_file(folder).unlink(missing_ok=True)
        finally:
            self.let_go(token)
        return existed

    def staged(self) -> list[str]:
        names = [entry.name for entry in self._staging.iterdir()] if self._staging.is_dir() else []
        return sorted({name.removesuffix(".lock") for name in names})

    def has(self, token: str) -> bool:
        return (self._staging / token).is_dir()

    # --- a recorded release --------------------------------------------------------------------------------

    def reveal(self, record: Record) -> Path:
        source, target = self._staging / record.token, self._release(record)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            source.rename(target)
        except OSError:
            if source.exists() or not target.is_dir():
                raise
        # Once the catalog says "revealed", the release is looked for in releases/ only: it must be there to stay, and
        # not come back in staging/, where it would be taken for a dead publisher's.
        sync(target.parent)
        sync(source.parent)
        return target

    def forget(self, record: Record) -> None:
        lock_file(self._staging / record.token).unlink(missing_ok=True)
        if self.mine(record.token):
            self.let_go(record.token)

    def remove(self, record: Record) -> bool:
        folder, aside = self._release(record), self._staging / f"{record.token}-discarded"
        difference = _compare(folder, record.manifest) if folder.is_dir() else None
        if difference is None or difference.changed or difference.extra:  # another release has its number by now
            return False
        self._staging.mkdir(mode=0o700, exist_ok=True)
        folder.rename(aside)
        sync(folder.parent)
        shutil.rmtree(aside)
        return True

    def replace(self, record: Record, name: str, token: str, staged: str) -> None:
        source, target = self._staging / token / staged, self._release(record) / name
        if source.is_file() and target.parent.is_dir():
            with suppress(FileNotFoundError):  # another process was first
                source.replace(target)
            sync(target.parent)

    def drop(self, record: Record, name: str) -> None:
        target = self._release(record) / name
        if target.is_file():
            target.unlink(missing_ok=True)
            sync(target.parent)

    def place_of(self, record: Record) -> Path:
        return self._release(record) if record.revealed else self._staging / record.token

    def revealed(self) -> list[str]:
        return sorted(entry.name for entry in self._releases.iterdir()) if self._releases.is_dir() else []

    def locate(self, record: Record) -> Path | None:
        places = [self._release(record)]
        if not record.revealed:
            # The second look at the release folder is for a publisher that moves it between the first two.
            places += [self._staging / record.token, places[0]]
        return next((place for place in places if place.is_dir()), None)

    def read(self, record: Record, name: str) -> bytes | None:
        folder = self.locate(record)
        try:
            data = None if folder is None else (folder / name).read_bytes()
        except OSError:
            return None
        matches = data is not None and hashlib.sha256(data).hexdigest() == record.manifest[name]["sha256"]
        return data if matches else None

    def compare(self, record: Record) -> Difference | None:
        folder = self.locate(record)
        if folder is None:
            return None
        difference = _compare(folder, record.manifest)
        if difference and not folder.exists():  # a publisher revealed it while we read
            return self.compare(record)
        return difference

    def _release(self, record: Record) -> Path:
        return self._releases / release_name(record.number)


def _close_all(locks: dict[str, int]) -> None:
    while locks:
        os.close(locks.popitem()[1])


# --- locks -------------------------------------------------------------------------------------------------


def lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + ".lock")


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


# --- contents ----------------------------------------------------------------------------------------------


def _files_in(folder: Path) -> Iterator[Path]:
    """Everything below a folder that is not itself a folder, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            yield path


def _refuse_strange(staged: Path) -> None:
    strange = [path for path in staged.iterdir() if path.name not in PARTS]
    strange += [path for path in _files_in(staged) if path.is_symlink() or not path.is_file()]
    if strange:
        raise InputError(
            Fault(
                "R511",
                f"staging folder '{staged.name}'",
                f"'{path.relative_to(staged)}' is not a plain file in public/, private/ or memory/",
                "write plain files into these three folders only",
            )
            for path in strange
        )


def _each(files: list[Path], size: int) -> list[Entry]:
    if size < LARGE:
        return [_last(path) for path in files]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count() or 1) as files_at_once:
        return list(files_at_once.map(_last, files))


def _last(path: Path) -> Entry:
    """Hash a file and force its bytes to the disk, in one opening."""
    with path.open("rb") as file:
        entry = _described(file)
        os.fsync(file.fileno())
        return entry


def _described(file: BufferedReader) -> Entry:
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Entry(sha256=sha256, size=file.tell())


def _compare(folder: Path, manifest: Manifest) -> Difference:
    """Read every byte of a release again and say where it is not what was recorded."""
    try:
        there = {path.relative_to(folder).as_posix(): path for path in _files_in(folder)}
        common = [name for name in manifest if name in there]
        return Difference(
            missing=[name for name in manifest if name not in there],
            changed=[name for name in common if not _matches(there[name], manifest[name])],
            extra=[name for name in there if name not in manifest],
        )
    except FileNotFoundError:  # moved away while we read: to the caller, nothing is there
        return Difference(missing=list(manifest), changed=[], extra=[])


def _matches(path: Path, entry: Entry) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != entry["size"]:
        return False
    with path.open("rb") as file:
        return _described(file) == entry
