"""What guarantees share whose groups follow people from release to release: many values, and cohorts."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from reveil.base.sections import NUMBER, TEXT, Share, one_of
from reveil.guarantees.descriptor import Listed, Parameters
from reveil.guarantees.selection import Selection

if TYPE_CHECKING:
    from reveil.policy.policy import Policy

Refill = Annotated[
    Annotated[int, Field(ge=1), NUMBER] | Annotated[Literal["never"], TEXT], one_of('a whole number nor "never"')
]
Published = Annotated[int, Field(ge=1)] | None  # how often one person is shown at most; the paper's L


class ManyValues(Parameters):
    """Every group shows m different values."""

    m: Annotated[int, Field(ge=1)]
    harmless: Listed = None

    def contradictions(self) -> list[str]:
        return ["m = 1 hides nothing: a group of one shows its value"] if self.m < 2 else []

    @property
    def founders(self) -> int:
        """How many people begin a group at least."""
        return self.m

    @property
    def harmless_values(self) -> Selection:
        return self.selection(self.harmless)

    def disagreements(self, policy: Policy) -> list[str]:
        """Harmless values repeat in a group, and conditions that count values would count them."""
        counting = [one.needs[0] for one, _ in policy.guarantee.described if one.sensitive == "some"]
        if self.harmless is None or not counting:
            return []
        return [f"harmless values may repeat in a group, and {', '.join(counting)} would count them: leave one out"]


class CohortTerms(ManyValues):
    """How many people of a cohort may be known, how well others may then be guessed, and when places are refilled."""

    compromised: Annotated[int, Field(ge=0)] = 1
    tau: Annotated[Share, Field(gt=0)] | None = None
    refill: Refill = "never"

    def contradictions(self) -> list[str]:
        return [*super().contradictions(), *self._terms()]

    def _terms(self) -> list[str]:
        m, c = self.m, self.compromised
        if m - c < 2:
            return [f"m = {m} with compromised = {c} promises nothing: {c} known of {m} leave one value for the last"]
        if isinstance(self.refill, int) and c > 2:
            most = "with refills the chance is computed for up to 2 known people"
            return [f'compromised > 2 needs refill = "never": {most}']
        if isinstance(self.refill, int) and c > 0 and self.refill < c + 1:
            return [f'refill = {self.refill} is too few for compromised = {c}: use {c + 1} or more, or "never"']
        if self.tau is not None and self.tau >= 1:
            return [f"tau = {self.tau} promises nothing: it allows certainty"]
        if self.tau is not None and self.tau < self.at_best:
            return [f"tau = {self.tau} cannot be kept: m, compromised and refill allow {self.at_best} at best"]
        return []

    @property
    def at_best(self) -> Fraction:
        """The lowest bound on a guess that m, compromised and refill can keep.

        In a cohort of m, c known people leave m - c values for the others. When r places are refilled at once, a known
        leaver and c - 1 known newcomers leave r - c + 1 places for the leaver's value.
        """
        left = self.m - self.compromised
        if isinstance(self.refill, int) and self.compromised:
            left = min(left, self.refill - self.compromised + 1)
        return Fraction(1, max(1, left))

    @property
    def promised(self) -> Fraction | None:
        return self.at_best if self.tau is None else self.tau

    @property
    def allowed(self) -> int:
        return self.compromised


class Evolving(CohortTerms):
    """Values change by public rules. `view` says whether everybody is looked at together or each person alone."""

    disjoint: ClassVar[bool] = False  # values of a group can never become the same
    view: Literal["joint", "individual"] = "joint"
    places: Annotated[int, Field(ge=2)] | None = None  # of a new cohort, at least; m unless given

    def contradictions(self) -> list[str]:
        if self.harmless is not None and (self.disjoint or self.view == "individual"):
            where = 'in model = "m-distinct" with view = "joint" alone'
            return [f"harmless values repeat in a group, and groups may repeat values {where}"]
        if self.view == "joint":
            return super().contradictions() or self._too_many_places()
        idle = [name for name in ("compromised", "tau", "refill", "places") if name in self.model_fields_set]
        alone = [f'{name} does nothing with view = "individual": it looks at one person alone' for name in idle]
        return ManyValues.contradictions(self) + alone

    def _too_many_places(self) -> list[str]:
        """Where cohorts cannot have more places than m."""
        if self.places is None:
            return []
        if self.disjoint:
            return ["places does nothing with m-distinct-star: people of a cohort have values of different families"]
        if self.refill != "never":
            return [
                'places needs refill = "never": who takes a place could be guessed among the few who came with them'
            ]
        return [f"places = {self.places} is less than m = {self.m}"] if self.places < self.m else []

    def disagreements(self, policy: Policy) -> list[str]:
        """Cohorts of so many people would be boxes of so many, if people were not shown apart."""
        alone = self.places is not None and not policy.method.two_tables
        told = ['places needs publish = "anatomy" (two tables); in one table guarantee.k is how many share a group']
        return super().disagreements(policy) + (told if alone else [])

    def suits(self, method: str) -> bool:
        return method == ("cohorts-evolving" if self.joint else "m-distinct")

    @property
    def founders(self) -> int:
        return self.places or self.m

    @property
    def joint(self) -> bool:
        return self.view == "joint"

    @property
    def alone(self) -> bool:
        return not self.joint

    @property
    def stands_in(self) -> bool:
        """Whether people who were away may be shown while the counterfeit that has their place stands in for them."""
        return self.joint and self.places is not None

    @property
    def promised(self) -> Fraction | None:
        """Followed alone, m values stay possible; only where they never become the same does that bound a guess."""
        if self.joint:
            return super().promised
        return Fraction(1, self.m) if self.disjoint else None

    @property
    def allowed(self) -> int:
        return self.compromised if self.joint else 0
