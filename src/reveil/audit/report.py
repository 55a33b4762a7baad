"""What an audit found, for people: a summary for the terminal, and one HTML file that needs nothing else.

The external version names classes and counts, never people, groups or their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from reveil.audit.api import Audit
from reveil.audit.explain import Explanation, words
from reveil.audit.score import Standing
from reveil.report.plots import Bar, bars, line
from reveil.words import some, some_people

CRITERIA = ("singling out", "linkability", "inference")
MORE_KNOWN = "(where more people of one group are known than the promise allows for, it says nothing)"
UNDECIDED = (
    "Undecided: counting was too long and the search found no end in time. They may or may not be exposed; raise the "
    "limit, or name people to look at them alone."
)


def lines(found: Audit) -> str:
    """The summary for the terminal."""
    s = found.summary
    out = [
        f"Audit of {some(s['releases'], 'release')}: {some(s['rows'], 'row')} in {some(s['groups'], 'group')}, "
        f"{some_people(s['people'])}, {some(s['counterfeits'], 'counterfeit')}.",
        f"Adversary: {s['adversary']}",
        "",
        f"  exposed with certainty   {s['exposed']:,} of {some_people(s['people'] - s['known'])} not known beforehand",
        f"  guessed above 1/2        {s['above_half']:,}",
    ]
    if s["promise"] is not None:
        out.append(f"  above the promise {s['promise']:<6} {s['above_promise']:,}")
    if s["promise"] is not None and s["above_promise"] and s["known"] > 1:
        out.append(f"    {MORE_KNOWN}")
    if s["highest"] is not None:
        out.append(f"  highest belief           {s['highest']:.4f}")
    if s["posterior_of_truth"] is not None:
        out.append(f"  mean belief in the truth {s['posterior_of_truth']:.4f}")
    if s["certain_by_draw"]:
        out.append(f"  exposed by draw          {', '.join(f'{n:,}' for n in s['certain_by_draw'])}")
    if s["undecided"]:
        out.append(f"  undecided                {s['undecided']:,}. {UNDECIDED}")
    if s["without_belief"]:
        out.append(
            f"  no belief computed       {s['without_belief']:,} (components too large to count; --samples N estimates)"
        )
    if s["trend"]:
        out += ["", "  after release  people  exposed"]
        out += [f"  {row['release']:>13}  {row['people']:>6,}  {row['exposed']:>7,}" for row in s["trend"]]
    out += ["", "  attack                   success  baseline  targets"]
    out += [f"  {a.name:<24} {a.rate:>7.1%}  {a.baseline:>8.1%}  {a.targets:>7,}" for a in found.attacks]
    if found.standings:
        out += ["", *(f"  {standing_text(standing)}" for standing in found.standings)]
    for told in found.explanations:
        out += ["", f"{told.person}, release {told.release}: {told.value}", f"  {told}"]
    return "\n".join(out)


def standing_text(s: Standing) -> str:
    """What is believed of one person, in a sentence."""
    where = f"{s.person}, {'release' if len(s.releases) == 1 else 'releases'} {words(s.releases)}"
    value, best = s.beliefs[0]
    if s.known:
        return f"{where}: {value}, known beforehand."
    if s.certain:
        return f"{where}: {value}, with certainty."
    what = "nothing is certain" if s.settled else "not settled in time, nothing was found"
    if best is None:
        return f"{where}: {what}. Possible: {words((v for v, _ in s.beliefs), 'or')}; how likely was not computed."
    others = words((f"{v} {p:.4f}" for v, p in s.beliefs[1:] if p is not None), "and")
    return f"{where}: {what}. Best guess: {value}, with {best:.4f}; then {others}."


def write_html(found: Audit, path: Path, *, external: bool = False) -> None:
    """One offline HTML report."""
    path.write_text(html(found, external=external), encoding="utf-8")


def html(found: Audit, *, external: bool = False) -> str:
    """The report as text."""
    css = files("reveil.report").joinpath("report.css").read_text(encoding="utf-8")
    body = Markup("").join(_sections(found, external))
    kind = "external" if external else "internal"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Audit report</title>'
        f"<style>{css}</style></head><body><main><header>"
        f'<p class="kicker">Reveil · audit · <span class="badge">{kind}</span></p>'
        f"<h1>What an adversary can work out</h1></header>{body}</main></body></html>\n"
    )


def _sections(found: Audit, external: bool) -> list[Markup]:
    s = found.summary
    verdict = "Nobody was found exposed." if found.holds else "People are exposed."
    sections = [
        Markup('<section class="decision{}"><h2>{}</h2><p>{}</p></section>').format(
            "" if found.holds else " broken", verdict, s["adversary"]
        ),
        _tiles(s),
        _advice(found),
    ]
    if s["undecided"]:
        note = f"{some_people(s['undecided'])}. {UNDECIDED}"
        sections.append(Markup('<div class="warning" role="note"><b>Not settled</b><p>{}</p></div>').format(note))
    if len(s["trend"]) > 1:
        labels = [f"release {row['release']}" for row in s["trend"]]
        plot = line("People exposed after each release", [row["exposed"] for row in s["trend"]], labels)
        sections.append(
            Markup("<h2>Release by release</h2><figure><figcaption>People exposed</figcaption>{}</figure>").format(plot)
        )
    sections.append(_attacks(found))
    if not external and found.standings:
        told = Markup("").join(Markup("<li>{}</li>").format(standing_text(one)) for one in found.standings)
        sections.append(Markup("<h2>People asked about</h2><ul>{}</ul>").format(told))
    if not external:
        sections += [Markup("<h2>Who, and why</h2>"), *(_case(found, told) for told in found.explanations)]
        if not found.explanations:
            sections.append(Markup("<p>Nobody's value follows with certainty.</p>"))
    sections.append(_method(s))
    return sections


def _tiles(s: dict[str, Any]) -> Markup:
    tiles = [
        (f"{s['exposed']:,}", f"of {some_people(s['people'] - s['known'])} exposed with certainty"),
        (f"{s['above_half']:,}", "guessed with more than one half"),
        (f"{s['above_promise']:,}" if s["promise"] else "–", f"above the promise {s['promise'] or '(none stated)'}"),
        ("–" if s["highest"] is None else f"{s['highest']:.3f}", "highest belief in anybody's value"),
    ]
    return Markup('<div class="tiles">{}</div>').format(
        Markup("").join(Markup('<div class="tile"><b>{}</b><span>{}</span></div>').format(*tile) for tile in tiles)
    )


def _attacks(found: Audit) -> Markup:
    """The three questions of data protection authorities first, then every attack with what it does."""
    criteria = [a for a in found.attacks if a.name in CRITERIA]
    bars_of = [Bar(a.name, a.rate, f"{a.rate:.1%} (guessing {a.baseline:.1%})") for a in criteria]
    row = Markup("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>")
    rows = Markup("").join(
        row.format(a.name, a.meaning, f"{a.rate:.1%}", f"{a.baseline:.1%}", f"{a.low:.1%} to {a.high:.1%}")
        for a in found.attacks
    )
    return Markup(
        "<h2>Three questions about anonymous data</h2>"
        "<figure><figcaption>How often each succeeds</figcaption>{}</figure>"
        "<h2>Attacks by name</h2><table><thead><tr><th>Attack</th><th>It succeeds if</th><th>Success</th>"
        "<th>Guessing</th><th>95 % interval</th></tr></thead><tbody>{}</tbody></table>"
    ).format(bars("Singling out, linkability, inference", bars_of, maximum=1.0), rows)


def _advice(found: Audit) -> Markup:
    """What a privacy officer can do about it."""
    s = found.summary
    if found.holds and not s["undecided"]:
        text = "For this adversary nothing follows with certainty. Ask whether anybody could know more than is assumed."
    elif found.holds:
        text = "Nothing was found, but not everybody was settled. Do not rely on this before they are."
    else:
        text = (
            "What is published cannot be taken back. Do not add a release that regroups these people; read below why "
            "they are exposed, and publish further releases under a guarantee for series, such as compromise-safety."
        )
    return Markup("<p>{}</p>").format(text)


def _case(found: Audit, told: Explanation) -> Markup:
    reasons = Markup("").join(Markup("<li>{}</li>").format(sentence) for sentence in told.sentences)
    return Markup("<h3>{}, release {}: {}</h3>{}<ol>{}</ol><p class='soft'>{}</p>").format(
        told.person, told.release, told.value, picture(found, told), reasons, told.change
    )


def picture(found: Audit, told: Explanation) -> Markup:
    """The groups that a story speaks of, release by release, with the person's path through them."""
    o, m = found.observed, found.inference.model
    columns: dict[int, list[int]] = {}
    for factor in told.groups:
        group = int(m.cell_group[m.cell_start[factor]])
        columns.setdefault(int(o.group_release[group]), []).append(factor)
    number = o.persons.cast(str).to_list().index(told.person) if o.people else -1
    releases = sorted(columns)
    parts, path = [], []
    for x, release in enumerate(releases):
        left = 100 * x / len(releases)
        parts.append(f'<text x="{left + 1:.1f}%" y="12" class="small">release {escape(o.releases[release])}</text>')
        for y, factor in enumerate(columns[release][:4]):
            names = _names(found, factor)
            mine = number in _members(found, factor)
            top = 20 + 46 * y
            parts.append(
                f'<rect x="{left + 1:.1f}%" y="{top}" width="{100 / len(releases) - 3:.1f}%" height="38" rx="4" '
                f'class="{"bar" if mine else "track"}" opacity="0.35"/>'
                f'<text x="{left + 2:.1f}%" y="{top + 23}" class="small">{escape(names)}</text>'
            )
            if mine:
                path.append((left + 1, left + 100 / len(releases) - 2, top + 19))  # its left and right edge
    for (_, x1, y1), (x2, _, y2) in pairwise(path):
        parts.append(f'<line x1="{x1:.1f}%" y1="{y1}" x2="{x2:.1f}%" y2="{y2}" class="stroke"/>')
    tall = 30 + 46 * max((min(4, len(c)) for c in columns.values()), default=1)
    title = f"Groups on the way to {told.person}"
    return Markup(
        f'<svg class="plot" role="img" width="100%" height="{tall}"><title>{escape(title)}</title>'
        f"<desc>{escape(str(told))}</desc>{''.join(parts)}</svg>"
    )


