"""The private half of a perturbed release: figures for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reveil.base.files import write_json
from reveil.report.make import asset

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{css}</style></head><body><main>
<h1>{title}</h1>
<p>For the publisher only. Nothing here says that a release is safe; it says what was done, checked and found.</p>
<h2>What was done</h2>{steps}
<h2>What was checked in the published bytes</h2>{checks}
<h2>To keep in mind</h2><ul>{notes}</ul>
<h2>Before and after</h2>{figures}
</main></body></html>
"""
FIGURES = ("columns", "covariances", "rank correlations", "interval disclosure", "record linkage")


def write_report(private: Path, content: Mapping[str, Any], series: str) -> None:
    """report.json and report.html in a folder that only the publisher reads."""
    from markupsafe import Markup

    from reveil.report.shapes import draw

    write_json(private / "report.json", content)
    steps = [{name: _text(value) for name, value in step.items()} for step in content["steps"]]
    page = Markup(PAGE).format(
        title=f"Perturbed release of {series}",
        css=Markup(asset("report.css")),  # ours, and no value ever gets into it
        steps=draw({"steps": steps}),
        checks=draw({"checks": content["checks"]}),
        notes=Markup("").join(Markup("<li>{}</li>").format(note) for note in content["notes"]),
        figures=draw({name: content[name] for name in FIGURES if name in content}),
    )
    (private / "report.html").write_text(page, encoding="utf-8")


def _text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(inner)}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
