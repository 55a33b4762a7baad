"""Input that nobody would write: mutated policies and tables, and a coverage-guided fuzzer.

    python bench/fuzz.py mutations --cases 1500           (every command on mutated policies and tables)
    python bench/fuzz.py guided csv --seconds 600         (also: policy, notation; needs Atheris: pip install atheris)
    python bench/fuzz.py replay tests/fuzz                (what was found before, without Atheris)

A finding is a traceback (anything but a refusal), a hang (more than --patience seconds), or nonsense accepted in
silence. Nonsense is checked from what comes out: a release that says it holds must publish somebody, and in no group
fewer than k people; a table that was read must have the cells that Python's own reader finds in it; a policy that was
loaded must be the same once it is written down and loaded again; a cell that was read must cover what it shows.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import io
import json
import random
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import polars as pl

import reveil
from reveil.base.errors import InputError, ReveilError
from reveil.dp.count import count
from reveil.perturb.perturb import perturb
from reveil.policy.policy import load_policy, recorded_policy
from reveil.published.notation import parse_cell
from reveil.table.options import ReadOptions
from reveil.table.read import read_table


class NonsenseError(AssertionError):
    """Something was accepted that cannot be right."""


# --- one input, one target: shared by the guided fuzzer and the replay


def csv_target(data: bytes) -> None:
    """Text files: refused, or read with the cells that Python's reader finds."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        Path(file.name).write_bytes(data)
        for options in (ReadOptions(), ReadOptions(delimiter=",", encoding="utf-8", nulls=())):
            try:
                frame = read_table(file.name, options)
            except ReveilError:
                continue
            if options.delimiter:
                same_cells(data, frame)


def same_cells(data: bytes, frame: pl.DataFrame) -> None:
    text = data.decode("utf-8-sig")
    text = text if "\n" in text else text.replace("\r", "\n")
    if frame.width < 2 or "\r" in text.replace("\r\n", ""):
        return  # blank lines are rows of one column; what a lone return means differs between readers
    _, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    found = [["" if cell is None else cell for cell in row] for row in frame.rows()]
    if [[cell.replace("\r\n", "\n") for cell in row] for row in rows] != [
        [cell.replace("\r\n", "\n") for cell in row] for row in found
    ]:
        raise NonsenseError(f"{rows[:3]} was read as {found[:3]}")


def policy_target(data: bytes) -> None:
    """Policies: refused, or the same when written down and read again."""
    try:
        content = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return
    try:
        policy = load_policy(content)
    except ReveilError:
        return
    if recorded_policy(json.loads(json.dumps(policy.fixed())), policy).fixed() != policy.fixed():
        raise NonsenseError("the recorded policy is another one")


def notation_target(data: bytes) -> None:
    """Published cells: each covers what its text shows, as text and as a number."""
    text = data.decode(errors="replace")
    for numeric in (None, True, False):
        cell = parse_cell(text, numeric=numeric)
        if cell.text != text:
            raise NonsenseError(f"{text!r} was read as {cell.text!r}")


TARGETS: dict[str, Callable[[bytes], None]] = {"csv": csv_target, "policy": policy_target, "notation": notation_target}
SEEDS = {
    "csv": [b"a,b\n1,2\n", b'a;b\n"x;1";2\n', b'a,b\n"1\n2",3\n', b"\xef\xbb\xbfa\tb\n1\t2\n", b"a|b\r\n1|2\r\n"],
    "policy": [
        b'[columns]\nage = "quasi"\nill = "sensitive"\n[guarantee]\nmodel = "l-diversity"\nl = 2\nk = 3\n',
        b'[columns]\nid="identifier"\nage={role="quasi",widths=[5,10]}\nill="sensitive"\n[values]\nchange="never"\n'
        b'[guarantee]\nmodel="compromise-safety"\nm=4\ncompromised=1\nrefill=3\n[method]\ninfeasible="withhold"\n',
        b'[columns]\nz={role="quasi",prefixes=[3,2]}\nd={role="quasi",levels=["month"]}\nx="sensitive"\nn="identifier"\n'
        b'[values]\nchange="freely"\n[guarantee]\nmodel="global"\nl=3\nstrategy="greedy"\nprotect=["a"]\n',
    ],
    "notation": [b"[20-29]", b"{a,b}", b"476**", b"<18", b">=65", b"2024-02", b"[1.5-2.5[", b"*", b'{"a,b",c}'],
}


def guided(name: str, seconds: int, corpus: Path) -> None:
    """Atheris on one target; inputs that break it are written to the corpus folder."""
    try:
        import atheris
    except ModuleNotFoundError:
        raise SystemExit("Atheris is not installed here: pip install atheris") from None
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.instrument_all()  # everything is imported already
    target = TARGETS[name]
    words = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={seconds}",
        "-max_len=600",
        "-timeout=20",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup([*words, f"-artifact_prefix={corpus}/finding-"], lambda data: target(bytes(data)))
    atheris.Fuzz()


