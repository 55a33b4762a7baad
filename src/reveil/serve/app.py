"""The service: one FastAPI application, with a guard before every route."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from reveil.base.errors import ConflictError, Fault, InputError, ReveilError
from reveil.base.version import __version__
from reveil.serve.drafts import Drafts
from reveil.serve.kept import Kept
from reveil.serve.log import Log
from reveil.serve.once import Once
from reveil.serve.overview import Overview
from reveil.serve.people import Accounts
from reveil.serve.place import Place
from reveil.serve.queue import Queue
from reveil.serve.security import COOKIE, HEADERS, POLICY, SECURE_COOKIE, Door, foreign
from reveil.serve.view import go, page
from reveil.serve.visitors import ALL, EVERYTHING, Visitor

OPEN = ("/enter", "/login", "/welcome", "/static/console.css", "/static/console.js", "/health")  # for whoever asks


class Guard:
    """Before anything else: the right host, no foreign page, somebody who came in; and headers on every answer."""

    def __init__(self, app: ASGIApp, *, state: State, hosts: tuple[str, ...]) -> None:
        self._app, self._state, self._hosts = app, state, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        host, path = request.headers.get("host", ""), scope["path"]
        own = f"{scope['scheme']}://{host}"
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        refusal: Response | None = None
        visitor = await run_in_threadpool(self._visitor, request, path.startswith("/api/"))
        if host not in self._hosts:
            refusal = refused_early(path, 421, "This address is not one of the console's.")
        elif foreign(scope["method"], site, origin, own):
            refusal = refused_early(path, 403, "This was asked for by a page of somebody else, and was not done.")
        elif not visitor.who and path not in OPEN:
            closed = HTMLResponse(CLOSED, 401) if self._state.team is None else go("/login")
            nobody = "Nobody came in: no session, and no token that is good."
            refusal = plain_problem(401, nobody) if path.startswith("/api/") else closed
        scope["console"] = visitor
        await (refusal or self._app)(scope, receive, _with_headers(send))

    def _visitor(self, request: Request, api: bool) -> Visitor:
        """Who asks: by the cookie of a session, or by a token of the API."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if api and kind.lower() == "bearer":
            owner = self._state.kept.owner(secret.strip())
            if owner is None:
                return Visitor()
            who, scopes = owner
            permits = {series: permits & scopes for series, permits in self._permits(who).items()}
            return Visitor(who, "", permits, by_token=True)
        session = self._state.door.session(request.cookies.get(self._state.cookie, ""))
        return Visitor() if session is None else Visitor(session.who, session.form_token, self._permits(session.who))

    def _permits(self, who: str) -> Mapping[str, frozenset[str]]:
        team: Accounts | None = self._state.team
        return {ALL: EVERYTHING} if team is None else team.permits(who)


def refused_early(path: str, status: int, words: str) -> Response:
    """A refusal before any route: for programs as problem details, for people as a line."""
    if path.startswith("/api/"):
        return plain_problem(status, words)
    return PlainTextResponse(f"{words}\n", status)


def plain_problem(status: int, words: str) -> Response:
    """Problem details (RFC 9457) of what has no code of its own."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": words}
    return JSONResponse({**content, "faults": []}, status, HEADERS, "application/problem+json")


def _with_headers(send: Send) -> Send:
    async def telling(message: Any) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            wanted = {**HEADERS, "Content-Security-Policy": POLICY}
            more = [
                (name.lower().encode(), value.encode())
                for name, value in wanted.items()
                if name.lower().encode() not in present
            ]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return telling


CLOSED = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Reveil</title>
<link rel="stylesheet" href="/static/console.css"></head><body><main class="lone">
<h1>This console is not open to you</h1>
<p>Open it with the link that <code>reveil serve</code> printed in its terminal. A link lets somebody in once; for a new
one, press Enter in that terminal, or start <code>reveil serve</code> again.</p></main></body></html>"""


def create_app(
    place: Place,
    door: Door,
    hosts: tuple[str, ...],
    who: str,
    team: Accounts | None = None,
    *,
    secure: bool = False,
    queue: Queue | None = None,
) -> FastAPI:
    """The console of one person (`who`) in one folder, or that of a team. `secure`: a proxy gives it TLS."""
    place.lay_out()
    place.forget_old()
    overview, queue = Overview(place), queue or Queue(place)
    queue.after = lambda series: overview.refresh(series) if place.there(series) else None
    queue.settle()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        overview.begin()
        queue.begin()
        yield
        overview.end()
        queue.close()

    app = FastAPI(title="Reveil", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.place, app.state.queue, app.state.door = place, queue, door
    app.state.overview = overview
    app.state.kept = door.kept = Kept(place.state / "kept.sqlite")
    app.state.drafts, app.state.log = Drafts(place), Log(place.state / "log.jsonl")
    app.state.who, app.state.team, app.state.cookie = who, team, SECURE_COOKIE if secure else COOKIE
    _add_routes(app)
    app.add_exception_handler(ReveilError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _nowhere)
    app.add_exception_handler(Exception, _unexpected)
    app.add_middleware(Once, state=app.state)
    app.add_middleware(Guard, state=app.state, hosts=hosts)
    return app


def _add_routes(app: FastAPI) -> None:
    from reveil.serve import (
        alone,
        api,
        attacking,
        common,
        growing,
        promising,
        proposing,
        publishing,
        team,
        tokens,
        wizard,
        years,
    )

    of_series = (publishing, proposing, attacking, years)
    for module in (common, wizard, growing, promising, alone, team, *of_series, tokens, api):
        app.include_router(module.router)
    for name, kind in (("console.css", "text/css"), ("console.js", "text/javascript")):
        app.add_api_route(f"/static/{name}", _static(name, kind), include_in_schema=False)


def _static(name: str, kind: str) -> Callable[[], Response]:
    content = files("reveil.serve").joinpath("static", name).read_bytes()
    return lambda: Response(content, media_type=kind, headers={"Cache-Control": "max-age=300"})


def status_of(error: ReveilError) -> int:
    """What a refusal is over HTTP."""
    if any(fault.code == "R840" for fault in error.faults):
        return 404
    if any(fault.code == "R845" for fault in error.faults):
        return 403
    if any(fault.code == "R853" for fault in error.faults):
        return 429
    if any(fault.code == "R846" for fault in error.faults):
        return 413
    return 409 if isinstance(error, ConflictError) else 422


async def _invalid(request: Request, error: Exception) -> Response:
    """Parameters that are missing or of another kind."""
    assert isinstance(error, RequestValidationError)
    where = {".".join(str(part) for part in one["loc"]): str(one["msg"]) for one in error.errors()}
    remedy = "see /openapi.json"
    return await _refused(request, InputError(Fault("R860", name[:80], said, remedy) for name, said in where.items()))


async def _nowhere(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/api/"):
        return plain_problem(error.status_code, str(error.detail))
    return PlainTextResponse(f"{error.detail}\n", error.status_code, headers=error.headers)


async def _unexpected(request: Request, _: Exception) -> Response:
    """A bug: its traceback goes to the terminal of the console, and nothing of it to the visitor."""
    return refused_early(request.url.path, 500, "This should not have happened; the console's terminal says more.")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ReveilError)
    if request.url.path.startswith("/api/"):
        from reveil.serve.api import problem

        return problem(error, status_of(error))
    notes = list(getattr(error, "__notes__", []))
    return page(
        request,
        "refused",
        status=status_of(error),
        title=error.title,
        faults=[fault.to_dict() for fault in error.faults],
        notes=notes,
    )
