"""What people get back: a release, or a preview of one. Small frozen objects that show themselves well."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, InputError, TamperedError
from reveil.base.words import some
from reveil.history.recorded import stood_in
from reveil.ledger.ledger import Ledger
from reveil.ledger.record import Record
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.published.format import PRIVATE, PUBLIC, is_part
from reveil.published.reader import read_release
from reveil.verify.certificate import Certificate

if TYPE_CHECKING:
    from reveil.jobs.forms import Form


@dataclass(frozen=True, eq=False)
class Release:
    """One published table and its certificate."""

    table: pl.DataFrame  # as published (of two tables the people); releases of a series carry a `group` column
    groups: NDArray[np.int32]  # beside which group each input row is shown, in input order; -1 where withheld
    counterfeits: pl.DataFrame | None  # one row per group: group, count; None outside a series
    certificate: Certificate
    path: Path | None  # the folder with public/ and private/
    number: int | None  # in its series
    values: Mapping[str, pl.DataFrame] | None = None  # two tables: group, value, count of each sensitive column
    decided: Mapping[str, str] = field(default_factory=dict)  # types that only this table has settled, by column
    tuples: pl.DataFrame | None = None  # two tables: group, values of columns that are shown together, count
    with_stand_in: NDArray[np.bool_] | None = None  # of each input row; its group then has none of its values

    @classmethod
    def load(cls, ledger: Ledger, record: Record) -> Release:
        """A release of the past, from the files of its series; refused where they are not what was recorded."""
        if faults := ledger.check([record.number]):
            raise TamperedError(faults)
        return cls.read(ledger, record)

    @classmethod
    def read(cls, ledger: Ledger, record: Record) -> Release:
        """A release of the past, whose files have been checked."""
        folder = ledger.path(record.number)
        published = read_release(folder / PUBLIC)
        content = json.loads((folder / PRIVATE / "certificate.json").read_text(encoding="utf-8"))
        tuples = {name: tuple(content[name]) for name in ("verdicts", "checks", "assumptions", "limits")}
        groups, with_stand_in = _groups_of(ledger, record)
        return cls(
            table=published.table,
            groups=groups,
            counterfeits=published.counterfeits,
            certificate=Certificate(**{**content, **tuples}),
            path=folder,
            number=record.number,
            values=published.bundles or published.values,
            tuples=published.tuples,
            with_stand_in=with_stand_in,
        )

    def at(self, path: Path) -> Release:
        """The same release, now in a folder."""
        return replace(self, path=path)

    @property
    def public(self) -> Path | None:
        """The folder to hand over; nothing else of the release is for others."""
        return None if self.path is None else self.path / PUBLIC

    def to_pandas(self) -> Any:
        """The published table as a pandas frame; pandas must be installed."""
        return self.table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The published table for whatever reads Arrow: DuckDB, PyArrow, pandas, R."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "path": None if self.path is None else str(self.path),
            "certificate": self.certificate.to_dict(),
            "types_decided": dict(self.decided),
        }

    def __repr__(self) -> str:
        counts = self.certificate.counts
        what = "Release" if self.number is None else f"Release {self.number} of {self.certificate.series!r}"
        verdict = "the promise holds" if self.certificate.holds else "THE PROMISE DOES NOT HOLD"
        shown = "row" if self.values is None else "value"
        shown_people = counts.get("people shown", self.table.height)
        people = "" if self.values is None else f"{some(shown_people, 'person', 'people')}, "
        return (
            f"<{what}: {people}{some(counts['published rows'], shown)} in {some(counts['groups'], 'group')}, "
            f"{counts['withheld rows']:,} withheld, {counts['counterfeit rows']:,} counterfeit; {verdict}>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.certificate._repr_html_()}"


def _groups_of(ledger: Ledger, record: Record) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Beside which group everybody of a release is shown, and who of them is stood in for, as the ledger has it."""
    members, back = ledger.memory(record.number, "members"), stood_in(ledger, record)
    if back is None:
        return members["group"].to_numpy(), np.zeros(members.height, dtype=bool)
    both = members.join(back.rename({"group": "beside"}), on="person", how="left", maintain_order="left")
    return both["beside"].fill_null(both["group"]).to_numpy(), both["beside"].is_not_null().to_numpy()


