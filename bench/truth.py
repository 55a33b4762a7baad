"""Certified means true: random small series, read back from their public bytes, and every world of them listed.

    python bench/truth.py                     (2,000 series; a table in Markdown, and every finding)
    python bench/truth.py --series 60 --first 500 global

Each series goes through `publish`, `verify` and `audit`. What anybody could put together from the public files, and
from who is in which group, is given to the oracles of tests/oracle, which share no code with the package. Then

- no certificate may be below the truth: the worst guess over all worlds, whichever people the promise lets be known,
  is at most what the certificate says was found, and that at most what was promised;
- no audit may be above or below it: all its beliefs, with nobody and with one person known, are those of all worlds.

Values look like codes, ranges, sets and stars; identifiers are spelled in other ways from release to release; values
of a quasi-identifier lie under labels over a single label; some values are harmless; some people are withheld.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

import reveil
from reveil.base.errors import InfeasibleError, InputError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracle import evolving, joint, public, transient, updates, worlds

Group = tuple[tuple[str, ...], tuple[str, ...]]
Release = list[Group]

LABELS = (  # a value is what is written, whatever it looks like
    ("250.10", "250.1", "401.90", "401.9", "V45.1", "E10"),
    ("{x}", "{x,y}", "x", "{", "x,y", '"x"'),
    ("1-3", "[1-3]", "1", "3", "[1-3[", ">=1"),
    ("007", "7", "07", "7.0", "7e0", "0007"),
    ("*", "**", "4*", "47*", "(other)", "NA"),
    ("flu", "Flu", "flu shot", "FLU", "fl\u00fc", "flu,"),
)
TOWNS = {"North": {"Upper": {"Nord": ["n1", "{n2}"]}}, "South": {"Lower": ["1-3", "*s"]}}
PLACES = ("n1", "{n2}", "1-3", "*s")


@dataclass(frozen=True)
class Case:
    """One series: how it is promised, how values change, and what the oracles are told of that."""

    guarantee: Mapping[str, Any]
    labels: Sequence[str]
    moves: Mapping[str, Sequence[str]] | None = None  # what a value may become
    change: str = "never"
    most: int = 9  # people at a time
    method: Mapping[str, Any] = field(default_factory=lambda: {"infeasible": "withhold", "publish": "generalized"})

    @property
    def harmless(self) -> tuple[str, ...]:
        return tuple(self.guarantee.get("harmless", ()))

    @property
    def closed(self) -> bool:
        """Whether people stay in cohorts that show the same values for ever, some perhaps twice: rows are places."""
        return self.change == "never" and (bool(self.harmless) or self.guarantee["model"] == "compromise-safety")

    @property
    def chance(self) -> dict[str, dict[str, Fraction]]:
        assert self.moves is not None
        return {v: dict.fromkeys([v, *more], Fraction(1, 1 + len(more))) for v, more in self.moves.items()}

    def policy(self) -> dict[str, Any]:
        values: dict[str, Any] = {"change": self.change}
        if self.moves is not None:
            values["transitions"] = {value: list(others) for value, others in self.moves.items()}
        columns = {
            "name": "identifier",
            "age": "quasi",
            "town": {"role": "quasi", "type": "category", "hierarchy": TOWNS},
            "ill": {"role": "sensitive", "type": "category"},
        }
        return {
            "columns": columns,
            "values": values,
            "guarantee": dict(self.guarantee),
            "method": dict(self.method),
            "input": {"identifiers": "normalise"},
            "output": {"format": "csv"},
        }


@dataclass(frozen=True)
class Shown:
    """A series as anybody can put it together, and the truth to score it with."""

    releases: list[Release]
    truth: list[dict[str, str]]  # of those who are shown
    withheld: int
    certificates: list[Any]
    series: Any


def lasting(rng: Random, model: str, **terms: Any) -> Case:
    labels = rng.choice(LABELS)
    harmless = {"harmless": [labels[0]]} if terms.pop("mild", True) and rng.random() < 0.4 else {}
    return Case({"model": model, **terms, **harmless}, labels)


def compromise(rng: Random) -> Case:
    c = rng.choice((0, 1, 1, 2))
    refill = rng.choice(("never", "never", max(2, c + 1)))
    return lasting(rng, "compromise-safety", m=c + rng.choice((2, 3)), compromised=c, refill=refill)


def invariance(rng: Random) -> Case:
    return lasting(rng, "m-invariance", m=rng.choice((2, 3)))


def historical(rng: Random) -> Case:
    pairwise = rng.random() < 0.5
    terms = {"closure": "pairwise", "mild": False} if pairwise else {}
    return lasting(rng, "historical-safety", m=rng.choice((2, 3)), n=2, **terms)


def globally(rng: Random) -> Case:
    labels = rng.choice(LABELS)[:4]
    spared = rng.choice(({}, {"protect": list(labels[:2])}, {"harmless": [labels[0]]}))
    spend = rng.choice(({"strategy": "constant-ratio", "horizon": 3}, {"strategy": "greedy"}))
    return Case({"model": "global", "l": rng.choice(("3/2", 2)), **spend, **spared}, labels, change="freely", most=6)


def families(rng: Random) -> tuple[Sequence[str], dict[str, list[str]]]:
    """Six values in pairs that become each other, or alone."""
    labels = list(rng.choice(LABELS))
    rng.shuffle(labels)
    pairs = rng.choice((1, 2, 3))
    moves: dict[str, list[str]] = {value: [] for value in labels}
    for a, b in zip(labels[: 2 * pairs : 2], labels[1 : 2 * pairs : 2], strict=True):
        moves[a], moves[b] = [b], [a]
    return labels, moves


def distinct(rng: Random, star: bool, view: str) -> Case:
    labels, moves = families(rng)
    terms: dict[str, Any] = {"m": 2, "view": view}
    if view == "joint":
        c = rng.choice((0, 1))
        terms |= {"m": c + 2, "compromised": c, "refill": rng.choice(("never", 2))}
        if not star and rng.random() < 0.3:
            terms["harmless"] = [labels[0]]
    name = "m-distinct-star" if star else "m-distinct"
    return Case({"model": name, **terms}, labels, moves, "transitions", most=6)


CASES: dict[str, Callable[[Random], Case]] = {
    "compromise-safety": compromise,
    "m-invariance": invariance,
    "historical-safety": historical,
    "global": globally,
    "m-distinct": lambda rng: distinct(rng, False, "joint"),
    "m-distinct-star": lambda rng: distinct(rng, True, "joint"),
    "m-distinct individual": lambda rng: distinct(rng, False, "individual"),
    "m-distinct-star individual": lambda rng: distinct(rng, True, "individual"),
}
SPELLINGS: tuple[Callable[[int], str], ...] = (lambda n: f"p{n}", lambda n: f" P{n}", lambda n: f"P{n} ")


def tables(case: Case, rng: Random) -> Iterator[tuple[list[str], pl.DataFrame]]:
    """Who is there (by one name each), and the table: people come, stay and go, and are spelled in some way."""
    now: dict[int, tuple[str, int, str]] = {}
    crowd = range(case.most + 3)
    here = set(rng.sample(crowd, rng.randint(case.most // 2, case.most)))
    for _ in range(rng.randint(1, 3)):
        rows = []
        for person in sorted(here):
            value, age, town = now.get(person, ("", rng.randint(20, 23), rng.choice(PLACES)))
            now[person] = _next(case, rng, value), age, town
            value, age, town = now[person]
            rows.append((rng.choice(SPELLINGS)(person), age, town, value))
        yield (
            [f"p{person}" for person in sorted(here)],
            pl.DataFrame(rows, schema=["name", "age", "town", "ill"], orient="row"),
        )
        gone = {person for person in here if rng.random() < 0.3}
        here = (here - gone) | set(rng.sample(crowd, rng.randint(1, 3)))
        while len(here) > case.most:
            here.remove(rng.choice(sorted(here)))


def _next(case: Case, rng: Random, value: str) -> str:
    if value and case.change == "never":
        return value
    if value and case.moves is not None:
        return rng.choice([value, *case.moves[value]])
    skewed = [case.labels[0]] * rng.choice((1, 4))  # now and then a value is too frequent
    return rng.choice([*case.labels, *skewed])


def published(case: Case, rng: Random, folder: Path) -> Shown:
    """What can be published, put together again from the public files."""
    series = reveil.open_series(case.policy(), folder / "home")
    shown = Shown([], [], 0, [], series)
    withheld = 0
    for number, (names, table) in enumerate(tables(case, rng)):
        try:
            made = series.publish(table, seed=number, new_people=True, accept=["same-table"])
        except InfeasibleError:
            continue
        except InputError as error:
            if error.faults[0].code != "R461":  # a value to protect that nobody has yet
                raise
            continue
        groups = made.groups.tolist()
        shown.releases.append(public.groups_of(made.path / "public", "ill", names, groups))
        held = zip(names, groups, table["ill"], strict=True)
        shown.truth.append({name: value for name, group, value in held if group >= 0})
        shown.certificates.append(made.certificate)
        withheld += sum(group < 0 for group in groups)
    return Shown(shown.releases, shown.truth, withheld, shown.certificates, series)


def parts(releases: list[Release]) -> list[list[Release]]:
    """Series of groups that share people: worlds of one say nothing about another."""
    owner: dict[str, int] = {}
    found: dict[int, list[tuple[int, Group]]] = {}
    for when, release in enumerate(releases):
        for number, group in enumerate(release):
            mine = sorted({owner[p] for p in group[0] if p in owner})
            key = mine[0] if mine else 1_000 * when + number
            merged = [entry for old in mine for entry in found.pop(old)]
            found[key] = [*merged, (when, group)]
            owner |= dict.fromkeys((p for _, (people, _) in found[key] for p in people), key)
    return [[[g for w, g in part if w == when] for when in range(len(releases))] for part in found.values()]


def worst_guess(case: Case, releases: list[Release], now: bool = False) -> Fraction:
    """The worst guess over all worlds, in the terms of the promise; of people of the last release and their groups."""
    model, terms = case.guarantee["model"], case.guarantee
    shown = {p for release in (releases[-1:] if now else releases) for people, _ in release for p in people}
    if model == "global":
        return max((worst_link(case, releases, person) for person in shown), default=Fraction(0))
    if terms.get("view") == "individual":
        return max((worst_path(case, releases, person) for person in shown), default=Fraction(0))
    linked = [part for part in parts(releases) if shown & {p for r in part for people, _ in r for p in people}]
    return max((worst_in_part(case, part) for part in linked), default=Fraction(0))


def worst_in_part(case: Case, part: list[Release]) -> Fraction:
    """The same for groups that share people."""
    known = case.guarantee.get("compromised", 0)
    if case.moves is not None:
        cohort = [group for release in part for group in release]
        whole = {v: {w: 12 // (1 + len(more)) for w in (v, *more)} for v, more in case.moves.items()}
        return evolving.worst_guess(cohort, whole, known, case.harmless)
    return worlds.worst_guess(part, known, case.harmless, case.closed)


def worst_link(case: Case, releases: list[Release], person: str) -> Fraction:
    """Being linked to a protected value in any release; releases are independent, and so are groups of one."""
    protect = case.guarantee.get("protect")
    ever, _ = transient.chances([[group] for release in releases for group in release if person in group[0]])
    return max(
        chance if value not in case.harmless and (protect is None or value in protect) else Fraction(0)
        for (who, value), chance in ever.items()
        if who == person
    )


def worst_path(case: Case, releases: list[Release], person: str) -> Fraction:
    """Following one person alone: their likeliest value at any appearance."""
    mine = [Counter(values) for release in releases for people, values in release if person in people]
    return max(chance for found in updates.path_chances(mine, case.chance) for chance in found.values())


def certificate_findings(case: Case, shown: Shown) -> list[str]:
    """Where a certificate is below the truth at its time."""
    found = []
    for number, certificate in enumerate(shown.certificates, 1):
        releases = shown.releases[:number]
        said, bound = stated(case, certificate.verdicts[0])
        truth, here = worst_guess(case, releases), worst_guess(case, releases, now=True)
        if not certificate.holds or here > said or max(said, truth) > bound:
            told = f"the truth is {here} ({truth} with those who are gone)"
            found.append(f"release {number}: {told}, the certificate says {said}, promised {bound}")
        if case.guarantee.get("closure", "pairwise") != "pairwise" and gives_away(releases):
            found.append(f"release {number}: one known person gives another away")
    return found


def stated(case: Case, verdict: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """The worst guess that a certificate speaks of, and the bound."""
    model, view = case.guarantee["model"], case.guarantee.get("view")
    if verdict["statement"] == "the release has no rows":
        return Fraction(1), Fraction(1)
    if model in ("m-invariance", "historical-safety"):  # these say how many values stay possible
        return Fraction(1, case.guarantee["m"]), Fraction(1, case.guarantee["m"])
    if model == "m-distinct" and view == "individual":  # promises that m values stay possible, and says how likely
        return Fraction(verdict["details"]["highest chance of a value"]).limit_denominator(10**6), Fraction(1)
    return Fraction(verdict["worst"]), Fraction(verdict["bound"])


def gives_away(releases: list[Release]) -> bool:
    """Whether knowing one person makes somebody else certain."""
    for part in parts(releases):
        for world in worlds.worlds(part)[:1]:
            if any(worlds.revealed(part, {person: value}) for person, value in world.items()):
                return True
    return False


def audit_findings(case: Case, shown: Shown, rng: Random) -> list[str]:
    """Beliefs of the audit that are not those of all worlds, with nobody and with one person known."""
    everybody = sorted({name for release in shown.truth for name in release})
    found = []
    for chosen in ([], [rng.choice(everybody)]):
        audit = shown.series.audit(people=everybody, compromised=chosen)
        belief = {(p, int(r) - 1, v): share for p, r, v, share in audit.posterior.iter_rows()}
        expected = beliefs(case, shown, chosen)
        wrong = [
            (key, belief.get(key), expected.get(key))
            for key in belief.keys() | expected.keys()
            if belief.get(key) is None or abs(belief[key] - float(expected.get(key, -1))) > 1e-9
        ]
        if wrong:
            found.append(f"with {chosen or 'nobody'} known, {len(wrong)} beliefs differ, such as {wrong[0]}")
    return found


def beliefs(case: Case, shown: Shown, chosen: list[str]) -> dict[tuple[str, int, str], Fraction]:
    """By person, release and value, over all worlds."""
    truth = shown.truth
    expected: dict[tuple[str, int, str], Fraction] = {}
    for part in parts(shown.releases):
        known = {
            (p, r): truth[r][p]
            for r, release in enumerate(part)
            for people, _ in release
            for p in people
            if p in chosen
        }
        if case.moves is not None and case.guarantee["view"] == "joint":
            expected |= place_beliefs(case, part, known)
            continue
        if case.closed:
            expected |= kept_beliefs(part, known)
            continue
        change = case.chance if case.moves is not None else case.change
        _, posterior, _ = joint.beliefs(part, change, None, known)
        expected |= {(p, r, v): share for (p, r), row in posterior.items() for v, share in row.items()}
    return expected


def kept_beliefs(part: list[Release], known: Mapping[tuple[str, int], str]) -> dict[tuple[str, int, str], Fraction]:
    """The same in closed cohorts that show a value twice: rows are places, and counterfeits stay in theirs."""
    told = {person: value for (person, _), value in known.items()}
    possible = [w for w in worlds.placed(part) if all(w[person] == value for person, value in told.items())]
    posterior = worlds.posteriors(possible)
    return {
        (p, r, v): share
        for r, release in enumerate(part)
        for people, _ in release
        for p in people
        for v, share in posterior[p].items()
    }


def place_beliefs(
    case: Case, part: list[Release], known: Mapping[tuple[str, int], str]
) -> dict[tuple[str, int, str], Fraction]:
    """The same in closed cohorts whose counterfeits go on as values do."""
    when = [r for r, release in enumerate(part) for _ in release]
    cohort = [group for release in part for group in release]
    whole = {v: {w: 12 // (1 + len(more)) for w in (v, *more)} for v, more in (case.moves or {}).items()}
    total, sums = 0, Counter[tuple[str, int, str]]()
    for (seen, _, _), weight in evolving.worlds(cohort, whole).items():
        if all(known.get((p, when[turn]), v) == v for (p, turn), v in seen):
            total += weight
            for (p, turn), v in seen:
                sums[p, when[turn], v] += weight
    return {key: Fraction(weight, total) for key, weight in sums.items()}


@dataclass
class Tally:
    series: int = 0
    releases: int = 0
    withheld: int = 0
    worst: Fraction = Fraction(0)
    findings: list[str] = field(default_factory=list)


def judge(name: str, seed: int) -> tuple[Shown, Fraction, list[str]]:
    """One series, from the first table to the last world."""
    rng = Random(f"{name} {seed}")
    case = CASES[name](rng)
    with tempfile.TemporaryDirectory() as folder:
        shown = published(case, rng, Path(folder))
        if not any(shown.truth):
            return shown, Fraction(0), []
        findings = certificate_findings(case, shown) + audit_findings(case, shown, rng)
        if not all(entry.holds for entry in shown.series.verify().values()):
            findings.append("verify does not confirm what publish certified")
    return shown, worst_guess(case, shown.releases), findings


def run(names: Sequence[str], series: int, first: int = 0) -> dict[str, Tally]:
    """So many series in turns of the models."""
    tallies = {name: Tally() for name in names}
    for seed in range(first, first + series):
        name = names[seed % len(names)]
        shown, worst, findings = judge(name, seed)
        tally = tallies[name]
        tally.series, tally.releases = tally.series + 1, tally.releases + len(shown.releases)
        tally.withheld, tally.worst = tally.withheld + shown.withheld, max(tally.worst, worst)
        tally.findings += [f"{name}, series {seed}: {text}" for text in findings]
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description="Certificates and audits against every world.")
    parser.add_argument("models", nargs="*", help=f"of {', '.join(CASES)}; all without any")
    parser.add_argument("--series", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first series")
    given = parser.parse_args()
    tallies = run(given.models or list(CASES), given.series, given.first)
    print("| model | series | releases | people withheld | worst truth | findings |\n|---|---|---|---|---|---|")
    for name, t in tallies.items():
        print(f"| {name} | {t.series:,} | {t.releases:,} | {t.withheld:,} | {t.worst} | {len(t.findings):,} |")
    findings = [text for t in tallies.values() for text in t.findings]
    print(
        "\n".join(["", *findings]) if findings else "\nNo certificate is below the truth, no audit above or below it."
    )
    if findings:
        sys.exit(1)


if __name__ == "__main__":
    main()
