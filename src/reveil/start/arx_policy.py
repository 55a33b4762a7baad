"""A policy from a project of ARX: what it says that has an equivalent, and a list of what has none."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError
from reveil.report.toml_text import toml_text
from reveil.start.arx_project import Archive, Attribute, Project, opened

ROLES = {
    "IDENTIFYING_ATTRIBUTE": "drop",
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "INSENSITIVE_ATTRIBUTE": "insensitive",
}
SAID, OF = r"([0-9.]+(?:[eE][-+]?[0-9]+)?)", r" for attribute '(.*)'"
CRITERIA = {  # how ARX writes a criterion -> the keys of the policy that say it
    rf"{SAID}-anonymity": ("k",),
    rf"distinct-{SAID}-diversity{OF}": ("l",),
    rf"(?:shannon-)?entropy-{SAID}-diversity{OF}": ("l", {"diversity": "entropy"}),
    rf"recursive-\({SAID}, ?{SAID}\)-diversity{OF}": ("c", "l", {"diversity": "recursive"}),
    rf"{SAID}-closeness with equal (?:ground-)?distance{OF}": ("t", {"distance": "equal"}),
    rf"{SAID}-closeness with ordered distance{OF}": ("t", {"distance": "ordered"}),
    rf"{SAID}-closeness with hierarchical (?:ground-)?distance{OF}": ("t", {"distance": "hierarchical"}),
    rf"basic-{SAID}-likeness{OF}": ("beta", {"likeness": "basic"}),
    rf"enhanced-{SAID}-likeness{OF}": ("beta", {"likeness": "enhanced"}),
}
ALONE = {"l": "l-diversity", "t": "t-closeness", "beta": "beta-likeness"}  # the headline where there is no k
STRICTEST = {"k": max, "l": max, "c": min, "t": min, "beta": min}
LOSSES = {"loss": "geometric", "precision": "precision"}


@dataclass
class Imported:
    """A policy, the files beside it, and what of the project has no equivalent, in sentences."""

    policy: Mapping[str, Mapping[str, Any]]
    hierarchies: Mapping[str, str]  # file -> content
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The policy as a file."""
        lines = ["# Made by `reveil init` from a project of ARX. Read it: only you know what others can know."]
        lines += [f"# {line}" for line in self.notes]
        lines += ["# These have no equivalent here:"] * bool(self.unknown) + [f"# - {line}" for line in self.unknown]
        told = "\n".join(" ".join(line.split()) for line in lines)  # a name with a line end would end the comment
        return told + "\n\n" + toml_text(self.policy) + "\n"


def import_project(source: Path, policy: Path, name: str | None) -> tuple[Imported, Path]:
    """Write policy, table and hierarchies of a project side by side; nothing that exists is replaced."""
    table, folder = policy.parent / f"{source.stem}.csv", policy.parent / "hierarchies"
    with opened(source) as archive:
        project = archive.project()
        imported = translated(archive, project, name or project.name)
        wanted = [table, *(policy.parent / file for file in imported.hierarchies)]
        if taken := [path for path in wanted if path.exists()]:
            raise InputError(
                [Fault("R913", str(path), "exists already", "move it, or write elsewhere (--policy)") for path in taken]
            )
        fresh = [path for path in (*wanted, policy) if not path.exists()]
        empty = not folder.exists()
        try:
            folder.mkdir(exist_ok=True)
            for file, content in imported.hierarchies.items():
                (policy.parent / file).write_text(content, encoding="utf-8")
            with table.open("xb") as written:
                for piece in archive.pieces(project.table):
                    written.write(piece)
            policy.write_text(imported.text, encoding="utf-8")
        except BaseException:  # whatever it was: half a project is not left lying about
            for path in fresh:
                path.unlink(missing_ok=True)
            if empty and folder.exists():
                folder.rmdir()
            raise
    return imported, table


def translated(archive: Archive, project: Project, name: str) -> Imported:
    """What a project says, in the words of a policy."""
    result = Imported({}, {})
    promise = _promise(archive, project, result)
    hierarchies, columns = dict[str, str](), dict[str, Any]()
    for number, attribute in enumerate(project.attributes, 1):
        file = None
        if attribute.hierarchy is not None and _uses_hierarchy(attribute, promise):
            file = f"hierarchies/{number:02}-{re.sub(r'[^A-Za-z0-9_-]+', '_', attribute.name)[:60]}.csv"
            hierarchies[file] = _rewritten(archive, attribute.hierarchy, project.delimiter)
        columns[attribute.name] = _column(archive, attribute, file, promise, result)
    _weigh(archive, project, columns)
    if dropped := [one.name for one in project.attributes if ROLES.get(one.type) == "drop"]:
        result.notes.append(
            f"Identifying columns are dropped ({', '.join(dropped)}); a series needs one with the role identifier."
        )
    result.hierarchies = hierarchies
    result.policy = {
        "series": {"name": name},
        "input": {"delimiter": project.delimiter},
        "columns": columns,
        "guarantee": promise,
        "method": _method(archive, project, result),
    }
    return result


def _uses_hierarchy(attribute: Attribute, promise: Mapping[str, Any]) -> bool:
    role = ROLES.get(attribute.type)
    return role == "quasi" or (role == "sensitive" and promise.get("distance") == "hierarchical")


