"""What a column looks like, and the rules that make a role of it.

Rules see one column: the words of its name and its values. The order of the rules is the order of caution:
first what may never be published, then what is private, then what others know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal, NamedTuple
from unicodedata import combining, normalize

import polars as pl

from reveil.base.words import some
from reveil.policy.column import Role
from reveil.table.dates import read_days
from reveil.table.numbers import THOUSANDS, about_thousands

Confidence = Literal["sure", "likely", "guess"]
Kind = Literal["number", "date", "text", "flag", "other"]
SAMPLE = 5_000  # distinct values looked at for patterns
NEARLY_ALL = 0.95  # share of values that must look alike, or differ, to draw a conclusion

# Words for columns in English, German, French and Spanish, without accents. Words of six letters or more are
# also found inside longer ones (Hauptdiagnose, basesalary); shorter ones must stand alone (age, not wage).
PERSONS = """patient person client customer employee member student subject participant insured individual
 user respondent pat pers kunde kunden mitarbeiter mitglied versicherte versicherten personne cliente
 paciente persona empleado assure salarie proband teilnehmer"""
NUMBERS = "id ids nr no nummer number num nbr key code identifier pseudonym kennung numero"
KEYS = """mrn ssn pseudonym passport reisepass pasaporte passeport socialsecurity sozialversicherungsnummer
 personnummer idcode nhs nir dni nie steuernummer taxid insee_number krankenversichertennummer
 personalausweis"""
GENERIC_KEYS = "id uuid guid mrn serial serialno record recordno rowid row index identifier caseid fallnummer"
CONTACTS = """email mail phone telephone telefon telefono tel mobile handy fax address adresse direccion
 street strasse rue calle iban account konto cuenta creditcard kreditkarte tarjeta url website ip
 license_plate kennzeichen"""
NAMES = """name names nom nombre vorname nachname familienname firstname lastname surname fullname prenom
 apellido apellidos"""
NAME_PARTS = f"{NAMES} {PERSONS} first last family given middle full maiden birth famille de doctor arzt medecin"
TEXTS = """note notes notiz notizen comment comments bemerkung bemerkungen anmerkung remark remarks remarque
 remarques kommentar commentaire observacion observaciones nota notas freetext freitext memo description
 beschreibung anamnese"""
SENSITIVE = """diagnos diag dx icd icd9 icd10 disease diseases illness krankheit maladie enfermedad hiv aids
 sida cancer krebs salary salaire gehalt lohn sueldo salario income einkommen revenu ingreso ingresos wage
 wages religion konfession religious political politik partei party orientation medication medikament
 medicament therapy therapie treatment behandlung traitement disabilit behinderung handicap discapacidad
 criminal conviction offence vorstrafe debt debts schulden deuda genetic symptom symptoms prognosis health
 gesundheit mental sante salud condition"""
CHANGING = """salary salaire gehalt lohn sueldo salario income einkommen revenu ingreso ingresos wage wages medication
 medikament medicament therapy therapie treatment behandlung traitement debt debts schulden deuda symptom symptoms
 health gesundheit mental sante salud condition"""
BIRTHS = "birth dob born geburt geburtsdatum naissance nacimiento birthdate birthday geburtsjahr yob"
ZIPS = "zip zipcode postcode postal plz postleitzahl postleit cp cap codepostal codigopostal"
CATEGORIES = """sex gender geschlecht sexe sexo genero race rasse ethnic ethnicity raza etnia herkunft
 nationality nationalit nacionalidad staatsangehorigkeit citizenship marital familienstand etatcivil
 estadocivil relationship country land pays pais region state bundesland province provinz provincia
 departement county city town stadt ort wohnort ville ciudad municipality gemeinde commune municipio
 district kreis birthplace geburtsort occupation beruf profession profesion ocupacion job workclass employer
 arbeitgeber industry branche education bildung schulabschluss educacion degree diplome language sprache
 langue idioma"""
QUANTITIES = """age alter edad height weight grosse groesse gewicht taille poids altura peso children kinder
 enfants hijos schooling education_num latitude longitude lat lon lng"""

CONTACT_PATTERNS = {
    "e-mail addresses": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "social security numbers": r"^\d{3}-\d{2}-\d{4}$",
    "bank account numbers (IBAN)": r"^[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}$",
    "telephone numbers": r"^(?:(?:\+|00)[\d ()/.-]{7,20}|\(?0\d[\d ()-]*[ /()-][\d ()/-]{4,14}"
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})$",
    "internet addresses": r"^(?:https?://\S+|\d{1,3}(?:\.\d{1,3}){3})$",
}
KEY_PATTERN = r"^[\w./#:-]*\d[\w./#:-]*$"  # one word with a digit in it
ICD_PATTERN = r"^[A-TV-Z]\d[0-9AB](?:\.?[0-9A-Z]{1,4})?[+*!]?$"
ISO_DATE = r"^\d{4}-\d{2}-\d{2}(?:$|[T ]\d{2}:\d{2})"  # with or without a time
PACKED_DATE = r"^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"
SLASHED_DATE = r"^\d{4}/\d{1,2}/\d{1,2}$"
LOCAL_DATE = r"^\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})$"
LOCAL_NUMBER = rf"{THOUSANDS}|^-?[0-9]+(?:[.,][0-9]+)?$"
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


class Advice(NamedTuple):
    role: Role
    reason: str
    confidence: Confidence
    spec: Mapping[str, Any] = {}
    rank: int = 0  # among those who could be the identifier


class Look:
    """One column seen by the rules: its name in words, its values, and what was counted."""

    def __init__(self, values: pl.Series) -> None:
        self.kind = _kind(values.dtype)
        plain = values.cast(pl.String) if self.kind == "text" else values
        self.facts = _facts(plain, self.kind)
        self.values = plain
        self.words = words(values.name)
        self.joined = "".join(self.words)

    @cached_property
    def whole(self) -> bool:
        """Whole numbers, whatever type they were read as."""
        if not self.values.dtype.is_float():
            return self.values.dtype.is_integer()
        return bool((self.values.drop_nulls() % 1 == 0).all())

    def named(self, vocabulary: str) -> bool:
        return named(self.words, vocabulary)

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


def named(own: Sequence[str], vocabulary: str) -> bool:
    """Whether the words of a name have one of these among them; long ones also inside a longer word."""
    joined, known = "".join(own), vocabulary.replace("_", "").split()
    return any(w in own or w == joined or (len(w) > 5 and w in joined) for w in known)


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
    return Facts(len(values), counts.height, missing, top, top_rows, low, high)


def advise(look: Look) -> Advice:
    """The first rule that knows the column decides; numbers that are not read as numbers are pointed out."""
    chosen = next(advice for rule in RULES if (advice := rule(look)) is not None)
    how = about_thousands(look.sample) if look.kind == "text" and look.shaped(LOCAL_NUMBER) else None
    return chosen._replace(reason=f"{chosen.reason} As numbers: {how}.") if how else chosen


def _unusable(look: Look) -> Advice | None:
    if look.kind == "other":
        return Advice("drop", "Its type (lists, times, binary data) cannot be generalised.", "sure")
    if look.facts.rows and look.facts.missing == look.facts.rows:
        return Advice("drop", "It is empty in every row.", "sure")
    return None


def _unlabelled(look: Look) -> Advice | None:
    """Values that could not be told from what Reveil itself publishes."""
    if look.kind == "text" and look.values.is_in(["*", ""]).any():
        reason = "Some values are empty or *, which stand for missing and for any value; rename them to use it."
        return Advice("drop", reason, "likely")
    if look.values.dtype.is_float() and not look.values.drop_nulls().is_finite().all():
        return Advice("drop", "Some values are not numbers or are infinite; make them missing to use it.", "likely")
    return None


def _contact(look: Look) -> Advice | None:
    if look.kind == "text" and look.days[0] is None:  # 01/02/2024 could be a telephone number
        for what, pattern in CONTACT_PATTERNS.items():
            if look.shaped(pattern):
                return Advice("drop", f"Its values look like {what}: they name people directly.", "sure")
    if look.named(CONTACTS):
        sure: Confidence = "sure" if look.facts.distinctness > 0.5 else "likely"
        return Advice("drop", "By its name it says how to reach or find a person.", sure)
    own = set(look.words)
    if own & set(NAMES.split()) and own <= set(NAME_PARTS.split()):
        return Advice("drop", "By its name it holds the names of people.", "sure")
    return None


def _key(look: Look) -> Advice | None:
    """A column that names each row or person: the best of them becomes the identifier."""
    facts, own = look.facts, set(look.words)
    if look.kind != "text" and not look.whole:
        return None
    full = facts.distinctness >= NEARLY_ALL and facts.rows > 2
    personal, generic = _names_people(look), bool(own & set(GENERIC_KEYS.split()))
    counted = full and bool(own & set(NUMBERS.split())) and not _known(look)  # a number or code, all different
    rank = 4 * personal + 2 * facts.unique + generic
    if personal or (generic and facts.distinctness > 0.5) or counted:
        sure: Confidence = "sure" if facts.unique else "likely"
        reason = f"By its name it is the key of a person or row.{_repeats(facts)}"
        return Advice("identifier", reason, sure, rank=rank)
    if full and look.kind == "text" and look.shaped(KEY_PATTERN) and not _known(look):
        return Advice("identifier", "Nearly every row has a code of its own.", "likely", rank=rank)
    return None


def _names_people(look: Look) -> bool:
    own, people, numbers = set(look.words), PERSONS.split(), NUMBERS.split()
    if look.named(KEYS):
        return True
    if look.joined in people:
        return look.facts.distinctness > 0.5
    compound = rf"^(?:{'|'.join(people)})[a-z]{{0,2}}(?:{'|'.join(numbers)})$"
    named = bool(own & set(people) and own & set(numbers)) or bool(re.match(compound, look.joined))
    return named and look.facts.distinctness > 0.05  # fewer: a kind of person, not a person


def _known(look: Look) -> bool:
    """Whether the name or shape says that values may differ from row to row without naming anyone."""
    named = look.named(f"{ZIPS} {CATEGORIES} {QUANTITIES} {SENSITIVE}")
    return named or any(look.shaped(shape) for shape in DATE_SHAPES)


def _repeats(facts: Facts) -> str:
    again = facts.rows - facts.missing - ((facts.distinct or 0) - (facts.missing > 0))
    what = [f"{some(again, 'row repeats', 'rows repeat')} it"] * (again > 0) + [
        f"{some(facts.missing, 'row lacks', 'rows lack')} it"
    ] * (facts.missing > 0)
    return f" But {' and '.join(what)}: a release has one row per person." if what else ""


def _prose(look: Look) -> Advice | None:
    if look.kind != "text":
        return None
    long = float(look.sample.str.len_chars().mean() or 0) > 40  # type: ignore[arg-type]
    if (long and look.facts.distinctness > 0.5) or (look.named(TEXTS) and look.facts.distinctness > 0.2):
        return Advice("drop", "It is free text, which may say anything about anyone.", "sure" if long else "likely")
    return None


def _sensitive(look: Look) -> Advice | None:
    if look.kind == "text" and look.shaped(ICD_PATTERN) and not look.named(ZIPS):
        reason = (
            "Its values look like ICD codes of diagnoses. If outsiders know it instead, make it quasi with "
            "prefixes = [3, 1]: disease, then chapter."
        )
        return Advice("sensitive", reason, "likely", {"type": "category"})
    if look.named(SENSITIVE) and look.kind != "date":
        reason = "By its name it is what people would not want known."
        if look.kind == "number" and (look.facts.distinct or 0) > 20:
            reason += " Different numbers may still be close to each other: see `reveil explain epsilon-m`."
        return Advice("sensitive", reason, "likely", {"type": "number" if look.kind == "number" else "category"})
    return None


def _date(look: Look) -> Advice | None:
    birth = look.named(BIRTHS)
    days, other = look.days
    if days is not None and other is not None:
        reason = (
            f"Dates as text that could be {other}. To publish months or years of them, say which is first under "
            '[input], such as dates = "day-first", and give this column type = "date" and levels.'
        )
        return Advice("drop", reason, "likely")
    if days is not None:
        low, high = days.min(), days.max()
        span = (high - low).days if isinstance(low, date) and isinstance(high, date) else 0
        reason = "A birth date is widely known." if birth else "Others may know a date such as a visit or a move."
        spec = {"type": "date", "levels": _levels(span, birth)}
        return Advice(
            "quasi", f"{reason} The levels follow the span of the dates.", "sure" if birth else "likely", spec
        )
    if look.shaped(ISO_DATE) or look.shaped(PACKED_DATE):
        keep = [7, 4] if look.shaped(ISO_DATE) else [6, 4]
        reason = "Nearly all are dates, which others may know; their first characters are month and year."
        return Advice("quasi", reason, "likely", {"type": "category", "prefixes": keep})
    if look.kind == "text" and look.shaped(LOCAL_DATE):
        reason = "Dates as text, but not all of them; write them as YYYY-MM-DD to publish months or years of them."
        return Advice("drop", reason, "likely")
    if birth and look.kind == "number":
        return Advice("quasi", "A year or month of birth is widely known.", "sure", {"type": "number"})
    return None


def _levels(days: int, birth: bool) -> list[str]:
    """Calendar levels with a handful of steps or more in a table of this span."""
    if days <= 31 and not birth:
        return ["day", "month", "year"]
    if days <= 3 * 366 and not birth:
        return ["month", "quarter", "year"]
    return ["quarter", "year", "decade"] if days <= 15 * 366 and not birth else ["year", "decade"]


def _postcode(look: Look) -> Advice | None:
    if not look.named(ZIPS) or not (look.kind == "text" or look.values.dtype.is_integer()):
        return None
    if look.facts.low is not None and look.facts.low < 0:
        return None
    width = int(look.sample.str.len_chars().max() or 0)  # type: ignore[arg-type]
    first = min(width - 1, 5)
    spec: dict[str, Any] = {"type": "category"}
    if first > 0 and not look.sample.str.contains("*", literal=True).any():
        spec["prefixes"] = list(range(first, max(first - 3, 0), -1))
    reason = "A postcode is widely known; its first characters stand for larger areas."
    return Advice("quasi", reason, "sure", spec)


def _common(look: Look) -> Advice | None:
    """Traits that others know or can see, by the name of the column."""
    if look.named(CATEGORIES) and look.kind != "date":
        ordered = look.kind == "number" and look.named("education bildung educacion schooling degree")
        reason = "Others know this about a person, or can see it."
        return Advice("quasi", reason, "sure", {"type": "number" if ordered else "category"})
    if look.named(QUANTITIES):
        reason = "Others know or can estimate this about a person."
        return Advice("quasi", reason, "sure", {"type": "number" if look.kind == "number" else "category"})
    return None


def _unknown(look: Look) -> Advice:
    """Caution first: what others might know is a quasi-identifier, what might name a row stays out."""
    names_rows = look.kind == "text" or look.whole
    if names_rows and look.facts.rows > 2 and look.facts.distinctness >= NEARLY_ALL:
        reason = "Nearly every row has its own value, so it may name people; a measurement could be quasi."
        return Advice("drop", reason, "guess")
    coded = bool(set(look.words) & {"id", "code", "cat", "type"})  # numbers without an order
    kind = "number" if look.kind == "number" and not coded else "category"
    reason = "Not recognised, so others may know it; make it insensitive only when nobody outside can."
    if look.facts.distinct == 1:
        reason = "The same in every row now, but a later release may differ; treated as known to others."
    return Advice("quasi", reason, "guess", {"type": kind})


RULES: Sequence[Callable[[Look], Advice | None]] = (
    *(_unusable, _contact, _key, _prose, _unlabelled),
    *(_sensitive, _date, _postcode, _common, _unknown),
)
