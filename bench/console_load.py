"""The console under load, on loopback: many who follow a job, a large upload and a publish at once.

    python bench/console_load.py                          (300 viewers, 1 GB, a table of 100,000 rows; about a minute)
    python bench/console_load.py --viewers 5 --megabytes 4 --rows 500 --times 20

A console of its own is started in a temporary folder and ended. Pages are asked for one after the other, on one
connection, while viewers hold event streams open, the upload is streamed as fast as it is taken, and a worker makes a
release. Printed: how long pages took, and the largest memory that the web process ever had (without its workers).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

POLICY = """
[series]
name = "load"
[columns]
who = "identifier"
age = "quasi"
zip = "quasi"
ill = "sensitive"
[values]
change = "never"
[guarantee]
model = "m-invariance"
m = 3
"""
HOST = "127.0.0.1"


def table(path: Path, rows: int) -> None:
    chance = random.Random(1)
    with path.open("w", encoding="utf-8") as out:
        out.write("who,age,zip,ill\n")
        for number in range(rows):
            out.write(f"p{number},{chance.randint(18, 90)},{chance.randint(10000, 10999)},ill{chance.randint(1, 12)}\n")


class Client:
    """HTTP/1.1 by hand: as little as possible beside what is measured."""

    def __init__(self, port: int, cookie: str = "", token: str = "") -> None:
        self.port, self.cookie, self.token = port, cookie, token

    def head(self, verb: str, path: str, more: str = "") -> bytes:
        lines = f"{verb} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nCookie: {self.cookie}\r\n"
        return f"{lines}X-Reveil-Token: {self.token}\r\n{more}\r\n".encode()

    async def ask(self, verb: str, path: str, body: bytes = b"") -> tuple[int, str, str]:
        """Status, headers and body of an answer on a connection of its own."""
        reader, writer = await asyncio.open_connection(HOST, self.port)
        writer.write(self.head(verb, path, f"Connection: close\r\nContent-Length: {len(body)}\r\n") + body)
        answer = (await reader.read()).decode(errors="replace")
        writer.close()
        head, _, rest = answer.partition("\r\n\r\n")
        return int(head.split(" ", 2)[1]), head, rest

    async def follow(self, path: str, seen: list[int]) -> None:
        """Hold an event stream open, as a page does."""
        reader, writer = await asyncio.open_connection(HOST, self.port)
        writer.write(self.head("GET", path))
        try:
            while line := await reader.readline():
                seen[0] += line.startswith(b"data:")
        finally:
            writer.close()

    async def upload(self, megabytes: int) -> float:
        """Stream so many megabytes; seconds that it took."""
        begin = time.perf_counter()
        reader, writer = await asyncio.open_connection(HOST, self.port)
        size = megabytes << 20
        writer.write(self.head("PUT", "/api/v1/uploads/large.csv", f"Connection: close\r\nContent-Length: {size}\r\n"))
        block = b"x,y\n" * (1 << 18)
        for _ in range(megabytes):
            writer.write(block)
            await writer.drain()
        answer = await reader.read()
        writer.close()
        if b" 201 " not in answer.split(b"\r\n", 1)[0]:
            raise SystemExit(f"the upload was refused: {answer[:300]!r}")
        return time.perf_counter() - begin


def largest(pid: int) -> float:
    """Megabytes of memory that a process had at most."""
    said = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", said)
    return int(found.group(1)) / 1024 if found else 0.0


async def measured(folder: Path, port: int, link: str, pid: int, asked: argparse.Namespace) -> None:
    client = Client(port)
    for _ in range(300):
        try:
            await client.ask("GET", "/health")
            break
        except OSError:  # it said its address, and begins to listen
            await asyncio.sleep(0.1)
    _, head, _ = await client.ask("GET", link)
    client.cookie = re.findall(r"set-cookie: ([^;]+)", head, re.IGNORECASE)[0]
    _, _, me = await client.ask("GET", "/api/v1/me")
    client.token = re.findall(r'"token":"([^"]+)"', me)[0]
    status, _, kept = await client.ask("PUT", "/api/v1/uploads/t.csv", (folder / "t.csv").read_bytes())
    assert status == 201, kept
    upload = re.findall(r'"id":"([^"]+)"', kept)[0]
    before = largest(pid)
    jobs = []
    for _ in range(2):  # the second waits, or is refused when the first is done: its viewers follow it, too
        _, _, job = await client.ask("POST", f"/api/v1/series/load/proposals?upload={upload}")
        jobs.append(re.findall(r'"id":"([^"]+)"', job)[0])
    seen = [0]
    paths = [f"/api/v1/jobs/{jobs[n % 2]}/events" for n in range(asked.viewers)]
    viewers = [asyncio.create_task(client.follow(path, seen)) for path in paths]
    sending = asyncio.create_task(client.upload(asked.megabytes))
    await asyncio.sleep(0.2)
    taken, during, pages, running = [], [], ("/", "/series/load", "/jobs", "/new", f"/jobs/{jobs[0]}?stay=true"), 0
    while len(taken) < asked.times or (not sending.done() and len(taken) < 100 * asked.times):
        begin = time.perf_counter()
        status, _, text = await client.ask("GET", pages[len(taken) % len(pages)])
        taken.append(1000 * (time.perf_counter() - begin))
        assert status == 200, text[:300]
        during += [taken[-1]] if not sending.done() else []
        running += any(not viewer.done() for viewer in viewers)
        await asyncio.sleep(0.02)
    seconds = await sending
    for viewer in viewers:
        viewer.cancel()
    await asyncio.gather(*viewers, return_exceptions=True)
    sent = f"{asked.megabytes} MB in {seconds:.1f} s, {asked.rows:,} rows published"
    print(f"{asked.viewers} viewers ({seen[0]:,} events), {sent}; load {os.getloadavg()[0]:.1f}")
    print(f"{len(taken)} pages, {len(during)} of them during the upload, {running} with viewers\n")
    print("| | median ms | 95 % | slowest |\n|---|---|---|---|")
    for name, times in (("all pages", sorted(taken)), ("during the upload", sorted(during) or [0.0])):
        figures = [times[len(times) // 2], times[int(0.95 * (len(times) - 1))], times[-1]]
        print(f"| {name} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |")
    print(f"\nlargest memory of the web process {largest(pid):.0f} MB, before the load {before:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=300)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=300, help="pages to ask for, at least")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "load").mkdir()
        (folder / "load" / "reveil.toml").write_text(POLICY, encoding="utf-8")
        table(folder / "t.csv", asked.rows)
        command = [sys.executable, "-m", "reveil", "serve", str(folder), "--no-browser", "--at-once", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as console:
            try:
                assert console.stdout is not None
                said = console.stdout.readline()
                port, link = re.findall(rf"http://{HOST}:(\d+)(/\S+)", said)[0]
                with ThreadPoolExecutor(1) as apart:  # a browser of the tests may have a loop in this thread
                    apart.submit(asyncio.run, measured(folder, int(port), link, console.pid, asked)).result()
            finally:
                console.terminate()
                console.wait(30)


if __name__ == "__main__":
    main()
