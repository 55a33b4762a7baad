"""Seed 004: every number of the paper, and the counterexamples to its condition."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import reveil
from reveil.background.prior import Prior
from reveil.base.errors import InfeasibleError
from reveil.history.history import History
from reveil.verify.judges.contract import Verdict, View
from reveil.verify.judges.posterior import delta_ceiling, exact
from reveil.verify.judges.robust import RRobustnessJudge

TABLE_I = pl.DataFrame(
    {
        "name": ["Alan", "Betty", "Catherine", "Diana"],
        "gender": ["Male", "Female", "Female", "Female"],
        "age": [41, 42, 63, 64],
        "disease": ["Lung Cancer", "Hypertension", "Flu", "HIV"],
    }
)
TABLE_V = [
    (3, 2, "0.1", 0.0474),
    (3, 2, "0.3", 0.1235),
    (3, 2, "0.5", 0.1667),
    (3, 2, "0.9", 0.0818),
    (4, 2, "0.3", 0.1750),
    (6, 2, "0.3", 0.2211),
    (6, 3, "0.3", 0.1537),
    (6, 4, "0.3", 0.0955),
]


def group(rows: list[list[Fraction]], r: int, condition: str) -> Verdict:
    """The verdict on one group in which person i has row i as prior, and every value occurs once."""
    n = len(rows)
    values = tuple("abcdefghij"[:n])
    prior = Prior("p.csv", ("who",), "x", tuple((str(i),) for i in range(n)), values, tuple(map(tuple, rows)))
    cells = pl.DataFrame({"who": ["*"] * n})
    people = pl.DataFrame({"class": [0] * n, "p.csv": list(range(n))})
    view = View(
        np.zeros(n, dtype=np.int64), cells, {"x": pl.Series("x", values)}, np.zeros(1, dtype=np.int64), None, people
    )
    (verdict,) = RRobustnessJudge(Fraction(r), prior, condition).judge(view, History())
    return verdict


def hundredths(*rows: tuple[int, ...]) -> list[list[Fraction]]:
    return [[Fraction(p, 100) for p in row] for row in rows]


@pytest.mark.parametrize(("n", "r", "highest", "ceiling"), TABLE_V)
def test_table_v(n: int, r: int, highest: str, ceiling: float) -> None:
    assert round(float(delta_ceiling(n, Fraction(r), Fraction(highest))), 4) == ceiling


def test_example_2() -> None:
    ceiling = delta_ceiling(3, Fraction(2), Fraction("0.1"))
    assert ceiling == Fraction(9, 190)
    assert Fraction("0.1") - Fraction("0.08") <= ceiling


def test_example_1_alans_lung_cancer() -> None:
    """Table III with Table IV: 2-diverse, and yet Alan has lung cancer with 97 %."""
    table_iv = [[Fraction("0.1"), Fraction("0.9")], [Fraction("0.003"), Fraction("0.997")]]
    (alan, _), _ = exact([1, 1], [1, 1], table_iv)
    assert alan == Fraction(997, 1024)
    assert round(float(alan), 4) == 0.9736
    same = Fraction("0.21")
    (alan, _), _ = exact([1, 1], [1, 1], [[Fraction("0.1"), same], [Fraction("0.003"), same]])
    assert round(float(alan), 4) == 0.9709
    verdict = group(table_iv, 2, "exact")
    assert not verdict.holds
    assert verdict.worst == Fraction(997, 1024)


def policy(folder: Path, gender: str, **method: str) -> dict[str, object]:
    """Table I under the odds of Table IV, with what Table IV leaves open shared out evenly over the other
    diseases.
    """
    lines = ["gender;value;probability"]
    for who, cancer in (("Male", Fraction("0.1")), ("Female", Fraction("0.003"))):
        rest = (1 - cancer) / 3
        lines += [f"{who};Lung Cancer;{cancer}"] + [f"{who};{d};{rest}" for d in ("Hypertension", "Flu", "HIV")]
    (folder / "by-gender.csv").write_text("\n".join(lines))
    return {
        "columns": {"name": "drop", "gender": gender, "age": "quasi", "disease": "sensitive"},
        "guarantee": {"model": "r-robustness", "r": 2, "priors": ["by-gender.csv"]},
        "method": method,
        "folder": folder,
    }


def test_our_release_of_table_i_withholds_alan(tmp_path: Path) -> None:
    """Alan is the only man: in any group that shows lung cancer he has it with at least 97 %. Refused, or
    withheld.
    """
    with pytest.raises(InfeasibleError, match=r"R440 .*1 row fits no group; most often 'Lung Cancer'"):
        reveil.anonymize(TABLE_I, policy(tmp_path, "quasi"), seed=1)
    release = reveil.anonymize(TABLE_I, policy(tmp_path, "quasi", infeasible="withhold"), seed=1)
    assert release.groups[0] == -1
    assert (release.groups[1:] >= 0).all()
    (verdict,) = release.certificate.verdicts
    assert verdict["worst"] == "1/3"


def test_table_i_with_more_men_is_published_whole(tmp_path: Path) -> None:
    """With other men beside him Alan is published, in a group of men."""
    men = TABLE_I.with_columns(pl.lit("Male").alias("gender"), disease=pl.Series(["HIV", "Flu", "HIV", "Flu"]))
    release = reveil.anonymize(pl.concat([TABLE_I, men]), policy(tmp_path, "quasi"), seed=1)
    shown = release.table.filter(pl.col("disease") == "Lung Cancer")["gender"].to_list()
    assert shown == ["Male"]
    assert release.certificate.holds


COUNTEREXAMPLES = [
    # every x satisfies the Delta condition for r = 2
    (hundredths((20, 12, 12), (12, 20, 20), (12, 20, 20)), Fraction(25, 43)),
    (hundredths((36, 11, 32), (25, 17, 44), (24, 17, 48)), Fraction(3519, 6736)),
]


@pytest.mark.parametrize(("rows", "chance"), COUNTEREXAMPLES)
def test_counterexamples_of_the_delta_condition(rows: list[list[Fraction]], chance: Fraction) -> None:
    accepted = group(rows, 2, "delta")
    assert accepted.holds
    assert "Warning: the Delta condition is the paper's, and it does not bound this chance" in accepted.statement
    assert "Warning" in accepted.plain
    refused = group(rows, 2, "exact")
    assert not refused.holds
    assert refused.worst == chance > Fraction(1, 2)


def test_condition_on_one_value_alone() -> None:
    """N = 2, r = 2: equal priors for x, but those of the other value make it 50/51."""
    rows = [[Fraction(1, 2), Fraction(1, 100)], [Fraction(1, 2), Fraction(1, 2)]]
    assert rows[0][0] - rows[1][0] <= delta_ceiling(2, Fraction(2), Fraction(1, 2))
    found = exact([1, 1], [1, 1], rows)
    assert found is not None
    assert found[0][0] == Fraction(50, 51)


@pytest.mark.parametrize(("n", "r"), [(3, 2), (4, 2), (6, 2), (10, 2), (6, 3)])
def test_the_supremum_grows_with_the_group(n: int, r: int) -> None:
    """One person unlike the others, tiny priors: the Delta condition holds and the chance nears its supremum."""
    highest = Fraction(1, 10**9)
    low = highest - delta_ceiling(n, Fraction(r), highest)
    rows = [[highest] + [low] * (n - 1)] + [[low] + [highest] * (n - 1) for _ in range(n - 1)]
    found = exact([1, n - 1], [1, *[1] * (n - 1)], [rows[0], rows[1]])
    assert found is not None
    supremum = 1 / (1 + (r - 1) ** 2 / (n - 1))
    assert float(found[0][0]) == pytest.approx(supremum, abs=1e-6)
    assert group(rows, r, "delta").holds
    assert not group(rows, r, "exact").holds


def test_table_iii_is_found_out_from_its_bytes(tmp_path: Path) -> None:
    """The paper's Table III, as somebody else published it, is found out from its bytes and the prior alone."""
    published = pl.DataFrame(
        {
            "gender": ["*", "*", "Female", "Female"],
            "age": ["[41-42]", "[41-42]", "[63-64]", "[63-64]"],
            "disease": TABLE_I["disease"],
        }
    )
    rules = policy(tmp_path, "quasi")
    rules["columns"] = {"gender": "quasi", "age": "quasi", "disease": "sensitive"}
    certificate = reveil.check(published, rules)
    assert not certificate.holds
    assert "1 of 2 classes has somebody" in certificate.verdicts[0]["statement"]
