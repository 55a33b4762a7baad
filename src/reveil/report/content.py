"""What a report says, gathered before anything is drawn. The external content never holds what must not be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup

from reveil.background.loading import Background
from reveil.base.errors import InputError
from reveil.guarantees.catalog import descriptors
from reveil.history.amended import CORRECTED
from reveil.history.history import History
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.report import discreet
from reveil.report.consequences import what_follows
from reveil.report.explain import explain
from reveil.report.exposure import Exposure, SizeCounts, exposure, exposure_by_size
from reveil.report.judgement import FewRows, Origin, Point, few_rows, judged, suppressed
from reveil.report.shapes import draw
from reveil.report.toml_text import toml_text
from reveil.verify.certificate import LINKABLE, Certificate
from reveil.verify.judges.contract import Verdict
from reveil.verify.verify import Verification

EXACT_PEOPLE = (
    "People are published with their quasi-identifiers as they are. Whoever knows these finds a person's row and sees "
    "that the person is in the table; only which value of the group is theirs stays open."
)
LONGEST_POLICY = 20_000  # characters of a policy that are printed; hierarchies inside a policy may be huge


@dataclass(frozen=True)
class Promise:
    """One thing that was promised, with what was found."""

    guarantee: str
    column: str | None
    plain: str
    exact: str
    holds: bool
    bound: str | None
    worst: str | None
    details: Markup


@dataclass(frozen=True)
class ColumnLine:
    """What was done to one column."""

    name: str
    role: str
    technique: str
    labels: int | None  # different published cells
    stars: float | None  # share of `*` among them
    weight: float | None
    loss: float | None


@dataclass(frozen=True)
class Trend:
    """The series so far, this release last."""

    releases: tuple[int, ...]
    rows: tuple[int, ...]
    groups: tuple[int, ...]
    counterfeits: tuple[int, ...]
    losses: tuple[float, ...]  # empty unless every release is known


@dataclass(frozen=True)
class Content:
    """Everything that one report says."""

    internal: bool
    certificate: Certificate
    made: str
    promises: tuple[Promise, ...]
    parameters: Mapping[str, str]
    points: tuple[Point, ...]  # what to look at first
    origin: Origin | None  # for the publisher
    examples: tuple[FewRows, ...]  # for the publisher
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]  # limits that come with this very promise
    limits: tuple[str, ...]
    left_out: int  # sentences that would have named a value
    reasons: tuple[tuple[str, int, str], ...]  # why rows were withheld, how many, and what follows
    columns: tuple[ColumnLine, ...]
    hidden_columns: int
    exposure: Exposure
    loss: Loss
    checks: tuple[Mapping[str, Any], ...]
    trend: Trend | None
    statistics: Markup
    method: str
    policy: str


@dataclass(frozen=True, eq=False)
class MergedFacts:
    """What is known of an input that never was in memory as a whole."""

    exact: Mapping[int, int]  # rows that share all exact quasi-identifiers -> how many such classes
    withheld: int
    texts: Mapping[str, pl.Series]  # by column of texts: its different values


@dataclass(frozen=True, eq=False)
class ReportSource:
    """What both reports are made from."""

    frame: pl.DataFrame  # the prepared input; without rows where facts of it are merged
    table: pl.DataFrame  # as published
    certificate: Certificate
    plan: Plan
    loss: Loss
    verification: Verification
    policy: Policy
    background: Background
    history: History
    losses: Mapping[int, float]
    made: str
    merged: MergedFacts | None = None
    values: Mapping[str, pl.DataFrame] | None = None  # of two tables
    origin: Origin | None = None

    @property
    def exposure(self) -> Exposure:
        verified, merged = self.verification, self.merged
        sizes = verified.boxes if self.policy.method.boxed else verified.sizes
        if merged is not None:
            after = SizeCounts.of(np.asarray(sizes, dtype=np.int64))
            return exposure_by_size(SizeCounts.counted(merged.exact), after, merged.withheld, self.policy)
        return exposure(self.frame, sizes, self.plan, self.policy, self.background.population)

    @cached_property
    def texts(self) -> set[str]:
        """The values of text columns that are quasi-identifiers or sensitive; all that a stated hierarchy has."""
        columns = {
            name: self.policy.columns[name] for role in ("quasi", "sensitive") for name in self.policy.named(role)
        }
        stated = [name for name, spec in columns.items() if spec.hierarchy is not None]
        known = {str(leaf) for name in stated for leaf in self.background.hierarchies[name].known}
        names = [name for name in columns if name not in stated and self.frame.schema[name] == pl.String]
        if self.merged is not None:
            return known | {value for name in names for value in self.merged.texts[name].drop_nulls()}
        distinct = self.frame.select(pl.col(names).drop_nulls().unique().implode())  # all columns at the same time
        return known | {value for name in names for value in distinct[name].item()}


def contents(source: ReportSource) -> tuple[Content, Content]:
    """The internal and the external content; what is costly is computed once."""
    exposed, trend = source.exposure, trend_of(source)
    return _internal(source, exposed, trend), _external(source, exposed, trend)


def _internal(source: ReportSource, exposed: Exposure, trend: Trend | None) -> Content:
    certificate, policy = source.certificate, source.policy
    warnings, limits = _sorted_limits(certificate.limits, policy)
    return Content(
        internal=True,
        certificate=certificate,
        made=source.made,
        promises=tuple(_finding(verdict) for verdict in source.verification.verdicts),
        parameters=discreet.parameters(policy, internal=True),
        points=judged(certificate, policy, source.loss, internal=True),
        origin=source.origin,
        examples=few_rows(source.table, source.values),
        assumptions=certificate.assumptions,
        warnings=warnings,
        limits=limits,
        left_out=0,
        reasons=what_follows(certificate.withheld),
        columns=_columns(source, tuple(policy.columns), internal=True),
        hidden_columns=0,
        exposure=exposed,
        loss=source.loss,
        checks=certificate.checks,
        trend=trend,
        statistics=draw(source.plan.statistics),
        method=source.plan.method,
        policy=policy_text(policy),
    )


def _external(source: ReportSource, exposed: Exposure, trend: Trend | None) -> Content:
    certificate, policy = source.certificate, source.policy
    raw = discreet.raw_values(source.texts, policy)
    names = discreet.public_columns(policy)
    assumptions, fewer = discreet.without_values(certificate.assumptions, raw, policy)
    told = [limit for limit in certificate.limits if CORRECTED not in limit]
    kept, less = discreet.without_values(told, raw, policy)
    warnings, limits = _sorted_limits(kept, policy)
    return Content(
        internal=False,
        certificate=certificate,
        made=source.made,
        promises=tuple(_general(verdict, policy) for verdict in source.verification.verdicts),
        parameters=discreet.parameters(policy, internal=False),
        points=judged(certificate, policy, source.loss, internal=False),
        origin=None,
        examples=(),
        assumptions=tuple(assumptions),
        warnings=warnings,
        limits=limits,
        left_out=fewer + less,
        reasons=(),
        columns=_columns(source, names, internal=False),
        hidden_columns=len(policy.columns) - len(names),
        exposure=exposed,
        loss=source.loss,
        checks=tuple({"name": check["name"], "holds": check["holds"]} for check in certificate.checks),
        trend=trend,
        statistics=Markup(""),
        method=source.plan.method,
        policy=toml_text(discreet.public_policy(policy, source.frame.schema)),
    )


def _finding(verdict: Verdict) -> Promise:
    """What the judge says about this release."""
    column = verdict.details.get("column")
    rest = {name: value for name, value in verdict.details.items() if name != "column"}
    return Promise(
        guarantee=verdict.guarantee,
        column=None if column is None else str(column),
        plain=verdict.plain,
        exact=_sentence(verdict.statement),
        holds=verdict.holds,
        bound=_quantity(verdict.bound),
        worst=_quantity(verdict.worst),
        details=draw(rest),
    )


def _general(verdict: Verdict, policy: Policy) -> Promise:
    """What the guarantee means in general, with the numbers of this release and no words of the judge."""
    column = verdict.details.get("column")
    try:
        entry = explain(verdict.guarantee)
        plain, exact = _one_line(entry.plain), _one_line(entry.exact)
    except InputError:
        known = descriptors().get(verdict.guarantee)
        plain = known.words if known else "See the documentation of Reveil for this guarantee."
        exact = "–"
    return Promise(
        guarantee=verdict.guarantee,
        column=column if column in discreet.public_columns(policy) else None,
        plain=plain,
        exact=exact,
        holds=verdict.holds,
        bound=_quantity(verdict.bound),
        worst=_quantity(verdict.worst),
        details=Markup(""),
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text[:1].upper()}{text[1:]}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quantity(value: Fraction | float | int | None) -> str | None:
    """
    >>> _quantity(Fraction(5)), _quantity(Fraction(1, 3)), _quantity(2.71828), _quantity(None)
    ('5', '1/3 (0.3333)', '2.7183', None)
    """
    if value is None:
        return None
    if isinstance(value, int) or (isinstance(value, Fraction) and value.denominator == 1):
        return f"{int(value):,}"
    if isinstance(value, Fraction) and value.denominator < 10_000:
        return f"{value} ({float(value):.4f})"
    return f"{float(value):.4f}"


def _sorted_limits(limits: Sequence[str], policy: Policy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that name the promised model come with this choice and are shown as warnings, as is linkability."""
    named = tuple(limit for limit in limits if policy.guarantee.model in limit or limit == LINKABLE)
    rest = tuple(limit for limit in limits if limit not in named)
    exact = policy.method.two_tables and not policy.method.boxed
    return (*named, EXACT_PEOPLE) if exact else named, rest


