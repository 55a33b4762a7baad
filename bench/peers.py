"""One release by Reveil and by its peers from PyPI, side by side: loss, validity, time and memory.

    reveil bench peers -- --install             (makes .venv-others with anonypy, anonypyx and anjana, and measures)
    python bench/peers.py --rows 5000 --k 5 --l 3

Every tool gets the same table (Adult, categories as numbers, so that all of them cut ranges) and runs in a process of
its own, from reading a CSV to writing one; its processor time and peak memory are those of that process, with start-up.
What it wrote is judged by this script alone, which knows nothing of any tool but how it writes a range; pyCANON
measures k and l again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import venv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[1]
ADULT = ROOT.parent / "shared" / "data" / "adult.parquet"
OTHERS, PYCANON = ROOT / ".venv-others", ROOT / ".venv-peers"
QUASI = ["age", "education_num", "hours_per_week", "workclass", "marital_status", "race", "sex"]
SENSITIVE = "occupation"
PEERS = ("anonypy", "anonypyx", "anjana")
OURS = {
    "Reveil": {},
    "Reveil, sets": {"recode": "sets"},
    "Reveil, full-domain": {"name": "full-domain", "suppress": 0.05},
}
RANGE = re.compile(r"^[\[']*(-?\d+)(?:\s*[-,]\s*(-?\d+))?[\]']*$")

Cell = tuple[int, int]
Shown = tuple[tuple[Cell, ...], str]  # a published row: a range of each quasi-identifier, and the value beside them


@dataclass(frozen=True)
class Measured:
    """What a tool's process took, and what came of it."""

    seconds: float  # of processor
    megabytes: float
    failed: str = ""


@dataclass(frozen=True)
class Judged:
    """What is true of a published table, from its cells alone."""

    rows: int
    k: int
    l: int  # noqa: E741 as it is called
    loss: float  # NCP per cell; a row that is not shown counts as 1
    wrong: str  # why it cannot be a table of these people, or nothing


def adult(rows: int) -> pl.DataFrame:
    """Adult without rows that miss something; categories as numbers in their order of the alphabet."""
    frame = pl.read_parquet(ADULT).select(*QUASI, SENSITIVE).drop_nulls().head(rows)
    coded = [pl.col(c).cast(pl.String).rank("dense").cast(pl.Int64) for c in QUASI if not frame[c].dtype.is_numeric()]
    named = pl.Series("name", range(frame.height))
    return frame.with_columns(*coded, pl.col(SENSITIVE).cast(pl.String)).insert_column(0, named)


def judge(table: pl.DataFrame, published: Sequence[Shown]) -> Judged:
    """k, l and loss of published rows, and whether they can be those of the people of the table."""
    people = Counter(tuple(row) for row in table.select(QUASI).iter_rows())
    spans = [(table[c].min(), table[c].max()) for c in QUASI]
    values = defaultdict(Counter)
    for cells, value in published:
        values[cells][value] += 1
    sizes = {cells: sum(counts.values()) for cells, counts in values.items()}
    lost = sum(size * sum((b - a) / max(1, high - low) for (a, b), (low, high) in zip(cells, spans, strict=True))
               for cells, size in sizes.items())  # fmt: skip
    missing = table.height - len(published)
    wrong = [] if missing >= 0 else [f"{-missing} rows too many"]
    beyond = Counter(value for _, value in published) - Counter(table[SENSITIVE].to_list())
    wrong += [f"{sum(beyond.values())} values that nobody has"] if beyond else []
    alone = [c for c, size in sizes.items() if sum(n for p, n in people.items() if covers(c, p)) < size]
    wrong += [f"{len(alone)} classes that fit fewer people than they show"] if alone else []
    least = min(map(len, values.values()), default=0)
    loss = (lost / len(QUASI) + max(0, missing)) / table.height
    return Judged(len(published), min(sizes.values(), default=0), least, loss, "; ".join(wrong))


def covers(cells: Sequence[Cell], person: Sequence[int]) -> bool:
    return all(a <= value <= b for (a, b), value in zip(cells, person, strict=True))


def shown(file: Path, table: pl.DataFrame) -> Iterator[Shown]:
    """The rows of a published file, whatever tool wrote it."""
    spans = {c: (int(table[c].min()), int(table[c].max())) for c in QUASI}  # type: ignore[arg-type]
    frame = pl.read_csv(file, infer_schema=False)
    counts = frame["count"].cast(pl.Int64) if "count" in frame.columns else [1] * frame.height
    for row, count in zip(frame.select(*QUASI, SENSITIVE).iter_rows(), counts, strict=True):
        cells = tuple(cell(text, spans[name]) for name, text in zip(QUASI, row, strict=False))
        yield from [(cells, row[-1])] * count


def cell(text: str, span: Cell) -> Cell:
    """A range as it is written: 17, 17-19, ['17-19'], [17-19], [17, 19]; a set {1,3} from its least to its largest.

    >>> cell("[17, 19]", (0, 9)), cell("*", (0, 9)), cell("{1,3}", (0, 9))
    ((17, 19), (0, 9), (1, 3))
    """
    if text == "*":
        return span
    if text.startswith("{"):
        numbers = [int(one) for one in text.strip("{}").split(",")]
        return min(numbers), max(numbers)
    found = RANGE.match(text)
    if found is None:
        raise ValueError(f"no range: {text!r}")
    low, high = found.groups()
    return int(low), int(high or low)


