"""The whole path of one release, and of small series, against a hostile reader who uses none of our code.

`REVEIL_FUZZ=50` runs fifty times as many examples, each time others. Without it the examples are fixed.
"""

from __future__ import annotations

import datetime
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import reveil
from oracle import published as oracle
from reveil.base.errors import InfeasibleError, InputError
from reveil.history.history import History
from reveil.policy.policy import load_policy
from reveil.table.identify import keyed_hashes
from reveil.verify.verify import Truth, verify
from support import put_right

SCRATCH = tempfile.TemporaryDirectory(prefix="reveil-test-")  # goes when the tests end
FUZZ = int(os.environ.get("REVEIL_FUZZ", "0"))


def examples(count):
    return settings(
        max_examples=count * max(1, FUZZ),
        derandomize=not FUZZ,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


ODD = [
    "*",
    "{a,b}",
    "[1-2]",
    "",
    " 1",
    '"',
    "a,b",
    "x\ny",
    "é",
    "a;b",
    "-",
    "nan",
    "NULL",
    "a\r",
    "0",
    "**",
    "a*",
    "[a-b]",
]
PLAIN = ["a", "b", "c", "d", "e", "f"]
DAYS = [datetime.date(2019, 12, 31), datetime.date(2020, 1, 1), datetime.date(2020, 2, 29), datetime.date(2026, 3, 14)]
TREES = [
    {"L": {"a": None, "b": None}, "R": {"c": None, "d": None}},
    {"L": {"a": None}, "M": {"N": {"b": None}}, "c": None, "R": {"S": {"d": None, "e": None}, "f": None}},
    {"L": {"M": {"a": None, "b": None}, "N": {"c": None, "d": None, "e": None}}},
    {"a": None},
    {"é": {" 1": None, "a;b": None}, '"q"': {"x\ny": None, "{a,b}": None}},
]
ROWS = {7: st.integers(1, 7), 60: st.integers(1, 60)}


@dataclass
class Case:
    """A table, a policy, and what the reader has to know about its columns."""

    frame: pl.DataFrame
    policy: dict[str, Any]
    scales: dict[str, Any] = field(default_factory=dict)  # quasi column -> scale of the oracle
    kinds: dict[str, Any] = field(default_factory=dict)  # sensitive column -> number, text, date, order or tree
    orders: dict[str, Any] = field(default_factory=dict)  # sensitive column -> order or tree
    population: pl.DataFrame | None = None
    pools: dict[str, Any] = field(default_factory=dict)  # column -> values to choose from

    @property
    def guarantee(self):
        return self.policy["guarantee"]


def nested(tree):
    """The tree as a policy writes it: nested tables that end in lists. A leaf beside nodes has a node of its own."""
    if all(below is None for below in tree.values()):
        return list(tree)
    return {name: [name] if below is None else nested(below) for name, below in tree.items()}


def as_policy(tree):
    content = nested(tree)
    return {"all": content} if isinstance(content, list) else content


@st.composite
def pools(draw, kind):
    """A few values for a column to choose from."""
    some = {
        "int": st.integers(-20, 20) | st.sampled_from([0, 7, 2**53, 2**53 + 1, -(2**62), 2**63 - 1]),
        "decimal": st.sampled_from([-1.5, -0.1, 0.0, 0.1, 0.3, 2.0, 2.5, 1e-7, 1e16, 1e300, 123456.789]),
        "small": st.integers(-9, 30),
        "odd": st.sampled_from(ODD + PLAIN),
        "plain": st.sampled_from(PLAIN),
        "date": st.sampled_from(DAYS) | st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
        "zip": st.sampled_from(["47677", "47602", "47905", "4790", "479", "12", "4*", "1"]),
    }[kind]
    return draw(st.lists(some, min_size=1, max_size=6))


@st.composite
def quasi_columns(draw, name):
    """(policy of the column, scale of the oracle, pool of values, dtype)."""
    way = draw(
        st.sampled_from(["int", "decimal", "widths", "cuts", "flat", "tree", "date", "levels", "prefix", "order"])
    )
    if way in ("int", "decimal"):
        return "quasi", ("number", None), draw(pools(way)), pl.Int64 if way == "int" else pl.Float64
    if way in ("widths", "cuts"):
        steps = draw(st.sampled_from([[5], [5, 10], [1, 2, 20], ["0.1", "0.5"], [2.5]]))
        cuts = draw(st.sampled_from([[0], [0, 10], [[0, 5, 10], [5]], [[-3, 0, 0.5], [0, 0.5], [0.5]]]))
        how = {"widths": steps} if way == "widths" else {"cuts": cuts}
        kind = draw(st.sampled_from(["small", "decimal"]))
        return (
            {"role": "quasi", **how},
            ("widths", None),
            draw(pools(kind)),
            pl.Int64 if kind == "small" else pl.Float64,
        )
    if way == "flat":
        return {"role": "quasi", "type": "category"}, ("flat", None), draw(pools("odd")), pl.String
    if way == "tree":
        tree = draw(st.sampled_from(TREES))
        pool = draw(st.lists(st.sampled_from(sorted(oracle.all_leaves(tree))), min_size=1, max_size=6))
        return {"role": "quasi", "hierarchy": as_policy(tree)}, ("tree", tree), pool, pl.String
    if way in ("date", "levels"):
        levels = draw(st.sampled_from([["day"], ["month", "year"], ["day", "quarter", "decade"], ["decade"]]))
        how = {"levels": levels} if way == "levels" else {"type": "date"}
        return {"role": "quasi", **how}, ("date", None), draw(pools("date")), pl.Date
    if way == "prefix":
        lengths = draw(st.sampled_from([[3], [5, 3], [4, 3, 1]]))
        return {"role": "quasi", "prefixes": lengths}, ("prefix", None), draw(pools("zip")), pl.String
    order = draw(st.lists(st.sampled_from([*PLAIN, "a-b", "é", " 1", "[a-b]"]), min_size=1, max_size=6, unique=True))
    return {"role": "quasi", "order": order}, ("order", order), order, pl.String


@st.composite
def sensitive_columns(draw):
    """(policy, kind, order or tree, pool, dtype)."""
    way = draw(st.sampled_from(["odd", "plain", "plain", "small", "decimal", "date", "order", "tree"]))
    if way in ("odd", "plain"):
        return "sensitive", "text", None, draw(pools(way)), pl.String
    if way in ("small", "decimal"):
        return "sensitive", "number", None, draw(pools(way)), pl.Int64 if way == "small" else pl.Float64
    if way == "date":
        return {"role": "sensitive", "type": "date"}, "date", None, draw(pools("date")), pl.Date
    if way == "order":
        return {"role": "sensitive", "order": PLAIN}, "order", PLAIN, draw(pools("plain")), pl.String
    tree = draw(st.sampled_from(TREES))
    pool = draw(st.lists(st.sampled_from(sorted(oracle.all_leaves(tree))), min_size=1, max_size=6))
    return {"role": "sensitive", "hierarchy": as_policy(tree)}, "tree", tree, pool, pl.String


SHARES = st.sampled_from(["1/6", "1/5", "1/4", "1/3", "2/5", "1/2", "3/5", "2/3", 0.75, 1])


@st.composite
def guarantees(draw, sensitive, numeric):
    found: dict[str, Any] = {}
    if draw(st.booleans()) or not sensitive:
        found |= {"model": "k-anonymity", "k": draw(st.integers(1, 4))}
    if not sensitive:
        return found
    wanted = draw(st.sets(st.sampled_from(["l", "alpha", "t", "epsilon"]), max_size=3))
    if "l" in wanted:
        kind = draw(st.sampled_from(["distinct", "entropy", "recursive"]))
        found |= {"model": "l-diversity", "l": draw(st.integers(1, 4)), "diversity": kind}
        if kind == "entropy":
            found["l"] = draw(st.sampled_from([1, "3/2", 1.5, 2, "2.4", 3]))
        if kind == "recursive":
            found["c"] = draw(st.sampled_from(["1/2", 1, 2, "5/2", 4]))
    if "alpha" in wanted:
        found["alpha"] = draw(SHARES)
    if "t" in wanted:
        found |= {"t": draw(SHARES | st.just(0))}
        if draw(st.booleans()):
            found["distance"] = draw(st.sampled_from(["equal", "ordered", "hierarchical"]))
        found["model"] = "t-closeness"
    if "epsilon" in wanted and (numeric or draw(st.integers(0, 19)) == 0):
        found |= {
            "model": "epsilon-m",
            "epsilon": draw(st.sampled_from([0, 1, "0.2", 5])),
            "m": draw(st.integers(1, 3)),
        }
        found["proximity"] = draw(st.sampled_from(["absolute", "relative"]))
    return found or {"model": "k-anonymity", "k": draw(st.integers(1, 4))}


METHODS = st.fixed_dictionaries(
    {
        "cuts": st.sampled_from(["strict", "relaxed"]),
        "recode": st.sampled_from(["nodes", "sets"]),
        "suppress": st.sampled_from([0, 0, 0.1, 0.25, 0.5]),
        "infeasible": st.sampled_from(["refuse", "withhold"]),
    }
)


@st.composite
def cases(draw, largest=60, presence=False):
    """A table with a policy for it."""
    n = draw(ROWS[largest])
    case = Case(pl.DataFrame(), {"columns": {}})
    data: dict[str, pl.Series] = {}

    def fill(name, pool, dtype):
        choice = case.pools[name] = pool + [None] * draw(st.sampled_from([0, 0, 1]))
        data[name] = pl.Series(name, draw(st.lists(st.sampled_from(choice), min_size=n, max_size=n)), dtype=dtype)

    for number in range(draw(st.integers(1, 3))):
        name = ["q1", "group", 'q "3",'][number]
        spec, case.scales[name], pool, dtype = draw(quasi_columns(name))
        case.policy["columns"][name] = spec
        fill(name, pool, dtype)
    for number in range(draw(st.sampled_from([0, 1] if presence else [0, 1, 1, 1, 2]))):
        name = f"s{number}"
        spec, case.kinds[name], case.orders[name], pool, dtype = draw(sensitive_columns())
        case.policy["columns"][name] = spec
        fill(name, pool, dtype)
    if draw(st.booleans()):
        case.policy["columns"]["tag"] = "insensitive"
        data["tag"] = pl.Series("tag", [f"row {number}" for number in range(n)])
    case.policy["guarantee"] = draw(guarantees(bool(case.kinds), set(case.kinds.values()) == {"number"}))
    case.policy["method"] = draw(METHODS)
    case.policy["output"] = {"format": draw(st.sampled_from(["csv", "csv", "parquet"]))}
    case.frame = pl.DataFrame(data)
    return case


def text_rows(frame):
    return [["" if value is None else cell_text(value) for value in row] for row in frame.rows()]


def cell_text(value):
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def read_public(public):
    """Header and text rows of the published table."""
    if (public / "table.csv").exists():
        return oracle.read_csv((public / "table.csv").read_bytes().decode())
    table = pq.read_table(public / "table.parquet")
    return table.column_names, [
        ["" if value is None else cell_text(value) for value in row.values()] for row in table.to_pylist()
    ]


def same_value(kind, text):
    """One writing for each sensitive value: 20, 20.0 and 2e1 are the same number."""
    return str(Fraction(text)) if kind == "number" and text != "" else text


def verdicts(case, groups):
    """What the oracle finds: (guarantee, column) -> whether it holds. `groups`: column -> values by class."""
    g, found = case.guarantee, {}
    sizes = [len(group) for group in groups["*"]]
    if g.get("k") is not None:
        found["k-anonymity", None] = oracle.anonymous(sizes, g["k"])
    for name, kind in case.kinds.items():
        values = groups[name]
        if g.get("l") is not None:
            ell, way = Fraction(str(g["l"])), g.get("diversity")
            if way == "entropy":
                holds = oracle.entropy(values, ell)
            elif way == "recursive":
                holds = oracle.recursive(values, Fraction(str(g["c"])), ell)
            else:
                holds = oracle.distinct(values, ell)
            found["l-diversity", name] = holds
        if g.get("alpha") is not None:
            found["alpha-k", name] = oracle.largest_share(values) <= Fraction(str(g["alpha"]))
        if g.get("t") is not None:
            found["t-closeness", name] = closest(case, name, kind, values) <= Fraction(str(g["t"]))
        if g.get("epsilon") is not None:
            epsilon, relative = Fraction(str(g["epsilon"])), g["proximity"] == "relative"
            found["epsilon-m", name] = oracle.spread_out(values, epsilon, g["m"], relative)
    return found


def closest(case, name, kind, values):
    distance = case.guarantee.get("distance", "auto")
    if distance == "auto":
        distance = {"number": "ordered", "order": "ordered", "tree": "hierarchical"}.get(kind, "equal")
    if distance == "hierarchical":
        return oracle.furthest(values, distance, case.orders[name])
    return oracle.furthest(values, distance, {"number": Fraction, "order": PLAIN.index}.get(kind, str))


def grouped(case, header, rows, groups):
    """The values of each sensitive column in each class, in one writing."""
    found = {"*": groups}
    for name, kind in case.kinds.items():
        columns = oracle.columns_of(header, rows, groups, name)
        found[name] = [[same_value(kind, text) for text in group] for group in columns]
    return found


def check_release(case, release, public):
    """The oracle agrees with each verdict, nothing is broken, and every cell covers the truth."""
    header, rows = read_public(public)
    assert header == case.frame.columns
    groups = oracle.classes(header, rows, list(case.scales))
    found = verdicts(case, grouped(case, header, rows, groups))
    assert all(found.values()), found
    said = {(v["guarantee"], v["details"].get("column")): v["holds"] for v in release.certificate.verdicts}
    assert found.items() <= said.items()
    assert release.certificate.holds
    check_content(case, release, header, rows)


def check_content(case, release, header, rows):
    kept = [number for number, group in enumerate(release.groups.tolist()) if group >= 0]
    assert len(rows) == len(kept)
    originals = text_rows(case.frame)
    withheld = len(originals) - len(kept)
    assert withheld == release.certificate.counts["withheld rows"]

    def fits(published, original):
        for place, name in enumerate(header):
            if name in case.scales:
                if not oracle.covers(published[place], original[place], case.scales[name]):
                    return False
            elif same_value(case.kinds.get(name), published[place]) != same_value(
                case.kinds.get(name), original[place]
            ):
                return False
        return True

    assert oracle.matched(rows, [originals[number] for number in kept], fits)
    if "tag" in header:
        exact_groups(case, release, header, rows, originals)


def exact_groups(case, release, header, rows, originals):
    """Rows of one group show the same cells; with sets, exactly the values of rows that show it."""
    tag = header.index("tag")
    shown = {row[tag]: row for row in rows}
    places = [header.index(name) for name in case.scales]
    cells = {}
    for number, group in enumerate(release.groups.tolist()):
        if group >= 0:
            cell = tuple(shown[f"row {number}"][place] for place in places)
            assert cells.setdefault(group, cell) == cell
    if case.policy["method"]["recode"] == "sets":
        for name, place in zip(case.scales, places, strict=True):
            if case.scales[name][0] == "flat":
                exact_sets(release, shown, originals, header.index(name), place)


def exact_sets(release, shown, originals, source, place):
    """A set says exactly which values the rows of its group have."""
    truth = {}
    for number, group in enumerate(release.groups.tolist()):
        truth.setdefault(group, set()).add(originals[number][source])
    for number, group in enumerate(release.groups.tolist()):
        cell = shown[f"row {number}"][place] if group >= 0 else "*"
        if cell != "*":
            assert truth[group] == set(oracle.elements(cell) or [cell])


def fresh(name):
    """An empty folder; what the example before left there goes."""
    folder = Path(SCRATCH.name) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def publish(case):
    """(release, folder), or the refusal. Anything but a refusal is a bug and comes through."""
    folder = fresh("release")
    try:
        made = reveil.anonymize(case.frame, case.policy, seed=1, out=folder / "out", accept=["total-rows", "row-index"])
        return made, folder / "out" / "public"
    except (InputError, InfeasibleError) as refusal:
        return refusal, folder


def feasible(case, rows):
    """Whether some partition of these rows satisfies all conditions, by trying them all."""
    header = case.frame.columns
    return any(
        all(verdicts(case, grouped(case, header, rows, groups)).values())
        for groups in oracle.partitions(list(range(len(rows))))
    )


def refusal_makes_sense(refusal):
    for fault in refusal.faults:
        assert fault.code.startswith("R")
        assert fault.message
        assert fault.remedy
    event(refusal.faults[0].code)


@examples(140)
@given(cases())
def test_a_release_is_right_or_refused(case):
    release, public = publish(case)
    if isinstance(release, Exception):
        refusal_makes_sense(release)
    else:
        event("released")
        check_release(case, release, public)


@examples(80)
@given(cases(largest=7))
def test_a_refusal_is_right(case):
    """Where the planner refuses, no way of parting the rows keeps the promise; nearness may be refused too early."""
    case.policy["method"] |= {"infeasible": "refuse"}
    release, _ = publish(case)
    if not isinstance(release, InfeasibleError):
        return
    message = str(release)
    if "epsilon" in case.guarantee and feasible(case, text_rows(case.frame)):
        assert "R404" in message
        assert "may still" in message  # it does not claim that there is no way
        event("refused too early")
    else:
        assert not feasible(case, text_rows(case.frame))
        assert "may still" not in message or "epsilon" in case.guarantee
        event("rightly refused")


def fewest_withheld(values, alpha, k):
    """The fewest rows to leave out so that no value has a share above alpha of at least k others; None: no way."""
    for gone in range(len(values)):
        for kept in {
            tuple(sorted(kept, key=str)) for kept in oracle.itertools.combinations(values, len(values) - gone)
        }:
            if len(kept) >= k and oracle.largest_share([list(kept)]) <= alpha:
                return gone
    return None


@examples(80)
@given(
    st.lists(st.sampled_from(["a", "a", "a", "b", "c", None]), min_size=1, max_size=9),
    SHARES,
    st.integers(2, 4),
    st.sampled_from(["csv", "parquet"]),
)
def test_withholding_leaves_out_the_fewest(values, alpha, k, form):
    frame = pl.DataFrame({"q1": list(range(len(values))), "s0": pl.Series(values, dtype=pl.String)})
    case = Case(frame, {"columns": {"q1": "quasi", "s0": "sensitive"}}, {"q1": ("number", None)}, {"s0": "text"})
    case.policy["guarantee"] = {"model": "alpha-k", "alpha": alpha, "k": k}
    case.policy |= {"method": {"infeasible": "withhold"}, "output": {"format": form}}
    release, public = publish(case)
    fewest = fewest_withheld(values, Fraction(str(alpha)), k)
    if isinstance(release, Exception):
        assert fewest is None, release
    else:
        assert release.certificate.counts["withheld rows"] == fewest
        check_release(case, release, public)


@st.composite
def presence_cases(draw):
    case = draw(cases(largest=7, presence=True))
    people = case.frame.select(list(case.scales))
    others = st.tuples(*(st.sampled_from(case.pools[name]) for name in case.scales))
    more = pl.DataFrame(draw(st.lists(others, max_size=6)), schema=people.schema, orient="row")
    case.population = pl.concat([people, more])
    share = Fraction(case.frame.height, case.population.height)
    bounds = draw(st.sampled_from(["0", "1/4", str(share)])), draw(st.sampled_from([str(share), "3/4", "1"]))
    bounds = sorted(bounds, key=Fraction)
    case.guarantee.update(model="presence", delta_min=bounds[0], delta_max=bounds[1])
    case.policy["method"]["recode"] = "sets"
    return case


@examples(60)
@given(presence_cases())
def test_presence(case):
    folder = fresh("people")
    case.population.write_parquet(folder / "people.parquet")
    case.guarantee["population"] = str(folder / "people.parquet")
    release, public = publish(case)
    if isinstance(release, Exception):
        refusal_makes_sense(release)
        assert "R408" not in str(release)  # everybody in the table is in the population
        return
    event("released")
    check_release(case, release, public)
    header, rows = read_public(public)
    groups = oracle.classes(header, rows, list(case.scales))
    people = text_rows(case.population)

    def matches(row, person):
        cells = zip(case.scales, person, strict=True)
        return all(oracle.covers(row[header.index(name)], value, case.scales[name]) for name, value in cells)

    boxes = [{number for number, person in enumerate(people) if matches(rows[group[0]], person)} for group in groups]
    chances = oracle.chances_of_presence(boxes, [len(group) for group in groups], len(people))
    low, high = (Fraction(str(case.guarantee[name])) for name in ("delta_min", "delta_max"))
    assert all(low <= chance <= high for chance in chances)


@st.composite
def k_map_cases(draw):
    case = draw(presence_cases())
    for key in ("delta_min", "delta_max"):
        case.guarantee.pop(key)
    case.guarantee.update(model="k-map", k_map=draw(st.integers(2, 4)))
    case.policy["method"]["recode"] = draw(st.sampled_from(["nodes", "sets"]))
    return case


@examples(60)
@given(k_map_cases())
def test_k_map(case):
    folder = fresh("people")
    case.population.write_parquet(folder / "people.parquet")
    case.guarantee["population"] = str(folder / "people.parquet")
    release, public = publish(case)
    if isinstance(release, Exception):
        refusal_makes_sense(release)
        assert "R408" not in str(release)  # everybody in the table is in the population
        return
    event("released")
    check_release(case, release, public)
    header, rows = read_public(public)
    people = text_rows(case.population)
    for row in rows:
        cells = [row[header.index(name)] for name in case.scales]
        fit = [person for person in people if all(map(oracle.covers, cells, person, case.scales.values()))]
        assert len(fit) >= case.guarantee["k_map"]


@examples(60)
@given(
    st.lists(st.sampled_from([0, 1, 2, 5, 6, 9, None]), min_size=1, max_size=6),
    st.sampled_from([0, 1, 3]),
    st.integers(2, 3),
    st.sampled_from(["absolute", "relative"]),
)
def test_nearness_is_not_called_impossible(values, epsilon, m, proximity):
    frame = pl.DataFrame({"q1": list(range(len(values))), "s0": pl.Series(values, dtype=pl.Int64)})
    case = Case(frame, {"columns": {"q1": "quasi", "s0": "sensitive"}}, {"q1": ("number", None)}, {"s0": "number"})
    case.policy["guarantee"] = {"model": "epsilon-m", "epsilon": epsilon, "m": m, "proximity": proximity}
    release, public = publish(case)
    possible = feasible(case, text_rows(frame))
    if not isinstance(release, Exception):
        assert possible
        check_release(case, release, public)
    else:
        event("refused too early" if possible else "rightly refused")
        assert "R404" in str(release)
        assert "may still keep the promise" in str(release)


CHANGES = ["move value", "drop row", "change label", "add column", "duplicate row", "change value", "nothing"]


def corrupted(draw, table, quasi, sensitive):
    """The published table with something wrong in it, and what was done."""
    change = draw(st.sampled_from(CHANGES if sensitive else [one for one in CHANGES if "value" not in one]))
    some, other = (draw(st.integers(0, table.height - 1)) for _ in range(2))
    rows = [list(row) for row in table.rows()]
    place = table.columns.index(draw(st.sampled_from(sensitive))) if "value" in change else 0
    if change == "move value":
        rows[some][place], rows[other][place] = rows[other][place], rows[some][place]
    elif change == "change value":
        rows[some][place] = rows[other][place]
    elif change == "change label":
        label = table.columns.index(draw(st.sampled_from(quasi)))
        rows[some][label] = draw(st.sampled_from([rows[other][label], "elsewhere"]))
    elif change == "drop row":
        del rows[some]
    elif change == "duplicate row":
        rows.append(rows[some])
    changed = pl.DataFrame(rows, schema=table.schema, orient="row")
    return change, changed.with_columns(name=pl.lit("x")) if change == "add column" else changed


def overwrite(public, table):
    """Put another table in the place of the published one, with the hash that belongs to it."""
    (path,) = public.glob("table.*")
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    put_right(public)


@examples(90)
@given(cases(), st.data())
def test_the_verifier_notices(case, data):
    """Judged again after a change, with hashes that fit: whatever the oracle finds broken, the verifier finds."""
    case.policy["output"] = {"format": data.draw(st.sampled_from(["csv", "parquet"]))}
    release, public = publish(case)
    if isinstance(release, Exception):
        return
    policy = load_policy(case.policy)
    change, table = corrupted(data.draw, release.table, list(case.scales), list(case.kinds))
    if not table.height:
        return
    overwrite(public, table)
    kept = len(text_rows(case.frame)) - release.certificate.counts["withheld rows"]
    counts = {name: case.frame.select(value=name).group_by("value").len("rows") for name in case.kinds}
    counts = {name: empty_is_missing(count).cast({"rows": pl.Int64}) for name, count in counts.items()}
    found = verify(public, policy, History(), Truth(case.frame.height, case.frame.height - kept, counts))
    alone = reveil.check(table, policy)
    event(change)
    if change == "add column":
        assert not found.holds
        assert not alone.holds
        return
    header, rows = read_public(public)
    groups = oracle.classes(header, rows, list(case.scales))
    truth = verdicts(case, grouped(case, header, rows, groups))
    assert {(v.guarantee, v.details.get("column")): v.holds for v in found.verdicts} == truth
    assert {(v["guarantee"], v["details"].get("column")): v["holds"] for v in alone.verdicts} == truth
    assert alone.holds == all(truth.values())
    originals = text_rows(case.frame)
    whole = len(rows) == kept and all(
        not surplus(case, name, header, rows, case.frame.columns, originals) for name in case.kinds
    )
    assert found.holds == (all(truth.values()) and whole)


def empty_is_missing(counts):
    if counts["value"].dtype != pl.String:
        return counts
    return counts.with_columns(pl.col("value").replace("", None)).group_by("value").agg(pl.col("rows").sum())


def surplus(case, name, header, rows, columns, originals):
    """Values published more often than they were put in."""
    kind = case.kinds[name]
    shown = Counter(same_value(kind, row[header.index(name)]) for row in rows)
    return shown - Counter(same_value(kind, row[columns.index(name)]) for row in originals)


TAXONOMY = {"a": "letters", "b": "letters", "1": "digits", "2": "digits", "é": "letters"}


@st.composite
def series_cases(draw):
    """A policy for a series, and what each of a few releases says about whom."""
    change = draw(st.sampled_from([None, "never", "freely"]))
    sensitive = draw(st.sampled_from([["flu", "cold", "x,y", None], [1, 2, 3, None], [0.5, 2.0, None]]))
    persons = [f"p{number}" for number in range(draw(st.integers(2, 14)))]
    usual = {person: draw(st.sampled_from(sensitive)) for person in persons}
    releases = []
    for number in range(draw(st.integers(2, 3))):
        there = draw(st.lists(st.sampled_from(persons), min_size=1, unique=True))
        renewed = (
            draw(st.sets(st.sampled_from(persons), max_size=1)) if change != "never" or draw(st.booleans()) else ()
        )
        usual |= {person: draw(st.sampled_from(sensitive)) for person in renewed}
        known = list(TAXONOMY)[: 2 + number]  # the hierarchy grows
        rows = [(p, draw(st.integers(0, 9)), draw(st.sampled_from([*known, None])), usual[p]) for p in there]
        releases.append((known, rows))
    guarantee = draw(
        st.sampled_from([{"k": 2}, {"model": "l-diversity", "l": 2}, {"model": "alpha-k", "k": 2, "alpha": "1/2"}])
    )
    columns = {
        "who": "identifier",
        "age": "quasi",
        "code": {"role": "quasi", "hierarchy": "codes.csv"},
        "ill": "sensitive",
    }
    method = draw(METHODS)
    return {"columns": columns, "values": {"change": change}, "guarantee": guarantee, "method": method}, releases


@examples(15)
@given(series_cases())
def test_series(setting):
    content, releases = setting
    folder = fresh("series")
    (folder / "home").mkdir()
    last, numbers, published = {}, {}, 0
    dtype = next((pl.Series([row[3]]).dtype for _, rows in releases for row in rows if row[3] is not None), pl.String)
    for known, rows in releases:
        lines = [f"{code};{TAXONOMY[code]};*" for code in known]
        (folder / "codes.csv").write_text("\n".join(lines), encoding="utf-8")
        series = reveil.open_series(load_policy({**content, "folder": folder}), home=folder / "home")
        schema = {"who": pl.String, "age": pl.Int64, "code": pl.String, "ill": dtype}
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        contradicts = content["values"]["change"] == "never" and any(
            row[0] in last and last[row[0]] != row[3] for row in rows
        )
        try:
            release = series.publish(frame, seed=1, new_people=True)
        except InfeasibleError:
            continue
        except InputError as refusal:
            assert contradicts
            assert "R311" in str(refusal)
            continue
        assert not contradicts
        published += 1
        check_series_release(content, series, release, frame)
        again = series.verify()
        assert len(again) == published
        assert all(found.holds for found in again.values())
        last |= {row[0]: row[3] for row in rows}
        people = sorted(last)
        found = series.history().number(keyed_hashes(pl.Series(people), series.ledger.key)).tolist()
        now = dict(zip(people, found, strict=True))
        assert sorted(found) == list(range(len(people)))
        assert numbers.items() <= now.items()  # nobody's number changes
        numbers = now
    event(f"{published} releases")


def check_series_release(content, series, release, frame):
    kind = "text" if frame["ill"].dtype == pl.String else "number"
    tree = {"letters": {"a": None, "b": None, "é": None}, "digits": {"1": None, "2": None}}
    case = Case(frame, content, {"age": ("number", None), "code": ("tree", tree)}, {"ill": kind})
    header, rows = read_public(release.public)
    assert header == ["group", "age", "code", "ill"]
    groups = oracle.classes(header, rows, ["group"])
    assert len(oracle.classes(header, rows, ["group", "age", "code"])) == len(groups)
    assert all(verdicts(case, grouped(case, header, rows, groups)).values())
    for row, group in zip(text_rows(frame), release.groups.tolist(), strict=True):
        if group >= 0:
            shown = next(published for published in rows if published[0] == str(group))
            assert oracle.covers(shown[1], row[1], case.scales["age"])
            assert oracle.covers(shown[2], row[2], case.scales["code"])
    kept = [
        (str(group), same_value(kind, row[3]))
        for row, group in zip(text_rows(frame), release.groups.tolist(), strict=True)
    ]
    assert Counter(pair for pair in kept if pair[0] != "-1") == Counter(
        (row[0], same_value(kind, row[3])) for row in rows
    )


def test_unequal_counts_may_tie_in_entropy():
    """4, 1, 1, 1, 1 have an entropy of exactly log 4."""
    frame = pl.DataFrame({"q1": [1] * 8, "s0": list("aaaabcde")})
    policy = {"columns": {"q1": "quasi", "s0": "sensitive"}}
    guarantee = {"model": "l-diversity", "l": 4, "diversity": "entropy"}
    assert reveil.anonymize(frame, {**policy, "guarantee": guarantee}).certificate.holds
    case = Case(frame, {**policy, "guarantee": guarantee | {"l": "4.000000001"}})
    assert isinstance(publish(case)[0], InfeasibleError)


def test_closeness_is_to_what_is_published():
    """Withholding six of eight a leaves 2, 2, 1, 1: far from the input, and no distance from itself."""
    frame = pl.DataFrame({"q1": [1] * 12, "s0": list("aaaaaaaabbcd")})
    content = {
        "columns": {"q1": "quasi", "s0": "sensitive"},
        "guarantee": {"model": "t-closeness", "t": "1/10", "alpha": "1/3"},
        "method": {"infeasible": "withhold"},
    }
    release = reveil.anonymize(frame, content)
    assert release.certificate.counts["withheld rows"] == 6


def test_thresholds_with_many_digits():
    """Products of counts and thresholds would not fit into 64 bits."""
    frame = pl.DataFrame({"q1": [1] * 3000, "s0": list("abc") * 1000})
    columns = {"q1": "quasi", "s0": "sensitive"}
    third = "0." + "3" * 30
    for alpha, holds in ((third, False), (third + "4", True)):
        case = Case(frame, {"columns": columns, "guarantee": {"model": "alpha-k", "k": 2, "alpha": alpha}})
        assert isinstance(publish(case)[0], InfeasibleError) != holds
