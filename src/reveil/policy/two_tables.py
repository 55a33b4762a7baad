"""What two tables, people and values apart (`publish = "anatomy"`), ask of the rest of a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reveil.guarantees.catalog import descriptors
from reveil.guarantees.descriptor import ONE_RELEASE
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.policy.method import TWO_TABLES

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


def two_table_faults(policy: Policy) -> list[str]:
    """What does not go together with the way in which people and values are published."""
    method, given = policy.method, policy.method.model_fields_set
    if not method.two_tables:
        idle = [name for name in TWO_TABLES if name in given]
        return [f'method.{name} does nothing unless publish = "anatomy" (two tables)' for name in idle]
    promise, faults = policy.guarantee.descriptor, []
    if promise.hides_people:
        able = [one.name for one in descriptors().values() if one.family is ONE_RELEASE and one.sensitive == "some"]
        faults.append(
            f"two tables hide which value of a group is whose, and {promise.name} alone says nothing of values; "
            f"promise that too, with {', '.join(able[:-1])} or {able[-1]}"
        )
    if not policy.named("sensitive"):
        faults.append("two tables part people from sensitive values, and no column is sensitive")
    faults += _people_faults(policy)
    if method.insensitive == "own" and not policy.promises_series:
        faults.append('insensitive = "own" does nothing for one release: there nobody\'s cells are dealt')
    if method.insensitive == "own" and not policy.named("insensitive"):
        faults.append('insensitive = "own" does nothing: no column is insensitive')
    faults += _together_faults(policy)
    taken = [name for name in ("group", "count") if name in policy.columns]
    return faults + [f"two tables need the column name `{name}` for themselves; rename yours" for name in taken]


def _together_faults(policy: Policy) -> list[str]:
    """What values side by side need."""
    together = policy.method.together
    if together is None:
        return []
    odd = [name for name in together if name not in policy.named("sensitive")]
    if odd or len({*together}) < 2 or len({*together}) < len(together):
        return [f"method.together names two or more different sensitive columns; {odd or list(together)} is not that"]
    if not policy.guarantee.descriptor.several:
        able = ", ".join(one.name for one in descriptors().values() if one.several)
        return [f"method.together is for {able}, which keeps the values of those who left side by side as well"]
    return []


def _people_faults(policy: Policy) -> list[str]:
    """What boxes of people need, and what is idle without them."""
    method, k = policy.method, policy.guarantee.find(KAnonymity)
    if not method.boxed:
        recoded = "recode" in method.model_fields_set
        return ['method.recode does nothing with people = "exact": nothing is generalised'] if recoded else []
    faults = []
    if k is None:
        faults.append(
            f'people = "{method.people}" needs guarantee.k: so many people share a box, such as k = 5; or '
            'people = "exact", which shows everybody who is in the table'
        )
    if method.steady and not policy.promises_series:
        faults.append('people = "stable-boxes" is for a series: one release has no earlier cuts; use "boxes"')
    if method.steady and method.recode == "sets":
        faults.append('recode = "sets" names who is there now; people = "stable-boxes" goes with "nodes" only')
    if method.steady and method.cuts != "relaxed":
        faults.append('method.cuts does nothing with people = "stable-boxes": their cuts are strict')
    if method.recode == "suppress":
        faults.append('recode = "suppress" does not go with boxes of people; use "nodes" or "sets"')
    if policy.guarantee.priors:
        faults.append('priors are weighed by exact quasi-identifiers: two tables need people = "exact" for them')
    return faults
