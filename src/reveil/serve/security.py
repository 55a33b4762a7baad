"""Who may come in: the link that is used once, sessions, tokens in forms, hosts, and what a browser may load."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

LINK_SECONDS = 15 * 60
TOUCH_SECONDS = 60  # how exactly it is kept when somebody was last here
IDLE_SECONDS, LONGEST_SECONDS = 12 * 3600, 24 * 3600
COOKIE, SECURE_COOKIE = "reveil_session", "__Host-reveil"  # behind a proxy with TLS, the second
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A report is one file with its own styles and no scripts: it may be framed by us, and do nothing.
REPORT = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; base-uri 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class Session:
    """Somebody who came in; only a hash of the secret is kept."""

    who: str
    form_token: str
    begun: float
    seen: float


class Sessions(Protocol):
    """Where sessions are kept when the console ends."""

    def begin(self, secret: str, session: Session) -> None: ...
    def session(self, secret: str) -> Session | None: ...
    def touch(self, secret: str, seen: float) -> None: ...
    def leave(self, secret: str) -> None: ...
    def shut_out(self, who: str) -> None: ...


@dataclass
class Door:
    """Links, in the memory of the console's process, and sessions, which survive it where they are `kept`."""

    links: dict[str, tuple[float, str, str]] = field(default_factory=dict)  # until when, for whom, for what
    sessions: dict[str, Session] = field(default_factory=dict)
    kept: Sessions | None = None

    def link(self, who: str = "", what: str = "enter") -> str:
        """A secret that is good for one thing, once, within a quarter of an hour."""
        secret = secrets.token_urlsafe(32)
        self.links[hashed(secret)] = (time.monotonic() + LINK_SECONDS, who, what)
        return secret

    def known(self, secret: str, what: str) -> str | None:
        """For whom a link is, if it is still good for this."""
        until, who, good_for = self.links.get(hashed(secret), (0.0, "", ""))
        return who if good_for == what and time.monotonic() <= until else None

    def take(self, secret: str, what: str) -> str | None:
        """The same, and the link is used up."""
        who = self.known(secret, what)
        self.links.pop(hashed(secret), None)
        return who

    def begin(self, who: str) -> str:
        """The secret of a new session."""
        key, now = secrets.token_urlsafe(32), time.time()
        session = Session(who, secrets.token_urlsafe(32), now, now)
        self._drop(lambda one: _over(one, now))
        self.sessions[hashed(key)] = session
        if self.kept is not None:
            self.kept.begin(key, session)
        return key

    def session(self, secret: str) -> Session | None:
        """Who this is; nobody where the session is over."""
        session, now = self.sessions.get(hashed(secret)), time.time()
        if session is None and secret and self.kept is not None and (session := self.kept.session(secret)):
            self.sessions[hashed(secret)] = session  # of a console that ran before this one
        if session is None:
            return None
        if _over(session, now):
            self.leave(secret)
            return None
        if self.kept is not None and now - session.seen > TOUCH_SECONDS:
            self.kept.touch(secret, now)
        if self.kept is None or now - session.seen > TOUCH_SECONDS:
            session.seen = now
        return session

    def leave(self, secret: str) -> None:
        """End a session."""
        self.sessions.pop(hashed(secret), None)
        if self.kept is not None:
            self.kept.leave(secret)

    def shut_out(self, who: str) -> None:
        """End all sessions and tokens of somebody, such as those of a thief when the password is a new one."""
        if self.kept is not None:
            self.kept.shut_out(who)
        self._drop(lambda one: one.who == who)

    def _drop(self, unwanted: Callable[[Session], bool]) -> None:
        for key in [key for key, one in list(self.sessions.items()) if unwanted(one)]:  # while others come in
            self.sessions.pop(key, None)


def _over(session: Session, now: float) -> bool:
    return now - session.seen > IDLE_SECONDS or now - session.begun > LONGEST_SECONDS


def hashed(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def same(given: str, wanted: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def foreign(method: str, site: str | None, origin: str | None, own: str) -> bool:
    """Whether a request that changes something was made by a page of somebody else.

    >>> foreign("POST", "same-origin", None, "http://127.0.0.1:8000"), foreign("POST", "cross-site", None, "")
    (False, True)
    >>> foreign("POST", None, "http://evil.example", "http://127.0.0.1:8000")
    True
    """
    if method in ("GET", "HEAD"):
        return False
    if site is not None:  # browsers say it themselves, and pages cannot; with no-referrer the origin is "null"
        return site not in ("same-origin", "none")
    return origin is not None and origin != own
