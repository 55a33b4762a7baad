"""Compiled code of another version is deleted once, that of this one is kept."""

from __future__ import annotations

from pathlib import Path

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
