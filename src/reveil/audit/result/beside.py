"""What each of several publishers tells alone, and what all of them tell together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reveil.audit.result.score import Score
from reveil.base.words import agree, some, some_people

if TYPE_CHECKING:
    from reveil.audit.audit import Audit

HEAD = ("Published by", "Releases", "People", "Exposed", "Above 1/2", "Undecided", "Highest")
TOGETHER = "all together"


def publisher_rows(audit: Audit) -> list[dict[str, Any]]:
    """One line for each publisher alone, and one for all together."""
    return [_line(name, one) for name, one in (*audit.publishers, (TOGETHER, audit))]


def _line(name: str, one: Audit) -> dict[str, Any]:
    s = one.summary
    facts = {key: s[key] for key in ("releases", "people", "exposed", "above_half", "undecided", "without_belief")}
    return {"publisher": name, **facts, "highest": s["highest"]}


def only_together(audit: Audit) -> list[str]:
    """People who are exposed by all together, and by nobody alone."""
    names = audit.observed.persons
    return sorted(str(names[person]) for person in exposed(audit.score) - _alone(audit))


def _alone(audit: Audit) -> set[int]:
    """Whom somebody alone exposes; people have the same numbers throughout."""
    return set().union(*(exposed(one.score) for _, one in audit.publishers))


def exposed(score: Score) -> set[int]:
    return set(score.exposed_people.tolist())


def publisher_texts(audit: Audit) -> list[str]:
    """What is said of several publishers, in sentences; nobody is named."""
    names = [name for name, _ in audit.publishers]
    shared = sum(len(one) > 1 for one in _where(audit).values())
    both, alone = exposed(audit.score), _alone(audit)
    new, lost = len(both - alone), len(alone - both)
    said = [
        f"{len(names)} publishers: {', '.join(names)}. {some_people(shared)} {agree(shared, 'fits', 'fit')} releases "
        "of more than one. It is assumed that a person has the same value with all of them.",
    ]
    if new:
        said.append(
            f"{some_people(new)} {agree(new, 'is', 'are')} exposed only because {_all(names)} publish: nobody who has "
            f"the releases of one alone can tell what {agree(new, 'this person has', 'they have')}."
        )
    else:
        said.append("Nobody is exposed by all of them together who is not exposed by one alone.")
    if lost:
        said.append(
            f"Exposed by one alone, and left open in the time for all together: {some(lost, 'person', 'people')}."
        )
    return said


def _all(names: list[str]) -> str:
    return "both" if len(names) == 2 else "all of them"


def _where(audit: Audit) -> dict[int, set[int]]:
    """The publishers that each person may be with."""
    found: dict[int, set[int]] = {}
    for number, (_, one) in enumerate(audit.publishers):
        for person in set(one.observed.app_person.tolist()):
            found.setdefault(person, set()).add(number)
    return found


def row_texts(row: dict[str, Any]) -> tuple[str, ...]:
    """A line as it is shown."""
    sure = "" if not row["without_belief"] else "at least "
    guessed = f"{sure}{row['above_half']:,}" if row["above_half"] or not sure else "not computed"
    highest = "not computed" if row["highest"] is None else f"{row['highest']:.3f}"
    counts = [f"{row[name]:,}" for name in ("releases", "people", "exposed")]
    return (row["publisher"], *counts, guessed, f"{row['undecided']:,}", highest)
