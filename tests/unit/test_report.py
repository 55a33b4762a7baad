"""Reports: what they say, what the external one must never say, and that they stand alone."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.background.loading import load_background
from reveil.history.history import History
from reveil.measure.risk import class_risk, risk_change
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.policy.policy import load_policy
from reveil.report.content import ReportSource, contents, policy_text
from reveil.report.explain import entries
from reveil.report.exposure import BOUND, exact_sizes, exposure, facts, size_risk
from reveil.report.judgement import judged
from reveil.report.make import render, write_reports
from reveil.report.plots import Bar, bars, histogram, line
from reveil.report.shapes import draw
from reveil.report.toml_text import toml_text
from reveil.verify.certificate import Certificate, certify
from reveil.verify.judges.contract import Verdict
from reveil.verify.verify import Check, Verification

VOID = {"meta", "br", "link", "img", "hr", "input"}
ILLNESSES = ["<script>alert('Zyxoma')</script>", 'Qux & "Brontis"', "Lupwurz", "Kardolith", "</style>Mirzen"]
TOWNS = ["<b>Ödernheim</b>", "Klamm'stadt", "Vörde&Söhne", "Xanthippe"]
POLICY: dict[str, Any] = {
    "series": {"name": "ward <i>7</i>"},
    "columns": {
        "patient": "identifier",
        "age": "quasi",
        "town": {
            "role": "quasi",
            "weight": 2,
            "hierarchy": {"Quorland": TOWNS[:2], "Zwirnland": TOWNS[2:]},
        },
        "stage": {"role": "quasi", "order": ["ein", "zwoa", "drui"]},
        "notes of the ward": "drop",
        "illness": "sensitive",
        "cost <EUR>": "insensitive",
    },
    "values": {"change": "never"},
    "guarantee": {"model": "l-diversity", "l": 2, "k": 3},
}
SECRETS = [*ILLNESSES, *TOWNS, "Quorland", "Zwirnland", "zwoa", "drui", "PAT-", "notes of the ward", "patient"]


def people(rows: int, start: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(rows)
    return pl.DataFrame(
        {
            "patient": [f"PAT-{start + n:05d}" for n in range(rows)],
            "age": rng.integers(20, 90, rows),
            "town": [TOWNS[n] for n in rng.integers(0, 4, rows)],
            "stage": [["ein", "zwoa", "drui"][n] for n in rng.integers(0, 3, rows)],
            "notes of the ward": ["Geheimnotiz"] * rows,
            "illness": [ILLNESSES[n % 5] for n in range(rows)],
            "cost <EUR>": rng.integers(100, 999, rows),
        }
    )


class Page(HTMLParser):
    """Parses strictly enough to notice a tag that came from a value."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.faults: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"stray </{tag}>")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def check_stands_alone(html: str) -> Page:
    page = Page(html)
    assert not page.faults and not page.open
    assert not page.tags & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "image",
        "use",
        "i",
        "eur",
    }  # the last two are in names
    assert not page.attributes & {"src", "href", "srcset", "style", "onload", "onclick"}
    for reference in ("http", "src=", "@import", "url("):
        assert reference not in html.lower()
    assert not re.search(r"\b(compliant|certified|safe)\b", html, re.IGNORECASE)
    return page


