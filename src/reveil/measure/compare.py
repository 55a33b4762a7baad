"""Generalisation schemes side by side: what each would lose, withhold and take, on the same table and promise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from html import escape
from typing import Any

from reveil.background.loading import Background
from reveil.base.doubts import accepted
from reveil.base.errors import Fault, InfeasibleError, InputError, stop_if
from reveil.base.progress import CancelledError, Limited, Progress, silent
from reveil.base.words import some
from reveil.guarantees.catalog import descriptors
from reveil.history.history import History
from reveil.jobs.input import usable
from reveil.plan.loss import loss_of
from reveil.plan.methods import method
from reveil.policy.method import GLOBAL_SCHEMES, SCHEMES, MethodSection, scheme_faults
from reveil.policy.people import people_faults
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.table.encode import encode
from reveil.table.where import Where

COMPARED = (*SCHEMES[:3], "mondrian", SCHEMES[3])
SMALL = 200  # rows of a first run, so that compiling is not measured
SECONDS = 60.0  # that each scheme may take


@dataclass(frozen=True)
class Trial:
    """What one scheme would do; `refused` says why it cannot, and then the figures are empty."""

    scheme: str
    loss: float | None = None  # mean NCP per cell
    columns: Mapping[str, float] | None = None
    withheld: int | None = None  # rows
    groups: int | None = None
    seconds: float | None = None  # planning only
    processor_seconds: float | None = None
    refused: str | None = None


@dataclass(frozen=True, repr=False)
class Comparison:
    """One trial per scheme, in the order from the coarsest to the finest form."""

    rows: int
    trials: tuple[Trial, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "trials": [asdict(trial) for trial in self.trials]}

    @property
    def best(self) -> Trial | None:
        """The trial that loses least."""
        done = [trial for trial in self.trials if trial.loss is not None]
        return min(done, key=lambda trial: trial.loss or 0.0, default=None)

    def table(self) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
        """A header and a line per scheme."""
        header = ("scheme", "NCP", "withheld", "groups", "seconds", "")
        lines: list[tuple[object, ...]] = []
        for t in self.trials:
            if t.refused is not None:
                lines.append((t.scheme, "", "", "", "", t.refused))
            else:
                seconds = "" if t.seconds is None else f"{t.seconds:.2f}"
                lines.append((t.scheme, f"{t.loss:.4f}", f"{t.withheld:,}", f"{t.groups:,}", seconds, ""))
        return header, lines

    def __repr__(self) -> str:
        shown = ", ".join(f"{t.scheme} {'refused' if t.loss is None else format(t.loss, '.4f')}" for t in self.trials)
        return f"<Comparison of {some(self.rows, 'row')}, mean NCP: {shown}>"

    def _repr_html_(self) -> str:
        header, lines = self.table()
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in line) + "</tr>" for line in lines)
        return f"<table><tr>{head}</tr>{body}</table>"


def compare(
    table: Any,
    policy: PolicyLike,
    *,
    schemes: Sequence[str] = COMPARED,
    seed: int = 0,
    progress: Progress = silent,
    accept: Sequence[str] = (),
    where: Where | None = None,
    seconds: float = SECONDS,
) -> Comparison:
    """Plan one table with several schemes. Nothing is written, and a series is not looked at.

    The policy gives everything but the scheme. Only single-release promises can be compared. A scheme that has found
    nothing after so many `seconds` is stopped, which its trial says.

    >>> import polars as pl
    >>> jobs = {"artist": ["dancer", "writer"], "professional": ["engineer", "lawyer"]}
    >>> columns = {"job": {"role": "quasi", "hierarchy": jobs}}
    >>> people = pl.DataFrame({"job": ["dancer"] * 3 + ["writer"] * 3 + ["engineer", "lawyer", "lawyer"]})
    >>> compare(people, {"columns": columns, "guarantee": {"k": 3}}, schemes=["full-domain", "subtree"])
    <Comparison of 9 rows, mean NCP: full-domain 0.3333, subtree 0.1111>
    """
    loaded = load_policy(policy)
    _refuse(loaded, schemes, seconds)
    _, frame, bench = usable(table, loaded, History(), False, seed, accepted(accept), where)
    trials: list[Trial] = []
    for place, scheme in enumerate(schemes):
        within = partial(_within, progress, f"planning: {scheme}{_so_far(trials)}", place, len(schemes))
        within("", 0.0)
        chosen = _with_scheme(loaded, scheme)
        faults = scheme_faults(chosen.method, chosen.guarantee) + people_faults(chosen)
        if faults:
            trials.append(Trial(scheme, refused="; ".join(faults)))
            continue
        with suppress(InfeasibleError, InputError):  # the few rows may not keep the promise; the whole table may
            _plan(frame.head(SMALL), chosen, bench.known, seed, silent)
        limited = Limited(seconds, within)
        try:
            trials.append(_plan(frame, chosen, bench.known, seed, limited))
        except InfeasibleError as error:
            trials.append(Trial(scheme, refused=error.faults[0].message))
        except CancelledError:
            if not limited.passed:
                raise
            trials.append(Trial(scheme, refused=f"stopped after {seconds:g} s (more: --seconds)"))
    return Comparison(frame.height, tuple(trials))


def _within(progress: Progress, stage: str, place: int, schemes: int, _: str, done: float) -> None:
    """How far one scheme is, as a part of all of them."""
    progress(stage, (place + done) / schemes)


def _so_far(trials: Sequence[Trial]) -> str:
    known = [f"{trial.scheme} {trial.loss:.4f}" for trial in trials if trial.loss is not None]
    return f" (NCP so far: {', '.join(known)})" if known else ""


def _refuse(policy: Policy, schemes: Sequence[str], seconds: float) -> None:
    faults = []
    if not seconds > 0:
        faults.append(Fault("R790", "seconds", f"{seconds:g} is no time to plan in", "give a number above 0"))
    if policy.guarantee.series or policy.guarantee.priors or policy.method.two_tables:
        message = f'schemes generalise one table, and the policy asks for "{policy.guarantee.model}"'
        if policy.method.two_tables:
            message = "schemes generalise one table, and the policy publishes two (anatomy)"
        planned = [one for one in descriptors().values() if one.condition is not None]
        keys = [one.asked_by[0] for one in planned if one.kept_by is None or GLOBAL_SCHEMES[0] in one.kept_by]
        remedy = f"compare under {', '.join(keys[:-1])} or {keys[-1]}, generalised"
        faults.append(Fault("R790", "guarantee", message, remedy))
    if limited := [
        name for name, spec in policy.columns.items() if spec.lowest is not None or spec.highest is not None
    ]:
        message = "schemes without levels know no lowest and highest ones"
        faults.append(Fault("R790", f"column {limited[0]!r}", message, "leave these limits out to compare"))
    known = f"use: {', '.join(COMPARED)}"
    faults += [Fault("R790", "schemes", f"{name!r} is no scheme", known) for name in schemes if name not in COMPARED]
    stop_if(faults)


def _with_scheme(policy: Policy, scheme: str) -> Policy:
    """The policy with another scheme; keys of [method] that only one scheme knows stay with that scheme."""
    only = {"cuts": "mondrian", "loss": "full-domain"}
    given = {name: getattr(policy.method, name) for name in policy.method.model_fields_set - {"name"}}
    kept = {name: value for name, value in given.items() if only.get(name, scheme) == scheme}
    return policy.model_copy(update={"method": MethodSection.model_validate({**kept, "name": scheme})})


def _plan(frame: Any, policy: Policy, background: Background, seed: int, progress: Progress) -> Trial:
    # Only Mondrian cuts the people of a population beside the rows; the others cover the table alone.
    people = background.population if policy.method.name == "mondrian" else None
    encoded = encode(frame, policy, background=replace(background, population=people))
    begin, used = time.perf_counter(), time.process_time()
    plan = method(policy)(encoded, History(), policy, seed=seed, progress=progress)
    seconds, processor = time.perf_counter() - begin, time.process_time() - used
    loss = loss_of(encoded, plan, policy)
    return Trial(
        policy.method.name, loss.mean, dict(loss.columns), plan.withheld, plan.count, seconds, processor, refused=None
    )
