"""The next release of a series in one table and in two, side by side: what each promises, costs and looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from reveil.base.errors import InfeasibleError
from reveil.guarantees.k_anonymity import KAnonymity
from reveil.measure.measure import measure
from reveil.plan.people import without_k
from reveil.policy.agreement import disagreements
from reveil.policy.guarantee import Guarantee
from reveil.policy.method import TWO_TABLES
from reveil.policy.policy import Policy
from reveil.write.emit import count_counterfeits
from reveil.write.recode import recode
from reveil.write.two_tables import part

if TYPE_CHECKING:
    from reveil.jobs.draft import Draft

K = 5  # people in a box, where the policy has no k
QUERIES, SELECTIVITY = 300, 0.05
EXAMPLES = 5


@dataclass(frozen=True, eq=False)
class Form:
    """One form of the release: figures, and the first rows of its tables. `refusal`: why it cannot be planned."""

    two_tables: bool
    chosen: bool  # it is what the policy says
    promise: str
    withheld: int = 0
    counterfeits: int = 0
    loss: float | None = None  # mean NCP of the quasi-identifiers that are shown
    error: float | None = None  # median relative error of COUNT queries
    examples: tuple[pl.DataFrame, ...] = ()
    refusal: str | None = None

    @property
    def title(self) -> str:
        return "two tables" if self.two_tables else "one table"

    def figures(self) -> tuple[object, ...]:
        """Withheld, counterfeits, loss and error; a dash where there is none."""
        return self.withheld, self.counterfeits, *("-" if one is None else one for one in (self.loss, self.error))

    def to_dict(self) -> dict[str, Any]:
        return {
            "form": self.title,
            "chosen": self.chosen,
            "promise": self.promise,
            "withheld": self.withheld,
            "counterfeits": self.counterfeits,
            "loss": self.loss,
            "query_error": self.error,
            "refusal": self.refusal,
        }


def other_form(policy: Policy) -> Policy | None:
    """The same promise in the other form; None where it is no promise about a series, or that form cannot keep it.

    >>> from reveil.policy.policy import load_policy
    >>> columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
    >>> promise = {"model": "compromise-safety", "m": 3}
    >>> given = {"columns": columns, "values": {"change": "never"}, "guarantee": promise}
    >>> other_form(load_policy(given)).guarantee.stated["k"]
    5
    """
    if not policy.promises_series:
        return None
    method = policy.method.model_dump(exclude_unset=True)
    if policy.method.two_tables:
        kept = {key: value for key, value in method.items() if key not in (*TWO_TABLES, "publish")}
        promise = without_k(policy).guarantee
    else:
        kept, asked = {**method, "publish": "anatomy"}, policy.guarantee.find(KAnonymity)
        given = {**policy.guarantee.stated, "model": policy.guarantee.model}
        promise = Guarantee.of(**given | {"k": K if asked is None else asked.k})
    other = policy.model_copy(update={"method": type(policy.method)(**kept), "guarantee": promise})
    return None if disagreements(other) else other


def forms_of(own: Draft, draft: Callable[[Policy], Draft]) -> tuple[Form, ...]:
    """Both forms of a planned release, the one that was chosen first; none where there is only one."""
    other = other_form(own.policy)
    if other is None:
        return ()
    try:
        beside = form_of(draft(other), chosen=False)
    except InfeasibleError as refusal:
        beside = Form(other.method.two_tables, False, _promise(other), refusal=refusal.faults[0].message)
    return form_of(own, chosen=True), beside


def form_of(d: Draft, *, chosen: bool) -> Form:
    tables: tuple[pl.DataFrame, ...]
    how: dict[str, Any] = {"queries": QUERIES, "selectivity": (SELECTIVITY,)}
    if d.policy.method.two_tables:
        parted = part(d.frame, d.encoded, d.plan, d.policy, d.rng)
        tables = (parted.people.table, *parted.values.values())
        utility = measure(tables[0], d.frame, d.policy, values=parted.values, **how)
    else:
        tables = (recode(d.frame, d.encoded, d.plan, d.policy, d.rng, group_column=True).table,)
        utility = measure(tables[0], d.frame, d.policy, counterfeits=count_counterfeits(d.plan), **how)
    return Form(
        d.policy.method.two_tables,
        chosen,
        _promise(d.policy),
        d.plan.withheld,
        d.plan.counterfeits,
        d.loss.mean,
        utility.queries[0].median_relative,
        tuple(table.head(EXAMPLES) for table in tables),
    )


def _promise(policy: Policy) -> str:
    """The highest chance of a guess, and with how many people anybody shares a box."""
    bound, asked = policy.guarantee.headline.promised, policy.guarantee.find(KAnonymity)
    parts = [*([] if bound is None else [str(bound)]), *([] if asked is None else [f"k = {asked.k}"])]
    return ", ".join(parts) or policy.guarantee.model
