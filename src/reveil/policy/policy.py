"""The policy file: what each column is, what is promised, and how to keep the promise.

`reveil.toml`, a dict of the same shape, or a `Policy` object all become one validated `Policy`. Every fault of a
policy is reported at once, with the nearest spelling where a name is unknown.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from reveil.base.errors import Fault, InputError
from reveil.base.sections import MARK, ContradictionError, Section, Share, in_bytes
from reveil.guarantees.catalog import descriptors
from reveil.guarantees.selection import Selection
from reveil.policy.agreement import disagreements
from reveil.policy.column import ABOUT_VALUES, Column, DateOrder, Role, as_column
from reveil.policy.guarantee import RECORDED, USUAL, Guarantee, Values, form
from reveil.policy.labels import take_in_labels, used_labels
from reveil.policy.method import MethodSection
from reveil.policy.people import PeopleSection
from reveil.policy.several import by_default, settled
from reveil.published.format import HOUSEHOLD, PERSON


class SeriesSection(Section):
    name: Annotated[str, Field(min_length=1)] = "series"


class Output(Section):
    format: Literal["csv", "parquet"] = "csv"


class SeriesOutput(Output):
    """A series may keep the id of its newest release in a second place."""

    anchor: str | None = None  # a file, beside the policy unless it says otherwise


class Input(Section):
    """How to read the table; None is found out from the file."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: Literal[".", ","] | None = None
    nulls: tuple[str, ...] = ("",)
    query: str | None = None
    sheet: str | None = None
    dates: DateOrder | None = None  # in 03/04/2024; None: numbers beyond 12 in the column must tell
    multiline: bool = False  # cells may go over several lines that look like rows
    header: bool = True  # of a text file; without one, columns are column_1, column_2 ...
    strip: bool = False  # blanks around texts are no part of them
    row_index: bool = False  # a first column without a name numbers the rows, and is left out
    skip_lines: Annotated[int, Field(ge=0, le=1000)] = 0  # of a text file or a sheet: titles above the header
    max_megabytes: Annotated[int, Field(ge=1)] = 4_000  # of a file, unpacked
    max_columns: Annotated[int, Field(ge=1)] = 10_000
    max_cell: Annotated[int, Field(ge=1)] = 10_000_000  # characters


class SeriesInput(Input):
    """How people are known again: by identifiers as written, or in their plainest spelling."""

    identifiers: Literal["as-written", "normalise"] = "as-written"


class AuditSection(Section):
    """The audit as a last gate of publishing: nobody may be exposed, even if `compromised` people are known."""

    gate: bool = False
    compromised: Annotated[Share, Field(lt=1)] = Fraction(0)
    seconds: Annotated[float, Field(gt=0)] = 60.0


class EngineSection(Section):
    """What the machine allows; no part of the promise."""

    memory: Annotated[int, BeforeValidator(in_bytes), Field(ge=1)] | None = None  # "4GB"; None: what is free


class Publication(Section):
    """What every kind of policy says: the columns, how tables are read and written, and where files are (`folder`)."""

    series: SeriesSection = SeriesSection()
    columns: dict[str, Annotated[Column, BeforeValidator(as_column)]]
    output: Output = Output()
    input: Input = Input()
    folder: Path = Field(default=Path(), exclude=True)

    def named(self, role: Role) -> tuple[str, ...]:
        """Names of the columns with this role, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def identifier(self) -> str | None:
        return next(iter(self.named("identifier")), None)

    @property
    def followed(self) -> str | None:
        """The column by which somebody is known again in a later release: who lives together, or the identifier."""
        return next(iter((*self.named("household"), *self.named("identifier"))), None)

    @property
    def numbers_groups(self) -> bool:
        """Whether releases outside a series carry a column `group` too."""
        return False

    @property
    def promises_series(self) -> bool:
        """Whether the promise is about all releases together."""
        return False

    @model_validator(mode="after")
    def _about_promises(self) -> Publication:
        keys = [] if isinstance(self, Policy) else ABOUT_VALUES
        if not isinstance(self, Policy) and (names := self.named("household")):
            raise ContradictionError(
                [f'columns.{name}.role = "household" does nothing without [guarantee]' for name in names]
            )
        idle = [(name, key) for name, column in self.columns.items() for key in keys if getattr(column, key)]
        if idle:
            raise ContradictionError([f"columns.{name}.{key} does nothing without [guarantee]" for name, key in idle])
        return self

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain JSON values, defaults included."""
        return self.model_dump(mode="json")


class SeriesPublication(Publication):
    """What policies of series say besides."""

    output: SeriesOutput = SeriesOutput()

    @property
    def anchor(self) -> Path | None:
        """Where the id of the newest release is kept a second time."""
        return None if self.output.anchor is None else self.folder / self.output.anchor


