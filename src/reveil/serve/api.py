"""The same over HTTP: JSON under /api/v1, described by OpenAPI; refusals as problem details (RFC 9457)."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from reveil.base.errors import Fault, InputError, ReveilError
from reveil.base.version import __version__
from reveil.report.explain import explain
from reveil.serve.common import following, own_job, own_jobs
from reveil.serve.forms import LARGEST, refuse_large
from reveil.serve.place import now, unknown, write_atomically
from reveil.serve.proposing import tables_of
from reveil.serve.publishing import ask_to_propose, state_of
from reveil.serve.security import HEADERS, same
from reveil.serve.state import find_proposal, find_release, in_full, ledger_of
from reveil.serve.visitors import insist
from reveil.table.suffixes import SUFFIXES

router = APIRouter(prefix="/api/v1", tags=["reveil"])


def problem(error: ReveilError, status: int) -> Response:
    """A refusal for programs."""
    first = error.faults[0]
    content = {
        "type": f"/explain/{first.code}",
        "title": error.title,
        "status": status,
        "detail": first.message,
        "faults": [fault.to_dict() for fault in error.faults],
    }
    return JSONResponse(content, status, HEADERS, "application/problem+json")


def changing(request: Request, permit: str, key: str = "") -> str:
    """Who asks for a change, with the token of their session in a header."""
    who = insist(request, permit, key)
    _insist_on_token(request)
    return who


def _insist_on_token(request: Request) -> None:
    if request.scope["console"].by_token:  # no browser sends that by itself
        return
    if not same(request.headers.get("x-reveil-token", ""), request.scope["console"].form_token):
        message = "the header X-Reveil-Token is missing, or not that of this session"
        raise InputError(Fault("R847", "request", message, "send the token that GET /api/v1/me gives"))


@router.get("/health")
def health() -> dict[str, str]:
    """Whether the service answers, and its version."""
    return {"state": "good", "version": __version__}


@router.get("/me")
def me(request: Request) -> dict[str, Any]:
    """Who asks, what they may, and the token that changes are sent with."""
    visitor = request.scope["console"]
    return {"who": visitor.who, "may": sorted(visitor.may()), "token": visitor.form_token}


@router.get("/explain/{name}")
def explained(request: Request, name: str) -> dict[str, Any]:
    """A code, a guarantee or a word, in plain words."""
    return explain(name).to_dict()


Limit = Annotated[int, Query(ge=1, le=500)]


def _say_next(response: Response, path: str, after: str, limit: int) -> None:
    """Where the list goes on (RFC 8288). It is named by its last entry, so that nothing is skipped or told twice."""
    response.headers["Link"] = f'</api/v1/{path}?{urlencode({"after": after, "limit": limit})}>; rel="next"'


@router.get("/series")
def all_series(request: Request, response: Response, after: str = "", limit: Limit = 100) -> list[dict[str, Any]]:
    """Series with their releases and proposals, by key; `Link` says where the list goes on."""
    visitor, overview = request.scope["console"], request.app.state.overview
    every = overview.keys()
    keys = [key for key in every if key > after and "see" in visitor.may(key)]
    if len(keys) > limit:
        _say_next(response, "series", keys[limit - 1], limit)
    return list(overview.in_full(keys[:limit]))


# --- tokens ------------------------------------------------------------------------------------------------


def _person(request: Request) -> str:
    """Who asks for a change, in a session: no token makes or ends another."""
    visitor = request.scope["console"]
    if visitor.by_token:
        raise InputError(Fault("R845", "token", "makes and ends no tokens", "do it in a session"))
    _insist_on_token(request)
    return str(visitor.who)


@router.get("/tokens")
def tokens(request: Request) -> list[dict[str, Any]]:
    """The visitor's own tokens, without their secrets."""
    return list(request.app.state.kept.tokens(request.scope["console"].who))


@router.post("/tokens", status_code=201)
def make_token(request: Request, name: str, scopes: str, days: int = 30) -> dict[str, Any]:
    """A token for programs; its secret is in this answer and nowhere else. No token signs."""
    who = _person(request)
    wanted = [scope for scope in scopes.split(",") if scope]
    secret, about = request.app.state.kept.make_token(who, name, wanted, days)
    request.app.state.log.note(who, "made a token", about["id"], scopes=about["scopes"], days=days)
    return {**about, "token": secret}


@router.delete("/tokens/{token}", status_code=204)
def end_token(request: Request, token: str) -> Response:
    """End one of the visitor's own tokens."""
    who = _person(request)
    if not request.app.state.kept.end_token(who, token):
        raise unknown("token", token)
    request.app.state.log.note(who, "ended a token", token)
    return Response(status_code=204)


@router.get("/series/{key}")
def one_series(request: Request, key: str) -> dict[str, Any]:
    """One series with its releases and proposals."""
    insist(request, "see", key)
    return in_full(state_of(request, key))


