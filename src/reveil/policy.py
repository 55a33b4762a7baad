"""The policy file: what each column is, what is promised, and how to keep the promise.

`reveil.toml`, a dict of the same shape, or a `Policy` object all become one validated `Policy`. Every fault of a
policy is reported at once, with the nearest spelling where a name is unknown.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)

from reveil.dates import Order
from reveil.errors import Fault, InputError
from reveil.method import Method, scheme_faults
from reveil.promise import EVOLVING, PERSISTENT, SINGLE_RELEASE, Exact, Guarantee, Section, Share, Values

Role = Literal["identifier", "quasi", "sensitive", "insensitive", "drop"]
ColumnType = Literal["auto", "number", "category", "date"]
DateLevel = Literal["day", "month", "quarter", "year", "decade"]
DATE_LEVELS: tuple[DateLevel, ...] = ("day", "month", "quarter", "year", "decade")


class Column(Section):
    """One column: its role and, for quasi-identifiers and sensitive columns, how it may be generalised.

    At most one of `hierarchy` (a file, or a nested table), `widths`, `cuts`, `prefixes`, `levels` and `order` is given.
    """

    role: Role
    type: ColumnType = "auto"
    hierarchy: str | dict[str, Any] | None = None
    widths: tuple[Exact, ...] | None = None
    cuts: tuple[Exact, ...] | tuple[tuple[Exact, ...], ...] | None = None
    prefixes: tuple[int, ...] | None = None
    levels: tuple[DateLevel, ...] | None = None
    order: tuple[str, ...] | None = None
    missing: Literal["category", "refuse"] = "category"
    weight: Annotated[float, Field(ge=0)] = 1.0

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
        if self.weight != 1.0 and self.role != "quasi":
            raise ValueError("has a weight, but only quasi columns are weighed against each other")
        return self


def _column(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


class Series(Section):
    name: Annotated[str, Field(min_length=1)] = "series"


def _prior_policy(policy: Policy) -> list[str]:
    """What priors go together with, and what they do not."""
    g, method, faults = policy.guarantee, policy.method.name, []
    if g.r is None:
        if method in ("signatures", "linkage"):
            faults.append(f'method "{method}" groups by priors: it needs guarantee.r and guarantee.priors')
        return faults
    if g.model != "r-robustness":
        why = "only single-release conditions are planned together with priors"
        if g.model not in SINGLE_RELEASE:
            why = "its worlds over several releases are not weighed by priors"
        faults.append(f'priors do not go with model "{g.model}": {why}; use model = "r-robustness"')
    others = [name for name in ("t", "epsilon", "population") if getattr(g, name) is not None]
    faults += [f"{name} cannot be planned together with priors; k, l and alpha can" for name in others]
    if method not in ("auto", "signatures", "linkage"):
        faults.append(f'method "{method}" cannot plan under priors; use "signatures" or "linkage"')
    usual = Method()
    idle = [name for name in ("cuts", "suppress") if getattr(policy.method, name) != getattr(usual, name)]
    faults += [f"method.{name} does nothing under priors" for name in idle]
    if len(policy.named("sensitive")) != 1:
        faults.append("priors are planned for one sensitive column; give the others another role")
    if "group" in policy.columns and policy.columns["group"].role in ("quasi", "sensitive", "insensitive"):
        faults.append("a release under priors numbers its groups in a column `group`; rename yours")
    names = [Path(file).name for file in g.priors]
    if len(set(names)) < len(names):
        faults.append("two prior files have the same name; rename one of them")
    return faults


def _anatomy_policy(policy: Policy) -> list[str]:
    """What can be promised when exact quasi-identifiers are published apart from the values."""
    g, faults = policy.guarantee, []
    if g.model == "k-anonymity":
        faults.append(
            "anatomy publishes exact quasi-identifiers, so k-anonymity hides nobody: it only hides which value is "
            "whose; promise that, with l-diversity, t-closeness, alpha-k, epsilon-m or r-robustness"
        )
    if g.population is not None:
        faults.append(
            "anatomy publishes exact quasi-identifiers, so it shows who is present; presence needs generalized"
        )
    if g.model not in SINGLE_RELEASE and g.model != "global":  # which needs no counterfeits
        faults.append(f'anatomy cannot keep "{g.model}": a counterfeit row has no exact quasi-identifiers to show')
    if not policy.named("sensitive"):
        faults.append("anatomy parts quasi-identifiers from sensitive values, and no column is sensitive")
    if "recode" in policy.method.model_fields_set:
        faults.append("method.recode does nothing with anatomy: nothing is generalised")
    taken = [name for name in ("group", "count") if name in policy.columns]
    faults += [f"anatomy needs the column name `{name}` for itself; rename yours" for name in taken]
    return faults


class Output(Section):
    format: Literal["csv", "parquet"] = "csv"


class Input(Section):
    """How to read the table; None is found out from the file."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: Literal[".", ","] | None = None
    nulls: tuple[str, ...] = ("",)
    query: str | None = None
    sheet: str | None = None
    dates: Order | None = None  # in 03/04/2024; None: a number beyond 12 in the column must tell


