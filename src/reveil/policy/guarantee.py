"""The promise: the [values] and [guarantee] sections of a policy.

The file says the promise in one flat table: the headline (`model`) and the keys of every further condition. Here it
becomes the headline and its conditions, each with its own parameters (`reveil.guarantees`). A key that no guarantee
asked for owns would be accepted and ignored; it is a fault, because it would promise what nobody checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self, TypeVar, get_type_hints

from pydantic import (
    ConfigDict,
    Field,
    SerializationInfo,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)

from reveil.base.sections import LIST, NUMBER, TABLE, TEXT, ContradictionError, Exact, PlainText, Section, one_of
from reveil.guarantees.catalog import descriptor_of, descriptors
from reveil.guarantees.descriptor import Descriptor, Parameters

Kind = TypeVar("Kind", bound=Parameters)
USUAL = "k-anonymity"
# The keys that every recorded promise has had from the first version on, and what they are where they were not given.
# Homes and certificates keep this form; keys of later guarantees are written only where a guarantee asked for has them.
RECORDED: dict[str, Any] = {
    **dict.fromkeys(("k", "l", "c", "t", "alpha", "epsilon", "m", "population", "delta_max", "r", "strategy")),
    **dict.fromkeys(("horizon", "rate", "protect", "tau", "n", "p", "L", "h")),
    "diversity": "distinct",
    "distance": "auto",
    "proximity": "absolute",
    "delta_min": "0",
    "priors": [],
    "condition": "exact",
    "compromised": 1,
    "refill": "never",
    "closure": "transitive",
    "view": "joint",
}

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


@cache
def form() -> type[Section]:
    """Every key of [guarantee], typed as the guarantees that own it have it; none is required."""
    keys: dict[str, Any] = {}
    for one in descriptors().values():
        hints = get_type_hints(one.parameters, include_extras=True)
        keys |= {key: (hints[key] | None, None) for key in one.keys if key not in keys}
    return create_model("Form", __base__=Section, model=(str, USUAL), **keys)


class Guarantee(Section):
    """The promise: the headline, and every condition that must hold, the headline among them.

    >>> promise = Guarantee.of("l-diversity", l=3, k=5)
    >>> [type(condition).__name__ for condition in promise.conditions], promise.headline.l
    (['KAnonymity', 'LDiversity'], Fraction(3, 1))
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: str
    conditions: tuple[Parameters, ...]
    stated: Mapping[str, Any] = Field(repr=False)  # the keys that were given, as they were understood

    @classmethod
    def of(cls, model: str, **keys: Any) -> Self:
        """A promise as the policy file would say it."""
        return cls.model_validate({"model": model, **keys})

    @model_validator(mode="before")
    @classmethod
    def _read(cls, content: Any) -> Any:
        written = form().model_validate(content)
        said = {key: getattr(written, key) for key in form().model_fields if key in written.model_fields_set}
        stated = {key: value for key, value in said.items() if value is not None}
        model = stated.get("model", _meant(stated))
        return {"model": model, "conditions": _conditions(model, stated), "stated": stated}

    @model_serializer
    def _flat(self, info: SerializationInfo) -> dict[str, Any]:
        dumped = [item for one in self.conditions for item in one.model_dump(mode="json").items()]
        own = {key: value for key, value in dumped if key in RECORDED or key in self.stated}
        everything = {"model": self.model, **RECORDED, **own}
        kept = self.stated if info.exclude_unset else everything
        return {key: everything[key] for key in kept if not (info.exclude_none and everything[key] is None)}

    @property
    def headline(self) -> Parameters:
        """The parameters of the model."""
        return next(one for one in self.conditions if descriptor_of(one).name == self.model)

    @property
    def descriptor(self) -> Descriptor:
        """The facts about the model."""
        return descriptors()[self.model]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that keep the headline; the first is taken unless the policy names one."""
        return tuple(name for name in self.descriptor.methods if self.headline.suits(name))

    @property
    def described(self) -> Iterator[tuple[Descriptor, Parameters]]:
        """Every condition with the facts about it."""
        return ((descriptor_of(one), one) for one in self.conditions)

    @property
    def series(self) -> bool:
        """Whether the promise is about all releases together."""
        return self.descriptor.family.series

    @property
    def monotone(self) -> bool:
        """Whether a union of groups that keep every condition keeps them."""
        return all(one.monotone for one, _ in self.described)

    @property
    def relative(self) -> bool:
        """Whether a condition compares groups with the whole published table."""
        return any(one.relative and not asked.of_original for one, asked in self.described)

    @property
    def priors(self) -> tuple[str, ...]:
        """Files of the odds that are known beforehand."""
        return tuple(file for one in self.conditions for file in one.prior_files)

    @property
    def population(self) -> str | None:
        """The file of everybody who could be in a release."""
        return next((one.population_file for one in self.conditions if one.population_file is not None), None)

    def find(self, kind: type[Kind]) -> Kind | None:
        """The condition of this kind, if it was asked for."""
        return next((one for one in self.conditions if isinstance(one, kind)), None)

    def require(self, kind: type[Kind]) -> Kind:
        """The condition of this kind, where the method is for nothing else."""
        one = self.find(kind)
        assert one is not None, f"{kind.__name__} was not asked for"
        return one


def _meant(stated: Mapping[str, Any]) -> str:
    """The model of a promise that names none: k-anonymity, or, without k, the first of which all that it needs is said.

    >>> _meant({"k": 5, "l": 2}), _meant({"l": 2}), _meant({"m": 3})
    ('k-anonymity', 'l-diversity', 'k-anonymity')
    """
    able = [one for one in descriptors().values() if one.asked_by and {*one.needs} <= {*stated}]
    return USUAL if "k" in stated or not able else able[0].name


def _conditions(model: str, stated: Mapping[str, Any]) -> tuple[Parameters, ...]:
    """The conditions that the keys ask for, or everything that does not go together."""
    known, faults = descriptors(), list[str]()
    given = {key: value for key, value in stated.items() if value != () and key != "model"}
    headline, conditions = known.get(model), list[Parameters]()
    if headline is None:
        near = difflib.get_close_matches(model, known, n=1)
        hint = f'; did you mean "{near[0]}"' if near else ""
        faults.append(f'model "{model}" is not one of {", ".join(known)}{hint}')
    asked = [one for one in known.values() if one is headline or _asked_beside(one, headline, given)]
    for one in asked:
        try:
            conditions += _filled(one, given)
        except ValidationError as error:
            faults += [text for item in error.errors() for text in item["ctx"]["error"].faults]
    if headline is not None:
        lacking = [
            key for key in headline.needs if key not in given and not any(f"needs {key}" in text for text in faults)
        ]
        faults = [f'model "{model}" needs {key}' for key in lacking] + faults
        owned = {key for one in asked for key in one.keys}
        faults += [_idle(key, model, given) for key in given if key not in owned]
        faults += _apart(headline, conditions)
    if faults:
        raise ContradictionError(faults)
    return tuple(conditions)


def _asked_beside(one: Descriptor, headline: Descriptor | None, given: Mapping[str, Any]) -> bool:
    """Whether keys ask for a further condition; what the headline itself owns asks for nothing else."""
    taken = () if headline is None else headline.keys
    return any(key in given and key not in taken for key in one.asked_by)


def _filled(one: Descriptor, given: Mapping[str, Any]) -> list[Parameters]:
    """The parameters of a guarantee; none where a key is missing without which there is nothing to look at."""
    mine = {key: given[key] for key in one.keys if key in given}
    complete = all(key in mine for key, field in one.parameters.model_fields.items() if field.is_required())
    return [one.parameters.model_validate(mine)] if complete else []


def _idle(key: str, model: str, given: Mapping[str, Any]) -> str:
    """Why a key does nothing: what it needs beside it, or the headline that it is for."""
    owners = [one for one in descriptors().values() if key in one.keys]
    beside = next((one.asked_by[0] for one in owners if one.asked_by), None)
    if beside is not None and beside not in given:
        return f"{key} does nothing without {beside}"
    if beside is None and len(owners) == 1:
        return f'{key} does nothing unless model = "{owners[0].name}"'
    return f'{key} does nothing with model = "{model}"'


def _apart(headline: Descriptor, conditions: list[Parameters]) -> list[str]:
    """Further conditions that no method of the headline keeps."""
    others = [one for one in map(descriptor_of, conditions) if one is not headline]
    apart = [one.asked_by[0] for one in others if one.kept_by is not None and not {*one.kept_by} & {*headline.methods}]
    names = " and ".join([", ".join(apart[:-1]), apart[-1]] if len(apart) > 1 else apart)
    return [f"{names} cannot be planned together with {headline.together}"] if apart else []
