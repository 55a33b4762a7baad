"""Values to integers: every type, narrow and wide, with missing values, and codes that last over a series."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.background.loading import Background, stated_hierarchy
from reveil.base.errors import InputError
from reveil.policy.column import Column
from reveil.policy.policy import load_policy
from reveil.table.encode import encode, positions_of

QUASI = Column(role="quasi")
HERE = Path()
WHOLE = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32]


def decoded(values: pl.Series, spec: Column = QUASI) -> list[object]:
    stated = None if spec.hierarchy is None else stated_hierarchy("x", spec.hierarchy, HERE)
    tree, positions = positions_of("x", spec, values, stated)
    assert positions.dtype == np.int32
    assert tree.has_missing == bool(values.null_count())
    assert all(position == 0 for position, value in zip(positions, values, strict=True) if value is None)
    return [tree.leaves[position] for position in positions]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whole_numbers_of_every_width(data):
    dtype = data.draw(st.sampled_from(WHOLE))
    low, high = pl.select(dtype.min()).item(), pl.select(dtype.max()).item()
    number = st.integers(low, high) | st.sampled_from([low, high, 0])
    values = pl.Series("x", data.draw(st.lists(st.none() | number, min_size=1, max_size=8)), dtype=dtype)
    assert decoded(values) == values.to_list()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8)
    | st.lists(st.none() | st.text(max_size=3).filter(lambda t: t not in ("", "*")), min_size=1, max_size=8)
    | st.lists(st.none() | st.dates(), min_size=1, max_size=8)
)
def test_other_types(values):
    known = next((value for value in values if value is not None), "")
    dtype = {float: pl.Float64, str: pl.String, datetime.date: pl.Date}[type(known)]
    series = pl.Series("x", values, dtype=dtype)
    assert decoded(series) == values


def test_positions_keep_the_order_of_numbers():
    values = pl.Series([2**62, -3, None, 2**62 + 1, 0])
    tree, positions = positions_of("x", QUASI, values)
    assert positions.tolist() == [3, 1, 0, 4, 2]
    assert tree.label(1, 3) == f"[-3-{2**62}]"
    assert tree.label(0, 3) == "*"  # a missing value beside others


def test_buckets_and_taxonomies():
    ages = pl.Series([20, 24, 25, None])
    assert decoded(ages, Column(role="quasi", widths=(5,))) == ["[20-24]", "[20-24]", "[25-29]", None]
    codes = pl.Series(["b", None, "a"])
    assert decoded(codes, Column(role="quasi", hierarchy={"letters": ["a", "b"]})) == ["b", None, "a"]
    with pytest.raises(InputError, match=r"R301.*'c' \(2 rows, nearest") as refusal:
        decoded(pl.Series(["c", "c", "d"]), Column(role="quasi", hierarchy={"g": ["cc", "d"]}))
    assert refusal.value.faults[0].rows == 2


def policy(**columns):
    return load_policy({"columns": {"age": "quasi", **columns}, "guarantee": {"k": 2}})


def codes_over(tables, **columns):
    """The codes of each table, each encoded with the book that the one before left."""
    known, found = {}, []
    for values in tables:
        frame = pl.DataFrame({"age": [1] * len(values), "ill": values})
        encoded = encode(frame, policy(ill=columns.get("ill", "sensitive")), known)
        known = {column.name: column.values for column in encoded.sensitive}
        found.append(encoded.codes[:, 0].tolist())
    return known["ill"], found


def test_codes_last_while_values_come_and_go():
    book, codes = codes_over([["flu", "cold"], ["asthma", None, "flu"], ["cold", "angina", None]])
    assert book == ("cold", "flu", "asthma", None, "angina")
    assert codes == [[1, 0], [2, 3, 1], [0, 4, 3]]


def test_missing_alone_has_a_code():
    book, codes = codes_over([[None, None], ["flu", None]])
    assert (book, codes) == ((None, "flu"), [[0, 0], [1, 0]])


def test_numbers_keep_their_codes_when_decimals_appear():
    book, codes = codes_over([[3, 1], [1.0, 2.5, 3.0]])
    assert (book, codes) == ((1, 3, 2.5), [[1, 0], [0, 2, 1]])


def test_all_faults_together():
    frame = pl.DataFrame({"age": [1, 2], "a": ["x", "y"], "b": ["u", "v"], "ill": ["flu", "cold"]})
    bad = policy(
        a={"role": "quasi", "hierarchy": {"g": ["x"]}},
        b={"role": "quasi", "order": ["u"]},
        ill={"role": "sensitive", "hierarchy": {"g": ["flu"]}},
    )
    with pytest.raises(InputError) as refusal:
        encode(frame, bad)
    assert [fault.where for fault in refusal.value.faults] == ["column 'a'", "column 'b'", "column 'ill'"]


def test_a_population_shares_the_positions_of_the_table():
    people = pl.DataFrame({"age": [5, 1, None, 9]})
    encoded = encode(pl.DataFrame({"age": [9, 5]}), policy(), None, Background(population=people))
    assert encoded.positions[:, 0].tolist() == [3, 2]
    assert encoded.population is not None
    assert encoded.population[:, 0].tolist() == [2, 1, 0, 3]
