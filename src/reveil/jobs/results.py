"""Results of looking back at a series, as plain data: its history, one release of it, and what checking again found.

Looking back is done under the recorded policy (`jobs.past`), and results say under which and what was settled first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveil.base.errors import Fault, InputError, ReveilError, TamperedError
from reveil.jobs.past import Past
from reveil.ledger.amendments import ACTIONS
from reveil.ledger.events import OUTCOME
from reveil.ledger.record import FILES
from reveil.policy.promise import promise_text, verdict_text

if TYPE_CHECKING:
    from reveil.jobs.release import Release
    from reveil.policy.policy import PolicyLike
    from reveil.verify.certificate import Certificate
    from reveil.verify.verify import Verification


@dataclass(frozen=True)
class SeriesHistory:
    """The releases of a series as they were recorded, and what is no longer as recorded."""

    series: str
    home: Path
    releases: tuple[Mapping[str, Any], ...]  # number, made, id, counts, NCP
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]  # what the promise does not give
    past: Past  # under which policy it was read, and what had to be settled first
    events: tuple[Mapping[str, Any], ...] = ()  # hand-overs and discards: release, action, at, by, recipient or reason

    def to_dict(self) -> dict[str, Any]:
        listed = [{name: value for name, value in one.items() if name != "NCP"} for one in self.releases]
        faults = [fault.to_dict() for fault in self.faults]
        return {"series": self.series, "releases": listed, "events": list(self.events), "faults": faults}


@dataclass(frozen=True)
class Rechecked:
    """Recorded releases, judged again: for each the verification, or why it could not be."""

    releases: Mapping[int, Verification | ReveilError]
    past: Past  # under which policy it was read, and what had to be settled first

    @property
    def holds(self) -> bool:
        return all(entry["holds"] for entry in self.to_dict().values())

    def to_dict(self) -> dict[Any, Any]:
        promise = promise_text(self.past.policy)
        return {number: _rechecked(result, promise) for number, result in self.releases.items()}


def _rechecked(result: Verification | ReveilError, promise: str) -> dict[str, Any]:
    """One release; where its files are not those that were recorded, nothing can be said of the promise."""
    if isinstance(result, ReveilError):
        verdict = f"Its files are not as they were recorded: nothing can be said of the promise. Promised: {promise}."
        return {"holds": False, "verdict": verdict, "faults": [fault.to_dict() for fault in result.faults]}
    return {
        "holds": result.holds,
        "verdict": verdict_text(promise, result.holds),
        "verdicts": [verdict.to_dict() for verdict in result.verdicts],
        "checks": [check.to_dict() for check in result.checks],
    }


def history_of(past: Past) -> SeriesHistory:
    """All releases as they were recorded; every byte is compared with what was recorded."""
    from reveil.verify.certificate import limits

    ledger, notes = past.ledger, tuple(limits(past.policy, 1)[1:])
    faults = tuple(ledger.check())
    try:
        now = ledger.snapshot()
        releases = tuple(
            {
                "number": r.number,
                "made": r.made,
                "id": r.id,
                "state": str(r.state),
                **r.facts["counts"],
                "NCP": r.facts["loss"]["mean_ncp"],
            }
            for r in now.chain
        )
        numbers = {r.id: r.number for r in now.chain}
        events = tuple(
            {"release": numbers.get(e.release), "action": e.action, "at": e.at, "by": e.actor, **_told(e.details)}
            for e in now.events
            if e.action in OUTCOME or e.action in ACTIONS
        )
    except (KeyError, TypeError):  # edited facts: there is nothing to list, only to name
        raise TamperedError(faults) from None
    return SeriesHistory(ledger.series, ledger.home, releases, faults, notes, past, events)


def _told(details: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of an event: not the hashes of files, nor what only the ledger needs."""
    return {name: value for name, value in details.items() if name not in (FILES, "token", "digest", "head")}


def release_of(past: Past, number: int | None) -> Release:
    """A release by its number, or the latest."""
    from reveil.jobs.release import Release

    records = {record.number: record for record in past.ledger.records()}
    wanted = max(records, default=None) if number is None else number
    if wanted is None or wanted not in records:
        where = "the latest release" if wanted is None else f"release {wanted}"
        message = f"is not in this series (it has {list(records)})"
        raise InputError(Fault("R510", where, message, "see `reveil history`"))
    return Release.load(past.ledger, records[wanted])


def recheck_series(past: Past, number: int | None) -> Rechecked:
    """Recorded releases, or one of them, judged again from their bytes and the past."""
    from reveil.verify.recheck import recheck

    return Rechecked(recheck(past.ledger, past.policy, number), past)


@dataclass(frozen=True)
class HandedOver:
    """Several packages that somebody holds: each judged on its own, and whether they belong to one series."""

    certificates: Mapping[str, Certificate]
    forks: tuple[Fault, ...]

    @property
    def holds(self) -> bool:
        return not self.forks and all(certificate.holds for certificate in self.certificates.values())

    @property
    def undecided(self) -> bool:
        """Whether nothing speaks against any of them, but not all can be shown from what was given."""
        judged = self.certificates.values()
        return not self.holds and not self.forks and all(one.holds or one.undecided for one in judged)

    def to_dict(self) -> dict[str, Any]:
        judged = {where: certificate.to_dict() for where, certificate in self.certificates.items()}
        return {"holds": self.holds, "packages": judged, "forks": [fault.to_dict() for fault in self.forks]}


def recheck_several(folders: Sequence[str | Path], policy: PolicyLike) -> HandedOver:
    """Judge release folders on their own, and compare what their data packages say of series and predecessor."""
    from reveil.policy.policy import load_policy
    from reveil.published.imprint import forks, read_packages
    from reveil.verify.recheck import check_folder

    strange = [str(one) for one in folders if not Path(one).is_dir()]
    if strange:
        message, remedy = "is not a folder", "give release folders, or one table alone"
        raise InputError([Fault("R603", f"'{one}'", message, remedy) for one in strange])
    loaded, places = load_policy(policy), [Path(one) for one in folders]
    judged = {str(place): check_folder(place, loaded) for place in places}
    return HandedOver(judged, tuple(forks(read_packages(places))))


def recheck_elsewhere(what: Any, policy: PolicyLike) -> Certificate:
    """Judge a folder of public files, or a published table, on its own."""
    from reveil.policy.policy import load_policy
    from reveil.verify.recheck import check_folder, check_published

    loaded = load_policy(policy)
    folder = isinstance(what, (str, Path)) and Path(what).is_dir()
    return check_folder(Path(what), loaded) if folder else check_published(what, loaded)
