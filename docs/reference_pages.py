"""Pages of the site that are made from the code, so that they are never old: commands, words and codes, Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PYTHON = {
    "One release": ("anonymize", "check", "compare"),
    "A series": ("open_series", "load_policy"),
    "Before": ("risk",),
    "Attack": ("audit",),
    "Use": ("ask", "expand", "measure"),
}


def write_all(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in {
        "commands": commands(),
        "words": words(),
        "codes": codes(),
        "python": python(),
        "http": http(),
    }.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def commands() -> str:
    """Every command with its arguments and options, as `--help` tells them."""
    from reveil.cli.app import COMMANDS, Commands

    group: Any = Commands()
    codes = "Exit codes: 0 good; 1 a guarantee does not hold or somebody is exposed; 2 bad input; 3 undecided."
    parts = [f"# Commands\n\n{codes}\n"]
    for name in COMMANDS:
        command = group.get_command(None, name)
        lines = [f"## reveil {name}\n", (command.help or "").split("\f")[0].strip(), ""]
        rows = [_parameter(parameter) for parameter in getattr(command, "params", ()) if parameter.name != "help"]
        lines += ["| | |", "|---|---|", *rows] if rows else []
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def http() -> str:
    """What the service of the console understands, from its own description (OpenAPI)."""
    from fastapi import FastAPI

    from reveil.serve.api import router

    service = FastAPI(title="Reveil")
    service.include_router(router)
    said = "From `/openapi.json` of a running console, which says more; see [the console](../console.md#over-http).\n"
    parts = [f"# HTTP\n\n{said}"]
    for path, verbs in service.openapi()["paths"].items():
        for verb, about in verbs.items():
            lines = [f"## {verb.upper()} {path}\n", " ".join(about.get("description", "").split()), ""]
            rows = [
                f"| `{one['name']}` | in the {one['in']}{', needed' if one.get('required') else ''} |"
                for one in about.get("parameters", ())
            ]
            lines += ["| | |", "|---|---|", *rows] if rows else []
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _parameter(parameter: Any) -> str:
    named = ", ".join(f"`{option}`" for option in parameter.opts) if parameter.opts[0].startswith("-") else ""
    said = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    return f"| {named or f'`{parameter.name.upper()}`'} | {said} |"


def words() -> str:
    """Guarantees, attacks, measures and words: what `reveil explain` says."""
    from reveil.report.explain import entries

    parts = ["# Words\n\nWhat `reveil explain WORD` says.\n"]
    for kind in ("guarantee", "attack", "measure", "word"):
        parts.append(f"## {kind.capitalize()}s\n")
        parts += [_entry(entry) for entry in entries().values() if entry.kind == kind]
    return "\n".join(parts)


def codes() -> str:
    """What every refusal means and the way out."""
    from reveil.report.explain import entries

    parts = ["# Codes of refusals\n"]
    parts += [_entry(entry, "##") for entry in sorted(entries().values(), key=lambda e: e.name) if entry.kind == "code"]
    return "\n".join(parts)


def _entry(entry: Any, level: str = "###") -> str:
    exact = f"\n\n*Exactly:* {entry.exact}" if entry.exact else ""
    limits = f"\n\n{entry.limits}" if entry.limits else ""
    return f"{level} {entry.name}\n\n**{entry.title}.** {entry.plain}{exact}{limits}\n"


def python() -> str:
    """Public functions with their docstrings, whose examples run as tests."""
    parts = ["# Python\n"]
    for title, names in PYTHON.items():
        functions = "\n".join(f".. autofunction:: reveil.{name}" for name in names)
        parts.append(f"## {title}\n\n```{{eval-rst}}\n{functions}\n```\n")
    return "\n".join(parts)
