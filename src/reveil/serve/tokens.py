"""The page of one's own tokens, with which programs act over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from reveil.serve.forms import form_of, text, texts
from reveil.serve.kept import SCOPES
from reveil.serve.place import unknown
from reveil.serve.view import go, page

router = APIRouter(include_in_schema=False)
WORDS = {
    "see": "series, releases, certificates",
    "data": "reports with values, and one's own jobs",
    "steward": "upload, propose, withdraw",
    "audit": "audit",
    "log": "the log",
}
DAYS = (7, 30, 90, 365)


@router.get("/tokens")
def tokens_page(request: Request) -> Response:
    """One's own tokens, without their secrets."""
    return _shown(request, "")


def _shown(request: Request, secret: str) -> Response:
    listed = request.app.state.kept.tokens(request.scope["console"].who)
    for one in listed:
        for name in ("made", "until", "used"):
            one[name] = datetime.fromtimestamp(one[name], UTC).isoformat() if one[name] else ""
    scopes = {scope: WORDS[scope] for scope in SCOPES}
    told: dict[str, Any] = {"tokens": listed, "secret": secret, "scopes": scopes, "days": DAYS}
    address = f"{request.base_url}api/v1/series"
    example = f"curl -H 'Authorization: Bearer SECRET' {address}"
    make = f"curl -X POST '{request.base_url}api/v1/tokens?name=nightly&scopes=see&days=30'   # in a session"
    return page(request, "tokens", elsewhere=(("HTTP", f"{example}\n{make}"),), **told)


@router.post("/tokens")
async def make(request: Request) -> Response:
    """A new token; its secret is on this page and nowhere else."""
    form, who = await form_of(request), str(request.scope["console"].who)
    days = text(form, "days")
    lasting = int(days) if days in map(str, DAYS) else 0
    kept, name, scopes = request.app.state.kept, text(form, "name"), texts(form, "scope")
    secret, made = await run_in_threadpool(kept.make_token, who, name, scopes, lasting)
    request.app.state.log.note(who, "made a token", made["id"], scopes=made["scopes"], days=lasting)
    return await run_in_threadpool(_shown, request, secret)


@router.post("/tokens/{token}/end")
async def end(request: Request, token: str) -> Response:
    """End one of one's own tokens."""
    await form_of(request)
    who = str(request.scope["console"].who)
    if not await run_in_threadpool(request.app.state.kept.end_token, who, token):
        raise unknown("token", token)
    request.app.state.log.note(who, "ended a token", token)
    return go("/tokens")
