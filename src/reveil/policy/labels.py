"""Labels of hierarchies in lists of sensitive values: `protect = ["Infectious"]` means every value below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from reveil.base.errors import InputError

if TYPE_CHECKING:
    from reveil.guarantees.descriptor import Parameters
    from reveil.policy.policy import Policy


def take_in_labels(policy: Policy, recorded: Mapping[str, Iterable[str]] | None = None) -> Policy:
    """The policy, whose promise now knows what labels stand for: as its files say, or as it was recorded.

    A file that cannot be read is reported later, with all others.
    """
    if lists := _lists(policy):
        stated = _labels(policy) if recorded is None else recorded
        for one in lists:
            one.under({name: frozenset(values) for name, values in stated.items()})
    return policy


def used_labels(policy: Policy) -> dict[str, frozenset[str]]:
    """The labels that the lists of the promise name, and the values below each."""
    entries = [
        entry for one in _lists(policy) for entry in (*one.harmless_values, *(getattr(one, "protect", ()) or ()))
    ] + [entry for column in policy.columns.values() for entry in column.harmless or ()]
    return {entry: one.labels[entry] for one in _lists(policy) for entry in entries if entry in one.labels}


def _lists(policy: Policy) -> list[Parameters]:
    """The promises that name values; the headline does so on its columns, too."""
    promise, own = policy.guarantee, any(column.harmless for column in policy.columns.values())
    return [
        one
        for one in promise.conditions
        if getattr(one, "protect", None) or one.harmless_values or (own and one is promise.headline)
    ]


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
