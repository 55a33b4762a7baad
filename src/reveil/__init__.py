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

from reveil.base.version import __version__

if TYPE_CHECKING:
    from reveil.audit.audit import Audit, audit
    from reveil.background.update_graph import UpdateGraph, update_graph
    from reveil.base.errors import ReveilError
    from reveil.dp.count import count, spent
    from reveil.jobs.release import Release
    from reveil.measure.ask import ask
    from reveil.measure.compare import Comparison, compare
    from reveil.measure.expand import expand
    from reveil.measure.link import link
    from reveil.measure.measure import measure
    from reveil.measure.table_risk import risk
    from reveil.perturb.perturb import perturb
    from reveil.policy.policy import Policy, load_policy
    from reveil.publish import Series, anonymize, open_series
    from reveil.simulation.scenario import Scenario
    from reveil.simulation.simulate import simulate
    from reveil.start.safe_harbor import safe_harbor
    from reveil.start.suggested import suggest
    from reveil.verify.certificate import Certificate
    from reveil.verify.recheck import check

# Heavy parts are imported when they are first used, so that `import reveil` and `reveil --help` are quick.
_WHERE = {
    "Audit": "audit.audit",
    "Certificate": "verify.certificate",
    "Comparison": "measure.compare",
    "Policy": "policy.policy",
    "Release": "jobs.release",
    "ReveilError": "base.errors",
    "Scenario": "simulation.scenario",
    "Series": "publish",
    "UpdateGraph": "background.update_graph",
    "anonymize": "publish",
    "ask": "measure.ask",
    "audit": "audit.audit",
    "check": "verify.recheck",
    "compare": "measure.compare",
    "count": "dp.count",
    "expand": "measure.expand",
    "link": "measure.link",
    "load_policy": "policy.policy",
    "measure": "measure.measure",
    "open_series": "publish",
    "perturb": "perturb.perturb",
    "risk": "measure.table_risk",
    "safe_harbor": "start.safe_harbor",
    "simulate": "simulation.simulate",
    "spent": "dp.count",
    "suggest": "start.suggested",
    "update_graph": "background.update_graph",
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
    "__version__",
    "anonymize",
    "ask",
    "audit",
    "check",
    "compare",
    "count",
    "expand",
    "link",
    "load_policy",
    "measure",
    "open_series",
    "perturb",
    "risk",
    "safe_harbor",
    "simulate",
    "spent",
    "suggest",
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