def _column(
    archive: Archive, attribute: Attribute, file: str | None, promise: Mapping[str, Any], result: Imported
) -> Any:
    """The role of a column, and how it may change."""
    role = ROLES.get(attribute.type)
    if role is None:
        result.unknown.append(f"column {attribute.name!r}: its type {attribute.type!r}; it is dropped")
        return "drop"
    for other in sorted({*attribute.others}):
        result.unknown.append(f"column {attribute.name!r}: {other}; it is generalised, or suppressed")
    levels = {"lowest": attribute.lowest, "highest": attribute.highest}
    spec: dict[str, Any] = {"role": role}
    if role == "quasi" and file is not None:
        spec |= {
            word: int(archive.number(level, f"{word} level of {attribute.name!r}"))
            for word, level in levels.items()
            if level.isdecimal() and (word, level) != ("lowest", "0")
        }
    if role == "quasi":
        spec["type"] = "category"  # as in ARX: its hierarchy, or the value and *
    elif role == "sensitive" and promise.get("distance") == "ordered" and attribute.datatype in ("Integer", "Decimal"):
        spec["type"] = "number"
    if file is not None:
        spec |= {"hierarchy": file}
    return role if spec.keys() == {"role"} else spec


def _promise(archive: Archive, project: Project, result: Imported) -> dict[str, Any]:
    """The criteria as keys of [guarantee]. Here one promise is about every sensitive column: the strictest is taken."""
    sensitive = [one.name for one in project.attributes if ROLES.get(one.type) == "sensitive"]
    promise, about = dict[str, Any](), dict[str, set[str]]()
    for criterion in (one for every in project.config.all("criteria") for one in every.all("criterion")):
        text = "".join(criterion.text).strip()
        found = _found(archive, text)
        if found is None or any(key in promise and promise[key] != value for key, value in found[1].items()):
            result.unknown.append(f"criterion {text!r}")
            continue
        numbers, words, column = found
        for key, number in numbers.items():
            promise[key] = STRICTEST[key](promise.get(key, number), number)
        promise |= words
        about.setdefault(min(numbers), set()).add(column)
    for key, columns in about.items():
        if key != "k" and (others := [name for name in sensitive if name not in columns]):
            result.notes.append(
                f"{key} is promised for every sensitive column here, so for {', '.join(others)} as well."
            )
    if "t" in promise:
        promise["reference"] = "original"  # ARX compares with the table as it was put in
    if not promise:
        result.notes.append("The project has no criterion that is known here: k = 5 is only a beginning.")
        promise["k"] = 5
    if "k" not in promise:
        promise = {"model": next(model for key, model in ALONE.items() if key in promise), **promise}
    return {key: str(value) if isinstance(value, Fraction) else value for key, value in promise.items()}


def _found(archive: Archive, text: str) -> tuple[dict[str, int | Fraction], dict[str, str], str] | None:
    """Numbers by key, further keys, and the column of a criterion that is known."""
    for pattern, keys in CRITERIA.items():
        match = re.fullmatch(pattern, text)
        if match is None:
            continue
        names = [key for key in keys if isinstance(key, str)]
        words = next((key for key in keys if isinstance(key, dict)), {})
        numbers = {key: archive.number(match[place], f"criterion {text[:80]!r}:") for place, key in enumerate(names, 1)}
        whole = {key: int(value) if value.denominator == 1 else value for key, value in numbers.items()}
        return whole, words, match[len(names) + 1] if len(match.groups()) > len(names) else ""
    return None


def _method(archive: Archive, project: Project, result: Imported) -> dict[str, Any]:
    """Global recoding, as in ARX, with what it may suppress."""
    said, method = project.config, {"name": "full-domain"}
    limit = said.get("relativeMaxOutliers")
    metric = said.get("metric") or ""
    word = next((ours for theirs, ours in LOSSES.items() if metric.lower().startswith(theirs)), None)
    if word is None and metric:
        result.unknown.append(f"quality model {metric!r}; the normalised certainty penalty is used")
    if (said.get("suppressionString") or "*") != "*":
        result.unknown.append("another text than * for suppressed cells")
    if any(every.all("type") for every in said.all("suppressedAttributeTypes")):
        result.notes.append("Suppressed rows are left out here, with all their cells.")
    shares = {} if limit is None else {"suppress": float(archive.number(limit, "relativeMaxOutliers"))}
    return {**method, **({} if word is None else {"loss": word}), **shares}


def _weigh(archive: Archive, project: Project, columns: dict[str, Any]) -> None:
    """Weights of quasi-identifiers, where they differ."""
    listed = [one for every in project.config.all("attributeWeights") for one in every.all("attributeWeight")]
    weights = {one.get("attribute") or "": float(archive.number(one.get("weight") or "0", "weight")) for one in listed}
    quasi = [one.name for one in project.attributes if ROLES.get(one.type) == "quasi"]
    if len({weights.get(name, 0.5) for name in quasi}) > 1:
        for name in quasi:
            columns[name] = {**columns[name], "weight": 2 * weights.get(name, 0.5)}  # one half is ARX's usual


def _rewritten(archive: Archive, part: str, delimiter: str) -> str:
    """A hierarchy with the delimiter that hierarchies have here, row by row: it may be large."""
    content = archive.hierarchy(part)
    try:
        content.decode("utf-8-sig")
        encoding = "utf-8-sig"
    except UnicodeDecodeError:
        encoding = "cp1252"
    out = io.BytesIO()
    told = io.TextIOWrapper(out, encoding="utf-8", newline="")
    text = io.TextIOWrapper(io.BytesIO(content), encoding=encoding, errors="replace", newline="")
    rows = csv.reader(text, delimiter=delimiter)
    try:
        csv.writer(told, delimiter=";", lineterminator="\n").writerows(row for row in rows if row)
    except csv.Error as error:
        raise archive.unreadable(f"part {part}: {error}", "save the project again in ARX") from None
    told.flush()
    return out.getvalue().decode()
