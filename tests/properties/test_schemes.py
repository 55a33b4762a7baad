"""Generalisation schemes against brute force, and what each scheme promises about its shape."""

from __future__ import annotations

import contextlib
import itertools
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from oracle import schemes as oracle
from reveil.base.errors import InfeasibleError, InputError
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.plan.cutting.boxes import boxes
from reveil.plan.loss import loss_of
from reveil.plan.methods import method
from reveil.plan.schemes import fulldomain
from reveil.plan.schemes.counted import RecodingProblem
from reveil.plan.schemes.lattice import Lattice
from reveil.policy.policy import load_policy
from reveil.table.encode import encode


@st.composite
def hierarchies(draw, name):
    """Labels of each value of a small domain, level by level, as ARX's files have them."""
    leaves = draw(st.integers(2, 6))
    column = {f"{name}{leaf}": [f"{name}{leaf}"] for leaf in range(leaves)}
    groups = list(range(leaves))
    for level in range(draw(st.integers(0, 2))):
        joined = draw(st.lists(st.booleans(), min_size=leaves, max_size=leaves))
        kept, last = {}, 0
        for group in dict.fromkeys(groups):
            last = last if joined[group] and kept else group
            kept[group] = last
        groups = [kept[group] for group in groups]
        for leaf, labels in enumerate(column.values()):
            labels.append(f"{name}/{level}/{groups[leaf]}")
    for labels in column.values():
        labels.append("*")
    return column


@st.composite
def tables(draw):
    columns = [draw(hierarchies(name)) for name in "abc"[: draw(st.integers(1, 3))]]
    row = st.tuples(st.tuples(*(st.sampled_from(sorted(column)) for column in columns)), st.sampled_from("uvw"))
    return columns, draw(st.lists(row, min_size=4, max_size=18))


def policy_of(columns, guarantee, tmp, **method):
    spec = {}
    for name, column in zip("abc", columns, strict=False):
        file = tmp / f"{name}.csv"
        file.write_text("".join(";".join(labels) + "\n" for labels in column.values()), encoding="utf-8")
        spec[name] = {"role": "quasi", "hierarchy": str(file)}
    sensitive = {"role": "sensitive", "order": list("uvw")} if guarantee.get("distance") == "ordered" else "sensitive"
    return load_policy({"columns": {**spec, "s": sensitive}, "guarantee": guarantee, "method": method})


def encoded_of(columns, rows, policy):
    frame = pl.DataFrame(
        {**{name: [values[c] for values, _ in rows] for c, name in enumerate("abc"[: len(columns)])},
         "s": [value for _, value in rows]},
    )  # fmt: skip
    return encode(frame, policy)


GUARANTEES = [
    ({"k": 2}, lambda: oracle.at_least(2)),
    ({"k": 3, "l": 2}, lambda: oracle.at_least(3, 2)),
    ({"k": 2, "alpha": "2/3"}, lambda: oracle.at_least(2, 1, Fraction(2, 3))),
    ({"k": 2, "t": "1/3", "distance": "equal"}, lambda: oracle.close(2, Fraction(1, 3))),
]


