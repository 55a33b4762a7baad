"""What was promised, assumed, checked and found for one release, as data and as text.

A certificate is evidence for people who decide. It never says "safe" or "compliant".
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from reveil.base.version import __version__
from reveil.base.words import some
from reveil.policy.policy import Policy
from reveil.policy.promise import promise_text, verdict_text
from reveil.policy.several import known_limit

if TYPE_CHECKING:
    from reveil.verify.verify import Verification

LINKABLE = (
    "Linkability: groups can be followed from release to release, nearly all of them (near 100 %), because people and "
    "values stay together. That two groups are about the same people is not hidden; which value is whose is."
)
PARTS = ("polars", "pyarrow", "numpy", "numba", "scipy", "pydantic")


@dataclass(frozen=True)
class Certificate:
    """The independent verification of one release."""

    holds: bool
    series: str
    release: int | None
    policy: Mapping[str, Any]
    counts: Mapping[str, int]
    verdicts: tuple[Mapping[str, Any], ...]
    checks: tuple[Mapping[str, Any], ...]
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    hashes: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    withheld: Mapping[str, int] = field(default_factory=dict)
    promise: str = ""  # in one sentence; empty in certificates of earlier versions

    @property
    def verdict(self) -> str:
        """The verdict in the words that publish, verify, audit and reports share."""
        promise = self.promise or f"{self.policy['guarantee'].get('model', 'what was asked for')}"
        return verdict_text(promise, None if self.undecided else self.holds)

    @property
    def undecided(self) -> bool:
        """Whether nothing speaks against it, but it cannot be shown from what was given."""
        failing = [verdict for verdict in self.verdicts if not verdict["holds"]]
        sound = all(check["holds"] for check in self.checks)
        return bool(failing) and sound and all(not verdict.get("decided", True) for verdict in failing)

    @property
    def finding(self) -> str:
        return "holds" if self.holds else "cannot be shown from this alone" if self.undecided else "DOES NOT HOLD"

    def to_dict(self) -> dict[str, Any]:
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        return f"Certificate({self.series!r}, release {self.release}: {self.finding}; {len(self.verdicts)} verdicts)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(v['guarantee'])}</td><td>{'holds' if v['holds'] else 'does not hold'}</td>"
            f"<td>{escape(v['statement'])}</td></tr>"
            for v in self.verdicts
        )
        return f"<table><tr><th>Guarantee</th><th>Found</th><th>What was checked</th></tr>{rows}</table>"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def certify(
    verification: Verification,
    policy: Policy,
    *,
    release: int | None,
    rows: int,
    reasons: Mapping[str, int],
    hashes: Mapping[str, str],
    people: Mapping[str, int] | None = None,
    notes: tuple[str, ...] = (),
) -> Certificate:
    """The certificate of a release that has been verified.

    `people`: how many of them came back, in a series; `notes`: what could not be checked about that.
    """
    withheld = sum(reasons.values())
    return Certificate(
        holds=verification.holds,
        series=policy.series.name,
        release=release,
        policy=policy.to_dict(),
        counts={
            "input rows": rows,
            "published rows": verification.rows,
            "withheld rows": withheld,
            "counterfeit rows": verification.counterfeits,
            "groups": verification.classes,
            "smallest group": int(verification.sizes[0]) if len(verification.sizes) else 0,
            "largest group": int(verification.sizes[-1]) if len(verification.sizes) else 0,
            **_crowds(verification, policy),
            **({"people with a stand-in": verification.stand_ins} if verification.stand_ins else {}),
            **(people or {}),
        },
        verdicts=tuple(verdict.to_dict() for verdict in verification.verdicts),
        checks=tuple(check.to_dict() for check in verification.checks),
        assumptions=tuple(assumptions(policy)),
        limits=(*limits(policy, release, verification.alone), *_stood_in(verification), *verification.limits, *notes),
        hashes=dict(hashes),
        versions={"python": platform.python_version(), "reveil": __version__, **_versions()},
        withheld=dict(reasons),
        promise=promise_text(policy),
    )


def _crowds(verification: Verification, policy: Policy) -> dict[str, int]:
    """Where rows are not people: how many of these are shown; of two tables also how many look alike at least."""
    if policy.bundled and not policy.method.two_tables:
        return {f"published {policy.bundled}": sum(verification.sizes)}
    if not policy.method.two_tables:
        return {}
    least = {"smallest box": verification.boxes[0]} if verification.boxes and policy.method.boxed else {}
    bundles = {"bundles": sum(verification.sizes)} if policy.bundled else {}
    return {**bundles, "people shown": sum(verification.boxes), **least}


def _stood_in(verification: Verification) -> list[str]:
    """What is true, and what is not, of people who are shown without their own value."""
    if not verification.stand_ins:
        return []
    whom = some(verification.stand_ins, "person has", "people have")
    return [
        f"{whom} a stand-in: they were away while their group was shown. They are counted among its people again, and "
        "a counterfeit goes on in their place: what they have now is shown nowhere. The promise is kept for it as well."
    ]


def _versions() -> dict[str, str]:
    """Those of the parts that took part; looking the others up in their packages takes longer than using them."""
    return {part: str(sys.modules[part].__version__) for part in PARTS if part in sys.modules}


def assumptions(policy: Policy) -> list[str]:
    """What the guarantees take for granted."""
    known = ", ".join(policy.named("quasi"))
    sentences = [
        f"Others may know these about a person, and nothing else about them: {known}.",
        "Worst case: it is known who is in the table, and in which group.",
        _rows_of(policy),
        "A missing value is a value of its own.",
    ]
    insensitive = policy.named("insensitive")
    if insensitive and policy.promises_series and policy.method.insensitive == "dealt":
        sentences.append(f"Published, but dealt out anew within each group: {', '.join(insensitive)}.")
    elif insensitive:
        sentences.append(f"Published unchanged, because they tell nobody anything: {', '.join(insensitive)}.")
    listed = {name: ", ".join(policy.harmless(name)) for name in policy.named("sensitive")}
    for names in sorted({*listed.values()} - {""}):
        of = [repr(name) for name in listed if listed[name] == names]
        where = f" ({', '.join(of)})" if len(of) < len(listed) else ""
        sentences.append(f"Harmless, so that no bound is promised for them: {names}{where}.")
    if policy.guarantee.descriptor.follows_people:
        sentences += [
            "Who leaves does not depend on their value. Where it does (people die of diseases), who left has such a "
            "value with a higher chance than is promised.",
            "How frequent values are is the same for everybody beforehand: nothing else known of a person, such as "
            "their age or town, makes a value likelier for them.",
        ]
    if policy.values.change == "never":
        sentences.append("A person's sensitive value never changes; this was checked against the earlier releases.")
    return sentences


def _rows_of(policy: Policy) -> str:
    """How rows and people go together."""
    if not policy.bundled:
        return "Each row is about one person, and no person has two rows."
    if policy.method.two_tables:
        return (
            f"All rows of one of the {policy.bundled} stand under one number, drawn by lot, and all values of one in "
            "one bundle, beside those of the others of their group. How many rows each has may be known, too. Somebody "
            "is linked to a value if any of their rows has it. Where not all rows of somebody are shown, which of "
            "their rows and which of their values are is drawn by lot, each by itself."
        )
    return (
        f"Rows of one of the {policy.bundled} are published as one, under a number drawn by lot. How many rows each of "
        f"the {policy.bundled} has may be known, too. Somebody is linked to a value if any of their rows has it."
    )


def limits(policy: Policy, release: int | None, alone: int = 0) -> list[str]:
    """What the guarantees do not give; `alone` groups have one real row besides counterfeits."""
    sentences = ["Nothing here protects people against those who learn their values in another way."]
    model = policy.guarantee.model
    if policy.bundled:
        which = "" if policy.method.two_tables else ", and in which row,"
        sentences.append(
            f"Whoever knows a value of one of the {policy.bundled}{which} may find their rows by it and "
            f"read the others: rows that belong together are worth more to a reader, and to an attacker."
        )
    if policy.method.boxed:
        cut = "keep to the cuts of the first release" if policy.method.steady else "are cut anew in each release"
        sentences.append(
            f"Boxes of people {cut}. Groups can be followed from release to release by their "
            "values, and the boxes of a person in several releases can fit fewer people than any of them alone: that "
            "somebody is in the table is hidden among k people in each release by itself (`reveil audit` counts it)."
        )
    elif policy.method.two_tables:
        sentences.append(
            "Exact quasi-identifiers are published: everybody can see who is in the table and find their row. Only "
            "which value of its group a row has is hidden."
        )
    if policy.method.insensitive == "own":
        sentences.append(
            f"Insensitive cells stay with their person ({', '.join(policy.named('insensitive'))}): people can be known "
            "again by them from release to release, and told apart within their box."
        )
    sentences += known_limit(policy)
    if isinstance(getattr(policy.guarantee.headline, "refill", None), int):
        sentences.append(
            "Places are refilled by newcomers who have their values: a place stays vacant where none of those who may "
            "refill has its value, so that counterfeits have more often a value that groups which begin at the same "
            "time do not show (`reveil bench leaks`). How often that names them is stated as soon as it does."
        )
    if policy.guarantee.descriptor.follows_people:
        sentences.append(LINKABLE)
        sentences.append(
            "Near people who stand in different groups share a value somewhat more often than others do; this is not "
            "part of the bound."
        )
    if policy.guarantee.descriptor.follows_people and policy.anchor is None and release is not None:
        sentences.append(
            "A home that is restored from an old backup, or continued twice, goes unnoticed: no [output] anchor keeps "
            "the newest id in a second place. Two releases that follow the same one can tell a newcomer's value with a "
            "chance of 1, where their two groups show one value in common."
        )
    if alone and not policy.method.two_tables:
        sentences.append(
            f"In {some(alone, 'group')} one person is left beside counterfeits, whose number is published: the "
            "generalised cells of such a group are that person's own. Their value stays hidden."
        )
    if not policy.guarantee.series and release is not None:
        sentences.append(
            f"{model} is a promise about one table. Several releases about the same people, each keeping it, can "
            "together reveal a person's value: publish a series under a guarantee for series."
        )
    elif not policy.guarantee.series:
        sentences.append(
            f"{model} is a promise about this table alone: it does not hold for it together with other releases."
        )
    return sentences
