"""The audit as people call it: releases in, what an adversary believes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.attacks import Attack, attacks
from reveil.audit.exact import Limits
from reveil.audit.explain import Explanation, explain
from reveil.audit.infer import Inference, Progress
from reveil.audit.knowledge import Adversary, adversary_from, read_adversary
from reveil.audit.minimal import minimality
from reveil.audit.model import Model, build
from reveil.audit.observed import I64, Observed
from reveil.audit.places import attack
from reveil.audit.sample import Sampled
from reveil.audit.score import Score, Standing, score
from reveil.audit.tables import Presence, observe, population_priors, value_kinds
from reveil.errors import Fault, InputError
from reveil.policy import Policy, PolicyLike, load_policy
from reveil.promise import lowest_tau
from reveil.words import agree, some, some_people

WORST = 10  # people whose exposure is explained unless more are asked for


@dataclass(frozen=True, eq=False)
class Audit:
    """What an adversary can work out. Frames: `certain` and `posterior`; numbers: `summary`; words: `explanations`."""

    observed: Observed
    adversary: Adversary
    inference: Inference
    score: Score
    attacks: tuple[Attack, ...]
    promise: Fraction | None
    draws: tuple[int, ...] = ()  # people certain, in each draw of compromised people
    trend: tuple[dict[str, Any], ...] = ()
    sampled: tuple[Sampled, ...] = ()
    worst: int = WORST
    exposed_first: Mapping[int, str] = field(default_factory=dict)  # person's number -> release
    policy: Policy | None = None
    asked: tuple[int, ...] = ()  # people who were asked about, by number

    @property
    def certain(self) -> pl.DataFrame:
        """Everybody whose value is certain: person, release, value, known (to the adversary from elsewhere)."""
        return self.score.certain

    @property
    def posterior(self) -> pl.DataFrame:
        """What the adversary believes: person, release, value, probability, and how it was found."""
        return self.score.posterior

    @property
    def holds(self) -> bool:
        """Nobody is certain but those who were known, and nobody is above what was promised."""
        return bool(self.summary["exposed"] == 0 and self.summary["above_promise"] == 0)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Counts: people, exposed, above 1/2 and above the promise, undecided, and how components were settled."""
        o = self.observed
        return {
            "releases": len(o.releases),
            "people": len(np.unique(o.app_person)),
            "rows": o.rows,
            "groups": len(o.group_release),
            "counterfeits": int(o.group_fakes[o.group_fakes > 0].sum()),
            "adversary": self.adversary.describe(),
            "known": len(self.inference.model.known),
            **self.score.counts(self.promise),
            **self._ever(),
            "promise": None if self.promise is None else str(self.promise),
            "components": dict(self.inference.methods),
            "certain_by_draw": list(self.draws),
            "trend": list(self.trend),
        }

    def _ever(self) -> dict[str, Any]:
        """Under the global guarantee, what was promised is a bound on being linked in any release."""
        g = None if self.policy is None else self.policy.guarantee
        if g is None or g.model != "global" or self.promise is None:
            return {}
        return {"above_promise": self.score.linked(float(self.promise), g.protects)}

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """What is believed of each person who was asked about, also where nothing is certain."""
        return tuple(standing for person in self.asked for standing in self.score.standings(person))

    @cached_property
    def explanations(self) -> tuple[Explanation, ...]:
        """The worst cases in words: people who are certain though they were not known."""
        return tuple(explain(self.inference, int(a), self.adversary) for a in self.score.exposed_apps[: self.worst])

    def explain(self, person: object) -> Explanation:
        """Why this person's value is certain, at the first release where it is."""
        o = self.observed
        names = o.persons.cast(pl.String).to_list()
        if str(person) not in names:
            raise InputError(Fault("R721", f"person {str(person)!r}", "is in no release", "see the population"))
        number = names.index(str(person))
        for a in range(o.person_start[number], o.person_start[number + 1]):
            if len(self.inference.state.values_of(a)) == 1:
                return explain(self.inference, a, self.adversary)
        message = "is not certain in any release: there is nothing to explain"
        raise InputError(Fault("R726", f"person {str(person)!r}", message, "see .posterior for what is believed"))

    def to_dict(self, *, names: bool = True) -> dict[str, Any]:
        """Everything for programs; without `names`, nothing that points at a person."""
        content: dict[str, Any] = {
            "holds": self.holds,
            "summary": self.summary,
            "attacks": [a.to_dict() for a in self.attacks],
        }
        if names:
            content["people"] = [s.to_dict() for s in self.standings]
            content["ever"] = self.score.ever_of(self.asked)
            content["certain"] = self.certain.filter(~pl.col("known")).to_dicts()
            content["explanations"] = [e.to_dict() for e in self.explanations]
        return content

    def __repr__(self) -> str:
        s = self.summary
        count, what = s["exposed"], "exposed with certainty"
        if not count:
            count, what = s["above_promise"], "above the promise"
        found = f"{count:,} of {some_people(s['people'])} {agree(count, 'is', 'are')} {what}"
        found = "nobody is exposed" if self.holds else found
        undecided = f", {s['undecided']:,} undecided" if s["undecided"] else ""
        return f"<Audit of {some(s['releases'], 'release')}, {some(s['rows'], 'row')}: {found}{undecided}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(str(n))}</td><td>{escape(str(v))}</td></tr>"
            for n, v in self.summary.items()
            if n != "trend"
        )
        return f"<p>{escape(repr(self))}</p><table>{rows}</table>"


