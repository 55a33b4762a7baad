"""Reveil: publish tables about people again and again without the series giving anyone away.

>>> import reveil
>>> people = {"age": [20, 21, 40, 41], "illness": ["flu", "cold", "flu", "asthma"]}
>>> policy = {"columns": {"age": "quasi", "illness": "sensitive"}, "guarantee": {"k": 2}}
>>> import polars
>>> reveil.anonymize(polars.DataFrame(people), policy).certificate.holds
True
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reveil.audit.api import Audit, audit
    from reveil.certificate import Certificate
    from reveil.compare import Comparison, compare
    from reveil.dp.api import count, spent
    from reveil.errors import ReveilError
    from reveil.link import link
    from reveil.perturb.api import perturb
    from reveil.policy import Policy, load_policy
    from reveil.publish import Series, anonymize, check, open_series
    from reveil.release import Release
    from reveil.simulation.scenario import Scenario
    from reveil.simulation.simulate import simulate
    from reveil.updategraph import UpdateGraph, update_graph
    from reveil.utility.ask import ask
    from reveil.utility.measure import measure

# Heavy parts are imported when they are first used, so that `import reveil` and `reveil --help` are quick.
_WHERE = {
    "Audit": "audit.api",
    "Certificate": "certificate",
    "Comparison": "compare",
    "Policy": "policy",
    "Release": "release",
    "ReveilError": "errors",
    "Scenario": "simulation.scenario",
    "Series": "publish",
    "UpdateGraph": "updategraph",
    "anonymize": "publish",
    "ask": "utility.ask",
    "audit": "audit.api",
    "check": "publish",
    "compare": "compare",
    "count": "dp.api",
    "link": "link",
    "load_policy": "policy",
    "measure": "utility.measure",
    "open_series": "publish",
    "perturb": "perturb.api",
    "simulate": "simulation.simulate",
    "spent": "dp.api",
    "update_graph": "updategraph",
}

__all__ = [
    "Audit",
    "Certificate",
    "Comparison",
    "Policy",
    "Release",
    "ReveilError",
    "Scenario",
    "Series",
    "UpdateGraph",
    "anonymize",
    "ask",
    "audit",
    "check",
    "compare",
    "count",
    "link",
    "load_policy",
    "measure",
    "open_series",
    "perturb",
    "simulate",
    "spent",
    "update_graph",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"reveil.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'reveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Importing the module `reveil.audit` must not hide the function `reveil.audit` (nor `measure`, `simulate`)."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
