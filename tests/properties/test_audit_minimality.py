"""Minimality against a publisher that is run on every world: nothing is ruled out wrongly, and for one group all is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from oracle import minimal as oracle
from oracle import single
from reveil.audit.audit import audit
from reveil.audit.infer.minimal import arrangements, keeps, learn
from reveil.audit.input.knowledge import Adversary
from reveil.audit.input.tables import observe
from reveil.audit.model.model import build
from reveil.base.errors import InputError
from reveil.policy.policy import load_policy


def policy_of(ell=2, **more):
    return load_policy(
        {
            "columns": {"name": "identifier", "age": "quasi", "weight": "quasi", "illness": "sensitive"},
            "guarantee": {"model": "l-diversity", "l": ell} | more,
        }
    )


def case(seed, where):
    """A table, published by the oracle's publisher."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    people = {f"p{i}": (int(rng.integers(20, 24)), int(rng.integers(60, 63))) for i in range(n)}
    values = {p: "abc"[int(rng.integers(0, 3))] for p in people}
    if len(set(values.values())) < 2:
        values["p0"] = "a" if values["p0"] != "a" else "b"
    groups = oracle.publish(people, values, 2, where)
    return people, values, groups


def tables(people, values, groups):
    rows = []
    for number, group in enumerate(groups):
        spans = [[people[p][c] for p in group] for c in (0, 1)]
        texts = [f"[{min(s)},{max(s)}]" for s in spans]
        rows += [(str(number), *texts, values[p]) for p in group]
    table = pl.DataFrame(rows, schema=["group", "age", "weight", "illness"], orient="row")
    home = {p: str(n) for n, group in enumerate(groups) for p in group}
    who = pl.DataFrame([(p, *people[p], 1) for p in people], schema=["name", "age", "weight", "release"], orient="row")
    return table, who, home


@pytest.mark.parametrize("where", ["any", "median"])
def test_what_is_ruled_out_no_such_publisher_would_have_published(where):
    whole = learnt_more = 0
    policy = policy_of()
    for seed in range(60):
        people, values, groups = case(seed, where)
        table, who, _ = tables(people, values, groups)
        seen = observe([table], who, policy=policy)
        if not seen.located:  # boxes of neighbours touch
            continue
        model = build(seen, Adversary())
        same = [w for w in oracle.worlds(groups, values) if oracle.publish(people, w, 2, where) == groups]
        assert values in same
        truth = oracle.beliefs(same)
        for number in range(len(groups)):
            found = learn(model, number, policy.guarantee, where, {})
            assert not isinstance(found, str)
            for i, app in enumerate(found.apps):
                person = str(seen.persons[int(seen.app_person[app])])
                for v, code in enumerate(found.values):
                    chance = truth.get((person, seen.values[code]), Fraction(0))
                    assert found.after[i, v] > 0 or chance == 0  # what is ruled out is
                    if len(groups) == 1:
                        assert found.after[i, v] == pytest.approx(float(chance))
            whole += len(groups) == 1
            learnt_more += not np.allclose(found.before, found.after)
    assert whole > 5 and learnt_more > 5


def test_the_promise_by_counts_is_that_of_the_definitions():
    for counts in ((3, 1, 1), (2, 2), (5, 1), (1, 1, 1), (4, 0, 2)):
        rows = [v for v, n in enumerate(counts) for _ in range(n)]
        for ell in (2, 3, Fraction(5, 2)):
            assert keeps(policy_of(ell, diversity="entropy").guarantee, counts) == single.entropy_diverse([rows], ell)
        assert keeps(policy_of(2).guarantee, counts) == (len(set(rows)) >= 2)
        shown = sorted((n for n in counts if n), reverse=True)
        recursive = policy_of(2, diversity="recursive", c=2).guarantee
        assert keeps(recursive, counts) == (len(shown) >= 2 and shown[0] < 2 * sum(shown[1:]))
    assert len(arrangements(np.array([2, 2, 1]))) == 30


PEOPLE = pl.DataFrame(
    {"name": ["Ann", "Bob", "Cid", "Dee"], "age": [20, 20, 40, 40], "weight": [60] * 4, "release": [1] * 4}
)
LEFT_WHOLE = pl.DataFrame({"age": ["[20-40]"] * 4, "weight": [60] * 4, "illness": ["flu", "flu", "flu", "cold"]})


def test_by_hand_and_what_is_said():
    """Cut in two, one half would show flu only, whoever has the cold: nothing is learnt. With two of each, a cut fails
    only if both halves are alike within: the world is flu-flu, cold-cold or the reverse, and knowing Ann tells all."""
    said = {a.name: a for a in audit(LEFT_WHOLE, PEOPLE, policy=policy_of(), publisher="any").attacks}["minimality"]
    assert (said.rate, said.baseline, said.targets) == (0.75, 0.75, 4)
    even = LEFT_WHOLE.with_columns(illness=pl.Series(["flu", "flu", "cold", "cold"]))
    knowing = audit(even, PEOPLE, policy=policy_of(), publisher="any", compromised=["Ann=flu"])
    said = {a.name: a for a in knowing.attacks}["minimality"]
    assert (said.rate, said.targets) == (1.0, 3)
    assert said.baseline == pytest.approx(2 / 3)
    assert knowing.holds  # it rests on what is said of the publisher, so nobody counts as exposed by it


def test_refused_or_not_detectable():
    three = LEFT_WHOLE.with_columns(illness=pl.Series(["a", "b", "c", "d"]))
    said = {a.name: a for a in audit(three, PEOPLE, policy=policy_of(), publisher="any").attacks}["minimality"]
    assert said.targets == 0 and "not detectable" in said.meaning and "age" in said.meaning
    with pytest.raises(InputError, match="R729"):
        audit(LEFT_WHOLE, PEOPLE, publisher="any")
    with pytest.raises(InputError, match="R720"):
        audit(LEFT_WHOLE, PEOPLE, policy=policy_of(), publisher="all")
