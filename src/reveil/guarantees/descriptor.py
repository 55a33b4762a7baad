"""What is true of a guarantee whoever asks: its parameters, and the facts that policy, planner, judge and audit go by.

Only facts. The bound that is promised is stated here, once, for people and for the audit; planner and judge each work
out by themselves what groups must be like to keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from reveil.base.sections import ContradictionError, PlainText, Section
from reveil.guarantees.selection import Selection

if TYPE_CHECKING:
    from reveil.policy.policy import Policy

Listed = Annotated[tuple[PlainText, ...], Field(min_length=1)] | None  # values by name
CUTTING = ("mondrian", "full-domain", "subtree", "sibling", "cell")  # methods that plan one release
WHOLE = ("full-domain", "mondrian")  # of these, the ones that look at all classes of the table together


@dataclass(frozen=True)
class Family:
    """How a person's value may change for guarantees to hold, and why they need what they need."""

    name: Literal["one release", "never", "freely", "transitions"]
    change: str = ""  # why values must change in this way
    identity: str = ""  # why people must be known again
    withheld: str = ""  # why method.suppress must be 0

    @property
    def series(self) -> bool:
        """Whether it is about all releases together."""
        return self.name != "one release"


ONE_RELEASE = Family("one release")
NEVER = Family("never", "it relies on values that stay", "people must be known again")
TRANSITIONS = Family("transitions", "what a value may become is public", "people must be known again")
FREELY = Family(
    "freely",
    "its chances multiply only if a value says nothing about the next one. Where values persist it is no bound: {A,B} "
    "with x,y and then {A,C} with x,z gives A away, and the formula says 3/4",
    "budgets belong to people",
    ": who is withheld is decided by the past alone",
)


class Parameters(Section):
    """What one guarantee is asked to keep; facts that depend on it are its properties."""

    model_config = ConfigDict(defer_build=True)

    @model_validator(mode="after")
    def _consistent(self) -> Parameters:
        if faults := self.contradictions():
            raise ContradictionError(faults)
        return self

    def contradictions(self) -> list[str]:
        """What does not go together within these parameters."""
        return []

    def disagreements(self, policy: Policy) -> list[str]:
        """What does not go together with the rest of the policy, beyond what every guarantee of its kind needs."""
        return []

    def suits(self, method: str) -> bool:
        """Whether one of the guarantee's methods keeps it with these parameters."""
        return True

    @property
    def promised(self) -> Fraction | None:
        """The highest chance of a guess under the terms of the audit; None where no bound on it is promised."""
        return None

    _below: Mapping[str, frozenset[str]] = PrivateAttr(default_factory=dict)  # values by the labels above them

    def selection(self, entries: tuple[str, ...] | None) -> Selection:
        """The values that a list of this promise means."""
        return Selection(entries or ()).under(self._below)

    @property
    def labels(self) -> Mapping[str, frozenset[str]]:
        """Labels of the hierarchies of sensitive columns, and the values below each."""
        return self._below

    def under(self, labels: Mapping[str, frozenset[str]]) -> None:
        """Take in what labels stand for, when the policy is read."""
        self._below = labels

    @property
    def harmless_values(self) -> Selection:
        """Values nobody needs protection from: no bound is promised for them."""
        return Selection()

    def protects(self, value: object) -> bool:
        """Whether what is promised covers this sensitive value."""
        return not self.harmless_values.selects(value)

    @property
    def allowed(self) -> int:
        """How many people of a cohort may be known for the promise to hold."""
        return 0

    @property
    def joint(self) -> bool:
        """Whether everybody is looked at together, and counterfeits go on as values do."""
        return False

    @property
    def repeats(self) -> bool:
        """Whether several places of a group may show one protected value, as often as the bound allows."""
        return False

    @property
    def keeps_places(self) -> bool:
        """Whether places that show one value several times go on with it, whoever is there."""
        return bool(self.harmless_values) or self.repeats

    @property
    def alone(self) -> bool:
        """Whether each person is looked at alone: what follows from several people together is not spoken of."""
        return False

    @property
    def ever_linked(self) -> Callable[[object], bool] | None:
        """Which values count, where the promise is about being linked to one in any release; None where it is not."""
        return None

    @property
    def releases(self) -> int | None:
        """In how many releases a person may be at most."""
        return None

    @property
    def prior_files(self) -> tuple[str, ...]:
        """What is known of people beforehand: files of odds."""
        return ()

    @property
    def population_file(self) -> str | None:
        """The table of everybody who could be in the release, where it is needed."""
        return None

    @property
    def of_original(self) -> bool:
        """Whether groups are compared with the table as it was put in, where rows are withheld as well."""
        return False

    @property
    def needs_order(self) -> bool:
        """Whether sensitive values must have an order."""
        return False

    @property
    def words(self) -> str:
        """The descriptor's one sentence for people, where it depends on these parameters; empty: it does not."""
        return ""

    @property
    def unbundled(self) -> str:
        """Which of these parameters has no meaning where people have several values at once; empty: none."""
        return ""

    @property
    def growing(self) -> bool:
        """Whether a class that keeps it does so whatever is added to the class."""
        return False

    def cuts_nothing(self, policy: Policy) -> bool:
        """Whether people are dealt by their values, so that the policy has no cuts to choose."""
        return False


def one_table(key: str, policy: Policy) -> list[str]:
    """What goes with one table of rows alone."""
    parted = f"two tables show people in boxes of their own; {key} needs publish = generalized"
    return [parted] if policy.method.two_tables else []


@dataclass(frozen=True)
class Descriptor:
    """One guarantee. `rank` is its place in lists, verdicts and reports."""

    name: str
    rank: int
    parameters: type[Parameters]
    family: Family
    words: str  # one sentence for people, with its parameters
    judge: str  # module:function in reveil.verify.judges
    needs: tuple[str, ...]  # keys without which it cannot be the headline
    methods: tuple[str, ...] = CUTTING  # that keep it as the headline; the first that suits is the default
    asked_by: tuple[str, ...] = ()  # keys that ask for it beside another headline; without any it is a headline only
    sensitive: Literal["none", "some", "one"] = "some"  # columns it needs
    several: bool = False  # that needs one, and keeps each of several as well, in two tables
    monotone: bool = False  # a union of classes that keep it keeps it
    relative: bool = False  # classes are compared with the whole table: as published, unless `of_original`
    apart: bool = False  # told from one class at a time and the totals of the table: parts of it can be planned alone
    bundles: str = ""  # what it says of {people} with several rows, with its parameters; empty: nothing
    hides_people: bool = False  # and not only which value of a group is whose
    counterfeits: bool = False  # its methods may publish rows of nobody
    condition: str | None = None  # module of its fast test in reveil.plan.cutting.conditions
    kept_by: tuple[str, ...] | None = CUTTING  # methods that keep it beside another headline; None: every one
    why_not: str = ""  # why another method does not
    method_words: str = ""  # what its methods are for, where another guarantee asks for one of them
    company: str = ""  # how it is called where others cannot be planned together with it
    one_step: bool = False  # transitions need not be transitive
    words_of_ours: tuple[str, ...] = ()  # keys whose texts are words of Reveil's own, and no values or files

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the policy that it owns."""
        return tuple(self.parameters.model_fields)

    @property
    def follows_people(self) -> bool:
        """Whether groups follow people from release to release, so that one release without memory is none of it.

        Where values change freely, a first release is one of a series by itself.
        """
        return self.family in (NEVER, TRANSITIONS)

    @property
    def together(self) -> str:
        """It, in the sentence that something cannot be planned together with it."""
        return self.company or f'model = "{self.name}"'
