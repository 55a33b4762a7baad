"""What is done with proposals: propose, submit, sign, return, withdraw, and accept, which records and reveals.

proposal = ledger.approval.propose(staged, on=head, facts={})
ledger.approval.submit(proposal.token), .sign(proposal.token, by="officer")
record = ledger.approval.accept(proposal.token)       # then ledger.reveal(record.number)
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveil.base.errors import CommitUnknownError, ConflictError, Fault, InputError, TamperedError
from reveil.ledger import proposals, store
from reveil.ledger.amendments import refuse_ended
from reveil.ledger.events import actor, next_event
from reveil.ledger.proposals import Proposal, ProposalState, state_of
from reveil.ledger.record import Event, Head, Record, ReleaseState, Snapshot, canonical
from reveil.ledger.rows import refuse_recording, refuse_second

if TYPE_CHECKING:
    from reveil.ledger.ledger import Ledger
    from reveil.ledger.protocols import Bulk, Catalog


class Approval:
    """Proposals of one series."""

    def __init__(self, ledger: Ledger, catalog: Catalog, bulk: Bulk) -> None:
        self._ledger, self._catalog, self._bulk = ledger, catalog, bulk

    def propose(self, staged: Path, *, on: Head, facts: dict[str, Any], by: str = "") -> Proposal:
        """Seal a staged release and keep it, whatever happens to this process, until it is accepted or withdrawn."""
        token, who = self._ledger.own(staged), by or actor()
        try:
            identity = self._ledger.identity_to_record()
            manifest = self._bulk.seal(staged)
            made = datetime.now(UTC).isoformat(timespec="seconds")
            proposal = Proposal(token, on, made, who, json.loads(canonical(facts)), manifest)
            about = {"digest": proposal.digest(identity), "release": proposal.number}
            event = next_event(self._ledger.snapshot(), proposals.PROPOSE, token, about, who)
            self._catalog.propose(proposal, event)
        except OSError as error:
            self._ledger.discard(staged)
            raise store.refused_by_disk(error) from error
        except Exception:
            self._ledger.discard(staged)
            raise
        self._bulk.let_go(token)
        return proposal

    def submit(self, token: str, by: str = "", note: str = "") -> Event:
        """Ask for a signature."""
        return self._step(proposals.SUBMIT, token, by, note)

    def sign(self, token: str, by: str = "", statement: str = "") -> Event:
        """Sign exactly what is there: its bytes are read again first. Nobody signs what they made or submitted."""
        series, proposal = self.find(token)
        self.insist_on_bytes(proposal)
        about = {"digest": proposal.digest(self._ledger.identity_to_record())}
        return self._step(proposals.SIGN, proposal.token, by, statement, about, series)

    def give_back(self, token: str, by: str = "", note: str = "") -> Event:
        """Return a proposal to those who made it, with a note."""
        return self._step(proposals.RETURN, token, by, note)

    def withdraw(self, token: str, by: str = "", note: str = "") -> Event:
        """Give a proposal up: nobody outside has seen it. Its files are removed, its entry stays."""
        event = self._step(proposals.WITHDRAW, token, by, note)
        self._ledger.settle()
        return event

    def require_four_eyes(self, on: bool, by: str = "") -> Event:
        """From now on every release needs a second person's signature, or no longer does."""
        series = self._ledger.checked()
        event = next_event(series, proposals.FOUR_EYES, "", {"on": on}, by)
        self._catalog.step(event)
        return event

    def accept(self, token: str) -> Record:
        """Record a proposal, if its bytes are still those that were sealed and nothing was recorded since."""
        series, proposal = self.find(token)
        token = proposal.token
        # The first release fixes the policy: until then the series has none, and the signature is about this one.
        refuse_recording(replace(series, identity=self._ledger.identity_to_record()), token)
        if not self._bulk.claim(token):
            message = "is being worked on by another process"
            raise ConflictError(Fault("R535", f"proposal {token}", message, "wait until that is done"))
        try:
            self.insist_on_bytes(proposal)
            self._insist_on_policy(series, proposal)
            return self._ledger.enter(token, proposal.manifest, proposal.on, proposal.facts)
        except CommitUnknownError:
            raise  # `enter` has let it go
        except BaseException:
            self._bulk.let_go(token)  # it stays a proposal
            raise

    def open(self) -> list[tuple[Proposal, ProposalState]]:
        """Proposals that wait for something, and those that are stale."""
        return [(proposal, state) for proposal, state in self.all() if state in proposals.WAITING]

    def all(self) -> list[tuple[Proposal, ProposalState]]:
        """Every proposal of the series and how far it has come."""
        series = self._ledger.snapshot()
        return [(one, state_of(one, series.events, series.chain)) for one in series.proposals]

    def folder(self, proposal: Proposal) -> Path:
        """Where the files of a proposal are."""
        return self._bulk.locate(_as_record(proposal)) or self._bulk.place_of(_as_record(proposal))

    def find(self, token: str) -> tuple[Snapshot, Proposal]:
        """A proposal by its token or the beginning of it; the only open one where none is named."""
        series = self._ledger.checked()
        states = {one.token: state_of(one, series.events, series.chain) for one in series.proposals}
        waiting = [one for one in series.proposals if states[one.token] in proposals.WAITING]
        named = [one for one in series.proposals if one.token.startswith(token)] if token else waiting
        if len(named) != 1:
            known = ", ".join(one.token for one in series.proposals) or "none"
            message = f"'{token}' names no proposal of this series" if token else "there is no open proposal"
            raise InputError(Fault("R535", "proposal", message, f"known are: {known}"))
        return series, named[0]

    def insist_on_bytes(self, proposal: Proposal) -> None:
        """Refuse a proposal of which a byte has changed since it was sealed."""
        difference = self._bulk.compare(_as_record(proposal))
        if difference is None or difference:
            message = "its files are missing or not those that were sealed; what was signed, or looked at, is void"
            remedy = f"withdraw it (`reveil withdraw {proposal.token}`) and propose the table again"
            raise TamperedError(Fault("R538", f"proposal {proposal.token}", message, remedy))

    def _insist_on_policy(self, series: Snapshot, proposal: Proposal) -> None:
        """The first release fixes the policy: it must be the one that the proposal was made under."""
        made = proposals.steps_of(proposal, series.events)[0]
        if made.details.get("digest") != proposal.digest(self._ledger.identity_to_record()):
            message = "was made under another policy than the one that is given now"
            remedy = (
                f"give that policy, or withdraw it (`reveil withdraw {proposal.token}`) and propose the table again"
            )
            raise InputError(Fault("R535", f"proposal {proposal.token}", message, remedy))

    def refuse_early(self, series: Snapshot, *, proposing: bool) -> None:
        """Refuse before any work what the catalog would refuse after it."""
        refuse_ended(series.events)
        if proposing:
            refuse_second(series)
        else:
            refuse_recording(series)

    def _step(
        self,
        action: str,
        token: str,
        by: str,
        note: str,
        about: dict[str, Any] | None = None,
        series: Snapshot | None = None,
    ) -> Event:
        if series is None:
            series, proposal = self.find(token)
            token = proposal.token
        event = next_event(series, action, token, {**(about or {}), **({"note": note} if note else {})}, by)
        self._catalog.step(event)
        return event


def _as_record(proposal: Proposal) -> Record:
    """A proposal as the place of its files sees it: a release that is not revealed."""
    state, made = ReleaseState.RECORDED, proposal.made
    return Record(proposal.number, "", proposal.on.id, made, {}, proposal.manifest, state, proposal.token)
