"""The policy that the first release fixed, as the catalog keeps it; and where a policy given is another one."""

from __future__ import annotations

import json
from typing import Any

from reveil.base.errors import Fault, InputError, TamperedError
from reveil.ledger.record import Identity, canonical


def parsed_policy(text: str) -> dict[str, Any]:
    try:
        policy = json.loads(text)
    except ValueError:
        policy = None
    if not isinstance(policy, dict):
        message = "the recorded policy cannot be read: the ledger was edited"
        remedy = "restore ledger.sqlite from the newest backup of the home"
        raise TamperedError(Fault("R521", "ledger.sqlite", message, remedy))
    return policy


def changed_keys(recorded: Identity, given: Identity) -> list[Fault]:
    """Where a policy is not the one that the first release promised its readers. One of another kind is refused."""
    old, new = parsed_policy(recorded.policy or ""), parsed_policy(given.policy or "")
    if ("dp" in old) != ("dp" in new):
        kind = "noisy counts (`reveil count`)" if "dp" in old else "tables (`reveil publish`)"
        message = f"this home belongs to a series of {kind}, and the policy given is of the other kind"
        remedy = "give another home with --home, or the policy that this series began with"
        raise InputError(Fault("R502", f"series '{recorded.series}'", message, remedy))
    before = _flat(old) | {"series.name": canonical(recorded.series)}
    after = _flat(new) | {"series.name": canonical(given.series)}
    return [
        Fault(
            "R502",
            f"policy of series '{recorded.series}'",
            f"{key}: {before.get(key, '(not set)')} -> {after.get(key, '(not set)')} (recorded -> given)",
            "go back to the recorded value, or start a new series in a new home",
        )
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted paths to JSON texts; an empty table is a value of its own."""
    flat: dict[str, str] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = canonical(inner)
    return flat