def replay(folder: Path) -> int:
    """Every kept input once; how many there are."""
    files = [(name, path) for name in TARGETS for path in sorted((folder / name).iterdir())]
    for name, path in files:
        TARGETS[name](path.read_bytes())
    return len(files)


# --- mutated policies and tables through the commands

ROWS = 40
MODELS: dict[str, dict[str, Any]] = {
    "k": {"guarantee": {"k": 3}},
    "l": {"guarantee": {"model": "l-diversity", "l": 2}},
    "t": {"guarantee": {"model": "t-closeness", "t": 0.5, "k": 2}},
    "anatomy": {"guarantee": {"model": "l-diversity", "l": 2, "k": 3}, "method": {"publish": "anatomy"}},
    "m-invariance": {"guarantee": {"model": "m-invariance", "m": 2}, "values": {"change": "never"}},
    "cohorts": {"guarantee": {"model": "compromise-safety", "m": 3}, "values": {"change": "never"}},
    "cohorts in two tables": {
        "guarantee": {"model": "compromise-safety", "m": 3, "k": 3},
        "values": {"change": "never"},
        "method": {"publish": "anatomy", "infeasible": "wait"},
    },
    "global": {
        "guarantee": {"model": "global", "l": 2, "strategy": "geometric", "rate": 0.5},
        "values": {"change": "freely"},
    },
    "m-distinct": {
        "guarantee": {"model": "m-distinct", "m": 2, "compromised": 0},
        "values": {
            "change": "transitions",
            "transitions": {v: list("abcd") for v in "abcd"},
        },
    },
    "perturb": {"perturb": [{"method": "noise", "columns": ["age"], "amount": 0.5}]},
    "count": {
        "dp": {"epsilon": 9, "bins": {"ill": list("abcd")}, "counts": [{"name": "n", "by": ["ill"], "spend": 1}]},
        "input": {"encoding": "utf-8"},
    },
}
COLUMNS: dict[str, Any] = {"id": "identifier", "age": "quasi", "zip": {"role": "quasi", "prefixes": [3, 2]}}
CELLS = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "old",
    '"',
    "=1+1",
    "\x1b[2J",
    "9" * 400,
    "é",
    "\ufffd",
    "2024-02-30",
    "*",
]
CELLS += ["Summe", "{a,b}", "[1-2]", " ", "1,5", "x" * 5000, "\u202e", "'", "-0", "1_000", "true", "None", "\t"]
VALUES: list[Any] = [0, 1, -1, 2**70, 1e400, 0.5, "1/0", "1/3", "", "x", [], {}, True, None, [[]], {"a": {}}, "é" * 50]
VALUES += ["quasi", "drop", "identifier", "sensitive", ["a", "a"], [1, 1], [3, 2, 1], float("nan"), "9" * 5000]


def people(rng: random.Random) -> list[list[str]]:
    rows = [[f"p{n}", str(20 + n % 9), f"47{n % 5}{n % 3}", "abcd"[n % 4]] for n in range(ROWS)]
    return [["id", "age", "zip", "ill"], *rows]


