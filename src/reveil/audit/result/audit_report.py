"""What an audit found, as one HTML file that needs nothing else.

The external version names classes and counts, never people, groups or their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from reveil.audit.result.beside import HEAD, only_together, publisher_rows, publisher_texts, row_texts
from reveil.audit.result.reasons import Reasoning
from reveil.audit.result.screen import (
    CRITERIA,
    EVER,
    MOST,
    UNDECIDED,
    amber,
    among,
    asked_texts,
    guessed,
    not_given,
    plain_texts,
    plain_verdict,
    titled,
)
from reveil.base.words import some, some_people
from reveil.policy.promise import OUTSIDE
from reveil.report.plots import Bar, bars, line

if TYPE_CHECKING:
    from reveil.audit.audit import Audit

MOST_BOXES, MOST_NAMES = 4, 8  # of a picture: groups of a release, people or values of a group


def write_html(audit: Audit, path: Path, *, external: bool = False) -> None:
    """One offline HTML report."""
    path.write_text(html(audit, external=external), encoding="utf-8")


def html(audit: Audit, *, external: bool = False) -> str:
    """The report as text."""
    css = files("reveil.report").joinpath("report.css").read_text(encoding="utf-8")
    body = Markup("").join(_sections(audit, external))
    kind = "external" if external else "internal"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Audit report</title>'
        f"<style>{css}</style></head><body><main><header>"
        f'<p class="kicker">Reveil · audit · <span class="badge">{kind}</span></p>'
        f"<h1>What an adversary can work out</h1></header>{body}</main></body></html>\n"
    )


def _sections(audit: Audit, external: bool) -> list[Markup]:
    s = audit.summary
    sections = [
        Markup('<section class="decision{}"><h2>{}</h2><p>{}</p><p>{}</p></section>').format(
            " broken" if audit.broken else "",
            plain_verdict(audit),
            audit.headline,
            " ".join((*audit.within, s["adversary"])),
        ),
        _shares(audit),
        _plainly(audit),
        _tiles(audit),
        _advice(audit),
        *([_publishers(audit, external)] if audit.publishers else []),
        *([Markup("<h2>What it rests on</h2>"), _listed(audit.reading)] if audit.reading else []),
    ]
    if limits := not_given(audit):
        listed = Markup("").join(Markup("<p>{}</p>").format(text) for text in limits)
        title = '<div class="warning" role="note"><b>What this does not give</b>{}</div>'
        sections.append(Markup(title).format(listed))
    if audit.outside:
        listed = Markup("").join(Markup("<li>{}</li>").format(text) for text in audit.outside)
        sections.append(Markup("<h2>{}</h2><ul>{}</ul>").format(OUTSIDE, listed))
    if audit.unmatched:
        text = '<div class="warning" role="note"><b>People who match nothing</b><p>{}</p></div>'
        sections.append(Markup(text).format(audit.unmatched))
    if s["undecided"]:
        note = f"{some_people(s['undecided'])}. {UNDECIDED}"
        sections.append(Markup('<div class="warning" role="note"><b>Not settled</b><p>{}</p></div>').format(note))
    if audit.crowds is not None:
        sections.append(Markup("<h2>Being in the table</h2><p>{}</p>").format(audit.crowds.sentence()))
    if len(s["trend"]) > 1:
        labels = [f"release {row['release']}" for row in s["trend"]]
        plot = line("People exposed after each release", [row["exposed"] for row in s["trend"]], labels)
        sections.append(
            Markup("<h2>Release by release</h2><figure><figcaption>People exposed</figcaption>{}</figure>").format(plot)
        )
    if audit.classes:
        rows = Markup("").join(
            Markup('<tr><td>{}</td><td class="n">{}</td></tr>').format(text, f"{count:,}")
            for text, count in audit.classes
        )
        head = '<tr><th>What it takes, the least that does</th><th class="n">People</th></tr>'
        table = Markup("<h2>How people are found out</h2><table><thead>{}</thead><tbody>{}</tbody></table>")
        sections.append(table.format(Markup(head), rows))
    sections.append(_attacks(audit))
    if not external and audit.asked:
        told = Markup("").join(Markup("<li>{}</li>").format(text) for text in asked_texts(audit))
        sections.append(Markup("<h2>People asked about</h2><ul>{}</ul>").format(told))
    if not external:
        sections += [Markup("<h2>Who, and why</h2>"), *(_case(audit, told, title) for told, title in titled(audit))]
        if not audit.explanations:
            sections.append(Markup("<p>Nobody's value follows with certainty.</p>"))
    sections.append(_method(s))
    for one in audit.also:
        column = one.observed.reading.column if one.observed.reading is not None else ""
        sections += [Markup("<h1>Column {}</h1>").format(column), *_sections(one, external)]
    return sections


def _publishers(audit: Audit, external: bool) -> Markup:
    """Each publisher alone, and all together."""
    head = Markup("").join(Markup("<th{}>{}</th>").format(_right(n), text) for n, text in enumerate(HEAD))
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td{}>{}</td>").format(_right(n), text) for n, text in enumerate(row_texts(row)))
        )
        for row in publisher_rows(audit)
    )
    names = [] if external else only_together(audit)
    listed = [f"Only together: {', '.join(names[:MOST])}{', …' if len(names) > MOST else ''}."] if names else []
    table = (
        '<h2>Each alone, and all together</h2><div class="wide"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>{}"
    )
    return Markup(table).format(head, rows, _listed([*publisher_texts(audit), *listed]))


def _right(column: int) -> Markup:
    return Markup(' class="n"') if column else Markup("")


def _plainly(audit: Audit) -> Markup:
    """The verdict for people who do not know the words."""
    return _listed(plain_texts(audit))


def _shares(audit: Audit) -> Markup:
    """Everybody as one bar: found out, not settled, neither."""
    s = audit.summary
    people = max(1, len(set(audit.asked)) or s["people"])
    parts = [("bad", s["exposed"], "exposed"), ("warn", s["undecided"], "not settled")]
    parts.append(("ok", max(0, people - s["exposed"] - s["undecided"]), "not exposed"))
    text = ", ".join(f"{count:,} {what}" for _, count, what in parts)
    bar = Markup("").join(
        Markup('<span class="{}" style="flex-grow:{}"></span>').format(kind, count) for kind, count, _ in parts if count
    )
    label = Markup('<div class="shares" role="img" aria-label="{}">{}</div><p class="soft">{}</p>')
    return label.format(f"Of {some_people(people)}: {text}", bar, f"Of {some_people(people)}: {text}.")


def _listed(texts: Sequence[str]) -> Markup:
    return Markup('<ul class="plain">{}</ul>').format(
        Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
    )


def _tiles(audit: Audit) -> Markup:
    s = audit.summary
    tiles = [
        (f"{s['exposed']:,}", f"of {among(audit)} exposed with certainty"),
        (guessed(audit, "above_half"), "guessed with more than one half"),
        (
            guessed(audit, "above_promise") if s["promise"] else "–",
            f"above the promise {s['promise'] or '(none stated)'}"
            f"{audit.in_terms(s['above_promise'], s['beyond_promise'])}",
        ),
        (
            "not computed" if s["highest"] is None else f"{s['highest']:.3f}",
            "highest belief in anybody's value" + (EVER if s["ever_linked"] else ""),
        ),
    ]
    return Markup('<div class="tiles">{}</div>').format(
        Markup("").join(Markup('<div class="tile"><b>{}</b><span>{}</span></div>').format(*tile) for tile in tiles)
    )


def _attacks(audit: Audit) -> Markup:
    """The three questions of data protection authorities first, then every attack with what it does."""
    criteria = [a for a in audit.attacks if a.name in CRITERIA]
    bars_of = [Bar(a.name, a.rate, f"{a.rate:.1%} (guessing {a.baseline:.1%})", amber(a)) for a in criteria]
    number = '<td class="n">{}</td>'
    row = Markup(f'<tr><th>{{}}<span class="label">{{}}</span></th>{number * 3}</tr>')
    rows = Markup("").join(
        row.format(a.name, a.meaning, f"{a.rate:.1%}", f"{a.baseline:.1%}", f"{a.low:.1%} – {a.high:.1%}")
        if a.targets
        else row.format(a.name, a.meaning, "–", "–", "–")
        for a in audit.attacks
    )
    return Markup(
        "<h2>Three questions about anonymous data</h2>"
        "<figure><figcaption>How often each succeeds</figcaption>{}</figure>"
        '<h2>Attacks by name</h2><div class="wide"><table><thead><tr><th>Attack, and when it succeeds</th>'
        '<th class="n">Success</th><th class="n">Guessing</th><th class="n">95 % interval</th></tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(bars("Singling out, linkability, inference", bars_of, maximum=1.0), rows)


def _advice(audit: Audit) -> Markup:
    """What a privacy officer can do about it."""
    s = audit.summary
    if not audit.broken and (s["exposed"] or s["above_promise"]):
        text = (
            "This adversary knows more people than the promise allows for. If anybody could know so many, publish "
            "under a promise that allows for more known people."
        )
    elif not audit.broken and not s["undecided"]:
        text = "For this adversary nothing follows with certainty. Ask whether anybody could know more than is assumed."
    elif not audit.broken:
        text = "Nothing was found, but not everybody was settled. Do not rely on this before they are."
    elif not s["exposed"]:
        text = "Nobody is certain, but guesses are better than promised. Publish nothing more before it is clear why."
    else:
        text = (
            "What is published cannot be taken back. Do not add a release that regroups these people; read below why "
            "they are exposed, and publish further releases under a guarantee for series, such as compromise-safety."
        )
    return Markup("<p>{}</p>").format(text)


def _case(audit: Audit, told: Reasoning, title: str) -> Markup:
    reasons = Markup("").join(Markup("<li>{}</li>").format(sentence) for sentence in told.sentences)
    return Markup("<h3>{}</h3>{}<ol>{}</ol><p class='soft'>{}</p>").format(
        title, picture(audit, told), reasons, " ".join(filter(None, (told.caveat, told.change)))
    )


def picture(audit: Audit, told: Reasoning) -> Markup:
    """The groups that a story speaks of, release by release, those of the person marked: their path."""
    o, m = audit.observed, audit.inference.model
    person = o.persons.cast(str).to_list().index(told.person)
    columns: dict[int, list[int]] = {}
    for factor in told.groups:
        group = int(m.cell_group[m.cell_start[factor]])
        columns.setdefault(int(o.group_release[group]), []).append(factor)
    steps = []
    for release in sorted(columns):
        listed = sorted(columns[release], key=lambda f: person not in _members(audit, f))
        boxes = [_box(audit, factor, person, told.value) for factor in listed[:MOST_BOXES]]
        if len(listed) > MOST_BOXES:
            more = some(len(listed) - MOST_BOXES, "more group")
            boxes.append(Markup('<span class="label">and {}</span>').format(more))
        title = Markup('<span class="label">release {}</span>').format(o.releases[release])
        steps.append(Markup('<div class="step">{}{}</div>').format(title, Markup("").join(boxes)))
    return Markup('<div class="path" role="img" aria-label="Groups on the way to {}">{}</div>').format(
        told.person, Markup("").join(steps)
    )


def _box(audit: Audit, factor: int, person: int, value: str) -> Markup:
    """One group: its number, its people, and what it shows; the person and what they have are marked."""
    m, o = audit.inference.model, audit.observed
    members = sorted(_members(audit, factor), key=lambda p: p != person)
    names = [Markup("<mark>{}</mark>" if p == person else "{}").format(o.persons[p]) for p in members[:MOST_NAMES]]
    names += [Markup("…")] if len(members) > MOST_NAMES else []
    cells = range(m.cell_start[factor], m.cell_start[factor + 1])
    shown = [(str(o.values[m.cell_value[c]]), int(m.cell_cap[c])) for c in cells if m.cell_value[c] >= 0]
    mine = person in members
    shown.sort(key=lambda one: not mine or one[0] != value)  # what follows is never among those left out
    texts = [
        Markup("<mark>{}</mark>" if mine and text == value else "{}").format(text if rows == 1 else f"{text} ({rows})")
        for text, rows in shown[:MOST_NAMES]
    ]
    texts += [Markup("…")] if len(shown) > MOST_NAMES else []
    return Markup('<div class="box{}"><b>group {}</b> {}<span class="label">shows {}</span></div>').format(
        " mine" if mine else "",
        o.group_label[int(m.cell_group[m.cell_start[factor]])],
        Markup(", ").join(names),
        Markup(", ").join(texts),
    )


def _members(audit: Audit, factor: int) -> Sequence[int]:
    m = audit.inference.model
    apps = m.factor_apps[m.factor_start[factor] : m.factor_start[factor + 1]]
    members: list[int] = m.observed.app_person[apps].tolist()
    return members


def _method(s: dict[str, Any]) -> Markup:
    known = {
        "uniform": "groups by themselves, in closed form",
        "filters": "groups by themselves, possible values only",
        "exact": "counted world by world",
        "possible": "shown by worlds next to a known one: what is possible is settled, beliefs are not",
        "two values seen": "everybody has at least two values in worlds; not everything else is settled",
        "search": "searched for worlds: what is possible is settled, beliefs are not",
        "exchangeable": "closed cohorts in which nobody is known: each row is everybody's alike",
        "taken over": "cohorts with newcomers, counted over all ways to give them places",
        "undecided": "not settled in time",
        "equalities too much work": "of these, too large to look for everybody who must have the same value",
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
