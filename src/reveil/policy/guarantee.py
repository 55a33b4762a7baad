"""The promise: the [values] and [guarantee] sections of a policy, what each model needs, and what would be idle."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from reveil.base.text import plain_text


def exact(value: object) -> Fraction:
    """A threshold as the rational number that was written, not as the float nearest to it.

    >>> exact(0.1), exact("1/3"), exact(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction)):
        raise ValueError('write a number such as 0.2, or a fraction such as "1/3"')
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError('write a number such as 0.2, or a fraction such as "1/3"') from None


def _one_text(value: object) -> str:
    if isinstance(value, (list, tuple, Mapping)):
        raise ValueError("a list or a table stands where one value is meant")
    return plain_text(value)


Exact = Annotated[Fraction, BeforeValidator(exact), PlainSerializer(str)]
Share = Annotated[Exact, Field(ge=0, le=1)]
PlainText = Annotated[str, BeforeValidator(_one_text)]

# What a key holds that may hold several things, by how it is written: only that kind is then looked at, so that a fault
# is told once. Places in messages leave out what begins with the mark.
MARK = "\0"
TEXT, NUMBER, LIST, TABLE = (Tag(MARK + kind) for kind in ("text", "number", "list", "table"))


def _shape(value: object) -> str | None:
    kinds = ((str, TEXT), (int, NUMBER), ((list, tuple), LIST), (Mapping, TABLE))
    found = (tag.tag for kind, tag in kinds if isinstance(value, kind) and not isinstance(value, bool))
    return next(found, None)


def one_of(kinds: str) -> Discriminator:
    """Tell what is written apart by its shape; `kinds` says in plain words what it may be."""
    return Discriminator(_shape, custom_error_type="shape", custom_error_message=f"is neither {kinds}")


class ContradictionError(ValueError):
    """Everything that does not go together in one part of a policy; each becomes a fault of its own."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(faults))


class Section(BaseModel):
    """A part of the policy: unknown keys are faults, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """true is not the number 1: `k = true` would promise next to nothing."""
        name = info.field_name or ""
        if isinstance(value, bool) and cls.model_fields[name].annotation is not bool:
            raise ValueError(f"{plain_text(value)} is no value of {name}")
        return value


Successors = Annotated[
    Annotated[int, Field(ge=1), NUMBER] | Annotated[list[PlainText], LIST] | Annotated[dict[str, Exact], TABLE],
    one_of("a list of values, a table of values with chances, nor the number of a rule"),
]


class Values(Section):
    """How a person's sensitive value changes from release to release. None: nothing is assumed or checked.

    `transitions` is a file (from;to[;probability]), a table of lists (which value may become which others) or of
    chances, { level = n } (a value stays under its label n levels up in its hierarchy), or { diameter = d } (blocks of
    d neighbours in the column's order or hierarchy). `closure` says what to do where a -> b and b -> c are allowed and
    a -> c is not, where that matters: refuse, allow all chains, or assume one change from one appearance to the next.
    """

    change: Literal["never", "freely", "transitions"] | None = None
    transitions: (
        Annotated[
            Annotated[str, TEXT] | Annotated[dict[str, Successors], TABLE],
            one_of("the name of a file, a table of values, nor a rule such as { level = 1 }"),
        ]
        | None
    ) = None
    closure: Literal["refuse", "transitive", "one-step"] = "refuse"

    @property
    def rule(self) -> str | None:
        """The name of the rule that transitions follow, if they are given by one."""
        if not isinstance(self.transitions, dict):
            return None
        return next((name for name, value in self.transitions.items() if isinstance(value, int)), None)

    @model_validator(mode="after")
    def _consistent(self) -> Values:
        if (self.change == "transitions") != (self.transitions is not None):
            raise ValueError('change = "transitions" and transitions belong together')
        if self.closure != "refuse" and self.transitions is None:
            raise ValueError("closure does nothing without transitions")
        if self.rule is not None and (self.rule not in ("level", "diameter") or len(self.transitions or ()) > 1):
            raise ValueError("transitions are values with lists or chances, or a rule: { level = n }, { diameter = d }")
        return self