class Policy(SeriesPublication):
    """A policy that promises a guarantee."""

    values: Values = Values()
    guarantee: Guarantee
    method: MethodSection = MethodSection()
    people: PeopleSection = PeopleSection()
    audit: AuditSection = AuditSection()
    input: SeriesInput = SeriesInput()
    engine: EngineSection = Field(default=EngineSection(), exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _settled(cls, content: Any) -> Any:
        return by_default(settled(content)) if isinstance(content, Mapping) else content

    @model_validator(mode="after")
    def _consistent(self) -> Policy:
        faults = disagreements(self)
        if faults:
            raise ContradictionError(faults)
        return self

    def harmless(self, column: str) -> Selection:
        """The values of a sensitive column that nobody needs protection from."""
        everywhere, own = self.guarantee.headline.harmless_values, self.columns[column].harmless or ()
        return Selection((*everywhere, *own)).under(self.guarantee.headline.labels)

    def protects(self, column: str) -> Callable[[object], bool]:
        """Which values of a sensitive column the promise covers."""
        promised, own = self.guarantee.headline.protects, self.harmless(column)
        return lambda value: promised(value) and not own.selects(value)

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain JSON values, defaults included, without [people] where it says nothing."""
        return {k: v for k, v in super().to_dict().items() if k != "people" or self.people.model_fields_set}

    @property
    def bundled(self) -> str:
        """Who is published with several rows as one: "households", "people", or nobody."""
        if self.named("household"):
            return "households"
        return "people" if self.people.rows == "many" else ""

    @property
    def bundle(self) -> str | None:
        """The column of the release that says which rows belong together, where they do."""
        return {"households": HOUSEHOLD, "people": PERSON}.get(self.bundled)

    @property
    def owner(self) -> str | None:
        """The column of the input that says which rows belong together, where they do."""
        return {"households": next(iter(self.named("household")), None), "people": self.identifier}.get(self.bundled)

    @property
    def numbers_groups(self) -> bool:
        return bool(self.guarantee.priors)

    @property
    def promises_series(self) -> bool:
        return self.guarantee.series

    def fixed(self) -> dict[str, Any]:
        """The part that a series fixes with its first release: all that bears on the promise."""
        everything = self.to_dict()
        fixed = {name: everything[name] for name in ("series", "columns", "values", "guarantee", "method")}
        fixed["method"].pop("infeasible")  # whether to refuse or to leave people out may be decided each time
        fixed |= {name: everything[name] for name in ("people",) if name in everything}
        if self.normalises:  # only then, so that earlier series keep the form of their policy
            fixed["input"] = {"identifiers": self.input.identifiers}
        if labels := used_labels(self):  # what they stand for is part of the promise, and lies in a file
            fixed["labels"] = {name: sorted(values) for name, values in labels.items()}
        return fixed

    @property
    def normalises(self) -> bool:
        """Whether people are known again by the plainest spelling of their identifiers."""
        return self.input.identifiers == "normalise"


PolicyLike = str | Path | Mapping[str, Any] | Policy
Kind = TypeVar("Kind", bound=Publication)
# The section that makes a policy of each kind, and the command that publishes under it.
BOUNDS = {  # what Pydantic calls a number out of range, and where it says the range
    "greater_than_equal": ("not below", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("not above", "le"),
    "less_than": ("below", "lt"),
}
KINDS_OF_VALUE = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a text",
    "string_too_short": "a text of one character or more",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
KINDS = {"guarantee": "reveil publish", "perturb": "reveil perturb", "dp": "reveil count"}


def load_policy(source: PolicyLike) -> Policy:
    """Read and validate a policy from a file, a dict of the same shape, or pass a `Policy` through.

    >>> policy = load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 5}})
    >>> policy.guarantee.stated, policy.named("quasi")
    ({'k': 5}, ('age',))
    """
    return source if isinstance(source, Policy) else take_in_labels(load_as(Policy, source))


def load_as(kind: type[Kind], source: str | Path | Mapping[str, Any] | Publication) -> Kind:
    """A policy of this kind; one of another kind is refused with the command that is meant for it."""
    if isinstance(source, kind):
        return source
    content, where = content_of(source)
    _refuse_other_kinds(kind, content, where)
    return _validate(kind, content, where)


def content_of(source: str | Path | Mapping[str, Any] | Publication) -> tuple[dict[str, Any], str]:
    """The sections of a policy of any kind, as they are written, and what it is called in messages."""
    if isinstance(source, Publication):
        return {name: getattr(source, name) for name in source.model_fields_set}, "policy"
    if isinstance(source, Mapping):
        return dict(source), "policy"
    path = Path(source)
    return {**_read_toml(path), "folder": path.resolve().parent}, path.name


def _refuse_other_kinds(kind: type[Publication], content: Mapping[str, Any], where: str) -> None:
    others = [name for name in KINDS if name in content and name not in kind.model_fields]
    own = next(name for name in KINDS if name in kind.model_fields)
    if others:
        message = f"has [{others[0]}], which would be ignored here: a table is published in one way"
        remedy = f"run `{KINDS[others[0]]}` with it, or remove that section for `{KINDS[own]}`"
        raise InputError([Fault("R224", f"{where}, {name}", message, remedy) for name in others])


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(
            Fault("R200", f"policy {path}", reason, "run `reveil init TABLE` to make one, or pass --policy FILE")
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            Fault("R200", f"policy {path}", f"is not UTF-8 text (byte {error.start})", "save it as UTF-8")
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(Fault("R200", f"policy {path}", f"is not valid TOML: {error}", "correct that line")) from None


def recorded_policy(fixed: Mapping[str, Any], given: Policy) -> Policy:
    """The policy that a series was recorded with (`Policy.fixed`); what it leaves open is as given.

    >>> policy = load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 5}})
    >>> recorded_policy(policy.fixed(), load_policy({"columns": {"sex": "quasi"}, "guarantee": {"k": 2}})) == policy
    True
    """
    parts: dict[str, type[Section]] = {"series": SeriesSection, "values": Values, "method": MethodSection}
    content: dict[str, Any] = {name: _stated(part, fixed[name]) for name, part in parts.items()}
    content["guarantee"] = _unlike({"model": USUAL, **RECORDED}, fixed["guarantee"])
    content |= {name: fixed[name] for name in ("people",) if name in fixed}
    content["columns"] = {name: _stated(Column, spec) for name, spec in fixed["columns"].items()}
    content["method"]["infeasible"] = given.method.infeasible
    open_keys = {name: getattr(given, name) for name in ("output", "audit", "folder", "engine")}
    open_keys["input"] = {
        **given.input.model_dump(exclude_unset=True, exclude={"identifiers"}),
        **fixed.get("input", {}),
    }
    recorded = _validate(Policy, {**content, **open_keys}, "recorded policy")
    return take_in_labels(recorded, fixed.get("labels", {}))


def _stated(part: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as it would be anyway: a default that is written out counts as a parameter that was given."""
    return _unlike(part.model_construct().model_dump(mode="json"), values)