class AuditSection(Section):
    """The audit as a last gate of publishing: nobody may be exposed, even if `compromised` people are known."""

    gate: bool = False
    compromised: Annotated[Share, Field(lt=1)] = Fraction(0)
    seconds: Annotated[float, Field(gt=0)] = 60.0


class Publication(Section):
    """What every kind of policy says: the columns, how tables are read and written, and where files are (`folder`)."""

    series: Series = Series()
    columns: dict[str, Annotated[Column, BeforeValidator(_column)]]
    output: Output = Output()
    input: Input = Input()
    folder: Path = Field(default=Path(), exclude=True)

    def named(self, role: Role) -> tuple[str, ...]:
        """Names of the columns with this role, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def identifier(self) -> str | None:
        names = self.named("identifier")
        return names[0] if names else None

    @property
    def numbers_groups(self) -> bool:
        """Whether releases outside a series carry a column `group` too."""
        return False

    @property
    def promises_series(self) -> bool:
        """Whether the promise is about all releases together."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain JSON values, defaults included."""
        return self.model_dump(mode="json")


class Policy(Publication):
    """A policy that promises a guarantee."""

    values: Values = Values()
    guarantee: Guarantee
    method: Method = Method()
    audit: AuditSection = AuditSection()

    @model_validator(mode="after")
    def _consistent(self) -> Policy:
        faults = []
        if not self.named("quasi"):
            faults.append("no column has the role quasi: there is nothing to protect against linkage")
        if len(self.named("identifier")) > 1:
            names = ", ".join(self.named("identifier"))
            faults.append(f"several identifiers ({names}); join them into one column first")
        if self.guarantee.population is not None and self.method.recode != "sets":
            faults.append('presence needs method.recode = "sets": labels of hierarchy nodes overlap, sets do not')
        needs_sensitive = [
            name for name in ("l", "t", "alpha", "epsilon", "r") if getattr(self.guarantee, name) is not None
        ]
        if needs_sensitive and not self.named("sensitive"):
            faults.append(f"guarantee.{needs_sensitive[0]} needs a column with the role sensitive")
        faults += _global_policy(self) if self.guarantee.model == "global" else []
        faults += _lasting_policy(self) if self.guarantee.model in (*PERSISTENT, *EVOLVING) else []
        faults += _rule_policy(self) if self.values.rule is not None else []
        if self.values.closure == "one-step" and self.guarantee.model != "m-distinct":
            faults.append(_IDLE_STEP.format(self.guarantee.model))
        faults += _prior_policy(self)
        faults += scheme_faults(self.method, self.guarantee)
        faults += _anatomy_policy(self) if self.method.publish == "anatomy" else []
        if self.method.name == "budget" and self.guarantee.model != "global":
            faults.append('method "budget" plans for guarantee.model = "global" only')
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def numbers_groups(self) -> bool:
        return bool(self.guarantee.priors)

    @property
    def promises_series(self) -> bool:
        return self.guarantee.model not in SINGLE_RELEASE

    def fixed(self) -> dict[str, Any]:
        """The part that a series fixes with its first release: all that bears on the promise."""
        everything = self.to_dict()
        fixed = {name: everything[name] for name in ("series", "columns", "values", "guarantee", "method")}
        fixed["method"].pop("infeasible")  # whether to refuse or to leave people out may be decided each time
        return fixed


def _lasting_policy(policy: Policy) -> list[str]:
    """What guarantees need whose groups follow people from release to release."""
    model, faults = policy.guarantee.model, []
    if model in EVOLVING and policy.values.change != "transitions":
        faults.append(f'model "{model}" needs values.change = "transitions": what a value may become is public')
    if model in PERSISTENT and policy.values.change != "never":
        faults.append(f'model "{model}" needs values.change = "never": it relies on values that stay')
    if policy.identifier is None:
        faults.append(f'model "{model}" needs a column with the role identifier: people must be known again')
    if len(policy.named("sensitive")) != 1:
        faults.append(f'model "{model}" needs exactly one sensitive column; join several into one first')
    kind = model if model in PERSISTENT else policy.guarantee.view
    if policy.method.name not in ("auto", *_METHODS_OF[kind]):
        faults.append(f'method "{policy.method.name}" does not plan for model "{model}"; use "auto"')
    if policy.method.suppress:
        faults.append(f'method.suppress must be 0 with model "{model}"')
    if policy.method.cuts != "relaxed" and _deals(policy):
        faults.append(f'method.cuts does nothing here: model "{model}" deals people by their values and cuts nothing')
    if policy.guarantee.closure == "transitive" and policy.method.name == "cor-split":
        faults.append('method "cor-split" regroups people and is tested in pairs only; it needs closure = "pairwise"')
    return faults


def _deals(policy: Policy) -> bool:
    """Whether groups are dealt from buckets of values; closed cohorts begin in regions that are cut."""
    g, name = policy.guarantee, policy.method.name
    if g.model == "historical-safety":
        return g.closure == "pairwise" and name != "cohorts"
    return g.model == "m-invariance" and name != "cohorts"


