"""Tables in which people have several rows, or live together: one release by itself, and no series of them.

All rows of a person (or of a household) are published together, and what is promised is about people. There is no
ledger: what is kept is the policy, the release in its two halves, and who has it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from reveil.base.doubts import DOUBTS
from reveil.base.errors import Fault, InputError
from reveil.guarantees import k_anonymity, l_diversity
from reveil.policy.policy import load_policy
from reveil.policy.promise import promise_text
from reveil.report.toml_text import toml_text
from reveil.serve.drafts import column_spec
from reveil.serve.forms import form_of, text, texts
from reveil.serve.place import now, read, unknown, write_atomically
from reveil.serve.publishing import REPORTS, framed
from reveil.serve.security import HEADERS
from reveil.serve.state import contents, packed
from reveil.serve.view import go, page, same_thing
from reveil.serve.visitors import insist, insist_on_own
from reveil.serve.wizard import STEPS, looked, own_draft

router = APIRouter(include_in_schema=False)
ANSWERS: Mapping[str, str] = {"k": "5", "l": "2", "most": ""}
LARGEST = 10_000  # of a number that is written


def policy_of(draft: Mapping[str, Any], answers: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The policy that follows from the answers, section by section."""
    roles = {column["role"] for column in draft["columns"].values()}
    mixed = answers["l"] != "1" and "sensitive" in roles
    guarantee: dict[str, Any] = {"model": (l_diversity if mixed else k_anonymity).DESCRIPTOR.name}
    guarantee |= ({"l": int(answers["l"])} if mixed else {}) | {"k": int(answers["k"])}
    reading = {**draft.get("input", {}), **({"sheet": draft["sheet"]} if draft.get("sheet") else {})}
    people = {"rows": "many"} if "identifier" in roles else {}
    return {
        "series": {"name": draft["name"]},
        **({"input": reading} if reading else {}),
        "columns": {name: column_spec(column) for name, column in draft["columns"].items()},
        "guarantee": guarantee,
        "people": people | ({"most": int(answers["most"])} if answers["most"] else {}),
        "method": {"infeasible": "refuse"},
    }


