"""The second half of the wizard: the promise by questions, settings side by side, and the policy that is written."""

from __future__ import annotations

import shutil
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from reveil.base.errors import Fault, InputError, stop_if
from reveil.policy.policy import load_policy
from reveil.policy.promise import promise_text
from reveil.report.toml_text import toml_text
from reveil.serve.drafts import (
    ANSWERS,
    CHANGES,
    FORMS,
    GUESSES,
    KNOWN,
    RARE,
    is_alone,
    policy_of,
    refuse_columns,
    settings_of,
)
from reveil.serve.forms import form_of, text, texts
from reveil.serve.place import Place, now
from reveil.serve.publishing import ask_to_propose
from reveil.serve.view import go, page
from reveil.serve.visitors import insist
from reveil.serve.wizard import STEPS, looked, own_draft
from reveil.start.promises import values_in_a_group

router = APIRouter(include_in_schema=False)

# --- promise -----------------------------------------------------------------------------------------------


@router.get("/drafts/{token}/promise")
def promise(request: Request, token: str) -> Response:
    """The fourth step: what is promised, by questions."""
    insist(request, "data")
    draft = own_draft(request, token)
    if is_alone(draft, looked(request, draft)):
        return go(f"/drafts/{token}/alone")
    all_sensitive = [name for name, column in draft["columns"].items() if column["role"] == "sensitive"]
    sensitive = all_sensitive[0] if all_sensitive else ""
    columns = looked(request, draft)["columns"]
    bars: list[Any] = next((one["bars"] for one in columns if one["column"] == sensitive), [])
    # Ranges of numbers are no values; of several columns each has harmless values of its own.
    named = len(all_sensitive) == 1 and draft["columns"][sensitive].get("kind") == "text"
    rows = looked(request, draft)["rows"]
    share = max((one["top_share"] for one in columns if one["column"] in all_sensitive), default=None)
    answers = {**ANSWERS, "m": _suggested(rows, share), **draft.get("promise", {})}
    said, faults = promised({**draft, "promise": answers})
    told: dict[str, Any] = {
        "CHANGES": CHANGES,
        "GUESSES": GUESSES,
        "KNOWN": KNOWN,
        "RARE": RARE,
        "bars": bars,
        "rows": rows,
        "share": share,
        "named": named,
    }
    told |= {"answers": answers, "said": said, "faults": faults, "sensitive": " and ".join(all_sensitive)}
    return page(request, "promise", step=4, steps=STEPS, draft=draft, **told)


def _suggested(rows: int, share: float | None) -> str:
    """How sure a guess may be, as `reveil init` suggests it for this table: one person known, and one value fewer."""
    m = values_in_a_group(rows, round(rows * (share or 0.0)))
    return str(min(max(m - 1, 2), max(map(int, GUESSES))))


def promised(draft: dict[str, Any]) -> tuple[str, list[dict[str, object]]]:
    """The promise in one sentence, or what contradicts itself in it."""
    try:
        return promise_text(load_policy(policy_of(_without_files(draft)))), []
    except InputError as error:
        return "", [fault.to_dict() for fault in error.faults]


def _without_files(draft: dict[str, Any]) -> dict[str, Any]:
    """The draft as far as it can be judged without reading files."""
    columns = {name: {**column, "hierarchy": None} for name, column in draft["columns"].items()}
    return {**draft, "columns": columns}


@router.post("/drafts/{token}/promise")
async def set_promise(request: Request, token: str) -> Response:
    """Take the answers; show what follows, or go on."""
    insist(request, "steward")
    draft = own_draft(request, token)
    form = await form_of(request)
    before = draft.get("promise", {})
    given = {name: text(form, name) for name in ("change", "m", "known", "k", "rare") if text(form, name)}
    _refuse_strange(given)
    draft["promise"] = {**before, **given, "harmless": texts(form, "harmless"), "form": before.get("form", "boxes")}
    draft.pop("settings", None)
    request.app.state.drafts.save(draft)
    _, faults = promised(draft)
    stay = bool(faults) or text(form, "act") == "show"
    return go(f"/drafts/{token}/promise" if stay else f"/drafts/{token}/compare")


