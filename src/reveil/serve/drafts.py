"""A series that is being described: what was answered so far, and the policy that follows from it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reveil.base.errors import Fault, InputError
from reveil.serve.place import Place, now, read, unknown, write_atomically

ROLES = {
    "identifier": "Who it is about: recognised, never shown",
    "quasi": "Others may know it: made coarser",
    "sensitive": "To be protected",
    "household": "Who lives together: published together",
    "insensitive": "Harmless, and unknown outside: shown",
    "drop": "Left out",
}
CHANGES = {
    "never": "No, once true it stays (a blood group, a past diagnosis)",
    "freely": "Yes, freely (an income, a medication)",
}
GUESSES = {"2": "1 in 2", "3": "1 in 3", "4": "1 in 4", "5": "1 in 5", "6": "1 in 6", "8": "1 in 8", "10": "1 in 10"}
KNOWN = {"0": "Nobody's", "1": "One person's, their own perhaps", "2": "Two people's"}
RARE = {
    "wait": "They wait for later releases, until enough like them have come",
    "withhold": "Leave those rows out for good, and say how many",
    "refuse": "Publish nothing",
}
ANSWERS: Mapping[str, Any] = {  # what is suggested
    "change": "never",
    "m": "4",
    "known": "1",
    "k": "5",
    "rare": "wait",
    "harmless": (),
    "form": "boxes",
}
WAYS = {  # how a column is made coarser: what is asked for, by the kind of its values
    "number": {"": "any range", "widths": "ranges of fixed widths", "cuts": "between cut points"},
    "date": {"": "any span of days", "levels": "calendar levels"},
    "text": {"": "the value, or nothing", "prefixes": "its first characters", "hierarchy": "a tree of groups"},
}
HINTS = {
    "widths": "5, 10, 20 (each a multiple of the one before)",
    "cuts": "18, 40, 65",
    "levels": "month, quarter, year",
    "prefixes": "4, 3, 2 (how many to keep)",
    "hierarchy": "choose a file, or make a tree",
}


@dataclass(frozen=True)
class Drafts:
    """The drafts of one place."""

    place: Place

    def begin(self, upload: str, name: str, by: str) -> dict[str, Any]:
        """A new draft about an upload."""
        token = secrets.token_hex(8)
        draft = {"id": token, "upload": upload, "name": name, "by": by, "at": now(), "accept": [], "columns": {}}
        self.save(draft)
        return draft

    def load(self, token: str) -> dict[str, Any]:
        """A draft as it was left."""
        draft = read(self.place.entry("drafts", token))
        if draft is None:
            raise unknown("draft", token)
        return draft

    def save(self, draft: Mapping[str, Any]) -> None:
        """Keep what was answered."""
        write_atomically(self.place.state / "drafts" / f"{draft['id']}.json", draft)

    def forget(self, token: str) -> None:
        """The draft has become a series, or nothing."""
        self.place.entry("drafts", token).unlink()


def begin_columns(draft: dict[str, Any], looked: Mapping[str, Any]) -> None:
    """Suggested roles and levels, until somebody knows better; and how the table is read, as it was found out."""
    draft["input"] = dict(looked.get("input", {}))
    for one in looked["columns"]:
        spec = {name: value for name, value in one["spec"].items() if name != "role"}
        kind = {"category": "text", "number": "number", "date": "date"}.get(spec.get("type", ""), one["kind"])
        draft["columns"].setdefault(one["column"], {"role": one["role"], "kind": kind, **spec})


def column_spec(column: Mapping[str, Any]) -> dict[str, Any]:
    """A column as the policy has it: keys that mean something for its role."""
    role = column["role"]
    kept = {"type": column["type"]} if column.get("type") and role in ("quasi", "sensitive") else {}
    ways = ("widths", "cuts", "levels", "prefixes", "hierarchy") if role == "quasi" else ()
    kept |= {way: column[way] for way in ways if column.get(way)}
    if "prefixes" in kept or "hierarchy" in kept:
        kept["type"] = "category"
    return {"role": role, **kept}


def is_alone(draft: Mapping[str, Any], looked: Mapping[str, Any]) -> bool:
    """Whether its rows stand for people in bundles, so that one release by itself is made: several rows, households."""
    roles = {name: column["role"] for name, column in draft["columns"].items()}
    key = (looked.get("several") or {}).get("key")
    return "household" in roles.values() or roles.get(key) == "identifier"


def column_faults(columns: Mapping[str, Mapping[str, Any]], *, alone: bool = False) -> list[Fault]:
    """What a series needs of its columns, or a release by itself."""
    roles = [column["role"] for column in columns.values()]
    needs = [
        ("identifier", "no column says who a row is about, so that nobody can be recognised in the next table"),
        ("quasi", "no column is known to others, so that there is nothing to protect against"),
        ("sensitive", "no column is to be protected"),
    ]
    needs = needs[1:2] if alone else needs
    faults = [Fault("R216", f"role {role}", text, "choose one below") for role, text in needs if role not in roles]
    if roles.count("identifier") > 1:
        message = f"{roles.count('identifier')} columns say who it is about, and a series has one"
        faults.append(Fault("R216", "role identifier", message, "choose one, and leave the others out"))
    return faults


def way_of(column: Mapping[str, Any]) -> tuple[str, str]:
    """How a column is made coarser, and the numbers or words of it."""
    for way in ("widths", "cuts", "levels", "prefixes", "hierarchy"):
        if column.get(way):
            value = column[way]
            return way, value if isinstance(value, str) else ", ".join(map(str, value))
    return "", ""


def set_way(column: dict[str, Any], name: str, way: str, text: str) -> list[Fault]:
    """Take what was asked for; what cannot be understood is said."""
    kept = {key: column[key] for key in column if key not in ("widths", "cuts", "levels", "prefixes")}
    if way != "hierarchy":
        kept.pop("hierarchy", None)
    column.clear()
    column.update(kept)
    words = [word.strip() for word in text.split(",") if word.strip()]
    if way in ("widths", "cuts", "prefixes"):
        try:
            column[way] = [int(word) if way == "prefixes" or word.lstrip("-").isdigit() else word for word in words]
        except ValueError:
            return [Fault("R201", f"column {name!r}", f"{text!r} are not numbers", f"write {HINTS[way]}")]
        column["type"] = "category" if way == "prefixes" else "number"
    elif way == "levels":
        column["levels"] = words
    if way and way != "hierarchy" and not words:
        column.pop(way, None)
        return [Fault("R201", f"column {name!r}", "nothing was written", f"write {HINTS[way]}")]
    return []


def policy_of(draft: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The policy that follows from the answers, section by section."""
    promise = {**ANSWERS, **draft.get("promise", {})}
    sections: dict[str, dict[str, Any]] = {"series": {"name": draft["name"]}}
    reading = {**draft.get("input", {}), **({"sheet": draft["sheet"]} if draft.get("sheet") else {})}
    if reading:
        sections["input"] = reading
    sections["columns"] = {name: column_spec(column) for name, column in draft["columns"].items()}
    sections["values"] = {"change": promise["change"]}
    sections["guarantee"] = _guarantee(promise)
    waits = sections["guarantee"]["model"] == "compromise-safety"  # elsewhere nobody can wait: they are left out
    method: dict[str, Any] = {"infeasible": "withhold" if promise["rare"] == "wait" and not waits else promise["rare"]}
    if promise["form"] != "one":
        method = {"publish": "anatomy", "people": promise["form"], **method}
    sections["method"] = method
    return sections


