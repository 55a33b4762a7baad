"""What the parts of a policy must agree on: roles, how values change, the promise and the method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reveil.base.errors import Fault
from reveil.guarantees.catalog import descriptors
from reveil.policy.column import LIMITS
from reveil.policy.method import WAITING, may_wait, scheme_faults
from reveil.policy.people import people_faults
from reveil.policy.several import several_faults, value_faults
from reveil.policy.two_tables import two_table_faults

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


def disagreements(policy: Policy) -> list[str]:
    """Everything that does not go together."""
    faults = []
    if not policy.named("quasi"):
        faults.append("no column has the role quasi: there is nothing to protect against linkage")
    if len(policy.named("identifier")) > 1:
        names = ", ".join(policy.named("identifier"))
        faults.append(f"several identifiers ({names}); join them into one column first")
    faults += [*_sensitive_columns(policy), *value_faults(policy)]
    faults += _series_policy(policy) if policy.guarantee.series else []
    faults += _rule_policy(policy) if policy.values.rule is not None else []
    faults += _one_step(policy) if policy.values.closure == "one-step" else []
    faults += [text for condition in policy.guarantee.conditions for text in condition.disagreements(policy)]
    faults += scheme_faults(policy.method, policy.guarantee)
    faults += _limits(policy)
    faults += two_table_faults(policy)
    faults += people_faults(policy)
    if policy.method.infeasible == "wait" and not may_wait(policy.guarantee):
        faults.append(f'infeasible = "wait" needs {WAITING}; use "refuse" or "withhold"')
    return faults


def _limits(policy: Policy) -> list[str]:
    """Lowest and highest levels are of the recoding that has levels."""
    if policy.method.name == "full-domain":
        return []
    limited = {
        name: next((key for key in LIMITS if getattr(c, key) is not None), "") for name, c in policy.columns.items()
    }
    return [
        f'columns.{name}.{key} does nothing unless method.name = "full-domain": other methods have no levels; name the '
        "finest level that may be shown by widths, cuts, prefixes or levels"
        for name, key in limited.items()
        if key
    ]


def _sensitive_columns(policy: Policy) -> list[str]:
    """Conditions about values need a column that has them; the first that lacks one is named."""
    if policy.named("sensitive"):
        return []
    keys = [one.needs[0] for one, _ in policy.guarantee.described if one.sensitive == "some"]
    return [f"guarantee.{key} needs a column with the role sensitive" for key in keys[:1]]


def _one_step(policy: Policy) -> list[str]:
    if policy.guarantee.descriptor.one_step:
        return []
    able = ", ".join(one.name for one in descriptors().values() if one.one_step)
    return [
        f'values.closure = "one-step" does nothing with model "{policy.guarantee.model}": only {able} can do without '
        'transitive changes; use "transitive", or leave it out'
    ]


def _series_policy(policy: Policy) -> list[str]:
    """What promises need that follow people from release to release."""
    promise, faults = policy.guarantee.descriptor, []
    model, family = promise.name, promise.family
    if policy.values.change != family.name:
        faults.append(f'model "{model}" needs values.change = "{family.name}": {family.change}')
    if policy.followed is None:
        faults.append(f'model "{model}" needs a column with the role identifier: {family.identity}')
    if promise.sensitive == "one" and not policy.named("sensitive"):
        faults.append(f'model "{model}" needs a column with the role sensitive')
    elif promise.sensitive == "one" and len(policy.named("sensitive")) > 1:
        faults += several_faults(policy)
    if policy.method.suppress:
        faults.append(f'method.suppress must be 0 with model "{model}"{family.withheld}')
    if policy.method.cuts != "relaxed" and policy.guarantee.headline.cuts_nothing(policy):
        faults.append(f'method.cuts does nothing here: model "{model}" deals people by their values and cuts nothing')
    return faults


def _rule_policy(policy: Policy) -> list[str]:
    """A rule yields transitions from what the policy says of the one sensitive column."""
    rule, names = policy.values.rule, policy.named("sensitive")
    if len(names) != 1:
        return [f"values.transitions by {rule} needs exactly one sensitive column"]
    spec = policy.columns[names[0]]
    if spec.hierarchy is None and (rule == "level" or spec.order is None):
        needed = "a hierarchy" if rule == "level" else "an order or a hierarchy, so that its values are public"
        return [f"values.transitions by {rule} needs {needed} of column {names[0]!r}"]
    return []


def faults_together(policy: Policy) -> list[Fault]:
    """What a series cannot keep: promises about one release, whose bundles say nothing of those of the next one."""
    if not policy.bundled or policy.promises_series:
        return []
    message = f"publishes several rows of {policy.bundled} as one, which is for one release"
    remedy = (
        "publish one release (reveil anonymize), or a series under a promise that keeps whole bundles "
        '(model = "compromise-safety" in two tables; docs/people.md)'
    )
    return [Fault("R918", "[people]", message, remedy)]


def faults_alone(policy: Policy) -> list[Fault]:
    """What one release without memory cannot keep or use: promises about people over time, gate and anchor."""
    idle = {"[audit] gate": policy.audit.gate, "[output] anchor": policy.anchor is not None}
    faults = [
        Fault("R225", key, "does nothing for one release without a series", "leave it out, or use `reveil publish`")
        for key, given in idle.items()
        if given
    ]
    if policy.guarantee.descriptor.follows_people:
        message = "is a promise about a series, and this is one release"
        remedy = "publish it in a series (reveil publish, reveil.open_series), or promise something about one table"
        faults.append(Fault("R225", f'model "{policy.guarantee.model}"', message, remedy))
    return faults
