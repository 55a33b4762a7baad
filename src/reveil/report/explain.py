"""What every code, guarantee, attack, measure and word means: first in plain words, then exactly.

The texts are data (`explanations.toml`) and are read when somebody asks.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import fill
from typing import Any, Literal

from reveil.base.errors import Fault, InputError

Kind = Literal["guarantee", "attack", "measure", "word", "code"]
GREEK = str.maketrans({"α": "alpha", "δ": "delta", "ε": "epsilon", "ℓ": "l"})
LIMITS: dict[Kind, str] = {
    "guarantee": "",  # these texts begin with "Withstands:"
    "attack": "Protection: ",
    "measure": "Take care: ",
    "word": "Take care: ",
    "code": "Way out: ",
}


@dataclass(frozen=True)
class Explanation:
    """One entry. `limits` says what it does not protect against or measure, or the way out of a code."""

    name: str
    kind: Kind
    title: str
    plain: str
    exact: str = ""
    limits: str = ""
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.title, fill(self.plain, 100)]
        if self.exact:
            parts.append(fill(f"Exactly: {self.exact}", 100))
        if self.limits:
            parts.append(fill(f"{LIMITS[self.kind]}{self.limits}", 100))
        if self.more:
            parts.append(f"See also: {', '.join(self.more)}")
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "title": self.title,
            "plain": self.plain,
            "exact": self.exact,
            "limits": self.limits,
            "more": list(self.more),
        }


def explain(name: str) -> Explanation:
    """Explain a code, a guarantee or a word; upper and lower case, spaces and Greek letters do not matter.

    >>> explain("K Anonymity").title
    'k-anonymity: nobody stands out'
    >>> explain("QI").name, explain("(ε,m)-anonymity").name
    ('quasi-identifier', 'epsilon-m')
    """
    if (exactly := _alone(name)) is not None:
        return exactly
    known = _by_any_name()
    wanted = _plain(name)
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=6, cutoff=0.5)
    suggestions = list(dict.fromkeys(known[spelling].name for spelling in near))[:3]
    guarantees = ", ".join(entry.name for entry in entries().values() if entry.kind == "guarantee")
    remedy = (
        f"did you mean {' or '.join(suggestions)}"
        if suggestions
        else f"try a code such as R201, or one of {guarantees}"
    )
    raise InputError(Fault("R291", f"name {name!r}", "is not a code, guarantee or word of Reveil", remedy))


@cache
def entries() -> dict[str, Explanation]:
    """All explanations by name, in the order of the file: guarantees, attacks, measures, words, codes.

    >>> list(entries())[:3]
    ['k-anonymity', 'l-diversity', 't-closeness']
    """
    return {
        name: _explanation(kind, name, entry) for kind, section in _content().items() for name, entry in section.items()
    }


def _explanation(kind: Kind, name: str, entry: dict[str, Any]) -> Explanation:
    texts = {key: " ".join(entry.get(key, "").split()) for key in ("title", "plain", "exact", "limits")}
    return Explanation(name, kind, more=tuple(entry.get("more", ())), **texts)


def _alone(name: str) -> Explanation | None:
    """An entry by its own name, without parsing all others: a report needs one, and the file is long."""
    header = re.search(rf"^\[(\w+)\.{re.escape(name)}\]$", _text(), re.MULTILINE)
    if header is None:
        return None
    following = re.compile(r"^\[", re.MULTILINE).search(_text(), header.end())
    content = tomllib.loads(_text()[header.start() : following.start() if following else None])
    ((kind, section),) = content.items()
    return _explanation(kind, name, section[name])  # type: ignore[arg-type]


def overview() -> str:
    """All names by kind in a few lines; of the codes, which refusals print, only where they begin and end.

    >>> print(overview().splitlines()[-1])  # doctest: +ELLIPSIS
    codes: R101 to R..., as refusals print them
    """
    names: dict[Kind, list[str]] = {}
    for name, entry in entries().items():
        names.setdefault(entry.kind, []).append(name)
    codes = names.pop("code")
    shape: dict[str, Any] = {"width": 100, "subsequent_indent": "  ", "break_on_hyphens": False}
    lines = [fill(f"{kind}s: {', '.join(known)}", **shape) for kind, known in names.items()]
    return "\n".join([*lines, f"codes: {min(codes)} to {max(codes)}, as refusals print them"])


@cache
def _by_any_name() -> dict[str, Explanation]:
    """By name and by all other names, as `_plain` writes them."""
    known = {_plain(name): entry for name, entry in entries().items()}
    for section in _content().values():
        for name, entry in section.items():
            for other in entry.get("also", ()):
                known.setdefault(_plain(other), entries()[name])
    return known


@cache
def _content() -> dict[Kind, dict[str, Any]]:
    content: dict[Kind, dict[str, Any]] = tomllib.loads(_text())  # type: ignore[assignment]
    return content


@cache
def _text() -> str:
    return files("reveil.report").joinpath("explanations.toml").read_text(encoding="utf-8")


def _plain(name: str) -> str:
    """The letters and digits of a name in lower case, with one hyphen between words."""
    return "-".join(re.findall(r"[a-z0-9]+", name.translate(GREEK).replace("'", "").casefold()))
