"""What the adversary knows beforehand: how likely each sensitive value is, by quasi-identifiers.

A prior is a CSV file: attribute columns, the value, its probability. Attribute cells are exact values or any
published notation (`[20-29]`, `2*`, `*`), so that a prior by age band needs no extra column. Probabilities
are kept as the rationals that were written.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.text import far, plain_text
from reveil.base.words import some
from reveil.policy.policy import Policy
from reveil.published.notation import parse_cell

TOLERANCE = Fraction(1, 10**6)  # of a sum of rounded probabilities; the posterior does not depend on the sum
SHOWN = 3  # examples in a fault
Signatures = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Prior:
    """The distribution of one sensitive column by the values of some quasi-identifiers."""

    name: str  # of the file
    attributes: tuple[str, ...]
    column: str
    cells: tuple[tuple[str, ...], ...]  # the attribute cells of each signature
    values: tuple[str, ...]  # as text; "" is the missing value
    table: tuple[tuple[Fraction, ...], ...]  # signatures x values

    @cached_property
    def place(self) -> Mapping[str, int]:
        return {value: number for number, value in enumerate(self.values)}

    def rows(self, values: Sequence[Any]) -> list[tuple[Fraction, ...]]:
        """The probabilities of the given values, in their order, for each signature."""
        index = [self.place[plain_text(value)] for value in values]
        return [tuple(row[i] for i in index) for row in self.table]

    def lacks(self, values: Sequence[Any]) -> list[str]:
        """Those of the given values that the prior says nothing about."""
        return [plain_text(value) for value in values if plain_text(value) not in self.place]

    def label(self, signature: int) -> str:
        """A signature in words.

        >>> Prior("p.csv", ("sex", "age"), "disease", (("F", "[20-29]"),), (), ((),)).label(0)
        "sex 'F', age '[20-29]'"
        """
        pairs = zip(self.attributes, self.cells[signature], strict=True)
        return ", ".join(f"{name} {cell!r}" for name, cell in pairs)

    def match(self, people: pl.DataFrame) -> Signatures:
        """The signature of each person, who must match exactly one."""
        distinct = people.select(self.attributes).unique(maintain_order=True)
        fits = np.ones((distinct.height, len(self.cells)), dtype=bool)
        for number, name in enumerate(self.attributes):
            fits &= self._covered(distinct[name], number)
        fitting = fits.sum(axis=1)
        index = distinct.with_columns(pl.Series("\0signature", fits.argmax(axis=1), dtype=pl.Int32))
        if (fitting != 1).any():
            matches = index.with_columns(pl.Series("\0matches", fitting))
            raise InputError(self._mismatches(people, matches, fits))
        joined = people.select(self.attributes).join(
            index, on=self.attributes, how="left", nulls_equal=True, maintain_order="left"
        )
        return joined["\0signature"].to_numpy()

    def _covered(self, values: pl.Series, number: int) -> NDArray[np.bool_]:
        """Which signatures may stand for each value of an attribute."""
        numeric = None if values.dtype == pl.Date else values.dtype.is_numeric()
        texts = [row[number] for row in self.cells]
        cells = {text: parse_cell(text or None, numeric=numeric) for text in set(texts)}
        known = {
            value: np.array([cells[text].covers(value) for text in texts], dtype=bool) for value in values.unique()
        }
        return np.array([known[value] for value in values], dtype=bool).reshape(len(values), len(texts))

    def _mismatches(self, people: pl.DataFrame, matches: pl.DataFrame, fits: NDArray[np.bool_]) -> list[Fault]:
        joined = people.select(self.attributes).join(matches, on=self.attributes, how="left", nulls_equal=True)
        faults = []
        none = matches.filter(pl.col("\0matches") == 0)
        if none.height:
            rows = joined.filter(pl.col("\0matches") == 0).height
            examples = "; ".join(_shown(row) for row in none.select(self.attributes).head(SHOWN).iter_rows(named=True))
            message = f"has no signature for {none.height:,} combinations that occur: {examples}"
            faults.append(Fault("R432", f"prior {self.name}", message, "add a distribution for each of them", rows))
        several = np.flatnonzero(matches["\0matches"].to_numpy() > 1)
        if len(several):
            rows = joined.filter(pl.col("\0matches") > 1).height
            example = _shown(matches.select(self.attributes).row(int(several[0]), named=True))
            which = " and ".join(self.label(int(i)) for i in np.flatnonzero(fits[several[0]])[:2])
            message = f"has several signatures for {len(several):,} combinations: {example} fits {which}"
            faults.append(
                Fault("R433", f"prior {self.name}", message, "let the cells of an attribute not overlap", rows)
            )
        return faults


def _shown(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {plain_text(value)!r}" for name, value in row.items())


def load(policy: Policy) -> list[Prior]:
    """Every prior of a policy, read and checked. All faults of all files at once."""
    faults: list[Fault] = []
    priors = []
    for file in policy.guarantee.priors:
        try:
            path = policy.folder / file
            changed = path.stat().st_mtime_ns if path.exists() else 0
            priors.append(_read_once(path, changed, policy.named("quasi"), policy.named("sensitive")))
        except InputError as error:
            faults += error.faults
    stop_if(faults)
    return priors


@lru_cache(maxsize=64)
def _read_once(path: Path, changed: int, quasi: tuple[str, ...], sensitive: tuple[str, ...]) -> Prior:
    """A prior that has not changed since it was read need not be read again: planner and judge both want it."""
    return read_prior(path, quasi, sensitive)


def read_prior(path: Path, quasi: Sequence[str], sensitive: Sequence[str]) -> Prior:
    """Read one prior file.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "by-sex.csv")
    >>> _ = path.write_text("sex;value;probability\\nM;flu;0.1\\nM;ache;0.9\\nF;flu;1/4\\nF;ache;3/4\\n")
    >>> prior = read_prior(path, ["sex", "age"], ["disease"])
    >>> prior.attributes, prior.values, prior.table[1]
    (('sex',), ('flu', 'ache'), (Fraction(1, 4), Fraction(3, 4)))
    """
    frame = _cells(path)
    where = f"prior {path.name}"
    attributes, value = _roles(frame.columns, quasi, sensitive, where)
    rows: dict[tuple[str, ...], dict[str, Fraction]] = defaultdict(dict)
    faults: list[Fault] = []
    for number, row in enumerate(frame.iter_rows(named=True), 2):
        signature = tuple(row[name].strip() for name in attributes)
        text, problem = row[value].strip(), ""
        chance = _probability(row["probability"])
        if chance is None:
            problem = f"line {number}: the probability {row['probability']!r} is not a number from 0 to 1"
        elif text in rows[signature]:
            problem = f"line {number}: {text!r} occurs twice for the same signature"
        if problem:
            faults.append(Fault("R431", where, problem, "correct that line"))
        rows[signature][text] = chance or Fraction(0)
    stop_if(faults)
    column = value if value in sensitive else sensitive[0]
    prior = _assemble(path.name, attributes, column, rows)
    stop_if(_incomplete(prior, rows))
    return prior


def _cells(path: Path) -> pl.DataFrame:
    """The cells of the file exactly as they are written: `0.10` and `1/3` stay what they are."""
    where = f"prior {path.name}"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise InputError(Fault("R430", where, reason, "name a CSV file beside the policy, saved as UTF-8")) from None
    header = text.partition("\n")[0]
    delimiter = max(";,\t|", key=header.count)
    lines = [line for line in csv.reader(io.StringIO(text), delimiter=delimiter) if line]
    names = [name.strip() for name in lines[0]] if lines else []
    uneven = [number for number, line in enumerate(lines, 1) if len(line) != len(names)]
    if len(lines) < 2 or len(set(names)) < len(names) or uneven:
        what = f"line {uneven[0]} has {len(lines[uneven[0] - 1])} cells, not {len(names)}" if uneven else "has no rows"
        raise InputError(Fault("R430", where, what, "write one signature, value and probability per line"))
    return pl.DataFrame(lines[1:], schema=dict.fromkeys(names, pl.String), orient="row")


def _roles(
    columns: Sequence[str], quasi: Sequence[str], sensitive: Sequence[str], where: str
) -> tuple[tuple[str, ...], str]:
    """The attribute columns, and the column that holds the value."""
    way = "give it attribute columns, `value` (or the sensitive column's name) and `probability`"
    values = [name for name in columns if name == "value" or name in sensitive]
    attributes = tuple(name for name in columns if name not in (*values, "probability"))
    unknown = [name for name in attributes if name not in quasi]
    faults = []
    if "probability" not in columns:
        faults.append(Fault("R430", where, "has no column `probability`", way))
    if len(values) != 1:
        faults.append(Fault("R430", where, f"has {len(values)} columns of sensitive values, not one", way))
    elif values[0] == "value" and len(sensitive) != 1:
        message = f"`value` is ambiguous: the policy has {len(sensitive)} sensitive columns"
        faults.append(Fault("R430", where, message, "name the column after the one it is about"))
    if not attributes:
        faults.append(Fault("R430", where, "has no attribute column", way))
    if unknown:
        message = f"{', '.join(map(repr, unknown))} are not quasi-identifiers of the policy"
        faults.append(Fault("R430", where, message, f"use some of {', '.join(quasi)}"))
    stop_if(faults)
    return attributes, values[0]


def _probability(text: str) -> Fraction | None:
    if far(text):
        return None
    try:
        chance = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        return None
    return chance if 0 <= chance <= 1 else None


def _assemble(
    name: str,
    attributes: tuple[str, ...],
    column: str,
    rows: Mapping[tuple[str, ...], Mapping[str, Fraction]],
) -> Prior:
    values = tuple(dict.fromkeys(value for row in rows.values() for value in row))
    table = tuple(tuple(row.get(value, Fraction(0)) for value in values) for row in rows.values())
    return Prior(name, attributes, column, tuple(rows), values, table)


def _incomplete(prior: Prior, rows: Mapping[tuple[str, ...], Mapping[str, Fraction]]) -> list[Fault]:
    """Signatures that do not name every value, or whose probabilities do not sum to one."""
    faults = []
    where = f"prior {prior.name}"
    for number, row in enumerate(rows.values()):
        missing = [value for value in prior.values if value not in row]
        if missing:
            listed = ", ".join(map(repr, missing[:SHOWN])) + ", ..." * (len(missing) > SHOWN)
            message = (
                f"{prior.label(number)}: says nothing about {some(len(missing), 'value')} that others have: {listed}"
            )
            faults.append(Fault("R434", where, message, "write 0 where a value cannot occur"))
        total = sum(row.values(), Fraction(0))
        if not missing and abs(total - 1) > TOLERANCE:
            message = f"{prior.label(number)}: the probabilities sum to {float(total):.9g}, not to 1"
            faults.append(Fault("R435", where, message, "correct them, or add the values that are left out"))
    return faults


def match_priors(frame: pl.DataFrame, policy: Policy) -> Signatures:
    """The signature of each row under each prior of the policy: rows x priors. Refuses what does not fit."""
    faults: list[Fault] = []
    matched = []
    for prior in load(policy):
        try:
            signatures = prior.match(frame)
        except InputError as error:
            faults += error.faults
            continue
        faults += check_values(prior, frame[prior.column], signatures)
        matched.append(signatures)
    stop_if(faults)
    return np.ascontiguousarray(np.column_stack(matched))


def check_values(prior: Prior, values: pl.Series, signatures: Signatures) -> list[Fault]:
    """Faults of a prior against a table: values it does not know, and values it says nobody there can have."""
    lacking = prior.lacks(values.unique().to_list())
    where = f"prior {prior.name}"
    if lacking:
        listed = ", ".join(map(repr, sorted(lacking)[:SHOWN])) + ", ..." * (len(lacking) > SHOWN)
        unknown = [value for value in values.unique().to_list() if plain_text(value) in lacking]
        rows = int(values.is_in(unknown, nulls_equal=True).sum())
        message = f"says nothing about {some(len(lacking), 'value')} of {prior.column!r} that occur: {listed}"
        return [Fault("R434", where, message, "add their probabilities, or estimate the prior with smoothing", rows)]
    codes = _codes(prior, values)
    zero = np.array([[p == 0 for p in row] for row in prior.table], dtype=bool)
    impossible = zero[signatures, codes]
    if not impossible.any():
        return []
    first = int(np.flatnonzero(impossible)[0])
    example = f"{prior.values[codes[first]]!r} for {prior.label(int(signatures[first]))}"
    message = f"gives probability 0 to values that occur, for instance {example}"
    return [
        Fault(
            "R436",
            where,
            message,
            "a prior that is contradicted protects nobody: smooth it",
            int(impossible.sum()),
        )
    ]


def _codes(prior: Prior, values: pl.Series) -> NDArray[np.int64]:
    distinct = values.unique()
    table = pl.DataFrame({"v": distinct, "code": [prior.place[plain_text(v)] for v in distinct.to_list()]})
    joined = pl.DataFrame({"v": values}).join(table, on="v", how="left", nulls_equal=True, maintain_order="left")
    return joined["code"].to_numpy()