def run(command: Sequence[str | Path], limit: float) -> Measured:
    """A command in a process of its own: processor time, peak memory, and its last words if it failed."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([str(word) for word in command], stdout=said, stderr=subprocess.STDOUT)
        stop = threading.Timer(limit, process.kill)
        stop.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        late = not stop.is_alive()
        stop.cancel()
        said.seek(0)
        last = (said.read().strip().splitlines() or [""])[-1]
    why = f"stopped after {limit:g} s" if late else last if process.returncode else ""
    return Measured(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, why)


def by_us(table: Path, folder: Path, method: dict[str, object], k: int, l: int, limit: float) -> tuple[Measured, Path]:  # noqa: E741
    columns = "\n".join(f'{name} = {{ role = "quasi", type = "number" }}' for name in QUASI)
    asked = "\n".join(f"{key} = {json.dumps(value)}" for key, value in method.items())
    policy = folder / "reveil.toml"
    policy.write_text(
        f'[columns]\nname = "drop"\n{columns}\n{SENSITIVE} = "sensitive"\n'
        f'[guarantee]\nmodel = "l-diversity"\nk = {k}\nl = {l}\n[method]\n{asked}\n'
    )
    out = folder / "release"
    words = ["-m", "reveil", "anonymize", table, "--out", out, "-p", policy, "--quiet"]
    return run([sys.executable, *words], limit), out / "public" / "table.csv"


def by_peer(tool: str, python: Path, panel: Path, folder: Path, k: int, l: int, limit: float) -> tuple[Measured, Path]:  # noqa: E741
    took = run([python, ROOT / "tests" / "peers" / "publish.py", panel, folder, str(k), str(l), tool], limit)
    return took, folder / f"{tool}-1.csv"


def install() -> Path:
    """The environment of the peers, made where it is missing."""
    python = OTHERS / "bin" / "python"
    if not python.exists():
        venv.create(OTHERS, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "-r", str(ROOT / "constraints-others.txt")]
        subprocess.run(pip, check=True)
    return python


def line(name: str, took: Measured, file: Path, table: pl.DataFrame, ours: Sequence[float]) -> tuple[str, list[float]]:
    """A line of the table, and the figures of the tool: loss and seconds."""
    if took.failed or not file.exists():
        return f"| {name} | | | | | | {took.seconds:.1f} | | | {took.failed or 'wrote nothing'} |", [1.0, took.seconds]
    j = judge(table, list(shown(file, table)))
    figures = [j.loss, took.seconds]
    loss, time = (f"{mine / best:.2f}" for mine, best in zip(figures, ours or figures, strict=True))
    cells = (name, f"{j.rows:,}", j.k, j.l, f"{j.loss:.4f}", loss, f"{took.seconds:.1f}", time, f"{took.megabytes:.0f}")
    return f"| {' | '.join(map(str, cells))} | {j.wrong or 'none'} |", figures


def second_opinion(file: Path, table: pl.DataFrame) -> str:
    """k and l of our release by pyCANON, beside ours."""
    frame = pl.read_csv(file, infer_schema=False)
    job = {"table": frame.select(*QUASI, SENSITIVE).to_dict(as_series=False), "quasi": QUASI, "sensitive": SENSITIVE}
    words = [str(PYCANON / "bin" / "python"), str(ROOT / "tests" / "peers" / "pycanon_measure.py")]
    asked = json.dumps([{**job, "measures": ["k", "l"]}])
    found = json.loads(subprocess.run(words, input=asked, capture_output=True, text=True, check=True).stdout)[0]
    j = judge(table, list(shown(file, table)))
    return f"pyCANON of our release: k = {found['k']:g}, l = {found['l']:g}; this script: k = {j.k}, l = {j.l}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="of Adult, at most")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--l", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900, help="seconds for each tool")
    parser.add_argument("--install", action="store_true", help="make the environment of the peers where it is missing")
    asked = parser.parse_args(arguments)
    python = install() if asked.install else OTHERS / "bin" / "python"
    table, terms = adult(asked.rows), (asked.k, asked.l, asked.limit)
    load = f"load {os.getloadavg()[0]:.0f}"
    print(f"Adult, {table.height:,} rows, {len(QUASI)} quasi-identifiers, k = {asked.k}, l = {asked.l}; {load}")
    print("| tool | rows shown | k | l | loss (NCP) | / ours | CPU s | / ours | peak MB | faults |")
    print("|-|-|-|-|-|-|-|-|-|-|")
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        table.write_csv(folder / "table.csv")
        table.select("name", *QUASI, SENSITIVE).insert_column(1, pl.Series("release", [1] * table.height)).write_csv(
            folder / "panel.csv"
        )
        table.head(200).write_csv(folder / "few.csv")
        for number, (name, method) in enumerate(OURS.items()):
            own = folder / f"ours-{number}"
            for first in (True, False):  # kernels are compiled once on a machine
                (own / str(first)).mkdir(parents=True)
                given = folder / ("few.csv" if first else "table.csv")
                took, file = by_us(given, own / str(first), method, *terms)
            text, figures = line(name, took, file, table, ours)
            ours = ours or figures
            print(text, flush=True)
        for tool in PEERS if python.exists() else ():
            took, file = by_peer(tool, python, folder / "panel.csv", folder, *terms)
            print(line(tool, took, file, table, ours)[0], flush=True)
        if not python.exists():
            print(f"\n{', '.join(PEERS)}: not here; --install makes an environment for them.")
        if (PYCANON / "bin" / "python").exists():
            print("\n" + second_opinion(folder / "ours-0" / "False" / "release" / "public" / "table.csv", table))


if __name__ == "__main__":
    main()
