"""Job descriptions: what is to be done, as frozen plain data that Python, the command line and HTTP share.

    spec = PublishSpec("release-03.csv", "reveil.toml")
    release = spec.run(progress)          # a result with `to_dict()`
    load_spec(spec.to_dict()) == spec     # over a wire, where tables and policies are named by paths

Nothing is imported before a job runs: describing work costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from reveil.base.errors import Fault, InputError
from reveil.base.progress import Progress, silent
from reveil.jobs.amending_specs import AMENDING
from reveil.jobs.approval_specs import AcceptSpec, ProposalsSpec, ProposeSpec, WithdrawSpec
from reveil.jobs.spec import NextReleaseSpec, ReleaseAloneSpec, Spec, is_optional

if TYPE_CHECKING:
    from reveil.audit.audit import Audit
    from reveil.dp.count import Counted
    from reveil.history.tables import Trace
    from reveil.jobs.affected import Affected
    from reveil.jobs.afterwards import Afterwards
    from reveil.jobs.release import Preview, Release
    from reveil.jobs.results import HandedOver, Rechecked, SeriesHistory
    from reveil.measure.advice import Advice
    from reveil.measure.ahead import Forecast
    from reveil.measure.compare import Comparison
    from reveil.measure.measure import Utility
    from reveil.perturb.perturb import Perturbed
    from reveil.verify.certificate import Certificate


def load_spec(content: Mapping[str, Any]) -> Spec:
    """A description that came as plain values.

    >>> load_spec({"job": "history", "policy": "reveil.toml"})
    HistorySpec(policy='reveil.toml', home=None)
    """
    kind = SPECS.get(str(content.get("job")))
    if kind is None:
        message = f"{content.get('job')!r} is no job"
        raise InputError(Fault("R796", "job", message, f"use one of: {', '.join(SPECS)}"))
    given, known = {k: v for k, v in content.items() if k != "job"}, {f.name for f in fields(kind)}
    needed = {f.name for f in fields(kind) if f.init and not is_optional(f)}
    faults = [
        *(Fault("R796", name, f"means nothing to {kind.job}", "leave it out") for name in given if name not in known),
        *(Fault("R796", name, f"is missing: {kind.job} needs it", "give it") for name in sorted(needed - set(given))),
    ]
    if faults:
        raise InputError(faults)
    return kind(**given)


@dataclass(frozen=True, repr=False)
class PlanSpec(NextReleaseSpec):
    """What would be published next, and what it would cost. Changes nothing."""

    job: ClassVar[str] = "plan"

    def run(self, progress: Progress = silent) -> Preview:
        return self.series().plan(self.table, progress=progress, forms=True, **self.meant())


@dataclass(frozen=True, repr=False)
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
    accept: Sequence[str] = ()
    where: Mapping[str, Any] | None = None

    def run(self, progress: Progress = silent) -> Forecast:
        from reveil.measure.ahead import forecast
        from reveil.publish import open_series

        series, rates = open_series(self.policy, self.home), (self.leave, self.back, self.arrive)
        stated: dict[str, Any] = dict(zip(("leave", "back", "arrive"), rates, strict=True))
        meant: dict[str, Any] = {"new_people": self.new_people, "accept": self.accept, "where": self.where}
        return forecast(self.table, series, self.releases, **stated, seed=self.seed, progress=progress, **meant)


@dataclass(frozen=True, repr=False)
class AdviceSpec(Spec):
    """What drives the loss of a table's first release, and what would help, each tried. Changes nothing."""

    job: ClassVar[str] = "advice"
    table: Any
    policy: Any
    home: str | Path | None = None
    seconds: float = 30.0
    seed: int = 0
    accept: Sequence[str] = ()
    where: Mapping[str, Any] | None = None

    def run(self, progress: Progress = silent) -> Advice:
        from reveil.measure.advice import advise

        how: dict[str, Any] = {"seconds": self.seconds, "seed": self.seed, "accept": self.accept, "where": self.where}
        return advise(self.table, self.policy, traces=self._before(), progress=progress, **how)

    def _before(self) -> Mapping[int, Trace]:
        """What a series that has begun keeps of its tables."""
        from reveil.history.recorded import history_of
        from reveil.jobs.past import home_of, look_back
        from reveil.ledger.store import vacant
        from reveil.policy.policy import load_policy

        begun = not vacant(home_of(load_policy(self.policy), self.home))
        return history_of(look_back(self.policy, self.home).ledger).traces if begun else {}


