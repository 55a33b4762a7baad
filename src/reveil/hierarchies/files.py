"""Hierarchies from files: ARX's CSV, and taxonomies as nested JSON or TOML. Also written as ARX CSV."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Mapping
from itertools import dropwhile
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError
from reveil.base.sections import plain_text
from reveil.hierarchies.tree import ANY, Hierarchy
from reveil.hierarchies.tree import Path as LabelPath


def read_paths(name: str, file: Path) -> dict[str, LabelPath]:
    """The leaves of a hierarchy file, each with its labels from just below the root down to the leaf."""
    where = f"hierarchy {file.name} of column {name!r}"
    try:
        text = file.read_bytes().decode("utf-8-sig")  # line ends inside quoted labels stay as they are
    except OSError as error:
        raise _fault("R302", where, error.strerror or "cannot be read", "correct the file name in the policy") from None
    except UnicodeDecodeError as error:
        raise _fault("R302", where, f"is not UTF-8 text (byte {error.start})", "save it as UTF-8") from None
    if file.suffix.lower() in (".json", ".toml"):
        return nested_paths(_parse(where, file.suffix.lower(), text), where)
    return arx_paths(text, where)


def _parse(where: str, suffix: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text) if suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise _fault("R302", where, f"cannot be parsed: {error}", "correct that line") from None
    if not isinstance(content, dict):
        raise _fault("R302", where, "is not a table of names", 'write { "group": ["value", ...] }')
    return content


def arx_paths(text: str, where: str) -> dict[str, LabelPath]:
    """ARX's form: no header, leaf first, then rising levels; `;` or `,` or a tab between them.

    >>> arx_paths("a;letters;*\\nb;letters;*\\n1;digits;*\\n", "example")
    {'a': ('letters', 'a'), 'b': ('letters', 'b'), '1': ('digits', '1')}
    """
    try:
        rows = max((_lines(text, delimiter) for delimiter in ";,\t"), key=_likely)
    except csv.Error as error:
        raise _fault("R302", where, f"cannot be parsed: {error}", "write one line per value") from None
    if not rows:
        raise _fault("R302", where, "is empty", "write one line per value: value;level 1;...;*")
    faults = _shape_faults(rows, where)
    paths: dict[str, LabelPath] = {}
    for row in rows:
        path = (*dropwhile(lambda label: label == ANY, reversed(row[1:])), row[0])
        if paths.setdefault(row[0], path) != path:
            faults.append(Fault("R303", where, f"value {row[0]!r} stands on two lines that differ", "keep one of them"))
    faults += [*_parent_faults(rows, where), *_empty_faults(paths, where)]
    if faults:
        raise InputError(faults)
    return paths


def _lines(text: str, delimiter: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]


def _likely(rows: list[list[str]]) -> tuple[bool, bool, int]:
    """How well a delimiter explains a file: lines of equal length, all of which end in `*`, with many levels."""
    width = len(rows[0]) if rows else 0
    alike = width > 1 and all(len(row) == width for row in rows)
    return alike, all(row[-1] == ANY for row in rows), width


def _empty_faults(paths: Mapping[str, LabelPath], where: str) -> list[Fault]:
    """An empty label could not be told from a missing value, which every hierarchy has a place for anyway."""
    empty = [leaf for leaf, path in paths.items() if "" in path]
    if not empty:
        return []
    message = f"{len(empty)} lines have an empty value or label: {', '.join(map(repr, empty[:5]))}"
    return [Fault("R303", where, message, "name each label; leave the missing value out", None)]


def _shape_faults(rows: list[list[str]], where: str) -> list[Fault]:
    width = len(rows[0])
    odd = [number for number, row in enumerate(rows, 1) if len(row) != width]
    if not odd:
        return []
    shown = ", ".join(map(str, odd[:5]))
    message = f"{len(odd)} lines do not have {width} fields like the first (lines {shown})"
    return [Fault("R303", where, message, "give every value the same number of levels")]


def _parent_faults(rows: list[list[str]], where: str) -> list[Fault]:
    """The same label on the same level must always have the same parent."""
    faults, parents = [], dict[tuple[int, str], str]()
    for row in rows:
        for level in range(1, len(row) - 1):
            known = parents.setdefault((level, row[level]), row[level + 1])
            if known != row[level + 1]:
                message = f"label {row[level]!r} lies under {known!r} and under {row[level + 1]!r}"
                faults.append(Fault("R303", where, message, "use one parent, or two different labels"))
                parents[(level, row[level])] = row[level + 1]
    return faults


def nested_paths(tree: Mapping[str, Any], where: str) -> dict[str, LabelPath]:
    """A taxonomy as nested tables whose ends are lists of values.

    >>> nested_paths({"Europe": ["DE", "FR"], "Asia": {"East": ["JP"]}}, "example")
    {'DE': ('Europe', 'DE'), 'FR': ('Europe', 'FR'), 'JP': ('Asia', 'East', 'JP')}
    """
    paths: dict[str, LabelPath] = {}
    faults: list[Fault] = []

    def visit(content: object, path: LabelPath) -> None:
        if isinstance(content, Mapping):
            for label, below in content.items():
                visit(below, (*path, str(label)))
        elif isinstance(content, list):
            for value in content:
                leaf = plain_text(value)
                if leaf in paths:
                    faults.append(Fault("R303", where, f"value {value!r} stands in two places", "keep one of them"))
                paths[leaf] = (*path, leaf)
        else:
            message = f"{'.'.join(path)} is {content!r}, neither a table nor a list of values"
            faults.append(Fault("R302", where, message, 'write label = ["value", ...]'))

    visit(tree, ())
    faults += _empty_faults(paths, where)
    if not paths and not faults:
        faults.append(Fault("R302", where, "names no values", 'write label = ["value", ...]'))
    if faults:
        raise InputError(faults)
    return paths


def to_arx_csv(hierarchy: Hierarchy) -> str:
    """The hierarchy in ARX's form, every leaf with the same number of levels and `*` last."""
    start = int(hierarchy.has_missing)
    rows = [list(hierarchy.ancestors(position)) for position in range(start, len(hierarchy))]
    depth = max(map(len, rows), default=0)
    out = io.StringIO()
    # The writer does not quote a carriage return by itself, and readers would end the line there.
    everything = any("\r" in label for label in hierarchy.labels)
    writer = csv.writer(
        out, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL
    )
    for row in rows:
        # Short branches repeat their leaf: a label above it would stand for some of its values on a lower level.
        writer.writerow([row[0]] * (depth - len(row)) + row)
    return out.getvalue()


def _fault(code: str, where: str, message: str, remedy: str) -> InputError:
    return InputError(Fault(code, where, message, remedy))
