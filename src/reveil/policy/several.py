"""What is said of sensitive values on their columns, and what several such columns ask of a policy.

    diagnosis = { role = "sensitive", harmless = ["none"] }
    cost      = { role = "sensitive", change = "never", harmless = [0] }

What one column says for all of them is said by [guarantee] and [values] as well, and is moved there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reveil.guarantees import compromise_safety
from reveil.guarantees.catalog import descriptors
from reveil.guarantees.lasting import CohortTerms
from reveil.policy.column import ABOUT_VALUES, Column

if TYPE_CHECKING:
    from reveil.policy.policy import Policy

KNOWN = (
    "A person of whom any sensitive column is known counts as known. On that person's other sensitive columns there is "
    "no bound: how {columns} go together is known to whoever knows such people."
)


def settled(content: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a policy, with what columns say of their values in its usual place where there is one."""
    sections, columns = dict(content), content.get("columns")
    if not isinstance(columns, Mapping):
        return sections  # which is told by itself
    said = {name: _said(spec) for name, spec in columns.items() if _role(spec) == "sensitive"}
    changes = {about.get("change") for about in said.values()}
    usual = _key(content.get("values"), "change")
    moved = dict[str, list[str]]()
    if len(changes) == 1 and None not in changes and usual is None and isinstance(content.get("values", {}), Mapping):
        usual = changes.pop()
        sections["values"] = {**content.get("values", {}), "change": usual}
    for name, about in said.items():
        if about.get("change") is not None and about["change"] == usual:
            moved.setdefault(name, []).append("change")
    alone = next(iter(said)) if len(said) == 1 else None
    promise = content.get("guarantee")
    if alone is not None and said[alone].get("harmless") and isinstance(promise, Mapping):
        own, before = list(said[alone]["harmless"]), promise.get("harmless") or ()
        sections["guarantee"] = {**promise, "harmless": [*before, *(value for value in own if value not in before)]}
        moved.setdefault(alone, []).append("harmless")
    sections["columns"] = {name: _without(spec, moved.get(name, ())) for name, spec in columns.items()}
    return sections


def by_default(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with newcomers who wait unless the policy says what else becomes of them, where they may."""
    promise, method = content.get("guarantee"), content.get("method", {})
    beside = {key for one in descriptors().values() if one.sensitive == "some" for key in one.asked_by}
    able = isinstance(promise, Mapping) and promise.get("model") == compromise_safety.DESCRIPTOR.name
    if not (able and isinstance(promise, Mapping) and isinstance(method, Mapping)) or "infeasible" in method:
        return dict(content)
    if promise.get("refill", "never") != "never" or beside & {key for key, given in promise.items() if given}:
        return dict(content)
    return {**content, "method": {**method, "infeasible": "wait"}}


def _key(section: object, key: str) -> Any:
    return section.get(key) if isinstance(section, Mapping) else getattr(section, key, None)


def _role(spec: object) -> object:
    return spec if isinstance(spec, str) else _key(spec, "role")


def _said(spec: object) -> dict[str, Any]:
    return {key: value for key in ABOUT_VALUES if not isinstance(spec, str) and (value := _key(spec, key)) is not None}


def _without(spec: Any, keys: list[str] | tuple[str, ...]) -> Any:
    if isinstance(spec, Column) and keys:
        return spec.model_copy(update=dict.fromkeys(keys))
    return {key: value for key, value in spec.items() if key not in keys} if keys else spec


def value_faults(policy: Policy) -> list[str]:
    """What columns say of their values that the promise cannot keep."""
    promise, names = policy.guarantee.descriptor, policy.named("sensitive")
    faults = [
        f'columns.{name}.change = "{policy.columns[name].change}" is another kind of change than that of the other '
        "sensitive columns: each way of showing both tells one of them (docs/anatomy.md has the smallest cases); leave "
        "this column out, or publish it in a series of its own if it says nothing about the others"
        for name in names
        if policy.columns[name].change is not None
    ]
    if not policy.promises_series:
        binned = [name for name in names if policy.columns[name].bins]
        faults += [f"columns.{name}.bins is for a promise about a series; round the table's values" for name in binned]
    listed = [name for name in names if policy.columns[name].harmless]
    if listed and not (promise.several and len(names) > 1):
        faults.append(
            f"columns.{listed[0]}.harmless needs a model that keeps each of several sensitive columns apart "
            f"({_able()}); guarantee.harmless is for all columns"
        )
    return faults


def several_faults(policy: Policy) -> list[str]:
    """What a promise about people over time needs for several sensitive columns at once."""
    promise, terms = policy.guarantee.descriptor, policy.guarantee.find(CohortTerms)
    if not promise.several:
        return [
            f'model "{promise.name}" needs exactly one sensitive column: {_able()} keeps several, in two tables; or '
            "join them into one first"
        ]
    faults = []
    if not policy.method.two_tables:
        faults.append(
            'several sensitive columns need publish = "anatomy" (two tables): in one table whoever knows one value of '
            "a row reads the others beside it"
        )
    if terms is not None and isinstance(terms.refill, int):
        faults.append(
            'several sensitive columns need refill = "never": a place is refilled by whoever has all its values'
        )
    beside = [one.needs[0] for one, _ in policy.guarantee.described if one.sensitive == "some"]
    if beside:
        faults.append(f"several sensitive columns in a series go without {', '.join(beside)}: values may repeat there")
    return faults


def _able() -> str:
    return ", ".join(one.name for one in descriptors().values() if one.several)


def known_limit(policy: Policy) -> list[str]:
    """What several sensitive columns of one person leave open, for the certificate."""
    names = policy.named("sensitive")
    if len(names) < 2 or not policy.guarantee.descriptor.several:
        return []
    return [KNOWN.format(columns=" and ".join(repr(name) for name in names))]