def audit(
    releases: Any,
    population: Any = None,
    *,
    policy: PolicyLike | None = None,
    sensitive: str | None = None,
    identifier: str | None = None,
    counterfeits: Sequence[Any] | None = None,
    presence: Presence = "auto",
    adversary: str | Path | Mapping[str, Any] | Adversary | None = None,
    priors: Mapping[str, Mapping[str, Fraction]] | None = None,
    change: str | None = None,
    transitions: Any = None,
    compromised: Sequence[Any] = (),
    share: object = 0,
    publisher: str | None = None,
    draws: int = 1,
    truth: I64 | pl.DataFrame | None = None,
    promise: object = None,
    people: Sequence[object] | None = None,
    limit: float = 60.0,
    samples: int = 0,
    worst: int = WORST,
    seed: int = 0,
    progress: Progress = lambda what, done: None,
) -> Audit:
    """Attack released tables, and say who is exposed and why.

    `priors` (person -> value -> weight) are used where the adversary states none; by default the policy's first prior.
    `releases` are tables in order (paths, frames, release folders, or pairs of tables for an anatomy) with a
    `population` that says who has which quasi-identifiers (a column `release` says when), or an `Observed`.
    A `publisher` (any, median) is known to cut groups as far as the promise allows, numbers anywhere or at the median.

    >>> one = pl.DataFrame({"age": ["2*", "2*"], "illness": ["flu", "cold"]})
    >>> two = pl.DataFrame({"age": ["[25-39]", "[25-39]"], "illness": ["flu", "asthma"]})
    >>> who = pl.DataFrame({"name": ["Ann", "Bob", "Bob", "Cid"], "age": [21, 28, 28, 35], "release": [1, 1, 2, 2]})
    >>> found = audit([one, two], who)
    >>> found.certain.filter(pl.col("person") == "Bob")["value"].unique().to_list()
    ['flu']
    >>> print(found.explain("Ann"))  # doctest: +ELLIPSIS
    In release 2 group 1 Bob can only have asthma or flu; values do not change, so Bob does not have cold in release...
    """
    loaded = None if policy is None else load_policy(policy)
    seen = releases if isinstance(releases, Observed) else None
    if seen is None:
        listed = releases if isinstance(releases, list | tuple) and not _is_table(releases) else [releases]
        if population is None:
            message = "released tables alone do not say who is in them"
            raise InputError(Fault("R723", "population", message, "give the people with their quasi-identifiers"))
        seen = observe(
            list(listed), population, policy=loaded, sensitive=sensitive, identifier=identifier,
            counterfeits=counterfeits, presence=presence,
        )  # fmt: skip
        if loaded is not None and loaded.guarantee.priors:
            priors = priors or population_priors(loaded, population, sensitive, identifier)
    stated = {
        "change": change,
        "transitions": transitions,
        "compromised": list(compromised) or None,
        "share": share or None,
        "publisher": publisher,
    }
    who = _adversary(adversary, loaded, {name: value for name, value in stated.items() if value is not None})
    if priors and not who.priors:
        who = replace(who, priors=priors)
    job = _Job(seen, who, loaded, _truth(truth, seen), promise, limit, samples, worst, seed, progress)
    return job.run(_numbers(seen, people), max(1, draws))


