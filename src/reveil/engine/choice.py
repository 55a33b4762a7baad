"""Which engine a job runs on, and what cannot be taken apart: refused by name, before any work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reveil.base.errors import Fault
from reveil.guarantees.catalog import descriptors
from reveil.policy.policy import Policy

ENGINES = ("whole", "blocks", "spark")
SHARE = 0.8  # of the memory that is free, which a job may take without being told


def refusals(policy: Policy) -> list[Fault]:
    """Why a release under this policy cannot be made in blocks, nor on Spark: one fault for each reason."""
    method, guarantee = policy.method, policy.guarantee
    reasons = [f"guarantee {one.name!r}" for one, _ in guarantee.described if not one.apart]
    reasons += ['guarantee.reference = "original"' for _, asked in guarantee.described if asked.of_original]
    reasons += [] if method.name in ("auto", "mondrian") else [f'method.name = "{method.name}"']
    reasons += ['method.publish = "anatomy"'] if method.two_tables else []
    reasons += [f"several rows of {policy.bundled}"] if policy.bundled else []
    reasons += ['method.recode = "sets"'] if method.recode == "sets" else []
    reasons += [f'method.infeasible = "{method.infeasible}"'] if method.infeasible != "refuse" else []
    reasons += ["method.suppress with a guarantee that compares with the whole table"] * (
        bool(method.suppress) and guarantee.relative
    )
    message = "does not come apart: it looks at more than one part of the table at a time"
    remedy = "use --engine whole on a machine with enough memory, or change this (docs/scale.md lists what comes apart)"
    return [Fault("R870", reason, message, remedy) for reason in reasons]


def apart() -> Mapping[str, Mapping[str, bool]]:
    """Which guarantee runs on which engine."""
    ranked = sorted(descriptors().values(), key=lambda one: one.rank)
    return {one.name: {"whole": True, "blocks": one.apart, "spark": one.apart} for one in ranked}


def table_of_engines() -> str:
    """The same as the documents show it: docs/scale.md holds this text, and a test says so.

    >>> print("\\n".join(table_of_engines().splitlines()[:3]))
    | guarantee | whole | blocks | spark |
    |-|-|-|-|
    | k-anonymity | yes | yes | yes |
    """
    lines = [f"| guarantee | {' | '.join(ENGINES)} |", f"|-|{'-|' * len(ENGINES)}"]
    for name, on in apart().items():
        lines.append(f"| {name} | {' | '.join('yes' if on[engine] else 'refused (R870)' for engine in ENGINES)} |")
    return "\n".join(lines)


def free_memory() -> int:
    """Bytes that a job may take."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
        return int(SHARE * 1024 * kilobytes)
    except (OSError, StopIteration, ValueError):
        return int(SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
