"""Our verdicts beside those of pyCANON 1.3.6: equal where it is right, and its defects next to our answers.

pyCANON lives in an environment of its own, which `make peers` sets up.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reveil.history.history import History
from reveil.verify.judges.closeness import TClosenessJudge
from reveil.verify.judges.contract import View
from reveil.verify.judges.single import AlphaKJudge, KAnonymityJudge, LDiversityJudge

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
ADULT = ROOT.parent / "shared" / "data" / "adult_arx" / "adult.csv.gz"

pytestmark = pytest.mark.skipif(not PEERS.exists(), reason="run `make peers` to set up pyCANON")


def pycanon(jobs):
    script = ROOT / "tests" / "peers" / "pycanon_measure.py"
    done = subprocess.run([PEERS, "-W", "ignore", script], input=json.dumps(jobs), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def view_of(job):
    table = pl.DataFrame(job["table"], strict=False)
    boxes = table.select(job["quasi"]).unique(maintain_order=True).with_row_index("\0class")
    found = table.join(boxes, on=job["quasi"], how="left", nulls_equal=True, maintain_order="left")["\0class"]
    sensitive = {job["sensitive"]: table[job["sensitive"]]}
    counterfeits = np.zeros(boxes.height, dtype=np.int64)
    return View(found.cast(pl.Int64).to_numpy(), table.select(job["quasi"]), sensitive, counterfeits)


def ours(job):
    column, view = job["sensitive"], view_of(job)
    judges = {
        "k": KAnonymityJudge(1),
        "l": LDiversityJudge(Fraction(1), column),
        "alpha": AlphaKJudge(Fraction(1), column),
        "t": TClosenessJudge(Fraction(1), column),
        "entropy": LDiversityJudge(Fraction(1), column, "entropy"),
        "c": LDiversityJudge(Fraction(2), column, "recursive", Fraction(10**6)),
    }
    return {name: judges[name].judge(view, History())[0].worst for name in job["measures"]}


def random_job(seed, numeric, rows=60):
    chance = random.Random(seed)
    values = [chance.randint(0, 9) if numeric else chance.choice("abcde") for _ in range(rows)]
    table = {
        "age": [chance.choice(["[20-29]", "[30-39]", "[40-49]"]) for _ in range(rows)],
        "sex": [chance.choice("mf") for _ in range(rows)],
        "s": values,
    }
    return {"table": table, "quasi": ["age", "sex"], "sensitive": "s", "measures": ["k", "l", "alpha", "t"]}


def agree(theirs, mine):
    assert theirs == {name: pytest.approx(float(value), abs=1e-9) for name, value in mine.items()}


def test_they_agree_on_clean_tables_in_their_original_order():
    jobs = [random_job(seed, numeric=seed % 2 == 0) for seed in range(60)]
    for job, theirs in zip(jobs, pycanon(jobs), strict=True):
        agree(theirs, ours(job))


@pytest.mark.skipif(not ADULT.exists(), reason="the Adult data is not beside the project")
def test_they_agree_on_adult():
    with gzip.open(ADULT, "rt", encoding="utf-8") as file:
        adult = pl.read_csv(file.read().encode(), separator=";")
    decades = (adult["age"] // 20 * 20).cast(pl.String) + "+"
    table = adult.select("sex", "race", "salary-class", "occupation", "age", age_group=decades)
    job = {"table": table.to_dict(as_series=False), "quasi": ["sex", "age_group"]}
    categorical = job | {"sensitive": "occupation", "measures": ["k", "l", "alpha", "t"]}
    numeric = job | {
        "quasi": ["sex", "salary-class"],
        "sensitive": "age",
        "measures": ["k", "l", "alpha", "t"],
    }
    for one, theirs in zip((categorical, numeric), pycanon([categorical, numeric]), strict=True):
        agree(theirs, ours(one))


def shuffled(job, seed):
    """The same rows in another order, each with its old row number as pandas keeps it."""
    order = list(range(len(job["table"]["s"])))
    random.Random(seed).shuffle(order)
    table = {name: [column[place] for place in order] for name, column in job["table"].items()}
    return job | {"table": table, "index": order}


def test_pycanon_takes_row_labels_for_row_numbers():
    jobs = [random_job(seed, numeric=False, rows=25) for seed in range(40)]
    answers = pycanon([shuffled(job, seed) for seed, job in enumerate(jobs)])
    wrong = {"l": 0, "t": 0}
    for seed, (job, theirs) in enumerate(zip(jobs, answers, strict=True)):
        truth = ours(job)
        assert ours(shuffled(job, seed)) == truth
        assert theirs["k"] == truth["k"]  # class sizes do not depend on the order
        for name in wrong:
            wrong[name] += theirs[name] != pytest.approx(float(truth[name]))
    assert min(wrong.values()) > 0


def one_class(values, **more):
    table = {"box": ["x"] * len(values), "s": values}
    return {"table": table, "quasi": ["box"], "sensitive": "s"} | more


def test_pycanon_sorts_recursive_diversity_the_wrong_way():
    """Counts 8, 1, 1 and l = 3: r1 = 8 < c * r3 = c, so the smallest whole c is 9. pyCANON says 1."""
    job = one_class(["a"] * 8 + ["b", "c"], measures=["c"])
    assert pycanon([job]) == [{"c": 1.0}]
    view = view_of(job)
    assert not LDiversityJudge(Fraction(3), "s", "recursive", Fraction(8)).judge(view, History())[0].holds
    assert LDiversityJudge(Fraction(3), "s", "recursive", Fraction(9)).judge(view, History())[0].holds


def test_pycanon_loses_rows_with_a_missing_quasi_identifier():
    table = {"age": ["2*"] * 3 + [None], "s": ["a", "b", "c", "d"]}
    job = {"table": table, "quasi": ["age"], "sensitive": "s", "measures": ["k"]}
    assert pycanon([job]) == [{"k": 3.0}]
    assert ours(job) == {"k": 1}


def test_pycanon_cuts_the_entropy_down():
    job = one_class(["a", "b"] * 5, measures=["entropy"])
    assert pycanon([job]) == [{"entropy": 1.0}]
    assert ours(job) == {"entropy": pytest.approx(2)}
    assert LDiversityJudge(Fraction(2), "s", "entropy").judge(view_of(job), History())[0].holds


def test_pycanon_never_finds_a_missing_number():
    """NaN is a value of the table but equal to no row, so pyCANON's frequencies do not add up to 1."""
    table = {"box": ["x", "x", "y", "y"], "s": [1.0, 1.0, math.nan, math.nan]}
    job = {"table": table, "quasi": ["box"], "sensitive": "s", "measures": ["t"]}
    assert pycanon([job]) == [{"t": 1.0}]
    assert ours(job) == {"t": Fraction(1, 2)}  # two values, each class has all of one where the table has half


def test_pycanon_counts_a_class_for_a_level_that_nobody_has():
    job = one_class(["a", "b", "a"], measures=["k"], levels={"box": ["x", "unused"]})
    assert pycanon([job]) == [{"k": 0.0}]
    assert ours(job) == {"k": 3}
    unused = pl.Series("s", ["a", "b", "a"], dtype=pl.Enum(["a", "b", "c"]))
    view = View(
        np.zeros(3, dtype=np.int64),
        pl.DataFrame({"box": ["x"] * 3}),
        {"s": unused},
        np.zeros(1, dtype=np.int64),
    )
    assert LDiversityJudge(Fraction(2), "s").judge(view, History())[0].worst == 2
