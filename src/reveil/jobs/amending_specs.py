"""Jobs about a series that lives for years: what is done to its memory, its key, its releases, and its end.

`sure` is the steward's word: without it the job refuses, and says what it would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from reveil.base.progress import Progress, silent
from reveil.jobs.spec import Spec

if TYPE_CHECKING:
    from reveil.jobs.amending import Amended


@dataclass(frozen=True, repr=False)
class CorrectSpec(Spec):
    """Values of this table are true that the series has recorded wrong; releases go on as before."""

    job: ClassVar[str] = "correct"
    policy: Any
    table: Any
    sure: bool = False
    home: str | Path | None = None
    by: str = ""
    accept: Sequence[str] = ()

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.amending import correct

        return correct(self.policy, self.home, self.table, sure=self.sure, by=self.by, accept=self.accept)


@dataclass(frozen=True, repr=False)
class EraseSpec(Spec):
    """Forget who these people are, and never show them again."""

    job: ClassVar[str] = "erase"
    policy: Any
    identifiers: Sequence[str]
    sure: bool = False
    home: str | Path | None = None
    by: str = ""

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.amending import erase

        return erase(self.policy, self.home, self.identifiers, sure=self.sure, by=self.by)


@dataclass(frozen=True, repr=False)
class MergeSpec(Spec):
    """Two identifiers are one person."""

    job: ClassVar[str] = "merge"
    policy: Any
    one: str
    other: str
    sure: bool = False
    home: str | Path | None = None
    by: str = ""

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.amending import merge

        return merge(self.policy, self.home, self.one, self.other, sure=self.sure, by=self.by)


@dataclass(frozen=True, repr=False)
class SplitSpec(Spec):
    """One identifier was two people; the second one gets another."""

    job: ClassVar[str] = "split"
    policy: Any
    one: str
    new: str
    home: str | Path | None = None
    by: str = ""

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.amending import split

        return split(self.policy, self.home, self.one, self.new, by=self.by)


@dataclass(frozen=True, repr=False)
class RetractSpec(Spec):
    """A release that others have must not be used; `note` stands in the packages of later releases."""

    job: ClassVar[str] = "retract"
    policy: Any
    number: int
    note: str = ""
    home: str | Path | None = None
    by: str = ""

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.lifetime import retract

        return retract(self.policy, self.home, self.number, self.note, self.by)


@dataclass(frozen=True, repr=False)
class RotateSpec(Spec):
    """Another key; the tables hold everybody whom the series has ever seen."""

    job: ClassVar[str] = "rotate"
    policy: Any
    tables: Sequence[Any]
    forget_erased: bool = False
    home: str | Path | None = None
    by: str = ""

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.lifetime import rotate

        return rotate(self.policy, self.home, self.tables, forget_erased=self.forget_erased, by=self.by)


@dataclass(frozen=True, repr=False)
class EndSpec(Spec):
    """No further release; the key, or key and memory, can go."""

    job: ClassVar[str] = "end"
    policy: Any
    destroy_key: bool = False
    destroy_memory: bool = False
    sure: bool = False
    home: str | Path | None = None
    by: str = ""

    def run(self, progress: Progress = silent) -> Amended:
        from reveil.jobs.lifetime import end

        how = {"destroy_key": self.destroy_key, "destroy_memory": self.destroy_memory}
        return end(self.policy, self.home, **how, sure=self.sure, by=self.by)


AMENDING = (CorrectSpec, EraseSpec, MergeSpec, SplitSpec, RetractSpec, RotateSpec, EndSpec)
