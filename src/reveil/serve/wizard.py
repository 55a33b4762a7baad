"""The wizard: from a file to a series, in six steps. What was answered is kept; every step can be gone back to."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from reveil.base.doubts import DOUBTS
from reveil.base.errors import Fault, InputError
from reveil.hierarchies.files import read_paths
from reveil.serve.drafts import (
    HINTS,
    ROLES,
    WAYS,
    begin_columns,
    column_spec,
    is_alone,
    refuse_columns,
    set_way,
    way_of,
)
from reveil.serve.forms import form_of, keep_upload, text, texts
from reveil.serve.queue import Queue
from reveil.serve.security import HEADERS
from reveil.serve.view import go, page
from reveil.serve.visitors import insist, insist_on_own

router = APIRouter(include_in_schema=False)
STEPS = ("Upload", "Columns", "Coarser", "Promise", "Compare", "Save")
PATIENCE = 60.0  # seconds that a page waits for a short job


@router.get("/new")
def new(request: Request) -> Response:
    """The first step: a file."""
    insist(request, "steward")
    elsewhere = (("Command line", "reveil init TABLE.csv"),)
    return page(request, "new", step=1, steps=STEPS, draft=None, elsewhere=elsewhere)


@router.post("/new")
async def upload(request: Request) -> Response:
    """Take a file, and look at it in a process of its own."""
    who = insist(request, "steward")
    form = await form_of(request)
    state = request.app.state
    file = form.get("file")
    meta = await keep_upload(state.place, _file(file), who)
    name = text(form, "name") or meta["name"].partition(".")[0]
    draft = state.drafts.begin(meta["id"], name[:80], who)
    state.log.note(who, "uploaded", f"upload {meta['id']}", bytes=meta["size"])
    return go(f"/jobs/{look_at(request, draft, who)}")


def own_draft(request: Request, token: str) -> dict[str, Any]:
    """A draft, for whoever began it."""
    draft: dict[str, Any] = request.app.state.drafts.load(token)
    insist_on_own(request, draft, "draft", "steward")
    return draft


def _file(given: Any) -> UploadFile:
    if not isinstance(given, UploadFile):
        raise InputError(Fault("R848", "upload", "no file was chosen", "choose a file first"))
    return given


def look_at(request: Request, draft: dict[str, Any], who: str) -> str:
    """Ask for a look at the draft's table."""
    place, queue = request.app.state.place, request.app.state.queue
    meta, path = place.upload(draft["upload"])
    job = {"job": "look", "table": str(path), "keep": str(path.with_name("looked.parquet")), "accept": draft["accept"]}
    if draft.get("sheet"):
        job["sheet"] = draft["sheet"]
    back = f"/drafts/{draft['id']}"
    asked = queue.ask(
        job,
        f"Looking at {meta['name']}",
        who,
        draft=draft["id"],
        shown=meta["name"],
        then=f"{back}/columns",
        retry=f"{back}/look",
    )
    draft["look"] = asked
    request.app.state.drafts.save(draft)
    return str(asked)


@router.post("/drafts/{token}/look")
async def look_again(request: Request, token: str) -> Response:
    """The same table, with what was doubted accepted, or another sheet."""
    who = insist(request, "steward")
    draft = own_draft(request, token)
    form = await form_of(request)
    draft["accept"] = [name for name in texts(form, "accept") if name in DOUBTS]
    draft["sheet"] = text(form, "sheet") or draft.get("sheet", "")
    return go(f"/jobs/{look_at(request, draft, who)}")


def looked(request: Request, draft: dict[str, Any]) -> dict[str, Any]:
    """What the look at the table found."""
    result = request.app.state.queue.job(draft["look"]).get("result")
    if result is None:
        raise InputError(Fault("R849", "table", "could not be looked at yet", "go back to the upload"))
    return dict(result)


# --- columns -----------------------------------------------------------------------------------------------


@router.get("/drafts/{token}/columns")
def columns(request: Request, token: str) -> Response:
    """The second step: what each column is."""
    who = insist(request, "data")
    draft = own_draft(request, token)
    found = looked(request, draft)
    begin_columns(draft, found)
    request.app.state.drafts.save(draft)
    request.app.state.log.note(who, "saw columns", f"draft {token}")
    meta, _ = request.app.state.place.upload(draft["upload"])
    elsewhere = (("Command line", f"reveil init {meta['name']}"),)
    told: dict[str, Any] = {"found": found, "roles": ROLES, "alone": count_unique(request, draft), "faults": []}
    return page(request, "columns", step=2, steps=STEPS, draft=draft, elsewhere=elsewhere, **told)


def count_unique(request: Request, draft: dict[str, Any]) -> dict[str, Any]:
    """How many people nobody else is like, by what others may know."""
    quasi = [name for name, column in draft["columns"].items() if column["role"] == "quasi"]
    return short_job(request, {"job": "unique", "table": looked_table(request, draft), "columns": quasi}, "Counting")


def looked_table(request: Request, draft: dict[str, Any]) -> str:
    _, path = request.app.state.place.upload(draft["upload"])
    return str(path.with_name("looked.parquet"))


