"""A category is a category, whatever it is called: `{x}`, `1-3`, `4*`, `>=1` are never read as sets or ranges.

Published, verified, read by the audit, linked and measured: a cell stands for the values that it was made from.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import reveil
from reveil.audit.input.series import observe_series, sources_of
from reveil.audit.input.tables import observe
from reveil.base.errors import InfeasibleError, InputError
from reveil.policy.policy import load_policy

LABELS = [
    "{x}", "{x,y}", "x", "y", "**", "4*", "47*", "47", "476", "[1-3]", "1-3", "1", "2", "3", "7", "7.0", "007", ">=1",
    "[1-3[", "[a-c]", "a", "b", "c", "2026", "2026-03", "2026-03-01", '"x"', "x,y", "{", "{}", '{"x"}',
    "-1", "1e2", "100",
]  # fmt: skip
SOME = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def cases(draw):
    """A kind of column, its values in order, its tree, and the values of some people."""
    leaves = draw(st.lists(st.sampled_from(LABELS), min_size=2, max_size=5, unique=True))
    kind, tree = draw(st.sampled_from(["flat", "sets", "order", "tree"])), None
    if kind == "tree":
        over = draw(
            st.lists(st.sampled_from([t for t in LABELS if t not in leaves]), min_size=2, max_size=2, unique=True)
        )
        half = 1 + draw(st.integers(0, len(leaves) - 2))
        tree = {over[0]: leaves[:half], over[1]: leaves[half:]}
    held = draw(st.lists(st.sampled_from(leaves), min_size=6, max_size=12))
    return kind, leaves, tree, held


def behind(kind, leaves, tree, values):
    """What the cell of a group with these values stands for."""
    if kind == "flat" and len(values) > 1:
        return set(leaves)
    if kind == "order":
        places = [leaves.index(value) for value in values]
        return set(leaves[min(places) : max(places) + 1])
    if kind == "tree" and len(values) > 1:
        return next((set(below) for below in tree.values() if values <= set(below)), set(leaves))
    return values


def policy_of(kind, leaves, tree):
    column = {"role": "quasi", "type": "category"}
    if kind == "order":
        column = {"role": "quasi", "order": leaves}
    if kind == "tree":
        column["hierarchy"] = tree
    columns = {"who": "identifier", "q": column, "ill": {"role": "sensitive", "type": "category"}}
    return {"columns": columns, "guarantee": {"k": 2}, "method": {"recode": "sets"} if kind == "sets" else {}}


def can_be_given_out(held, cells):
    """Whether everybody finds a row of a cell that their value is in, nobody two and no row twice."""
    rows = [place for place, (_, size) in enumerate(cells) for _ in range(size)]
    owner = [None] * len(rows)

    def give(person, tried):
        for row, place in enumerate(rows):
            if held[person] in cells[place][0] and row not in tried:
                tried.add(row)
                if owner[row] is None or give(owner[row], tried):
                    owner[row] = person
                    return True
        return False

    return all(give(person, set()) for person in range(len(held)))


def reached(held, cells):
    """The rows of all groups that each person may be in, where everybody must find a row."""
    totals = []
    for person, value in enumerate(held):
        others = [*held[:person], *held[person + 1 :]]
        totals.append(0)
        for place, (cell, size) in enumerate(cells):
            rest = [(c, n - (other == place)) for other, (c, n) in enumerate(cells)]
            totals[-1] += size * (value in cell and can_be_given_out(others, rest))
    return totals


@pytest.mark.parametrize("form", ["csv", "parquet"])
@SOME
@given(cases())
def test_a_cell_stands_for_what_it_was_made_from(form, case):
    kind, leaves, tree, held = case
    event(kind)
    table = pl.DataFrame(
        {"who": [f"p{n}" for n in range(len(held))], "q": held, "ill": [f"v{n % 3}" for n in range(len(held))]}
    )
    policy = policy_of(kind, leaves, tree) | {"output": {"format": form}}
    folder = Path(tempfile.mkdtemp())
    try:
        release = reveil.anonymize(table, policy, seed=1, out=folder / "out")
        groups = {}
        for value, group in zip(held, release.groups.tolist(), strict=True):
            groups.setdefault(group, []).append(value)
        cells = [(behind(kind, leaves, tree, set(values)), len(values)) for values in groups.values()]
        rows = [sum(size for cell, size in cells if value in cell) for value in held]
        listed = table.select("who", "q")
        assert reveil.link(release.path, listed, policy).people["rows"].to_list() == rows
        seen = observe([release.public], listed, policy=load_policy(policy), presence="known")
        reach = [
            int(seen.group_rows[seen.cand_group[a:b]].sum())
            for a, b in zip(seen.cand_start[:-1], seen.cand_start[1:], strict=True)
        ]
        wanted = dict(zip(table["who"], reached(held, cells), strict=True))
        assert dict(zip(seen.persons.gather(seen.app_person), reach, strict=True)) == wanted
        known = leaves if kind in ("tree", "order") else sorted(set(held))
        lost = sum((len(cell & set(known)) - 1) * size for cell, size in cells) / max(1, len(known) - 1) / len(held)
        assert reveil.measure(release.path, table, policy, queries=0).ncp["q"] == pytest.approx(lost)
    except InfeasibleError:
        event("infeasible")
    finally:
        shutil.rmtree(folder)


@SOME
@given(st.lists(st.sampled_from(LABELS), min_size=6, max_size=12), st.sampled_from(["csv", "parquet"]))
def test_values_of_a_series_are_what_is_written(held, form):
    """From publishing to verifying to the audit of our own series."""
    columns = {"who": "identifier", "age": "quasi", "ill": {"role": "sensitive", "type": "category"}}
    policy = {
        "columns": columns,
        "values": {"change": "never"},
        "guarantee": {"model": "m-invariance", "m": 2},
        "method": {"infeasible": "withhold"},
        "output": {"format": form},
    }
    table = pl.DataFrame({"who": [f"p{n}" for n in range(len(held))], "age": range(len(held)), "ill": held})
    folder = Path(tempfile.mkdtemp())
    try:
        series = reveil.open_series(policy, folder / "home")
        try:
            release = series.publish(table, seed=1)
        except InfeasibleError:  # of one value alone, nobody can be shown
            assert len(set(held)) == 1
            return
        shown = Counter(value for value, group in zip(held, release.groups, strict=True) if group >= 0)
        if not shown:
            return
        assert series.verify()[1].holds
        seen = observe_series(sources_of(series.ledger), "ill")
        counted = Counter()
        for value, count in zip(seen.cell_value, seen.cell_rows, strict=True):
            counted[seen.values[value]] += int(count)
        assert counted == shown
        found = series.audit(people=["p0"]).posterior
        assert set(found["value"]) <= set(held)
    finally:
        shutil.rmtree(folder)


def test_a_star_alone_cannot_be_told_from_any():
    """It is refused, and not published as something that it is not."""
    table = pl.DataFrame({"who": list("abcd"), "q": ["*", "*", "x", "x"], "ill": list("uvuv")})
    with pytest.raises(InputError, match=r"R304.*'\*'"):
        reveil.anonymize(table, policy_of("flat", ["*", "x"], None), seed=1)
