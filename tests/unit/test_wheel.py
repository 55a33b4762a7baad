"""The package as others install it: a wheel has every file that the program opens, and works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without the network and unpacked, as an installer does."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_a_wheel_has_every_file_of_the_package_and_no_other(installed: Path) -> None:
    here = {p.relative_to(ROOT / "src") for p in (ROOT / "src/reveil").rglob("*") if p.is_file()}
    wanted = {path for path in here if "__pycache__" not in path.parts and path.suffix not in (".nbi", ".nbc")}
    packed = {path.relative_to(installed) for path in (installed / "reveil").rglob("*") if path.is_file()}
    assert packed == wanted


def test_it_works_where_the_checkout_is_not(installed: Path, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("id,age,illness\n" + "".join(f"{n},{20 + n},{'ab'[n % 2]}\n" for n in range(20)), encoding="utf-8")
    for words in (["explain", "R101"], ["init", str(table), "-p", str(tmp_path / "reveil.toml")]):
        run = _run(installed, "-P", "-m", "reveil", *words, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        assert run.stdout
    (metadata,) = installed.glob("*.dist-info/METADATA")
    version = _run(installed, "-P", "-c", "import reveil; print(reveil.__version__, reveil.__file__)", cwd=tmp_path)
    number, place = version.stdout.split()
    assert f"Version: {number}\n" in metadata.read_text(encoding="utf-8")
    assert Path(place).is_relative_to(installed)


def _run(site: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