def _refuse_strange(given: dict[str, str]) -> None:
    allowed = {"change": CHANGES, "m": GUESSES, "known": KNOWN, "rare": RARE}
    faults = [
        Fault("R201", name, f"{given[name]!r} is not an answer", "choose one of those that are shown")
        for name, answers in allowed.items()
        if name in given and given[name] not in answers
    ]
    if "k" in given and not (given["k"].isdecimal() and 2 <= int(given["k"]) <= 10_000):
        faults.append(Fault("R201", "k", f"{given['k']!r} is no number from 2 to 10,000", "write a number such as 5"))
    stop_if(faults)


# --- compare -----------------------------------------------------------------------------------------------


@router.get("/drafts/{token}/compare")
def compare(request: Request, token: str, again: bool = False) -> Response:
    """The fifth step: the same people under several settings."""
    who = insist(request, "data")
    state = request.app.state
    draft = own_draft(request, token)
    settings = settings_of(draft)
    kept = draft.get("settings")
    found = None if kept is None or again else state.queue.job(kept)
    if found is None or found["state"] in ("lost", "cancelled"):
        _, path = state.place.upload(draft["upload"])
        job: dict[str, Any] = {"job": "settings", "table": str(path), "folder": str(path.parent)}
        job |= {
            "accept": draft["accept"],
            "settings": [{k: s[k] for k in ("key", "title", "policy")} for s in settings],
        }
        here = f"/drafts/{token}/compare"
        draft["settings"] = state.queue.ask(job, "Comparing settings", who, draft=token, then=here)
        state.drafts.save(draft)
        return go(f"/jobs/{draft['settings']}")
    if found["state"] != "succeeded":
        return go(f"/jobs/{kept}?stay=true")
    chosen = draft.get("chosen") or draft.get("promise", {}).get("form", "boxes")
    told = {"tried": found["result"]["settings"], "chosen": chosen, "FORMS": FORMS}
    meta, _ = state.place.upload(draft["upload"])
    elsewhere = (("Command line", f"reveil plan {meta['name']}"),)
    return page(request, "compare", step=5, steps=STEPS, draft=draft, elsewhere=elsewhere, **told)


@router.post("/drafts/{token}/compare")
async def choose(request: Request, token: str) -> Response:
    """Take one of the settings."""
    insist(request, "steward")
    draft = own_draft(request, token)
    form = await form_of(request)
    wanted = text(form, "setting")
    setting = next((one for one in settings_of(draft) if one["key"] == wanted), None)
    if setting is None:
        raise InputError(Fault("R201", "setting", "none was chosen", "choose one of those that are shown"))
    draft["promise"], draft["chosen"] = setting["promise"], wanted
    request.app.state.drafts.save(draft)
    return go(f"/drafts/{token}/save")


# --- save --------------------------------------------------------------------------------------------------


@router.get("/drafts/{token}/save")
def save_page(request: Request, token: str) -> Response:
    """The last step: the policy as it will be written, fixed from the first release on."""
    insist(request, "data")
    draft = own_draft(request, token)
    said, faults = promised(draft)
    policy = toml_text(policy_of(draft))
    return page(request, "save", step=6, steps=STEPS, draft=draft, policy=policy, said=said, faults=faults)


@router.post("/drafts/{token}/save")
async def save(request: Request, token: str) -> Response:
    """Write the policy into a folder of its own, and make the first release from the table that is there."""
    who = insist(request, "steward")
    state = request.app.state
    draft = own_draft(request, token)
    await form_of(request)
    refuse_columns(draft)
    sections = policy_of(draft)
    place: Place = state.place
    uploads = place.entry("uploads", draft["upload"])
    load_policy({**sections, "folder": uploads})  # refused before anything is written
    folder = place.new_series(draft["name"])
    for path in uploads.glob("hierarchy-*.csv"):
        shutil.copy(path, folder / path.name)
    heading = f"# Written by the console of Reveil on {now()[:10]} for {who}.\n\n"
    (folder / "reveil.toml").write_text(heading + toml_text(sections) + "\n", encoding="utf-8")
    state.drafts.forget(token)
    if state.team is not None:
        state.team.grant(who, folder.name, "steward", by="console")
    state.log.note(who, "began series", folder.name)
    return go(f"/jobs/{ask_to_propose(request, folder.name, draft['upload'], who, draft['accept'])}")


@router.post("/drafts/{token}/delete")
async def delete(request: Request, token: str) -> Response:
    """Give a draft up, and its table with it."""
    who = insist(request, "steward")
    draft = own_draft(request, token)
    await form_of(request)
    request.app.state.drafts.forget(token)
    request.app.state.place.forget_upload(draft["upload"])
    request.app.state.log.note(who, "deleted draft", token)
    return go("/")
