"""The audit explorer: the adversary by questions, one attack as a job, and who is exposed and why."""

from __future__ import annotations

import shlex
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from reveil.base.errors import Fault, InputError
from reveil.serve.forms import form_of, text
from reveil.serve.place import unknown
from reveil.serve.publishing import framed, state_of
from reveil.serve.view import go, page, same_thing
from reveil.serve.visitors import insist, insist_on_own

router = APIRouter(include_in_schema=False)
CHANGES = {"": "as the policy says", "never": "never", "freely": "freely"}
LONGEST = 20_000  # letters of a list of people
BEGIN = {"share": "0", "limit": 30.0}
IN_ADDRESS = ("share", "change", "promise", "limit")  # nobody's name stands in an address


@router.get("/series/{key}/audit")
def audit_page(request: Request, key: str, job: str = "") -> Response:
    """Attack the series: who is exposed, and why. The address says which attack is shown, or what is asked for."""
    insist(request, "audit", key)
    found = state_of(request, key)
    queue = request.app.state.queue
    mine = [one for one in queue.jobs(key) if one["job"].get("job") == "audit"]
    asked = {name: request.query_params[name] for name in IN_ADDRESS if name in request.query_params}
    shown = queue.job(job) if job else queue.job(mine[0]["id"]) if mine and not asked else None
    if shown and (shown.get("series") != key or shown["job"].get("job") != "audit"):
        raise unknown("job", job)
    settings = {**BEGIN, **_settings(asked)} if asked else shown["job"]["settings"] if shown else BEGIN
    description = {"job": "audit", "policy": str(found.folder / "reveil.toml"), "settings": settings}
    elsewhere = same_thing(description, found.folder, f"reveil audit {words_of(settings)}")
    told: dict[str, Any] = {"series": found, "shown": shown, "settings": settings, "earlier": mine[:10]}
    told |= {"CHANGES": CHANGES, "odds": _odds_as_lines(settings)}
    return page(request, "audit", elsewhere=elsewhere, **told)


def words_of(settings: dict[str, Any]) -> str:
    """The same attack as options of the command line.

    >>> words_of({"share": "0.1", "people": ["Ann Lee", "Bob"], "priors": {"Ann Lee": {"flu": "1"}}})
    "--share 0.1 --people 'Ann Lee' --people Bob --adversary FILE   # with [priors]"
    """
    words = []
    for name, value in settings.items():
        if name != "priors":
            values = value if isinstance(value, list) else [value]
            words += [f"--{name} {shlex.quote(str(one))}" for one in values]
    return " ".join(words) + (" --adversary FILE   # with [priors]" if "priors" in settings else "")


@router.post("/series/{key}/audit")
async def audit(request: Request, key: str) -> Response:
    """Ask for an attack."""
    who = insist(request, "audit", key)
    form = await form_of(request)
    folder = request.app.state.place.home(key)
    settings = BEGIN | _settings({name: text(form, name) for name in IN_ADDRESS}) | _people(form)
    job = {"job": "audit", "policy": str(folder / "reveil.toml"), "settings": settings}
    asked = request.app.state.queue.ask(job, "Attacking the series", who, series=key)
    request.app.state.log.note(who, "audited", key, job=asked)
    return go(f"/series/{key}/audit?job={asked}")


def _settings(given: dict[str, str]) -> dict[str, Any]:
    """What is said of the adversary without naming anybody; the audit itself checks what it can be."""
    if given.get("change", "") not in CHANGES:
        message = f"{given['change'][:40]!r} is not an answer"
        raise InputError(Fault("R732", "change", message, "choose one of those that are shown"))
    settings: dict[str, Any] = {name: value for name, value in given.items() if value}
    if "limit" in settings:
        settings["limit"] = _seconds(str(settings["limit"]))
    return settings


def _people(form: FormData) -> dict[str, Any]:
    """Whom it is about, who is known, and what is likely beforehand."""
    settings: dict[str, Any] = {}
    for name in ("people", "compromised"):
        lines = text(form, name)[:LONGEST].replace(",", "\n").splitlines()
        if names := [line.strip() for line in lines if line.strip()]:
            settings[name] = names
    if priors := _odds(text(form, "priors")[:LONGEST]):
        settings["priors"] = priors
    return settings


def _odds(given: str) -> dict[str, dict[str, str]]:
    """Lines of person; value; weight.

    >>> _odds("Ann; flu; 3\\nAnn; gout; 1/2")
    {'Ann': {'flu': '3', 'gout': '1/2'}}
    """
    priors: dict[str, dict[str, str]] = {}
    for number, line in enumerate(given.splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(";")]
        if len(parts) != 3 or not all(parts):
            message = f"line {number} is not: person; value; weight"
            raise InputError(Fault("R732", "priors", message, "write one line for each person and value"))
        priors.setdefault(parts[0], {})[parts[1]] = parts[2]
    return priors


def _odds_as_lines(settings: dict[str, Any]) -> str:
    return "\n".join(
        f"{person}; {value}; {weight}"
        for person, odds in settings.get("priors", {}).items()
        for value, weight in odds.items()
    )


def _seconds(given: str) -> float:
    try:
        return min(600.0, max(1.0, float(given)))
    except ValueError:
        raise InputError(Fault("R732", "limit", f"{given!r} is no number", "write seconds, such as 30")) from None


@router.get("/jobs/{token}/report.html")
def audit_report(request: Request, token: str) -> Response:
    """The pictures of an audit: the chain of inference for whoever is exposed."""
    who = insist_on_own(request, request.app.state.queue.job(token), "job", "data")
    request.app.state.log.note(who, "saw audit", f"job {token}")
    return framed(request.app.state.queue.folder(token) / "report.html")
