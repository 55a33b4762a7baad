"""Who asks, and what they may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import Request

from reveil.base.errors import Fault, InputError
from reveil.serve.place import unknown

ALL = "*"
EVERYTHING = frozenset({"see", "data", "steward", "sign", "audit", "log", "admin"})


@dataclass(frozen=True)
class Visitor:
    """Who asks, and what they may by series (or in all of them)."""

    who: str = ""
    form_token: str = ""
    permits: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_token: bool = False  # a program, which has no form and no cookie

    def may(self, key: str = "") -> frozenset[str]:
        """What is allowed in a series; without one, what is allowed anywhere."""
        if key:
            return self.permits.get(ALL, frozenset()) | self.permits.get(key, frozenset())
        return frozenset().union(*self.permits.values())


def insist(request: Request, permit: str, key: str = "") -> str:
    """Who asks, if they may. A series that somebody may not see is not there for them."""
    visitor: Visitor = request.scope["console"]
    allowed = visitor.may(key)
    if key and "see" not in allowed and "admin" not in allowed:
        raise unknown("series", key)
    if permit not in allowed:
        fault = Fault("R845", f"'{visitor.who}'", f"may not do this here ({permit})", "ask an administrator")
        raise InputError(fault)
    return visitor.who


def insist_on_own(request: Request, entry: Mapping[str, object], kind: str, permit: str) -> str:
    """Who asks, if a draft or a job is theirs, or they have this permit in its series. A token needs it for both."""
    visitor: Visitor = request.scope["console"]
    series = str(entry.get("series") or "")
    permitted = permit in visitor.may(series)
    shared = permitted if series else visitor.permits.get(ALL) == EVERYTHING
    own = entry.get("by") == visitor.who and (permitted or not visitor.by_token)
    if not own and not shared:
        raise unknown(kind, str(entry.get("id", "")))
    return visitor.who
