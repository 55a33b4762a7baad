"""`Idempotency-Key`: a POST that is sent twice is done once. The key is kept for 24 hours with the request's hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from starlette.datastructures import State
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reveil.base.errors import Fault, InputError, ReveilError
from reveil.serve.kept import Given, Kept

LARGEST = 1_000_000  # bytes of a request that is kept apart by its hash
HEADERS = ("content-type", "location")  # that are given again
SECRET = "/api/v1/tokens"  # its answer is a secret, and is kept nowhere


class Once:
    """Around the routes of the API, behind the guard."""

    def __init__(self, app: ASGIApp, *, state: State) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        api = scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith("/api/")
        api = api and scope["path"] != SECRET
        key = Request(scope).headers.get("idempotency-key") if api else None
        if key is None:
            await self._app(scope, receive, send)
            return
        from reveil.serve.api import problem
        from reveil.serve.app import status_of

        kept, who = self._state.kept, scope["console"].who
        try:
            body = await _body(receive, key)
            said = f"{scope['path']}?{scope['query_string'].decode('latin-1')}\n".encode() + body
            before = kept.ask(who, key, hashlib.sha256(said).hexdigest())
        except ReveilError as error:
            await problem(error, status_of(error))(scope, receive, send)
            return
        if before is not None:
            await _again(before, send)
            return
        await _keep(self._app, scope, body, send, kept, who, key)


async def _body(receive: Receive, key: str) -> bytes:
    if not 1 <= len(key) <= 200:
        raise InputError(Fault("R858", "Idempotency-Key", "has more than 200 letters, or none", "use a short one"))
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
        if len(body) > LARGEST:
            raise InputError(Fault("R846", "request", "is too large for a key", "send it without one"))
    return body


async def _again(before: Given, send: Send) -> None:
    headers = [(name.encode(), value.encode()) for name, value in json.loads(before.headers).items()]
    headers.append((b"idempotency-replayed", b"true"))
    await send({"type": "http.response.start", "status": before.status, "headers": headers})
    await send({"type": "http.response.body", "body": before.body})


async def _keep(app: ASGIApp, scope: Scope, body: bytes, send: Send, kept: Kept, who: str, key: str) -> None:
    told: dict[str, Any] = {"status": 0, "headers": {}, "body": b""}
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def listen(message: Message) -> None:
        if message["type"] == "http.response.start":
            told["status"] = message["status"]
            given = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            told["headers"] = {name: given[name] for name in HEADERS if name in given}
        elif message["type"] == "http.response.body":
            told["body"] += message.get("body", b"")
            if not message.get("more_body", False):  # before anybody is told
                done = 200 <= told["status"] < 300
                answered = Given(told["status"], json.dumps(told["headers"]), told["body"])
                kept.answer(who, key, answered if done else None)
        await send(message)

    try:
        await app(scope, replay, listen)
    except BaseException:
        kept.answer(who, key, None)
        raise
