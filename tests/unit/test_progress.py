"""A job says how far it is, and can be stopped at any stage without a trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.base.progress import Cancellable, CancelledError
from reveil.cli import terminal

POLICY = {
    "columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"},
    "guarantee": {"model": "l-diversity", "l": 2, "k": 2},
    "audit": {"gate": True},
}


def people() -> pl.DataFrame:
    return pl.DataFrame({"id": [*range(12)], "age": [*range(12)], "ill": ["flu", "cold", "gout"] * 4})


class StopAt(Cancellable):
    """Stops at the first step after a stage was shown."""

    def __init__(self, wanted: str) -> None:
        super().__init__(lambda stage, done: self.cancel() if stage == wanted else None)


def test_a_publication_can_be_stopped_after_every_stage_and_leaves_nothing(tmp_path: Path) -> None:
    stages: list[str] = []
    whole = reveil.open_series(POLICY, tmp_path / "whole")
    whole.publish(people(), progress=lambda stage, done: stages.append(stage))
    stages = list(dict.fromkeys(stages))
    assert (stages[0], stages[-1]) == ("reading", "recording")
    home = tmp_path / "home"
    for stage in stages[:-1]:
        with pytest.raises(CancelledError) as stopped:
            reveil.open_series(POLICY, home).publish(people(), progress=StopAt(stage))
        assert stopped.value.exit_code == 130
        assert reveil.open_series(POLICY, home).releases == ()
        assert not list(home.glob("staging/*"))
    # once it is being recorded a stop comes too late: the release is there, whole
    assert reveil.open_series(POLICY, home).publish(people(), progress=StopAt("recording")).number == 1


def test_where_nobody_sees_a_bar_each_stage_that_comes_late_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show = terminal.stages(0.0)
    for stage, done in (("reading", 0.0), ("reading", 0.5), ("planning", 0.0)):
        show(stage, done)
    assert capsys.readouterr().err.splitlines() == ["reading (0 s)", "planning (0 s)"]
    terminal.stages(60.0)("reading", 0.0)  # quick work is silent
    with terminal.progress(quiet=True) as quiet:
        quiet("reading", 0.0)
    assert capsys.readouterr().err == ""