def _members(found: Audit, factor: int) -> Sequence[int]:
    m = found.inference.model
    apps = m.factor_apps[m.factor_start[factor] : m.factor_start[factor + 1]]
    members: list[int] = m.observed.app_person[apps].tolist()
    return members


def _names(found: Audit, factor: int) -> str:
    names = [str(found.observed.persons[p]) for p in _members(found, factor)]
    return ", ".join(names[:6]) + (" …" if len(names) > 6 else "")


def _method(s: dict[str, Any]) -> Markup:
    known = {
        "uniform": "groups by themselves, in closed form",
        "filters": "groups by themselves, possible values only",
        "exact": "counted world by world",
        "possible": "shown by worlds next to a known one: what is possible is settled, beliefs are not",
        "search": "searched for worlds: what is possible is settled, beliefs are not",
        "undecided": "not settled in time",
        "not looked at": "outside the people asked about",
    }
    rows = Markup("").join(
        Markup("<tr><th>{}</th><td>{}</td></tr>").format(known.get(name, name), f"{count:,}")
        for name, count in s["components"].items()
    )
    return Markup(
        "<h2>How it was found</h2><p>A component is a set of groups linked by people whose values are still open. "
        "This audit says what follows for this adversary; a stronger one may learn more.</p>"
        "<table class='pairs'>{}</table>"
    ).format(rows)
