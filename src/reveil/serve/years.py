"""What is done to a series years later: correct, erase, merge, split, retract, end. Identifiers are kept nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.jobs.amending_specs import EndSpec, EraseSpec, MergeSpec, RetractSpec, SplitSpec
from reveil.jobs.spec import Spec
from reveil.serve.forms import form_of, keep_upload, text
from reveil.serve.place import unknown
from reveil.serve.publishing import state_of
from reveil.serve.state import SeriesState
from reveil.serve.team import insist_on_password
from reveil.serve.view import go, page, same_thing
from reveil.serve.visitors import insist

router = APIRouter(include_in_schema=False)
LONGEST = 1000  # letters of a field


def _erase(form: FormData, about: dict[str, Any]) -> Spec:
    names = [line.strip() for line in str(form.get("identifiers", "")).splitlines() if line.strip()]
    if not names:
        raise InputError(Fault("R553", "identifier", "nobody is named", "write one identifier in each line"))
    return EraseSpec(identifiers=names, sure=_sure(form), **about)


def _merge(form: FormData, about: dict[str, Any]) -> Spec:
    return MergeSpec(one=_field(form, "one"), other=_field(form, "other"), sure=_sure(form), **about)


def _split(form: FormData, about: dict[str, Any]) -> Spec:
    return SplitSpec(one=_field(form, "one"), new=_field(form, "new"), **about)


def _retract(form: FormData, about: dict[str, Any]) -> Spec:
    number = _field(form, "number")
    return RetractSpec(number=int(number) if number.isdecimal() else 0, note=text(form, "note")[:LONGEST], **about)


def _end(form: FormData, about: dict[str, Any]) -> Spec:
    fate = text(form, "fate", "keep")
    return EndSpec(destroy_key=fate == "key", destroy_memory=fate == "memory", sure=_sure(form), **about)


ACTS: dict[str, Callable[[FormData, dict[str, Any]], Spec]] = {
    "erase": _erase,
    "merge": _merge,
    "split": _split,
    "retract": _retract,
    "end": _end,
}


def _sure(form: FormData) -> bool:
    return text(form, "sure") == "yes"


def _field(form: FormData, name: str) -> str:
    if not (given := text(form, name)[:LONGEST]):
        raise InputError(Fault("R553", "identifier", f"the field '{name}' is empty", "go back and fill it in"))
    return given


def _insist(request: Request, found: SeriesState) -> str:
    """Stewards; under four eyes the second person may be one who signs."""
    signs = found.four_eyes and "sign" in request.scope["console"].may(found.key)
    return insist(request, "sign" if signs else "steward", found.key)


@router.get("/series/{key}/years")
def years(request: Request, key: str) -> Response:
    """What was done to the series so far, and what can be."""
    insist(request, "data", key)
    found = state_of(request, key)
    events = found.amendments
    handed = [one["number"] for one in found.releases if one["state"] == "handed over"]
    job = {"job": "history", "policy": str(found.folder / "reveil.toml")}
    words = "\n".join(
        (
            "reveil correct TABLE.csv",
            "reveil erase IDENTIFIER",
            "reveil people merge ONE OTHER",
            "reveil people split ONE NEW",
            "reveil retract NUMBER",
            "reveil rotate TABLE-1.csv TABLE-2.csv",
            "reveil end",
        )
    )
    elsewhere = same_thing(job, found.folder, words)
    return page(request, "years", elsewhere=elsewhere, series=found, events=events, handed=handed)


@router.post("/series/{key}/years/correct")
async def correct(request: Request, key: str) -> Response:
    """Read a table with the right values, in a process of its own; without a tick it only says what would be done.

    Like all tables of this page it is deleted when that is over.
    """
    insist(request, "see", key)
    found = state_of(request, key)
    who, form = _insist(request, found), await form_of(request)
    await insist_on_password(request, who, str(form.get("password", "")))
    file, state = form.get("file"), request.app.state
    if not isinstance(file, UploadFile):
        raise InputError(Fault("R848", "upload", "no file was chosen", "choose a file first"))
    meta = await keep_upload(state.place, file, who)
    path = str(state.place.upload(meta["id"])[1])
    job = {"job": "correct", "policy": str(found.folder / "reveil.toml"), "table": path, "sure": _sure(form), "by": who}
    elsewhere = same_thing({k: v for k, v in job.items() if k != "by"}, found.folder, "reveil correct TABLE.csv")
    about = {"series": key, "spent": [meta["id"]], "shown": meta["name"], "elsewhere": elsewhere}
    asked = state.queue.ask(job, f"Correcting from {meta['name']}", who, then=f"/series/{key}/years", **about)
    state.log.note(who, "asked for a correction", key, job=asked)
    return go(f"/jobs/{asked}")


@router.post("/series/{key}/years/rotate")
async def rotate(request: Request, key: str) -> Response:
    """Take another key, from tables that hold everybody; read in a process of its own, and deleted when it is over."""
    insist(request, "see", key)
    found = state_of(request, key)
    who, form = _insist(request, found), await form_of(request)
    await insist_on_password(request, who, str(form.get("password", "")))
    state, sent = request.app.state, form.getlist("files")
    files = [one for one in sent if isinstance(one, UploadFile) and one.filename]
    if not files:
        raise InputError(Fault("R848", "upload", "no file was chosen", "choose the tables of all releases"))
    kept = [await keep_upload(state.place, file, who) for file in files]
    tables = [str(state.place.upload(meta["id"])[1]) for meta in kept]
    job: dict[str, Any] = {"job": "rotate", "policy": str(found.folder / "reveil.toml"), "tables": tables, "by": who}
    job |= {"forget_erased": True} if text(form, "forget") == "yes" else {}
    words = " ".join(f"TABLE-{number}.csv" for number in range(1, len(kept) + 1))
    elsewhere = same_thing({k: v for k, v in job.items() if k != "by"}, found.folder, f"reveil rotate {words}")
    about = {"series": key, "spent": [meta["id"] for meta in kept], "names": [meta["name"] for meta in kept]}
    title = f"Another key, from {some(len(kept), 'table')}"
    asked = state.queue.ask(job, title, who, then=f"/series/{key}/years", elsewhere=elsewhere, **about)
    state.log.note(who, "asked for another key", key, job=asked)
    return go(f"/jobs/{asked}")


@router.post("/series/{key}/years/{act}")
async def amend(request: Request, key: str, act: str) -> Response:
    """Erase, merge, split, retract or end. Done at once: no identifier is written into a job."""
    insist(request, "see", key)
    found = state_of(request, key)
    who, form = _insist(request, found), await form_of(request)
    if act not in ACTS:
        raise unknown("act", act)
    await insist_on_password(request, who, str(form.get("password", "")))
    spec = ACTS[act](form, {"policy": found.folder / "reveil.toml", "by": who})
    done: Any = await run_in_threadpool(spec.run)
    request.app.state.log.note(who, f"asked to {act}" if done.waits else done.event.action, key)
    told = ("It waits for a second person, who gives the same.",) if done.waits else done.notes
    again = state_of(request, key)
    command = f"reveil {'people ' if act in ('merge', 'split') else ''}{act}"
    elsewhere = (("Command line", f"{command} ...     # see {command} --help"),)
    return page(request, "amended", elsewhere=elsewhere, series=again, act=act, waits=done.waits, notes=told)
