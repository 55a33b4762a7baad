"""`reveil init` in Python: look at a table, and get a first policy with a reason for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from reveil.start.reading import first_look
from reveil.start.suggest import Suggestion, draft_policy, rows_of_people
from reveil.start.suggest import suggest as suggest_roles
from reveil.table.options import ReadOptions


@dataclass(frozen=True, repr=False)
class Suggested:
    """A first policy: what each column seems to be and why, how the table is read, and what is worth a look."""

    columns: tuple[Suggestion, ...]
    input: Mapping[str, Any]  # how the table was read: [input] of the policy
    remarks: tuple[str, ...]
    promised: str = ""  # the last sections of the policy, where people have several rows

    def policy(self, name: str = "series") -> str:
        """The text of a `reveil.toml`, to be read and corrected."""
        return draft_policy(self.columns, name, None, self.input, self.promised)

    def to_dict(self) -> dict[str, Any]:
        listed = [suggestion.to_dict() for suggestion in self.columns]
        return {"columns": listed, "input": dict(self.input), "remarks": list(self.remarks)}

    def __repr__(self) -> str:
        return f"<Suggested: {', '.join(f'{s.column} {s.role} ({s.confidence})' for s in self.columns)}>"

    def _repr_html_(self) -> str:
        cells = [(s.column, s.role, s.confidence, s.reason) for s in self.columns]
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self.remarks)
        return f"<table><tr><th>column</th><th>role</th><th></th><th>why</th></tr>{rows}</table>{remarks}"


def suggest(table: Any) -> Suggested:
    """Suggest a role for each column of a table (a path or any frame), with reasons; nothing is written.

    >>> import polars as pl
    >>> people = pl.DataFrame({"patient_id": ["P1", "P2"], "age": [31, 35], "diagnosis": ["flu", "HIV"]})
    >>> suggest(people)
    <Suggested: patient_id identifier (sure), age quasi (sure), diagnosis sensitive (likely)>
    """
    look = first_look(table, ReadOptions())
    columns = suggest_roles(look.frame)
    return Suggested(columns, look.input, tuple(look.remarks), rows_of_people(look.frame, columns))
