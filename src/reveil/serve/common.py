"""Pages that belong to no series: home, coming in, jobs, the log, explanations."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from reveil.base.doubts import DOUBTS
from reveil.base.errors import InputError
from reveil.report.explain import explain
from reveil.serve.forms import form_of
from reveil.serve.leases import OVER
from reveil.serve.queue import Queue
from reveil.serve.security import HEADERS, Door
from reveil.serve.view import go, let_in, page
from reveil.serve.visitors import ALL, insist, insist_on_own

router = APIRouter(include_in_schema=False)
SHOWN_JOBS, SHOWN_LINES, SHOWN_SERIES = 200, 500, 50
TELL_EVERY = 0.25  # seconds between two looks at a job that somebody follows


@router.get("/health")
def health() -> Response:
    """Whether the service answers."""
    return PlainTextResponse("good\n")


@router.get("/enter")
def enter(request: Request, key: str = "") -> Response:
    """The link that `reveil serve` opens: it lets its owner in, once."""
    door: Door = request.app.state.door
    who = door.take(key, "enter")
    if who is None:
        return HTMLResponse("<!DOCTYPE html><title>Reveil</title><p>This link was used, or is too old.</p>", 401)
    return let_in(request, who or request.app.state.who)


@router.post("/leave")
async def leave(request: Request) -> Response:
    """End the session."""
    await form_of(request)
    name = request.app.state.cookie
    request.app.state.door.leave(request.cookies.get(name, ""))
    answer = go("/")
    answer.delete_cookie(name)
    return answer


@router.get("/")
def home(request: Request, after: str = "") -> Response:
    """What waits for somebody, the series, and what runs."""
    place, visitor, overview = request.app.state.place, request.scope["console"], request.app.state.overview
    keys = overview.keys()
    if "see" not in visitor.permits.get(ALL, ()):
        keys = [key for key in keys if "see" in visitor.may(key)]
    rest = [key for key in keys if key > after]
    series = overview.lines(rest[:SHOWN_SERIES])
    following = series[-1].key if len(rest) > SHOWN_SERIES else ""
    tasks = [(one, one.open) for one in overview.waiting() if "data" in visitor.may(one.key)][:SHOWN_SERIES]
    running = [job for job in own_jobs(request) if job["state"] not in OVER]
    elsewhere = (("Command line", f"cd {place.folder}\nreveil history -p SERIES/reveil.toml"),)
    drafts = [draft for draft in place.drafts() if is_own(request, draft)]
    alone = [one for one in place.alone() if is_own(request, one)]
    told: dict[str, Any] = {
        "alone": alone,
        "listed": series,
        "after": after,
        "following": following,
        "whole": len(keys),
    }
    return page(request, "home", elsewhere=elsewhere, **told, tasks=tasks, running=running, drafts=drafts, place=place)


@router.get("/explain/{name}")
def explained(request: Request, name: str) -> Response:
    """A code or a word, in plain words."""
    elsewhere = (("Command line", f"reveil explain {name}"),)
    return page(request, "explain", elsewhere=elsewhere, entry=explain(name))


# --- jobs --------------------------------------------------------------------------------------------------


@router.get("/jobs")
def jobs(request: Request) -> Response:
    """All jobs, the newest first."""
    return page(request, "jobs", jobs=own_jobs(request)[:SHOWN_JOBS])


def is_own(request: Request, entry: dict[str, Any], permit: str = "data") -> bool:
    """Whether a draft or a job is the visitor's, or belongs to a series whose data they may see."""
    try:
        insist_on_own(request, entry, "entry", permit)
    except InputError:
        return False
    return True


def own_jobs(request: Request) -> list[dict[str, Any]]:
    """The jobs that the visitor may see."""
    return [job for job in request.app.state.queue.jobs() if is_own(request, job)]


def own_job(request: Request, token: str, permit: str = "data") -> dict[str, Any]:
    """A job, if the visitor may see it."""
    found: dict[str, Any] = request.app.state.queue.job(token)
    insist_on_own(request, found, "job", permit)
    return found


@router.get("/jobs/{token}")
def job(request: Request, token: str, stay: bool = False) -> Response:
    """One job: how far it is, or what became of it. Whoever waited for it is sent on."""
    found = own_job(request, token)
    if found["state"] == "succeeded" and found.get("then") and not stay:
        return go(forward(found))
    doubts = [name for name, code in DOUBTS.items() if any(fault["code"] == code for fault in found.get("faults", ()))]
    told: dict[str, Any] = {"job": found, "over": found["state"] in OVER, "doubts": doubts}
    return page(request, "job", elsewhere=found.get("elsewhere", ()), **told)


def forward(found: dict[str, Any]) -> str:
    """Where a job that succeeded leads to."""
    then, result = str(found["then"]), found.get("result") or {}
    return then.replace("{proposal}", str(result.get("proposal", ""))).replace(
        "{number}", str(result.get("number", ""))
    )


@router.post("/jobs/{token}/cancel")
async def cancel(request: Request, token: str) -> Response:
    """Stop a job; nothing of it was recorded."""
    own_job(request, token, "steward")
    await form_of(request)
    who = request.scope["console"].who
    request.app.state.queue.cancel(token)
    request.app.state.log.note(who, "cancelled", f"job {token}")
    return go(f"/jobs/{token}")


@router.get("/jobs/{token}/status")
def status(request: Request, token: str) -> Response:
    """How far a job is, for whoever polls."""
    return JSONResponse(told(own_job(request, token)), headers=HEADERS)


def told(found: dict[str, Any]) -> dict[str, Any]:
    """What is told of a running job."""
    over = found["state"] in OVER
    return {**{name: found.get(name) for name in ("id", "title", "state", "stage", "done")}, "over": over}


@router.get("/jobs/{token}/events")
async def events(request: Request, token: str) -> Response:
    """How far a job is, told whenever it changes, until it is over."""
    queue: Queue = request.app.state.queue
    own_job(request, token)
    return following(request, queue, token)


def following(request: Request, queue: Queue, token: str) -> Response:
    """Events of a job. Each tells all that is known, and its id is that of what it tells: `Last-Event-ID` resumes."""
    return StreamingResponse(_following(request, queue, token), media_type="text/event-stream", headers=HEADERS)


async def _following(request: Request, queue: Queue, token: str) -> AsyncIterator[str]:
    last = request.headers.get("last-event-id", "")
    while not await request.is_disconnected():
        now = told(await run_in_threadpool(queue.job, token))
        text = json.dumps(now)
        if (name := hashlib.sha256(text.encode()).hexdigest()[:16]) != last:
            last = name
            yield f"id: {name}\ndata: {text}\n\n"
        if now["over"]:
            return
        await asyncio.sleep(TELL_EVERY)


# --- the log -----------------------------------------------------------------------------------------------


@router.get("/log")
def log(request: Request) -> Response:
    """Who did what, and whether the chain of lines is whole."""
    insist(request, "log")
    kept = request.app.state.log
    return page(request, "log", lines=kept.lines()[:SHOWN_LINES], fault=kept.fault(), path=kept.path)
