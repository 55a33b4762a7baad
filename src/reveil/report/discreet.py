"""What of a release may be handed over: the external report is built from what passes here and from nothing else.

Two rules. Free texts and values of planners and judges (statements, findings, reasons, statistics, details) are never
taken over; the guarantee is explained by the general texts and its numbers instead. Sentences that follow from the
policy (assumptions, limits) are taken over unless they name a value: a quoted word that is no published column, or a
text value of the table or the policy. What is left out is counted, and the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from reveil.guarantees.catalog import descriptors
from reveil.policy.column import Column
from reveil.policy.method import GLOBAL_SCHEMES, MethodSection
from reveil.policy.policy import Policy

PUBLISHED = ("quasi", "sensitive", "insensitive")
WAYS = ("hierarchy", "widths", "cuts", "prefixes", "levels", "order")
TWO_TABLES = {
    "quasi": "published as it is, in a table of people apart from the sensitive values",
    "sensitive": "published as it is, counted per group in a table of its own",
}
BOXED = "in boxes of people, in a table apart from the sensitive values"
LISTED = 12  # entries of a list in the policy that are printed in one line
SHORTEST = 3  # letters of a value that is looked for in sentences; shorter ones are found only in quotes


def public_columns(policy: Policy) -> tuple[str, ...]:
    """Names of the columns that the release shows."""
    return tuple(name for name, spec in policy.columns.items() if spec.role in PUBLISHED)


def _words_of_ours() -> set[str]:
    """Parameters that are words of Reveil's own; any other text in a policy may be a value or the name of a file."""
    return {"model", *(key for one in descriptors().values() for key in one.words_of_ours)}


def raw_values(texts: Iterable[str], policy: Policy) -> set[str]:
    """Every text that may not appear: values of text columns, and values and labels in the policy."""
    raw = set(texts)
    for name, spec in policy.columns.items():
        raw.update(_texts(spec.order or ()))
        raw.update(_texts(spec.hierarchy if isinstance(spec.hierarchy, dict) else ()))
        raw.discard(name)
    words = _words_of_ours()
    for name, value in policy.guarantee.stated.items():
        raw.update(_texts(value) if name not in words else ())
    return raw


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def without_values(sentences: Sequence[str], raw: set[str], policy: Policy) -> tuple[list[str], int]:
    """The sentences that name no value, and how many were left out.

    >>> from reveil.policy.policy import load_policy
    >>> policy = load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 2}})
    >>> without_values(["Others may know: age.", "Protected: lupus.", "Only 'x' matters."], {"lupus"}, policy)
    (['Others may know: age.'], 2)
    """
    columns = set(public_columns(policy))
    text = "\n".join(sentences)
    present = [value for value in raw if len(value) >= SHORTEST and value not in columns and value in text]
    kept = [sentence for sentence in sentences if not _names_value(sentence, present, columns)]
    return kept, len(sentences) - len(kept)


def _names_value(sentence: str, values: Iterable[str], columns: set[str]) -> bool:
    quoted = {a or b for a, b in re.findall(r"(?<!\w)'([^']+)'(?!\w)|\"([^\"]+)\"", sentence)}
    if quoted - columns:
        return True
    return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", sentence) for value in values)


def parameters(policy: Policy, *, internal: bool) -> dict[str, str]:
    """The parameters of the promise that were given. For others: numbers and Reveil's own words only.

    >>> from reveil.policy.policy import load_policy
    >>> content = {"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"k": 2, "l": 2}}
    >>> parameters(load_policy(content), internal=False)
    {'model': 'k-anonymity', 'k': '2', 'l': '2'}
    """
    given = {"model": policy.guarantee.model, **policy.guarantee.stated}
    shown, words = {}, _words_of_ours()
    for name, value in given.items():
        if value is None or value == ():
            continue
        plain = name in words or isinstance(value, (int, float, Fraction))
        shown[name] = _written(value) if internal or plain else "stated in the policy"
    return shown


def _written(value: Any) -> str:
    """A value of the policy in a line; a long list is cut."""
    if not isinstance(value, tuple):
        return str(value)
    more = f" and {len(value) - LISTED} more" if len(value) > LISTED else ""
    return ", ".join(_written(item) for item in value[:LISTED]) + more


def technique(spec: Column, dtype: pl.DataType | None, policy: Policy, *, internal: bool) -> str:
    """How a column was treated, in the words of the trade and in plain ones."""
    method = policy.method
    if method.two_tables and spec.role in TWO_TABLES and not (method.boxed and spec.role == "quasi"):
        return TWO_TABLES[spec.role]
    dealt = policy.promises_series and method.insensitive == "dealt"
    lent = "dealt out anew within each group" if dealt else "as it is"
    fixed = {
        "identifier": "removed; remembered only as a keyed hash",
        "household": "removed; rows of one household are published together, under a number drawn by lot",
        "drop": "removed",
        "sensitive": "published as it is",
        "insensitive": f"published {lent}; taken to tell nobody anything",
    }
    if spec.role in fixed:
        return fixed[spec.role]
    way = next((way for way in WAYS if getattr(spec, way) is not None), None)
    text = _generalised(spec, way, dtype, method) + (f", {BOXED}" if method.boxed else "")
    if internal and way not in (None, "levels") and not isinstance(getattr(spec, way), dict):
        return f"{text} ({way} {_written(getattr(spec, way))})"
    return text


def _generalised(spec: Column, way: str | None, dtype: pl.DataType | None, method: MethodSection) -> str:
    kept = "kept, or suppressed as * (cell suppression)"
    if method.recode == "suppress":
        whole = "kept in all rows, or suppressed as * in all (column suppression)"
        value = "kept, or suppressed as * in all rows of a value (value suppression)"
        return {"full-domain": whole, "subtree": whole, "sibling": value}.get(method.name, kept)
    number = dtype is not None and dtype.is_numeric()
    date = spec.type == "date" or dtype == pl.Date
    free = (way == "order" or (way is None and (number or date))) and method.name not in GLOBAL_SCHEMES
    if method.recode == "sets" and not free:
        return "generalised to the set of values that the group has"
    if way == "widths":
        return "generalised to ranges of fixed widths"
    if way == "cuts":
        return "generalised to ranges with stated ends"
    if way == "prefixes":
        return "generalised to its first characters"
    if way == "order" and free:
        return "generalised to runs of neighbouring categories"
    if way == "hierarchy":
        return "generalised along a stated hierarchy"
    if way == "levels":
        return f"generalised along the calendar: {', '.join(spec.levels or ())}"
    if free:
        return f"generalised to intervals of {'dates' if date else 'numbers'}"
    return kept


def public_policy(policy: Policy, dtypes: Mapping[str, pl.DataType]) -> dict[str, dict[str, Any]]:
    """The policy without anything that could be a value: names of published columns, roles, techniques, numbers."""
    return {
        "series": {"name": policy.series.name},
        "columns": {
            name: {
                "role": policy.columns[name].role,
                "technique": technique(policy.columns[name], dtypes.get(name), policy, internal=False),
            }
            for name in public_columns(policy)
        },
        "values": {"change": policy.values.change},
        "guarantee": parameters(policy, internal=False),
        "method": policy.method.model_dump(mode="json"),
        "output": {"format": policy.output.format},
    }
