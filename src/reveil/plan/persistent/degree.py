"""The degree n that historical safety is planned with: as the policy gives it, or chosen by the paper's formulas."""

from __future__ import annotations

from reveil.background.breach_formulas import n_choose
from reveil.base.errors import Fault, InputError
from reveil.guarantees.historical_safety import HistoricalSafety


def degree(asked: HistoricalSafety) -> int:
    """n as given, or chosen from p, L, m and h; refused where no n does.

    >>> degree(HistoricalSafety(m=6, p="0.04", L=24, h="0.1"))
    3
    """
    if asked.n is not None:
        return asked.n
    p, releases, h, m = asked.p, asked.L, asked.h, asked.m
    assert p is not None and releases is not None and h is not None
    choice = n_choose(p, releases, m, h)
    if choice.n is None:
        curve = ", ".join(f"{float(value):.4f} (n = {n})" for n, value in enumerate(choice.curve, 1))
        most = next((L for L in range(releases, 0, -1) if n_choose(p, L, m, h).n), 0)
        way = f"lower L to {most}" if most else "raise m"
        message = f"no n keeps the probability of a breach below h = {h} with p = {p}, L = {releases}, m = {m}: {curve}"
        raise InputError(Fault("R421", "guarantee.n", message, f"{way}, raise h or m, or give n"))
    return choice.n
