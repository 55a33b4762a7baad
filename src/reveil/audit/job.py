"""The work of an audit: the model, what follows, repeated draws of known people, and the trend by release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveil.audit.infer.certain import State
from reveil.audit.infer.exact import Limits
from reveil.audit.infer.filters import SEARCH
from reveil.audit.infer.infer import Inference
from reveil.audit.infer.minimal import minimality
from reveil.audit.input.knowledge import Adversary, Known
from reveil.audit.input.left_out import LeftOut, Telling, what_it_tells
from reveil.audit.input.observed import Observed
from reveil.audit.input.tables import value_kinds
from reveil.audit.input.terms import allowed
from reveil.audit.input.tracing import Followed
from reveil.audit.model.counterfeit_places import attack
from reveil.audit.model.model import Model, build
from reveil.audit.model.options import count_of, having
from reveil.audit.result.attacks import Attack, attacks, chain_only, left_out_attack, only_value, tracing_attack
from reveil.audit.result.outcome import Audit
from reveil.audit.result.reasons import Reasoning, explain
from reveil.audit.result.score import Protects, Score, everything, score
from reveil.audit.settings import AuditSettings
from reveil.base.arrays import I64, Bools
from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.progress import Progress
from reveil.base.sections import exact
from reveil.base.words import agree, some_people
from reveil.policy.policy import Policy

TREND = 0.3  # share of the time for what followed from the first releases alone


def numbers_of(o: Observed, people: Sequence[object]) -> list[int]:
    """The numbers of people by their names."""
    number = {str(name): n for n, name in enumerate(o.persons)} if people else {}
    faults = [
        Fault("R721", f"person {str(p)!r}", "is in no release", "correct the name")
        for p in people
        if str(p) not in number
    ]
    if faults:
        raise InputError(faults)
    return [number[str(p)] for p in people]


@dataclass(frozen=True, eq=False)
class Job:
    """One audit: what is seen, by whom, and (to score guesses) the true value's code of each appearance."""

    seen: Observed
    who: Adversary
    policy: Policy | None
    truth: I64 | None
    settings: AuditSettings
    progress: Progress
    left_out: LeftOut | None = None  # people who were put in and are not shown
    followed: Followed | None = None  # people found by following rows through columns that nobody protects

    def run(self) -> Audit:
        """The audit of everybody, or of the people asked about."""
        asked = self.settings.people
        people = None if asked is None else numbers_of(self.seen, asked)
        pins = self._pins(0)
        model = build(self.seen, self.who, pinned=pins)
        fits = self._witnessed(model)
        world = self._world() if fits else None
        inference, sampled = attack(
            model, self.who, seconds=self.settings.limit * (1 - TREND), samples=self.settings.samples,
            seed=self.settings.seed,
            progress=self.progress, limits=Limits(witnessed=fits), people=people, world=world,
        )  # fmt: skip
        stated = self.settings.promise is not None  # then it is a bound for this adversary, whoever is known
        promise = promised(self.settings.promise, self.policy)
        terms = None if stated else self._terms(promise)
        trend, first, sure = self._trend(pins, people)
        _enter_certain(inference, sure)
        scored = score(inference, self.truth, people, terms, self._protects)
        if terms is not None and self._alone:
            scored = replace(scored, beyond=scored.beyond | (only_value(model, chain_only(model)) < 0))
        first |= {int(p): self.seen.releases[-1] for p in scored.exposed_people if int(p) not in first}
        trend = self._with_last(trend, scored)
        return Audit(
            self.seen, self.who, inference, scored, self._attacks(scored), promise,
            self._draws(len(scored.exposed_people), people), trend, sampled, self._explained(inference, scored), first,
            self.policy, tuple(people or ()), terms, self._telling, followed=self.followed,
        )  # fmt: skip

    @cached_property
    def _telling(self) -> Telling | None:
        """What being left out tells of people, where it is known who was put in and how they are chosen."""
        if self.left_out is None or self.policy is None:
            return None
        return what_it_tells(self.seen, self.left_out, self.policy, self._protects)

    def _terms(self, promise: Fraction | None) -> int | None:
        """How many people may be known in the terms of the promise; None where it has none."""
        if self.policy is None or (promise is None and not self._alone):
            return None
        return allowed(self.policy)

    @property
    def _alone(self) -> bool:
        """Whether the promise is about following each person alone."""
        return self.policy is not None and self.policy.guarantee.headline.alone

    @property
    def _protects(self) -> Protects:
        """The values that the policy protects; without one, all."""
        if self.policy is None:
            return everything
        column, promise = self.seen.column, self.policy.guarantee.headline
        return self.policy.protects(column) if column in self.policy.columns else promise.protects

    def _explained(self, inference: Inference, scored: Score) -> tuple[Reasoning, ...]:
        """The worst cases in words; leaving groups out to see what is needed takes as long as many small audits."""
        told = []
        for done, app in enumerate(cases := scored.exposed_apps[: self.settings.worst]):
            self.progress("explaining", done / len(cases))
            told.append(explain(inference, int(app), self.who))
        return tuple(told)

    def _draws(self, first: int, people: list[int] | None) -> tuple[int, ...]:
        """How many are exposed in each draw of known people; the first one is that of the audit itself."""
        if not self.who.share:
            return ()
        counts = [first]
        for draw in range(1, self.settings.draws):
            model = build(self.seen, self.who, pinned=self._pins(draw))
            again, _ = attack(model, self.who, seconds=self.settings.limit, people=people, beliefs=False)
            counts.append(len(score(again, None, people, protects=self._protects).exposed_people))
        return tuple(counts)

    def _attacks(self, scored: Score) -> tuple[Attack, ...]:
        made = attacks(scored, value_kinds(self.policy, self.seen.values))
        if self._telling is not None and self._telling.guessed.any():
            made = *made, left_out_attack(self._telling, scored)
        if self.followed is not None and self.followed.rows:
            made = *made, tracing_attack(self.followed, scored)
        if self.who.publisher is None:
            return made
        return *made, minimality(scored, self.who.publisher, self.policy, self.settings.seed)

    def _witnessed(self, model: Model) -> bool:
        """Whether the truth is given and fits: then there is a world, whatever is left out."""
        o, truth = self.seen, self.truth
        if truth is None or model.change != "never" or (truth < 0).any():
            return False
        lasting = truth == truth[o.person_start[o.app_person]]
        chosen = model.possible & having(model.opt_start, model.opt_cell, model.cell_value, truth)
        shown = count_of(model.opt_start, chosen) == 1
        taken = np.bincount(model.opt_cell[chosen], minlength=len(model.cell_cap)) <= model.cell_cap
        return bool(o.located and lasting.all() and shown.all() and taken.all())

    def _world(self) -> I64:
        """The true value of everybody, where it lasts."""
        assert self.truth is not None
        values = np.full(self.seen.people, -1, dtype=np.int64)
        values[self.seen.app_person] = self.truth
        return values

    def _pins(self, draw: int) -> dict[int, int]:
        """What the adversary knows without being told a value: the truth of listed people, and of a random share."""
        o = self.seen
        listed = [item for item in self.who.compromised if item.value is None]
        if not listed and not self.who.share:
            return {}
        if self.truth is None:
            message = "to know what compromised people have, the audit needs the truth"
            raise InputError(Fault("R727", "compromised", message, "write name=value, or give the truth"))
        chosen = set(numbers_of(o, [item.person for item in listed if item.release is None]))
        if self.who.share:
            rng = np.random.default_rng([self.settings.seed, draw])
            present = np.unique(o.app_person)
            chosen |= set(present[rng.random(len(present)) < float(self.who.share)].tolist())
        known = np.isin(o.app_person, list(chosen)) | self._seen_in(
            [item for item in listed if item.release is not None]
        )
        self._refuse_untold(known & (self.truth < 0) & o.app_sure)
        return {int(a): int(self.truth[a]) for a in np.nonzero(known)[0] if self.truth[a] >= 0}

    def _refuse_untold(self, lost: Bools) -> None:
        """Whoever is known and in a release has a value there; without it they would be taken for unknown."""
        if lost.any():
            o = self.seen
            people = np.unique(o.app_person[lost])
            names = ", ".join(str(o.persons[int(person)]) for person in people[:3])
            have = agree(len(people), "has, who is", "have, who are")
            message = f"the truth does not say what {some_people(len(people))} {have} to be known: {names}"
            remedy = "complete the truth, or write name=value"
            raise InputError(Fault("R727", "compromised", message, remedy, int(lost.sum())))

    def _seen_in(self, listed: Sequence[Known]) -> Bools:
        """Appearances of people of whom the value in one release is known."""
        o, present = self.seen, np.zeros(len(self.seen.app_person), dtype=bool)
        faults = [
            Fault(
                "R721",
                f"person {k.person!r}",
                f"release {k.release!r} is not among {', '.join(o.releases)}",
                "correct the release",
            )
            for k in listed
            if k.release not in o.releases
        ]
        stop_if(faults)
        for item, number in zip(listed, numbers_of(o, [item.person for item in listed]), strict=True):
            present |= (o.app_person == number) & (o.app_release == o.releases.index(str(item.release)))
        return present

    def _trend(
        self, pins: dict[int, int], people: list[int] | None
    ) -> tuple[tuple[dict[str, Any], ...], dict[int, str], dict[int, int]]:
        """How many were certain once each release but the last was out, when each person became so, and the values of
        lasting ones. Who is certain stays so."""
        self.progress("trend", 0.0)
        o, rows = self.seen, list[dict[str, Any]]()
        first: dict[int, str] = {}
        sure: dict[int, int] = {}
        if o.rows * len(o.releases) > 3_000_000:
            return (), {}, {}
        for last in range(1, len(o.releases)):
            self.progress("trend", last / len(o.releases))
            keep = np.nonzero(o.app_release < last)[0]
            place = {int(a): n for n, a in enumerate(keep)}
            held = {place[a]: v for a, v in pins.items() if a in place}
            part = o.until(last)
            known = tuple(k for k in self.who.compromised if k.release is None or k.release in part.releases)
            known = tuple(k for k in known if k.value is None or k.value in {str(v) for v in o.values})
            model = build(part, replace(self.who, compromised=_present(part, known)), pinned=held)
            part_found, _ = attack(
                model, self.who, seconds=self.settings.limit * TREND / len(o.releases), people=people, beliefs=False
            )
            scored = score(part_found, None, people, protects=self._protects)
            for person in scored.exposed_people:
                first.setdefault(int(person), o.releases[last - 1])
            if model.change == "never":
                certain = only_value(model, part_found.state.alive)
                sure |= {int(part.app_person[a]): int(certain[a]) for a in scored.certain_apps}
            rows.append(
                {
                    "release": o.releases[last - 1],
                    "people": len(np.unique(part.app_person[scored.looked])),
                    "exposed": len(first),
                }
            )
        return tuple(rows), first, sure

    def _with_last(self, trend: tuple[dict[str, Any], ...], scored: Score) -> tuple[dict[str, Any], ...]:
        """The trend with the last release, which is what the audit itself says."""
        o = self.seen
        if o.rows * len(o.releases) > 3_000_000:
            return ()
        people = len(np.unique(o.app_person[scored.looked]))
        return *trend, {"release": o.releases[-1], "people": people, "exposed": len(scored.exposed_people)}


