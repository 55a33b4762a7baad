"""`Idempotency-Key`: a POST that is sent twice is done once. The key is kept for 24 hours with the request's hash.

Whoever may less now than when the request was sent is not given its answer: permits are part of the hash. Only a
refusal frees the key: after an error of the console nobody knows how much was done.
"""

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

        kept, visitor = self._state.kept, scope["console"]
        try:
            body = await _body(receive, key)
            permits = json.dumps({series: sorted(may) for series, may in visitor.permits.items()}, sort_keys=True)
            said = f"{scope['path']}?{scope['query_string'].decode('latin-1')}\n{permits}\n".encode() + body
            before = kept.ask(visitor.who, key, hashlib.sha256(said).hexdigest())
        except ReveilError as error:
            await problem(error, status_of(error))(scope, receive, send)
            return
        if before is not None:
            await _again(before, send)
            return
        await _keep(self._app, scope, body, send, kept, visitor.who, key)


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
                if told["status"] < 300:
                    kept.answer(who, key, Given(told["status"], json.dumps(told["headers"]), told["body"]))
                elif told["status"] < 500:
                    kept.free(who, key)
        await send(message)

    await app(scope, replay, listen)
