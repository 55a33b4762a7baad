"""Whom the promise is about, where one row is not one person: the [people] section of a policy, and households.

    [people]
    rows = "many"     # a person may have several rows: they are published, and counted, as one
    most = 4          # at most so many of them are shown; which ones is drawn by lot

In a series (`history/bags.py`) all values of a person are one value that stays, and cohorts keep it whole.

A column with the role `household` says who lives together: then all rows of a household are published as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from reveil.base.sections import Section
from reveil.guarantees.catalog import descriptors

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


class PeopleSection(Section):
    """How many rows a person may have, and how many of them are shown."""

    rows: Literal["one", "many"] = "one"
    most: Annotated[int, Field(ge=1)] | None = None


def people_faults(policy: Policy) -> list[str]:
    """What promises about people with several rows, or about households, need."""
    faults, households = [], policy.named("household")
    if policy.people.rows == "many" and policy.identifier is None:
        faults.append('people.rows = "many" needs a column with the role identifier: which rows are whose')
    if len(households) > 1:
        faults.append(f"several columns with the role household ({', '.join(households)}); join them into one first")
    if policy.people.most is not None and not policy.bundled:
        faults.append('people.most does nothing unless people.rows = "many" or a column has the role household')
    return faults + _promise_faults(policy) + _method_faults(policy) if policy.bundled else faults


def _promise_faults(policy: Policy) -> list[str]:
    """Models that have no meaning for somebody with several values at once, or whose series is not worked out."""
    if policy.guarantee.series:
        return _series_faults(policy)
    able = ", ".join(one.name for one in descriptors().values() if one.bundles and not one.family.series)
    faults = [
        f"{one.name} has no meaning where {policy.bundled} have several rows: it looks at one value of each; use {able}"
        for one, _ in policy.guarantee.described
        if not one.bundles
    ]
    return faults + [
        f"{text}: it looks at one value of each; use another"
        for one in policy.guarantee.conditions
        if (text := one.unbundled)
    ]


def _series_faults(policy: Policy) -> list[str]:
    """What a series of people with several rows needs: whole bundles that stay, in two tables."""
    promise, method, who = policy.guarantee, policy.method, policy.bundled
    if not promise.descriptor.bundles:
        able = ", ".join(one.name for one in descriptors().values() if one.bundles and one.family.series)
        return [
            f'model "{promise.model}" follows one value of each person, and {who} with several rows have several: what '
            f"these tell together over releases is worked out for {able} alone, whose values never change; use that, "
            "publish one row of each (--where), or one release (reveil anonymize)"
        ]
    where, faults = f"where {who} have several rows", []
    if not method.boxed or method.steady:
        faults.append(f'a series {where} needs publish = "anatomy" with people = "boxes": people apart from bundles')
    if isinstance(getattr(promise.headline, "refill", None), int):
        faults.append(f'refill needs newcomers with exactly a leaver\'s values, all of them, {where}; use "never"')
    beside = [one.needs[0] for one, _ in promise.described if one is not promise.descriptor and one.sensitive != "none"]
    if beside:
        faults.append(f"{', '.join(beside)} looks at one value of each row, and bundles have several: leave it out")
    if len(policy.named("sensitive")) > 1:
        faults.append(f"several sensitive columns in a series {where} are not worked out; join them into one first")
    if policy.audit.gate:
        faults.append(f"[audit] gate attacks series of people with one row each, and {who} may have several here")
    taken = [name for name in ("bundle",) if name in policy.columns]
    return faults + [f"bundles need the column name `{name}` for themselves; rename yours" for name in taken]


def _method_faults(policy: Policy) -> list[str]:
    """Ways of planning and publishing that look at rows one by one."""
    method, faults = policy.method, []
    rows = f"where {policy.bundled} have several rows"
    taken = [n for n in (policy.bundle,) if n in policy.columns and policy.columns[n].published]
    renamed = [f"column {name!r} is a name that the release uses for itself; rename yours" for name in taken]
    if policy.guarantee.series:
        withhold = f'infeasible = "withhold" leaves out rows by their value {rows}; use "wait" or "refuse"'
        return renamed + ([withhold] if method.infeasible == "withhold" else [])
    if method.name not in ("auto", "mondrian"):
        faults.append(f'method "{method.name}" recodes rows one by one, which parts them {rows}; use "mondrian"')
    if method.two_tables:
        faults.append(f'publish = "anatomy" parts values from their rows {rows}; use "generalized"')
    if method.infeasible != "refuse":
        faults.append(f'infeasible = "{method.infeasible}" leaves out rows by their value {rows}; use "refuse"')
    return faults + renamed