@dataclass(frozen=True, repr=False)
class PublishSpec(NextReleaseSpec):
    """One more release of a series: planned, verified, recorded, revealed."""

    job: ClassVar[str] = "publish"

    def run(self, progress: Progress = silent) -> Release:
        return self.series().publish(self.table, progress=progress, **self.meant())


@dataclass(frozen=True, repr=False)
class AnonymizeSpec(ReleaseAloneSpec):
    """One release of one table, without memory."""

    job: ClassVar[str] = "anonymize"
    engine: str = "auto"
    memory: str | int | None = None
    master: str | None = None

    def run(self, progress: Progress = silent) -> Release:
        from reveil.publish import anonymize

        how: dict[str, Any] = {"engine": self.engine, "memory": self.memory, "master": self.master}
        return anonymize(self.table, self.policy, progress=progress, **self.meant(), **how)


@dataclass(frozen=True, repr=False)
class CompareSpec(Spec):
    """Generalisation schemes side by side, on one table and promise."""

    job: ClassVar[str] = "compare"
    table: Any
    policy: Any
    seed: int = 0
    accept: Sequence[str] = ()
    seconds: float | None = None  # for each scheme
    where: Mapping[str, Any] | None = None

    def run(self, progress: Progress = silent) -> Comparison:
        from reveil.measure.compare import SECONDS, compare

        how: dict[str, Any] = {"seed": self.seed, "accept": self.accept, "where": self.where}
        seconds = SECONDS if self.seconds is None else self.seconds
        return compare(self.table, self.policy, progress=progress, seconds=seconds, **how)


@dataclass(frozen=True, repr=False)
class HistorySpec(Spec):
    """The series so far, and whether everything is as it was recorded."""

    job: ClassVar[str] = "history"
    policy: Any
    home: str | Path | None = None

    def run(self, progress: Progress = silent) -> SeriesHistory:
        from reveil.jobs.past import settle_and_look_back
        from reveil.jobs.results import history_of

        return history_of(settle_and_look_back(self.policy, self.home))


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class AffectedSpec(Spec):
    """Who of a table a release does not show, and why. The answer names people."""

    job: ClassVar[str] = "affected"
    policy: Any
    table: Any
    number: int | None = None
    home: str | Path | None = None
    accept: tuple[str, ...] = ()
    where: Mapping[str, Any] | None = None

    def run(self, progress: Progress = silent) -> Affected:
        from reveil.jobs.affected import affected_by
        from reveil.jobs.past import settle_and_look_back

        past = settle_and_look_back(self.policy, self.home)
        return affected_by(past, self.number, self.table, self.accept, self.where)


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class MeasureSpec(Spec):
    """What a published table has lost against its original."""

    job: ClassVar[str] = "measure"
    published: Any
    original: Any
    policy: Any
    queries: int = 10_000
    seed: int = 0
    analysis: bool = False
    predict: str | None = None
    where: Mapping[str, Any] | None = None

    def run(self, progress: Progress = silent) -> Utility:
        from reveil.measure.measure import measure

        return measure(
            self.published,
            self.original,
            self.policy,
            queries=self.queries,
            seed=self.seed,
            analysis=self.analysis,
            predict=self.predict,
            where=self.where,
        )


@dataclass(frozen=True, repr=False)
class PerturbSpec(ReleaseAloneSpec):
    """One release with noise, swapped, averaged or synthetic values."""

    job: ClassVar[str] = "perturb"

    def run(self, progress: Progress = silent) -> Perturbed:
        from reveil.perturb.perturb import perturb

        return perturb(self.table, self.policy, progress=progress, **self.meant())


@dataclass(frozen=True, repr=False)
class CountSpec(Spec):
    """One more release of noisy counts, within a budget."""

    job: ClassVar[str] = "count"
    table: Any
    policy: Any
    home: str | Path | None = None
    accept: Sequence[str] = ()
    catalog: str | None = None

    def run(self, progress: Progress = silent) -> Counted:
        from reveil.dp.count import count

        how: dict[str, Any] = {"home": self.home, "accept": self.accept, "catalog": self.catalog}
        return count(self.table, self.policy, progress=progress, **how)


SPECS: dict[str, type[Spec]] = {
    spec.job: spec
    for spec in (
        *(
            PlanSpec,
            AheadSpec,
            AdviceSpec,
            PublishSpec,
            AnonymizeSpec,
            CompareSpec,
            HistorySpec,
            ShowSpec,
            AffectedSpec,
        ),
        *(ProposeSpec, AcceptSpec, WithdrawSpec, ProposalsSpec, *AMENDING),
        *(HandOverSpec, DiscardSpec, VerifySpec, AuditSpec, MeasureSpec, PerturbSpec, CountSpec),
    )
}
