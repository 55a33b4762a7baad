"""Verdicts as judges of one release give them: how many classes break a promise, and what the worst one is like."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.base.words import some
from reveil.verify.judges.contract import Verdict
from reveil.verify.judges.counts import Counts


def share_of_classes(bad: NDArray[np.bool_], one: str = "has", many: str = "have") -> str:
    """`1 of 2 classes has`, `3 of 10 classes have`."""
    count = int(bad.sum())
    return f"{count:,} of {some(len(bad), 'class', 'classes')} {one if count == 1 else many}"


def example(counts: Counts, place: int) -> dict[str, Any]:
    """The worst class, as small JSON values."""
    return {"class": int(counts.classes[place]), "class_rows": int(counts.sizes[place])}


def verdict(
    name: str,
    statement: str,
    plain: str,
    bad: NDArray[np.bool_],
    sizes: NDArray[Any],
    *,
    worst: Fraction | float,
    bound: Fraction | int,
    details: Mapping[str, Any],
) -> Verdict:
    """A verdict that counts its violations; it holds when there are none."""
    return Verdict(
        guarantee=name,
        statement=statement,
        plain=plain,
        holds=not bad.any(),
        worst=worst,
        bound=bound,
        violating_classes=int(bad.sum()),
        violating_rows=int(sizes[bad].sum()),
        details=details,
    )


def empty(name: str, bound: Fraction | int | None, details: Mapping[str, Any]) -> Verdict:
    """The verdict on a release without rows: nothing is published, so nothing is broken."""
    nothing = "the release has no rows"
    return Verdict(
        name, nothing, "Nothing is published, so there is nothing to check.", True, None, bound, 0, 0, details
    )