def mutated_table(rng: random.Random) -> str:
    """A table in which some things are wrong: cells, rows, columns, the header, delimiters."""
    rows = people(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        what, row = rng.randrange(9), rng.randrange(len(rows))
        if what < 4 and rows[row]:
            rows[row][rng.randrange(len(rows[row]))] = rng.choice(CELLS)
        elif what == 4:
            rows.insert(row, list(rows[rng.randrange(len(rows))]))
        elif what == 5:
            rows[row] = rows[row][: rng.randrange(4)]
        elif what == 6:
            rows = [[*r, rng.choice(CELLS)] for r in rows]
        elif what == 7:
            rows = rows[: rng.randrange(len(rows) + 1)] or [[]]
        else:
            column = rng.randrange(4)
            rows = [rows[0], *([*r[:column], rng.choice(CELLS), *r[column + 1 :]] for r in rows[1:])]
    return "\n".join(
        rng.choice((",", ",", ",", ";")).join(row) if rng.random() < 0.01 else ",".join(row) for row in rows
    )


def mutated_policy(rng: random.Random, model: str) -> dict[str, Any]:
    """A policy with keys changed, taken away, or put in from another one."""
    idle = {"zip": "drop"} if model in ("perturb", "count") else {}  # nothing is generalised there
    policy: dict[str, Any] = {"columns": {**COLUMNS, **idle, "ill": "sensitive"}, **MODELS[model]}
    policy = json.loads(json.dumps(policy))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        place: Any = policy
        while True:
            keys = (
                list(place) if isinstance(place, dict) else list(range(len(place))) if isinstance(place, list) else []
            )
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.75:
                place = place[key]
                continue
            what = rng.randrange(4)
            if what == 0 and isinstance(place, dict):
                del place[key]
            elif what == 1 and isinstance(place, dict):
                other = rng.choice(list(MODELS.values()))
                section = rng.choice(list(other))
                place[rng.choice([section, "k", "l", "m", "tau", "refill", "recode", "name", "type"])] = deepcopy(
                    other[section]
                )
            else:
                place[key] = deepcopy(rng.choice(VALUES))
            break
    return policy


def run_case(model: str, policy: dict[str, Any], table: str, folder: Path) -> str:
    """What the command made of it: published or refused. Nonsense that was accepted is raised."""
    path = folder / "people.csv"
    path.write_text(table, encoding="utf-8", errors="surrogatepass")
    try:
        if model == "perturb":
            made = perturb(path, policy, seed=1)
            require(made.table.height > 0 and all(check.holds for check in made.checks), "a perturbed table of nobody")
        elif model == "count":
            counted = count(path, policy, home=folder / "home")
            require(all(t.height for t in counted.tables.values()), "counts of nothing")
        elif "values" in MODELS[model]:
            sensible(reveil.open_series(policy, home=folder / "home").publish(path, seed=1), policy)
        else:
            sensible(reveil.anonymize(path, policy, seed=1), policy)
    except ReveilError as error:
        require(bool(error.faults) and all(fault.remedy and fault.where for fault in error.faults), "no way out")
        require(not isinstance(error, InputError) or error.exit_code == 2, "a refusal with another exit code")
        return "refused"
    return "published"


def sensible(release: Any, policy: dict[str, Any]) -> None:
    """A release that holds publishes somebody, and its groups are as large as it promises; k is about boxes, if any."""
    counts = release.certificate.counts
    require(release.certificate.holds, "a release that does not hold")
    require(counts["published rows"] > counts["counterfeit rows"], "a release of nobody")
    asked = policy.get("guarantee", {})
    k, m = int(asked.get("k") or 1), int(asked.get("m") or 1) if asked.get("model") != "epsilon-m" else 1
    least = m if "smallest box" in counts else max(k, m)
    require(counts["smallest group"] >= min(least, counts["published rows"]), f"a group smaller than {least}")
    require(counts.get("smallest box", k) >= k, f"a box smaller than {k}")
    require(
        max(k, m) > 1 or any(key in asked for key in ("l", "t", "alpha", "m", "beta", "r", "delta_max")), "no promise"
    )


def require(sense: bool, what: str) -> None:
    if not sense:
        raise NonsenseError(what)


def mutations(cases: int, seed: int, patience: float) -> int:
    """Random cases; the number of findings, each with what repeats it."""
    seen: Counter[str] = Counter()
    for number in range(cases):
        rng = random.Random(seed * 1_000_003 + number)
        model = list(MODELS)[number % len(MODELS)]
        policy, table = mutated_policy(rng, model), mutated_table(rng)
        started = time.monotonic()
        faulthandler.dump_traceback_later(
            10 * patience, exit=True, file=sys.__stderr__
        )  # a hang that no exception ends
        with tempfile.TemporaryDirectory() as place:
            try:
                seen[f"{model}: {run_case(model, policy, table, Path(place))}"] += 1
            except Exception as error:  # whatever it is: that is what is looked for
                seen["FINDINGS"] += 1
                traceback.print_exception(error, limit=-3)
                print(f"case {number} of seed {seed}: {model}\n  {policy}\n  {table[:300]!r}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        if time.monotonic() - started > patience:
            seen["FINDINGS"] += 1
            print(
                f"case {number} of seed {seed}: {model} took {time.monotonic() - started:.0f} s\n  {policy}", flush=True
            )
    print("\n".join(f"{count:6,}  {what}" for what, count in sorted(seen.items())))
    print(f"{cases:,} cases, {seen['FINDINGS']} findings")
    return seen["FINDINGS"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("mutations")
    one.add_argument("--cases", type=int, default=1_500)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--patience", type=float, default=30.0)
    two = commands.add_parser("guided")
    two.add_argument("target", choices=list(TARGETS))
    two.add_argument("--seconds", type=int, default=600)
    two.add_argument("--corpus", type=Path, default=None)
    commands.add_parser("replay").add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.what == "mutations":
        raise SystemExit(1 if mutations(args.cases, args.seed, args.patience) else 0)
    if args.what == "guided":
        guided(args.target, args.seconds, args.corpus or Path(tempfile.mkdtemp()) / args.target)
    else:
        print(f"{replay(args.folder)} inputs, 0 findings")


if __name__ == "__main__":
    main()
