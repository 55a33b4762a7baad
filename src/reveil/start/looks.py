"""What a column looks like: its name in words, its values, and what was counted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from unicodedata import combining, normalize

import polars as pl

from reveil.base.text import plain_text
from reveil.start.vocabulary import BIRTHS, CATEGORIES, KNOWN, ORIGIN, QUANTITIES, SUBJECTS, named, stemmed
from reveil.table.dates import read_days

Kind = Literal["number", "date", "text", "flag", "other"]
NONE = "0 no none nein keine non aucun aucune ninguno ninguna false negative negativ healthy gesund"
NOTHING = frozenset(("", *NONE.split()))
FREQUENT = 6  # a value that more than one of so many rows has
SAMPLE = 5_000  # distinct values looked at for patterns
NEARLY_ALL = 0.95  # share of values that must look alike, or differ, to draw a conclusion
FEW_TEXTS = 60  # distinct values that are read as words
ISO_DATE = r"^\d{4}-\d{2}-\d{2}(?:$|[T ]\d{2}:\d{2})"  # with or without a time
PACKED_DATE = r"^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"
SLASHED_DATE = r"^\d{4}/\d{1,2}/\d{1,2}$"
LOCAL_DATE = r"^\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})$"
DATE_SHAPES = (ISO_DATE, PACKED_DATE, SLASHED_DATE, LOCAL_DATE)


@dataclass(frozen=True)
class Facts:
    """What the values of a column look like. A missing value counts as a value in `distinct` and `top`."""

    rows: int
    distinct: int | None = None  # None where values cannot be compared
    missing: int = 0
    top: Any = field(default=None, repr=False)
    top_rows: int = 0
    low: Any = field(default=None, repr=False)
    high: Any = field(default=None, repr=False)
    nothing: tuple[str, ...] = ()  # frequent values that mean none, or missing (""), as they are written
    something_rows: int = 0  # rows of the most frequent other value

    @property
    def top_share(self) -> float:
        return self.top_rows / self.rows if self.rows else 0.0

    @property
    def distinctness(self) -> float:
        """Distinct values per row that has one: 1 where all differ."""
        filled = self.rows - self.missing
        return ((self.distinct or 0) - (self.missing > 0)) / filled if filled else 0.0

    @property
    def unique(self) -> bool:
        return self.distinctness == 1 and not self.missing


class Look:
    """One column seen by the rules: its name in words, its values, and what was counted."""

    medical = False  # whether other columns of the table are about health

    def __init__(self, values: pl.Series) -> None:
        self.kind = _kind(values.dtype)
        plain = values.cast(pl.String) if self.kind == "text" else values
        self.facts = _facts(plain, self.kind)
        self.values = plain
        self.words = words(values.name)
        self.joined = "".join(self.words)
        self.parts = tuple(re.findall(r"[^\W\d_]+|\d+", " ".join(self.words)))  # inc86: inc, 86

    @cached_property
    def whole(self) -> bool:
        """Whole numbers, whatever type they were read as."""
        if not self.values.dtype.is_float():
            return self.values.dtype.is_integer()
        return bool((self.values.drop_nulls() % 1 == 0).all())

    def named(self, vocabulary: str) -> bool:
        return named(self.words, vocabulary) or named(self.parts, vocabulary)

    @cached_property
    def subject(self) -> str | None:
        """What private matter the name is about, unless it is nearer to what others know."""
        own = (*self.words, *self.parts)  # cd4, and inc of inc86
        hits = {name: stemmed(own, stems) or "" for name, stems in SUBJECTS.items()}
        best = max(hits, key=lambda name: len(hits[name]))
        public = max(len(stemmed(own, stems) or "") for stems in (KNOWN, ORIGIN))
        plain = named(self.words, f"{CATEGORIES} {QUANTITIES} {BIRTHS}")  # whole words: marital_status
        return best if len(hits[best]) > (5 if plain else 0) and len(hits[best]) >= public else None

    @cached_property
    def told(self) -> str | None:
        """What private matter the values are about, where a good part of a few texts is."""
        if self.kind != "text" or not 1 < (self.facts.distinct or 0) <= FEW_TEXTS:
            return None
        texts = [words(text) for text in self.sample]
        shares = {name: sum(stemmed(text, stems) is not None for text in texts) for name, stems in SUBJECTS.items()}
        best = max(shares, key=lambda name: shares[name])
        return best if 3 * shares[best] >= len(texts) else None

    @cached_property
    def sample(self) -> pl.Series:
        """Some distinct values as text."""
        distinct = self.values.drop_nulls().unique(maintain_order=True).head(SAMPLE)
        return distinct.cast(pl.String)

    def shaped(self, pattern: str) -> bool:
        """Whether nearly all values look like this."""
        if self.kind not in ("text", "number") or not len(self.sample):
            return False
        return float(self.sample.str.contains(pattern).sum()) / len(self.sample) >= NEARLY_ALL

    @cached_property
    def days(self) -> tuple[pl.Series | None, str | None]:
        """The days that all values are, and the two ways in which they could be meant if it is not clear."""
        if self.kind == "date":
            return self.values.cast(pl.Date), None
        if not any(self.shaped(shape) for shape in DATE_SHAPES):
            return None, None
        texts = self.values.cast(pl.String)
        days, way, other = read_days(texts)
        if days.null_count() > texts.null_count():
            return None, None
        return days, None if other is None else f"{way} or {other}"


def words(name: str) -> tuple[str, ...]:
    """The words of a column name, in lower case and without accents.

    >>> words("PatientID"), words("état_civil"), words("Größe")
    (('patient', 'id'), ('etat', 'civil'), ('grosse',))
    """
    split = re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-zà-ÿ])", " ", name)
    plain = "".join(c for c in normalize("NFKD", split.casefold()) if not combining(c))
    return tuple(re.findall(r"[^\W_]+", plain))


def _kind(dtype: pl.DataType) -> Kind:
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype in (pl.Date, pl.Datetime):
        return "date"
    if dtype == pl.Boolean:
        return "flag"
    return "number" if dtype.is_numeric() else "other"


def _facts(values: pl.Series, kind: Kind) -> Facts:
    missing = values.null_count()
    if kind == "other" or missing == len(values):
        return Facts(len(values), None if kind == "other" else int(missing > 0), missing)
    counts = values.value_counts(name="\0rows").sort("\0rows", descending=True)
    top, top_rows = counts.row(0)
    measured = kind in ("number", "date")
    low, high = (values.min(), values.max()) if measured else (None, None)
    listed = [("" if value is None else plain_text(value), rows) for value, rows in counts.rows()]
    nothing = tuple(text for text, rows in listed if text.casefold() in NOTHING and FREQUENT * rows > len(values))
    other = max((rows for text, rows in listed if text not in nothing), default=0)
    return Facts(len(values), counts.height, missing, top, top_rows, low, high, nothing, other)
