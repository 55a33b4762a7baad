"""Whom the promise is about, where one row is not one person: the [people] section of a policy, and households.

    [people]
    rows = "many"     # a person may have several rows: they are published, and counted, as one
    most = 4          # at most so many of them are shown; which ones is drawn by lot

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
    able = ", ".join(one.name for one in descriptors().values() if one.bundles)
    if policy.guarantee.series:
        return [
            f'model "{policy.guarantee.model}" publishes a series, and {policy.bundled} with several rows are '
            "published in one release only: cohorts of bundles that change from release to release are not worked "
            "out; publish one row of each (--where), or one release (reveil anonymize)"
        ]
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


def _method_faults(policy: Policy) -> list[str]:
    """Ways of planning and publishing that look at rows one by one."""
    method, faults = policy.method, []
    rows = f"where {policy.bundled} have several rows"
    if method.name not in ("auto", "mondrian"):
        faults.append(f'method "{method.name}" recodes rows one by one, which parts them {rows}; use "mondrian"')
    if method.two_tables:
        faults.append(f'publish = "anatomy" parts values from their rows {rows}; use "generalized"')
    if method.infeasible != "refuse":
        faults.append(f'infeasible = "{method.infeasible}" leaves out rows by their value {rows}; use "refuse"')
    taken = [n for n in (policy.bundle,) if n in policy.columns and policy.columns[n].published]
    return faults + [f"column {name!r} is a name that the release uses for itself; rename yours" for name in taken]