def check_reveals_nothing(html: str, secrets: list[str]) -> None:
    page = Page(html)
    for secret in secrets:
        assert secret not in html and escape(secret) not in html, secret
        assert secret not in page.text, secret


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The private half of the second release of a series with hostile names and values."""
    series = reveil.open_series(POLICY, home=tmp_path_factory.mktemp("home"))
    series.publish(people(200), seed=1)
    released = series.publish(people(240), seed=2).path
    assert released is not None
    return released / "private"


@pytest.fixture(scope="module")
def internal(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def external(folder: Path) -> str:
    return (folder / "report-external.html").read_text(encoding="utf-8")


def test_both_stand_alone_and_begin_with_the_decision(internal: str, external: str) -> None:
    for html in (internal, external):
        text = check_stands_alone(html).text
        assert "The promise holds." in text
        assert "Promised: l-diversity , k = 3, l = 2" in text
        assert text.index("The promise holds.") < text.index("rows published") < text.index("What was assumed")
        assert "ward <i>7</i>, release 2" in text
        assert "240 rows published" in text and "0 rows withheld" in text
        assert "is a promise about one table" in text
        assert text.index("is a promise about one table") < text.index("What was promised")
        assert "k = 11" in text and "strictly: k = 12" in text
        assert "The series so far" in text and "2 releases" in text


def test_the_external_report_names_no_value(external: str) -> None:
    check_reveals_nothing(external, SECRETS)
    text = Page(external).text
    assert "illness" in text and "cost <EUR>" in text  # published columns are named
    assert "2 columns of the input are not part of the release" in text
    assert "published as it is" in text and "generalised along a stated hierarchy" in text


def test_the_internal_report_has_what_the_publisher_needs(internal: str) -> None:
    text = Page(internal).text
    assert "PAT-" not in text and "Geheimnotiz" not in text  # nobody needs these
    assert "notes of the ward dropped removed" in text
    assert "every class has at least 2 different values".capitalize() in text
    assert 'patient = "identifier"' in text and "Quorland" in text  # the policy, to do it again
    assert "Decision of the publisher" in text
    assert "rows moved between groups" in text  # statistics of the planner


def test_a_single_release_has_no_series_section(tmp_path: Path) -> None:
    reveil.anonymize(people(100), POLICY, seed=77_777_777, out=tmp_path / "out")
    text = Page((tmp_path / "out/private/report.html").read_text(encoding="utf-8")).text
    assert "The series so far" not in text
    assert "it does not hold for it together with other releases" in text


# --- direct: what planners, judges and certificates may bring -------------------------------------------------


def source(**changes: Any) -> ReportSource:
    """A release of 60 rows in 12 groups, with a secret in every free text there is."""
    frame = people(60).drop("notes of the ward")
    policy = load_policy(POLICY)
    groups = (np.arange(60) // 5).astype(np.int32)
    table = frame.drop("patient").with_columns(pl.Series("group", groups), pl.lit("[20-89]").alias("age"))
    verdict = Verdict(
        "l-diversity",
        "every class has Lupwurz",
        "Lupwurz is everywhere",
        True,
        Fraction(1, 3),
        Fraction(1, 2),
        details={"column": "illness", "example": "Lupwurz", "values": {"Lupwurz": 3, "Kardolith": 1}},
    )
    plan = Plan(
        groups,
        "mondrian",
        reasons={"too many Kardolith": 4},
        statistics={"kept of Lupwurz": 7, "loss by round": [5, 4, 3.5], "by town": {"Xanthippe": 3}},
    )
    check = Check("values", True, "Kardolith was found 12 times")
    verification = Verification((check,), (verdict,), 60, 12, 0, tuple([5] * 12))
    certificate = certify(
        verification, policy, release=None, rows=64, reasons=plan.reasons, hashes={"table.csv": "ab" * 32}
    )
    assumptions = (*certificate.assumptions, "Only Lupwurz is protected.", "Nobody knows 'ab'.")
    base = ReportSource(
        frame=frame,
        table=table,
        certificate=replace(certificate, assumptions=assumptions),
        plan=plan,
        loss=Loss({"age": 0.5, "town": 0.25, "stage": 0.0}, 0.25, 300, 5.0, {5: 12}),
        verification=verification,
        policy=policy,
        background=load_background(policy),
        history=History(),
        losses={},
        made="1 May 2030",
    )
    return replace(base, **changes)


def test_free_texts_stay_inside() -> None:
    inside, outside = (render(content) for content in contents(source()))
    for secret in ("Lupwurz", "Kardolith", "Xanthippe"):
        assert secret in inside
    check_reveals_nothing(outside, ["Lupwurz", "Kardolith", "Xanthippe", "'ab'"])
    text = Page(outside).text
    assert "2 sentences are left out" in text
    assert "Each row is about one person" in text
    assert "Bound 1/2 (0.5000); worst found 1/3 (0.3333)." in text
    assert "In every group of look-alikes" in text  # explained in general instead


def test_no_report_tells_a_seed(tmp_path: Path) -> None:
    private = reveil.anonymize(people(100), POLICY, seed=987_654_321, out=tmp_path / "out").path / "private"  # type: ignore[operator]
    for name in ("report.html", "report-external.html", "certificate.json", "plan.json"):
        text = (private / name).read_text(encoding="utf-8")
        assert "987654321" not in text and "987,654,321" not in text


def test_values_that_are_protected_by_name_stay_inside() -> None:
    policy = load_policy({**POLICY, "guarantee": {"model": "k-anonymity", "k": 3}})
    named = policy.guarantee.model_copy(update={"stated": {**policy.guarantee.stated, "protect": ("Lupwurz",)}})
    inside, outside = (render(c) for c in contents(source(policy=policy.model_copy(update={"guarantee": named}))))
    assert "protect = Lupwurz" in Page(inside).text
    assert "Lupwurz" not in outside and "protect = stated in the policy" in Page(outside).text


def test_withheld_rows_say_why_inside_and_only_how_many_outside() -> None:
    inside, outside = (Page(render(content)).text for content in contents(source()))
    assert "too many Kardolith 4" in inside
    assert "4 rows withheld (6.2% of 64)" in outside and "would break the promise" in outside


def test_a_broken_promise_is_said_first() -> None:
    broken = source()
    bad = replace(broken.verification.verdicts[0], holds=False)
    verification = replace(broken.verification, verdicts=(bad,))
    certificate = replace(broken.certificate, holds=False)
    for content in contents(replace(broken, verification=verification, certificate=certificate)):
        text = Page(render(content)).text
        assert "The promise does not hold." in text and "The promise holds." not in text
        assert "l-diversity of illness ✗ does not hold" in text


@pytest.mark.parametrize("name", [entry.name for entry in entries().values() if entry.kind == "guarantee"])
def test_the_words_of_every_guarantee_are_careful(name: str) -> None:
    base = source()
    verdict = replace(base.verification.verdicts[0], guarantee=name)
    changed = replace(base, verification=replace(base.verification, verdicts=(verdict,)))
    check_stands_alone(render(contents(changed)[1]))


def test_a_guarantee_without_an_explanation_is_still_reported() -> None:
    base = source()
    verdict = replace(base.verification.verdicts[0], guarantee="brand-new-promise")
    changed = replace(base, verification=replace(base.verification, verdicts=(verdict,)))
    assert "brand-new-promise of illness ✓ holds" in Page(render(contents(changed)[1])).text


def history() -> History:
    groups = {"release": [1, 1, 2], "group": [0, 1, 0], "rows": [5, 6, 9], "counterfeits": [0, 1, 0]}
    return History(head=2, groups=pl.DataFrame(groups))


def certificate_of(number: int) -> Certificate:
    return replace(source().certificate, release=number)


def test_the_trend_comes_from_the_history() -> None:
    content, _ = contents(source(history=history(), certificate=certificate_of(3), losses={1: 0.4, 2: 0.3}))
    assert content.trend is not None
    assert content.trend.releases == (1, 2, 3)
    assert content.trend.rows == (11, 9, 60)
    assert content.trend.groups == (2, 1, 12)
    assert content.trend.counterfeits == (1, 0, 0)
    assert content.trend.losses == (0.4, 0.3, 0.25)
    assert "3 values from release 1 to release 3: first 0.4, last 0.25" in render(content)


def test_a_trend_with_gaps_is_not_drawn() -> None:
    content, _ = contents(source(history=history(), certificate=certificate_of(3), losses={2: 0.3}))
    assert content.trend is not None and content.trend.losses == ()
    assert "Mean loss (NCP)" not in Page(render(content)).text


def test_a_release_of_600_000_rows_stays_small(tmp_path: Path) -> None:
    rows = 600_000
    rng = np.random.default_rng(1)
    towns = [f"town {n}" for n in range(3000)]
    policy = load_policy(
        {
            "columns": {"age": "quasi", "town": {"role": "quasi", "hierarchy": {"all": towns}}, "ill": "sensitive"},
            "guarantee": {"k": 5},
        }
    )
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 100_000, rows),
            "town": pl.Series(towns).gather(rng.integers(0, 3000, rows)),
            "ill": rng.integers(0, 50, rows),
        }
    )
    sizes = rng.geometric(0.01, 6_000) + 4
    groups = np.minimum(np.searchsorted(np.cumsum(sizes), np.arange(rows), side="right"), 5_999).astype(np.int32)
    found, counts = np.unique(np.bincount(groups), return_counts=True)
    loss = Loss({"age": 0.1, "town": 0.2}, 0.15, 10**12, 100.0, dict(zip(found.tolist(), counts.tolist(), strict=True)))
    statistics = {
        "long": list(range(50_000)),
        "many": {f"k{n}": n for n in range(9_000)},
        "deep": [[["x" * 99] * 99] * 9],
    }
    plan = Plan(groups, "mondrian", statistics=statistics)
    verification = Verification((), (), rows, 6_000, 0, tuple(np.sort(np.bincount(groups)).tolist()))
    certificate = certify(verification, policy, release=1, rows=rows, reasons={}, hashes={})
    write_reports(
        tmp_path, frame, frame, certificate, plan, loss, verification, policy, load_background(policy), History()
    )
    for name in ("report.html", "report-external.html"):
        assert 5_000 < (tmp_path / name).stat().st_size < 200_000
        check_stands_alone((tmp_path / name).read_text(encoding="utf-8"))
    assert (tmp_path / "certificate.json").exists() and (tmp_path / "plan.json").exists()


# --- risk ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_exact_sizes_are_those_of_a_group_by(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def gaps(values: list[Any]) -> list[Any]:
        return [None if hole else value for value, hole in zip(values, rng.random(300) < 0.1, strict=True)]

    frame = pl.DataFrame(
        {
            "n": gaps(rng.integers(-3, 3, 300).tolist()),
            "f": gaps((rng.integers(0, 3, 300) / 2).tolist()),
            "s": gaps([["a", "b"][n] for n in rng.integers(0, 2, 300)]),
            "d": pl.Series(gaps(rng.integers(0, 3, 300).tolist()), dtype=pl.Int32).cast(pl.Date),
            "none": pl.Series([None] * 300, dtype=pl.Int64),
            **({"wide": rng.choice([-(1 << 62), 1 << 62], 300)} if seed % 2 else {}),
        }
    )
    expected = sorted(frame.group_by(frame.columns).len()["len"].to_list())
    assert sorted(exact_sizes(frame).tolist()) == expected


def test_risk_by_sizes_is_the_risk_of_the_classes() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        sizes = rng.integers(1, 30, rng.integers(0, 40))
        assert size_risk(sizes, 3) == class_risk(sizes, BOUND, suppressed=3)


def test_risk_before_and_after_agrees_with_the_slow_measure(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    everybody = pl.DataFrame(
        {"age": rng.integers(20, 30, 400), "sex": [["f", "m"][n] for n in rng.integers(0, 2, 400)]}
    )
    everybody.write_csv(tmp_path / "everybody.csv")
    original = everybody.head(90)
    content = {
        "columns": {"age": "quasi", "sex": "quasi"},
        "guarantee": {"model": "presence", "population": "everybody.csv", "delta_max": "0.9", "k": 3},
        "method": {"recode": "sets"},
    }
    policy = load_policy(content).model_copy(update={"folder": tmp_path})
    release = reveil.anonymize(original, policy, seed=3, out=tmp_path / "out")
    wanted = risk_change(release.table, original, policy, threshold=BOUND, population=everybody)
    text = Page((tmp_path / "out/private/report.html").read_text(encoding="utf-8")).text
    assert "Journalist (looks for anyone in the population): highest risk" in text
    assert wanted.before.journalist is not None and wanted.after.journalist is not None
    expected = (
        f"highest risk {float(wanted.before.journalist.maximum):.1%} {float(wanted.after.journalist.maximum):.1%}"
    )
    assert f"Journalist (looks for anyone in the population): {expected}" in text
    assert f"right links {float(wanted.before.marketer):.1%} {float(wanted.after.marketer):.1%}" in text


def test_anatomy_is_not_said_to_hide_rows(tmp_path: Path) -> None:
    guarantee = {"model": "l-diversity", "l": 2}
    policy = {**POLICY, "guarantee": guarantee, "method": {"publish": "anatomy", "people": "exact"}}
    reveil.anonymize(people(100), policy, seed=3, out=tmp_path / "out")
    for name in ("report.html", "report-external.html"):
        html = (tmp_path / "out/private" / name).read_text(encoding="utf-8")
        text = check_stands_alone(html).text
        assert "People are published with their quasi-identifiers as they are." in text
        assert "highest risk 100% 100%" in text
        assert "generalised" not in text
    check_reveals_nothing(html, SECRETS)


def test_small_groups_are_counted_by_each_k() -> None:
    given = source()
    found = exposure(given.frame, [4, 11, 12, 20], given.plan, given.policy, None)
    after = {found_line.label: found_line.after for found_line in found.small}
    assert after["0.09, as spoken of: k = 11"] == Fraction(4, 47)
    assert after["0.09, strictly: k = 12"] == Fraction(15, 47)
    assert after["0.05: k = 20"] == Fraction(27, 47)
    assert after["k = 3, as promised"] == 0
    assert ("Smallest such group", 1, 4) in facts(found)


# --- shapes, plots, policy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (3, "<th>it</th><td>3</td>"),
        (1 << 60, "1,152,921,504,606,846,976"),
        (Fraction(1, 4), "<td>0.25</td>"),
        (True, "<td>yes</td>"),
        (None, "<td>–</td>"),
        ("<x>", "<td>&lt;x&gt;</td>"),
        (float("nan"), "<td>nan</td>"),
        ([1, 5, 2], "3 values from 1 to 3: first 1, last 2, lowest 1, highest 5"),
        ({"<a>": 1, "b": 2.5}, "&lt;a&gt; 1; b 2.5"),
        ({"a": -1, "b": 2}, "<th>a</th><td>-1</td>"),
        ({"a": 1, "b": "x"}, "<th>b</th><td>x</td>"),
        ({"a": [1, 2], "b": [3, 4]}, "<figcaption>b</figcaption>"),
        (
            [{"group": 1, "<c>": 2}, {"group": 3}],
            "<th>&lt;c&gt;</th></tr><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>–</td>",
        ),
        (["a", "<b>", 3], "<p>a, &lt;b&gt;, 3</p>"),
        ([[1, 2], ["</pre>"]], "&lt;/pre&gt;"),
    ],
)
def test_shapes(value: Any, wanted: str) -> None:
    html = draw({"it": value})
    assert wanted in html
    page = Page(str(html))
    assert not page.faults and not page.open


def test_many_entries_are_cut_with_a_count() -> None:
    assert "and 60 more" in draw({"it": {f"k{n}": n for n in range(100)}})
    assert "and 60 more" in draw({"it": [{"n": n} for n in range(100)]})
    assert "and 60 more" in draw({"it": [f"w{n}" for n in range(100)]})
    assert str(draw({"it": list(range(100_000))})).count(",") < 2_000


def test_plots_say_in_words_what_they_show() -> None:
    for plot in (
        bars("T<1>", [Bar("a", 1, "one")]),
        histogram("T<1>", {5: 2, 9: 1}, unit="rows"),
        line("T<1>", [1, 2]),
        line("T<1>", [0]),
    ):
        page = Page(str(plot))
        assert not page.faults and {"title", "desc"} <= page.tags
        assert "T<1>" in page.text


def test_a_histogram_loses_no_group() -> None:
    rng = np.random.default_rng(2)
    for scale in (3, 50, 5_000):
        found, counts = np.unique(rng.geometric(1 / scale, 2_000) + 4, return_counts=True)
        sizes: Mapping[int, int] = dict(zip(found.tolist(), counts.tolist(), strict=True))
        described = re.search(r"<desc>(.*?)</desc>", str(histogram("Sizes", sizes, unit="rows")))
        assert described is not None
        columns = [int(part.rsplit(": ", 1)[1].replace(",", "")) for part in described[1].split("; ")]
        assert sum(columns) == 2_000 and len(columns) <= 14


def test_the_long_tail_of_a_histogram_is_marked() -> None:
    sizes = {**dict.fromkeys(range(5, 60), 100), 900: 1}
    text = Page(str(histogram("Sizes", sizes, unit="rows"))).text
    assert "60+" in text and "60–900 rows: 1" in text


def test_the_printed_policy_is_the_policy() -> None:
    policy = load_policy({**POLICY, "guarantee": {**POLICY["guarantee"], "t": "1/3"}})
    assert load_policy(tomllib.loads(policy_text(policy))).to_dict() == policy.to_dict()


def test_toml_is_read_back() -> None:
    content = {"a b": {'k"e\\y': 'tab\t\x7f quote" é', "n": [1, 2.5, True], "deep": {"x": {"y": ["z"]}, "e": {}}}}
    assert tomllib.loads(toml_text(content)) == content


# --- what to look at first -----------------------------------------------------------------------------------


def points(content: dict[str, Any], loss: Loss, counts: dict[str, int], internal: bool = True) -> dict[str, bool]:
    """The points by their text, and whether each is amber."""
    policy = load_policy(content)
    certificate = certify(
        Verification((), (), 1, 1, 0, (1,)), policy, release=None, rows=counts["input rows"], reasons={}, hashes={}
    )
    told = judged(replace(certificate, counts=counts), policy, loss, internal=internal)
    return {point.text: point.amber for point in told}


COUNTS = {"input rows": 100, "withheld rows": 0, "smallest group": 7, "counterfeit rows": 0}
PLAIN = {"columns": {"age": "quasi", "ill": "sensitive"}, "guarantee": {"model": "l-diversity", "l": 2, "k": 2}}


def test_the_box_on_top_judges_the_release() -> None:
    fine = points(PLAIN, Loss({"age": 0.2}, 0.2, 1, 1.0, {}), COUNTS)
    assert fine == {"The smallest group that looks alike has 7 people.": False}
    coarse = points(PLAIN, Loss({"age": 0.9}, 0.9, 1, 1.0, {}), {**COUNTS, "withheld rows": 6})
    assert coarse["age is too coarse to use (more than 0.8 lost)."]
    assert coarse["6 rows (6.0 %) not shown."]
    few = points(PLAIN, Loss({"age": 0.8}, 0.8, 1, 1.0, {}), {**COUNTS, "withheld rows": 5})
    assert not few["5 rows (5.0 %) not shown."] and not any("coarse" in text for text in few)


def test_values_without_a_bound_are_named_inside_and_counted_outside() -> None:
    series = {
        "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
        "values": {"change": "never"},
        "guarantee": {"model": "compromise-safety", "m": 3, "k": 2, "harmless": ["Lupwurz", "none"]},
        "method": {"publish": "anatomy", "people": "exact"},
    }
    told = {
        internal: points(series, Loss({"age": 0.0}, 0.0, 1, 1.0, {}), COUNTS, internal) for internal in (True, False)
    }
    assert told[True]["Of ill, values are declared harmless, and no bound is promised for them: Lupwurz, none."]
    assert told[False]["Of ill, values are declared harmless, and no bound is promised for them (2)."]
    assert told[False]["People are shown as they are: nobody is hidden among others."]
    assert [any("reveil audit" in text for text in told[internal]) for internal in (True, False)] == [True, False]


def test_the_publisher_sees_rows_as_published_and_where_the_table_came_from(tmp_path: Path) -> None:
    people(60).write_csv(tmp_path / "clinic.csv")
    reveil.anonymize(tmp_path / "clinic.csv", POLICY, seed=1, out=tmp_path / "out")
    inside, outside = (
        (tmp_path / "out/private" / name).read_text(encoding="utf-8")
        for name in ("report.html", "report-external.html")
    )
    digest = hashlib.sha256((tmp_path / "clinic.csv").read_bytes()).hexdigest()
    assert "From clinic.csv." in inside and digest in inside and "clinic.csv" not in outside and digest not in outside
    first = (tmp_path / "out/public/table.csv").read_text(encoding="utf-8").splitlines()[1].split(",")
    assert "".join(f"<td>{escape(cell)}</td>" for cell in first) in inside
    assert '<table class="example">' not in outside
