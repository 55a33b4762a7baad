"""A first policy for a table nobody has described yet: roles and generalisations, each with its reason.

Works offline from the names and values of the columns (`reveil.start.columns`), and errs on the side of caution: what
it does not understand is treated as known to outsiders, and what could name a person is never published.
The draft gives reasons, counts and shares; it never quotes a value of the table, because policies are shared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError
from reveil.base.text import plain_text
from reveil.hierarchies.files import read_paths
from reveil.policy.column import Role
from reveil.report.toml_text import inline, key
from reveil.start.columns import Confidence, RoleAdvice, advise
from reveil.start.looks import Facts, Look, words
from reveil.start.promises import needs_harmless, promise
from reveil.start.several_rows import hindrance, promise_to_people
from reveil.start.vocabulary import CHANGING, PERIODS, SHORT_KEYS, named

MOST_PERIODS = 400  # releases that one table may hold
SHARE_OF_PEOPLE = 5  # a fifth of the people at least stand in each period, on average
MOST_QUASI = 10  # more quasi-identifiers than this leave little detail
YEAR_FLAG = re.compile(r"^[dty](19|20)?\d{2}$")  # y94: whether it was 1994
NUMBERED, NAMELESS = re.compile(r"\d$"), re.compile(r"^column_\d+$")  # x12 is no square of x1; the file had no header
FEWEST, ABOUT = 3, 5  # so many columns about one matter, and a fifth of all, say what a table is about
SECTIONS: Mapping[Role, str] = {
    "identifier": "Says which rows of different releases are the same person. Never published.",
    "quasi": "Others may know these (quasi-identifiers). They are generalised until nobody stands out.",
    "sensitive": "Must not be linked to a person. Published as they are, in groups that are mixed enough.",
    "drop": "Left out of every release.",
}
LONE = (
    "No column says which rows of several releases are the same person, so this is for one release:",
    "`reveil anonymize`. A series (`reveil publish`) needs a column with the role identifier.",
)
TAIL = """
[output]
format = "csv"             # or "parquet"
"""


@dataclass(frozen=True)
class Suggestion:
    """What a column seems to be. `spec` is its entry in the policy; `reason` quotes no value."""

    column: str
    role: Role
    spec: Mapping[str, Any]
    reason: str
    confidence: Confidence
    facts: Facts
    changed: Fraction = Fraction(0)  # a sensitive one: share of people for whom the next period has another value

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, without any value of the table."""
        return {
            "column": self.column,
            "spec": dict(self.spec),
            "reason": self.reason,
            "confidence": self.confidence,
            "rows": self.facts.rows,
            "distinct": self.facts.distinct,
            "missing": self.facts.missing,
            "top_share": round(self.facts.top_share, 4),
        }


def suggest(frame: pl.DataFrame) -> tuple[Suggestion, ...]:
    """Suggest a role for each column, in the order of the table.

    >>> people = pl.DataFrame({"patient_id": ["P1", "P2"], "age": [31, 35], "diagnosis": ["flu", "HIV"]})
    >>> [(found.column, found.role, found.confidence) for found in suggest(people)]
    [('patient_id', 'identifier', 'sure'), ('age', 'quasi', 'sure'), ('diagnosis', 'sensitive', 'likely')]
    """
    looks = [Look(column) for column in frame]
    medical = sum(look.subject == "health" for look in looks)
    for look in looks:
        look.medical = medical > (look.subject == "health")
    advices = _in_company(frame.columns, looks, [advise(look) for look in looks])
    ranks = [advice.rank if advice.role == "identifier" else -1 for advice in advices]
    if max(ranks, default=-1) < 0 and (place := _repeated_key(frame, looks, advices)) is not None:
        advices[place] = RoleAdvice(
            "identifier", "Its values come again from period to period, as people do.", "likely"
        )
        ranks[place] = 0
    chosen = ranks.index(max(ranks)) if ranks and max(ranks) >= 0 else -1
    for place, advice in enumerate(advices):
        if advice.role == "identifier" and place != chosen:
            reason = f"{advice.reason} Another column is the identifier, and this one would name people too."
            advices[place] = advice._replace(role="drop", reason=reason)
    changed = dict[str, Fraction]()
    if chosen >= 0 and (period := _period(frame, chosen, looks)) is not None:
        shown = repr(period)[1:-1]  # a control character in a comment is no TOML
        reason = f"{advices[chosen].reason} Together with '{shown}' it is unique: publish one {shown} at a time."
        advices[chosen] = advices[chosen]._replace(reason=reason)
        private = [name for name, a in zip(frame.columns, advices, strict=True) if a.role == "sensitive"]
        changed = _changed(frame, frame.columns[chosen], period, private)
    return tuple(
        Suggestion(
            *(name, a.role, {"role": a.role, **a.spec}, a.reason + _says(changed.get(name)), a.confidence, look.facts),
            changed.get(name, Fraction(0)),
        )
        for name, a, look in zip(frame.columns, advices, looks, strict=True)
    )


