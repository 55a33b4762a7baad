"""What the console knows of series, read from what was recorded: no file is hashed for a page, nothing is settled."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError, ReveilError
from reveil.ledger.amendments import ACTIONS, ASK, RETRACT, end_of
from reveil.ledger.ledger import Ledger
from reveil.ledger.proposals import WAITING, Proposal, ProposalState, four_eyes, state_of, steps_of
from reveil.ledger.record import Record, Snapshot
from reveil.policy.policy import Policy, load_policy
from reveil.policy.promise import promise_text
from reveil.serve.place import Place, read, unknown

SHOWN_LINES = 10
COUNTS = ("input rows", "came back", "returned", "new people", "published rows", "withheld rows", "counterfeit rows")


@dataclass(frozen=True)
class SeriesState:
    """One series: its policy, its ledger as it is now, or why it cannot be read."""

    key: str
    folder: Path
    policy: Policy | None
    now: Snapshot | None
    faults: tuple[Fault, ...] = ()

    @property
    def name(self) -> str:
        return self.key if self.policy is None else self.policy.series.name

    @property
    def promise(self) -> str:
        return "" if self.policy is None else promise_text(self.policy)

    @property
    def releases(self) -> list[dict[str, Any]]:
        """What counts, the newest first, as it was recorded."""
        records = () if self.now is None else self.now.records
        return [described(record) for record in reversed(records)]

    @property
    def open(self) -> tuple[Proposal, ProposalState] | None:
        """The proposal that waits for something."""
        waiting = [one for one in self.proposals if one[1] in WAITING]
        return waiting[-1] if waiting else None

    @property
    def proposals(self) -> list[tuple[Proposal, ProposalState]]:
        if self.now is None:
            return []
        return [(one, state_of(one, self.now.events, self.now.chain)) for one in self.now.proposals]

    @property
    def four_eyes(self) -> bool:
        return self.now is not None and four_eyes(self.now.events)

    @property
    def ended(self) -> bool:
        return self.now is not None and end_of(self.now.events) is not None

    @property
    def amendments(self) -> list[dict[str, Any]]:
        """What was done to the series years later, the oldest first."""
        if self.now is None:
            return []
        numbers = {record.id: record.number for record in self.now.chain}
        return [
            {
                "at": e.at,
                "by": e.actor,
                "action": f"asked to be {e.details['for']}" if e.action == ASK else e.action,
                "release": numbers.get(e.release),
                "people": e.details.get("people"),
                "note": e.details.get("note", ""),
            }
            for e in self.now.events
            if e.action in ACTIONS or e.action == RETRACT
        ]

    def steps(self, proposal: Proposal) -> list[dict[str, Any]]:
        """What happened to a proposal."""
        events = () if self.now is None else steps_of(proposal, self.now.events)
        return [{"action": e.action, "at": e.at, "by": e.actor, "note": e.details.get("note", "")} for e in events]

    def handed_over(self, record_id: str) -> list[dict[str, Any]]:
        """Who has a release, and since when."""
        events = () if self.now is None else self.now.events
        return [
            {"at": e.at, "by": e.actor, "recipient": e.details.get("recipient", "")}
            for e in events
            if e.release == record_id and e.action == "handed over"
        ]


def series_state(place: Place, key: str) -> SeriesState:
    """A series as its files say; what is wrong with them is shown, not raised."""
    folder = place.home(key)
    try:
        policy = load_policy(folder / "reveil.toml")
        home = folder / ".reveil"
        now = Ledger.open(home, policy.anchor).snapshot() if home.is_dir() else None
        return SeriesState(key, folder, policy, now)
    except ReveilError as error:
        return SeriesState(key, folder, None, None, error.faults)


def ledger_of(found: SeriesState) -> Ledger:
    """The ledger of a series under its policy, which the first release fixes. Opened, not settled."""
    if found.policy is None:
        raise InputError(found.faults)
    name, fixed = found.policy.series.name, found.policy.fixed()
    return Ledger.create_or_open(found.folder / ".reveil", series=name, policy=fixed, anchor=found.policy.anchor)


def described(record: Record) -> dict[str, Any]:
    """A release in the timeline."""
    return {
        "number": record.number,
        "id": record.id,
        "made": record.made,
        "state": str(record.state),
        "counts": record.facts.get("counts", {}),
        "loss": record.facts.get("loss", {}).get("mean_ncp"),
    }


def in_full(found: SeriesState) -> dict[str, Any]:
    """A series for programs."""
    listed = [
        {"proposal": one.token, "release": one.number, "state": str(state), "made": one.made, "by": one.by}
        for one, state in found.proposals
    ]
    return {
        "key": found.key,
        "name": found.name,
        "promise": found.promise,
        "four_eyes": found.four_eyes,
        "releases": found.releases,
        "proposals": listed,
        "faults": [fault.to_dict() for fault in found.faults],
    }


def find_proposal(series: SeriesState, token: str) -> tuple[Proposal, ProposalState]:
    """A proposal by its token."""
    for one, state in series.proposals:
        if one.token == token:
            return one, state
    raise unknown("proposal", token)


def find_release(series: SeriesState, number: int) -> dict[str, Any]:
    """A release by its number."""
    for one in series.releases:
        if one["number"] == number:
            return one
    raise unknown("release", str(number))


def contents(folder: Path) -> dict[str, Any]:
    """What a release says of itself: certificate, loss, and the first lines of its public tables."""
    private = folder / "private"
    return {
        "certificate": read(private / "certificate.json") or {},
        "plan": read(private / "plan.json") or {},
        "tables": [first_lines(path) for path in sorted((folder / "public").glob("*.csv"))],
    }


def first_lines(path: Path) -> dict[str, Any]:
    """The beginning of a published table."""
    with path.open(encoding="utf-8", newline="") as file:
        sample = file.read(4096)
        file.seek(0)
        mark = ";" if sample.split("\n", 1)[0].count(";") else ","
        rows = [row for _, row in zip(range(SHOWN_LINES + 1), csv.reader(file, delimiter=mark), strict=False)]
    return {"name": path.name, "header": rows[0] if rows else [], "rows": rows[1:]}


def differences(counts: dict[str, Any], loss: float | None, last: dict[str, Any] | None) -> list[tuple[str, Any, Any]]:
    """This release beside the one before, figure by figure."""
    before = {} if last is None else last["counts"]
    lines = [(name, counts.get(name), before.get(name)) for name in COUNTS if name in counts]
    return [*lines, ("information lost (0 to 1)", loss, None if last is None else last["loss"])]


def packed(folder: Path, name: str) -> bytes:
    """The files to hand over, in one archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{name}/{path.relative_to(folder).as_posix()}")
    return buffer.getvalue()
