"""What browsers send: forms with their token, and files that are streamed to the disk."""

from __future__ import annotations

import shutil
from pathlib import Path, PurePath
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from reveil.base.errors import Fault, InputError
from reveil.serve.place import Place, now, write_atomically
from reveil.serve.security import same
from reveil.table.suffixes import SUFFIXES

LARGEST = 4_000_000_000  # bytes of an upload
SPARE = 1_000_000_000  # bytes that stay free on the disk


async def form_of(request: Request, *, of_session: bool = True) -> FormData:
    """A form of ours: it carries the token of its session, where there is one."""
    refuse_large(request.app.state.place, int(request.headers.get("content-length") or 0))
    form = await request.form(max_files=64, max_fields=4000)
    if of_session and not same(str(form.get("token", "")), request.scope["console"].form_token):
        raise InputError(Fault("R847", "form", "is not one of this session", "go back, reload the page and try again"))
    return form


def refuse_large(place: Place, length: int) -> None:
    """Refuse what is too large, or would fill the disk."""
    free = shutil.disk_usage(place.folder).free
    if length > LARGEST or length * 2 + SPARE > free:
        message = f"is {length:,} bytes, and {min(LARGEST, max(0, (free - SPARE) // 2)):,} are taken here"
        raise InputError(Fault("R846", "upload", message, "send a smaller file, or use the command line"))


def texts(form: FormData, name: str) -> list[str]:
    """All answers under one name."""
    return [str(value) for value in form.getlist(name) if isinstance(value, str)]


def text(form: FormData, name: str, default: str = "") -> str:
    """The answer under one name, without blanks around it."""
    value = form.get(name, default)
    return value.strip() if isinstance(value, str) else default


async def keep_upload(place: Place, file: UploadFile, by: str) -> dict[str, Any]:
    """Store a file that was sent. Its name says how to read it, and is shown; it is never a path."""
    shown = PurePath(str(file.filename or "").replace("\\", "/")).name[:120]
    suffix = "".join(PurePath(shown).suffixes[-2:] if shown.lower().endswith(".gz") else PurePath(shown).suffixes[-1:])
    if not shown:
        raise InputError(Fault("R848", "upload", "no file was chosen", "choose a file first"))
    if suffix.lower() not in SUFFIXES:
        message = f"'{shown}' is no kind of table that is known here"
        raise InputError(Fault("R102", "upload", message, f"use one of {' '.join(SUFFIXES)}"))
    token, folder = place.new_entry("uploads")
    name = f"table{suffix.lower()}"
    await run_in_threadpool(_copy, file, folder / name)
    meta = {"id": token, "name": shown, "file": name, "size": (folder / name).stat().st_size, "at": now(), "by": by}
    write_atomically(folder / "meta.json", meta)
    return meta


def _copy(file: UploadFile, target: Path) -> None:
    with target.open("wb") as out:
        shutil.copyfileobj(file.file, out, 1 << 20)