@pytest.mark.parametrize(("guarantee", "judge"), GUARANTEES, ids=["k", "l", "alpha", "t"])
@settings(max_examples=60)
@given(case=tables(), share=st.sampled_from(["0", "1/10", "1/3"]), loss=st.sampled_from(["ncp", "geometric"]))
def test_the_full_domain_optimum_is_that_of_exhaustive_search(tmp_path_factory, guarantee, judge, case, share, loss):
    columns, rows = case
    folder = tmp_path_factory.mktemp("case")
    policy = policy_of(columns, guarantee, folder, name="full-domain", suppress=share, loss=loss)
    encoded = encoded_of(columns, rows, policy)
    most = int(Fraction(share) * len(rows))
    whole = [value for _, value in rows]
    if not judge()(whole, whole):  # refused, or rows of a too frequent value are withheld within the limit
        with contextlib.suppress(InfeasibleError):
            plan = fulldomain.plan(encoded, History(), policy, seed=1, progress=silent)
            assert 0 < plan.withheld <= most
            shown = [value for (_, value), group in zip(rows, plan.groups, strict=True) if group >= 0]
            for number in range(plan.count):
                mine = [value for (_, value), group in zip(rows, plan.groups, strict=True) if group == number]
                assert judge()(mine, shown)
        return
    plan = fulldomain.plan(encoded, History(), policy, seed=1, progress=silent)
    least, winners = oracle.full_domain(rows, columns, judge(), most, geometric=loss == "geometric")
    assert plan.statistics["loss"] == pytest.approx(least)
    assert tuple(plan.statistics["levels"].values()) in winners
    assert plan.statistics["proved best"]
    assert plan.withheld <= most
    if loss == "ncp":
        assert loss_of(encoded, plan, policy).mean == pytest.approx(least)


@pytest.mark.parametrize(("guarantee", "judge"), GUARANTEES, ids=["k", "l", "alpha", "t"])
@settings(max_examples=60)
@given(case=tables(), share=st.sampled_from(["0", "1/10", "1/3"]), target=st.sampled_from(sorted(oracle.TARGETS)))
def test_the_optimum_of_every_target_is_that_of_exhaustive_search(
    tmp_path_factory, guarantee, judge, case, share, target
):
    columns, rows = case
    folder = tmp_path_factory.mktemp("case")
    policy = policy_of(columns, guarantee, folder, name="full-domain", suppress=share, loss=target)
    encoded = encoded_of(columns, rows, policy)
    whole = [value for _, value in rows]
    if not judge()(whole, whole):
        return
    plan = fulldomain.plan(encoded, History(), policy, seed=1, progress=silent)
    least, winners = oracle.full_domain(rows, columns, judge(), int(Fraction(share) * len(rows)), target=target)
    assert plan.statistics["loss"] == pytest.approx(least, abs=1e-9)
    assert tuple(plan.statistics["levels"].values()) in winners
    assert plan.statistics["proved best"]


@settings(max_examples=60)
@given(case=tables(), share=st.sampled_from(["0", "1/3"]), data=st.data())
def test_only_allowed_levels_are_published(tmp_path_factory, case, share, data):
    """The optimum among the level vectors that the limits leave; or a refusal where none of them can be published."""
    columns, rows = case
    folder, limits = tmp_path_factory.mktemp("case"), []
    for column in columns:
        lowest = data.draw(st.integers(0, oracle.depth(column) - 1))
        limits.append((lowest, data.draw(st.integers(lowest, oracle.depth(column) - 1))))
    free = policy_of(columns, {"k": 2}, folder, name="full-domain", suppress=share)
    specs = {
        name: {"role": "quasi", "hierarchy": str(folder / f"{name}.csv"), "lowest": low, "highest": high}
        for name, (low, high) in zip("abc", limits, strict=False)
    }
    policy = load_policy(
        {"columns": {**specs, "s": "sensitive"}, "guarantee": {"k": 2}, "method": free.to_dict()["method"]}
    )
    encoded, most = encoded_of(columns, rows, policy), int(Fraction(share) * len(rows))
    found = oracle.full_domain(rows, columns, oracle.at_least(2), most, within=limits)
    if found is None:
        with pytest.raises(InfeasibleError, match="R917"):
            fulldomain.plan(encoded, History(), policy, seed=1, progress=silent)
        return
    plan = fulldomain.plan(encoded, History(), policy, seed=1, progress=silent)
    assert plan.statistics["loss"] == pytest.approx(found[0])
    assert tuple(plan.statistics["levels"].values()) in found[1]


