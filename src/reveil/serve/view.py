"""Pages: templates filled with plain values, and what every page has."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from fastapi.responses import HTMLResponse, RedirectResponse

from reveil.base.doubts import DOUBTS
from reveil.base.words import some
from reveil.serve.drafts import ROLES
from reveil.serve.security import HEADERS, SECURE_COOKIE

if TYPE_CHECKING:
    from starlette.requests import Request

Elsewhere = Sequence[tuple[str, str]]  # the same thing: where, and what to write there


@cache
def _templates() -> jinja2.Environment:
    rules = jinja2.Environment(
        loader=jinja2.PackageLoader("reveil.serve"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rules.filters |= {"figure": figure, "moment": moment, "percent": percent}
    rules.globals |= {"some": some, "ROLES": ROLES, "doubt_of": {code: name for name, code in DOUBTS.items()}}
    return rules


def figure(value: object) -> str:
    """A number as people read it.

    >>> figure(12345), figure(0.12345), figure(None), figure("-")
    ('12,345', '0.1235', '–', '-')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def percent(value: float, whole: float) -> str:
    """A share of a whole, as the width of a bar."""
    return f"{100 * value / whole:.1f}" if whole else "0"


def moment(text: object) -> str:
    """A time of day in UTC, to the minute."""
    return str(text or "")[:16].replace("T", " ")


def page(
    request: Request, template: str, *, elsewhere: Elsewhere = (), status: int = 200, **content: Any
) -> HTMLResponse:
    """A page, filled."""
    state = request.scope["console"]
    series = content.get("series")
    common = {
        "who": state.who,
        "form_token": state.form_token,
        "elsewhere": [one for one in elsewhere or drawer(request, template) if one[1]],
        "here": request.url.path,
        "team": request.app.state.team is not None,
        "may": state.may(getattr(series, "key", "")),
        "allowed": state.may,
    }
    text = _templates().get_template(f"{template}.html.j2").render(**common, **content)
    return HTMLResponse(text, status, headers=HEADERS)


POLICY_BY_HAND = (
    "reveil init TABLE.csv     # writes reveil.toml: edit it\nreveil plan TABLE.csv     # what it would cost"
)
SUGGESTED = 'import reveil\n\nprint(reveil.suggest("TABLE.csv"))'


def drawer(request: Request, template: str) -> Elsewhere:
    """The same thing elsewhere, for pages that are about no job of their own."""
    if template in ("coarser", "tree", "promise", "alone", "save"):
        return (("Command line", POLICY_BY_HAND), ("Python", SUGGESTED))
    if template == "jobs":
        return (("HTTP", f"curl -b cookies.txt {request.base_url}api/v1/jobs"),)
    if template == "log":
        return (("Command line", f"tail -f {shlex.quote(str(request.app.state.log.path))}"),)
    if template == "people":
        return (("Command line", "# accounts are kept here alone; the command line knows users of the machine"),)
    return ()


def go(where: str) -> RedirectResponse:
    """On to another page, after something was done."""
    return RedirectResponse(where, 303, headers=HEADERS)


def let_in(request: Request, who: str) -> RedirectResponse:
    """Begin a session, in a cookie that scripts cannot read and other sites do not send."""
    state = request.app.state
    answer, secure = go("/"), state.cookie == SECURE_COOKIE
    answer.set_cookie(state.cookie, state.door.begin(who), httponly=True, samesite="strict", path="/", secure=secure)
    state.log.note(who, "came in")
    return answer


def same_thing(job: Mapping[str, Any], folder: Path, command: str, api: str = "") -> Elsewhere:
    """How a job is done on the command line, in Python and over HTTP: made from its own description."""
    shown = {name: value for name, value in job.items() if name not in ("seed",)}
    python = f"from reveil.jobs.specs import load_spec\n\nload_spec({json.dumps(shown, indent=4)}).run()"
    for word, value in (("true", "True"), ("false", "False"), ("null", "None")):
        python = python.replace(f": {word}", f": {value}")
    return (
        ("Command line", f"cd {shlex.quote(str(folder))}\n{command}"),
        ("Python", python),
        ("HTTP", api),
    )