_IDLE_STEP = (
    'values.closure = "one-step" does nothing with model "{}": only m-distinct can do without transitive changes; use '
    '"transitive", or leave it out'
)
_METHODS_OF = {
    "compromise-safety": ("cohorts",),
    "m-invariance": ("m-invariance", "cohorts"),
    "historical-safety": ("cohorts", "cor-split"),
    "joint": ("cohorts-evolving",),
    "individual": ("m-distinct",),
}


def _rule_policy(policy: Policy) -> list[str]:
    """A rule yields transitions from what the policy says of the one sensitive column."""
    rule, names = policy.values.rule, policy.named("sensitive")
    if len(names) != 1:
        return [f"values.transitions by {rule} needs exactly one sensitive column"]
    spec = policy.columns[names[0]]
    if spec.hierarchy is None and (rule == "level" or spec.order is None):
        needed = "a hierarchy" if rule == "level" else "an order or a hierarchy, so that its values are public"
        return [f"values.transitions by {rule} needs {needed} of column {names[0]!r}"]
    return []


def _global_policy(policy: Policy) -> list[str]:
    faults = []
    if policy.values.change != "freely":
        faults.append(
            'model "global" needs values.change = "freely": its chances multiply only if a value says nothing about '
            "the next one. Where values persist it is no bound: {A,B} with x,y and then {A,C} with x,z gives A away, "
            "and the formula says 3/4"
        )
    if policy.identifier is None:
        faults.append('model "global" needs a column with the role identifier: budgets belong to people')
    if policy.method.name not in ("auto", "budget"):
        faults.append(f'method "{policy.method.name}" knows no budgets; model "global" needs method "budget" or "auto"')
    if policy.method.suppress:
        faults.append('method.suppress must be 0 with model "global": who is withheld is decided by the past alone')
    return faults


PolicyLike = str | Path | Mapping[str, Any] | Policy
Kind = TypeVar("Kind", bound=Publication)
# The section that makes a policy of each kind, and the command that publishes under it.
KINDS = {"guarantee": "reveil publish", "perturb": "reveil perturb", "dp": "reveil count"}


def load_policy(source: PolicyLike) -> Policy:
    """Read and validate a policy from a file, a dict of the same shape, or pass a `Policy` through.

    >>> policy = load_policy({"columns": {"age": "quasi"}, "guarantee": {"k": 5}})
    >>> policy.guarantee.k, policy.named("quasi")
    (5, ('age',))
    """
    return load_as(Policy, source)


def load_as(kind: type[Kind], source: str | Path | Mapping[str, Any] | Publication) -> Kind:
    """A policy of this kind; one of another kind is refused with the command that is meant for it."""
    if isinstance(source, kind):
        return source
    if isinstance(source, Publication):
        content, where = {name: getattr(source, name) for name in source.model_fields_set}, "policy"
    elif isinstance(source, Mapping):
        content, where = dict(source), "policy"
    else:
        path = Path(source)
        content, where = {**_read_toml(path), "folder": path.resolve().parent}, path.name
    _refuse_other_kinds(kind, content, where)
    return _validate(kind, content, where)


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


def _validate(kind: type[Kind], content: dict[str, Any], where: str) -> Kind:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise InputError([_fault(kind, where, item) for item in error.errors()]) from None


def _fault(kind: type[Publication], where: str, item: Mapping[str, Any]) -> Fault:
    place = [str(part) for part in item["loc"] if not str(part).startswith(("function-", "tuple[", "dict["))]
    key = ".".join(place) or "as a whole"
    message, remedy = item["msg"].removeprefix("Value error, "), "correct this key"
    if item["type"] == "extra_forbidden":
        message, remedy = "is not a key of the policy", _nearest_key(kind, place)
    elif item["type"] == "missing":
        message, remedy = "is missing", f"add {key}"
    elif item["type"] == "literal_error":
        message = f"{json.dumps(item['input'], default=str)} is not allowed"
        remedy = f"use {item['ctx']['expected']}"
    return Fault("R201", f"{where}, {key}", message, remedy)


def _nearest_key(kind: type[Publication], place: list[str]) -> str:
    """The key that was meant: of the section, of a column, or of the policy itself."""
    known: type[BaseModel] = kind
    if len(place) > 1:
        known = Column if place[0] == "columns" else _section(kind, place[0])
    names = [name for name in known.model_fields if name != "folder"]
    near = difflib.get_close_matches(place[-1], names, n=1)
    return f"did you mean {near[0]}" if near else f"use one of {', '.join(names)}"


def _section(kind: type[Publication], name: str) -> type[BaseModel]:
    """The model of a section; of one step where a section is a list of them."""
    annotation = kind.model_fields[name].annotation
    found = [item for item in (annotation, *get_args(annotation)) if isinstance(item, type)]
    return next((item for item in found if issubclass(item, BaseModel)), kind)