def _changed(frame: pl.DataFrame, key: str, period: str, private: Sequence[str]) -> dict[str, Fraction]:
    """Of people's appearances that have a next one, the share after which a column has another value."""
    line = frame.filter(pl.col(key).is_not_null()).sort(key, period)
    again = (line[key] == line[key].shift(-1)).fill_null(False)
    times = int(again.sum())
    others = {name: int((line[name].ne_missing(line[name].shift(-1)) & again).sum()) for name in private}
    return {name: Fraction(count, times) for name, count in others.items() if count}


def _says(changed: Fraction | None) -> str:
    share = "" if changed is None else f"{float(changed):.1%}".replace("%", " %")
    return f" From one period to the next it changes for {share} of people." if share else ""


def _in_company(names: Sequence[str], looks: Sequence[Look], advices: Sequence[RoleAdvice]) -> list[RoleAdvice]:
    """What the other columns of a table tell about one: whose square or logarithm it is, what the table is about."""
    own = dict(zip(names, advices, strict=True))
    bases = [_base(name, names) for name in names]
    private = [look.subject for look, advice in zip(looks, advices, strict=True) if advice.role == "sensitive"]
    about = max(set(private), key=lambda subject: (private.count(subject), str(subject)), default=None)
    told = len(private) >= FEWEST and ABOUT * len(private) >= len(names)
    result = []
    for advice, other, look in zip(advices, bases, looks, strict=True):
        base = None if other is None else own[other]
        if base is not None and base.role in ("quasi", "sensitive") and look.kind == "number":
            reason = "By its name it is made from another column, and tells the same."
            result.append(advice._replace(role=base.role, reason=reason, confidence="likely", spec={"type": "number"}))
        elif told and _says_nothing(look, advice):
            reason = f"Its name says nothing. The table is about {about}, so this may be, too: unsure, look twice."
            result.append(advice._replace(role="sensitive", reason=reason))
        else:
            result.append(advice)
    return result


def _says_nothing(look: Look, advice: RoleAdvice) -> bool:
    unknown = advice.role == "quasi" and advice.confidence == "guess"
    period = look.named(PERIODS) or YEAR_FLAG.match(look.joined)
    return unknown and look.kind in ("number", "flag") and not period


def _base(name: str, names: Sequence[str]) -> str | None:
    """The column of which this is the square or logarithm, by its name."""
    tries = [name.removesuffix(end) for end in ("sq", "_sq", "squared", "_squared")]
    tries += [name.removeprefix(start) for start in ("log_", "log", "ln_", "ln", "l")]
    squared = name.removesuffix("2")
    tries += [] if NUMBERED.search(squared) else [squared]
    return next((base for base in tries if base != name and base in names), None)


def _repeated_key(frame: pl.DataFrame, looks: Sequence[Look], advices: Sequence[RoleAdvice]) -> int | None:
    """A column of codes that, with a period, names each row: a table of several releases of the same people."""
    rows = frame.height
    periods = [
        n for n, look in enumerate(looks) if look.named(PERIODS) and 1 < (look.facts.distinct or 0) <= MOST_PERIODS
    ]
    keys = [
        n
        for n, (look, advice) in enumerate(zip(looks, advices, strict=True))
        if (look.kind == "text" or look.whole)
        and not look.facts.missing
        and (advice.confidence == "guess" or look.joined in SHORT_KEYS.split())
        and rows > 2 * (look.facts.distinct or 0) > 2 * FEWEST
    ]
    pairs = ((key, period) for key in keys for period in periods if key != period)
    unique = (
        key for key, period in pairs if frame.select(frame.columns[key], frame.columns[period]).n_unique() == rows
    )
    return next(unique, None) if periods else _followed(frame, looks, keys)


def _followed(frame: pl.DataFrame, looks: Sequence[Look], keys: Sequence[int]) -> int | None:
    """Of a file without a header the column that is a key by what others do: some never change within a value of it."""
    if not all(map(NAMELESS.match, frame.columns)):
        return None
    told = [frame.columns[n] for n, look in enumerate(looks) if (look.facts.distinct or 0) > 1]
    for place in keys:
        name = frame.columns[place]
        within = frame.group_by(name).agg(pl.col(other).n_unique() for other in told if other != name).drop(name)
        if sum(column.max() == 1 for column in within) >= FEWEST and _period(frame, place, looks) is not None:
            return place
    return None


