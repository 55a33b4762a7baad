"""Whose release this is: what every data package of a series says, so that readers can notice a series continued twice.

    {"series": random, "release": 3, "id": random, "predecessor": the id of release 2}

All three are drawn from the secret lots of the release, 128 bits each, and the ledger keeps them in its chain. Neither
the key, nor the ledger's own chain, nor any content can be tested against them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault
from reveil.published.format import PACKAGE, public_half

MEMBER = "reveil"  # of a data package
RETRACTED = "retracted"  # of a data package: earlier releases that nobody should use
WAY_OUT = "do not use them together, and ask the publisher which one is right (reveil explain R530)"


@dataclass(frozen=True)
class Imprint:
    """Series, number and id of a release, and the id of the one before; None for the first that says it."""

    series: str
    release: int
    id: str
    predecessor: str | None

    @classmethod
    def following(cls, last: Imprint | None, release: int, series: str, link: str) -> Imprint:
        """The imprint of the next release; `series` counts where none before has said it.

        >>> first = Imprint.following(None, 1, "s", "a")
        >>> Imprint.following(first, 2, "t", "b")
        Imprint(series='s', release=2, id='b', predecessor='a')
        """
        if last is None:
            return cls(series, release, link, None)
        return cls(last.series, release, link, last.id)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Imprint | None:
        """What a data package, or the ledger's copy of it, says; None where it says nothing."""
        said = content.get(MEMBER)
        if not isinstance(said, Mapping) or not {"series", "release", "id"} <= said.keys():
            return None
        before = said.get("predecessor")
        return cls(str(said["series"]), int(said["release"]), str(said["id"]), None if before is None else str(before))

    def to_dict(self) -> dict[str, Any]:
        return {MEMBER: asdict(self)}


@dataclass(frozen=True)
class Package:
    """A data package that somebody holds: where it is, what it says of itself, and the hashes of its files."""

    where: str
    imprint: Imprint
    hashes: frozenset[str]


def read_packages(folders: Sequence[Path]) -> list[Package]:
    """Those of these release folders whose packages say whose they are."""
    packages = []
    for folder in folders:
        content = json.loads((public_half(folder) / PACKAGE).read_bytes())
        imprint = Imprint.read(content)
        if imprint is not None:
            hashes = frozenset(f"{r['path']} {r['hash']}" for r in content["resources"])
            packages.append(Package(str(folder), imprint, hashes))
    return packages


def forks(packages: Sequence[Package]) -> list[Fault]:
    """Pairs of packages that cannot both belong to one series that was continued once."""
    faults = []
    for number, one in enumerate(packages):
        for other in packages[number + 1 :]:
            low, high = sorted((one, other), key=lambda package: package.imprint.release)
            if low.imprint.series == high.imprint.series and (message := _contradiction(low, high)):
                faults.append(Fault("R530", f"{low.where} and {high.where}", message, WAY_OUT))
    return faults


def _contradiction(low: Package, high: Package) -> str | None:
    first, second = low.imprint, high.imprint
    if first.release == second.release and (first.id != second.id or low.hashes != high.hashes):
        return f"both are release {first.release} of the same series, and they are not the same: it was continued twice"
    if first.release + 1 == second.release and second.predecessor != first.id:
        return f"release {second.release} was made after another release {first.release}: it was continued twice"
    return None
