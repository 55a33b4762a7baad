"""Job descriptions: what is to be done, as frozen plain data that Python, the command line and HTTP share.

    spec = PublishSpec("release-03.csv", "reveil.toml")
    release = spec.run(progress)          # a result with `to_dict()`
    load_spec(spec.to_dict()) == spec     # over a wire, where tables and policies are named by paths

Nothing is imported before a job runs: describing work costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from reveil.base.errors import Fault, InputError
from reveil.base.progress import Progress, silent

if TYPE_CHECKING:
    from reveil.audit.audit import Audit
    from reveil.dp.count import Counted
    from reveil.jobs.afterwards import Afterwards
    from reveil.jobs.release import Preview, Release
    from reveil.jobs.results import HandedOver, Rechecked, SeriesHistory
    from reveil.measure.advice import Advice
    from reveil.measure.ahead import Forecast
    from reveil.measure.compare import Comparison
    from reveil.measure.measure import Utility
    from reveil.perturb.perturb import Perturbed
    from reveil.verify.certificate import Certificate


class Result(Protocol):
    """What a job gives back: as plain JSON values for programs."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Spec(ABC):
    """One job. Fields are its inputs: tables and policies as paths, or anything the Python calls take."""

    job: ClassVar[str]

    @abstractmethod
    def run(self, progress: Progress = silent) -> Result:
        """Do it. `progress` is told the stages, and may stop the job (`reveil.base.progress`)."""

    def to_dict(self) -> dict[str, Any]:
        """The description as plain JSON values.

        >>> PlanSpec("people.csv", "reveil.toml").to_dict()
        {'job': 'plan', 'table': 'people.csv', 'policy': 'reveil.toml'}
        """
        given = {f.name: getattr(self, f.name) for f in fields(self) if not _is_default(f, getattr(self, f.name))}
        return {"job": self.job, **{name: _plain(name, value) for name, value in given.items()}}


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


def load_spec(content: Mapping[str, Any]) -> Spec:
    """A description that came as plain values.

    >>> load_spec({"job": "anonymize", "table": "people.csv", "policy": "reveil.toml"})
    AnonymizeSpec(table='people.csv', policy='reveil.toml', seed=None, out=None, key=None)
    """
    kind = SPECS.get(str(content.get("job")))
    if kind is None:
        message = f"{content.get('job')!r} is no job"
        raise InputError(Fault("R796", "job", message, f"use one of: {', '.join(SPECS)}"))
    given, known = {k: v for k, v in content.items() if k != "job"}, {f.name for f in fields(kind)}
    needed = {f.name for f in fields(kind) if f.init and not _optional(f)}
    faults = [
        *(Fault("R796", name, f"means nothing to {kind.job}", "leave it out") for name in given if name not in known),
        *(Fault("R796", name, f"is missing: {kind.job} needs it", "give it") for name in sorted(needed - set(given))),
    ]
    if faults:
        raise InputError(faults)
    return kind(**given)


def _is_default(f: Any, value: Any) -> bool:
    return _optional(f) and value == (f.default if f.default is not MISSING else f.default_factory())


def _optional(f: Any) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


@dataclass(frozen=True)
class PlanSpec(Spec):
    """What would be published next, and what it would cost. Changes nothing."""

    job: ClassVar[str] = "plan"
    table: Any
    policy: Any
    home: str | Path | None = None
    seed: int | None = None
    new_people: bool = False

    def run(self, progress: Progress = silent) -> Preview:
        from reveil.publish import open_series

        series = open_series(self.policy, self.home)
        return series.plan(self.table, seed=self.seed, progress=progress, new_people=self.new_people, forms=True)


@dataclass(frozen=True)
class AheadSpec(Spec):
    """The next releases, made in a copy of the series from how people came and went. Changes nothing."""

    job: ClassVar[str] = "ahead"
    table: Any
    policy: Any
    releases: int = 12
    home: str | Path | None = None
    leave: str | None = None
    back: str | None = None
    arrive: str | None = None
    seed: int = 0
    new_people: bool = False

    def run(self, progress: Progress = silent) -> Forecast:
        from reveil.measure.ahead import forecast
        from reveil.publish import open_series

        series, rates = open_series(self.policy, self.home), (self.leave, self.back, self.arrive)
        stated = dict(zip(("leave", "back", "arrive"), rates, strict=True))
        how = {"seed": self.seed, "new_people": self.new_people, "progress": progress}
        return forecast(self.table, series, self.releases, **stated, **how)  # type: ignore[arg-type]


@dataclass(frozen=True)
class AdviceSpec(Spec):
    """What drives the loss of a table's first release, and what would help, each tried. Changes nothing."""

    job: ClassVar[str] = "advice"
    table: Any
    policy: Any
    seconds: float = 30.0
    seed: int = 0

    def run(self, progress: Progress = silent) -> Advice:
        from reveil.measure.advice import advise

        return advise(self.table, self.policy, seconds=self.seconds, seed=self.seed, progress=progress)


@dataclass(frozen=True)
class PublishSpec(Spec):
    """One more release of a series: planned, verified, recorded, revealed."""

    job: ClassVar[str] = "publish"
    table: Any
    policy: Any
    home: str | Path | None = None
    seed: int | None = None
    new_people: bool = False

    def run(self, progress: Progress = silent) -> Release:
        from reveil.publish import open_series

        series = open_series(self.policy, self.home)
        return series.publish(self.table, seed=self.seed, progress=progress, new_people=self.new_people)


