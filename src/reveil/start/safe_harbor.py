"""HIPAA's Safe Harbor: which of the eighteen identifiers of 45 CFR 164.514(b)(2) a table shows, column by column.

It looks at names and at every cell, of a table or of a release. What it finds must go; that it finds nothing is no
proof, because no list of words knows every column. Nor does the rule look at combinations: `reveil risk` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from reveil.base.words import agree, some
from reveil.start.columns import advise
from reveil.start.looks import Look
from reveil.start.vocabulary import NAME_PARTS, NAMES, TEXTS, ZIPS, named
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
    "D": r"(?:^|\s)(?:\+\d[\d ()/.-]{7,20}|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?:\s|$)",
    "N": r"https?://\S+",
    "O": r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
    "C": r"\b(?:1[89]|20)\d{2}-(?:\d{2}|Q\d)|\b\d{1,2}[./]\d{1,2}[./](?:1[89]|20)\d{2}\b",
}
# Three digits of a postcode under which fewer than 20,000 people live (census of 2000, as the guidance lists them).
SPARSE = tuple(
    f"{area:03}" for area in (36, 59, 63, 102, 203, 556, 692, 790, 821, 823, 830, 831, 878, 879, 884, 890, 893)
)
AGES, OLDEST = "age alter edad", 89


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

    @property
    def clear(self) -> bool:
        return not self.found

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "clear": self.clear, "found": [one.to_dict() for one in self.found]}

    def __repr__(self) -> str:
        columns = len({one.column for one in self.found})
        said = f"{some(columns, 'column')} {agree(columns, 'shows', 'show')} identifiers" if columns else "none found"
        return f"<SafeHarbor of {some(self.rows, 'row')}: {said}>"


def safe_harbor(table: Any) -> SafeHarbor:
    """Look through a table (a path or any frame) for HIPAA's eighteen identifiers.

    >>> people = pl.DataFrame({"zip": ["02139", "10115"], "age": [91, 40], "note": ["flu", "call ann@home.org"]})
    >>> [(one.column, one.rule, one.rows) for one in safe_harbor(people).found]
    [('zip', 'B', 2), ('age', 'C', 1), ('note', 'F', 1)]
    """
    frame = looked(read_table(table, ReadOptions()))
    return SafeHarbor(frame.height, tuple(one for column in frame for one in _shown(column)))


def _shown(column: pl.Series) -> Iterator[ShownIdentifier]:
    """What one column shows: by its cells, then by its name where they have not told."""
    look, filled = Look(column), len(column) - column.null_count()
    texts = column.cast(pl.String, strict=False)
    by_cell = list(_by_cells(look, texts))
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


def _by_cells(look: Look, texts: pl.Series) -> Iterator[ShownIdentifier]:
    name = look.values.name
    if look.named(ZIPS):
        yield from _of_postcodes(name, texts)
        return
    if look.named(AGES):
        ages = texts.str.extract(r"(\d+)").cast(pl.Int64, strict=False)
        if old := int((ages > OLDEST).sum()):
            yield ShownIdentifier(name, "C", old, "show everybody of 90 and more alike")
        return
    if look.kind == "date" or look.days[0] is not None:
        yield ShownIdentifier(name, "C", len(texts) - texts.null_count(), "show the year only")
        return
    for rule, shape in SHAPES.items() if look.kind == "text" else ():
        if rows := int(texts.str.contains(shape).sum()):
            way = "show the year only" if rule == "C" else "leave the column out, or take these out of its cells"
            yield ShownIdentifier(name, rule, rows, way)


def _of_postcodes(name: str, texts: pl.Series) -> Iterator[ShownIdentifier]:
    """At most three digits may be shown, and of thinly settled areas none (000)."""
    digits = texts.str.replace_all(r"[^0-9]", "")
    if long := int((digits.str.len_chars() > len(SPARSE[0])).sum()):
        yield ShownIdentifier(name, "B", long, "show three digits")
    if sparse := int(digits.str.slice(0, 3).is_in(SPARSE).sum()):
        yield ShownIdentifier(
            name, "B", sparse, f"show 000: fewer than 20,000 people live in some of {', '.join(SPARSE[:3])}, ..."
        )
