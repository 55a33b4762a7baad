"""The rules that make a role of what a column looks like.

Rules see one column (`reveil.start.looks`). The order of the rules is the order of caution: first what may never be
published, then what is private, then what others know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

import polars as pl

from reveil.base.words import some
from reveil.policy.column import Role
from reveil.start.looks import (
    DATE_SHAPES,
    ISO_DATE,
    LOCAL_DATE,
    NEARLY_ALL,
    PACKED_DATE,
    Facts,
    Look,
)
from reveil.start.vocabulary import (
    BIRTHS,
    CATEGORIES,
    CONTACTS,
    EVENTS,
    GENERIC_KEYS,
    KEYS,
    KNOWN,
    NAME_PARTS,
    NAMES,
    NUMBERS,
    ORDERED,
    ORIGIN,
    PERSONS,
    QUANTITIES,
    SAMPLE_WEIGHTS,
    SHORT_KEYS,
    TEXTS,
    ZIPS,
    stemmed,
)
from reveil.table.dates import read_days
from reveil.table.doubts import INDEX_NAMES, counts_rows
from reveil.table.numbers import THOUSANDS, about_thousands

Confidence = Literal["sure", "likely", "guess"]
LEAST_KEY = 0.02  # distinct values per row of a key that comes again: at most fifty rows of a person
ABOUT_ALL, SHOWN_ROWS = 20, 3  # one cell of so many may be wrong; rows that are named
FEW_LACK = 0.1  # of the rows lack a key that is called so
FEW_PEOPLE = 20  # different codes; fewer may be kinds of people
HEAVIEST = 700  # of a person, in pounds; a larger weight is one of a survey

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
LOCAL_NUMBER = rf"{THOUSANDS}|^-?[0-9]+(?:[.,][0-9]+)?$"


class RoleAdvice(NamedTuple):
    role: Role
    reason: str
    confidence: Confidence
    spec: Mapping[str, Any] = {}
    rank: int = 0  # among those who could be the identifier


def advise(look: Look) -> RoleAdvice:
    """The first rule that knows the column decides; numbers that are not read as numbers are pointed out."""
    chosen = next(advice for rule in RULES if (advice := rule(look)) is not None)
    how = about_thousands(look.sample) if look.kind == "text" and look.shaped(LOCAL_NUMBER) else None
    return chosen._replace(reason=f"{chosen.reason} As numbers: {how}.") if how else chosen


def _row_index(look: Look) -> RoleAdvice | None:
    numbers = counts_rows(look.values) or (look.whole and look.facts.unique)  # some rows may have been left out
    if look.values.name in INDEX_NAMES and numbers:
        return RoleAdvice("drop", "It numbers the rows, as pandas writes its index.", "sure")
    return None


def _unusable(look: Look) -> RoleAdvice | None:
    if look.kind == "other":
        return RoleAdvice("drop", "Its type (lists, times, binary data) cannot be generalised.", "sure")
    if look.facts.rows and look.facts.missing == look.facts.rows:
        return RoleAdvice("drop", "It is empty in every row.", "sure")
    return None


def _unlabelled(look: Look) -> RoleAdvice | None:
    """Values that could not be told from what Reveil itself publishes."""
    if look.kind == "text" and look.values.is_in(["*", ""]).any():
        reason = "Some values are empty or *, which stand for missing and for any value; rename them to use it."
        return RoleAdvice("drop", reason, "likely")
    if look.values.dtype.is_float() and not look.values.drop_nulls().is_finite().all():
        return RoleAdvice("drop", "Some values are not numbers or are infinite; make them missing to use it.", "likely")
    return None


def _contact(look: Look) -> RoleAdvice | None:
    if look.kind == "text" and look.days[0] is None:  # 01/02/2024 could be a telephone number
        for what, pattern in CONTACT_PATTERNS.items():
            if look.shaped(pattern):
                return RoleAdvice("drop", f"Its values look like {what}: they name people directly.", "sure")
    if look.named(CONTACTS):
        sure: Confidence = "sure" if look.facts.distinctness > 0.5 else "likely"
        return RoleAdvice("drop", "By its name it says how to reach or find a person.", sure)
    own = set(look.words)
    if own & set(NAMES.split()) and own <= set(NAME_PARTS.split()):
        return RoleAdvice("drop", "By its name it holds the names of people.", "sure")
    return None


def _key(look: Look) -> RoleAdvice | None:
    """A column that names each row or person: the best of them becomes the identifier."""
    facts, own = look.facts, set(look.words)
    if look.kind != "text" and not look.whole:
        return None
    full = facts.distinctness >= NEARLY_ALL and facts.rows > 2
    personal, generic = _names_people(look), bool(own & set(GENERIC_KEYS.split()))
    short = look.joined in SHORT_KEYS.split()
    generic = generic or (full and short)
    called = look.joined in f"{PERSONS} {GENERIC_KEYS}".split()
    counts = called and look.whole and (facts.distinct or 0) > FEW_PEOPLE and not _known(look)
    coded = _numbered(look) and (called or bool(own & set(NUMBERS.split())))
    lacking = facts.missing > (FEW_LACK * facts.rows if called else 0)
    again = (short or counts or coded) and LEAST_KEY <= facts.distinctness <= 0.5 and not lacking
    counted = full and bool(own & set(NUMBERS.split())) and not _known(look)  # a number or code, all different
    rank = 4 * personal + 2 * facts.unique + generic
    if personal or again or (generic and facts.distinctness > 0.5) or counted:
        sure: Confidence = "sure" if facts.unique else "likely"
        reason = f"By its name it is the key of a person or row.{_repeats(facts)}"
        return RoleAdvice("identifier", reason, sure, rank=rank)
    if full and look.kind == "text" and look.shaped(KEY_PATTERN) and not _known(look):
        return RoleAdvice("identifier", "Nearly every row has a code of its own.", "likely", rank=rank)
    return None


def _numbered(look: Look) -> bool:
    """Whether codes count something, as P00001, P00002: of one length, behind one letter. Codes of diseases do not."""
    if look.kind != "text" or (look.facts.distinct or 0) <= FEW_PEOPLE or not look.shaped(KEY_PATTERN):
        return False
    texts = look.values.drop_nulls()
    return texts.str.len_chars().n_unique() == 1 and texts.str.slice(0, 1).n_unique() == 1


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
    named = look.named(f"{ZIPS} {CATEGORIES} {QUANTITIES}") or look.subject is not None
    return named or any(look.shaped(shape) for shape in DATE_SHAPES)


def _repeats(facts: Facts) -> str:
    again = facts.rows - facts.missing - ((facts.distinct or 0) - (facts.missing > 0))
    what = [f"{some(again, 'row repeats', 'rows repeat')} it"] * (again > 0) + [
        f"{some(facts.missing, 'row lacks', 'rows lack')} it"
    ] * (facts.missing > 0)
    return f" But {' and '.join(what)}: a release of a series has one row per person." if what else ""


def _prose(look: Look) -> RoleAdvice | None:
    if look.kind != "text":
        return None
    long = float(look.sample.str.len_chars().mean() or 0) > 40  # type: ignore[arg-type]
    if (long and look.facts.distinctness > 0.5) or (look.named(TEXTS) and look.facts.distinctness > 0.2):
        return RoleAdvice("drop", "It is free text, which may say anything about anyone.", "sure" if long else "likely")
    return None


def _sensitive(look: Look) -> RoleAdvice | None:
    if look.kind == "date" or look.named(ZIPS):
        return None
    codes = look.kind == "text" and look.shaped(ICD_PATTERN) and not _numbered(look)
    if codes and (look.medical or look.subject == "health"):
        reason = (
            "Its values look like ICD codes of diagnoses. If outsiders know it instead, make it quasi with "
            "prefixes = [3, 1]: disease, then chapter."
        )
        return RoleAdvice("sensitive", reason, "likely", {"type": "category"})
    if look.subject is not None:
        reason = f"By its name it is about {look.subject}: what people would not want known."
        if look.kind == "number" and (look.facts.distinct or 0) > 20:
            reason += " Different numbers may still be close to each other: see `reveil explain epsilon-m`."
        return RoleAdvice("sensitive", reason, "likely", {"type": _type(look)})
    if look.told is not None and not look.named(f"{CATEGORIES} {QUANTITIES}"):
        return RoleAdvice("sensitive", f"Its values are words about {look.told}.", "likely", {"type": "category"})
    return None


def _type(look: Look) -> str:
    """Two numbers are a yes and a no; others have an order."""
    return (
        "number" if look.kind == "number" and (look.facts.distinct or 0) > 2 + (look.facts.missing > 0) else "category"
    )


MOVING = (
    " By its name it is another one at each visit: in a series it changes for everybody from release to release, and "
    "all of them together tell more of a person than one does. Drop it, or keep the year alone, unless it is needed."
)


def moves_by_name(name: str, dtype: pl.DataType) -> bool:
    """Whether a date, or an age, is by its name that of an event, and so another one at each visit.

    >>> [moves_by_name(*one) for one in (("admitted", pl.Date()), ("birth_date", pl.Date()), ("age", pl.Int64()))]
    [True, False, False]
    """
    look = Look(pl.Series(name, [], dtype=dtype))
    dated = dtype == pl.Date and not look.named(BIRTHS)
    return look.named(EVENTS) and (dated or look.named("age alter edad"))


def _date(look: Look) -> RoleAdvice | None:
    birth = look.named(BIRTHS)
    days, other = look.days
    if days is not None and other is not None:
        reason = (
            f"Dates as text that could be {other}. To publish months or years of them, say which is first under "
            '[input], such as dates = "day-first", and give this column type = "date" and levels.'
        )
        return RoleAdvice("drop", reason, "likely")
    if days is not None:
        reason = "A birth date is widely known." if birth else "Others may know a date such as a visit or a move."
        reason += MOVING if look.named(EVENTS) and not birth else ""
        spec = {"type": "date", "levels": _levels(days, birth)}
        return RoleAdvice(
            "quasi", f"{reason} The levels follow the span of the dates.", "sure" if birth else "likely", spec
        )
    if look.shaped(ISO_DATE) or look.shaped(PACKED_DATE):
        keep = [7, 4] if look.shaped(ISO_DATE) else [6, 4]
        reason = "Nearly all are dates, which others may know; their first characters are month and year."
        return RoleAdvice("quasi", reason, "likely", {"type": "category", "prefixes": keep})
    if look.kind == "text" and look.shaped(LOCAL_DATE):
        return _nearly_dates(look)
    if birth and look.kind == "number":
        return RoleAdvice("quasi", "A year or month of birth is widely known.", "sure", {"type": "number"})
    return None


def _nearly_dates(look: Look) -> RoleAdvice:
    """Dates but for a few cells, such as 31.02.: shown as dates once these are mended, or said to be missing."""
    texts = look.values.cast(pl.String)
    days, _, other = read_days(texts)
    odd = (days.is_null() & texts.is_not_null()).arg_true()
    if other is not None or ABOUT_ALL * len(odd) > len(texts):
        reason = "Dates as text, but not all of them; write them as YYYY-MM-DD to publish months or years of them."
        return RoleAdvice("drop", reason, "likely")
    which = ", ".join(str(place + 1) for place in odd.head(SHOWN_ROWS)) + ", ..." * (len(odd) > SHOWN_ROWS)
    none = some(len(odd), "cell is none", "cells are none")
    reason = f"Dates, but {none} (row {which}): mend, or list as missing under nulls."
    return RoleAdvice("quasi", reason, "likely", {"type": "date", "levels": _levels(days, look.named(BIRTHS))})


def _levels(dates: pl.Series, birth: bool) -> list[str]:
    """Calendar levels with a handful of steps or more in a table of this span."""
    low, high = dates.min(), dates.max()
    days = (high - low).days if isinstance(low, date) and isinstance(high, date) else 0
    if days <= 31 and not birth:
        return ["day", "month", "year"]
    if days <= 3 * 366 and not birth:
        return ["month", "quarter", "year"]
    return ["quarter", "year", "decade"] if days <= 15 * 366 and not birth else ["year", "decade"]


def _postcode(look: Look) -> RoleAdvice | None:
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
    return RoleAdvice("quasi", reason, "sure", spec)


def _common(look: Look) -> RoleAdvice | None:
    """Traits that others know or can see, by the name of the column."""
    special = " Origin is special all the same (GDPR, article 9)." if stemmed(look.parts, ORIGIN) else ""
    if look.named(CATEGORIES) and look.kind != "date":
        ordered = look.kind == "number" and look.named(ORDERED)
        reason = f"Others know this about a person, or can see it.{special}"
        return RoleAdvice("quasi", reason, "sure", {"type": "number" if ordered else "category"})
    if look.named(QUANTITIES):
        reason = "Others know or can estimate this about a person."
        reason += MOVING if look.named("age alter edad") and look.named(EVENTS) else ""
        return RoleAdvice("quasi", reason, "sure", {"type": "number" if look.kind == "number" else "category"})
    if (stemmed(look.parts, KNOWN) or special) and look.kind != "date":
        return RoleAdvice(
            "quasi", f"By its name others may know it, or see it.{special}", "likely", {"type": _type(look)}
        )
    return None


def _sample_weight(look: Look) -> RoleAdvice | None:
    heavy = (
        look.named("weight gewicht poids peso") and (look.facts.high or 0) > HEAVIEST if look.kind == "number" else 0
    )
    if look.kind == "number" and (look.named(SAMPLE_WEIGHTS) or heavy):
        reason = "It looks like a weight of a survey: how many people a row stands for, which would name rows."
        return RoleAdvice("drop", reason, "likely")
    return None


def _unknown(look: Look) -> RoleAdvice:
    """Caution first: what others might know is a quasi-identifier, what might name a row stays out."""
    names_rows = look.kind == "text" or look.whole
    if names_rows and look.facts.rows > 2 and look.facts.distinctness >= NEARLY_ALL:
        reason = "Nearly every row has its own value, so it may name people; a measurement could be quasi."
        return RoleAdvice("drop", reason, "guess")
    if look.facts.rows and look.facts.missing >= NEARLY_ALL * look.facts.rows:
        share = f"{look.facts.missing / look.facts.rows:.0%}".replace("%", " %")
        reason = f"It is empty in {share} of rows: the few who have something would stand out."
        return RoleAdvice("drop", reason, "guess")
    coded = bool(set(look.words) & {"id", "code", "cat", "type"})  # numbers without an order
    kind = "category" if coded else _type(look)
    reason = "Not recognised, so others may know it; make it insensitive only when nobody outside can."
    if look.facts.distinct == 1:
        reason = "The same in every row now, but a later release may differ; treated as known to others."
    return RoleAdvice("quasi", reason, "guess", {"type": kind})


RULES: Sequence[Callable[[Look], RoleAdvice | None]] = (
    *(_row_index, _unusable, _contact, _key, _prose, _unlabelled, _sample_weight),
    *(_sensitive, _date, _postcode, _common, _unknown),
)
