"""OpenDP, and nothing else, adds noise and adds losses up.

Counts are whole numbers, so the noise is the discrete Laplace (epsilon) or the discrete Gaussian (rho) distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from math import isfinite
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from reveil.base.errors import Fault, InputError

Given = ParamSpec("Given")
Found = TypeVar("Found")
Measure = Literal["epsilon", "rho"]
# Noise is calibrated for a hair less than is spent, so that sums of rounded-up losses stay below the stated sum.
HAIR = Fraction(1, 2**30)
ERROR = 0.05  # the published error is exceeded with this chance


def opendp() -> Any:
    """The library, or how to get it."""
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as error:
        message = f"the package '{error.name}' is missing; Reveil never makes such noise itself"
        raise InputError(Fault("R240", "differential privacy", message, "pip install 'reveil[dp]'")) from None
    dp.enable_features("contrib")
    return dp


def told(work: Callable[Given, Found]) -> Callable[Given, Found]:
    """What OpenDP refuses, and a figure that is not finite, is told as any other fault: nothing was recorded yet."""

    @wraps(work)
    def guarded(*args: Given.args, **options: Given.kwargs) -> Found:
        opendp()
        from opendp.mod import OpenDPException

        try:
            result = work(*args, **options)
        except (OpenDPException, ValueError, OverflowError) as error:
            raise _impossible(" ".join(str(error).split())) from error
        if isinstance(result, float) and not isfinite(result):
            raise _impossible(f"{work.__name__.replace('_', ' ')} would be {result}")
        return result

    return guarded


def _impossible(reason: str) -> InputError:
    message = f"OpenDP cannot make or add up this noise: {reason}. Nothing was spent"
    remedy = "change spend, contributions or delta: they are too small or too large together"
    return InputError(Fault("R241", "differential privacy", message, remedy))


def mechanism(measure: Measure, scale: float) -> Any:
    """Vectors of counts with noise of this scale; how much of it is lost depends on what one person can change."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if measure == "epsilon":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)


def reach(measure: Measure, contributions: int) -> int | float:
    """How far apart the counts with and without one person are. All of their rows may be in one cell."""
    return contributions if measure == "epsilon" else float(contributions)


@told
def calibrate(measure: Measure, contributions: int, spend: Fraction) -> float:
    """The scale of the noise that loses at most `spend`."""
    noise = opendp().binary_search_param(
        lambda scale: mechanism(measure, scale),
        d_in=reach(measure, contributions),
        d_out=float(spend * (1 - HAIR)),
        T=float,
    )
    return float(noise)


def composed(measure: Measure, scales: Sequence[float]) -> Any:
    """Everything that was ever counted, as OpenDP composes it."""
    return opendp().c.make_composition([mechanism(measure, scale) for scale in scales])


@told
def loss(measure: Measure, contributions: int, scales: Sequence[float]) -> Fraction:
    """What all of it together loses, rounded up by OpenDP."""
    if not scales:
        return Fraction(0)
    return Fraction(composed(measure, scales).map(reach(measure, contributions)))


@told
def epsilon_at(contributions: int, scales: Sequence[float], delta: Fraction) -> float:
    """Gaussian counts in the words of (epsilon, delta)."""
    if not scales:
        return 0.0
    profile = opendp().c.make_zCDP_to_approxDP(composed("rho", scales)).map(reach("rho", contributions))
    return float(profile.epsilon(float(delta)))


@told
def noisy(measure: Measure, scale: float, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts with noise; OpenDP draws it from the operating system, and no seed repeats it."""
    return np.array(mechanism(measure, scale)(counts.tolist()), dtype=np.int64)


@told
def error(measure: Measure, scale: float) -> float:
    """How far off a count is at most, in 95 of 100 cells."""
    dp = opendp()
    if measure == "epsilon":
        return float(dp.discrete_laplacian_scale_to_accuracy(scale=scale, alpha=ERROR))
    return float(dp.discrete_gaussian_scale_to_accuracy(scale=scale, alpha=ERROR))
