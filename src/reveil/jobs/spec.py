"""One job: frozen plain data, and how it is written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from reveil.base.addresses import masked
from reveil.base.errors import Fault, InputError
from reveil.base.progress import Progress, silent

if TYPE_CHECKING:
    from reveil.publish import Series


class Result(Protocol):
    """What a job gives back: as plain JSON values for programs."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Spec(ABC):
    """One job. Fields are its inputs: tables and policies as paths, or anything the Python calls take."""

    job: ClassVar[str]

    def __repr__(self) -> str:
        """As it would be written, without the passwords of database addresses."""
        given = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return masked(f"{type(self).__name__}({given})")

    @abstractmethod
    def run(self, progress: Progress = silent) -> Result:
        """Do it. `progress` is told the stages, and may stop the job (`reveil.base.progress`)."""

    def to_dict(self) -> dict[str, Any]:
        """The description as plain JSON values.

        >>> from reveil.jobs.specs import PlanSpec
        >>> PlanSpec("people.csv", "reveil.toml").to_dict()
        {'job': 'plan', 'table': 'people.csv', 'policy': 'reveil.toml'}
        """
        given = {f.name: getattr(self, f.name) for f in fields(self) if not _is_default(f, getattr(self, f.name))}
        return {"job": self.job, **{name: _plain(name, value) for name, value in given.items()}}


@dataclass(frozen=True, repr=False)
class NextReleaseSpec(Spec):
    """A job about the next release of a series."""

    table: Any
    policy: Any
    home: str | Path | None = None
    seed: int | None = None
    new_people: bool = False
    accept: Sequence[str] = ()
    where: Mapping[str, Any] | None = None
    catalog: str | None = None  # where a new series keeps its ledger, if not in its home

    def series(self) -> Series:
        from reveil.publish import open_series

        return open_series(self.policy, self.home, catalog=self.catalog)

    def meant(self) -> dict[str, Any]:
        """What is said about the table beside the table."""
        return {"seed": self.seed, "new_people": self.new_people, "accept": self.accept, "where": self.where}


@dataclass(frozen=True, repr=False)
class ReleaseAloneSpec(Spec):
    """A job that makes one release of one table, without memory."""

    table: Any
    policy: Any
    seed: int | None = None
    out: str | Path | None = None
    key: str | Path | None = None
    accept: Sequence[str] = ()
    where: Mapping[str, Any] | None = None

    def meant(self) -> dict[str, Any]:
        """What is said about the table beside the table."""
        how = {"seed": self.seed, "out": self.out, "key": self.key}
        return {**how, "accept": self.accept, "where": self.where}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(name, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(name, item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    message = f"is a {type(value).__name__} in this process and cannot be described for another one"
    raise InputError(Fault("R796", name, message, "write it to a file and give its path"))


def _is_default(f: Any, value: Any) -> bool:
    return is_optional(f) and value == (f.default if f.default is not MISSING else f.default_factory())


def is_optional(f: Any) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING
