"""The folder in which a console works.

    FOLDER/admissions/reveil.toml       a series: its policy, and its private memory beside it in .reveil/
    FOLDER/.console/uploads/ID/         a table that was dropped, and what is known of it
    FOLDER/.console/drafts/ID.json      a series that is being described in the wizard
    FOLDER/.console/jobs/ID/            work that was asked for: description, and a folder for each run of it
    FOLDER/.console/alone/ID/           a release by itself: its policy, its two halves, who has it
    FOLDER/.console/log.jsonl           who did what, chained

Everything is plain files: the command line works in the same folders, and a stop loses nothing.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
KEPT_DAYS = 7  # that an upload stays
TOKEN = re.compile(r"[0-9a-f]{16}")


def now() -> str:
    """The time, as everything here notes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def slug(name: str) -> str:
    """A name as a folder and in addresses.

    >>> slug("Admissions, 2026 Q1"), slug("Übersicht"), slug("../..")
    ('admissions-2026-q1', 'bersicht', 'series')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:48] or "series"


def write_atomically(path: Path, content: object) -> None:
    """JSON that is there whole, or as it was before."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    beside.write_text(json.dumps(content, ensure_ascii=False, default=str), encoding="utf-8")
    beside.replace(path)


def read(path: Path) -> dict[str, Any] | None:
    """What a JSON file says; None where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


@dataclass(frozen=True)
class Place:
    """One folder, as the console sees it."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / ".console"

    def lay_out(self) -> None:
        """Make what is missing, for nobody else to read."""
        for name in ("uploads", "drafts", "jobs", "alone"):
            (self.state / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.state.chmod(0o700)

    # --- series --------------------------------------------------------------------------------------------

    def series(self, known: Container[str] = ()) -> list[str]:
        """Names of the folders that hold a policy, in alphabetical order; of those that are known it is believed."""
        if not self.folder.is_dir():
            return []
        names = sorted(filter(NAME.fullmatch, os.listdir(self.folder)))  # noqa: PTH208 there may be ten thousand
        base = str(self.folder)
        return [name for name in names if name in known or os.path.isfile(f"{base}/{name}/reveil.toml")]  # noqa: PTH113

    def unlisted(self) -> list[str]:
        """Names of folders that hold a policy and cannot be in an address."""
        found = (path.parent.name for path in self.folder.glob("*/reveil.toml"))
        return sorted(name for name in found if not NAME.fullmatch(name))

    def home(self, key: str) -> Path:
        """The folder of a series; refused where there is none, whatever the address says."""
        if not self.there(key):
            raise unknown("series", key)
        return self.folder / key

    def there(self, key: str) -> bool:
        """Whether there is a series of this name."""
        return bool(NAME.fullmatch(key)) and (self.folder / key / "reveil.toml").is_file()

    def new_series(self, name: str) -> Path:
        """A new folder for a series of this name."""
        base = slug(name)
        for number in range(1, 1000):
            folder = self.folder / (base if number == 1 else f"{base}-{number}")
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return folder
        raise InputError(Fault("R219", f"series '{base}'", "there are too many of this name", "choose another name"))

    # --- uploads, drafts, jobs -----------------------------------------------------------------------------

    def entry(self, kind: str, token: str) -> Path:
        """Where an upload, a draft or a job is; refused where it is none."""
        path = self.state / kind / (f"{token}.json" if kind == "drafts" else token)
        if not TOKEN.fullmatch(token) or not path.exists():
            raise unknown("release" if kind == "alone" else kind.removesuffix("s"), token)
        return path

    def new_entry(self, kind: str) -> tuple[str, Path]:
        """A new folder for an upload or a job, and its token."""
        token = secrets.token_hex(8)
        path = self.state / kind / token
        path.mkdir(mode=0o700)
        return token, path

    def uploads(self) -> list[dict[str, Any]]:
        """What was dropped and is still here, the newest first."""
        found = [read(path) for path in (self.state / "uploads").glob("*/meta.json")]
        return sorted(filter(None, found), key=lambda one: str(one["at"]), reverse=True)

    def upload(self, token: str) -> tuple[dict[str, Any], Path]:
        """An upload and its file."""
        folder = self.entry("uploads", token)
        meta = read(folder / "meta.json")
        if meta is None:
            raise unknown("upload", token)
        return meta, folder / str(meta["file"])

    def forget_upload(self, token: str) -> None:
        """Delete a table, if it is still here: it is about people, and no longer needed."""
        if TOKEN.fullmatch(token):
            shutil.rmtree(self.state / "uploads" / token, ignore_errors=True)

    def forget_old(self) -> None:
        """Delete tables that were sent long ago; whoever still needs one sends it again."""
        oldest = (datetime.now(UTC) - timedelta(days=KEPT_DAYS)).isoformat(timespec="seconds")
        for one in self.uploads():
            if str(one["at"]) < oldest:
                self.forget_upload(str(one["id"]))

    def alone(self) -> list[dict[str, Any]]:
        """Releases by themselves that are there, the newest first."""
        found = [read(path.parent / "about.json") for path in (self.state / "alone").glob("*/out")]
        return sorted(filter(None, found), key=lambda one: str(one["at"]), reverse=True)

    def drafts(self) -> list[dict[str, Any]]:
        """Series that are being described, the newest first."""
        found = [read(path) for path in (self.state / "drafts").glob("*.json")]
        return sorted(filter(None, found), key=lambda one: str(one["at"]), reverse=True)


def unknown(what: str, token: str) -> InputError:
    """Somebody asked for something that is not here."""
    return InputError(Fault("R840", f"{what} {token[:40]!r}", "is not here, or no longer", "go back to the overview"))
