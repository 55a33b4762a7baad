"""Runs in an environment with anonypyx: its own intersection attacker, on tables whose cells are numbers and ranges.

    python intersect.py PEOPLE.csv MOST RELEASE.csv ...

PEOPLE.csv has columns `name` and `release` (1, 2, ... in the order of the tables) and quasi-identifiers; tables have
the same, as 17, 17-19 or [17-19], and `value`. Of the first MOST people those left with one value are printed as JSON.

Quasi-identifiers change from release to release, so there is one attacker for each, and what they predict is
intersected here, as the attacker does with releases that it observes one after the other.
"""

import json
import re
import sys

import pandas as pd
from anonypyx.attackers import IntersectionAttacker
from anonypyx.generalisation.machinereadable import MachineReadable


def ranges(table, quasi):
    """The table as anonypyx has it for machines: the least and the largest number of each cell."""
    made = {"value": table["value"].astype(str)}
    for column in quasi:
        ends = [[int(n) for n in re.findall(r"\d+", str(cell))] for cell in table[column]]
        made[f"{column}_min"] = [min(found) for found in ends]
        made[f"{column}_max"] = [max(found) for found in ends]
    return pd.DataFrame(made)


def main(people, most, files):
    lines = pd.read_csv(people)
    quasi = [column for column in lines.columns if column not in ("name", "release")]
    names = list(dict.fromkeys(lines["name"]))[:most]
    schema = MachineReadable({}, {column: (f"{column}_min", f"{column}_max") for column in quasi}, ["value"])
    left = {}
    for number, file in enumerate(files, 1):
        table = ranges(pd.read_csv(file, dtype=str), quasi)
        here = lines[(lines["release"] == number) & lines["name"].isin(names)].reset_index(drop=True)
        known = pd.DataFrame({f"{c}_{end}": here[c] for c in quasi for end in ("min", "max")}).assign(ID=here.index)
        attacker = IntersectionAttacker(known, quasi, "value", schema)
        attacker.observe(table, quasi, list(here.index))
        for target, name in enumerate(here["name"]):
            found = set(attacker.predict(target, "value"))
            left[name] = found & left.get(name, found)
    print(json.dumps({name: found.pop() for name, found in left.items() if len(found) == 1}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