@dataclass(frozen=True, eq=False)
class Preview:
    """What would be published, and what it would cost. Nothing has been written."""

    number: int
    rows: int
    plan: Plan
    loss: Loss
    model: str
    people: Mapping[str, int]  # who came back
    decided: Mapping[str, str] = field(default_factory=dict)  # types that only this table has settled, by column
    two_tables: bool = False
    forms: tuple[Form, ...] = ()  # this release in one table and in two, where the policy allows both
    moving: tuple[str, ...] = ()  # quasi-identifiers that are later for everybody than in the last release
    alone: bool = False  # one release that belongs to no series

    @property
    def several(self) -> int | None:
        """How many people (or households) are shown, where they may have several rows."""
        numbers = self.plan.bundles
        return None if numbers is None else len(np.unique(numbers[numbers >= 0]))

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": self.number,
            "two_tables": self.two_tables,
            "model": self.model,
            "input_rows": self.rows,
            "people": dict(self.people),
            "types_decided": dict(self.decided),
            "moving_columns": list(self.moving),
            "loss": self.loss.to_dict(),
            "forms": [form.to_dict() for form in self.forms],
            **self.plan.to_dict(),
        }

    def __repr__(self) -> str:
        return (
            f"<Preview of release {self.number} under {self.model}: {some(self.rows, 'row')} in "
            f"{some(self.plan.count, 'group')}, "
            f"{self.plan.withheld:,} withheld, {self.plan.counterfeits:,} counterfeit, loss {self.loss.mean:.4f}>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(n)}</td><td>{v:.4f}</td></tr>" for n, v in self.loss.columns.items())
        return f"<p>{escape(repr(self))}</p><table><tr><th>Column</th><th>Loss (NCP)</th></tr>{rows}</table>"


class ReleaseInFiles(Release):
    """A release of many files, made in blocks: nothing of it is in memory until it is asked for."""

    def __init__(self, certificate: Certificate, path: Path | None, decided: Mapping[str, str], loss: Loss) -> None:
        about = {"certificate": certificate, "path": path, "decided": decided, "loss": loss, "number": None}
        nothing = dict.fromkeys(("counterfeits", "values", "tuples"))
        for name, value in {**about, **nothing}.items():
            object.__setattr__(self, name, value)

    loss: Loss

    @property
    def files(self) -> int:
        """How many files hold the table."""
        return sum(is_part(Path(name).stem) for name in self.certificate.hashes)

    @cached_property
    def table(self) -> pl.DataFrame:
        """All rows: for tables that fit into memory after all."""
        assert self.public is not None
        return read_release(self.public).table

    @property
    def groups(self) -> NDArray[np.int32]:
        message, remedy = "which row went into which group is not kept", 'use engine = "whole" where it is needed'
        raise InputError(Fault("R876", "release made in blocks", message, remedy))

    def at(self, path: Path) -> ReleaseInFiles:
        return ReleaseInFiles(self.certificate, path, self.decided, self.loss)


def html_table(records: Sequence[Record], title: str) -> str:
    """The releases of a series for a notebook, as they were recorded."""
    names = list(dict.fromkeys(name for record in records for name in record.facts["counts"]))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("release", "made (UTC)", *names, "NCP", "state"))
    rows = [
        (r.number, r.made[:16], *(r.facts["counts"].get(n, "") for n in names), r.facts["loss"]["mean_ncp"], r.state)
        for r in records
    ]
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<p>{escape(title)}</p>" + (f"<table><tr>{head}</tr>{body}</table>" if rows else "")
