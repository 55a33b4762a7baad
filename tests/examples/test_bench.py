"""Every script of bench/ runs at its smallest size, as people call it; figures mean nothing there."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
DATA = BENCH.parents[1] / "shared" / "data"
GENERATED = {  # script and arguments; {out} is a folder of the test
    "audit scale": "60 2 m-invariance 2",
    "audit compare": "60 2 2",
    "console": "--series 4 --releases 1 --times 3",
    "console_load": "--viewers 5 --megabytes 2 --rows 300 --times 5",
    "evolving_joint speed": "--rows 200 --releases 2",
    "evolving_joint speed ": "--rows 200 --releases 2 --kind large",
    "persistent series": "--rows 120 --releases 2 --queries 10 --m 3",
    "persistent attack": "--rows 120 --releases 2 --m 3",
    "persistent speed": "--rows 200 --past 2 --m 3",
    "persistent tradeoff": "--rows 120 --releases 2",
    "persistent_plots figure2": "{out}/figure2.svg",
    "init": "--smallest",
    "leaks": "--rows 120 --times 1",
    "truth": "--series 8",
    "perturb": "300",
    "series table": "--rows 90 --releases 2 --queries 10 --m 3 --shapes hospital",
    "series speed": "--rows 300 --past 1 --m 3 --times 1",
    "scale": "--rows 2000",
    "single": "--rows 300",
    "startup": "1 30",
    "toolbox_plots": "{out}",
    "transient series": "--rows 300 --releases 2",
    "transient speed": "--rows 2000 --past 1",
    "transient grid": "--rows 150 --releases 2",
    "transitions speed": "--rows 200 --short --releases 2",
    "transitions figures": "--rows 200 --arrive 20 --leave 20 --updates 20 --releases 2 --m 3 --queries 10 --only 3a"
    " --out {out}/figures.json",
}
REAL = {  # these read ../shared/data
    "persistent_real meps": "--people 200",
    "series table": "--shapes meps --rows 150 --releases 2 --queries 10 --m 3",
    "robust speed": "--rows 300",
    "robust breach": "--rows 300 --r 2 --queries 10",
    "schemes": "--rows 300 --times 1",
    "peers": "--rows 300",
    "others worlds": "--cases 16",
    "others sampled": "--cases 8",
    "others trial": "--people 150 --limit 4",
}


def run(name: str, arguments: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, *words = name.split()
    monkeypatch.setattr(sys, "argv", [script, *words, *(word.format(out=folder) for word in arguments.split())])
    monkeypatch.syspath_prepend(str(BENCH))
    runpy.run_path(str(BENCH / f"{script}.py"), run_name="__main__")


@pytest.mark.parametrize("name", GENERATED)
def test_on_generated_people(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run(name, GENERATED[name], tmp_path, monkeypatch)
    assert any(tmp_path.iterdir()) or capfd.readouterr().out


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
@pytest.mark.parametrize("name", REAL)
def test_on_real_people(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run(name, REAL[name], tmp_path, monkeypatch)
    assert capfd.readouterr().out


def test_figures_are_drawn_from_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("transitions figures", GENERATED["transitions figures"], tmp_path, monkeypatch)
    run("transitions_plots", "3 {out}/figure.svg {out}/figures.json", tmp_path, monkeypatch)
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")


OTHERS = {
    "attack_persistent",
    "fuzz",
    "publishers",
    "rounds",
    "tamper",
}  # imported by persistent and others; have own tests


def test_none_is_forgotten() -> None:
    tried = {name.split()[0] for name in (*GENERATED, *REAL)} | {"transitions_plots"}
    assert {path.stem for path in BENCH.glob("*.py")} == tried | OTHERS