class Guarantee(Section):
    """The promise. `model` is the headline; every condition whose parameter is given must hold as well."""

    model: str = "k-anonymity"
    k: Annotated[int, Field(ge=1)] | None = None
    l: Annotated[Exact, Field(ge=1)] | None = None  # noqa: E741 - the name the field uses
    diversity: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[Exact, Field(gt=0)] | None = None
    t: Share | None = None
    distance: Literal["auto", "equal", "ordered", "hierarchical"] = "auto"
    alpha: Annotated[Share, Field(gt=0)] | None = None
    epsilon: Annotated[Exact, Field(ge=0)] | None = None
    proximity: Literal["absolute", "relative"] = "absolute"
    m: Annotated[int, Field(ge=1)] | None = None
    population: str | None = None
    delta_min: Share = Fraction(0)
    delta_max: Share | None = None
    r: Annotated[Exact, Field(gt=1)] | None = None
    priors: tuple[str, ...] = ()
    condition: Literal["exact", "delta"] = "exact"
    strategy: Literal["constant-ratio", "geometric", "telescoping", "greedy"] | None = None
    horizon: Annotated[int, Field(ge=1)] | None = None
    rate: Annotated[Exact, Field(gt=0, lt=1)] | None = None
    protect: Annotated[tuple[PlainText, ...], Field(min_length=1)] | None = None
    compromised: Annotated[int, Field(ge=0)] = 1
    tau: Annotated[Share, Field(gt=0)] | None = None
    refill: Annotated[
        Annotated[int, Field(ge=1), NUMBER] | Annotated[Literal["never"], TEXT], one_of('a whole number nor "never"')
    ] = "never"
    n: Annotated[int, Field(ge=1)] | None = None
    p: Share | None = None
    L: Annotated[int, Field(ge=1)] | None = None  # the paper's name
    h: Annotated[Share, Field(gt=0)] | None = None
    closure: Literal["transitive", "pairwise"] = "transitive"
    view: Literal["joint", "individual"] = "joint"

    @model_validator(mode="after")
    def _consistent(self) -> Guarantee:
        faults = [
            *_missing_parameters(self),
            *_idle_parameters(self),
            *_global_parameters(self),
            *_persistent_parameters(self),
            *_evolving_parameters(self),
        ]
        if faults:
            raise ContradictionError(faults)
        return self

    def protects(self, value: object) -> bool:
        """Whether the global guarantee covers this sensitive value."""
        return self.protect is None or plain_text(value) in self.protect


MODELS: dict[str, tuple[str, ...]] = {
    "k-anonymity": ("k",),
    "l-diversity": ("l",),
    "t-closeness": ("t",),
    "alpha-k": ("alpha", "k"),
    "epsilon-m": ("epsilon", "m"),
    "presence": ("population", "delta_max"),
    "r-robustness": ("r",),
    "global": ("l", "strategy"),
    "compromise-safety": ("m",),
    "m-invariance": ("m",),
    "historical-safety": ("m",),
    "m-distinct": ("m",),
    "m-distinct-star": ("m",),
}
SINGLE_RELEASE = ("k-anonymity", "l-diversity", "t-closeness", "alpha-k", "epsilon-m", "presence", "r-robustness")
PERSISTENT = ("compromise-safety", "m-invariance", "historical-safety")  # values.change = "never"
EVOLVING = ("m-distinct", "m-distinct-star")  # values.change = "transitions"


def _missing_parameters(g: Guarantee) -> list[str]:
    if g.model not in MODELS:
        near = difflib.get_close_matches(g.model, MODELS, n=1)
        hint = f'; did you mean "{near[0]}"' if near else ""
        return [f'model "{g.model}" is not one of {", ".join(MODELS)}{hint}']
    faults = [f'model "{g.model}" needs {name}' for name in MODELS[g.model] if getattr(g, name) is None]
    if g.diversity == "recursive" and g.c is None:
        faults.append('diversity = "recursive" needs c')
    if g.epsilon is not None and g.m is None:
        faults.append("epsilon needs m: at most one in m rows of a group may be that near to any value")
    if (g.population is None) != (g.delta_max is None):
        faults.append("population and delta_max belong together")
    if (g.r is None) != (not g.priors):
        faults.append('r and priors belong together: priors = ["by-sex.csv"] says what is known beforehand')
    if g.delta_max is not None and g.delta_min > g.delta_max:
        faults.append("delta_min is larger than delta_max")
    if g.diversity != "entropy" and g.model != "global" and g.l is not None and g.l.denominator != 1:
        faults.append(f'l = {g.l} must be a whole number unless diversity = "entropy"')
    return faults


def _idle_parameters(g: Guarantee) -> list[str]:
    """Parameters that would be accepted and ignored are faults: they would promise what nobody checks."""
    needs = {
        "diversity": ("l",),
        "c": ("l",),
        "distance": ("t",),
        "proximity": ("epsilon",),
        **({} if g.model in (*PERSISTENT, *EVOLVING) else {"m": ("epsilon",)}),
        "delta_min": ("population",),
        "condition": ("r",),
    }
    given = g.model_fields_set
    faults = [
        f"{name} does nothing without {' or '.join(others)}"
        for name, others in needs.items()
        if name in given and all(getattr(g, other) is None for other in others)
    ]
    if "c" in given and g.l is not None and g.diversity != "recursive":
        faults.append('c does nothing unless diversity = "recursive"')
    return faults