def answers_of(draft: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    """What was answered, or is suggested: values are not mixed where one stands with most people."""
    common = (found.get("several") or {}).get("common", [])
    sensitive = [name for name, column in draft["columns"].items() if column["role"] == "sensitive"]
    suggested = {**ANSWERS, "l": "1" if not sensitive or set(common) & set(sensitive) else "2"}
    return {**suggested, **draft.get("alone", {})}


def _said(sections: dict[str, dict[str, Any]], folder: Path) -> tuple[str, list[dict[str, object]]]:
    try:
        return promise_text(load_policy({**sections, "folder": folder})), []
    except InputError as error:
        return "", [fault.to_dict() for fault in error.faults]


@router.get("/drafts/{token}/alone")
def questions(request: Request, token: str) -> Response:
    """What is promised about one release, and the policy that follows."""
    insist(request, "data")
    draft = own_draft(request, token)
    found = looked(request, draft)
    answers = answers_of(draft, found)
    sections = policy_of(draft, answers)
    said, faults = _said(sections, request.app.state.place.entry("uploads", draft["upload"]))
    told: dict[str, Any] = {"answers": answers, "several": found.get("several"), "said": said, "faults": faults}
    told["sensitive"] = [name for name, column in draft["columns"].items() if column["role"] == "sensitive"]
    return page(request, "alone", step=4, steps=STEPS, draft=draft, policy=toml_text(sections), **told)


@router.post("/drafts/{token}/alone")
async def decide(request: Request, token: str) -> Response:
    """Take the answers; show what follows, or make the release."""
    who = insist(request, "steward")
    draft, place = own_draft(request, token), request.app.state.place
    form = await form_of(request)
    draft["alone"] = _answers(form)
    request.app.state.drafts.save(draft)
    sections = policy_of(draft, answers_of(draft, looked(request, draft)))
    uploads = place.entry("uploads", draft["upload"])
    if text(form, "act") == "show" or _said(sections, uploads)[1]:
        return go(f"/drafts/{token}/alone")
    made, folder = place.new_entry("alone")
    for path in uploads.glob("hierarchy-*.csv"):
        shutil.copy(path, folder / path.name)
    heading = f"# Written by the console of Reveil on {now()[:10]} for {who}.\n\n"
    (folder / "reveil.toml").write_text(heading + toml_text(sections) + "\n", encoding="utf-8")
    about = {"id": made, "name": draft["name"], "by": who, "at": now(), "upload": draft["upload"], "handed": []}
    write_atomically(folder / "about.json", about)
    request.app.state.drafts.forget(token)
    request.app.state.log.note(who, "asked for a release by itself", made)
    return go(f"/jobs/{_ask(request, about, who, draft['accept'])}")


def _answers(form: FormData) -> dict[str, str]:
    given = {name: text(form, name) for name in ANSWERS}
    for name, least in (("k", 2), ("l", 1), ("most", 1)):
        number = given[name]
        empty = name == "most" and not number
        if not empty and not (number.isdecimal() and least <= int(number[:6]) <= LARGEST):
            message = f"{number[:20]!r} is no number from {least} to {LARGEST:,}"
            raise InputError(Fault("R201", name, message, "write a number such as 5"))
    return given


def _ask(request: Request, about: dict[str, Any], who: str, accept: list[str]) -> str:
    """Ask for the release, in a process of its own; its table is deleted when it is there."""
    place = request.app.state.place
    folder = place.entry("alone", about["id"])
    meta, table = place.upload(about["upload"])
    job: dict[str, Any] = {"job": "anonymize", "table": str(table), "policy": str(folder / "reveil.toml")}
    job |= {"out": str(folder / "out")} | ({"accept": accept} if accept else {})
    command = f"reveil anonymize {table} --out out" + (f" --accept {','.join(accept)}" if accept else "")
    more: dict[str, Any] = {"shown": meta["name"], "spent": [about["upload"]], "then": f"/alone/{about['id']}"}
    more |= {"retry": f"/alone/{about['id']}/again", "elsewhere": same_thing(job, folder, command)}
    return str(request.app.state.queue.ask(job, f"A release of {about['name']} by itself", who, **more))


def own(request: Request, token: str, permit: str) -> tuple[dict[str, Any], Path]:
    """A release by itself, for whoever made it."""
    folder = request.app.state.place.entry("alone", token)
    about = read(folder / "about.json")
    if about is None:
        raise unknown("release", token)
    insist_on_own(request, about, "release", permit)
    return about, folder


@router.post("/alone/{token}/again")
async def again(request: Request, token: str) -> Response:
    """The same table, with what was doubted accepted."""
    who = insist(request, "steward")
    about, _ = own(request, token, "steward")
    form = await form_of(request)
    return go(f"/jobs/{_ask(request, about, who, [name for name in texts(form, 'accept') if name in DOUBTS])}")


@router.get("/alone/{token}")
def release(request: Request, token: str) -> Response:
    """What would be handed over, what was checked, and who has it."""
    who = insist(request, "data")
    about, folder = own(request, token, "data")
    if not (folder / "out" / "private").is_dir():
        raise unknown("release", token)
    request.app.state.log.note(who, "saw a release by itself", token)
    policy = (folder / "reveil.toml").read_text(encoding="utf-8")
    job = {"job": "anonymize", "table": "TABLE.csv", "policy": "reveil.toml", "out": "out"}
    elsewhere = same_thing(job, folder, "reveil anonymize TABLE.csv --out out\nreveil verify out/public")
    return page(request, "one", elsewhere=elsewhere, one=about, policy=policy, **contents(folder / "out"))


@router.get("/alone/{token}/{which}.html")
def report(request: Request, token: str, which: str) -> Response:
    """A report, in a frame that may do nothing."""
    who = insist(request, "data")
    _, folder = own(request, token, "data")
    if which not in REPORTS:
        raise unknown("report", which)
    request.app.state.log.note(who, f"saw {which}", token)
    return framed(folder / "out" / "private" / REPORTS[which])


@router.post("/alone/{token}/hand-over")
async def hand_over(request: Request, token: str) -> Response:
    """Note that others have it from now on, and give the files as one archive."""
    who = insist(request, "steward")
    about, folder = own(request, token, "steward")
    form = await form_of(request)
    recipient = text(form, "recipient")[:200]
    data = await run_in_threadpool(packed, folder / "out" / "public", f"release-{token}")
    about["handed"].append({"at": now(), "by": who, "recipient": recipient})
    write_atomically(folder / "about.json", about)
    request.app.state.log.note(who, "handed over", token, recipient=recipient)
    disposition = f'attachment; filename="release-{token}.zip"'
    return Response(data, media_type="application/zip", headers={**HEADERS, "Content-Disposition": disposition})


@router.post("/alone/{token}/delete")
async def delete(request: Request, token: str) -> Response:
    """Delete what is here of it; what others have stays with them."""
    who = insist(request, "steward")
    _, folder = own(request, token, "steward")
    await form_of(request)
    await run_in_threadpool(shutil.rmtree, folder)
    request.app.state.log.note(who, "deleted a release by itself", token)
    return go("/")
