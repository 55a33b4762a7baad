"""A proposal: what it would publish, what it costs, how it differs from the last release; and the word that is said."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from reveil.ledger.approval import Approval
from reveil.ledger.proposals import WAITING
from reveil.serve.forms import form_of, text
from reveil.serve.place import unknown
from reveil.serve.publishing import REPORTS, framed, state_of
from reveil.serve.state import SeriesState, contents, differences, find_proposal, ledger_of
from reveil.serve.team import insist_on_password
from reveil.serve.view import go, page, same_thing
from reveil.serve.visitors import insist

router = APIRouter(include_in_schema=False)


def approval_of(found: SeriesState) -> Approval:
    """What can be done with the proposals of a series, under its policy."""
    return ledger_of(found).approval


@router.get("/series/{key}/proposals/{token}")
def proposal(request: Request, key: str, token: str) -> Response:
    """Everything that somebody needs to decide."""
    who = insist(request, "data", key)
    found = state_of(request, key)
    one, state = find_proposal(found, token)
    waiting = state in WAITING
    request.app.state.log.note(who, "saw proposal", key, proposal=token)
    last = next((release for release in found.releases if release["number"] < one.number), None)
    lines = differences(one.facts["counts"], one.facts["loss"]["mean_ncp"], last)
    job = {"job": "accept", "policy": str(found.folder / "reveil.toml"), "token": token}
    elsewhere = same_thing(job, found.folder, f"reveil accept {token}\n# or: reveil withdraw {token}")
    files = contents(approval_of(found).folder(one)) if waiting else {"certificate": {}, "plan": {}, "tables": []}
    attempts = sum(other.on == one.on for other, _ in found.proposals)
    told: dict[str, Any] = {
        "series": found,
        "proposal": one,
        "state": str(state),
        "waiting": waiting,
        "steps": found.steps(one),
    }
    makers = {step["by"] for step in found.steps(one) if step["action"] in ("proposed", "submitted")}
    return page(
        request, "proposal", elsewhere=elsewhere, lines=lines, attempts=attempts, makers=makers, **told, **files
    )


@router.get("/series/{key}/proposals/{token}/{which}.html")
def report(request: Request, key: str, token: str, which: str) -> Response:
    """A report of what is proposed, in a frame that may do nothing."""
    who = insist(request, "data", key)
    if which not in REPORTS:
        raise unknown("report", which)
    found = state_of(request, key)
    one, _ = find_proposal(found, token)
    request.app.state.log.note(who, f"saw {which}", key, proposal=token)
    return framed(approval_of(found).folder(one) / "private" / REPORTS[which])


def tables_of(request: Request, key: str, token: str) -> list[str]:
    """The table that a proposal was made from: it is deleted when the proposal is recorded or withdrawn."""
    queue = request.app.state.queue
    made = [one for one in queue.jobs(key) if one["job"].get("job") == "propose" and one["state"] == "succeeded"]
    told = [(one.get("upload"), queue.job(one["id"]).get("result") or {}) for one in made]
    return [str(upload) for upload, result in told if upload and result.get("proposal") == token]


@router.post("/series/{key}/proposals/{token}/accept")
async def accept(request: Request, key: str, token: str) -> Response:
    """Record and reveal exactly what was looked at, in a process of its own."""
    who = insist(request, "steward", key)
    form = await form_of(request)
    await insist_on_password(request, who, str(form.get("password", "")))
    found = state_of(request, key)
    one, _ = find_proposal(found, token)
    job = {"job": "accept", "policy": str(found.folder / "reveil.toml"), "token": token}
    spent = tables_of(request, key, token)
    asked = request.app.state.queue.ask(
        job,
        f"Recording release {one.number}",
        who,
        series=key,
        spent=spent,
        then=f"/series/{key}/releases/{one.number}",
        elsewhere=same_thing(job, found.folder, f"reveil accept {token}"),
    )
    request.app.state.log.note(who, "accepted", key, proposal=token)
    return go(f"/jobs/{asked}")


@router.post("/series/{key}/proposals/{token}/{act}")
async def step(request: Request, key: str, token: str, act: str) -> Response:
    """Submit, sign, return or withdraw. The ledger checks who may, in the transaction that notes it."""
    who = insist(request, "sign" if act in ("sign", "return") else "steward", key)
    form = await form_of(request)
    if act == "sign":
        await insist_on_password(request, who, str(form.get("password", "")))
    found = state_of(request, key)
    find_proposal(found, token)
    approval, note = approval_of(found), text(form, "note")[:2000]
    steps = {
        "submit": lambda: approval.submit(token, who, note),
        "sign": lambda: approval.sign(token, who, note),
        "return": lambda: approval.give_back(token, who, note),
        "withdraw": lambda: approval.withdraw(token, who, note),
    }
    if act not in steps:
        raise unknown("step", act)
    await run_in_threadpool(steps[act])
    for upload in tables_of(request, key, token) if act == "withdraw" else ():
        request.app.state.place.forget_upload(upload)
    request.app.state.log.note(who, act, key, proposal=token)
    return go(f"/series/{key}" if act == "withdraw" else f"/series/{key}/proposals/{token}")
