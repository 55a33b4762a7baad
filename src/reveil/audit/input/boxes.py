"""What boxes of people tell over several releases: who can still be meant, once a row has been followed.

In each release at least k people share a box. A group can often be followed from release to release by its values, and
with it the rows of its people; whoever does so has all boxes of a person, and only those who were in the same boxes
whenever this person was shown, and away whenever not, fit all of them. This is the worst case: that every row can be
followed. Of the ledger's memory only the boxes are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.input.observed import Observed
from reveil.audit.input.series import REMEDY
from reveil.base.arrays import I64
from reveil.base.errors import Fault, TamperedError
from reveil.base.words import some_people
from reveil.ledger.ledger import Ledger
from reveil.published.format import PUBLIC
from reveil.published.reader import read_release

TABLE = "boxes"


@dataclass(frozen=True, eq=False)
class BoxCrowds:
    """For each person ever shown: how many people of the series fit all their boxes, themselves among them."""

    sizes: I64
    least: int  # people in the smallest box of any release

    def to_dict(self) -> dict[str, Any]:
        return {
            "people": len(self.sizes),
            "smallest_box": self.least,
            "fewer_than_a_box": int((self.sizes < self.least).sum()),
            "alone": int((self.sizes == 1).sum()),
            "median": float(np.median(self.sizes)),
        }

    def sentence(self) -> str:
        """What the boxes of all releases together tell of presence."""
        counts = self.to_dict()
        return (
            f"Presence: in each release at least {some_people(self.least)} share a box. Whoever could follow every row "
            f"from release to release would find boxes that fit fewer than {some_people(self.least)} for "
            f"{counts['fewer_than_a_box']:,} of {some_people(counts['people'])}, and nobody else for "
            f"{counts['alone']:,}; the median is {counts['median']:g}."
        )


def crowds_of(ledger: Ledger) -> BoxCrowds | None:
    """The crowds of a series whose releases show people in boxes; None where none does."""
    records = [record for record in ledger.records() if f"memory/{TABLE}.parquet" in record.manifest]
    releases = [ledger.memory(record.number, TABLE) for record in records]
    for record, members in zip(records, releases, strict=True):
        rows = read_release(ledger.path(record.number) / PUBLIC).table.height
        if rows != members.height:
            message = f"shows {some_people(rows)}, and the ledger knows the boxes of {members.height:,}"
            raise TamperedError(Fault("R733", f"release {record.number}", message, REMEDY))
    return together(releases) if releases else None


def box_sizes(ledger: Ledger, seen: Observed) -> I64 | None:
    """Of each appearance how many people are in its box; in releases without boxes, in its group."""
    sizes, boxed = seen.group_rows[seen.cand_group], False
    for number, record in enumerate(ledger.records()):
        if f"memory/{TABLE}.parquet" in record.manifest:
            boxes, boxed = ledger.memory(record.number, TABLE), True
            here = np.flatnonzero(seen.app_release == number)
            many = boxes.select(pl.col("person").cast(pl.Int64), pl.len().over("box").cast(pl.Int64).alias("many"))
            mine = pl.DataFrame({"person": seen.app_person[here]}).join(
                many, on="person", how="left", maintain_order="left"
            )
            sizes[here] = mine["many"].to_numpy()
    return sizes if boxed else None


def together(releases: Sequence[pl.DataFrame]) -> BoxCrowds:
    """From who was in which box (person, box) in each release.

    >>> first = pl.DataFrame({"person": [0, 1, 2, 3], "box": [0, 0, 0, 0]})
    >>> second = pl.DataFrame({"person": [0, 1, 2, 4], "box": [0, 0, 1, 1]})
    >>> together([first, second]).sizes.tolist()
    [2, 2, 1, 1, 1]
    """
    people = max((int(release["person"].max() or 0) + 1 for release in releases if release.height), default=0)  # type: ignore[arg-type]
    trail, least, seen = np.zeros(people, dtype=np.int64), people, np.zeros(people, dtype=bool)
    for release in releases:
        person, box = (release[name].to_numpy().astype(np.int64) for name in ("person", "box"))
        width = int(box.max(initial=-1)) + 2
        now = np.zeros(people, dtype=np.int64)  # away
        now[person] = box + 1
        seen[person] = True
        trail = np.unique(trail * width + now, return_inverse=True)[1].astype(np.int64)
        least = min(least, int(np.bincount(box).min(initial=people))) if len(box) else least
    mine = trail[seen]
    return BoxCrowds(np.bincount(mine, minlength=int(mine.max(initial=0)) + 1)[mine], least)
