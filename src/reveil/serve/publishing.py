"""Pages of one series: its timeline, the next table, a release, and the audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from reveil.base.doubts import DOUBTS
from reveil.base.errors import Fault, InputError, TamperedError
from reveil.serve.forms import form_of, keep_upload, text, texts
from reveil.serve.place import unknown
from reveil.serve.security import HEADERS, REPORT
from reveil.serve.state import SeriesState, contents, find_release, ledger_of, packed, series_state
from reveil.serve.view import go, page, same_thing
from reveil.serve.visitors import insist, insist_on_own

router = APIRouter(include_in_schema=False)
REPORTS = {"report": "report.html", "external": "report-external.html"}


def state_of(request: Request, key: str) -> SeriesState:
    return series_state(request.app.state.place, key)


@router.get("/series/{key}")
def series(request: Request, key: str) -> Response:
    """The timeline of a series, and what can be done next."""
    insist(request, "see", key)
    found = state_of(request, key)
    job = {"job": "history", "policy": str(found.folder / "reveil.toml")}
    policy = (found.folder / "reveil.toml").read_text(encoding="utf-8")
    mine = request.app.state.queue.jobs(key)[:8]
    elsewhere = same_thing(job, found.folder, "reveil history", _curl(request, f"series/{key}"))
    return page(request, "series", elsewhere=elsewhere, series=found, policy=policy, jobs=mine)


def _curl(request: Request, path: str) -> str:
    return f"curl -b cookies.txt {request.base_url}api/v1/{path}"


@router.get("/series/{key}/publish")
def publish_page(request: Request, key: str) -> Response:
    """The next table."""
    insist(request, "steward", key)
    found = state_of(request, key)
    job = {"job": "propose", "table": "TABLE.csv", "policy": str(found.folder / "reveil.toml")}
    elsewhere = same_thing(job, found.folder, "reveil propose TABLE.csv", _curl(request, f"series/{key}"))
    return page(request, "publish", elsewhere=elsewhere, series=found)


@router.post("/series/{key}/publish")
async def publish(request: Request, key: str) -> Response:
    """Take the table, and make the next release of it, sealed: nothing is recorded before somebody has looked."""
    who = insist(request, "steward", key)
    form = await form_of(request)
    state = request.app.state
    state.place.home(key)
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise InputError(Fault("R848", "upload", "no file was chosen", "choose a file first"))
    meta = await keep_upload(state.place, file, who)
    state.log.note(who, "uploaded", f"upload {meta['id']}", series=key, bytes=meta["size"])
    return go(f"/jobs/{ask_to_propose(request, key, meta['id'], who, [])}")


@router.post("/series/{key}/propose/{upload}")
async def propose_again(request: Request, key: str, upload: str) -> Response:
    """The same table, with what was doubted accepted."""
    who = insist(request, "steward", key)
    form = await form_of(request)
    accept = [name for name in texts(form, "accept") if name in DOUBTS]
    new_people = text(form, "new_people") == "yes"
    return go(f"/jobs/{ask_to_propose(request, key, upload, who, accept, new_people=new_people)}")


def ask_to_propose(
    request: Request, key: str, upload: str, who: str, accept: list[str], *, new_people: bool = False
) -> str:
    """Ask for the next release, made and sealed."""
    state = request.app.state
    folder = state.place.home(key)
    meta, path = state.place.upload(upload)
    insist_on_own(request, meta, "upload", "steward")
    job: dict[str, Any] = {"job": "propose", "table": str(path), "policy": str(folder / "reveil.toml"), "by": who}
    job |= ({"accept": accept} if accept else {}) | ({"new_people": True} if new_people else {})
    command = f"reveil propose {path}" + (f" --accept {','.join(accept)}" if accept else "")
    command += " --yes-new-people" if new_people else ""
    plain = {name: value for name, value in job.items() if name != "by"}
    asked = state.queue.ask(
        job,
        f"Next release from {meta['name']}",
        who,
        series=key,
        upload=upload,
        shown=meta["name"],
        then=f"/series/{key}/proposals/{{proposal}}",
        retry=f"/series/{key}/propose/{upload}",
        elsewhere=same_thing(plain, folder, command),
    )
    state.log.note(who, "asked for a release", key, job=asked)
    return str(asked)


# --- a release ---------------------------------------------------------------------------------------------


def folder_of(found: SeriesState, number: int) -> Path:
    """Where the files of a release are."""
    return ledger_of(found).path(number)


@router.get("/series/{key}/releases/{number}")
def release(request: Request, key: str, number: int) -> Response:
    """A release: its certificate, who has it, and handing it over."""
    insist(request, "see", key)
    found = state_of(request, key)
    one = find_release(found, number)
    checks = [job for job in request.app.state.queue.jobs(key) if job.get("verify") == number]
    last = request.app.state.queue.job(checks[0]["id"]) if checks else None
    job = {"job": "show", "policy": str(found.folder / "reveil.toml"), "number": number}
    elsewhere = same_thing(
        job, found.folder, f"reveil show {number}", _curl(request, f"series/{key}/releases/{number}")
    )
    told: dict[str, Any] = {"series": found, "release": one, "handed": found.handed_over(one["id"]), "verified": last}
    newest = found.releases[0]["number"] == number
    files = contents(folder_of(found, number))
    return page(request, "release", elsewhere=elsewhere, newest=newest, **told, **files)


@router.get("/series/{key}/releases/{number}/{which}.html")
def report(request: Request, key: str, number: int, which: str) -> Response:
    """A report of a release, in a frame that may do nothing."""
    who = insist(request, "data" if which == "report" else "see", key)
    if which not in REPORTS:
        raise unknown("report", which)
    found = state_of(request, key)
    find_release(found, number)
    request.app.state.log.note(who, f"saw {which}", key, release=number)
    return framed(folder_of(found, number) / "private" / REPORTS[which])


def framed(path: Path) -> Response:
    """A page of another making: shown under a policy of its own."""
    if not path.is_file():
        raise unknown("report", path.name)
    return FileResponse(path, media_type="text/html", headers={**HEADERS, "Content-Security-Policy": REPORT})


@router.post("/series/{key}/releases/{number}/verify")
async def verify(request: Request, key: str, number: int) -> Response:
    """Check a release again, from its bytes."""
    who = insist(request, "see", key)
    await form_of(request)
    folder = request.app.state.place.home(key)
    job = {"job": "verify", "policy": str(folder / "reveil.toml"), "what": number}
    asked = request.app.state.queue.ask(
        job,
        f"Verifying release {number}",
        who,
        series=key,
        verify=number,
        then=f"/series/{key}/releases/{number}",
        elsewhere=same_thing(job, folder, f"reveil verify {number}"),
    )
    return go(f"/jobs/{asked}")


@router.post("/series/{key}/releases/{number}/hand-over")
async def hand_over(request: Request, key: str, number: int) -> Response:
    """Record that others have it from now on, and give the files as one archive."""
    who = insist(request, "steward", key)
    form = await form_of(request)
    found = state_of(request, key)
    find_release(found, number)
    data = await run_in_threadpool(_hand_over, found, number, text(form, "recipient")[:200], who)
    request.app.state.log.note(who, "handed over", key, release=number, recipient=text(form, "recipient")[:200])
    name = f"{key}-release-{number:04d}"
    disposition = f'attachment; filename="{name}.zip"'
    return Response(data, media_type="application/zip", headers={**HEADERS, "Content-Disposition": disposition})


def _hand_over(found: SeriesState, number: int, recipient: str, who: str) -> bytes:
    """It is recorded first: a copy that nobody knows of would be the worse accident."""
    ledger = ledger_of(found)
    ledger.settle()
    if faults := ledger.check([number]):
        raise TamperedError(faults)
    data = packed(ledger.path(number) / "public", f"{found.key}-release-{number:04d}")
    ledger.hand_over(number, {"recipient": recipient, "by": who} if recipient else {"by": who})
    return data


@router.post("/series/{key}/releases/{number}/discard")
async def discard(request: Request, key: str, number: int) -> Response:
    """Take back the newest release, which nobody has."""
    from reveil.jobs.specs import DiscardSpec

    who = insist(request, "steward", key)
    form = await form_of(request)
    folder = request.app.state.place.home(key)
    sure = text(form, "sure") == "yes"
    spec = DiscardSpec(folder / "reveil.toml", number, text(form, "reason")[:500], sure)
    await run_in_threadpool(spec.run)
    request.app.state.log.note(who, "discarded", key, release=number)
    return go(f"/series/{key}")
