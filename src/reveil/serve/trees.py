"""The tree of a column, edited node by node: values under named groups, in any number of levels.

A tree is the labels above each value, from the top down, as `hierarchies/files.py` reads them. It is kept as the file
that the policy will name, so that one that was sent can be looked at and edited like one that was made here.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reveil.base.errors import Fault, InputError
from reveil.hierarchies.files import read_paths
from reveil.hierarchies.tree import ANY

LONGEST = 80  # letters of a label
Tree = dict[str, tuple[str, ...]]  # value -> the groups that it is in, from the top down


@dataclass
class Node:
    """A group or a value, as a page shows it."""

    path: tuple[str, ...]
    rows: int = 0
    values: int = 0
    children: list[Node] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.path[-1]


def load(name: str, file: Path) -> Tree:
    """The tree in a file; an empty one where there is none yet."""
    if not file.is_file():
        return {}
    return {leaf: tuple(path[:-1]) for leaf, path in read_paths(name, file).items()}


def save(name: str, file: Path, tree: Tree) -> None:
    """Write a tree as ARX does: the value, then the groups above it, from below; a file that can be read again."""
    depth = max((len(groups) for groups in tree.values()), default=0)
    beside = file.with_name(f"new-{file.name}")
    with beside.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter=";", lineterminator="\n")
        for value, groups in tree.items():
            writer.writerow([value, *reversed(groups), *[ANY] * (depth - len(groups) + 1)])
    try:
        if load(name, beside) != tree:
            raise _wrong(name, "cannot be written so that it reads the same", "choose other names")
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def nodes(tree: Tree, rows: Mapping[str, int]) -> list[Node]:
    """Groups and values from the top, groups first, then by how many rows they have."""
    known: dict[tuple[str, ...], Node] = {(): Node(())}
    for value, groups in tree.items():
        count = rows.get(value, 0)
        for depth in range(len(groups) + 1):
            path = (*groups, value)[: depth + 1]
            if path not in known or depth == len(groups):
                node = Node(path)
                known[(*path, "") if depth == len(groups) else path] = node
                known[path[:-1]].children.append(node)
            else:
                node = known[path]
            node.rows, node.values = node.rows + count, node.values + 1
    for node in known.values():
        node.children.sort(key=lambda one: (not one.children, -one.rows, one.label))
    return known[()].children


def groups_of(tree: Tree) -> dict[str, tuple[str, ...]]:
    """Every group by its name, with its place."""
    return {groups[depth]: groups[: depth + 1] for groups in tree.values() for depth in range(len(groups))}


def put_under(name: str, tree: Tree, ticked: Sequence[tuple[str, ...]], group: str) -> Tree:
    """The ticked nodes in a group: one that is there, or a new one where they have their nearest place in common."""
    _refuse_label(name, tree, group)
    chosen = _outermost(name, tree, ticked)
    target = groups_of(tree).get(group)
    if target is None:
        target = (*_common([path[:-1] for path in chosen]), group)
    elif any(target[: len(path)] == path for path in chosen):
        raise _wrong(name, f"{group!r} cannot be put into itself", "tick other ones")
    return {value: _moved(value, groups, chosen, target) for value, groups in tree.items()}


def _moved(
    value: str, groups: tuple[str, ...], chosen: Sequence[tuple[str, ...]], to: tuple[str, ...]
) -> tuple[str, ...]:
    for path in chosen:
        if (*groups, value)[: len(path)] == path:
            return (*to, *groups[len(path) - 1 :])
    return groups


def take_out(name: str, tree: Tree, ticked: Sequence[tuple[str, ...]]) -> Tree:
    """Values go one level up; groups are dissolved into what they are in."""
    chosen = set(_known(name, tree, ticked))
    result = {}
    for value, groups in tree.items():
        kept = tuple(group for depth, group in enumerate(groups) if groups[: depth + 1] not in chosen)
        result[value] = groups[:-1] if (*groups, value) in chosen and groups else kept
    return result


def rename(name: str, tree: Tree, ticked: Sequence[tuple[str, ...]], group: str) -> Tree:
    """Another name for one group."""
    chosen = _known(name, tree, ticked)
    if len(chosen) != 1 or chosen[0] not in groups_of(tree).values():
        raise _wrong(name, "one group is renamed at a time, and values keep their names", "tick one group")
    _refuse_label(name, tree, group)
    if group in groups_of(tree):
        raise _wrong(name, f"there is a group {group!r} already", "choose another name, or put what is in it there")
    (path,) = chosen
    place = len(path) - 1
    return {
        value: (*groups[:place], group, *groups[place + 1 :]) if groups[: place + 1] == path else groups
        for value, groups in tree.items()
    }


def add_values(name: str, tree: Tree, values: Sequence[str]) -> Tree:
    """Values that no table has yet, and a later one may."""
    for value in values:
        if value in groups_of(tree) or value == ANY or len(value) > LONGEST:
            raise _wrong(name, f"{value[:40]!r} is the name of a group, or too long", "write one value in each line")
    return {**tree, **{value: () for value in values if value not in tree}}


def remove(name: str, tree: Tree, ticked: Sequence[tuple[str, ...]], rows: Mapping[str, int]) -> Tree:
    """Values that the table does not have."""
    gone = {path[-1] for path in _known(name, tree, ticked)}
    if seen := [value for value in gone if rows.get(value) or value not in tree]:
        raise _wrong(name, f"{seen[0]!r} is a group, or in the table", "tick values with no rows")
    return {value: groups for value, groups in tree.items() if value not in gone}


def _known(name: str, tree: Tree, ticked: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    there = {(*groups, value) for value, groups in tree.items()} | set(groups_of(tree).values())
    if not ticked or (lost := set(ticked) - there):
        message = "nothing is ticked" if not ticked else f"{sorted(lost)[0][-1]!r} is no longer there"
        raise _wrong(name, message, "tick values or groups first")
    return list(dict.fromkeys(ticked))


def _outermost(name: str, tree: Tree, ticked: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Without what is in a group that is ticked as well."""
    known = _known(name, tree, ticked)
    return [path for path in known if not any(path[:depth] in known for depth in range(1, len(path)))]


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shared = []
    for labels in zip(*paths, strict=False):
        if len(set(labels)) > 1:
            break
        shared.append(labels[0])
    return tuple(shared)


def _refuse_label(name: str, tree: Tree, group: str) -> None:
    if not group or group == ANY or len(group) > LONGEST or not group.isprintable():
        raise _wrong(
            name, f"{group[:40]!r} is no name of a group", f"write a name of up to {LONGEST} letters, not {ANY}"
        )
    if group in tree:
        raise _wrong(name, f"{group!r} is a value", "choose a name that no value has")


def _wrong(name: str, message: str, remedy: str) -> InputError:
    return InputError(Fault("R303", f"tree of column {name!r}", message, remedy))
