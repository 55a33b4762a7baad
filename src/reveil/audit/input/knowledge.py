"""What the adversary knows besides the releases: how values change, what is likely beforehand, some people's values."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from reveil.background.prior import load as load_priors
from reveil.background.transitions import Weights, stated_weights, weights_of
from reveil.base.errors import Fault, InputError
from reveil.base.sections import exact
from reveil.base.text import plain_text
from reveil.base.words import some_people
from reveil.policy.policy import Policy

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
    counterfeits_go_on: bool = False  # in closed cohorts, as places: they keep their value, or change as values do
    publisher: Literal["any", "median"] | None = None  # known to cut groups as far as the promise allows

    def __post_init__(self) -> None:
        faults = []
        if self.counterfeits_go_on and (self.change == "freely" or not self.counterfeits_known):
            message = "counterfeits_go_on needs values that stay or change by transitions, and counterfeits_known"
            faults.append(Fault("R720", "adversary", message, "leave it out, or give transitions"))
        if (self.change == "transitions") != (self.transitions is not None):
            message = 'change = "transitions" and transitions belong together'
            faults.append(Fault("R720", "adversary", message, "give both or none"))
        if self.publisher not in (None, "any", "median"):
            message = f"publisher = {self.publisher!r} is not any or median"
            faults.append(Fault("R720", "adversary", message, "say where it cuts numbers, or leave it out"))
        if faults:
            raise InputError(faults)

    def describe(self, knows_groups: str = "Who is in which group is known") -> str:
        """The adversary in one sentence. `knows_groups`: what is known of who is where, in words."""
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
            goes = "go on changing as values do" if self.change == "transitions" else "keep their values"
            fakes = f"; it is known that counterfeits of closed cohorts {goes}"
        return f"{knows_groups}; {change}; {likely}; {known}{fakes}."


Given = str | Path | Mapping[str, Any] | Adversary | None


def read_adversary(path: Path) -> dict[str, Any]:
    """A small TOML file: change, transitions, compromised, share, counterfeits_known, counterfeits_go_on,
    priors, publisher.

    Priors are person -> value -> weight.
    `compromised` is a list of names, or of tables with person and, if wanted, value and release.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(Fault("R720", f"adversary {path}", f"cannot be read: {error}", "write it as TOML")) from error


def person_priors(
    policy: Policy, column: str, persons: Sequence[str], signatures: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, Fraction]]:
    """What the policy's first prior on this column says of each person. `signatures`: by prior file, of each person."""
    for prior in load_priors(policy):
        if prior.column == column and prior.name in signatures:
            rows = [dict(zip(prior.values, row, strict=True)) for row in prior.table]
            return {p: rows[n] for p, n in zip(persons, signatures[prior.name], strict=True)}
    return {}


def adversary_of(given: Given, policy: Policy | None, stated: Mapping[str, Any]) -> Adversary:
    """The adversary of a file, table or object, and what is stated besides: that goes first, and known people add up.

    What neither says comes from the policy; an `Adversary` says everything.
    """
    if isinstance(given, Adversary):
        parts = _parts(stated, Path())
        parts["compromised"] = (*given.compromised, *parts.get("compromised", ()))
        if parts.get("transitions") is not None:
            parts.setdefault("change", "transitions")
        return replace(given, **parts)
    content, folder = dict(given) if isinstance(given, Mapping) else {}, Path()
    if isinstance(given, str | Path):
        content, folder = read_adversary(Path(given)), Path(given).parent
    more = dict(stated)
    if isinstance(more.get("transitions"), str | Path):
        more["transitions"] = Path(more["transitions"]).absolute()  # only those of a file are beside it
    more["compromised"] = [*content.get("compromised", ()), *more.get("compromised", ())]
    return adversary_from(content | more, policy, folder)


def adversary_from(content: Mapping[str, Any], policy: Policy | None, folder: Path = Path()) -> Adversary:
    """An adversary as stated; what is not stated comes from the policy, or is the strongest that needs no file."""
    parts = _parts(content, folder)
    values = None if policy is None else policy.values
    if "change" not in parts:
        default = "never" if values is None or values.change is None else values.change
        parts["change"] = "transitions" if "transitions" in parts else default
    changing = parts["change"] == "transitions"
    if changing and "transitions" not in parts and policy is not None and policy.values.transitions is not None:
        parts["transitions"] = weights_of(policy)
    if "counterfeits_go_on" not in parts:
        parts["counterfeits_go_on"] = parts.get("counterfeits_known", True) and _go_on(policy, parts["change"])
    return Adversary(**parts)


def _go_on(policy: Policy | None, change: Change) -> bool:
    """Whether the publisher is known to keep places: for values that repeat in a cohort, and for joint views."""
    if policy is None:
        return False
    headline = policy.guarantee.headline
    lasting = policy.guarantee.descriptor.follows_people and headline.keeps_places
    return {"transitions": headline.joint, "never": lasting}.get(change, False)


def _parts(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What is stated, as fields of an adversary; all that cannot be used at once."""
    readers: dict[str, Callable[[Any], Any]] = {
        "change": _change,
        "transitions": lambda source: stated_weights(source, folder),
        "priors": lambda rows: {str(person): _weights(str(person), row) for person, row in rows.items()},
        "compromised": lambda listed: tuple(known_from(item) for item in listed),
        "share": _share,
        "counterfeits_known": _flag,
        "counterfeits_go_on": _flag,
        "publisher": str,
    }
    parts: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, value in content.items():
        if name not in readers:
            faults.append(Fault("R720", "adversary", f"{name} is not a key", f"use {', '.join(readers)}"))
        elif value is not None:
            try:
                parts[name] = readers[name](value)
            except InputError as error:
                faults += error.faults
            except ValueError as error:
                faults.append(Fault("R720", f"adversary: {name}", str(error), "correct it, or leave it out"))
    if faults:
        raise InputError(faults)
    return parts


def _change(value: object) -> Change:
    if value not in ("never", "freely", "transitions"):
        raise ValueError(f"{value!r} is not never, freely or transitions")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is not true or false")
    return value


def _weights(person: str, row: Mapping[str, Any]) -> dict[str, Fraction]:
    weights = {plain_text(value): exact(weight) for value, weight in row.items()}
    if any(weight < 0 for weight in weights.values()) or not any(weights.values()):
        raise ValueError(f"the weights of {person!r} must not be negative, nor all 0")
    return weights


def _share(value: object) -> Fraction:
    share = exact(value)
    if not 0 <= share < 1:
        raise ValueError(f"{share} is not in [0, 1): write a share such as 0.04")
    return share


def known_from(item: Any) -> Known:
    """`name`, `name=value`, `name@release=value`, or a table of the same."""
    if isinstance(item, Known):
        return item
    if isinstance(item, Mapping):
        keys = ("person", "value", "release")
        if item.get("person") is None or not set(item) <= set(keys):
            raise ValueError(f"{dict(item)} must have a person, and may have a value and a release")
        person, value, release = (None if item.get(key) is None else plain_text(item[key]) for key in keys)
        return Known(str(person), value, release)
    name, _, value = str(item).partition("=")
    person, _, release = name.partition("@")
    return Known(person, value or None, release or None)
