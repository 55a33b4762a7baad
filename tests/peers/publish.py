"""Runs in an environment with anonypy, anonypyx and anjana: publishes each release of a panel with each of them.

    python publish.py PANEL.csv FOLDER K L [TOOL ...]

The panel has columns `release` and `name`, quasi-identifiers, and the sensitive one last; without a tool all are run.

Writes FOLDER/TOOL-RELEASE.csv as the tool's own example would; what a tool cannot do is said on standard output.
"""

import sys
from pathlib import Path

import pandas as pd


def anonypy_table(part, quasi, sensitive, k, l):  # noqa: E741
    import anonypy

    part = part.drop(columns="name")
    rows = anonypy.Preserver(part, quasi, sensitive).anonymize_l_diversity(k, l)
    return pd.DataFrame(rows), {"index": True}


def anonypyx_table(part, quasi, sensitive, k, l):  # noqa: E741
    import anonypyx

    made = anonypyx.Anonymiser(
        part.drop(columns="name"),
        k=k,
        l=l,
        sensitive_column=sensitive,
        feature_columns=quasi,
        generalisation_strategy="human-readable",
    )
    return made.anonymise(), {"index": False}


def anjana_table(part, quasi, sensitive, k, l):  # noqa: E741
    from anjana.anonymity import l_diversity

    part = part.copy()
    hierarchies = {column: ladder(sorted(part[column].unique())) for column in quasi}
    data = part.assign(name="x")
    return l_diversity(data, ["name"], quasi, sensitive, k, l, 20, hierarchies), {"index": True}


def ladder(values):
    """Values, runs of 2, 4, ... in their order as `[a, b]`, and `*`."""
    levels, width = {0: values}, 2
    while width < len(values):
        runs = [values[n - n % width : n - n % width + width] for n in range(len(values))]
        levels[len(levels)] = [f"[{run[0]}, {run[-1]}]" if len(run) > 1 else str(run[0]) for run in runs]
        width *= 2
    levels[len(levels)] = ["*"] * len(values)
    return levels


TOOLS = {"anonypy": anonypy_table, "anonypyx": anonypyx_table, "anjana": anjana_table}


def main(panel, folder, k, l, tools=()):  # noqa: E741
    data = pd.read_csv(panel)
    quasi, sensitive = [c for c in data.columns[:-1] if c not in ("release", "name")], data.columns[-1]
    data[sensitive] = data[sensitive].astype(str).astype("category")
    for release, part in data.groupby("release"):
        for tool in tools or TOOLS:
            publish = TOOLS[tool]
            try:
                part = part.reset_index(drop=True)
                part[sensitive] = part[sensitive].cat.remove_unused_categories()
                table, how = publish(part[["name", *quasi, sensitive]], quasi, sensitive, k, l)
                table.to_csv(Path(folder) / f"{tool}-{release}.csv", **how)
            except Exception as error:
                print(f"{tool}, release {release}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
