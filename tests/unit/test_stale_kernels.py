"""Compiled code of another version is deleted once, that of this one kept; the collector rests while Numba compiles."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import ClassVar

import numba
from numba.core import event

from reveil.base.kernels import STAMP, forget_stale_code


def test_compiled_code_goes_when_modules_move_and_stays_otherwise(tmp_path: Path) -> None:
    package, cached = tmp_path / "reveil", tmp_path / "reveil" / "plan" / "__pycache__" / "cuts.split-1.py311.nbi"
    cached.parent.mkdir(parents=True)
    (package / "plan" / "cuts.py").write_text("from reveil.base.kernels import kernel")
    cached.write_text("old")
    forget_stale_code(package)
    assert not cached.exists()
    assert (package / "__pycache__" / STAMP).exists()

    cached.write_text("new")
    forget_stale_code.cache_clear()
    forget_stale_code(package)
    assert cached.exists()

    (package / "plan" / "cuts.py").rename(package / "plan" / "parts.py")
    forget_stale_code.cache_clear()
    forget_stale_code(package)
    assert not cached.exists()

    begin = "from reveil.base.kernels import kernel\n"
    for name, kept in (("Old", False), ("Old", True), ("New", False)):
        (package / "plan" / "parts.py").write_text(f"{begin}class {name}(NamedTuple):\n")
        cached.write_text("compiled")
        forget_stale_code.cache_clear()
        forget_stale_code(package)
        assert cached.exists() == kept


def test_nothing_is_collected_while_numba_compiles_and_again_afterwards() -> None:
    class Seen(event.Listener):  # type: ignore[misc]
        collecting: ClassVar[list[bool]] = []

        def on_start(self, event: event.Event) -> None:
            self.collecting.append(gc.isenabled())

        def on_end(self, event: event.Event) -> None:
            pass

    seen, before = Seen(), gc.isenabled()
    event.register("numba:compile", seen)
    try:
        doubled = numba.njit(lambda n: 2 * n)
        gc.enable()
        assert doubled(21) == 42
        assert gc.isenabled() and not any(Seen.collecting) and (Seen.collecting or numba.config.DISABLE_JIT)
        gc.disable()  # who has switched it off finds it so
        doubled(2.5)
        assert not gc.isenabled()
    finally:
        event.unregister("numba:compile", seen)
        (gc.enable if before else gc.disable)()
