"""From the [guarantee] section of a policy to the judges of a release.

A new guarantee is one more line in `GUARANTEES`: when a policy asks for it, and the function that builds its
judges. The function is only imported when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from reveil.base.errors import Fault, InputError, stop_if
from reveil.policy.guarantee import Guarantee
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge

Builder = Callable[[Policy, Background], list[Judge]]


@dataclass(frozen=True)
class Entry:
    """When a guarantee is asked for, and `module:function` of what builds its judges."""

    asked: Callable[[Guarantee], bool]
    builder: str

    def load(self) -> Builder:
        module, function = self.builder.split(":")
        builder: Builder = getattr(import_module(f"reveil.verify.judges.{module}"), function)
        return builder


GUARANTEES: dict[str, Entry] = {
    "k-anonymity": Entry(lambda g: g.k is not None, "single:build_k"),
    "l-diversity": Entry(lambda g: g.l is not None and g.model != "global", "single:build_l"),
    "t-closeness": Entry(lambda g: g.t is not None, "closeness:build_t"),
    "alpha-k": Entry(lambda g: g.alpha is not None, "single:build_alpha"),
    "epsilon-m": Entry(lambda g: g.epsilon is not None, "proximity:build_epsilon"),
    "presence": Entry(lambda g: g.population is not None, "presence:build_presence"),
    "r-robustness": Entry(lambda g: g.r is not None, "robust:build_r"),
    "global": Entry(lambda g: g.model == "global", "ever_linked:build_global"),
    "compromise-safety": Entry(lambda g: g.model == "compromise-safety", "cohorts:build_cohorts"),
    "m-invariance": Entry(lambda g: g.model == "m-invariance", "invariance:build_invariance"),
    "historical-safety": Entry(lambda g: g.model == "historical-safety", "correlation:build_history"),
    "m-distinct": Entry(lambda g: g.model == "m-distinct", "distinct:build_distinct"),
    "m-distinct-star": Entry(lambda g: g.model == "m-distinct-star", "distinct:build_distinct"),
}


def judges(policy: Policy, background: Background) -> list[Judge]:
    """Every judge that the policy asks for, one for each sensitive column where values matter. All must hold.

    >>> from reveil.policy.policy import load_policy
    >>> columns = {"age": "quasi", "disease": "sensitive", "drug": "sensitive"}
    >>> policy = load_policy({"columns": columns, "guarantee": {"k": 5, "l": 3}})
    >>> [judge.name for judge in judges(policy, Background())]
    ['k-anonymity', 'l-diversity', 'l-diversity']
    """
    found: list[Judge] = []
    faults: list[Fault] = []
    for entry in GUARANTEES.values():
        if not entry.asked(policy.guarantee):
            continue
        try:
            found += entry.load()(policy, background)
        except InputError as error:
            faults += error.faults
    stop_if(faults)
    return found
