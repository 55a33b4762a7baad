"""What an audit found, on the terminal: the verdict and what it rests on, then people by name.

The external version names classes and counts, never people, groups or their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from reveil.audit.result.attacks import Attack
from reveil.audit.result.beside import HEAD, only_together, publisher_rows, publisher_texts, row_texts
from reveil.audit.result.reasons import Reasoning, words
from reveil.audit.result.score import PersonBelief
from reveil.base.words import some, some_people
from reveil.policy.promise import OUTSIDE
from reveil.policy.reasons import REASONS

if TYPE_CHECKING:
    from reveil.audit.audit import Audit

MOST = 20  # people who are listed by name
WIDTH = 110  # of a line on the terminal
NEARLY_ALL = 0.9  # from this share on an answer is amber
CRITERIA = ("singling out", "linkability", "inference")
EVER = " (to have had a value in at least one release)"
UNDECIDED = (
    "Undecided: counting was too long and the search found no end in time. They may or may not be exposed; raise the "
    "limit, or name people to look at them alone."
)


def lines(audit: Audit, *, external: bool = False) -> str:
    """The summary for the terminal; the external one tells of classes instead of people."""
    s = audit.summary
    out = [
        *_first_lines(audit),
        f"Audit of {some(s['releases'], 'release')}: {some(s['rows'], 'row')} in {some(s['groups'], 'group')}, "
        f"{some_people(s['people'])}, {some(s['counterfeits'], 'counterfeit')}.",
        f"Adversary: {s['adversary']}",
        fill(audit.headline, WIDTH),
        *([fill(f"WARNING: {audit.unmatched}", WIDTH)] if audit.unmatched else []),
        "",
        f"  exposed with certainty   {s['exposed']:,} of {among(audit)}",
        f"  guessed above 1/2        {guessed(audit, 'above_half')}{EVER if s['ever_linked'] else ''}",
    ]
    if s["promise"] is not None:
        out.append(f"  above the promise {s['promise']:<6} {guessed(audit, 'above_promise')}")
    out += [fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ") for text in audit.within]
    highest = "not computed" if s["highest"] is None else f"{s['highest']:.4f}"
    out.append(f"  highest belief           {highest}{EVER if s['ever_linked'] and s['highest'] is not None else ''}")
    if s["posterior_of_truth"] is not None:
        out.append(f"  mean belief in the truth {s['posterior_of_truth']:.4f}")
    if s["certain_by_draw"]:
        out.append(f"  exposed by draw          {', '.join(f'{n:,}' for n in s['certain_by_draw'])}")
    if s["undecided"]:
        out.append(f"  undecided                {s['undecided']:,}. {UNDECIDED}")
    if s["without_belief"]:
        out.append(
            f"  no belief computed       {s['without_belief']:,} (too large to count"
            f"; {'samples do not agree in time: raise --limit)' if audit.sampled else '--samples N may estimate it)'}"
        )
    if s["trend"]:
        out += ["", "  after release  people  exposed"]
        out += [f"  {row['release']:>13}  {row['people']:>6,}  {row['exposed']:>7,}" for row in s["trend"]]
    for title, texts in (("What this does not give", not_given(audit)), (OUTSIDE, audit.outside)):
        out += ["", f"  {title}:"] if texts else []
        out += [fill(text, WIDTH, initial_indent="  - ", subsequent_indent="    ") for text in texts]
    if audit.publishers:
        out += ["", *_publisher_lines(audit, external)]
    if audit.crowds is not None:
        out += ["", fill(audit.crowds.sentence(), WIDTH, initial_indent="  ", subsequent_indent="  ")]
    out += ["", *_attack_lines(audit)]
    if audit.classes:
        out += ["", "  exposed because"]
        out += [f"  {count:>7,}  {text}" for text, count in audit.classes]
    out += [] if external else _people_lines(audit)
    for one in audit.also:
        out += ["", "", lines(one, external=external)]
    return "\n".join(out)


def _publisher_lines(audit: Audit, external: bool) -> list[str]:
    """Each publisher alone, and all together."""
    rows = [HEAD, *map(row_texts, publisher_rows(audit))]
    wide = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    out = [
        "  " + "  ".join(cell.ljust(wide[0]) if not n else cell.rjust(wide[n]) for n, cell in enumerate(row))
        for row in rows
    ]
    names = [] if external else only_together(audit)
    listed = [f"Only together: {', '.join(names[:MOST])}{', ...' if len(names) > MOST else ''}."] if names else []
    return [
        *out,
        *(
            fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
            for text in (*publisher_texts(audit), *listed)
        ),
    ]


def _first_lines(audit: Audit) -> list[str]:
    """What must be seen first: how many are undecided, and what was taken for what."""
    s = audit.summary
    people, first = len(set(audit.asked)) or s["people"], []
    if s["undecided"]:
        share = f"{100 * s['undecided'] / max(1, people):.1f} % ({s['undecided']:,} of {some_people(people)})"
        first.append(f"UNDECIDED: {share} may or may not be exposed.")
    return [fill(text, WIDTH, subsequent_indent="  ") for text in (*first, *audit.reading)]


def plain_verdict(audit: Audit) -> str:
    """The verdict for whoever reads nothing else."""
    s = audit.summary
    people = len(set(audit.asked)) or s["people"]
    if s["exposed"]:
        return f"{s['exposed']:,} of {some_people(people)} can be found out."
    if s["undecided"]:
        return f"Nobody was found out, but for {s['undecided']:,} of {some_people(people)} it was not settled."
    if audit.broken:
        return "Nobody can be found out for sure, but people are guessed better than was promised."
    return f"Nobody of {some_people(people)} can be found out for sure."


def plain_texts(audit: Audit) -> list[str]:
    """What was found, in words that need no explanation."""
    s = audit.summary
    people = len(set(audit.asked)) or s["people"]
    clear, where = people - s["exposed"] - s["undecided"], "the published series"
    where = "the published tables" if audit.observed.reading is not None else where
    texts = [f"{some_people(people)} in {where} were attacked, with what anybody can read there and what may be known."]
    told = "what they have follows with certainty. Whoever knows them can look it up."
    texts.append(f"{some_people(s['exposed'])}: {told}" if s["exposed"] else "Nobody's value follows with certainty.")
    if s["undecided"]:
        share = f"{100 * s['undecided'] / max(1, people):.1f} %"
        texts.append(f"{some_people(s['undecided'])} ({share}): this could not be settled: they are not safe.")
    texts.append(f"{some_people(clear)}: at least two different values remain possible.")
    return texts


def guessed(audit: Audit, what: str) -> str:
    """How many are guessed so well, as far as beliefs were computed."""
    s = audit.summary
    others = len(np.unique(audit.observed.app_person[audit.score.targets]))
    if s["without_belief"] and s["without_belief"] + s["exposed"] >= others:
        return f"at least {s[what]:,} (for the others not computed)" if s[what] else "not computed"
    return f"at least {s[what]:,}" if s["without_belief"] else f"{s[what]:,}"


def _people_lines(audit: Audit) -> list[str]:
    """What is believed of those asked about, and why the worst cases are certain."""
    out: list[str] = []
    if audit.asked:
        out += ["", *(f"  {text}" for text in asked_texts(audit))]
    for told, title in titled(audit):
        out += ["", title]
        out += [fill(text, WIDTH, initial_indent="  - ", subsequent_indent="    ") for text in told.sentences]
        notes = filter(None, (told.caveat, told.change))
        out += [fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ") for text in notes]
    return out


def among(audit: Audit) -> str:
    """Of how many people counts are."""
    s, known = audit.summary, audit.inference.model.known
    if audit.asked:
        return f"{some_people(len(set(audit.asked) - known))} asked about"
    return f"{some_people(s['people'] - s['known'])} not known beforehand"


def _attack_lines(audit: Audit) -> list[str]:
    out = ["  attack                   success  guessing  95 % interval     targets"]
    for a in audit.attacks:
        span = f"{a.low:.1%} to {a.high:.1%}"
        if not a.targets:
            out.append(f"  {a.name:<24} not computed")
            continue
        out.append(f"  {a.name:<24} {a.rate:>7.1%}  {a.baseline:>8.1%}  {span:<16}  {a.targets:>7,}")
    out += [f"  {a.name}: {a.meaning}." for a in audit.attacks if not a.targets]
    risk = audit.summary["risk"]
    if risk:
        out += [
            "",
            "  re-identification by group size: "
            f"prosecutor {risk['prosecutor_highest']:.1%} at most, {risk['prosecutor_mean']:.1%} on average; "
            f"journalist {risk['journalist_highest']:.1%} at most; marketer {risk['marketer']:.1%}",
        ]
    return out


def titled(audit: Audit) -> Iterator[tuple[Reasoning, str]]:
    """The worst cases, each with who, when, what, and since when that is certain."""
    for told, person in zip(audit.explanations, audit.score.exposed_people, strict=False):
        since = audit.exposed_first.get(int(person))
        when = f" (certain once release {since} was out)" if since and len(audit.observed.releases) > 1 else ""
        yield told, f"{told.person}, release {told.release}: {told.value}{when}"


def asked_texts(audit: Audit) -> list[str]:
    """What is believed of everybody who was asked about, release by release and over all of them."""
    ever = [text for person in audit.asked if (text := ever_text(audit, person))]
    return [*map(standing_text, audit.standings), *ever, *left_out_texts(audit)]


def left_out_texts(audit: Audit) -> list[str]:
    """What is known of those asked about where they were put in and are not shown."""
    told, o = audit.telling, audit.observed
    if told is None:
        return []
    texts = []
    for place in np.flatnonzero(np.isin(told.left.person, audit.asked)).tolist():
        who, when = o.persons[int(told.left.person[place])], o.releases[int(told.left.release[place])]
        text = f"{who}, release {when}: was in the table and is not shown"
        why = f": {reason}" if (reason := REASONS[told.reason[place]]) else ""
        guess = f" Best guess: {o.values[told.named[place]]}." if told.guessed[place] else ""
        texts.append(f"{text}{why}.{guess}")
    return texts


def ever_text(audit: Audit, person: int) -> str:
    """The value that somebody has most likely had at least once, where values change; empty where it adds nothing."""
    o, change = audit.observed, audit.adversary.change
    apps = range(o.person_start[person], o.person_start[person + 1])
    linked = {value: share for (who, value), share in audit.score.ever.items() if who == person}
    if change == "never" or len(apps) < 2 or not linked or person in audit.inference.model.known:
        return ""
    value = max(linked, key=lambda v: linked[v])
    text = f"{o.persons[person]}, over all releases: {o.values[value]} at least once, with {linked[value]:.4f}"
    if change == "freely":
        mine = audit.score.options.filter(pl.col("app").is_in(apps) & (pl.col("value") == value))
        text += f" = 1 - {' x '.join(f'(1 - {share:.4f})' for share in mine['p'])}"
    return f"{text}."


def standing_text(s: PersonBelief) -> str:
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


def amber(attack: Attack) -> bool:
    """Whether one of the three questions must be answered with yes for nearly everybody, whatever was promised."""
    return attack.targets > 0 and attack.rate >= NEARLY_ALL


def not_given(audit: Audit) -> list[str]:
    """What is found out of nearly everybody though the promise holds, because it does not speak of it."""
    return [
        f"{a.name.capitalize()}: {a.meaning}; this succeeds for {a.rate:.0%} of {a.targets:,}."
        for a in audit.attacks
        if a.name in CRITERIA and amber(a) and not audit.broken
    ]
