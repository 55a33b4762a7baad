"""What an audit found: frames, counts, words, and everything for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
import polars as pl

from reveil.audit.attacks import Attack, classes
from reveil.audit.explain import Explanation, explain
from reveil.audit.infer import Inference
from reveil.audit.knowledge import Adversary
from reveil.audit.observed import Observed
from reveil.audit.sample import Sampled
from reveil.audit.score import Score, Standing
from reveil.errors import Fault, InputError
from reveil.policy import Policy
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
    def classes(self) -> tuple[tuple[str, int], ...]:
        """How many of the exposed are found out in which way, the simplest that does; nobody is named."""
        return tuple(classes(self.score))

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
            "classes": [{"found_by": text, "people": count} for text, count in self.classes],
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
