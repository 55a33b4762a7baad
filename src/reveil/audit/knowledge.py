"""What the adversary knows besides the releases: how values change, what is likely beforehand, some people's values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from reveil.errors import Fault, InputError
from reveil.policy import Policy
from reveil.prior import load as load_priors
from reveil.promise import exact, plain_text
from reveil.transitions import Weights, stated_weights, weights_of
from reveil.words import some_people

Change = Literal["never", "freely", "transitions"]


@dataclass(frozen=True)
class Known:
    """One thing that is known: a person's value, in one release or (None) in all of them.

    Without a value, the adversary knows whatever the person has; that needs the truth.
    """

    person: str
    value: str | None = None
    release: str | None = None


@dataclass(frozen=True)
class Adversary:
    """Background knowledge. `share` of the people are compromised at random besides those listed.

    `priors` gives people's (by name) weights of values; who is not named finds all values equally likely. A prior is
    for the first value; where values change freely, for each.
    """

    change: Change = "never"
    transitions: Weights | None = None
    priors: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)
    compromised: tuple[Known, ...] = ()
    share: Fraction = Fraction(0)
    counterfeits_known: bool = True
    counterfeits_go_on: bool = False  # in closed cohorts, as places that change with the public chances
    publisher: Literal["any", "median"] | None = None  # known to cut groups as far as the promise allows

    def __post_init__(self) -> None:
        if self.counterfeits_go_on and (self.change != "transitions" or not self.counterfeits_known):
            message = "counterfeits_go_on needs transitions, by which they do, and counterfeits_known"
            raise InputError(Fault("R720", "adversary", message, "leave it out, or give transitions"))
        if (self.change == "transitions") != (self.transitions is not None):
            message = 'change = "transitions" and transitions belong together'
            raise InputError(Fault("R720", "adversary", message, "give both or none"))
        if self.publisher not in (None, "any", "median"):
            message = f"publisher = {self.publisher!r} is not any or median"
            raise InputError(Fault("R720", "adversary", message, "say where it cuts numbers, or leave it out"))

    def describe(self) -> str:
        """The adversary in one sentence."""
        change = {
            "never": "values never change",
            "freely": "values change freely, each release being independent",
            "transitions": "values change only as the transition relation allows",
        }[self.change]
        people = len({item.person for item in self.compromised})
        known = {0: "nobody's value is known", 1: "one person's value is known"}.get(
            people, f"the values of {some_people(people)} are known"
        )
        if self.share:
            known = f"{float(self.share):.1%} of the people, drawn at random, are known; besides, {known}"
        likely = (
            "some values are likelier for some people" if self.priors else "all worlds are equally likely beforehand"
        )
        fakes = "" if self.counterfeits_known else "; counterfeit counts are not known"
        if self.counterfeits_go_on:
            fakes = "; it is known that counterfeits of closed cohorts go on changing as values do"
        return f"Who is in which group is known; {change}; {likely}; {known}{fakes}."


def read_adversary(path: Path) -> dict[str, Any]:
    """A small TOML file: change, transitions, compromised, share, counterfeits_known, counterfeits_go_on,
    priors, publisher.

    Priors are person -> value -> weight.
    `compromised` is a list of names, or of tables with person and, if wanted, value and release.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(Fault("R720", f"adversary {path}", f"cannot be read: {error}", "write it as TOML")) from error
    known = [f.name for f in fields(Adversary)]
    faults = [
        Fault("R720", f"adversary {path}", f"{name} is not a key", f"use {', '.join(known)}")
        for name in content
        if name not in known
    ]
    if faults:
        raise InputError(faults)
    return content


def person_priors(
    policy: Policy, column: str, persons: Sequence[str], signatures: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, Fraction]]:
    """What the policy's first prior on this column says of each person. `signatures`: by prior file, of each person."""
    for prior in load_priors(policy):
        if prior.column == column and prior.name in signatures:
            rows = [dict(zip(prior.values, row, strict=True)) for row in prior.table]
            return {p: rows[n] for p, n in zip(persons, signatures[prior.name], strict=True)}
    return {}


def adversary_from(content: Mapping[str, Any], policy: Policy | None, folder: Path = Path()) -> Adversary:
    """An adversary as stated; what is not stated comes from the policy, or is the strongest that needs no file."""
    change, stated = content.get("change"), content.get("transitions")
    weights = None if stated is None else stated_weights(stated, folder)
    if change is None and policy is not None and policy.values.change is not None:
        change = policy.values.change
        if stated is None and policy.values.transitions is not None:
            weights = weights_of(policy)
    if change is None:
        change = "never" if weights is None else "transitions"
    if change not in ("never", "freely", "transitions"):
        message = f"change = {change!r} is not never, freely or transitions"
        raise InputError(Fault("R720", "adversary", message, "choose one of them"))
    chosen: Change = change  # type: ignore[assignment]
    priors = {str(p): _weights(row) for p, row in content.get("priors", {}).items()}
    share = _share(content.get("share", 0))
    listed = tuple(known_from(item) for item in content.get("compromised", ()))
    fakes_known = bool(content.get("counterfeits_known", True))
    go_on = content.get("counterfeits_go_on")
    if go_on is None:
        go_on = policy is not None and jointly(policy) and chosen == "transitions" and fakes_known
    return Adversary(chosen, weights, priors, listed, share, fakes_known, bool(go_on), content.get("publisher"))


def jointly(policy: Policy) -> bool:
    """Whether the policy's method lets counterfeits go on as values do."""
    return policy.guarantee.model in ("m-distinct", "m-distinct-star") and policy.guarantee.view != "individual"


def _weights(row: Mapping[str, Any]) -> dict[str, Fraction]:
    return {plain_text(value): exact(weight) for value, weight in row.items()}


def _share(value: object) -> Fraction:
    try:
        share = exact(value)
    except ValueError as error:
        raise InputError(Fault("R720", "compromised share", str(error), "write a share such as 0.04")) from error
    if not 0 <= share < 1:
        raise InputError(Fault("R720", "compromised share", f"{share} is not in [0, 1)", "write a share such as 0.04"))
    return share


def known_from(item: Any) -> Known:
    """`name`, `name=value`, `name@release=value`, or a table of the same."""
    if isinstance(item, Known):
        return item
    if isinstance(item, Mapping):
        return Known(*(None if item.get(n) is None else plain_text(item[n]) for n in ("person", "value", "release")))  # type: ignore[arg-type]
    name, _, value = str(item).partition("=")
    person, _, release = name.partition("@")
    return Known(person, value or None, release or None)
