"""The page on which the tree of a column is looked at and edited, part of the wizard's third step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from reveil.base.errors import Fault, InputError
from reveil.serve import trees
from reveil.serve.drafts import column_spec, set_way
from reveil.serve.forms import form_of, text, texts
from reveil.serve.place import unknown
from reveil.serve.trees import Tree
from reveil.serve.view import go, page
from reveil.serve.visitors import insist
from reveil.serve.wizard import STEPS, looked_table, own_draft, short_job

router = APIRouter(include_in_schema=False)
MOST = 1000  # different values that a page shows


def _column(draft: dict[str, Any], number: int) -> tuple[str, dict[str, Any]]:
    """A column of texts that others may know, by its place."""
    listed: list[tuple[str, dict[str, Any]]] = list(draft["columns"].items())
    if number >= len(listed) or listed[number][1]["role"] != "quasi" or listed[number][1]["kind"] != "text":
        raise unknown("tree", str(number))
    name, column = listed[number]
    return name, column


def _file(request: Request, draft: dict[str, Any], number: int, column: dict[str, Any]) -> Path:
    name = column.get("hierarchy") or f"hierarchy-{number}.csv"
    return Path(request.app.state.place.entry("uploads", draft["upload"])) / str(name)


def _rows(request: Request, draft: dict[str, Any], name: str) -> dict[str, int]:
    """How many rows each value has."""
    job = {"job": "values", "table": looked_table(request, draft), "column": name, "most": MOST}
    found = short_job(request, job, "Counting")
    if "values" not in found:
        message = f"has {found.get('distinct', 'too many')} different values, and {MOST} are shown here"
        remedy = "send a hierarchy file, or take first characters"
        raise InputError(Fault("R303", f"tree of column {name!r}", message, remedy))
    return dict(found["values"])


def _whole(tree: Tree, rows: dict[str, int]) -> Tree:
    """The tree with every value of the table; those that it did not have are at the top."""
    return {**tree, **{value: () for value in rows if value not in tree}}


@router.get("/drafts/{token}/tree/{number}")
def tree_page(request: Request, token: str, number: int) -> Response:
    """The tree of a column: groups and values with their rows, what is in no group, and what each level shows."""
    who = insist(request, "data")
    draft = own_draft(request, token)
    name, column = _column(draft, number)
    file, rows = _file(request, draft, number, column), _rows(request, draft, name)
    kept = trees.load(name, file)
    tree = _whole(kept, rows)
    request.app.state.log.note(who, "saw values", f"draft {token}")
    told: dict[str, Any] = {
        "name": name,
        "number": number,
        "nodes": trees.nodes(tree, rows),
        "groups": sorted(trees.groups_of(tree)),
        "new": [value for value in rows if value not in kept] if kept else [],
        "alone": sum(not groups for groups in tree.values()),
        "values": len(tree),
        "levels": _levels(request, draft, name, column) if kept and len(kept) == len(tree) else [],
    }
    return page(request, "tree", step=3, steps=STEPS, draft=draft, **told)


def _levels(request: Request, draft: dict[str, Any], name: str, column: dict[str, Any]) -> list[dict[str, Any]]:
    folder = str(request.app.state.place.entry("uploads", draft["upload"]))
    job = {"job": "levels", "table": looked_table(request, draft), "columns": {name: column_spec(column)}}
    found = short_job(request, {**job, "folder": folder}, "Generalising")
    levels: list[dict[str, Any]] = found.get(name, {}).get("levels", [])
    return levels


@router.post("/drafts/{token}/tree/{number}")
async def edit_tree(request: Request, token: str, number: int) -> Response:
    """Put under a group, take out, rename, add or remove; what comes of it is written at once."""
    insist(request, "steward")
    draft = own_draft(request, token)
    name, column = _column(draft, number)
    form = await form_of(request)
    file = _file(request, draft, number, column)
    rows = await run_in_threadpool(_rows, request, draft, name)
    tree = _edited(name, _whole(await run_in_threadpool(trees.load, name, file), rows), rows, form)
    await run_in_threadpool(trees.save, name, file, tree)
    set_way(column, name, "hierarchy", "")
    column["hierarchy"], column["type"] = file.name, "category"
    request.app.state.drafts.save(draft)
    return go(f"/drafts/{token}/tree/{number}")


def _edited(name: str, tree: Tree, rows: dict[str, int], form: FormData) -> Tree:
    act, group = text(form, "act"), text(form, "group")
    ticked = [_path(name, one) for one in texts(form, "node")]
    if act == "put":
        return trees.put_under(name, tree, ticked, group)
    if act == "out":
        return trees.take_out(name, tree, ticked)
    if act == "rename":
        return trees.rename(name, tree, ticked, group)
    if act == "remove":
        return trees.remove(name, tree, ticked, rows)
    lines = [line.strip() for line in str(form.get("more", "")).splitlines() if line.strip()]
    return trees.add_values(name, tree, lines[:MOST])


def _path(name: str, given: str) -> tuple[str, ...]:
    try:
        path = json.loads(given)
    except ValueError:
        path = None
    if not isinstance(path, list) or not path or not all(isinstance(label, str) for label in path):
        raise InputError(Fault("R303", f"tree of column {name!r}", "what was ticked is no node", "reload the page"))
    return tuple(path)
