"""Hierarchies as they are stated, read from their files: plain Python, nothing of the package.

A taxonomy is kept as paths: for each value, the labels from just below the top down to the value itself. A branch is
the path that leads to it, so that two labels of one name are two branches. Labels over a single other label count.
"""

from __future__ import annotations

import csv
import json
import tomllib
from fractions import Fraction


def read(file):
    """The paths of a file: nested JSON or TOML, or ARX's lines of value;label;...;*."""
    if file.suffix == ".json":
        return nested(json.loads(file.read_text(encoding="utf-8")))
    if file.suffix == ".toml":
        return nested(tomllib.loads(file.read_text(encoding="utf-8")))
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter=";"))
    return {row[0]: (*reversed([label for label in row[1:] if label != "*"]), row[0]) for row in rows}


def nested(content, above=()):
    if isinstance(content, list):
        return {value: (*above, value) for value in content}
    found = {}
    for label, below in content.items():
        found |= nested(below, (*above, label))
    return found


def branches(paths):
    """Every branch with the values below it; the top is the empty path."""
    found = {}
    for value, path in paths.items():
        for depth in range(len(path)):
            found.setdefault(path[:depth], set()).add(value)
    return found


def height(branch, paths):
    """Steps from a branch down to the deepest value below it."""
    return max(len(path) - len(branch) for path in paths.values() if path[: len(branch)] == branch and path != branch)


def lowest(values, paths):
    """The lowest branch over all of these values (more than one)."""
    over = [branch for branch, below in branches(paths).items() if set(values) <= below]
    return max(over, key=len)


def distance(one, other, paths):
    """The height of the lowest branch over both by that of the lowest branch over everything."""
    if one == other:
        return Fraction(0)
    return Fraction(height(lowest({one, other}, paths), paths), height(lowest(set(paths), paths), paths))


def meanings(paths):
    """What each label may stand for: a set of values, or several where branches of one name differ in them."""
    found = {value: {frozenset([value])} for value in paths}
    for branch, below in branches(paths).items():
        found.setdefault(branch[-1] if branch else "*", set()).add(frozenset(below))
    return found