def _unlike(usual: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in usual or usual[name] != value}


def _validate(kind: type[Kind], content: dict[str, Any], where: str) -> Kind:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        # A list counts as short, too, when all its items are wrong; these are told already.
        items = [item for item in error.errors() if item["type"] != "too_short" or not item["input"]]
        raise InputError([fault for item in items for fault in _faults(kind, where, item, content)]) from None


def _faults(kind: type[Publication], where: str, item: Mapping[str, Any], content: Mapping[str, Any]) -> list[Fault]:
    """What Pydantic found, in plain words."""
    place = [str(part) for part in item["loc"] if not str(part).startswith(MARK)]
    key = ".".join(place) or "as a whole"
    error = item.get("ctx", {}).get("error")
    if isinstance(error, ContradictionError):
        return [Fault("R201", f"{where}, {key}", text, "change the keys that it names") for text in error.faults]
    message, remedy = item["msg"].removeprefix("Value error, "), "correct this key"
    if item["type"] == "extra_forbidden":
        message, remedy = "is not a key of the policy", _nearest_key(kind, place, content)
    elif item["type"] == "missing":
        message, remedy = "is missing", f"add {key}" if len(place) > 1 else f"add a section [{key}]"
    elif item["type"] == "literal_error":
        message, remedy = f"{_shown(item)} is not allowed", f"use {item['ctx']['expected']}"
    elif item["type"] in BOUNDS:
        word, name = BOUNDS[item["type"]]
        message, remedy = f"{_shown(item)} is not allowed", f"use a number {word} {item['ctx'][name]}"
    elif item["type"] == "too_short":
        message, remedy = "is empty", "name at least one, or leave it out"
    elif message.startswith("write a number"):
        message, remedy = f"{_shown(item)} is not a number", message
    elif item["type"] == "shape":
        message = f"{_shown(item)} {message}"
    elif item["type"] in KINDS_OF_VALUE:
        message, remedy = f"{_shown(item)} is not {KINDS_OF_VALUE[item['type']]}", "correct this key"
    return [Fault("R201", f"{where}, {key}", message, remedy)]


def _shown(item: Mapping[str, Any]) -> str:
    return json.dumps(item["input"], default=str)


def _nearest_key(kind: type[Publication], place: list[str], content: Mapping[str, Any]) -> str:
    """The key that was meant: of the section, of a column, or of the policy itself."""
    known: type[BaseModel] = kind
    if len(place) > 1:
        known = Column if place[0] == "columns" else _section(kind, place[0])
    names = [name for name in known.model_fields if name != "folder"]
    near = difflib.get_close_matches(place[-1], names, n=1)
    promise = descriptors().get(str(content["guarantee"].get("model"))) if place[0] == "guarantee" else None
    if promise is not None and not near:
        return f'model "{promise.name}" takes {", ".join(promise.keys)}'
    return f"did you mean {near[0]}" if near else f"use one of {', '.join(names)}"


def _section(kind: type[Publication], name: str) -> type[BaseModel]:
    """The model of a section; of one step where a section is a list of them."""
    annotation = kind.model_fields[name].annotation
    if annotation is Guarantee:
        return form()  # in the file, its keys stand side by side
    types = [item for item in (annotation, *get_args(annotation)) if isinstance(item, type)]
    return next((item for item in types if issubclass(item, BaseModel)), kind)