def _columns(source: ReportSource, names: Sequence[str], *, internal: bool) -> tuple[ColumnLine, ...]:
    policy, schema = source.policy, source.frame.schema
    labels, stars = source.verification.labels, suppressed(source.table, policy)
    lines = []
    for name in names:
        spec = policy.columns[name]
        lines.append(
            ColumnLine(
                name=name,
                role={"quasi": "quasi-identifier", "drop": "dropped"}.get(spec.role, spec.role),
                technique=discreet.technique(spec, schema.get(name), policy, internal=internal),
                labels=labels.get(name),
                stars=stars.get(name),
                weight=spec.weight if spec.role == "quasi" else None,
                loss=source.loss.columns.get(name),
            )
        )
    return tuple(lines)


def trend_of(source: ReportSource) -> Trend | None:
    """The releases before this one, from the history, and this one. None when there are none before."""
    number, sums = source.certificate.release, source.history.sums()
    if number is None or sums.is_empty():
        return None
    counts = source.certificate.counts
    releases = (*sums["release"].to_list(), number)
    losses = {**source.losses, number: source.loss.mean}
    return Trend(
        releases=releases,
        rows=(*sums["rows"].to_list(), counts["published rows"]),
        groups=(*sums["groups"].to_list(), counts["groups"]),
        counterfeits=(*sums["counterfeits"].to_list(), counts["counterfeit rows"]),
        losses=tuple(losses[n] for n in releases) if all(n in losses for n in releases) else (),
    )


