"""The private half of a release: certificate, statistics of the plan, and the reports for people."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from reveil.certificate import Certificate
from reveil.history import History
from reveil.plan.contract import Plan
from reveil.plan.loss import Loss
from reveil.policy import Policy
from reveil.verify import Verification


def write_reports(
    private: Path,
    frame: pl.DataFrame,
    table: pl.DataFrame,
    certificate: Certificate,
    plan: Plan,
    loss: Loss,
    verification: Verification,
    policy: Policy,
    history: History,
) -> None:
    """Write everything that stays with the publisher."""
    write_json(private / "certificate.json", certificate.to_dict())
    write_json(private / "plan.json", {"loss": loss.to_dict(), **plan.to_dict()})


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
