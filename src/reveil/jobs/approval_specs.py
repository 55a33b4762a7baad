"""Jobs about proposals: a release that is made, sealed, and waits for a word before it is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from reveil.base.progress import Progress, silent
from reveil.jobs.spec import NextReleaseSpec, Spec

if TYPE_CHECKING:
    from reveil.jobs.proposing import Proposals, Proposed
    from reveil.jobs.release import Release


@dataclass(frozen=True, repr=False)
class ProposeSpec(NextReleaseSpec):
    """The next release, made and sealed; it waits until it is accepted or withdrawn."""

    job: ClassVar[str] = "propose"
    by: str = ""  # who proposes; else whoever is at the machine

    def run(self, progress: Progress = silent) -> Proposed:
        return self.series().propose(self.table, progress=progress, by=self.by, **self.meant())


@dataclass(frozen=True, repr=False)
class AcceptSpec(Spec):
    """Record and reveal a proposal; without a token the one that is open."""

    job: ClassVar[str] = "accept"
    policy: Any
    token: str = ""
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Release:
        from reveil.jobs.proposing import accept

        return accept(self.policy, self.home, self.token)


@dataclass(frozen=True, repr=False)
class WithdrawSpec(Spec):
    """Give a proposal up; without a token the one that is open."""

    job: ClassVar[str] = "withdraw"
    policy: Any
    token: str = ""
    note: str = ""
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Proposed:
        from reveil.jobs.proposing import withdraw

        return withdraw(self.policy, self.home, self.token, self.note)


@dataclass(frozen=True, repr=False)
class ProposalsSpec(Spec):
    """All proposals of a series and how far each has come."""

    job: ClassVar[str] = "proposals"
    policy: Any
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Proposals:
        from reveil.jobs.proposing import list_proposals

        return list_proposals(self.policy, self.home)
