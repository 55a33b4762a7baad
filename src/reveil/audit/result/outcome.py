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

from reveil.audit.infer.infer import Inference
from reveil.audit.infer.sample import Sampled
from reveil.audit.input.boxes import BoxCrowds
from reveil.audit.input.knowledge import Adversary
from reveil.audit.input.left_out import Telling
from reveil.audit.input.observed import Observed
from reveil.audit.input.tracing import Followed
from reveil.audit.result.attacks import Attack, classes
from reveil.audit.result.beside import only_together, publisher_rows
from reveil.audit.result.reading_texts import reading_texts
from reveil.audit.result.reasons import Reasoning, explain
from reveil.audit.result.score import PersonBelief, Score
from reveil.base.errors import Fault, InputError
from reveil.base.words import agree, some, some_people
from reveil.policy.policy import Policy
from reveil.policy.promise import OUTSIDE, promise_text, verdict_text

TOO_MANY = 50  # more than one person in so many who is not settled is too many to say anything


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
    explanations: tuple[Reasoning, ...] = ()  # the worst cases in words: certain, though they were not known
    exposed_first: Mapping[int, str] = field(default_factory=dict)  # person's number -> release
    policy: Policy | None = None
    asked: tuple[int, ...] = ()  # people who were asked about, by number
    allowed: int | None = None  # people who may be known in the terms of the promise; None: it has no terms
    telling: Telling | None = None  # what being left out tells, where it is known who was put in
    crowds: BoxCrowds | None = None  # own series in boxes of people: what these tell over all releases
    followed: Followed | None = None  # rows that were followed by columns that nobody protects
    also: tuple[Audit, ...] = ()  # of other columns that may be sensitive
    publishers: tuple[tuple[str, Audit], ...] = ()  # of several publishers, what each alone tells

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
        """Nothing was found that the promise rules out, in any column, and nearly everybody is decided.

        What lies outside its terms (more people known, harmless values, people who are not shown) is listed beside it.
        """
        return not self.broken and not self.undecided

    @property
    def broken(self) -> bool:
        """Of whom the promise speaks, somebody's protected value is certain, or somebody is above what was promised."""
        s = self.summary
        later = self.telling is not None and len(self.telling.later) > 0
        found = s["exposed"] > s["exposed_beyond"] or s["above_promise"] > s["beyond_promise"] or later
        return bool(found or s["traced"] or any(one.broken for one in self.also))

    @property
    def undecided(self) -> bool:
        """Nothing was found, but so many were left unsettled that nothing can be said."""
        return not self.broken and (self._unsettled or any(one.undecided for one in self.also))

    @property
    def _unsettled(self) -> bool:
        s = self.summary
        count = max(s["undecided"], 0 if self.promise is None else s["without_belief"])
        among = len(set(self.asked)) or s["people"]
        return bool(count * TOO_MANY > among)

    @property
    def headline(self) -> str:
        """The verdict in the words that publish, verify and reports use."""
        return verdict_text(self._promised, None if self.undecided else self.holds)

    @property
    def reading(self) -> tuple[str, ...]:
        """How released tables were read, in sentences: which column was taken as what, and who was placed."""
        return () if self.observed.reading is None else reading_texts(self.observed)

    @property
    def _promised(self) -> str:
        """What is compared with: the policy's promise, a belief that was stated, or that nothing is certain."""
        if self.policy is not None and self.allowed is not None:
            return promise_text(self.policy)
        if self.promise is not None:
            return f"nobody's value is believed with more than {self.promise}"
        return "nobody's protected value follows with certainty"

    @property
    def unmatched(self) -> str | None:
        """What is said of people of the population who fit nothing: they look safe, and may only be misspelled."""
        count = self.observed.unmatched
        if not count:
            return None
        return (
            f"{some_people(count)} of the population {agree(count, 'fits', 'fit')} no group of any release: nothing is "
            "said about them. Check units, spelling and notation of their quasi-identifiers."
        )

    @property
    def verdict(self) -> tuple[str, ...]:
        """Everything that was found, in sentences; those about what lies outside the promise say so."""
        return (*self.within, *(f"{OUTSIDE}: {text}" for text in self.outside))

    @property
    def within(self) -> tuple[str, ...]:
        """Who is exposed or above the promise in sentences, and whether the promise speaks of them."""
        s, said = self.summary, []
        if s["exposed"] and self.allowed is not None:
            said.append(self._told(s["exposed"], s["exposed_beyond"], "exposed with certainty"))
        if s["above_promise"]:
            ever = " for having a value in some release" if s["ever_linked"] else ""
            said.append(self._told(s["above_promise"], s["beyond_promise"], f"above {s['promise']}{ever}"))
        if self.telling is not None and len(self.telling.later):
            count = len(self.telling.later)
            have = agree(count, "is shown who was", "are shown who were")
            said.append(
                f"{some_people(count)} {have} left out before for a value that was too frequent, which tells it."
            )
        if s["traced"]:
            columns = ", ".join(self.followed.columns) if self.followed is not None else ""
            have = agree(s["traced"], "is", "are")
            said.append(
                f"{some_people(s['traced'])} {have} found by following rows with the same {columns} from release to "
                "release, if these do not change."
            )
        return tuple(said)

    @property
    def outside(self) -> tuple[str, ...]:
        """What was found of which the promise does not speak."""
        said, count = [], self.summary["harmless_certain"]
        if count:
            said.append(f"of {some_people(count)} it is certain that they have a harmless value.")
        if self.telling is not None and len(self.telling.left):
            said.append(self._left_out(self.telling.to_dict()))
        return tuple(said)

    def _left_out(self, told: Mapping[str, Any]) -> str:
        """What is known of those who were put in and are not shown."""
        count, reasons = told["people"], told["reasons"]
        text = f"{some_people(count)} of the tables {agree(count, 'is', 'are')} not shown by some release"
        why = "".join(f"; {people:,}: {reason}" for reason, people in reasons.items())
        if not told["guesses"]:
            return f"{text}, which follows from who was there and tells nobody's value{why}."
        return (
            f"{text}{why}. Whoever knows that they were in the table, and the rule, guesses a value right in "
            f"{told['guessed_right']:,} of {some(told['guesses'], 'case')}."
        )

    def _told(self, count: int, outside: int, what: str) -> str:
        text = f"{some_people(count)} {agree(count, 'is', 'are')} {what}"
        if self.allowed is None:
            return f"{text}, the highest belief that was stated to be allowed."
        if not outside:
            return f"{text}, though no more people are known than the promise allows for."
        where = "in groups that link them with somebody who is known"
        if self.policy is not None and self.policy.guarantee.headline.alone:
            where = "found out only by putting several people together, where each is promised for alone"
        elif self.allowed:
            known = f"{some_people(self.allowed)} {agree(self.allowed, 'is', 'are')} known"
            where = f"in groups of which, over all releases, more than {known}"
        if outside < count:
            return f"{text}, {outside:,} of them {where}: the promise does not speak of these, but of the others."
        return f"{text}, {'' if count == 1 else 'all of them '}{where}: the promise does not speak of this."

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Counts: people, exposed, above 1/2, above the promise (and of these, those of whom it does not speak),
        undecided, and how components were settled."""
        o = self.observed
        return {
            "releases": len(o.releases),
            "people": len(np.unique(o.app_person)),
            "rows": o.rows,
            "groups": len(o.group_release),
            "counterfeits": int(o.group_fakes[o.group_fakes > 0].sum()),
            "adversary": self.adversary.describe(knows_groups=self._knows_groups),
            "known": len(self.inference.model.known),
            "ever_linked": False,  # whether beliefs are about having a value in any release, not in each
            "unmatched": o.unmatched,
            "left_out": None if self.telling is None else self.telling.to_dict(),
            "traced": self._traced,
            **self.score.counts(self.promise),
            **self._ever(),
            "promise": None if self.promise is None else str(self.promise),
            "components": dict(self.inference.methods),
            "certain_by_draw": list(self.draws),
            "trend": list(self.trend),
            **({} if self.crowds is None else {"presence": self.crowds.to_dict()}),
        }

    @property
    def _knows_groups(self) -> str:
        """Whether who is in which group is assumed, or follows."""
        if self.observed.reading is None:
            return "Who is in which group is known"
        if self.observed.located:
            return "Everybody's quasi-identifiers are known, and who is in which group follows from them"
        return "Everybody's quasi-identifiers are known, but not everybody's group"

    @property
    def _traced(self) -> int:
        """People who are found by following rows, and not exposed without that."""
        if self.followed is None:
            return 0
        people = self.followed.people - set(self.score.exposed_people.tolist())
        return len(people & set(self.observed.app_person[self.score.targets].tolist()))

    def _ever(self) -> dict[str, Any]:
        """Where values change freely, or being linked in any release is what was promised: that is what counts."""
        bound = None if self.policy is None else self.policy.guarantee.headline.ever_linked
        if bound is None and self.adversary.change != "freely":
            return {}
        facts: dict[str, Any] = {
            "highest": self.score.highest_ever,
            "above_half": len(self.score.linked(0.5)),
            "ever_linked": True,
        }
        if self.promise is None:
            return facts
        above = self.score.linked(float(self.promise))
        outside = set(self.observed.app_person[self.score.beyond].tolist())
        return facts | {"above_promise": len(above), "beyond_promise": len(above & outside)}

    @cached_property
    def classes(self) -> tuple[tuple[str, int], ...]:
        """How many of the exposed are found out in which way, the simplest that does; nobody is named."""
        return tuple(classes(self.score))

    @cached_property
    def standings(self) -> tuple[PersonBelief, ...]:
        """What is believed of each person who was asked about, also where nothing is certain."""
        return tuple(standing for person in self.asked for standing in self.score.standings(person))

    def explain(self, person: object) -> Reasoning:
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
            "undecided": self.undecided,
            "reading": list(self.reading),
            "verdict": self.headline,
            "summary": self.summary,
            "attacks": [a.to_dict() for a in self.attacks],
            "classes": [{"found_by": text, "people": count} for text, count in self.classes],
        }
        if self.publishers:
            content["publishers"] = publisher_rows(self)
        if names and self.publishers:
            content["only_together"] = only_together(self)
        if names:
            content["people"] = [s.to_dict() for s in self.standings]
            content["ever"] = self.score.ever_of(self.asked)
            content["certain"] = self.certain.filter(~pl.col("known")).to_dicts()
            content["explanations"] = [e.to_dict() for e in self.explanations]
        if self.also:
            content["also"] = [one.to_dict(names=names) for one in self.also]
        return content

    def __repr__(self) -> str:
        s = self.summary
        count, outside, what = s["exposed"], s["exposed_beyond"], "exposed with certainty"
        if not count:
            count, outside, what = s["above_promise"], s["beyond_promise"], "above the promise"
        verdict = f"{count:,} of {some_people(s['people'])} {agree(count, 'is', 'are')} {what}"
        verdict = f"{verdict}{self.in_terms(count, outside)}" if count else "nobody is exposed"
        undecided = f", {s['undecided']:,} undecided" if s["undecided"] else ""
        return f"<Audit of {some(s['releases'], 'release')}, {some(s['rows'], 'row')}: {verdict}{undecided}>"

    def in_terms(self, count: int, outside: int) -> str:
        """Whether so many people are within the terms of the promise, to be put after their number."""
        if self.allowed is None or not count:
            return ""
        if outside in (0, count):
            return f", {'beyond' if outside else 'within'} the promise's terms"
        return f", {outside:,} of them beyond the promise's terms"

    def _repr_html_(self) -> str:
        """The report in a frame of its own, so that its style and that of the notebook leave each other alone."""
        from reveil.audit.result.audit_report import html

        frame = (
            f'<iframe srcdoc="{escape(html(self))}" title="Audit" style="width:100%;height:36rem;border:0"></iframe>'
        )
        return f"<p>{escape(repr(self))}</p>{frame}"