@dataclass(frozen=True)
class AnonymizeSpec(Spec):
    """One release of one table, without memory."""

    job: ClassVar[str] = "anonymize"
    table: Any
    policy: Any
    seed: int | None = None
    out: str | Path | None = None
    key: str | Path | None = None

    def run(self, progress: Progress = silent) -> Release:
        from reveil.publish import anonymize

        return anonymize(self.table, self.policy, seed=self.seed, key=self.key, out=self.out, progress=progress)


@dataclass(frozen=True)
class CompareSpec(Spec):
    """Generalisation schemes side by side, on one table and promise."""

    job: ClassVar[str] = "compare"
    table: Any
    policy: Any
    seed: int = 0

    def run(self, progress: Progress = silent) -> Comparison:
        from reveil.measure.compare import compare

        return compare(self.table, self.policy, seed=self.seed, progress=progress)


@dataclass(frozen=True)
class HistorySpec(Spec):
    """The series so far, and whether everything is as it was recorded."""

    job: ClassVar[str] = "history"
    policy: Any
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> SeriesHistory:
        from reveil.jobs.past import settle_and_look_back
        from reveil.jobs.results import history_of

        return history_of(settle_and_look_back(self.policy, self.home))


@dataclass(frozen=True)
class ShowSpec(Spec):
    """One release of a series; without a number the latest."""

    job: ClassVar[str] = "show"
    policy: Any
    number: int | None = None
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Release:
        from reveil.jobs.past import settle_and_look_back
        from reveil.jobs.results import release_of

        return release_of(settle_and_look_back(self.policy, self.home), self.number)


@dataclass(frozen=True)
class HandOverSpec(Spec):
    """Copy the public half of a release out and record it; without a number the latest."""

    job: ClassVar[str] = "hand-over"
    policy: Any
    to: str | Path
    number: int | None = None
    recipient: str = ""
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Afterwards:
        from reveil.jobs.afterwards import hand_over

        return hand_over(self.policy, self.home, self.number, self.to, self.recipient)


@dataclass(frozen=True)
class DiscardSpec(Spec):
    """Take back the newest release, which nobody has."""

    job: ClassVar[str] = "discard"
    policy: Any
    number: int
    reason: str = ""
    no_copy_left: bool = False
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Afterwards:
        from reveil.jobs.afterwards import discard

        return discard(self.policy, self.home, self.number, self.reason, no_copy_left=self.no_copy_left)


@dataclass(frozen=True)
class VerifySpec(Spec):
    """Check again from the published bytes: a series (all of it, or one by number), a folder or several, or a table."""

    job: ClassVar[str] = "verify"
    policy: Any
    what: Any = None
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Rechecked | Certificate | HandedOver:
        from reveil.jobs.past import settle_and_look_back
        from reveil.jobs.results import recheck_elsewhere, recheck_series, recheck_several

        if self.what is None or isinstance(self.what, int):
            return recheck_series(settle_and_look_back(self.policy, self.home), self.what)
        if isinstance(self.what, (list, tuple)):
            return recheck_several(self.what, self.policy)
        return recheck_elsewhere(self.what, self.policy)


@dataclass(frozen=True)
class AuditSpec(Spec):
    """Attack releases of others (with a population), or those of a series. `settings` are those of `AuditSettings`."""

    job: ClassVar[str] = "audit"
    releases: Any = None  # None: those of the series
    population: Any = None
    policy: Any = None
    home: str | Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self, progress: Progress = silent) -> Audit:
        from reveil.audit.audit import audit
        from reveil.audit.gate import audit_series
        from reveil.jobs.past import settle_and_look_back

        if self.releases is not None:
            return audit(self.releases, self.population, policy=self.policy, progress=progress, **self.settings)
        past = settle_and_look_back(self.policy, self.home)
        return audit_series(past.ledger, past.policy, self.population, progress=progress, **self.settings)


@dataclass(frozen=True)
class MeasureSpec(Spec):
    """What a published table has lost against its original."""

    job: ClassVar[str] = "measure"
    published: Any
    original: Any
    policy: Any
    queries: int = 10_000
    seed: int = 0

    def run(self, progress: Progress = silent) -> Utility:
        from reveil.measure.measure import measure

        return measure(self.published, self.original, self.policy, queries=self.queries, seed=self.seed)


@dataclass(frozen=True)
class PerturbSpec(Spec):
    """One release with noise, swapped, averaged or synthetic values."""

    job: ClassVar[str] = "perturb"
    table: Any
    policy: Any
    seed: int | None = None
    out: str | Path | None = None
    key: str | Path | None = None

    def run(self, progress: Progress = silent) -> Perturbed:
        from reveil.perturb.perturb import perturb

        return perturb(self.table, self.policy, seed=self.seed, key=self.key, out=self.out, progress=progress)


@dataclass(frozen=True)
class CountSpec(Spec):
    """One more release of noisy counts, within a budget."""

    job: ClassVar[str] = "count"
    table: Any
    policy: Any
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> Counted:
        from reveil.dp.count import count

        return count(self.table, self.policy, home=self.home, progress=progress)


SPECS: dict[str, type[Spec]] = {
    spec.job: spec
    for spec in (
        *(PlanSpec, AheadSpec, AdviceSpec, PublishSpec, AnonymizeSpec, CompareSpec, HistorySpec, ShowSpec),
        *(HandOverSpec, DiscardSpec, VerifySpec, AuditSpec, MeasureSpec, PerturbSpec, CountSpec),
    )
}
