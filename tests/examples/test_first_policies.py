"""`reveil init` on real tables: what it suggests is published as it is."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.start.suggest import draft_policy, suggest

DATA = Path(__file__).parents[3] / "shared" / "data"
MEPS = ("person_id", "age", "sex", "race_eth", "marital", "region", "industry", "health")
TABLES = {
    "adult": lambda f: f.head(3_000),
    "diabetes130_us_hospitals": lambda f: f.head(4_000).unique("patient_nbr", keep="first", maintain_order=True),
    "nlswork_1968_1988": lambda f: f.filter(pl.col("year") == 70).drop("year"),
    "meps_panel_2015_2016": lambda f: f.filter(pl.col("release") == 1).select(MEPS).drop_nulls("health").head(3_000),
}
DIABETES = (
    *("admission_type_id", "discharge_disposition_id", "admission_source_id", "time_in_hospital", "medical_specialty"),
    *("num_lab_procedures", "num_procedures", "num_medications", "number_outpatient", "number_emergency"),
    *("number_inpatient", "diag1_chapter_derived", "diag_1", "diag_2", "diag_3", "number_diagnoses", "max_glu_serum"),
    *("A1Cresult", "examide", "insulin", "diabetesMed"),
)
MODELS = {
    "adult": ("t-closeness", ("capital_gain", "capital_loss", "income")),
    "diabetes130_us_hospitals": ("t-closeness", DIABETES),
    "nlswork_1968_1988": ("compromise-safety", ("union", "ln_wage")),
    "meps_panel_2015_2016": ("l-diversity", ("health",)),
}


@pytest.mark.parametrize("name", TABLES)
def test_suggested_policy_is_published_as_it_is(tmp_path: Path, name: str) -> None:
    file = DATA / f"{name}.parquet"
    if not file.exists():
        pytest.skip("the table is not here")
    frame = TABLES[name](pl.read_parquet(file))
    (tmp_path / "reveil.toml").write_text(draft_policy(suggest(frame), name))
    policy = reveil.load_policy(tmp_path / "reveil.toml")
    if policy.identifier is None:
        release = reveil.anonymize(frame, policy, seed=1)
    else:
        release = reveil.open_series(policy, tmp_path / "home").publish(frame, seed=1)
    assert release.certificate.holds
    assert (policy.guarantee.model, policy.named("sensitive")) == MODELS[name]