def test_levels_are_limited_where_there_are_some(tmp_path):
    columns = [{"a0": ["a0", "x", "*"], "a1": ["a1", "x", "*"]}]
    policy = policy_of(columns, {"k": 2}, tmp_path, name="full-domain")
    content = policy.to_dict()
    for key, method_name, code in (("highest", "full-domain", "R916"), ("lowest", "mondrian", "R201")):
        spec = {"role": "quasi", "hierarchy": str(tmp_path / "a.csv"), key: 7}
        table = pl.DataFrame({"a": ["a0", "a1", "a0"], "s": ["u", "v", "u"]})
        with pytest.raises(InputError, match=code):
            asked = {"columns": {"a": spec, "s": "sensitive"}, "guarantee": {"k": 2}, "method": {"name": method_name}}
            reveil.anonymize(table, asked)
    assert "lowest" not in content["columns"]["a"]  # recorded policies keep their form


BOUNDED = [
    {"k": 3, "t": "1/5", "distance": "equal"},
    {"k": 2, "t": "1/6", "distance": "ordered"},
    {"k": 2, "alpha": "1/2"},
    {"k": 2, "l": 2, "t": "1/4", "distance": "equal"},
]


@pytest.mark.parametrize("guarantee", BOUNDED, ids=["equal", "ordered", "alpha", "together"])
@settings(max_examples=60)
@given(case=tables(), share=st.sampled_from(["1/10", "1/3", "1/2"]))
def test_what_a_node_rules_out_no_finer_node_keeps(tmp_path_factory, guarantee, case, share):
    """Every pair of nodes: a finer one that can be published withholds at least what the coarser one says."""
    columns, rows = case
    policy = policy_of(columns, guarantee, tmp_path_factory.mktemp("case"), name="full-domain", suppress=share)
    try:
        problem = RecodingProblem.of(encoded_of(columns, rows, policy), policy, 1)
    except InfeasibleError:
        return  # not even the whole table as one class
    lattice = Lattice(problem)
    checked = {levels: lattice.check(levels) for levels in product(*map(range, lattice.shape))}
    for coarse, above in checked.items():
        for fine, below in checked.items():
            if all(a <= b for a, b in zip(fine, coarse, strict=True)) and below.withheld <= problem.allowance:
                assert below.withheld >= above.least - 1e-6


@settings(max_examples=40)
@given(case=tables(), share=st.sampled_from(["0", "1/5"]))
def test_too_large_a_lattice_is_bounded_from_both_sides(tmp_path_factory, case, share):
    columns, rows = case
    policy = policy_of(columns, {"k": 2}, tmp_path_factory.mktemp("case"), name="full-domain", suppress=share)
    encoded = encoded_of(columns, rows, policy)
    lattice = Lattice(RecodingProblem.of(encoded, policy, 1))
    found = fulldomain.survey(lattice, silent)
    least, _ = oracle.full_domain(rows, columns, oracle.at_least(2), int(Fraction(share) * len(rows)))
    assert found.bound - 1e-9 <= least <= found.checked.loss + 1e-9


def shapes(encoded, plan):
    """For each column the (position, shown) pairs of all published rows."""
    low, high = plan.boxes or boxes(plan.groups, encoded.positions, plan.count)
    kept = plan.groups >= 0
    found = []
    for c, hierarchy in enumerate(encoded.quasi):
        nodes = [hierarchy.node(int(a), int(b)) for a, b in zip(low[:, c], high[:, c], strict=True)]
        found.append({(int(p), nodes[g]) for p, g in zip(encoded.positions[kept, c], plan.groups[kept], strict=True)})
    return found


