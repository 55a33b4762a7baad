"""HIPAA's Safe Harbor: which of the eighteen identifiers of 45 CFR 164.514(b)(2) a table shows, column by column.

It looks at names and at every cell, of a table or of a release. What it finds must go; that it finds nothing is no
proof, because no list of words knows every column. Nor does the rule look at combinations: `reveil risk` does.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from reveil.base.words import agree, some
from reveil.start.columns import advise
from reveil.start.looks import Look
from reveil.start.vocabulary import BIRTHS, NAME_PARTS, NAMES, TEXTS, ZIPS, named
from reveil.table.options import ReadOptions
from reveil.table.read import read_table
from reveil.table.types import looked

RULES: Mapping[str, str] = {
    "A": "names",
    "B": "places smaller than a state",
    "C": "dates but for the year, and ages over 89",
    "D": "telephone numbers",
    "E": "fax numbers",
    "F": "e-mail addresses",
    "G": "social security numbers",
    "H": "medical record numbers",
    "I": "health plan numbers",
    "J": "account numbers",
    "K": "certificate and licence numbers",
    "L": "vehicle identifiers",
    "M": "device identifiers",
    "N": "web addresses",
    "O": "IP addresses",
    "P": "biometric identifiers",
    "Q": "photographs of faces",
    "R": "any other number or code of one person",
}
NAMED: Mapping[str, str] = {
    "E": "fax",
    "D": "phone telephone telefon telefono tel mobile handy",
    "F": "email mail",
    "G": "ssn socialsecurity sozialversicherungsnummer",
    "H": "mrn fallnummer",
    "I": "krankenversichertennummer healthplan beneficiary insurance_number",
    "J": "iban konto kontonummer accountnumber accountno cuenta creditcard kreditkarte tarjeta",
    "L": "vin license_plate kennzeichen plate",
    "K": "license licence fuhrerschein passport reisepass pasaporte passeport personalausweis",
    "M": "imei udi serialno device_id",
    "N": "url website",
    "O": "ip",
    "P": "fingerprint voiceprint iris retina",
    "Q": "photo photograph foto image picture",
    "B": """street strasse rue calle address adresse direccion city town stadt ort wohnort ville ciudad county kreis
 municipality gemeinde commune municipio district tract block ward latitude longitude lat lon lng""",
}
SHAPES: Mapping[str, str] = {  # of what may stand anywhere in a cell
    "F": r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}",
    "G": r"\b\d{3}-\d{2}-\d{4}\b",
    "D": r"(?:^|[\s:;,(])(?:\+\d[\d ()/.-]{7,20}|(?:\(?\d{3}\)?[ .-]|\(\d{3}\))\d{3}[ .-]\d{4})(?:[\s.,;:!?)]|$)",
    "N": r"(?i)https?://\S+|\bwww\.\S+",
    "O": r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
    "C": r"\b(?:1[89]|20)\d{2}-(?:0[1-9]|1[0-2]|Q\d)\b|\b\d{1,2}[./]\d{1,2}[./](?:1[89]|20)\d{2}\b",
}
# Three digits of a postcode under which fewer than 20,000 people live (census of 2000, as the guidance lists them).
SPARSE = tuple(
    f"{area:03}" for area in (36, 59, 63, 102, 203, 556, 692, 790, 821, 823, 830, 831, 878, 879, 884, 890, 893)
)
AGES, OLDEST = "age alter edad", 89
YEARS, YEAR = "year yob jahr geburtsjahr annee ano", r"\b(?:1[89]|20)\d{2}\b"
# Everybody of an age and more, or born until a year: the number is the first in it, or (other) lies beside it.
SINCE = (
    r"(?i)^\[?(\d+)\s*(?:years?|jahre|ans)?\s*(?:\+|plus|(?:and|or|und|oder|et|ou)\s+"
    r"(?:over|older|more|above|up|mehr|[aä]lter|plus)|[-,;]\s*\+?(?:inf\w*|∞)[\])\[]?)$",
    r"(?i)^(?:>=|≥|from|at least|ab)\s*(\d+)$",
)
OVER = r"(?i)^(?:>|over|above|older than|more than|über)\s*(\d+)$", r"(?i)^\((\d+)\s*[-,;]\s*\+?(?:inf\w*|∞)[\])\[]?$"
UNTIL = r"(?i)^(\d+)\s*(?:and|or|und|oder)\s+(?:before|earlier|früher)$", r"(?i)^(?:<=|≤|until|up to|bis)\s*(\d+)$"
BEFORE = (r"(?i)^(?:<|before|vor)\s*(\d+)$",)
BELOW = r"(?i)(?:<|under|below|unter)\s*\d+$|\d\D+\d+\s*[)\[]$"  # the last number is none of the ages


@dataclass(frozen=True)
class ShownIdentifier:
    """One column, and which identifier it shows in how many rows."""

    column: str
    rule: str  # A to R
    rows: int
    way: str

    @property
    def what(self) -> str:
        return RULES[self.rule]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"what": self.what}


@dataclass(frozen=True)
class SafeHarbor:
    """What was found. Without a finding the words of the rule are kept as far as names and cells tell."""

    rows: int
    found: tuple[ShownIdentifier, ...]
    unread: tuple[str, ...] = ()  # columns of lists and the like: only their names were looked at

    @property
    def clear(self) -> bool:
        return not self.found and not self.unread

    def to_dict(self) -> dict[str, Any]:
        found = [one.to_dict() for one in self.found]
        return {"rows": self.rows, "clear": self.clear, "found": found, "unread": list(self.unread)}

    def __repr__(self) -> str:
        columns = len({one.column for one in self.found})
        said = f"{some(columns, 'column')} {agree(columns, 'shows', 'show')} identifiers" if columns else "none found"
        unread = f"; not looked into: {', '.join(self.unread)}" if self.unread else ""
        return f"<SafeHarbor of {some(self.rows, 'row')}: {said}{unread}>"


def safe_harbor(table: Any, *, delimiter: str | None = None) -> SafeHarbor:
    """Look through a table (a path or any frame) for HIPAA's eighteen identifiers.

    >>> people = pl.DataFrame({"zip": ["02139", "10115"], "age": [91, 40], "note": ["flu", "call ann@home.org"]})
    >>> [(one.column, one.rule, one.rows) for one in safe_harbor(people).found]
    [('zip', 'B', 2), ('age', 'C', 1), ('note', 'F', 1)]
    """
    frame = looked(read_table(table, ReadOptions(delimiter=delimiter)))
    unread = tuple(c.name for c in frame if Look(c).kind == "other" and c.null_count() < len(c))
    return SafeHarbor(frame.height, tuple(one for column in frame for one in _shown(column)), unread)


def _shown(column: pl.Series) -> Iterator[ShownIdentifier]:
    """What one column shows: by its cells, then by its name where they have not told."""
    look, filled = Look(column), len(column) - column.null_count()
    by_cell = [] if look.kind == "other" else list(_by_cells(look))
    yield from by_cell
    if by_cell or not filled:
        return
    own = set(look.words)
    if own & set(NAMES.split()) and own <= set(NAME_PARTS.split()):
        yield ShownIdentifier(column.name, "A", filled, "leave the column out")
        return
    for rule, vocabulary in NAMED.items():
        if named(look.words, vocabulary):
            yield ShownIdentifier(column.name, rule, filled, "leave the column out")
            return
    if look.named(TEXTS) and look.kind == "text":
        yield ShownIdentifier(column.name, "R", filled, "leave free text out: it may say anything")
    elif advise(look).role == "identifier":
        yield ShownIdentifier(
            column.name, "R", filled, "leave it out, or give new numbers that follow from nothing of the person"
        )


def _by_cells(look: Look) -> Iterator[ShownIdentifier]:
    name, texts = look.values.name, look.values.cast(pl.String)
    if look.named(ZIPS):
        yield from _of_postcodes(look)
        return
    if look.named(AGES):
        if old := int(_ages_told(texts).sum()):
            yield ShownIdentifier(name, "C", old, "show everybody of 90 and more alike (90+)")
        return
    if look.kind == "date" or look.days[0] is not None:
        yield ShownIdentifier(name, "C", len(texts) - texts.null_count(), "show the year only")
        return
    if look.named(BIRTHS) and (look.named(YEARS) or look.shaped(YEAR)):
        yield from _of_births(name, texts)
    for rule, shape in SHAPES.items() if look.kind == "text" else ():
        if rows := int(texts.str.contains(shape).sum()):
            way = "show the year only" if rule == "C" else "leave the column out, or take these out of its cells"
            yield ShownIdentifier(name, rule, rows, way)


def _bound(texts: pl.Series, shapes: Sequence[str]) -> pl.Series:
    """The number in cells that have one of these shapes."""
    plain = pl.lit(texts.str.strip_chars())
    return pl.select(pl.coalesce(plain.str.extract(shape).cast(pl.Int64, strict=False) for shape in shapes)).to_series()


def _ages_told(texts: pl.Series) -> pl.Series:
    """Which cells tell an age over 89: by a number, or by the end of a range. Open ones may begin at 90 or below.

    >>> _ages_told(pl.Series(["89", "90", "[80-95]", "80-90", "[80,90)", "90+", ">89", ">90", "85 and over"])).to_list()
    [False, True, True, True, False, False, False, True, False]
    """
    first = _bound(texts, SINCE).fill_null(_bound(texts, OVER) + 1)
    last = texts.str.extract_all(r"\d+(?:\.\d+)?").list.eval(pl.element().cast(pl.Float64)).list.max().floor()
    last -= texts.str.strip_chars().str.contains(BELOW).cast(pl.Int8)
    return (first > OLDEST + 1).fill_null(last > OLDEST)


def _of_births(name: str, texts: pl.Series) -> Iterator[ShownIdentifier]:
    """Years of birth that tell an age over 89 in this year; an open category (<1937) may end there or later."""
    now = datetime.date.today().year
    youngest = now - OLDEST  # nobody born then is over 89 this year
    last = _bound(texts, UNTIL).fill_null(_bound(texts, BEFORE) - 1)
    first = texts.str.extract_all(YEAR).list.eval(pl.element().cast(pl.Int64)).list.min()
    if old := int((last < youngest - 1).fill_null(first < youngest).sum()):
        way = f"show everybody born before {youngest} ({now} less {OLDEST}) alike (<{youngest})"
        yield ShownIdentifier(name, "C", old, way)


def _of_postcodes(look: Look) -> Iterator[ShownIdentifier]:
    """At most three digits may be shown, and of thinly settled areas none (000)."""
    name = look.values.name
    digits = look.values.cast(pl.String).str.replace_all(r"[^0-9]", "")
    if look.kind == "number" and look.whole:  # as numbers they have lost their first zeros
        short = look.values.cast(pl.Int64).cast(pl.String)
        size = short.str.len_chars()
        digits = short.str.zfill(3).zip_with((size <= 3).fill_null(True), short.str.zfill(5))
    if long := int((digits.str.len_chars() > len(SPARSE[0])).sum()):
        yield ShownIdentifier(name, "B", long, "show three digits")
    if sparse := int(digits.str.slice(0, 3).is_in(SPARSE).sum()):
        yield ShownIdentifier(
            name, "B", sparse, f"show 000: fewer than 20,000 people live in some of {', '.join(SPARSE[:3])}, ..."
        )