def _global_parameters(g: Guarantee) -> list[str]:
    """The budget of the global guarantee: its l bounds a chance over all releases and asks for no diversity."""
    given = g.model_fields_set
    if g.model != "global":
        names = ("strategy", "horizon", "rate", "protect")
        return [f'{name} does nothing unless model = "global"' for name in names if name in given]
    faults = [f'{name} does nothing with model = "global"' for name in ("diversity", "c") if name in given]
    if g.l is not None and g.l <= 1:
        faults.append(f"l = {g.l} promises nothing; the chance is bounded by 1/l, so l must be larger than 1")
    for name, strategy in (("horizon", "constant-ratio"), ("rate", "geometric")):
        if g.strategy == strategy and getattr(g, name) is None:
            faults.append(f'strategy = "{strategy}" needs {name}')
        if g.strategy != strategy and name in given:
            faults.append(f'{name} does nothing unless strategy = "{strategy}"')
    return faults


def _persistent_parameters(g: Guarantee) -> list[str]:
    """The parameters of the guarantees for values that never change."""
    owners = {
        **dict.fromkeys(("compromised", "tau", "refill"), ("compromise-safety", *EVOLVING)),
        **dict.fromkeys(("n", "p", "h", "closure"), ("historical-safety",)),
        "L": PERSISTENT,
    }
    faults = [
        f'{name} does nothing with model = "{g.model}"'
        for name, models in owners.items()
        if name in g.model_fields_set and g.model not in models
    ]
    if g.m is None or g.model not in PERSISTENT:
        return faults
    faults += _unplanned(g, g.m)
    return faults + (_cohort_parameters(g, g.m) if g.model == "compromise-safety" else _history_parameters(g, g.m))


def _unplanned(g: Guarantee, m: int) -> list[str]:
    """What no planner of groups with m different values can keep."""
    faults = ["m = 1 hides nothing: a group of one shows its value"] if m < 2 else []
    if g.epsilon is not None or g.t is not None or g.population is not None:
        faults.append(f'epsilon, t and population cannot be planned together with model = "{g.model}"')
    return faults


def _evolving_parameters(g: Guarantee) -> list[str]:
    """The parameters of the guarantees for values that change by rules."""
    if g.model not in EVOLVING:
        return [f'view does nothing with model = "{g.model}"'] if "view" in g.model_fields_set else []
    if g.m is None:
        return []
    faults = _unplanned(g, g.m)
    if g.view == "joint":
        return faults + _cohort_parameters(g, g.m)
    idle = [name for name in ("compromised", "tau", "refill") if name in g.model_fields_set]
    return faults + [f'{name} does nothing with view = "individual": it looks at one person alone' for name in idle]


def _cohort_parameters(g: Guarantee, m: int) -> list[str]:
    c, faults = g.compromised, []
    if m - c < 2:
        return [f"m = {m} with compromised = {c} promises nothing: {c} known of {m} leave one value for the last"]
    if isinstance(g.refill, int) and c > 2:
        faults.append(
            'compromised > 2 needs refill = "never": with refills the chance is computed for up to 2 known people'
        )
    elif isinstance(g.refill, int) and c > 0 and g.refill < c + 1:
        faults.append(f'refill = {g.refill} is too few for compromised = {c}: use {c + 1} or more, or "never"')
    elif g.tau is not None and g.tau < lowest_tau(g):
        faults.append(f"tau = {g.tau} cannot be kept: m, compromised and refill allow {lowest_tau(g)} at best")
    return faults


def lowest_tau(g: Guarantee) -> Fraction:
    """The lowest bound on a guess that m, compromised and refill can keep; tau unless that is given.

    In a cohort of m, c known people leave m - c values for the others. When r places are refilled at once, a known
    leaver and c - 1 known newcomers leave r - c + 1 places for the leaver's value.
    """
    assert g.m is not None
    return Fraction(1, max(1, _choices(g, g.m)))


def _choices(g: Guarantee, size: int) -> int:
    refilled = g.refill if isinstance(g.refill, int) and g.compromised else None
    return size - g.compromised if refilled is None else min(size - g.compromised, refilled - g.compromised + 1)


def repeats(g: Guarantee, size: int) -> int:
    """How many of the `size` places of a cohort may show the same value, where values change.

    Diversity of single releases (l, alpha) is kept by cohorts in which all values differ.

    >>> promise = Guarantee(model="m-distinct", m=6)  # tau is 1/5: one person may be known
    >>> repeats(promise, 6), repeats(promise, 11)
    (1, 2)
    """
    most = int((lowest_tau(g) if g.tau is None else g.tau) * _choices(g, size))
    return most if g.l is None and g.alpha is None else min(1, most)


def _history_parameters(g: Guarantee, m: int) -> list[str]:
    if g.model != "historical-safety":
        return []
    chosen = [name for name in ("p", "L", "h") if getattr(g, name) is not None]
    if g.n is None and len(chosen) < 3:
        return ['model "historical-safety" needs n, or p, L and h to choose it from']
    if g.n is not None and (g.p is not None or g.h is not None):
        return ["n is given, so p and h do nothing"]
    if g.n is not None and g.n > m:
        return [f"n = {g.n} is larger than m = {m}; no correlation of a group is that large"]
    return []
