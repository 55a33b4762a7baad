"""Small tables and promises for releases that come apart, and the promise by the oracles' own definitions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from oracle import disclosure, likeness, single

COLUMNS = {"age": "quasi", "town": {"role": "quasi", "prefixes": [1]}, "ill": "sensitive", "note": "insensitive"}
PROMISES: list[dict[str, Any]] = [
    {"k": 3},
    {"model": "l-diversity", "k": 2, "l": 2},
    {"model": "l-diversity", "l": 2, "diversity": "entropy"},
    {"model": "l-diversity", "l": 2, "c": 2, "diversity": "recursive"},
    {"model": "alpha-k", "k": 2, "alpha": 0.6},
    {"model": "t-closeness", "k": 2, "t": 0.4},
    {"model": "beta-likeness", "beta": 2},
    {"model": "beta-likeness", "beta": 1, "likeness": "basic"},
    {"model": "delta-disclosure", "delta": 1},
]
TINY = {"part": 8, "file": 13, "sample": 30}  # parts that often cannot keep the promise by themselves


def tables(seed: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    town, ill = ["10", "11", "20", "21", "30"], ["flu", "cold", "asthma", "gout", None]
    return pl.DataFrame(
        {
            "age": rng.integers(20, 20 + rng.integers(1, 60), rows),
            "town": rng.choice(town, rows),
            "ill": pl.Series([ill[i] for i in np.minimum(rng.geometric(0.4, rows) - 1, 4)], dtype=pl.String),
            "note": rng.choice(["a", "b"], rows),
        }
    )


def holds(table: pl.DataFrame, promise: dict[str, Any]) -> bool:
    """The promise by its definition, as the oracles have it."""
    classes = [group["ill"].to_list() for _, group in table.group_by("age", "town")]
    asked = {name: Fraction(str(value)) for name, value in promise.items() if isinstance(value, (int, float))}
    kept = [single.smallest_class(classes) >= asked.get("k", 1)]
    match promise.get("model"):
        case "l-diversity" if promise.get("diversity") == "entropy":
            kept.append(single.entropy_diverse(classes, promise["l"]))
        case "l-diversity" if promise.get("diversity") == "recursive":
            kept.append(single.recursively_diverse(classes, asked["c"], promise["l"]))
        case "l-diversity":
            kept.append(single.fewest_values(classes) >= promise["l"])
        case "alpha-k":
            kept.append(single.largest_share(classes) <= asked["alpha"])
        case "t-closeness":
            values = sorted({value for rows in classes for value in rows}, key=str)
            kept.append(single.furthest_class(classes, single.ground_equal(values)) <= asked["t"])
        case "beta-likeness":
            kept.append(likeness.holds(classes, asked["beta"], promise.get("likeness") != "basic"))
        case "delta-disclosure":
            kept.append(disclosure.holds(classes, asked["delta"]))
        case model:
            assert model is None
    return all(kept)
