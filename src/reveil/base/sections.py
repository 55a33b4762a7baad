"""What the parts of a policy are made of: sections whose unknown keys are faults, exact numbers, plain texts.

Everything that is read from a policy is a `Section`. A `ContradictionError` tells what does not go together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

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
)

from reveil.base.text import MOST_DIGITS, far, plain_text


def exact(value: object) -> Fraction:
    """A threshold as the rational number that was written, not as the float nearest to it.

    >>> exact(0.1), exact("1/3"), exact(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction)):
        raise ValueError('write a number such as 0.2, or a fraction such as "1/3"')
    try:
        if len(str(value)) > MOST_DIGITS or far(str(value)):
            raise ValueError("beyond all numbers that are meant")
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError('write a number such as 0.2, or a fraction such as "1/3"') from None


def in_bytes(value: object) -> int:
    """A size such as "4GB", as bytes.

    >>> in_bytes("4GB"), in_bytes("500 MB"), in_bytes(1000)
    (4000000000, 500000000, 1000)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(KB|MB|GB|TB|B)?", str(value).strip().upper())
    if found is None or isinstance(value, bool):
        raise ValueError('write a size such as "4GB" or "500MB"')
    unit = 1000 ** ("B", "KB", "MB", "GB", "TB").index(found[2] or "B")
    return int(Fraction(found[1]) * unit)


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
    tags = (tag.tag for kind, tag in kinds if isinstance(value, kind) and not isinstance(value, bool))
    return next(tags, None)


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
