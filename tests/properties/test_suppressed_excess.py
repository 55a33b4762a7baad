"""`suppress` where the table as a whole is not eligible: the fewest rows of the value, or a refusal above the limit."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reveil
from reveil.base.errors import InfeasibleError


def fewest(counts: Counter[str], alpha: Fraction) -> int | None:
    """The least number of rows of the most frequent values to leave out so that none has more than a share alpha."""
    rows = sum(counts.values())
    for gone in range(rows):
        left = rows - gone
        if sum(max(0, n - floor(alpha * left)) for n in counts.values()) <= gone:
            return gone
    return None


@pytest.mark.parametrize("name", ["mondrian", "full-domain", "cell"])
@given(
    held=st.lists(st.sampled_from("aaabc"), min_size=6, max_size=24),
    share=st.sampled_from(["1/20", "1/5", "1/2"]),
    alpha=st.sampled_from(["1/2", "2/3"]),
)
@settings(max_examples=25, deadline=None)
def test_the_fewest_rows_go_or_the_table_is_refused(name: str, held: list[str], share: str, alpha: str) -> None:
    table = pl.DataFrame({"age": list(range(20, 20 + len(held))), "ill": held})
    columns = {"age": {"role": "quasi", "widths": [5, 10]}, "ill": "sensitive"}
    promise = {"model": "alpha-k", "k": 2, "alpha": alpha}
    policy = {"columns": columns, "guarantee": promise, "method": {"name": name, "suppress": share}}
    needed, limit = fewest(Counter(held), Fraction(alpha)), floor(Fraction(share) * len(held))
    if needed is None or needed > limit:
        with pytest.raises(InfeasibleError):
            reveil.anonymize(table, policy, seed=1)
        return
    try:
        release = reveil.anonymize(table, policy, seed=1)
    except InfeasibleError:  # fewer than k rows are left
        assert len(held) - needed < 4
        return
    counts = release.certificate.counts
    assert release.certificate.holds and needed <= counts["withheld rows"] <= limit
    assert release.certificate.withheld.get("too frequent value", 0) == needed