def policy_text(policy: Policy) -> str:
    """The policy as TOML: what was stated, and how the plan was made. Long hierarchies are counted instead.

    >>> from reveil.policy.policy import load_policy
    >>> text = policy_text(load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 2}}))
    >>> text.splitlines()[:5]
    ['[columns]', 'age = "quasi"', '', '[guarantee]', 'k = 2']
    """
    stated = policy.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    stated["columns"] = {name: _column(spec) for name, spec in stated["columns"].items()}
    stated["guarantee"] = {n: _simple(policy.guarantee.stated[n], v) for n, v in stated["guarantee"].items()}
    stated["method"] = policy.method.model_dump(mode="json")
    text = toml_text(stated)
    if len(text) <= LONGEST_POLICY:
        return text
    stated["columns"] = {name: _shortened(spec) for name, spec in stated["columns"].items()}
    text = toml_text(stated)
    return text if len(text) <= LONGEST_POLICY else f"{text[:LONGEST_POLICY]} … (in full in certificate.json)"


def _simple(value: Any, written: Any) -> Any:
    """Whole numbers without quotes; other exact fractions stay text, as JSON has them."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else written


def _column(spec: Mapping[str, Any]) -> Any:
    return spec["role"] if set(spec) == {"role"} else spec


def _shortened(spec: Any) -> Any:
    """A column of the policy without its hierarchy or order, which may be long."""
    if isinstance(spec, str):
        return spec
    note = "in full in certificate.json"
    return {key: note if isinstance(value, (dict, list)) else value for key, value in spec.items()}
