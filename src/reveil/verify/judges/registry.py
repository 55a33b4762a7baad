"""From the promise of a policy to the judges of a release: each guarantee's descriptor names what builds its judges."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from reveil.base.errors import Fault, InputError, stop_if
from reveil.guarantees.descriptor import Descriptor
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge

Builder = Callable[[Any, Policy, Background], list[Judge]]  # the guarantee's own parameters come first


def load(one: Descriptor) -> Builder:
    """What builds the judges of a guarantee; imported when it is asked for."""
    module, function = one.judge.split(":")
    builder: Builder = getattr(import_module(f"reveil.verify.judges.{module}"), function)
    return builder


def judges(policy: Policy, background: Background) -> list[Judge]:
    """Every judge that the policy asks for, one for each sensitive column where values matter. All must hold.

    >>> from reveil.policy.policy import load_policy
    >>> columns = {"age": "quasi", "disease": "sensitive", "drug": "sensitive"}
    >>> policy = load_policy({"columns": columns, "guarantee": {"k": 5, "l": 3}})
    >>> [judge.name for judge in judges(policy, Background())]
    ['k-anonymity', 'l-diversity', 'l-diversity']
    """
    seated: list[Judge] = []
    faults: list[Fault] = []
    for one, parameters in policy.guarantee.described:
        try:
            seated += load(one)(parameters, policy, background)
        except InputError as error:
            faults += error.faults
    stop_if(faults)
    return seated
