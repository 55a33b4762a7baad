"""The private half of a release: certificate, statistics of the plan, and two reports for people.

`report.html` is for the publisher; `report-external.html` may be handed over with the release and repeats no value of
the table (see `discreet`). Both are one file each, without scripts and without anything from elsewhere.

`Plan.statistics` and `Verdict.details` are drawn in the internal report by their shape, whoever made them:

- a number, a text, true or false, null: a line of a table, under its name;
- a list of two or more numbers: a line plot, in order;
- what `UpdateGraph.to_dict` yields: a picture of the graph;
- a dict of numbers: bars (up to 16, none negative), otherwise a table;
- a dict of single values: a table;
- a dict of up to 8 lists of numbers: a line plot for each;
- a list of dicts of single values: a table with one row for each, 40 at most;
- a list of texts or mixed single values: a sentence;
- anything else: its JSON text, the first 2,000 characters.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from reveil.background.loading import Background
from reveil.base.files import write_json
from reveil.history.history import History
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.verify.certificate import Certificate
from reveil.verify.verify import Verification

if TYPE_CHECKING:
    import jinja2
    import markupsafe

    from reveil.report.content import Content, ReportSource
    from reveil.report.judgement import Origin


MUCH = Fraction(1, 2)  # of a risk that is left: a bar that is no good news


def write_reports(
    private: Path,
    frame: pl.DataFrame,
    table: pl.DataFrame,
    certificate: Certificate,
    plan: Plan,
    loss: Loss,
    verification: Verification,
    policy: Policy,
    background: Background,
    history: History,
    *,
    losses: Mapping[int, float] | None = None,
    values: Mapping[str, pl.DataFrame] | None = None,
    origin: Origin | None = None,
) -> None:
    """Write everything that stays with the publisher.

    `frame` is the prepared input, `table` what is published, with `values` where these are two tables; `losses` are
    the mean losses of earlier releases by number, for the trend; `origin` names the input. No seed is told: with the
    key of the home it would undo the shuffling.
    """
    from reveil.report.content import ReportSource

    write_json(private / "certificate.json", certificate.to_dict())
    write_json(private / "plan.json", {"loss": loss.to_dict(), **plan.to_dict()})
    seen = (frame, table, certificate, plan, loss, verification, policy, background, history)
    write_pages(private, ReportSource(*seen, losses or {}, today(), values=values, origin=origin))


def write_pages(private: Path, source: ReportSource) -> None:
    """Both reports, from what they are made from."""
    from reveil.report.content import contents  # with its template engine, too slow for `reveil --help`

    for content, name in zip(contents(source), ("report.html", "report-external.html"), strict=True):
        (private / name).write_text(render(content), encoding="utf-8")


def today() -> str:
    """The day on which a report is made, in words."""
    now = datetime.datetime.now(datetime.UTC).date()
    return f"{now.day} {now:%B %Y}"


def render(content: Content) -> str:
    """One report as HTML text."""
    from markupsafe import Markup

    from reveil.history.returning import sentence
    from reveil.report.exposure import facts

    return _template().render(
        content=content,
        css=Markup(asset("report.css")),  # ours, and no value ever gets into it
        plots=_plots(content),
        risk=[(label, _written(a), _written(b)) for label, a, b in facts(content.exposure)],
        small=[(line.label, _percent(line.before), _percent(line.after)) for line in content.exposure.small],
        people=sentence(content.certificate.counts, content.certificate.release),
        share=lambda part, whole: _percent(Fraction(part, whole)),
    )


@cache
def _template() -> jinja2.Template:
    import jinja2

    beside = Path(__file__).parent / "__pycache__"  # compiled once, as Python's own modules are
    kept = jinja2.FileSystemBytecodeCache(str(beside)) if os.access(beside, os.W_OK) else None
    rules = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        bytecode_cache=kept,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    rules.filters["coded"] = _coded
    try:
        return rules.get_template("report.html.j2")
    except OSError:  # that the compiled one cannot be kept is no reason to refuse a release
        rules.bytecode_cache = None
        return rules.get_template("report.html.j2")


def _coded(text: str) -> markupsafe.Markup:
    """What stands between backticks is typed as it is."""
    import markupsafe

    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


def asset(name: str) -> str:
    return files("reveil.report").joinpath(name).read_text(encoding="utf-8")


def _plots(content: Content) -> dict[str, Any]:
    from reveil.report.plots import Bar, bars, histogram, line

    loss, trend = content.loss, content.trend
    curves: list[tuple[str, Any]] = []
    if trend is not None:
        names = [f"release {number}" for number in trend.releases]
        wanted = {
            "Rows published": trend.rows,
            "Groups": trend.groups,
            "Counterfeit rows": trend.counterfeits,
            "Mean loss (NCP)": trend.losses,
        }
        curves = [(caption, line(caption, values, names)) for caption, values in wanted.items() if values]
    return {
        "risk": _risk_plot(content),
        "sizes": histogram("Groups by number of rows", loss.sizes, unit="rows in the group"),
        "loss": bars("Loss by column", [Bar(n, value, f"{value:.4f}") for n, value in loss.columns.items()], maximum=1),
        "trend": curves,
    }


def _risk_plot(content: Content) -> Any:
    from reveil.report.plots import Bar, Pair, before_after

    before, after = content.exposure.before, content.exposure.after
    lines = [
        ("Highest risk of a row (prosecutor)", before.prosecutor.maximum, after.prosecutor.maximum),
        ("Average risk of a row (prosecutor)", before.prosecutor.average, after.prosecutor.average),
        ("Share of rows above 0.09", before.prosecutor.above, after.prosecutor.above),
        ("Expected share of right links (marketer)", before.marketer, after.marketer),
    ]
    pairs = [
        Pair(label, Bar("Before", float(a), _percent(a)), Bar("After", float(b), _percent(b), b > MUCH))
        for label, a, b in lines
    ]
    return before_after("Risk before and after", pairs)


def _written(value: Fraction | int) -> str:
    return f"{value:,}" if isinstance(value, int) else _percent(value)


def _percent(value: Fraction) -> str:
    """A share for readers; a small one is not rounded to nothing, a large one not to everything.

    >>> [_percent(Fraction(n, 100_000)) for n in (20_000, 1, 99_999, 0)]
    ['20.0%', 'under 0.1%', 'over 99.9%', '0%']
    """
    if value in (0, 1):
        return f"{int(value):.0%}"
    if value < Fraction(1, 1000):
        return "under 0.1%"
    return "over 99.9%" if value > Fraction(999, 1000) else f"{float(value):.1%}"