def _period(frame: pl.DataFrame, key: int, looks: Sequence[Look]) -> str | None:
    """A column of few values that tells rows of the same person apart: the table holds several releases."""
    if looks[key].facts.distinctness == 1:
        return None
    sizes = [(look.facts.distinct or 0, place) for place, look in enumerate(looks) if place != key]
    known = frame.filter(frame.to_series(key).is_not_null())
    few = (frame.columns[place] for distinct, place in sorted(sizes) if 1 < distinct <= MOST_PERIODS)
    pairs = (known.select(frame.columns[key], name) for name in few)
    return next((pair.columns[1] for pair in pairs if pair.n_unique() == known.height), None)


def first_period(frame: pl.DataFrame, suggestions: Sequence[Suggestion]) -> tuple[str, str] | None:
    """Where people come again from period to period: the column of the period, and its first value.

    >>> panel = pl.DataFrame({"person_id": ["a", "b", "a", "b"], "year": [1985, 1985, 1986, 1986]})
    >>> first_period(panel, suggest(panel))
    ('year', '1985')
    """
    keys = [place for place, suggestion in enumerate(suggestions) if suggestion.role == "identifier"]
    period = _period(frame, keys[0], [Look(column) for column in frame]) if keys else None
    if period is None or next(s for s in suggestions if s.column == period).role == "sensitive":
        return None
    values, people = frame[period].drop_nulls(), frame.to_series(keys[0]).n_unique()
    few = SHARE_OF_PEOPLE * len(values) < people * values.n_unique()  # as on each day of many visits
    return None if few or values.is_empty() else (period, plain_text(values.min()))


def rows_of_people(frame: pl.DataFrame, suggestions: Sequence[Suggestion]) -> str:
    """The sections of a first policy where people have several rows that no period tells apart; else nothing.

    >>> visits = pl.DataFrame({"patient_id": [1, 1, 2, 2, 3], "age": [30, 30, 41, 41, 52]})
    >>> print(rows_of_people(visits, suggest(visits)).splitlines()[-2])
    rows = "many"              # all rows of a person are published together, and promises are about people
    """
    key = next((s for s in suggestions if s.role == "identifier"), None)
    if key is None or key.facts.distinctness == 1 or first_period(frame, suggestions) is not None:
        return ""
    if frame[key.column].drop_nulls().n_unique() == 1:  # nobody else to be hidden among
        return ""
    return promise_to_people(frame, key.column, [s.column for s in suggestions if s.role == "sensitive"])


def draft_policy(
    suggestions: Sequence[Suggestion],
    name: str,
    hierarchies: Mapping[str, str] | None = None,
    reading: Mapping[str, Any] | None = None,
    promised: str = "",
) -> str:
    """The text of a `reveil.toml` with a comment for every column.

    `hierarchies` are files beside the table, by column (`find_hierarchies`); quasi-identifiers use theirs. `reading` is
    how the table was read (`first_look`): the policy keeps it. `promised`: sections settled before (`rows_of_people`).

    >>> draft = draft_policy(suggest(pl.DataFrame({"age": [31, 35, 35], "sex": ["F", "M", "F"]})), "people")
    >>> print(draft.split("[columns]")[1].split("[values]")[0].strip())
    # Others may know these (quasi-identifiers). They are generalised until nobody stands out.
    # Others know or can estimate this about a person.
    # sure: 2 distinct values, the most frequent in 66.7 % of rows
    age = { role = "quasi", type = "number" }
    # Others know this about a person, or can see it.
    # sure: 2 distinct values, the most frequent in 66.7 % of rows
    sex = { role = "quasi", type = "category" }
    """
    by_role = {role: [s for s in suggestions if s.role == role] for role in SECTIONS}
    _refuse_without_quasi(by_role["quasi"], suggestions)
    changed = any(suggestion.changed for suggestion in by_role["sensitive"])
    together = (
        bool(by_role["identifier"]) and not changed and not promised
    )  # a promise about all releases together can be made
    if together and needs_harmless([suggestion.facts for suggestion in by_role["sensitive"]]):
        by_role["sensitive"] = [_with_harmless(suggestion) for suggestion in by_role["sensitive"]]
    files = hierarchies or {}
    lone = [] if by_role["identifier"] else [f"# {line}" for line in LONE]
    lone += [f"# {line}" for s in by_role["identifier"] for line in wrap(hindrance(s.column, s.facts), 100)]
    lines = [
        "# Suggested by `reveil init` from the names and values of the columns. Read each reason and correct",
        "# the role where you know better: identifier, quasi, sensitive, insensitive (nobody outside knows",
        "# it, and it harms nobody) or drop. `reveil explain WORD` explains the words used here.",
        "# The comments hold reasons, counts and shares, but no values of the table.",
        *lone,
        *("", "[series]", f"name = {inline(name or 'series')}"),
        *(("", "[input]") if reading else ()),
        *(f"{name} = {inline(value)}" for name, value in (reading or {}).items()),
        *("", "[columns]"),
    ]
    for role, title in SECTIONS.items():
        listed = by_role[role]
        if not listed:
            continue
        lines += [f"# {title}", *(_many(listed) if role == "quasi" else [])]
        for suggestion in listed:
            lines += [*_comments(suggestion, files.get(suggestion.column)), _entry(suggestion, files)]
        lines.append("")
    sensitive = [suggestion.facts for suggestion in by_role["sensitive"]]
    promised = promised or promise(
        sensitive,
        suggestions[0].facts.rows,
        known_again=bool(by_role["identifier"]),
        changing=any(named(words(suggestion.column), CHANGING) for suggestion in by_role["sensitive"]),
        changed=changed,
    )
    return "\n".join(lines) + "\n" + promised + TAIL