def _is_table(releases: Sequence[Any]) -> bool:
    return isinstance(releases, tuple) and len(releases) == 2 and not isinstance(releases[0], tuple)


def _adversary(given: Any, policy: Policy | None, stated: Mapping[str, Any]) -> Adversary:
    if isinstance(given, Adversary):
        return given
    content: dict[str, Any] = {}
    folder = Path()
    if isinstance(given, Mapping):
        content = dict(given)
    elif given is not None:
        content, folder = read_adversary(Path(given)), Path(given).parent
    return adversary_from(content | dict(stated), policy, folder)


def _truth(given: I64 | pl.DataFrame | None, o: Observed) -> I64 | None:
    """The true value's code of each appearance; from a frame with person, release and value."""
    if given is None or isinstance(given, np.ndarray):
        return given
    code = {str(v): n for n, v in enumerate(o.values)}
    known = {
        (str(p), str(r)): code.get(str(v), -1) for p, r, v in given.select("person", "release", "value").iter_rows()
    }
    return np.array(
        [
            known.get((str(o.persons[int(p)]), o.releases[r]), -1)
            for p, r in zip(o.app_person, o.app_release, strict=True)
        ]
    )


def _numbers(o: Observed, people: Sequence[object] | None) -> list[int] | None:
    if people is None:
        return None
    number = {str(name): n for n, name in enumerate(o.persons)}
    faults = [
        Fault("R721", f"person {str(p)!r}", "is in no release", "correct the name")
        for p in people
        if str(p) not in number
    ]
    if faults:
        raise InputError(faults)
    return [number[str(p)] for p in people]


