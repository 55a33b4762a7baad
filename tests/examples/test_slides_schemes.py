"""The lecture's generalisation schemes, kinds of suppression and 3-anonymised tables, made by the pipeline itself."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

import reveil
from reveil.base.progress import silent
from reveil.history.history import History
from reveil.plan.methods import method
from reveil.policy.policy import load_policy
from reveil.table.encode import encode

JOBS = {"Professional": ["Engineer", "Lawyer", "Doctor"], "Artist": ["Dancer", "Writer"]}


def shown(people, scheme, k=3, **more):
    """How often each (original, published) pair occurs when jobs (and sex, where given) are recoded."""
    table = pl.DataFrame(people, schema=["job", "sex"][: len(people[0])], orient="row")
    columns = {"job": {"role": "quasi", "hierarchy": JOBS}, "sex": "quasi"}
    policy = load_policy(
        {
            "columns": {name: columns[name] for name in table.columns},
            "guarantee": {"k": k},
            "method": {"name": scheme, **more},
        }
    )
    encoded = encode(table, policy)
    plan = method(policy)(encoded, History(), policy, seed=1, progress=silent)
    assert reveil.anonymize(table, policy, seed=1).certificate.holds
    found: Counter = Counter()
    for row, group in enumerate(plan.groups.tolist()):
        members = encoded.positions[plan.groups == group]
        box = (members.min(axis=0), members.max(axis=0)) if plan.boxes is None else [side[group] for side in plan.boxes]
        cells = tuple(h.label(int(a), int(b)) for h, a, b in zip(encoded.quasi, *box, strict=True))
        found[people[row], cells] += 1
    return {(" ".join(was), " ".join(now)): rows for (was, now), rows in found.items()}


def people(**jobs):
    return [(job,) for job, count in jobs.items() for _ in range(count)]


def test_full_domain_generalises_all_values_to_the_same_level():
    """If Lawyer and Engineer become Professional, Dancer and Writer must become Artist."""
    assert shown(people(Engineer=2, Lawyer=2, Dancer=3, Writer=3), "full-domain") == {
        ("Engineer", "Professional"): 2,
        ("Lawyer", "Professional"): 2,
        ("Dancer", "Artist"): 3,
        ("Writer", "Artist"): 3,
    }


def test_subtree_leaves_other_branches_alone():
    """If Engineer becomes Professional, so does Lawyer; Dancer and Writer can remain."""
    assert shown(people(Engineer=2, Lawyer=3, Dancer=3, Writer=3), "subtree") == {
        ("Engineer", "Professional"): 2,
        ("Lawyer", "Professional"): 3,
        ("Dancer", "Dancer"): 3,
        ("Writer", "Writer"): 3,
    }


def test_sibling_lets_a_sibling_remain():
    """If Engineer becomes Professional (here with Doctor), Lawyer can remain."""
    assert shown(people(Engineer=2, Doctor=2, Lawyer=3, Dancer=3), "sibling") == {
        ("Engineer", "Professional"): 2,
        ("Doctor", "Professional"): 2,
        ("Lawyer", "Lawyer"): 3,
        ("Dancer", "Dancer"): 3,
    }


def test_cell_lets_instances_of_a_value_differ():
    """Engineer in one record becomes Professional, in another it remains."""
    assert shown(people(Engineer=5, Lawyer=1, Dancer=3), "cell") == {
        ("Engineer", "Engineer"): 3,
        ("Engineer", "Professional"): 2,
        ("Lawyer", "Professional"): 1,
        ("Dancer", "Dancer"): 3,
    }


def test_multidimensional_generalises_by_several_columns_at_once():
    """<Engineer, Male> and <Engineer, Female> are generalised differently."""
    found = shown([("Engineer", "Male")] * 3 + [("Engineer", "Female")] + [("Lawyer", "Female")] * 2, "mondrian")
    assert found == {
        ("Engineer Male", "Engineer Male"): 3,
        ("Engineer Female", "Professional Female"): 1,
        ("Lawyer Female", "Professional Female"): 2,
    }


PAIRS = [("Engineer", "M")] * 3 + [("Engineer", "F")] * 3 + [("Lawyer", "M")] * 2 + [("Lawyer", "F")]


def test_record_suppression_removes_rows():
    policy = {"columns": {"job": "quasi", "sex": "quasi"}, "guarantee": {"k": 3}}
    policy["method"] = {"name": "full-domain", "recode": "suppress", "suppress": "1/3"}
    release = reveil.anonymize(pl.DataFrame(PAIRS, schema=["job", "sex"], orient="row"), policy, seed=1)
    assert release.certificate.counts["withheld rows"] == 3
    assert Counter(release.table.rows()) == {("Engineer", "M"): 3, ("Engineer", "F"): 3}


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("full-domain", {("Engineer", "*"): 6, ("Lawyer", "*"): 3}),  # column: all values of sex
        ("sibling", {("Engineer", "*"): 6, ("Lawyer", "*"): 3}),  # value: here the same is best
        ("cell", {("Engineer", "M"): 3, ("Engineer", "F"): 3, ("Lawyer", "*"): 3}),  # cell: three instances only
    ],
)
def test_column_value_and_cell_suppression(scheme, expected):
    policy = {"columns": {"job": {"role": "quasi", "weight": 2}, "sex": "quasi"}, "guarantee": {"k": 3}}
    policy["method"] = {"name": scheme, "recode": "suppress"}
    release = reveil.anonymize(pl.DataFrame(PAIRS, schema=["job", "sex"], orient="row"), policy, seed=1)
    assert Counter(release.table.rows()) == expected


def test_value_suppression_hides_all_instances_of_rare_values_only():
    table = pl.DataFrame({"town": ["Ulm"] * 4 + ["Bonn"] * 4 + ["Kiel"] * 2 + ["Jena"]})
    policy = {"columns": {"town": "quasi"}, "guarantee": {"k": 3}, "method": {"name": "sibling", "recode": "suppress"}}
    assert Counter(reveil.anonymize(table, policy, seed=1).table["town"]) == {"Ulm": 4, "Bonn": 4, "*": 3}


@pytest.mark.parametrize(("heavy", "kept"), [("job", "job"), ("sex", "sex")])
def test_importance_decides_what_is_suppressed(heavy, kept):
    """Either column may be suppressed to make four different rows alike in pairs; the important one stays."""
    table = pl.DataFrame({"job": ["Engineer", "Engineer", "Lawyer", "Lawyer"], "sex": ["M", "F", "M", "F"]})
    for scheme in ("full-domain", "cell"):
        columns = {name: {"role": "quasi", "weight": 3 if name == heavy else 1} for name in table.columns}
        policy = {"columns": columns, "guarantee": {"k": 2}, "method": {"name": scheme, "recode": "suppress"}}
        published = reveil.anonymize(table, policy, seed=1).table
        assert "*" not in set(published[kept])
        assert set(published[{"job": "sex", "sex": "job"}[kept]]) == {"*"}


def test_the_3_anonymised_table_without_numbers_of_social_security():
    table = pl.DataFrame(
        [
            ("012-345-6789", "10598", 24, "HIV"),
            ("823-627-9231", "90210", 37, "Hepatitis C"),
            ("987-654-3210", "10547", 26, "HIV"),
            ("382-827-8264", "90345", 38, "Hepatitis C"),
            ("847-872-7276", "89119", 36, "Diabetes"),
            ("422-061-0089", "02139", 25, "HIV"),
        ],
        schema=["ssn", "zip", "age", "disease"],
        orient="row",
    )
    regions = {"Northeastern US": ["10598", "10547", "02139"], "Western US": ["90210", "90345", "89119"]}
    columns = {
        "ssn": "drop",
        "age": {"role": "quasi", "widths": [10]},
        "zip": {"role": "quasi", "hierarchy": regions},
        "disease": "sensitive",
    }
    policy = {"columns": columns, "guarantee": {"k": 3}, "method": {"name": "full-domain"}}
    release = reveil.anonymize(table, policy, seed=1)
    assert release.table.columns == ["age", "zip", "disease"]
    assert Counter(release.table.rows()) == {
        ("[20-29]", "Northeastern US", "HIV"): 3,  # the slide writes [20, 30]
        ("[30-39]", "Western US", "Hepatitis C"): 2,
        ("[30-39]", "Western US", "Diabetes"): 1,
    }
    assert release.certificate.counts["groups"] == 2
    assert not reveil.check(release.table, {**policy, "guarantee": {"k": 3, "l": 2}}).holds  # all three have HIV


def test_the_generalised_microdata():
    """476**, 2*, * and 4790*, [43,52], *: ours shows the first ages as [22-29]."""
    table = pl.DataFrame(
        [
            ("47677", 29, "F", "Ovarian Cancer"),
            ("47602", 22, "F", "Ovarian Cancer"),
            ("47678", 27, "M", "Prostate Cancer"),
            ("47905", 43, "M", "Flu"),
            ("47909", 52, "F", "Heart Disease"),
            ("47906", 47, "M", "Heart Disease"),
        ],
        schema=["zip", "age", "sex", "disease"],
        orient="row",
    )
    columns = {"zip": {"role": "quasi", "prefixes": [5, 4, 3]}, "age": "quasi", "sex": "quasi", "disease": "sensitive"}
    policy = {"columns": columns, "guarantee": {"k": 3}, "method": {"name": "cell"}}
    assert Counter(reveil.anonymize(table, policy, seed=1).table.rows()) == {
        ("476**", "[22-29]", "*", "Ovarian Cancer"): 2,
        ("476**", "[22-29]", "*", "Prostate Cancer"): 1,
        ("4790*", "[43-52]", "*", "Flu"): 1,
        ("4790*", "[43-52]", "*", "Heart Disease"): 2,
    }
