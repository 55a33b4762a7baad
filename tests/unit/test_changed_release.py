"""A release whose files are not those of its data package is not read as if they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.errors import InputError

PEOPLE = pl.DataFrame({"age": [20, 21, 40, 41] * 3, "illness": ["flu", "cold", "asthma"] * 4})
POLICY = {"columns": {"age": "quasi", "illness": "sensitive"}, "guarantee": {"model": "l-diversity", "l": 2, "k": 2}}


@pytest.fixture(params=["csv", "parquet"])
def public(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    method = {"publish": "anatomy"}
    reveil.anonymize(PEOPLE, {**POLICY, "method": method, "output": {"format": request.param}}, out=tmp_path / "out")
    return tmp_path / "out" / "public"


@pytest.mark.parametrize("use", [lambda p: reveil.ask(p, {"illness": "flu"}), reveil.expand])
def test_a_changed_file_is_refused_by_name(public: Path, use: object) -> None:
    use(public)  # type: ignore[operator]
    file = next(path for path in public.iterdir() if path.stem == "values")
    if file.suffix == ".csv":
        file.write_bytes(file.read_bytes().replace(b"flu", b"ulcer"))
    else:
        changed = pl.read_parquet(file).with_columns(illness=pl.lit("ulcer"))
        changed.unique(["group", "illness"]).write_parquet(file)
    with pytest.raises(InputError, match=rf"R607 file .*{file.name}.*copy them without datapackage"):
        use(public)  # type: ignore[operator]


def test_without_its_package_it_is_a_table_of_its_own(public: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(public, tmp_path / "copied"))
    (copied / "datapackage.json").unlink()
    assert reveil.expand(copied).to_dict() == reveil.expand(public).to_dict()
