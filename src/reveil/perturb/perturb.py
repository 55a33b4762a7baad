"""The job of `reveil perturb`, in order: read -> roles -> steps -> emit (staged) -> check (the staged bytes) -> reveal.

A perturbed release stands alone: it has no series and no ledger. Publishing the same people again with new noise lets
anyone average it away, so the report says so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.doubts import accepted
from reveil.base.errors import Fault, GuaranteeError, InputError, stop_if
from reveil.base.lots import KEY_FILE, KeyLike, generator, key_for, secret_of
from reveil.base.progress import Progress, silent
from reveil.base.words import some
from reveil.ledger import store
from reveil.perturb.apply import apply, faults_of, unchanged
from reveil.perturb.checks import Made, check
from reveil.perturb.disclosure import WIDTHS, compare
from reveil.perturb.report import write_report
from reveil.perturb.steps import Recipe
from reveil.policy.policy import load_as
from reveil.published.format import PRIVATE, PUBLIC, TABLE
from reveil.table.roles import read_prepared
from reveil.table.where import Where
from reveil.verify.comparing import Check
from reveil.write.emit import emit
from reveil.write.folders import copy_release, make_halves

RecipeLike = str | Path | Mapping[str, Any] | Recipe
SHOWN = ("rows swapped", "algorithm", "number of groups", "largest group")  # of a step's details, in the report

NEAREST = f"within {WIDTHS[0]:.0%} of a deviation"
HARDLY = 0.9  # share of rows; more than that as good as unchanged is worth a warning


@dataclass(frozen=True, eq=False)
class Perturbed:
    """A perturbed table, what was checked in its bytes, and what it kept of the original."""

    table: pl.DataFrame  # as published
    checks: tuple[Check, ...]
    report: Mapping[str, Any]
    notes: tuple[str, ...]
    path: Path | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.table.height,
            "path": None if self.path is None else str(self.path),
            "checks": [item.to_dict() for item in self.checks],
            "notes": list(self.notes),
            **self.report,
        }

    def __repr__(self) -> str:
        right = self.report["record linkage"]["right links"]
        return (
            f"<Perturbed: {some(self.table.height, 'row')}, "
            f"{some(len(self.checks), 'check holds', 'checks hold')}, {right:.1%} linked by distance>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(c.name)}</td><td>{escape(c.finding)}</td></tr>" for c in self.checks)
        return f"<p>{escape(repr(self))}</p><table><tr><th>Check</th><th>Finding</th></tr>{rows}</table>"


def perturb(
    table: Any,
    policy: RecipeLike,
    *,
    seed: int | None = None,
    key: KeyLike | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
    accept: Sequence[str] = (),
    where: Where | None = None,
) -> Perturbed:
    """Publish a table with its values changed as the `[[perturb]]` steps of the policy say, checked from its bytes.

    `out` is a new or empty folder for the public and the private half; without it, nothing is left on disk. A release
    made with a `seed` keeps a key in its private half: seed and key together repeat it, and neither does so alone.
    `accept` names doubts about the table that are right as they are (`reveil.base.doubts`), `where` takes only the rows
    with these values.

    >>> people = pl.DataFrame({"name": list("abcdef"), "salary": [30, 31, 35, 60, 61, 65]})
    >>> columns = {"name": "identifier", "salary": "sensitive"}
    >>> step = {"method": "microaggregate", "columns": ["salary"], "k": 3}
    >>> perturb(people, {"columns": columns, "perturb": [step]}, seed=1).table["salary"].sort().to_list()
    [32, 32, 32, 62, 62, 62]
    """
    recipe = load_as(Recipe, policy)
    target = None if out is None else Path(out)
    if target is not None and target.exists():
        store.new_folder(target)  # an occupied folder is refused before any work
    progress("reading", 0.0)
    frame = _usable(table, recipe, seed, accepted(accept), where)
    own = key_for(seed, key)
    with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
        staged = Path(scratch)
        make_halves(staged)
        try:
            made = _make(frame, recipe, secret_of(own, seed), staged, progress)
            if seed is not None:
                (staged / PRIVATE / KEY_FILE).write_bytes(own)
            return made if target is None else replace(made, path=copy_release(staged, store.new_folder(target)))
        except OSError as error:
            raise store.refused_by_disk(error) from error


def _usable(table: Any, recipe: Recipe, seed: int | None, accept: Sequence[str], where: Where | None) -> pl.DataFrame:
    """The table, prepared; or every fault of table, steps and seed together."""
    faults: list[Fault] = []
    if seed is not None and seed < 0:
        faults.append(Fault("R222", "seed", f"{seed} is negative", "use 0 or a larger number, or none"))
    try:
        _, frame = read_prepared(table, recipe, accept=accept, where=where)
    except InputError as error:
        raise InputError([*faults, *error.faults]) from None
    stop_if(faults + faults_of(frame, recipe))
    return frame


def _make(frame: pl.DataFrame, recipe: Recipe, secret: int, staged: Path, progress: Progress) -> Perturbed:
    """Change, write, check the written bytes, and report."""
    changed, details = frame.select(recipe.published), []
    for number, step in enumerate(recipe.perturb):
        progress(step.method, number / len(recipe.perturb))
        done = apply(frame, step, recipe, generator(secret, number))
        changed = changed.with_columns(done.columns.values())
        details.append(done.details)
    stop_if(unchanged(frame, changed, recipe))
    order = generator(secret, len(details)).permutation(frame.height)
    table = changed[order]
    progress("writing", 0.0)
    emit({TABLE: table}, None, recipe, staged / PUBLIC)
    progress("checking", 0.0)
    checks = check(staged / PUBLIC, frame, recipe, Made(order, tuple(details)))
    _insist(checks)
    progress("reporting", 0.0)
    touched = [name for step in recipe.perturb for name in step.columns]
    steps = [
        {**step.model_dump(mode="json", exclude_unset=True), **{k: v for k, v in step_details.items() if k in SHOWN}}
        for step, step_details in zip(recipe.perturb, details, strict=True)
    ]
    figures = compare(frame.select(touched), changed.select(touched), generator(secret, len(details) + 1))
    made = Perturbed(table, tuple(checks), {"steps": steps, **figures}, notes_of(recipe, figures), None)
    write_report(staged / PRIVATE, made.to_dict(), recipe.series.name)
    return made


def _insist(checks: list[Check]) -> None:
    faults = [
        Fault("R605", item.name, f"not as promised: {item.finding}", "do not publish; report this as a bug of Reveil")
        for item in checks
        if not item.holds
    ]
    if faults:
        raise GuaranteeError(faults)


def notes_of(recipe: Recipe, figures: Mapping[str, Any]) -> tuple[str, ...]:
    """What whoever signs must know."""
    notes = ["Perturbation bounds nobody's belief: it promises what was checked above, and no more."]
    for near in figures["interval disclosure"]:
        if near.get(NEAREST, near["unchanged"]) >= HARDLY:
            within = f", {near[NEAREST]:.1%} within 1 % of a standard deviation" if NEAREST in near else ""
            notes.append(
                f"Hardly changed: {near['column']!r}. {near['unchanged']:.1%} of its rows are as they were{within}."
                " A stronger step changes more."
            )
    exact = [name for name in recipe.untouched if recipe.columns[name].role != "insensitive"]
    if exact:
        notes.append(f"Published exactly: {', '.join(exact)}. Whoever knows these finds the rows of a person by them.")
    if any(step.method in ("noise", "pram", "condense", "swap", "rank-swap") for step in recipe.perturb):
        notes.append("Publish it once. The same people perturbed anew can be averaged, and the noise vanishes.")
    notes.append(
        "Key and seed together undo everything. Where a seed was given, the key is in private/ and stays there."
    )
    return tuple(notes)
