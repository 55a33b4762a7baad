"""A series as anybody can put it together from public folders and from who is in which group. Plain Python, nothing of
the package: it reads the CSV files by itself."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path


def groups_of(folder, column, names, numbers):
    """One release as a list of (people, values). `numbers`: the group of each of `names`, -1 where withheld.

    The published number of counterfeits of a group must be that of its rows which are nobody's.
    """
    values, fakes, people = defaultdict(list), {}, defaultdict(list)
    for row in _rows(Path(folder) / "table.csv"):
        values[int(row["group"])].append(row[column])
    for row in _rows(Path(folder) / "counterfeits.csv"):
        fakes[int(row["group"])] = int(row["count"])
    for name, group in zip(names, numbers, strict=True):
        if group >= 0:
            people[int(group)].append(name)
    for group, shown in values.items():
        assert len(shown) == len(people[group]) + fakes.get(group, 0)
    return [(tuple(people[group]), tuple(sorted(shown))) for group, shown in sorted(values.items())]


def _rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
