"""What whoever signs a release should look at first: the release, not only the formula it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import polars as pl

from reveil.base.words import agree, some
from reveil.plan.loss import Loss
from reveil.policy.policy import Policy
from reveil.verify.certificate import Certificate

COARSE = 0.8  # loss from which a column says next to nothing
MANY_WITHHELD = Fraction(1, 20)
MOST_VALUES = 12  # of the group that is shown


@dataclass(frozen=True)
class Point:
    """One thing to look at; an amber one is no fault, and nothing to be content with."""

    text: str
    amber: bool = False


def judged(certificate: Certificate, policy: Policy, loss: Loss, *, internal: bool) -> tuple[Point, ...]:
    """The points in the order of what they mean for people; for others, without a value."""
    return (
        *_smallest(certificate, policy),
        *_unbounded(policy, internal=internal),
        *_too_coarse(policy, loss, internal=internal),
        *_withheld(certificate),
        *_attacked(policy, internal=internal),
    )


def _smallest(certificate: Certificate, policy: Policy) -> Iterator[Point]:
    counts = certificate.counts
    if policy.method.two_tables and not policy.method.boxed:
        yield Point("People are shown as they are: nobody is hidden among others.", amber=True)
    elif "smallest box" in counts:
        yield Point(f"The smallest group of people who look alike has {counts['smallest box']:,}.")
    else:
        one, many = ("row", "rows") if counts["counterfeit rows"] else ("person", "people")
        if policy.bundle is not None:
            one, many = policy.bundle, policy.bundled  # households, or people
        smallest = some(counts["smallest group"], one, many)
        also = ", counterfeits among them" if counts["counterfeit rows"] else ""
        yield Point(f"The smallest group that looks alike has {smallest}{also}.", amber=counts["smallest group"] < 2)


def _unbounded(policy: Policy, *, internal: bool) -> Iterator[Point]:
    """Values for which no bound is promised."""
    promise = policy.guarantee.headline
    for name in policy.named("sensitive"):
        harmless = policy.harmless(name)
        if harmless:
            which = f": {', '.join(harmless)}" if internal else f" ({len(harmless)})"
            yield Point(
                f"Of {name}, values are declared harmless, and no bound is promised for them{which}.", amber=True
            )
    protected = getattr(promise, "protect", None)
    if protected:
        which = f": {', '.join(protected)}" if internal else f" ({len(protected)})"
        yield Point(f"Only stated values are protected, and no other{which}.", amber=True)
    if not policy.named("sensitive"):
        yield Point("No column is sensitive: only being singled out is protected against.", amber=True)


def _too_coarse(policy: Policy, loss: Loss, *, internal: bool) -> Iterator[Point]:
    names = [name for name, lost in loss.columns.items() if lost > COARSE]
    if names:
        advice = " `reveil plan --advice` tries what would help." if internal and policy.promises_series else ""
        said = agree(len(names), "is", "are")
        yield Point(f"{', '.join(names)} {said} too coarse to use (more than {COARSE} lost).{advice}", amber=True)


def _withheld(certificate: Certificate) -> Iterator[Point]:
    withheld, rows = certificate.counts["withheld rows"], certificate.counts["input rows"]
    if withheld and rows:
        share = f"{withheld / rows:.1%}".replace("%", " %")
        yield Point(f"{some(withheld, 'row')} ({share}) not shown.", amber=Fraction(withheld, rows) > MANY_WITHHELD)


def _attacked(policy: Policy, *, internal: bool) -> Iterator[Point]:
    if policy.audit.gate:
        yield Point("The audit attacked the series with this release before it was recorded: nobody is exposed.")
    elif internal and policy.promises_series:
        yield Point("Not attacked before it was recorded: `reveil audit` does, or [audit] gate = true each time.")


class Origin(NamedTuple):
    """Where the input came from: a file with its hash, or what else was given."""

    name: str
    digest: str = ""


@dataclass(frozen=True)
class FewRows:
    """Some published rows, to see what others will see."""

    caption: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def few_rows(table: pl.DataFrame, values: Mapping[str, pl.DataFrame] | None, count: int = 5) -> tuple[FewRows, ...]:
    """The first rows as they are published, which are shuffled; of two tables also the values of their first group."""
    if table.is_empty():
        return ()
    shown = [_texts("People" if values else "Rows", table.head(count))]
    group = None if not values else table["group"][0]
    for name, counted in (values or {}).items():
        shown.append(
            _texts(f"Values of {name} in group {group}", counted.filter(pl.col("group") == group).head(MOST_VALUES))
        )
    return tuple(shown)


def _texts(caption: str, frame: pl.DataFrame) -> FewRows:
    rows = frame.select(pl.all().cast(pl.String).fill_null("")).rows()
    return FewRows(caption, tuple(frame.columns), tuple(rows))


def suppressed(table: pl.DataFrame, policy: Policy) -> dict[str, float]:
    """The share of `*` among the cells of each quasi-identifier."""
    texts = [n for n in policy.named("quasi") if n in table.columns and table.schema[n] == pl.String]
    return {name: float((table[name] == "*").mean() or 0.0) for name in texts} if table.height else {}  # type: ignore[arg-type]
