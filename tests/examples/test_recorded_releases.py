"""The same seed and key give the same public bytes as when they were recorded, for every model and way of publishing.

A change of structure must not change a byte. A change of the format or of the lots does so on purpose: then run
`python tests/examples/test_recorded_releases.py` and say in the commit why the recorded hashes are others.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import reveil
from reveil.simulation.simulate import transitions

RECORDED = Path(__file__).with_name("recorded_releases.json")
HOSPITAL = {
    "patient": "identifier",
    "age": "quasi",
    "sex": "quasi",
    "zip": {"role": "quasi", "type": "category", "prefixes": [4, 3, 2]},
    "admitted": {"role": "quasi", "type": "date", "levels": ["month", "quarter", "year"]},
    "ward": "insensitive",
    "diagnosis": "sensitive",
}
KEY = bytes(range(32))
NEVER, FREELY = {"change": "never"}, {"change": "freely"}
WITHHOLD = {"infeasible": "withhold"}

SINGLE: dict[str, dict[str, Any]] = {
    "k-anonymity": {"guarantee": {"k": 5}},
    "l-diversity": {"guarantee": {"model": "l-diversity", "l": 3, "k": 4}, "output": {"format": "parquet"}},
    "entropy": {"guarantee": {"model": "l-diversity", "l": 3, "diversity": "entropy"}},
    "t-closeness": {"guarantee": {"model": "t-closeness", "t": "0.4", "k": 5}},
    "alpha-k": {"guarantee": {"model": "alpha-k", "alpha": "1/2", "k": 4}, "method": {"cuts": "strict"}},
    "full-domain": {"guarantee": {"k": 5}, "method": {"name": "full-domain", "suppress": "0.1"}},
    "subtree": {"guarantee": {"k": 5}, "method": {"name": "subtree"}},
    "sibling": {"guarantee": {"k": 5}, "method": {"name": "sibling"}},
    "cell": {"guarantee": {"k": 5}, "method": {"name": "cell"}},
    "sets": {"guarantee": {"k": 5}, "method": {"recode": "sets"}},
    "suppress": {"guarantee": {"k": 5}, "method": {"name": "cell", "recode": "suppress"}},
    "anatomy": {"guarantee": {"model": "l-diversity", "l": 3}, "method": {"publish": "anatomy", "people": "exact"}},
}
COHORTS = {"model": "compromise-safety", "m": 4, "compromised": 1}
JOINT = {"m": 2, "compromised": 0}
SERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "series of l-diversity": ("never", {"guarantee": {"model": "l-diversity", "l": 3, "k": 4}}),
    "cohorts": ("never", {"values": NEVER, "guarantee": COHORTS}),
    "cohorts refilled": ("never", {"values": NEVER, "guarantee": {**COHORTS, "refill": 2}, "method": WITHHOLD}),
    "m-invariance": ("never", {"values": NEVER, "guarantee": {"model": "m-invariance", "m": 4}}),
    "historical safety": (
        "never",
        {"values": NEVER, "guarantee": {"model": "historical-safety", "m": 4, "n": 2}, "method": WITHHOLD},
    ),
    "cor-split": (
        "never",
        {
            "values": NEVER,
            "guarantee": {"model": "historical-safety", "m": 4, "n": 2, "closure": "pairwise"},
            "method": WITHHOLD,
        },
    ),
    "global": (
        "freely",
        {"values": FREELY, "guarantee": {"model": "global", "l": 2, "strategy": "constant-ratio", "horizon": 4}},
    ),
    "global anatomy": (
        "freely",
        {
            "values": FREELY,
            "guarantee": {"model": "global", "l": 2, "strategy": "telescoping"},
            "method": {"publish": "anatomy", "people": "exact", **WITHHOLD},
        },
    ),
    "cohorts in two tables": (
        "never",
        {"values": NEVER, "guarantee": {**COHORTS, "k": 5}, "method": {"publish": "anatomy", **WITHHOLD}},
    ),
    "m-distinct-star in two tables": (
        "transitions",
        {"guarantee": {"model": "m-distinct-star", **JOINT, "k": 4}, "method": {"publish": "anatomy", **WITHHOLD}},
    ),
    "m-distinct joint": ("transitions", {"guarantee": {"model": "m-distinct", **JOINT}, "method": WITHHOLD}),
    "m-distinct individual": (
        "transitions",
        {"guarantee": {"model": "m-distinct", "m": 2, "view": "individual"}, "method": WITHHOLD},
    ),
    "m-distinct-star": ("transitions", {"guarantee": {"model": "m-distinct-star", **JOINT}, "method": WITHHOLD}),
}


def hashed(public: Path) -> str:
    """One hash of all public files, without what a data package says of versions."""
    digest = hashlib.sha256()
    for path in sorted(public.iterdir()):
        if path.suffix == ".parquet":  # its bytes follow the version of the writer
            content = pl.read_parquet(path).write_csv().encode()
        elif path.name == "datapackage.json":
            content = json.dumps([r["schema"] for r in json.loads(path.read_bytes())["resources"]]).encode()
        else:
            content = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:24]


def scenario(change: Any, rows: int, releases: int) -> reveil.Scenario:
    return reveil.Scenario(rows=rows, releases=releases, values=change, arrive=0.2, leave=0.2, seed=5)


def single(name: str, folder: Path) -> Iterator[str]:
    (table,) = reveil.simulate(scenario("never", 200, 1)).tables
    policy = {"columns": HOSPITAL, **SINGLE[name]}
    yield hashed(reveil.anonymize(table, policy, seed=11, key=KEY, out=folder / "release").public)


def series(name: str, folder: Path) -> Iterator[str]:
    change, policy = SERIES[name]
    if change == "transitions":
        relation = transitions(scenario(change, 150, 3))
        relation.write_csv(folder / "transitions.csv", separator=";")
        policy = {"values": {"change": change, "transitions": str(folder / "transitions.csv")}, **policy}
    (folder / "home").mkdir()
    (folder / "home" / "key").write_bytes(KEY)
    opened = reveil.open_series({"columns": HOSPITAL, **policy}, home=folder / "home")
    for table in reveil.simulate(scenario(change, 150, 3)).tables:
        yield hashed(opened.publish(table, seed=11).public)


CASES: dict[str, Callable[[str, Path], Iterator[str]]] = {
    **dict.fromkeys(SINGLE, single),
    **dict.fromkeys(SERIES, series),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_and_key_give_the_recorded_bytes(name: str, tmp_path: Path) -> None:
    assert list(CASES[name](name, tmp_path)) == json.loads(RECORDED.read_text(encoding="utf-8"))[name]


def record() -> None:
    found = {}
    for name, make in CASES.items():
        folder = Path(tempfile.mkdtemp())
        found[name] = list(make(name, folder))
        shutil.rmtree(folder)
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
