"""Series as others publish them, attacked: sub-samples of real panels against enumeration of worlds, and a whole panel.

    python bench/others.py worlds [--cases 5000] [--seed 0] [--panel nlswork]
    python bench/others.py sampled [--cases 2000] [--seed 0] [--panel nlswork]
    python bench/others.py trial [--people 3300] [--limit 60] [--peers .venv-others/bin/python]

Reads ../shared/data. `worlds` publishes a few people of a panel two or three times in the way of some publisher, with
missing columns, other labels and people who are away, and compares certain inferences and beliefs with all worlds.
`sampled` gives the same cases to sampling, and says how often its intervals hold what enumeration finds.
`trial` publishes a panel in each way (and by anonypy, anonypyx and anjana, where an environment has them), and says
who is exposed and undecided, how long it took, and how much memory.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

import reveil
from publishers import PUBLISHERS, Row, written

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "tests"))
PANELS: dict[str, dict[str, Any]] = {
    "nlswork": {
        "file": "nlswork_1968_1988.parquet",
        "person": "idcode",
        "time": "year",
        "when": [77, 78, 80, 82, 83],
        "quasi": ["age", "race", "grade", "msp", "south", "c_city"],
        "sensitive": "occ_code",
    },
    "meps": {
        "file": "meps_panel_2015_2016.parquet",
        "person": "person_id",
        "time": "release",
        "when": [1, 2, 3, 4, 5],
        "quasi": ["age", "sex", "race_eth", "region", "family_size"],
        "sensitive": "occupation",
    },
}
CLOSE = 1e-9


def panel(name: str, people: int | None = None) -> pl.DataFrame:
    """name, release (from 1), quasi-identifiers, value: the first one of each person, kept."""
    spec = PANELS[name]
    frame = pl.read_parquet(DATA / spec["file"]).filter(pl.col(spec["time"]).is_in(spec["when"]))
    frame = frame.drop_nulls([*spec["quasi"], spec["sensitive"]]).sort(spec["time"], spec["person"])
    order = {when: n for n, when in enumerate(spec["when"], 1)}
    frame = frame.select(
        pl.format("p{}", pl.col(spec["person"])).alias("name"),
        pl.col(spec["time"]).replace_strict(order, return_dtype=pl.Int64).alias("release"),
        *spec["quasi"],
        pl.col(spec["sensitive"]).first().over(spec["person"]).cast(pl.String).alias("value"),
    )
    if people is None:
        return frame
    return frame.filter(pl.col("name").is_in(frame["name"].unique().sort().head(people).implode()))


def sub_sample(frame: pl.DataFrame, rng: random.Random) -> tuple[pl.DataFrame, list[str]]:
    """Some people in two or three releases, and some of the quasi-identifiers."""
    size, releases = rng.randint(4, 7), rng.randint(2, 3)
    start = rng.randint(1, frame["release"].n_unique() - releases + 1)
    part = frame.filter(pl.col("release").is_between(start, start + releases - 1))
    chosen = rng.sample(part["name"].unique().sort().to_list(), size)
    part = part.filter(pl.col("name").is_in(chosen)).with_columns(pl.col("release") - start + 1)
    quasi = [name for name in frame.columns if name not in ("name", "release", "value")]
    return part, sorted(rng.sample(quasi, rng.randint(1, min(3, len(quasi)))), key=quasi.index)


class Case:
    """One sub-sample as somebody publishes it: tables, a population, and the worlds that they leave."""

    def __init__(self, frame: pl.DataFrame, publisher: str, seed: int) -> None:
        self.rng, self.how = random.Random(f"{publisher} {seed}"), PUBLISHERS[publisher]
        part, quasi = sub_sample(frame, self.rng)
        self.labels = self.rng.choice([lambda n: n, lambda n: n - 1, lambda n: 1990 + n])
        self.tables: list[pl.DataFrame] = []
        self.releases: list[tuple[list[tuple[set[str], str]], list[str]]] = []
        self.lines: list[pl.DataFrame] = []
        domains = {name: sorted(part[name].unique().to_list()) for name in quasi}
        for number in sorted(part["release"].unique()):
            here = part.filter(pl.col("release") == number)
            names = quasi if len(quasi) == 1 or self.rng.random() < 0.7 else quasi[:-1]  # a column may be missing
            self.add(here, names, [domains[name] for name in names], number)
        self.people = pl.concat(self.lines) if self.lines else part.head(0)
        self.present = all(len(rows) == len(people) for rows, people in self.releases)

    def add(self, here: pl.DataFrame, names: Sequence[str], domains: list[list[Any]], number: int) -> None:
        people = [(tuple(row[:-1]), row[-1]) for row in here.select(*names, "value").iter_rows()]
        rows: list[Row] = self.how.recode(people, domains, 2, self.rng.randint(1, 2), self.rng)
        if not rows:
            return
        self.rng.shuffle(rows)
        listed = [(row[0], tuple(row[1:])) for row in here.select("name", *names).iter_rows()]
        fits = [({name for name, cells in listed if row.fits(cells)}, row.value) for row in rows]
        held = [name for name, _ in listed if any(name in mine for mine, _ in fits)]
        self.releases.append((fits, held))
        label = self.labels(len(self.releases))
        self.tables.append(written(rows, names, domains, self.how, "value"))
        self.lines.append(here.drop("value").with_columns(pl.lit(label, pl.Int64).alias("release")))

    def worlds(self) -> dict[tuple[str, int], dict[str | None, Fraction]]:
        """The beliefs by enumeration. A release with fewer rows than people who fit them leaves open who is in it."""
        from oracle import overlapping

        return overlapping.beliefs([(rows, people, len(rows) == len(people)) for rows, people in self.releases])

    def audited(self) -> reveil.Audit:
        return reveil.audit(self.tables, self.people, sensitive="value", accept_missing=True, worst=0, limit=20)


def differences(case: Case) -> list[str]:
    """What the audit and enumeration disagree about."""
    try:
        found = case.audited()
    except reveil.ReveilError as error:
        return [f"refused: {error}"]
    expected = case.worlds()
    if not expected:
        return ["enumeration finds no world"]
    label = {str(name): n for n, name in enumerate(found.observed.releases)}
    believed: dict[tuple[str, int], dict[str | None, float | None]] = {}
    for person, release, value, chance in found.posterior.iter_rows():
        believed.setdefault((person, label[release]), {})[value] = chance
    wrong = []
    for (person, release), row in expected.items():
        mine = believed.get((person, release), {})
        theirs = {value: chance for value, chance in row.items() if value is not None}
        if set(mine) != set(theirs):
            wrong.append(f"{person} in {release + 1}: {sorted(mine)} open, worlds have {sorted(theirs)}")
        wrong += [
            f"{person} in {release + 1}: {value} with {mine[value]}, worlds say {chance}"
            for value, chance in theirs.items()
            if mine.get(value) is not None and abs(mine[value] - chance) > CLOSE
        ]
    sure = {person for (person, _), row in expected.items() if len(row) == 1 and None not in row}
    if sure != set(found.certain["person"]):
        wrong.append(f"certain {sorted(set(found.certain['person']))}, worlds say {sorted(sure)}")
    if found.holds and not found.undecided and sure:
        wrong.append(f"said to be safe, and worlds say that {sorted(sure)} are certain")
    return wrong


def compare_worlds(cases: int, seed: int, name: str) -> Counter[str]:
    frame, outcome = panel(name), Counter[str]()
    for number in range(cases):
        publisher = list(PUBLISHERS)[number % len(PUBLISHERS)]
        case = Case(frame, publisher, seed + number)
        if len(case.tables) < 2:
            outcome["too few to publish"] += 1
            continue
        wrong = differences(case)
        outcome[publisher] += 1
        if wrong:
            outcome["different"] += 1
            print(publisher, seed + number, *wrong[:3], sep="\n  ")
    return outcome


def sampled_rows(case: Case, sweeps: int, seed: int) -> tuple[list[tuple[float, float, float, float]], int, int]:
    """Of each value that was sampled what worlds say, mean, low, high; and how many people had a belief, and none."""
    from reveil.audit.infer.certain import State
    from reveil.audit.infer.sample import sample_lasting
    from reveil.audit.input.knowledge import Adversary
    from reveil.audit.input.tables import observe
    from reveil.audit.model.model import build

    seen = observe(case.tables, case.people, sensitive="value", accept_missing=True)
    state = State.start(build(seen, Adversary()))
    state.narrow()
    expected, rows, told, silent = case.worlds(), [], 0, 0
    label = state.components()
    for part in range(int(label.max(initial=-1)) + 1):
        factors = (label == part).nonzero()[0]
        inside = {int(a) for a in (state.open_options > 1).nonzero()[0] if label[state.model.app_factor[a]] == part}
        found = sample_lasting(state, factors.tolist(), sweeps, seed + part)
        shares = found.shares if found is not None and found.converged else {}
        people = {int(seen.app_person[a]) for a in inside}
        having = {int(seen.app_person[a]) for a, _ in shares}
        told, silent = told + len(having), silent + len(people - having)
        for (app, value), (mean, low, high) in shares.items():
            row = expected[str(seen.persons[int(seen.app_person[app])]), int(seen.app_release[app])]
            rows.append((float(row.get(None if value < 0 else seen.values[value], 0)), mean, low, high))
    return rows, told, silent


def compare_sampled(cases: int, seed: int, name: str, sweeps: int = 400) -> dict[str, Any]:
    """Sampled beliefs of small cases, whatever counting would say, against enumeration."""
    frame, rows, told, silent, used = panel(name), [], 0, 0, 0
    for number in range(cases):
        case = Case(frame, list(PUBLISHERS)[number % len(PUBLISHERS)], seed + number)
        if len(case.tables) < 2:
            continue
        more, with_belief, without = sampled_rows(case, sweeps, seed + number)
        rows += more
        told, silent, used = told + with_belief, silent + without, used + 1
    held = sum(low - CLOSE <= real <= high + CLOSE for real, _, low, high in rows)
    off = max((abs(real - mean) for real, mean, *_ in rows), default=0.0)
    wide = max(((high - low) / 2 for *_, low, high in rows), default=0.0)
    return {
        "cases": used, "people with a belief": told, "without one": silent, "values": len(rows),
        "within the interval": round(held / max(1, len(rows)), 4), "farthest off": round(off, 3),
        "widest half": round(wide, 3),
    }  # fmt: skip


def tables_of(frame: pl.DataFrame, publisher: str, folder: Path) -> list[Path]:
    """Each release of the panel as this publisher writes it, k = 5 and three different values."""
    quasi = [name for name in frame.columns if name not in ("name", "release", "value")]
    domains = [sorted(frame[name].unique().to_list()) for name in quasi]
    how, rng, files = PUBLISHERS[publisher], random.Random(1), []
    for number in sorted(frame["release"].unique()):
        here = frame.filter(pl.col("release") == number)
        people = [(tuple(row[:-1]), row[-1]) for row in here.select(*quasi, "value").iter_rows()]
        rows = how.recode(people, domains, 5, 3, rng)
        rng.shuffle(rows)
        files.append(folder / f"{publisher.replace(' ', '-').replace(',', '')}-{number}.csv")
        written(rows, quasi, domains, how, "value").write_csv(files[-1])
    return files


def own_tables(frame: pl.DataFrame, folder: Path) -> list[Path]:
    """Each release by itself, 5-anonymous and 3-diverse by Reveil, as a plain table."""
    quasi = [name for name in frame.columns if name not in ("name", "release", "value")]
    policy = {
        "columns": {"name": "identifier", **dict.fromkeys(quasi, "quasi"), "value": "sensitive"},
        "guarantee": {"model": "l-diversity", "l": 3, "k": 5},
    }
    files = []
    for number in sorted(frame["release"].unique()):
        table = reveil.anonymize(frame.filter(pl.col("release") == number).drop("release"), policy, seed=1).table
        files.append(folder / f"own-{number}.csv")
        table.drop("group", strict=False).write_csv(files[-1])
    return files


def peers_tables(frame: pl.DataFrame, peers: Path, folder: Path) -> dict[str, list[Path]]:
    """What anonypy, anonypyx and anjana make of each release, in an environment that has them."""
    frame.write_csv(folder / "panel.csv")
    script = ROOT / "tests" / "peers" / "publish.py"
    subprocess.run([peers, "-W", "ignore", script, folder / "panel.csv", folder, "5", "3"], check=True)
    made = {tool: sorted(folder.glob(f"{tool}-*.csv")) for tool in ("anonypy", "anonypyx", "anjana")}
    return {tool: files for tool, files in made.items() if files}


def attacked(files: Sequence[Path], people: Path, limit: float) -> dict[str, Any]:
    """One audit in a process of its own: what it says, its time and its memory."""
    call = [sys.executable, __file__, "one", *map(str, files), "--population", str(people), "--limit", str(limit)]
    done = subprocess.run(call, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr.strip().splitlines()[-1]}


def attack_one(files: Sequence[str], people: Path, limit: float) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        s = reveil.audit(list(files), people, sensitive="value", accept_missing=True, worst=0, limit=limit).summary
    except reveil.ReveilError as error:
        return {"refused": str(error).splitlines()[0][:120]}
    return {
        **{name: s[name] for name in ("people", "exposed", "undecided", "without_belief")},
        "processor seconds": round(time.process_time(), 1),
        "seconds": round(time.perf_counter() - start, 1),
        "memory, MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def trial(name: str, people: int | None, limit: float, peers: Path | None) -> None:
    frame = panel(name, people)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        frame.drop("value").write_csv(folder / "people.csv")
        series = {"Reveil, each release alone": own_tables(frame, folder)}
        for publisher in ("ARX, global levels", "ARX, local recoding", "rows left out", "Mondrian, aggregated"):
            series[publisher] = tables_of(frame, publisher, folder)
        if peers is not None:
            series |= peers_tables(frame, peers, folder)
        for publisher, files in series.items():
            print(publisher, json.dumps(attacked(files, folder / "people.csv", limit)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("worlds", "sampled", "trial", "one"))
    parser.add_argument("files", nargs="*", help="of one: released tables")
    parser.add_argument("--population", type=Path, help="of one: who may be in them")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--panel", choices=PANELS, default="nlswork")
    parser.add_argument("--people", type=int)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--peers", type=Path)
    given = parser.parse_args()
    if given.what == "worlds":
        print(json.dumps(compare_worlds(given.cases, given.seed, given.panel), indent=2))
    elif given.what == "sampled":
        print(json.dumps(compare_sampled(given.cases, given.seed, given.panel), indent=2))
    elif given.what == "one":
        print(json.dumps(attack_one(given.files, given.population, given.limit)))
    else:
        trial(given.panel, given.people, given.limit, given.peers)


if __name__ == "__main__":
    main()
