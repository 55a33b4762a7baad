"""Every cell and row of a home's catalog edited or deleted in turn, every file cut or flipped; then every command.

    python bench/tamper.py                    (everything: some thousand commands, about half an hour)
    python bench/tamper.py --every 40         (every 40th case)

Each command runs in a process of its own. It may refuse, with a code that names what it found; or say exactly what it
said of the whole home (then the damage did no harm). A traceback, a signal, a hang, another answer, or a third release
that does not know everybody again is a finding.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import reveil
from reveil.audit import gate  # noqa: F401 commands import them when they run
from reveil.cli import app, publishing, risks  # noqa: F401
from reveil.jobs import results  # noqa: F401

POLICY = """[columns]
id = "identifier"
age = "quasi"
ill = "sensitive"
[values]
change = "never"
[guarantee]
model = "compromise-safety"
m = 4
compromised = 1
"""
COUNTS = """[columns]
id = "identifier"
age = "drop"
ill = "sensitive"
[input]
encoding = "utf-8"
[dp]
epsilon = 3
[dp.bins]
ill = ["ill 0", "ill 1"]
[[dp.counts]]
name = "ills"
by = ["ill"]
spend = 1
"""
EDITS = ("NULL", "''", "'x'", "X'FF00'", "'{}'", "7", "CAST(COLUMN AS TEXT) || 'x'", "replace(COLUMN, '1', '2')")
COMMANDS = {
    "rows": (["publish", "three.csv", "--seed", "1"], ["history"], ["verify"], ["audit"], ["show"]),
    "counts": (["count", "three.csv"], ["spent"]),
}
PATIENCE = 60  # seconds
STAGE = re.compile(r"^[a-z][^\n]* \(\d+ s\)\n", re.MULTILINE)  # what long work says on a busy machine, on its way
NEVER_SAME = ("publish", "count")  # what they say is new each time


@dataclass(frozen=True)
class Case:
    """One damage: its name, and how it is done to a copy of the home."""

    name: str
    do: Callable[[Path], None]


def edited(statement: str) -> Callable[[Path], None]:
    def do(home: Path) -> None:
        with closing(sqlite3.connect(home / "ledger.sqlite")) as base, base:
            base.execute(statement)

    return do


def written(file: Path, data: bytes) -> Callable[[Path], None]:
    return lambda home: (home / file).write_bytes(data) and None


def removed(file: Path) -> Callable[[Path], None]:
    return lambda home: (home / file).unlink()


def cases(home: Path) -> Iterator[Case]:
    """Every cell, row and table of the catalog, and every file of the home."""
    with closing(sqlite3.connect(home / "ledger.sqlite")) as base:
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
            rows = [row for (row,) in base.execute(f"SELECT rowid FROM {table}")]
            yield Case(f"drop {table}", edited(f"DROP TABLE {table}"))
            for row in rows:
                yield Case(f"delete {table} {row}", edited(f"DELETE FROM {table} WHERE rowid = {row}"))
                for column in columns:
                    for edit in EDITS:
                        value = edit.replace("COLUMN", column)
                        statement = f"UPDATE {table} SET {column} = {value} WHERE rowid = {row}"
                        yield Case(f"{table}.{column} {row} = {edit}", edited(statement))
    for path in sorted(home.rglob("*")):
        if path.is_file():
            file, data = path.relative_to(home), path.read_bytes()
            yield Case(f"remove {file}", removed(file))
            for size in {0, len(data) // 2, max(len(data) - 1, 0)}:
                yield Case(f"cut {file} to {size}", written(file, data[:size]))
            for place in {0, len(data) // 3, len(data) // 2, len(data) - 1} if data else ():
                flipped = data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]
                yield Case(f"flip {file} at {place}", written(file, flipped))


def begun(folder: Path, kind: str) -> Path:
    """A series, begun in another process: only one that has no threads yet can be copied for each command."""
    subprocess.run([sys.executable, __file__, "--kind", kind, "--begin", str(folder)], check=True)
    return folder


def begin(folder: Path, kind: str) -> None:
    """A series of two releases of rows, or of counts, and the table of a third."""
    folder.mkdir()
    ids, ages = list(range(24)), list(range(20, 44))
    tables = [
        pl.DataFrame({"id": ids, "age": [age + n for age in ages], "ill": [f"ill {i % 6}" for i in ids]})
        for n in range(3)
    ]
    for name, table in zip(("one", "two", "three"), tables, strict=True):
        table.write_csv(folder / f"{name}.csv")
    (folder / "reveil.toml").write_text(POLICY if kind == "rows" else COUNTS)
    for name in ("one", "two"):
        if kind == "rows":
            reveil.open_series(folder / "reveil.toml").publish(folder / f"{name}.csv", seed=1)
        else:
            reveil.count(folder / f"{name}.csv", folder / "reveil.toml")


def run(folder: Path, words: list[str]) -> tuple[int, str]:
    """Exit code (negative: the signal that ended it) and all that was said, of a command in a process of its own."""
    said = folder / "said.txt"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.chdir(folder)
            for target in (1, 2):
                os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), target)
            sys.argv = ["reveil", *words]
            app.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    code = waited(child)
    text = said.read_text(errors="replace")
    said.unlink()
    return code, STAGE.sub("", text.replace(str(folder), "HERE"))


def waited(child: int) -> int:
    """The exit code of a process; one that takes too long is ended."""
    for _ in range(100 * PATIENCE):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finding(words: list[str], code: int, text: str, whole: tuple[int, str], folder: Path) -> str | None:
    """What is wrong with an answer, if anything is."""
    if code < 0 or code >= 70 or "Traceback" in text:
        return f"ended with {code}"
    if words[0] in NEVER_SAME and code == 0:
        return None if (folder / ".reveil/releases/0003").is_dir() and alike(text, whole[1]) else "another release"
    if (code, text) == whole:
        return None
    return None if re.search(r"R\d{3}", text) else "another answer, and no code that says why"


def alike(text: str, whole: str) -> bool:
    """Whether a release says the same of people as that of the whole home."""
    told = [line for line in whole.splitlines() if "came back" in line or "is left" in line]
    return all(line in text for line in told)


def sweep(kind: str, every: int, offset: int = 0) -> Counter[str]:
    """All cases of one kind of home; how they ended, findings printed."""
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        whole, work = begun(Path(place, "whole"), kind), Path(place, "work")
        answers = {}
        for words in COMMANDS[kind]:
            shutil.copytree(whole, work)
            answers[words[0]] = run(work, words)
            shutil.rmtree(work)
        listed = list(cases(whole / ".reveil"))
        for case in listed[offset::every]:
            for words in COMMANDS[kind]:
                shutil.copytree(whole, work)
                try:
                    case.do(work / ".reveil")
                except sqlite3.Error:  # the catalog itself does not allow it
                    seen["not possible"] += 1
                    shutil.rmtree(work)
                    break
                code, text = run(work, words)
                wrong = finding(words, code, text, answers[words[0]], work)
                same = (code, text) == answers[words[0]] or code == 0
                seen["FINDINGS" if wrong else "harmless" if same else "refused"] += 1
                if wrong:
                    print(f"{kind}, {case.name}, {' '.join(words)}: {wrong}\n{text[-1500:]}", flush=True)
                shutil.rmtree(work)
        seen["cases"] = len(listed[offset::every])
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--begin", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=list(COMMANDS), action="append")
    args = parser.parse_args()
    if args.begin is not None:
        begin(args.begin, args.kind[0])
        return
    wrong, started = 0, time.monotonic()
    for kind in args.kind or COMMANDS:
        seen = sweep(kind, args.every)
        wrong += seen["FINDINGS"]
        print(f"{kind}: " + ", ".join(f"{count:,} {what}" for what, count in sorted(seen.items())), flush=True)
    print(f"{time.monotonic() - started:.0f} s")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