def _enter_certain(inference: Inference, sure: Mapping[int, int]) -> None:
    """What followed from the first releases alone is certain, also where all of them were too much to search."""
    m, o, state = inference.model, inference.model.observed, inference.state
    for person, value in sure.items():
        for app in range(o.person_start[person], o.person_start[person + 1]):
            for option in range(m.opt_start[app], m.opt_start[app + 1]):
                if state.alive[option] and int(m.cell_value[m.opt_cell[option]]) not in (value, -1):
                    state.remove(option, SEARCH, person)
                    inference.share[option] = 0.0
            if state.values_of(app) == {value}:
                inference.decided[app] = True
                inference.share[m.opt_start[app] : m.opt_start[app + 1]] = _evenly(state, app)


def _evenly(state: State, app: int) -> NDArray[np.float64]:
    """A certain value, shared by the options that it has left."""
    alive = state.alive[state.model.opt_start[app] : state.model.opt_start[app + 1]]
    shares: NDArray[np.float64] = np.where(alive, 1 / max(1, int(alive.sum())), np.nan)
    return shares


def _present(o: Observed, known: Sequence[Any]) -> tuple[Any, ...]:
    there = {str(o.persons[int(p)]) for p in np.unique(o.app_person)}
    return tuple(k for k in known if k.person in there)


def promised(given: object, policy: Policy | None) -> Fraction | None:
    """The bound on a guess that was promised: as given, or what the policy's guarantee says."""
    if given is not None:
        return exact(given)
    return None if policy is None else policy.guarantee.headline.promised
