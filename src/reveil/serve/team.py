"""Pages of a team: signing in, people and their roles, four eyes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from reveil.base.errors import Fault, InputError
from reveil.serve.forms import form_of, text
from reveil.serve.people import ROLES, SHORTEST, Accounts
from reveil.serve.place import unknown
from reveil.serve.publishing import state_of
from reveil.serve.security import Door
from reveil.serve.state import ledger_of
from reveil.serve.view import go, let_in, page
from reveil.serve.visitors import ALL, insist

router = APIRouter(include_in_schema=False)


def people_of(request: Request) -> Accounts:
    """The accounts; a console for one person has none."""
    people: Accounts | None = request.app.state.team
    if people is None:
        raise unknown("page", request.url.path)
    return people


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


@router.get("/login")
def login_page(request: Request) -> Response:
    """Name and password."""
    people_of(request)
    return page(request, "login", wrong=False)


@router.post("/login")
async def login(request: Request) -> Response:
    """Let somebody in who knows their password."""
    people, form = people_of(request), await form_of(request, of_session=False)
    name = text(form, "name")[:60]
    if not await run_in_threadpool(people.check, name, str(form.get("password", "")), address_of(request)):
        request.app.state.log.note(name, "wrong password")
        return page(request, "login", status=401, wrong=True)
    return let_in(request, name)


@router.get("/welcome")
def welcome_page(request: Request, key: str = "") -> Response:
    """Where a new account gets its password."""
    people_of(request)
    door: Door = request.app.state.door
    who = door.known(key, "welcome")
    if who is None:
        raise InputError(Fault("R854", "link", "was used, or is too old", "ask an administrator for a new one"))
    return page(request, "welcome", key=key, name=who, shortest=SHORTEST)


@router.post("/welcome")
async def welcome(request: Request) -> Response:
    """Set the password; of the very first account, the name too."""
    people, form = people_of(request), await form_of(request, of_session=False)
    door: Door = request.app.state.door
    key, password = text(form, "key"), str(form.get("password", ""))
    who = door.known(key, "welcome")
    if who is None:
        raise InputError(Fault("R854", "link", "was used, or is too old", "ask an administrator for a new one"))
    if who:
        await run_in_threadpool(people.set_password, who, password)
        await run_in_threadpool(door.shut_out, who)
    else:
        who = text(form, "name")[:60]
        await run_in_threadpool(people.found, who, password)
    door.take(key, "welcome")
    request.app.state.log.note(who, "set password")
    return let_in(request, who)


@router.get("/people")
def people_page(request: Request) -> Response:
    """Everybody, and what they may."""
    insist(request, "admin")
    return _shown(request, people_of(request), "")


@router.post("/people")
async def add(request: Request) -> Response:
    """A new account, and the link with which its owner sets a password."""
    who, people = insist(request, "admin"), people_of(request)
    form = await form_of(request)
    name = text(form, "name")
    await run_in_threadpool(people.add, name)
    await run_in_threadpool(people.grant, name, _series(request, text(form, "series")), text(form, "role"), who)
    request.app.state.log.note(who, "added", name, role=text(form, "role"), series=text(form, "series"))
    return _with_link(request, people, name)


@router.post("/people/link")
async def new_link(request: Request) -> Response:
    """Another link for somebody who lost a password."""
    who, people = insist(request, "admin"), people_of(request)
    name = text(await form_of(request), "name")
    if name not in people.names():
        raise unknown("person", name)
    request.app.state.log.note(who, "made a link for", name)
    return _with_link(request, people, name)


def _with_link(request: Request, people: Accounts, name: str) -> Response:
    address = f"{request.base_url}welcome?key={request.app.state.door.link(name, 'welcome')}"
    return _shown(request, people, f"For {name}, once, within a quarter of an hour: {address}")


def _shown(request: Request, people: Accounts, link: str) -> Response:
    keys = request.app.state.place.series()
    listed = [(name, people.grants(name)) for name in people.names()]
    eyes = {key: state_of(request, key).four_eyes for key in keys}
    shown: dict[str, Any] = {"people": listed, "roles": list(ROLES), "keys": keys, "eyes": eyes}
    return page(request, "people", link=link, **shown)


@router.post("/people/grant")
async def grant(request: Request) -> Response:
    """Give a role, or take it away."""
    who, people = insist(request, "admin"), people_of(request)
    form = await form_of(request)
    given = (text(form, "name"), _series(request, text(form, "series")), text(form, "role"))
    act = people.revoke if text(form, "act") == "revoke" else people.grant
    await run_in_threadpool(act, *given, who)
    name, series, role = given
    request.app.state.log.note(who, "revoked" if act == people.revoke else "granted", name, role=role, series=series)
    return go("/people")


def _series(request: Request, key: str) -> str:
    if key != ALL and key not in request.app.state.place.series():
        raise unknown("series", key)
    return key


@router.post("/series/{key}/four-eyes")
async def four_eyes(request: Request, key: str) -> Response:
    """Every release needs a second person's signature from now on, or no longer does."""
    who, people = insist(request, "admin", key), people_of(request)
    on = text(await form_of(request), "on") == "yes"
    if on and not people.eligible(key):
        message = "needs an officer who signs and another person who is steward, and there are none"
        raise InputError(Fault("R855", "four eyes", message, "give the roles first, under People"))
    approval = ledger_of(state_of(request, key)).approval
    await run_in_threadpool(approval.require_four_eyes, on, who)
    request.app.state.log.note(who, "four eyes on" if on else "four eyes off", key)
    return go("/people")


async def insist_on_password(request: Request, who: str, given: str) -> None:
    """In a team, the password again before something is signed or revealed."""
    people: Accounts | None = request.app.state.team
    if people is None:
        return
    if not await run_in_threadpool(people.check, who, given, address_of(request)):
        raise InputError(Fault("R856", "password", "is not yours", "go back and write it again"))
