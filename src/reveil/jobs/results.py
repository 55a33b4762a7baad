"""Results of looking back at a series, as plain data: its history, one release of it, and what checking again found.

Looking back is done under the recorded policy and begins with settling what a crash left; both are told in the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveil.base.errors import Fault, InputError, ReveilError
from reveil.publish import Series, look_back

if TYPE_CHECKING:
    from reveil.jobs.release import Release
    from reveil.policy.policy import PolicyLike
    from reveil.verify.certificate import Certificate
    from reveil.verify.verify import Verification

Home = str | Path | None
COUNTS = ("input rows", "published rows", "withheld rows", "counterfeit rows", "groups")


@dataclass(frozen=True)
class Beginning:
    """What a command has to say before it answers: how a crash was settled, and how the policy given differs."""

    settled: tuple[str, ...] = ()
    changes: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class SeriesHistory:
    """The releases of a series as they were recorded, and what is no longer as recorded."""

    series: str
    home: Path
    releases: tuple[Mapping[str, Any], ...]  # number, made, id, counts, NCP
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]  # what the promise does not give
    beginning: Beginning

    def to_dict(self) -> dict[str, Any]:
        listed = [{name: value for name, value in one.items() if name != "NCP"} for one in self.releases]
        return {"series": self.series, "releases": listed, "faults": [fault.to_dict() for fault in self.faults]}


@dataclass(frozen=True)
class Rechecked:
    """Recorded releases, judged again: for each the verification, or why it could not be."""

    releases: Mapping[int, Verification | ReveilError]
    beginning: Beginning

    @property
    def holds(self) -> bool:
        return all(entry["holds"] for entry in self.to_dict().values())

    def to_dict(self) -> dict[Any, Any]:
        return {number: _rechecked(found) for number, found in self.releases.items()}


def _rechecked(found: Verification | ReveilError) -> dict[str, Any]:
    if isinstance(found, ReveilError):
        return {"holds": False, "faults": [fault.to_dict() for fault in found.faults]}
    return {
        "holds": found.holds,
        "verdicts": [verdict.to_dict() for verdict in found.verdicts],
        "checks": [check.to_dict() for check in found.checks],
    }


def series_so_far(policy: PolicyLike, home: Home) -> tuple[Series, Beginning]:
    """The series to look back at, under its recorded policy; it is not begun in a mistyped place."""
    series, changes = look_back(policy, home)
    return series, Beginning(tuple(series.settle()), tuple(changes))


def history_of_series(policy: PolicyLike, home: Home) -> SeriesHistory:
    from reveil.verify.certificate import limits

    series, beginning = series_so_far(policy, home)
    releases = tuple(
        {"number": r.number, "made": r.made, "id": r.id, **r.facts["counts"], "NCP": r.facts["loss"]["mean_ncp"]}
        for r in series.ledger.records()
    )
    ledger, notes = series.ledger, tuple(limits(series.policy, 1)[1:])
    return SeriesHistory(ledger.series, ledger.home, releases, tuple(ledger.check()), notes, beginning)


def release_of_series(policy: PolicyLike, home: Home, number: int | None) -> tuple[Release, Beginning]:
    """A release by its number, or the latest."""
    from reveil.jobs.release import Release

    series, beginning = series_so_far(policy, home)
    records = {record.number: record for record in series.ledger.records()}
    wanted = max(records, default=None) if number is None else number
    if wanted is None or wanted not in records:
        where = "the latest release" if wanted is None else f"release {wanted}"
        message = f"is not in this series (it has {list(records)})"
        raise InputError(Fault("R510", where, message, "see `reveil history`"))
    return Release.load(series.ledger, records[wanted]), beginning


def recheck_series(policy: PolicyLike, home: Home, number: int | None) -> Rechecked:
    series, beginning = series_so_far(policy, home)
    return Rechecked(series.verify(number), beginning)


def recheck_elsewhere(what: Any, policy: PolicyLike) -> Certificate:
    """Judge a folder of public files, or a published table, on its own."""
    from reveil.policy.policy import load_policy
    from reveil.verify.recheck import check_folder, check_published

    loaded = load_policy(policy)
    folder = isinstance(what, (str, Path)) and Path(what).is_dir()
    return check_folder(Path(what), loaded) if folder else check_published(what, loaded)
