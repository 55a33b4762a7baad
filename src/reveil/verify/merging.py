"""Verdicts on parts of a release become one: a class is in one part, so that parts are counted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reveil.base.words import some
from reveil.verify.judges.contract import PartJudge, Verdict


def merged(judge: PartJudge, parts: Sequence[Verdict], classes: int) -> Verdict:
    """One verdict of what a judge found in all parts, which have so many classes together."""
    failing = [verdict for verdict in parts if not verdict.holds]
    judged = failing or [verdict for verdict in parts if verdict.worst is not None] or list(parts)
    choose = min if judge.worst_is == "least" else max
    worst = choose(judged, key=lambda verdict: 0 if verdict.worst is None else verdict.worst)
    broken, rows = sum(v.violating_classes for v in parts), sum(v.violating_rows for v in parts)
    details = {name: value for name, value in worst.details.items() if name != "class"}  # numbered within its part
    if not broken:
        return replace(worst, details=details)
    statement = f"{broken:,} of {some(classes, 'class', 'classes')} in all parts; of the worst part: {worst.statement}"
    return replace(worst, statement=statement, violating_classes=broken, violating_rows=rows, details=details)