@pytest.mark.parametrize("scheme", ["full-domain", "subtree", "sibling", "cell"])
@settings(max_examples=40)
@given(case=tables(), guarantee=st.sampled_from([g for g, _ in GUARANTEES]), share=st.sampled_from(["0", "1/5"]))
def test_every_scheme_keeps_its_shape_and_every_guarantee(tmp_path_factory, scheme, case, guarantee, share):
    columns, rows = case
    policy = policy_of(columns, guarantee, tmp_path_factory.mktemp("case"), name=scheme, suppress=share)
    encoded = encoded_of(columns, rows, policy)
    try:
        plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)
    except InfeasibleError:
        return
    assert plan.withheld <= int(Fraction(share) * len(rows))
    for hierarchy, pairs in zip(encoded.quasi, shapes(encoded, plan), strict=True):
        assert all(hierarchy.lo[node] <= p <= hierarchy.hi[node] for p, node in pairs)
        if scheme != "cell":  # one generalisation of a value everywhere
            assert len({p for p, _ in pairs}) == len(pairs)
        if scheme == "subtree":  # no node shown lies under another
            nodes = {node for _, node in pairs}
            assert not any(a != b and hierarchy.lo[a] <= hierarchy.lo[b] and hierarchy.hi[b] <= hierarchy.hi[a]
                           for a in nodes for b in nodes)  # fmt: skip
        if scheme == "full-domain":
            assert any(all(level[p] == node for p, node in pairs) for level in hierarchy.levels)
    classes = published_classes(encoded, plan, rows)
    judge = dict(zip([str(g) for g, _ in GUARANTEES], [j for _, j in GUARANTEES], strict=True))[str(guarantee)]()
    published = [value for values in classes for value in values]
    assert all(judge(values, published) for values in classes)


def published_classes(encoded, plan, rows):
    """Sensitive values of rows that show the same nodes."""
    low, high = plan.boxes or boxes(plan.groups, encoded.positions, plan.count)
    found: dict = {}
    for number, group in enumerate(plan.groups.tolist()):
        if group >= 0:
            nodes = tuple(
                h.node(int(a), int(b)) for h, a, b in zip(encoded.quasi, low[group], high[group], strict=True)
            )
            found.setdefault(nodes, []).append(rows[number][1])
    return list(found.values())


@settings(max_examples=40)
@given(case=tables(), scheme=st.sampled_from(["subtree", "sibling"]))
def test_refined_recodings_never_lose_more_than_full_domain(tmp_path_factory, case, scheme):
    columns, rows = case
    policy = policy_of(columns, {"k": 2}, tmp_path_factory.mktemp("case"), name=scheme)
    encoded = encoded_of(columns, rows, policy)
    plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)
    assert plan.statistics["loss"] <= plan.statistics["full-domain loss"] + 1e-12
    assert loss_of(encoded, plan, policy).mean == pytest.approx(plan.statistics["loss"])


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from("xy")] * 3), min_size=4, max_size=8),
    weights=st.tuples(*[st.integers(1, 3)] * 3),
)
def test_suppressed_cells_are_never_fewer_than_the_optimum_and_columns_are_it(rows, weights):
    columns = {name: {"role": "quasi", "weight": weight} for name, weight in zip("abc", weights, strict=True)}
    frame = pl.DataFrame(rows, schema=list("abc"), orient="row")
    costs = {}
    for scheme in ("full-domain", "sibling", "cell"):
        policy = load_policy(
            {"columns": columns, "guarantee": {"k": 2}, "method": {"name": scheme, "recode": "suppress"}}
        )
        release = reveil.anonymize(frame, policy, seed=1)
        starred = [release.table[name].to_list().count("*") for name in "abc"]
        costs[scheme] = sum(count * weight for count, weight in zip(starred, weights, strict=True))
        assert release.certificate.holds
    least = oracle.fewest_cells(rows, 2, weights)
    assert least <= costs["cell"]
    assert costs["sibling"] <= costs["full-domain"]
    hidden = [names for n in range(4) for names in itertools.combinations(range(3), n)]
    alike = [
        names for names in hidden
        if min(np.unique([[row[c] for c in range(3) if c not in names] or [0] for row in rows],
                         axis=0, return_counts=True)[1]) >= 2
    ]  # fmt: skip
    assert costs["full-domain"] == min(sum(weights[c] for c in names) for names in alike) * len(rows)
