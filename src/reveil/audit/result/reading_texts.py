"""How released tables were read, in words: what each column was taken for, who was placed, whom rows fit."""

from __future__ import annotations

from reveil.audit.input.observed import Observed, TableReading
from reveil.base.words import agree, some, some_people


def reading_texts(o: Observed) -> tuple[str, ...]:
    """The sentences in order; those that say nothing are left out."""
    reading = o.reading
    assert reading is not None
    texts = [_columns(reading), *_missing(reading), _labels(reading), _placed(reading, o), _strangers(reading)]
    return tuple(text for text in texts if text)


def _columns(reading: TableReading) -> str:
    known = list(dict.fromkeys(name for names in reading.quasi for name in names))
    text = (
        f"Columns: {reading.column!r} is taken as sensitive, {', '.join(known)} as known of everybody, and "
        f"{reading.identifier!r} as who they are."
    )
    if reading.others:
        have = agree(len(reading.others), "may be sensitive as well: it is", "may be sensitive as well: they are")
        text += f" {', '.join(reading.others)} {have} looked at apart."
    if reading.empty:
        text += f" Left out, for it only numbers the rows: {', '.join(reading.empty)}."
    return text


def _missing(reading: TableReading) -> list[str]:
    """Releases that lack a column which others have."""
    every = list(dict.fromkeys(name for names in reading.quasi for name in names))
    texts = [
        f"Release {release} does not show {', '.join(lacking)}."
        for release, names in zip(reading.releases, reading.quasi, strict=True)
        if (lacking := [name for name in every if name not in names])
    ]
    if reading.without:
        which = ", ".join(reading.without)
        texts.append(f"Nothing follows from release {which}, which does not show {reading.column!r}.")
    return texts


def _labels(reading: TableReading) -> str:
    """How labels of releases were given to tables, where they are no numbers from 1 on."""
    numbered = all(name == str(n) for n, name in enumerate(reading.releases, 1))
    if numbered or reading.without or not reading.labelled:
        return ""
    pairs = ", ".join(f"{name} is table {n}" for n, name in enumerate(reading.releases, 1))
    return f"Releases by the column release of the population: {pairs}."


def _placed(reading: TableReading, o: Observed) -> str:
    how = "by their quasi-identifiers"
    if reading.overlaps:
        how += f" and by counting ({some(reading.overlaps, 'release has', 'releases have')} groups that overlap)"
    share = f"{reading.placed:,} of {some(reading.appearances, 'appearance')}"
    text = f"Placed in one group: {share} of {some_people(len(set(o.app_person.tolist())))}, {how}."
    if reading.away:
        text += f" {reading.away:,} of them need not be in the release, which has fewer rows than people who fit."
    return text


def _strangers(reading: TableReading) -> str:
    if not reading.strangers:
        return "Every row fits somebody of the population."
    have = agree(reading.strangers, "row fits", "rows fit")
    return f"{reading.strangers:,} {have} nobody who is listed and free: the population lacks people."
