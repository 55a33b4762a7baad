"""The promise in words, and the verdict on it: publish, verify, audit and report say both with these sentences.

They follow from the facts that the judges compare: the bound, how many people may be known, which values count. What
lies outside the promise is listed under `OUTSIDE` and never changes the verdict.
"""

from __future__ import annotations

from reveil.base.words import some_people
from reveil.policy.policy import Policy

OUTSIDE = "Outside the promise"


def promise_text(policy: Policy) -> str:
    """What is promised, in one sentence that names no value.

    >>> from reveil.policy.policy import load_policy
    >>> columns = {"name": "identifier", "age": "quasi", "illness": "sensitive"}
    >>> guarantee = {"model": "m-invariance", "m": 4}
    >>> promise_text(load_policy({"columns": columns, "values": {"change": "never"}, "guarantee": guarantee}))
    "whoever has all releases guesses nobody's 'illness' with more than 1/4"
    """
    headline, descriptor = policy.guarantee.headline, policy.guarantee.descriptor
    bound = headline.promised
    numbers = {**policy.guarantee.stated, **{name: value for name, value in headline if value is not None}}
    if policy.bundled:
        return descriptor.bundles.format_map(_Named({**numbers, "people": policy.bundled, "bound": bound}))
    if bound is None:
        words = (headline.words or descriptor.words).format_map(_Named(numbers))
        return words[0].lower() + words[1:].rstrip(".")
    what = " or ".join(repr(name) for name in policy.named("sensitive"))
    part = ", where it is protected," if _some_only(policy) else ""
    if headline.ever_linked is not None:
        value = f"a protected value of {what}" if part else f"any value of {what}"
        return f"over all releases together nobody is linked to {value} with more than {bound}"
    has = "has all releases" if policy.guarantee.series else "has this release"
    if headline.allowed:
        return (
            f"whoever {has} and knows {some_people(headline.allowed)} guesses nobody else's {what}{part} with more "
            f"than {bound}"
        )
    alone = " and follows one person alone" if headline.alone else ""
    return f"whoever {has}{alone} guesses nobody's {what}{part} with more than {bound}"


class _Named(dict[str, object]):
    """A number that follows from others is called by its name."""

    def __missing__(self, name: str) -> str:
        return name


def _some_only(policy: Policy) -> bool:
    """Whether the promise leaves some values out."""
    headline = policy.guarantee.headline
    return (
        any(policy.harmless(name) for name in policy.named("sensitive"))
        or getattr(headline, "protect", None) is not None
    )


def verdict_text(promise: str, holds: bool | None) -> str:
    """The verdict, whoever gives it; None: nothing speaks against it, and too much is undecided.

    >>> verdict_text("nobody is linked to 'illness' with more than 1/2", True)
    "The promise holds. Promised: nobody is linked to 'illness' with more than 1/2."
    """
    said = {
        True: "The promise holds.",
        False: "The promise does not hold.",
        None: "It is undecided whether the promise holds: it cannot be shown from this alone.",
    }
    return f"{said[holds]} Promised: {promise}."
