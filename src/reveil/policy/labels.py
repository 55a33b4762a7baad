"""Labels of hierarchies in lists of sensitive values: `protect = ["Infectious"]` means every value below it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from reveil.base.errors import InputError

if TYPE_CHECKING:
    from reveil.policy.policy import Policy


def take_in_labels(policy: Policy) -> Policy:
    """The policy, whose promise now knows what labels stand for. A file that cannot be read is reported with others."""
    lists = [one for one in policy.guarantee.conditions if getattr(one, "protect", None) or one.harmless_values]
    if lists:
        labels = {name: frozenset(values) for name, values in _labels(policy).items()}
        for one in lists:
            one.under(labels)
    return policy


def _labels(policy: Policy) -> dict[str, set[str]]:
    from reveil.hierarchies.files import nested_paths, read_paths  # few policies have such lists

    labels: dict[str, set[str]] = {}
    for name in policy.named("sensitive"):
        stated = policy.columns[name].hierarchy
        if stated is None:
            continue
        with suppress(InputError):
            nested = isinstance(stated, Mapping)
            paths = nested_paths(stated, name) if nested else read_paths(name, policy.folder / str(stated))  # type: ignore[arg-type]
            for leaf, path in paths.items():
                for label in path[:-1]:
                    labels.setdefault(label, set()).add(leaf)
    return labels