@dataclass(frozen=True, eq=False)
class _Job:
    seen: Observed
    who: Adversary
    policy: Policy | None
    truth: I64 | None
    promise: object
    limit: float
    samples: int
    worst: int
    seed: int
    progress: Progress

    def run(self, people: list[int] | None, draws: int) -> Audit:
        pins = self._pins(0)
        model = build(self.seen, self.who, pinned=pins)
        fits = self._witnessed(model)
        world = self._world() if fits else None
        found, sampled = attack(
            model, self.who, seconds=self.limit, samples=self.samples, seed=self.seed, progress=self.progress,
            limits=Limits(witnessed=fits), people=people, world=world,
        )  # fmt: skip
        scored = score(found, self.truth, people)
        counts = [len(scored.exposed_people)] if self.who.share else []
        for draw in range(1, draws if self.who.share else 1):
            model = build(self.seen, self.who, pinned=self._pins(draw))
            again, _ = attack(model, self.who, seconds=self.limit, beliefs=False)
            counts.append(len(score(again, None, None).exposed_people))
        trend, first = self._trend(pins)
        return Audit(
            self.seen, self.who, found, scored, self._attacks(found), promised(self.promise, self.policy),
            tuple(counts), trend, sampled, self.worst, first, self.policy, tuple(people or ()),
        )  # fmt: skip

    def _attacks(self, found: Inference) -> tuple[Attack, ...]:
        made = attacks(found, self.truth, value_kinds(self.policy, self.seen.values))
        if self.who.publisher is None:
            return made
        return *made, minimality(found, self.truth, self.who.publisher, self.policy)

    def _witnessed(self, model: Model) -> bool:
        """Whether the truth is given and fits: then there is a world, whatever is left out."""
        o, truth = self.seen, self.truth
        if truth is None or model.change != "never" or (truth < 0).any():
            return False
        lasting = truth == truth[o.person_start[o.app_person]]
        chosen = model.possible & (model.cell_value[model.opt_cell] == truth[model.opt_app])
        shown = np.bincount(model.opt_app[chosen], minlength=len(truth)) == 1
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
        listed = [item.person for item in self.who.compromised if item.value is None]
        if not listed and not self.who.share:
            return {}
        if self.truth is None:
            message = "to know what compromised people have, the audit needs the truth"
            raise InputError(Fault("R727", "compromised", message, "write name=value, or give the truth"))
        chosen = set(_numbers(o, listed) or [])
        if self.who.share:
            rng = np.random.default_rng([self.seed, draw])
            present = np.unique(o.app_person)
            chosen |= set(present[rng.random(len(present)) < float(self.who.share)].tolist())
        apps = np.nonzero(np.isin(o.app_person, list(chosen)))[0]
        return {int(a): int(self.truth[a]) for a in apps if self.truth[a] >= 0}

    def _trend(self, pins: dict[int, int]) -> tuple[tuple[dict[str, Any], ...], dict[int, str]]:
        """How many were certain once each release was out, and when each person became so. Who is certain stays so."""
        o, rows = self.seen, list[dict[str, Any]]()
        first: dict[int, str] = {}
        if o.rows * len(o.releases) > 3_000_000:
            return (), {}
        for last in range(1, len(o.releases) + 1):
            self.progress("trend", last / len(o.releases))
            keep = np.nonzero(o.app_release < last)[0]
            place = {int(a): n for n, a in enumerate(keep)}
            held = {place[a]: v for a, v in pins.items() if a in place}
            part = o.until(last)
            known = tuple(k for k in self.who.compromised if k.release is None or k.release in part.releases)
            known = tuple(k for k in known if k.value is None or k.value in {str(v) for v in o.values})
            model = build(part, replace(self.who, compromised=_present(part, known)), pinned=held)
            part_found, _ = attack(model, self.who, seconds=self.limit / len(o.releases), beliefs=False)
            found = score(part_found, None, None)
            for person in found.exposed_people:
                first.setdefault(int(person), o.releases[last - 1])
            rows.append(
                {
                    "release": o.releases[last - 1],
                    "people": len(np.unique(part.app_person)),
                    "exposed": len(first),
                }
            )
        return tuple(rows), first


def _present(o: Observed, known: Sequence[Any]) -> tuple[Any, ...]:
    there = {str(o.persons[int(p)]) for p in np.unique(o.app_person)}
    return tuple(k for k in known if k.person in there)


def promised(given: object, policy: Policy | None) -> Fraction | None:
    """The bound on a guess that was promised: as given, or what the policy's guarantee says."""
    from reveil.promise import exact

    if given is not None:
        return exact(given)
    if policy is None:
        return None
    g = policy.guarantee
    bounds: dict[str, Callable[[], Fraction | None]] = {
        "compromise-safety": lambda: g.tau or lowest_tau(g),
        "m-invariance": lambda: Fraction(1, g.m or 1),
        "m-distinct": lambda: Fraction(1, g.m or 1) if g.view == "individual" else g.tau or lowest_tau(g),
        "m-distinct-star": lambda: Fraction(1, g.m or 1) if g.view == "individual" else g.tau or lowest_tau(g),
        "r-robustness": lambda: 1 / g.r if g.r else None,
        "global": lambda: 1 / g.l if g.l else None,
    }
    return bounds.get(g.model, lambda: None)()  # the others promise no bound on a guess


__all__ = ["Audit", "Model", "audit", "promised"]