@router.get("/series/{key}/releases/{number}")
def one_release(request: Request, key: str, number: int) -> dict[str, Any]:
    """One release, as it was recorded."""
    insist(request, "see", key)
    return find_release(state_of(request, key), number)


@router.put("/uploads/{name}", status_code=201)
async def send(request: Request, name: str) -> dict[str, Any]:
    """A table as raw bytes, streamed to the disk; the name's end says what it is."""
    who = changing(request, "steward")
    kind = next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.lower().endswith(suffix)), "")
    if not kind:
        raise InputError(Fault("R102", "upload", "its name ends in no kind that is known", f"use {' '.join(SUFFIXES)}"))
    place = request.app.state.place
    refuse_large(place, int(request.headers.get("content-length") or 0))
    token, folder = place.new_entry("uploads")
    size = 0
    try:
        with (folder / f"table{kind}").open("wb") as out:
            async for part in request.stream():
                size += len(part)
                if size > LARGEST:
                    refuse_large(place, size)
                await run_in_threadpool(out.write, part)
    except BaseException:  # cut off, or too large: nothing of it stays
        place.forget_upload(token)
        raise
    meta = {"id": token, "name": name[:120], "file": f"table{kind}", "size": size, "at": now(), "by": who}
    write_atomically(folder / "meta.json", meta)
    request.app.state.log.note(who, "uploaded", f"upload {token}", bytes=size)
    return meta


@router.post("/series/{key}/proposals", status_code=202)
def propose(request: Request, response: Response, key: str, upload: str, accept: str = "") -> dict[str, Any]:
    """Ask for the next release, made and sealed, from an upload; answers with the job."""
    who = changing(request, "steward", key)
    token = ask_to_propose(request, key, upload, who, [name for name in accept.split(",") if name])
    response.headers["Location"] = f"/api/v1/jobs/{token}"
    return dict(request.app.state.queue.job(token))


@router.post("/series/{key}/proposals/{token}/{act}")
def decide(request: Request, response: Response, key: str, token: str, act: str, note: str = "") -> dict[str, Any]:
    """accept, submit, sign, return or withdraw; `accept` answers with the job that records."""
    who = changing(request, "sign" if act in ("sign", "return") else "steward", key)
    if request.app.state.team is not None and act in ("sign", "accept"):
        message = "is done in the console, where the password is asked for"
        raise InputError(Fault("R845", f"{act} over HTTP", message, "open the proposal in the browser"))
    found = state_of(request, key)
    find_proposal(found, token)
    approval = ledger_of(found).approval
    steps = {
        "submit": approval.submit,
        "sign": approval.sign,
        "return": approval.give_back,
        "withdraw": approval.withdraw,
    }
    if act == "accept":
        job = {"job": "accept", "policy": str(found.folder / "reveil.toml"), "token": token}
        asked = request.app.state.queue.ask(
            job, f"Recording proposal {token}", who, series=key, spent=tables_of(request, key, token)
        )
        response.status_code = 202
        response.headers["Location"] = f"/api/v1/jobs/{asked}"
        request.app.state.log.note(who, "accepted", key, proposal=token)
        return dict(request.app.state.queue.job(asked))
    if act not in steps:
        raise InputError(Fault("R840", f"step {act[:40]!r}", "is none", f"use accept, {', '.join(steps)}"))
    steps[act](token, who, note[:2000])
    for upload in tables_of(request, key, token) if act == "withdraw" else ():
        request.app.state.place.forget_upload(upload)
    request.app.state.log.note(who, act, key, proposal=token)
    return in_full(state_of(request, key))


@router.get("/jobs")
def jobs(request: Request, response: Response, after: str = "", limit: Limit = 100) -> list[dict[str, Any]]:
    """Jobs, the newest first, without their results; `Link` says where the list goes on."""
    listed = own_jobs(request)
    places = [place for place, job in enumerate(listed) if job["id"] == after]
    if after and not places:
        raise unknown("job", after)
    rest = listed[places[0] + 1 :] if places else listed
    if len(rest) > limit:
        _say_next(response, "jobs", rest[limit - 1]["id"], limit)
    return rest[:limit]


@router.get("/jobs/{token}/events")
def events(request: Request, token: str) -> Response:
    """How far a job is, as server-sent events until it is over; `Last-Event-ID` resumes."""
    own_job(request, token)
    return following(request, request.app.state.queue, token)


@router.get("/jobs/{token}")
def job(request: Request, token: str) -> dict[str, Any]:
    """One job: state, stage, and its result or its faults."""
    return own_job(request, token)


@router.delete("/jobs/{token}", status_code=202)
def cancel(request: Request, token: str) -> dict[str, Any]:
    """Cancel a job; refused (409) once it records."""
    own_job(request, token, "steward")
    who = changing(request, "see")
    request.app.state.queue.cancel(token)
    request.app.state.log.note(who, "cancelled", f"job {token}")
    return dict(request.app.state.queue.job(token))