def _guarantee(promise: Mapping[str, Any]) -> dict[str, Any]:
    """One in so many, against whoever has all releases."""
    model: dict[str, Any]
    if promise["change"] == "freely":
        model = {"model": "global", "l": int(promise["m"]), "strategy": "telescoping"}
    else:
        known = int(promise["known"])
        model = {"model": "compromise-safety", "m": int(promise["m"]) + known, "compromised": known, "refill": "never"}
        if not known:
            model = {"model": "m-invariance", "m": int(promise["m"])}
    if promise.get("harmless"):
        model["harmless"] = list(promise["harmless"])
    if promise["form"] == "boxes":
        model["k"] = int(promise["k"])
    return model


def settings_of(draft: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same promise in its forms, and a stricter and a milder one; each a policy to try."""
    own = {**ANSWERS, **draft.get("promise", {})}
    listed = []
    for form, title in FORMS.items():
        listed.append(_setting(draft, form, title, {"form": form}))
    guesses = list(GUESSES)
    place = guesses.index(own["m"])
    for key, other in (("milder", guesses[max(0, place - 1)]), ("stricter", guesses[min(place + 1, len(guesses) - 1)])):
        if other != own["m"]:
            listed.append(_setting(draft, key, f"{key}: at most {GUESSES[other]}", {"m": other}))
    return listed


FORMS = {"boxes": "two tables, people in boxes", "exact": "two tables, people as they are", "one": "one table"}


def _setting(draft: Mapping[str, Any], key: str, title: str, change: Mapping[str, str]) -> dict[str, Any]:
    promise = {**draft.get("promise", {}), **change}
    return {"key": key, "title": title, "promise": promise, "policy": policy_of({**draft, "promise": promise})}


def refuse_columns(draft: Mapping[str, Any], *, alone: bool = False) -> None:
    """Refuse to go on from columns that make no series, or no release by itself."""
    if faults := column_faults(draft["columns"], alone=alone):
        raise InputError(faults)