def _with_harmless(suggestion: Suggestion) -> Suggestion:
    """Frequent values that mean none need no bound; without that, a series could promise nothing."""
    if not suggestion.facts.nothing:
        return suggestion
    reason = f"{suggestion.reason} Its frequent values that mean none, or missing, are taken for harmless: look twice."
    spec = {**suggestion.spec, "harmless": list(suggestion.facts.nothing)}
    return replace(suggestion, reason=reason, spec=spec)


def _refuse_without_quasi(quasi: Sequence[Suggestion], suggestions: Sequence[Suggestion]) -> None:
    if quasi:
        return
    roles = ", ".join(f"{s.column!r} {s.role}" for s in suggestions) or "it has no columns"
    message = f"no column looks like one that others could know ({roles})"
    remedy = "write a policy by hand in which at least one column is quasi, or add such a column to the table"
    raise InputError(Fault("R290", "table", message, remedy))


def _many(suggestions: Sequence[Suggestion]) -> list[str]:
    if len(suggestions) <= MOST_QUASI:
        return []
    return [
        f"# These are {len(suggestions)}, and each one costs detail in all others: drop what nobody needs,",
        "# and make insensitive what nobody outside can know.",
    ]


def _comments(suggestion: Suggestion, file: str | None) -> list[str]:
    facts, role = suggestion.facts, suggestion.role
    counts = [] if facts.distinct is None else [f"{facts.distinct:,} distinct value{'s' * (facts.distinct != 1)}"]
    counts += [f"{facts.missing:,} missing"] * (facts.missing > 0)
    counts += [f"the most frequent in {facts.top_share:.1%} of rows".replace("%", " %")] * (facts.top_rows > 1)
    lines = [f"# {line}" for line in wrap(suggestion.reason, 100)]
    lines.append(f"# {suggestion.confidence}: {', '.join(counts) or 'not counted'}")
    if file is not None and role == "sensitive":
        lines.append(f"# Add hierarchy = {inline(file)} to say how alike its values are (t-closeness).")
    return lines


def _entry(suggestion: Suggestion, files: Mapping[str, str]) -> str:
    spec = dict(suggestion.spec)
    if suggestion.role == "quasi" and suggestion.column in files:
        spec = {"role": "quasi", "type": "category", "hierarchy": files[suggestion.column]}
    return f"{key(suggestion.column)} = {inline(suggestion.role if set(spec) == {'role'} else spec)}"


def find_hierarchies(folder: str | Path, columns: Sequence[str]) -> Mapping[str, str]:
    """Hierarchy files named like ARX's, by column: `adult_hierarchy_age.csv`, or just `age.csv`.

    A file that cannot be read as a hierarchy is passed over. Each file serves the one column it fits best.
    """
    names = {column: "".join(words(column)) for column in columns}
    best: dict[str, tuple[int, str]] = {}
    for file in sorted(Path(folder).glob("*.csv")):
        fits = [(_fit(file.stem, plain), len(plain), column) for column, plain in names.items() if plain]
        fit, _, column = max(fits, default=(0, 0, ""))
        if fit > best.get(column, (0, ""))[0] and _is_hierarchy(file, column, min_levels=2 if fit == 1 else 1):
            best[column] = (fit, file.name)
    return {column: best[column][1] for column in columns if column in best}


def _fit(stem: str, column: str) -> int:
    """3: `hierarchy` and the column; 2: both and more; 1: the column alone; 0: something else."""
    parts = words(stem)
    if "hierarchy" not in parts:
        return int("".join(parts) == column)
    place = parts.index("hierarchy")
    if column in ("".join(parts[place + 1 :]), "".join(parts[:place])):
        return 3
    runs = {"".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)}
    return 2 if column in runs else 0


def _is_hierarchy(file: Path, column: str, min_levels: int) -> bool:
    try:
        paths = read_paths(column, file)
    except InputError:
        return False
    return max(map(len, paths.values())) >= min_levels
