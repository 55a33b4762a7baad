"""Two tables as one, for ordinary tools: a line for each person and each value of their group, with a weight.

Nothing says which person of a group has which of its values, so all do in part: of a group's s values, c of them the
value, a person has it with weight c / s. The weights of a person sum to 1, those of the table to its people. What is
linear in the weights (counts, cross tables, sums, regressions on the values' shares) is then an estimate of the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.base.errors import Fault, InputError
from reveil.base.words import some
from reveil.ledger import store
from reveil.published.format import BUNDLE, COUNT, GROUP
from reveil.published.reader import Published, open_published
from reveil.write.emit import escaped_table

PERSON, WEIGHT = "person", "weight"
README = """# {title}: one line for each person and each value they may have

`{file}` was made by `reveil expand` from a release in two tables. Columns: `{person}` (a number for each line of the
people table), the published columns of people, `{group}`, {columns}, and `{weight}`: the number of times the person's
group has the value (or values), divided by the number of all its values. The weights of a person sum to 1, those of the
table to {people}.

Count with the weights, never the lines:

    # Python
    import pandas as pd
    t = pd.read_csv("{file}")
    t.groupby({python})["{weight}"].sum()

    # R
    t <- read.csv("{file}", check.names = FALSE)
    tapply(t$`{weight}`, t[c({r})], sum)

What is right, and what is not:
- Counts of values, and cross tables of values with columns of people, are estimates. Who has which value within a group
  is not published, so relations of values to other columns *within* groups are lost: differences come out smaller than
  they are (they are pulled to those of the groups), never larger on average.
- {counterfeits} of {values} values are counterfeits, of nobody. Weights spread them evenly over the values of a
  group; that is unbiased if people leave for reasons that have nothing to do with their value.
- Standard errors that take every line for a person of its own are too small. Resample persons (column `{person}`) with
  all their lines.
"""


@dataclass(frozen=True, eq=False)
class Expanded:
    """The long table of each sensitive column (and of those shown together), and of how many people and values."""

    tables: Mapping[str, pl.DataFrame]
    people: int
    values: int
    counterfeits: int

    def to_dict(self) -> dict[str, Any]:
        lines = {name: table.height for name, table in self.tables.items()}
        return {"people": self.people, "values": self.values, "counterfeits": self.counterfeits, "lines": lines}

    def __repr__(self) -> str:
        return f"<Expanded: {some(self.people, 'person', 'people')}, by {', '.join(map(repr, self.tables))}>"


def expand(published: Any) -> Expanded:
    """A release in two tables (a folder, a `Release`, or the pair of tables) as weighted lines.

    >>> people = pl.DataFrame({"group": [1, 1], "age": ["[30-35]", "[30-35]"]})
    >>> values = pl.DataFrame({"group": [1, 1], "ill": ["flu", "HIV"], "count": [2, 1]})
    >>> expand((people, {"ill": values})).tables["ill"].select("person", "ill", "weight").rows()[:2]
    [(1, 'flu', 0.6666666666666666), (1, 'HIV', 0.3333333333333333)]
    """
    opened = Published(published[0], None, published[1]) if isinstance(published, tuple) else open_published(published)
    if opened.values is None:
        message = "is one table, where each row has its value already"
        remedy = 'read it as it is; publish = "anatomy" makes two tables'
        raise InputError(Fault("R690", "release", message, remedy))
    if opened.bundle is not None or any(
        BUNDLE in table.columns and table.width == 4 for table in opened.values.values()
    ):
        message = "has all values of somebody in a bundle, and a long table has one value in each line"
        remedy = "read its two tables as they are: each bundle of a group is equally likely anybody's in it"
        raise InputError(Fault("R690", "release", message, remedy))
    clash = [name for name in (PERSON, WEIGHT) if name in (*opened.table.columns, *opened.values)]
    if clash:
        message = "has a name that the long table needs"
        raise InputError([Fault("R690", f"column {name!r}", message, "rename it") for name in clash])
    people = opened.table.with_columns(pl.int_range(1, pl.len() + 1).alias(PERSON))
    long = {name: _long(people, table, [name]) for name, table in opened.values.items()}
    if opened.tuples is not None:
        names = [name for name in opened.tuples.columns if name not in (GROUP, COUNT)]
        long[" and ".join(names)] = _long(people, opened.tuples, names)
    count = int(next(iter(opened.values.values()))[COUNT].sum())
    return Expanded(long, people.height, count, count - people.height)


def _long(people: pl.DataFrame, values: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    total = pl.col(COUNT).sum().over(GROUP)
    weighted = values.select(GROUP, *names, (pl.col(COUNT) / total).alias(WEIGHT))
    joined = people.join(weighted, on=GROUP, how="left", maintain_order="left_right")
    first = [PERSON, *(column for column in people.columns if column not in (PERSON, GROUP)), GROUP]
    return joined.select(*first, *names, WEIGHT)


def _columns(table: pl.DataFrame) -> dict[str, str]:
    """The columns of values as the README names them: in words, for Python and for R."""
    values = table.columns[table.columns.index(GROUP) + 1 : -1]
    quoted = ", ".join(f'"{name}"' for name in values)
    python = quoted if len(values) == 1 else f"[{quoted}]"
    return {"columns": ", ".join(f"`{name}`" for name in values), "python": python, "r": quoted}


def write_expanded(expanded: Expanded, out: str | Path, title: str = "Release") -> list[Path]:
    """Write the long tables and a README for each into a new or empty folder."""
    folder = store.new_folder(Path(out))
    written: list[Path] = []
    try:
        for number, table in enumerate(expanded.tables.values(), 1):
            stem = "expanded" if len(expanded.tables) == 1 else f"expanded-{number}"
            file, readme = folder / f"{stem}.csv", folder / f"{stem}.md"
            escaped_table(table).write_csv(file)
            facts = {"people": some(expanded.people, "person", "people"), "counterfeits": f"{expanded.counterfeits:,}"}
            names = {"person": PERSON, "group": GROUP, "weight": WEIGHT, "file": file.name} | _columns(table)
            readme.write_text(
                README.format(title=title, values=f"{expanded.values:,}", **facts, **names), encoding="utf-8"
            )
            written += [file, readme]
    except OSError as error:
        raise store.refused_by_disk(error) from error
    return written


def a_world(people: pl.DataFrame, values: Mapping[str, pl.DataFrame], seed: int) -> pl.DataFrame:
    """One of the tables that two tables may be made from: the values of each group dealt to its people by lot.

    Whatever is analysed in it is, on average over the lots, what two tables say. Some values are left over where some
    are counterfeits.

    >>> people = pl.DataFrame({"group": [1, 1], "age": ["[30-35]", "[30-35]"]})
    >>> values = pl.DataFrame({"group": [1, 1], "ill": ["flu", "HIV"], "count": [1, 1]})
    >>> a_world(people, {"ill": values}, 0)["ill"].sort().to_list()
    ['HIV', 'flu']
    """
    rng, place = np.random.default_rng(seed), pl.int_range(pl.len()).over(GROUP).alias("\0place")
    world = people.with_columns(place)
    for name, table in values.items():
        dealt = table.select(pl.col(GROUP, name).repeat_by(pl.col(COUNT).cast(pl.Int64)).explode())
        dealt = dealt[rng.permutation(dealt.height)].with_columns(place)
        world = world.join(dealt, on=[GROUP, "\0place"], how="left", maintain_order="left")
    return world.drop("\0place")