def short_job(request: Request, job: dict[str, Any], title: str) -> dict[str, Any]:
    """The result of a job that takes a moment, waited for; empty where it fails or takes longer."""
    queue: Queue = request.app.state.queue
    asked = queue.ask(job, title, request.scope["console"].who, small=True)
    found = queue.wait(asked, PATIENCE)
    queue.forget(asked)
    return dict(found.get("result") or {})


@router.post("/drafts/{token}/columns")
async def set_columns(request: Request, token: str) -> Response:
    """Take the roles, and go on."""
    insist(request, "steward")
    draft = own_draft(request, token)
    form = await form_of(request)
    for number, name in enumerate(draft["columns"]):
        role = text(form, f"role-{number}")
        if role in ROLES:
            draft["columns"][name]["role"] = role
    draft["name"] = text(form, "name")[:80] or draft["name"]
    request.app.state.drafts.save(draft)
    if text(form, "act") == "count":
        return go(f"/drafts/{token}/columns#alone")
    refuse_columns(draft, alone=is_alone(draft, looked(request, draft)))
    return go(f"/drafts/{token}/coarser")


@router.get("/drafts/{token}/unique")
def unique_now(request: Request, token: str, role: str = "") -> Response:
    """How many are alone by these roles, as they are being chosen: one letter per column."""
    insist(request, "data")
    draft = own_draft(request, token)
    names = list(draft["columns"])
    quasi = [name for name, letter in zip(names, role, strict=False) if letter == "q"]
    job = {"job": "unique", "table": looked_table(request, draft), "columns": quasi}
    return JSONResponse(short_job(request, job, "Counting"), headers=HEADERS)


# --- coarser -----------------------------------------------------------------------------------------------


@router.get("/drafts/{token}/coarser")
def coarser(request: Request, token: str) -> Response:
    """The third step: how columns that others may know are made coarser."""
    insist(request, "data")
    draft = own_draft(request, token)
    quasi = {name: column for name, column in draft["columns"].items() if column["role"] == "quasi"}
    specs = {name: column_spec(column) for name, column in quasi.items()}
    folder = str(request.app.state.place.entry("uploads", draft["upload"]))
    job = {"job": "levels", "table": looked_table(request, draft), "columns": specs, "folder": folder}
    shown = short_job(request, job, "Generalising")
    ways = {name: way_of(column) for name, column in quasi.items()}
    told = {
        "quasi": quasi,
        "levels": shown,
        "ways": ways,
        "WAYS": WAYS,
        "HINTS": HINTS,
        "notes": draft.get("notes", []),
    }
    return page(request, "coarser", step=3, steps=STEPS, draft=draft, **told)


@router.post("/drafts/{token}/coarser")
async def set_coarser(request: Request, token: str) -> Response:
    """Take how each column is made coarser; look again, or go on."""
    insist(request, "steward")
    draft = own_draft(request, token)
    form = await form_of(request)
    faults: list[Fault] = []
    act = text(form, "act")
    for number, (name, column) in enumerate(draft["columns"].items()):
        if column["role"] != "quasi" or f"way-{number}" not in form:
            continue
        file = form.get(f"file-{number}")
        sent = file if isinstance(file, UploadFile) and file.filename else None  # then it is meant, whatever is chosen
        way = "hierarchy" if sent is not None else text(form, f"way-{number}")
        if sent is not None or act != f"tree-{number}":
            faults += set_way(column, name, way, text(form, f"text-{number}"))
        if way == "hierarchy" and (sent is not None or act != f"tree-{number}"):
            faults += await _take_hierarchy(request, draft, sent, number, name)
    draft["notes"] = [str(fault) for fault in faults]
    request.app.state.drafts.save(draft)
    if act.startswith("tree-") and not faults:
        return go(f"/drafts/{token}/tree/{act.removeprefix('tree-')}")
    following = "alone" if is_alone(draft, looked(request, draft)) else "promise"
    return go(f"/drafts/{token}/{'coarser' if faults or act == 'look' else following}")


async def _take_hierarchy(
    request: Request, draft: dict[str, Any], file: UploadFile | None, number: int, name: str
) -> list[Fault]:
    """A hierarchy file that was chosen for a column: kept beside the table, if it can be read."""
    column = draft["columns"][name]
    if file is None:
        missing = Fault("R301", f"column {name!r}", "has no tree yet", "choose a file, or make a tree")
        return [] if column.get("hierarchy") else [missing]
    folder = request.app.state.place.entry("uploads", draft["upload"])
    target = folder / f"hierarchy-{number}.csv"
    beside = folder / f"sent-{target.name}"  # what was made by hand stays until this can be read
    beside.write_bytes(await file.read(16 << 20))
    try:
        await run_in_threadpool(read_paths, name, beside)
        beside.replace(target)
    except InputError as error:
        return list(error.faults)
    finally:
        beside.unlink(missing_ok=True)
    column["hierarchy"], column["type"] = target.name, "category"
    return []
