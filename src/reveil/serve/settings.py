"""One table under several settings: what each promises, loses and withholds, and the same people under each."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import ReveilError
from reveil.base.progress import Progress
from reveil.base.text import plain_text
from reveil.cli.shared import load_kernels
from reveil.history.history import History
from reveil.jobs.draft import Draft
from reveil.jobs.forms import form_of
from reveil.policy.policy import load_policy
from reveil.policy.promise import promise_text
from reveil.write.recode import fake_codes

PEOPLE = 10  # shown under each setting
VALUES = 6  # of a group


def compare_settings(given: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Plan the table under each setting; one that cannot keep its promise says why."""
    load_kernels()
    found = []
    for number, setting in enumerate(given["settings"]):
        progress(f"trying: {setting['title']}", number / len(given["settings"]))
        found.append({"key": setting["key"], "title": setting["title"], **_tried(given, setting["policy"])})
    return {"settings": found}


def _tried(given: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    from reveil.publish import open_series

    try:
        policy = load_policy(content).model_copy(update={"folder": Path(given["folder"])})
        with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
            series = open_series(policy, Path(scratch) / "home")
            drafted = series.draft(given["table"], History(), 0, _silent, accept=tuple(given.get("accept", ())))
        form = form_of(drafted, chosen=True)
    except ReveilError as error:
        return {"refused": [fault.to_dict() for fault in error.faults]}
    return {
        "promise": promise_text(policy),
        "withheld": form.withheld,
        "counterfeits": form.counterfeits,
        "loss": form.loss,
        "columns": dict(drafted.loss.columns),
        "query_error": form.error,
        "rows": drafted.encoded.rows,
        "groups": drafted.plan.count,
        "people": people_of(drafted),
    }


def _silent(stage: str, done: float) -> None:
    """The stages of one setting are no progress of all."""


def people_of(d: Draft) -> dict[str, Any]:
    """The first people of the table, as put in and as they would be seen: their box, and the values of their group."""
    first = np.arange(min(PEOPLE, d.encoded.rows))
    exact = d.policy.method.two_tables and not d.policy.method.boxed
    share = d.plan.people if d.plan.people is not None else d.plan.groups
    lines = []
    for row in first.tolist():
        if d.plan.people_groups[row] < 0:
            lines.append({"cells": [], "values": "", "withheld": True})
            continue
        mates = np.flatnonzero(share == share[row])
        cells = [_cell(d, column, row, mates, exact) for column in range(len(d.encoded.quasi))]
        lines.append({"cells": cells, "values": _values(d, row), "withheld": False})
    quasi = [tree.name for tree in d.encoded.quasi]
    sensitive = [column.name for column in d.encoded.sensitive]
    before = d.frame.select(*quasi, *sensitive).head(len(first)).with_columns(pl.all().cast(pl.String))
    return {"columns": quasi, "sensitive": sensitive, "before": before.rows(), "after": lines}


def _cell(d: Draft, column: int, row: int, mates: Any, exact: bool) -> str:
    tree, positions = d.encoded.quasi[column], d.encoded.positions[:, column]
    if exact:
        value = d.frame[tree.name][row]
        return "" if value is None else plain_text(value)
    return tree.label(int(positions[mates].min()), int(positions[mates].max()))


def _values(d: Draft, row: int) -> str:
    """The different values that the group of a row shows, counterfeits among them."""
    group = d.plan.people_groups[row]
    if not d.encoded.sensitive:
        return ""
    fakes = fake_codes(d.plan, 0)[d.plan.counterfeit_groups == group]
    codes = {*d.encoded.codes[d.plan.groups == group, 0].tolist(), *fakes.tolist()}
    names = sorted(str(d.encoded.sensitive[0].values[code]) for code in codes)
    more = f" and {len(names) - VALUES} more" if len(names) > VALUES else ""
    return ", ".join(names[:VALUES]) + more
