"""One column of a policy: its role, how it may be generalised, and what is said of its sensitive values."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, SerializerFunctionWrapHandler, Tag, model_serializer, model_validator

from reveil.base.sections import MARK, TABLE, TEXT, Exact, PlainText, Section, one_of

Role = Literal["identifier", "household", "quasi", "sensitive", "insensitive", "drop"]
ColumnType = Literal["auto", "number", "category", "date"]
DateOrder = Literal["day-first", "month-first"]
DateLevel = Literal["day", "month", "quarter", "year", "decade"]
LIMITS = ("lowest", "highest")  # keys of quasi-identifiers
PUBLISHED = ("quasi", "sensitive", "insensitive")
ENDS = ("bottom", "top")  # keys of quasi-identifiers that are numbers
ABOUT_VALUES = ("harmless", "change", "bins")  # keys of sensitive columns
DATE_LEVELS: tuple[DateLevel, ...] = ("day", "month", "quarter", "year", "decade")


def _levels(value: object) -> str:
    """Cuts of one level, or of several: then every level is a list."""
    several = isinstance(value, (list, tuple)) and any(isinstance(level, (list, tuple)) for level in value)
    return MARK + ("levels" if several else "cuts")


class Column(Section):
    """One column: its role and, for quasi-identifiers and sensitive columns, how it may be generalised.

    At most one of `hierarchy` (a file, or a nested table), `widths`, `cuts`, `prefixes`, `levels` and `order` is given.
    """

    role: Role
    type: ColumnType = "auto"
    hierarchy: (
        Annotated[Annotated[str, TEXT] | Annotated[dict[str, Any], TABLE], one_of("the name of a file nor a table")]
        | None
    ) = None
    widths: tuple[Exact, ...] | None = None
    cuts: (
        Annotated[
            Annotated[tuple[Exact, ...], Tag(MARK + "cuts")]
            | Annotated[tuple[tuple[Exact, ...], ...], Tag(MARK + "levels")],
            Discriminator(_levels),
        ]
        | None
    ) = None
    prefixes: tuple[int, ...] | None = None
    levels: tuple[DateLevel, ...] | None = None
    order: tuple[str, ...] | None = None
    bottom: Exact | None = None  # numbers below it are shown as such alone, and so are those from `top` on
    top: Exact | None = None
    lowest: Annotated[int, Field(ge=0)] | None = None  # level of the hierarchy that may be published, in full-domain
    highest: Annotated[int, Field(ge=0)] | None = None
    missing: Literal["category", "refuse"] = "category"
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    harmless: Annotated[tuple[PlainText, ...], Field(min_length=1)] | None = None
    change: Literal["never", "freely", "transitions"] | None = None
    bins: Annotated[tuple[Exact, ...], Field(min_length=1)] | None = None  # cut points of a sensitive number

    @model_serializer(mode="wrap")
    def _written(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is not said of its values or levels: earlier series keep the form of their policy."""
        content: dict[str, Any] = written(self)
        later = (*ABOUT_VALUES, *LIMITS, *ENDS)
        return {key: value for key, value in content.items() if key not in later or value is not None}

    @property
    def published(self) -> bool:
        """Whether it has cells in the release."""
        return self.role in PUBLISHED

    @property
    def named(self) -> bool:
        """Whether its values are names, as the policy says: whatever they look like, they are no ranges or sets."""
        return self.prefixes is None and (self.type == "category" or self.order is not None)

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        generalisations = ("hierarchy", "widths", "cuts", "prefixes", "levels", "order")
        ways = [name for name in generalisations if getattr(self, name) is not None]
        if empty := [way for way in ways if not getattr(self, way)]:
            raise ValueError(f"has an empty {empty[0]}; name at least one, or leave it out")
        if len(ways) > 1:
            raise ValueError(f"gives {' and '.join(ways)}; a column is generalised in one way only")
        if ways and self.role not in ("quasi", "sensitive"):
            raise ValueError(f"has {ways[0]}, but only quasi and sensitive columns are generalised")
        if self.role == "sensitive" and ways and ways[0] not in ("hierarchy", "order"):
            raise ValueError(
                f"has {ways[0]}, but sensitive values are published as they are; only hierarchy and order help"
            )
        wanted = {"widths": "number", "cuts": "number", "levels": "date", "prefixes": "category", "order": "category"}
        for way in ways:
            if self.type not in ("auto", wanted.get(way, self.type)):
                raise ValueError(f'has {way}, which needs type = "{wanted[way]}", not "{self.type}"')
        if self.role != "sensitive" and (idle := [key for key in ABOUT_VALUES if getattr(self, key) is not None]):
            raise ValueError(f"has {idle[0]}, but only sensitive values are protected")
        if self.role != "quasi" and (idle := [key for key in LIMITS if getattr(self, key) is not None]):
            raise ValueError(f"has {idle[0]}, but only quasi columns are generalised")
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise ValueError(f"has lowest = {self.lowest} above highest = {self.highest}")
        if ends := [key for key in ENDS if getattr(self, key) is not None]:
            self._insist_on_ends(ends, ways)
        if self.bins is not None and (ways or self.type not in ("auto", "number")):
            raise ValueError("has bins, which are for numbers, and no hierarchy or order besides")
        if self.bins is not None and any(a >= b for a, b in pairwise(self.bins)):
            raise ValueError("has bins that do not rise; write cut points such as [1, 100, 1000]")
        if self.weight != 1.0 and self.role != "quasi":
            raise ValueError("has a weight, but only quasi columns are weighed against each other")
        return self

    def _insist_on_ends(self, ends: list[str], ways: list[str]) -> None:
        """Top and bottom coding is for numbers that are published as they are, or as intervals."""
        if self.role != "quasi" or self.type not in ("auto", "number"):
            raise ValueError(f"has {ends[0]}, but only quasi columns of numbers are coded at their ends")
        if ways:
            raise ValueError(f"has {ends[0]} beside {ways[0]}; name the ends among its cut points (cuts) instead")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError(f"has bottom = {self.bottom}, which is not below top = {self.top}")


def as_column(value: object) -> object:
    """A column that is given by its role alone."""
    return {"role": value} if isinstance(value, str) else value
