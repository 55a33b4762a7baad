"""Where somebody has several rows: which of them belong together in the published bytes, and whether that is true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import text_hierarchies
from reveil.base.words import agree, some
from reveil.hierarchies.tree import Hierarchy
from reveil.policy.policy import Policy
from reveil.verify.covering import Held, uncovered
from reveil.verify.judges.contract import View

KIND = "\0kind"


@dataclass(frozen=True, eq=False)
class Bundles:
    """What the publisher says of the rows that are shown, in any order."""

    owner: NDArray[np.int64]  # whose row it is
    number: NDArray[np.int32]  # the published number of the owner
    box: NDArray[np.int32]  # which of the cells below the row shows
    cells: pl.DataFrame
    quasi: Mapping[str, Held]
    values: pl.DataFrame  # sensitive and insensitive cells of each row


def view_of_bundles(table: pl.DataFrame, policy: Policy) -> View:
    """Bundles are of one class if their rows show the same cells, each as often, in whatever order."""
    assert policy.bundle is not None
    quasi = table.select(policy.named("quasi"))
    kinds = quasi.unique(maintain_order=True).with_row_index(KIND)
    of_row = quasi.join(kinds, on=quasi.columns, how="left", nulls_equal=True, maintain_order="left")[KIND]
    owner = table[policy.bundle].cast(pl.String).fill_null("")  # rows of nobody are a finding of their own
    rows = pl.DataFrame({"bundle": owner.rank("dense").cast(pl.Int64) - 1, KIND: of_row})
    shown = rows.group_by("bundle").agg(pl.col(KIND).sort()).sort("bundle")[KIND]
    classes = (shown.list.eval(pl.element().cast(pl.String)).list.join(" ").rank("dense") - 1).cast(pl.Int64).to_numpy()
    bundles = rows["bundle"].to_numpy()
    of_class = classes[bundles]
    invented = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.int64)
    sensitive = {name: table[name] for name in policy.named("sensitive")}
    return View(of_class, quasi, sensitive, invented, bundles=bundles)


def bundle_findings(
    table: pl.DataFrame, said: Bundles | None, policy: Policy, stated: Mapping[str, Hierarchy]
) -> list[tuple[str, bool, str]]:
    """What was found: a name, whether it is as it must be, and the finding."""
    column, most = policy.bundle, policy.people.most
    assert column is not None
    nameless = table[column].null_count()
    found = [(f"rows by {column}", not nameless, f"{some(nameless, 'row')} of nobody")]
    if most is not None:
        largest = int(table.group_by(column).len()["len"].max() or 0)  # type: ignore[arg-type]
        found.append((f"rows of one {column}", largest <= most, f"at most {largest}, and {most} are allowed"))
    if said is None:
        return found
    names = pl.DataFrame({"owner": said.owner, "number": said.number}).unique()
    mixed = names.height - min(names["owner"].n_unique(), names["number"].n_unique())
    found.append(("whose rows are together", not mixed, f"{some(names.height, policy.bundled[:-1], policy.bundled)}"))
    shown = [*said.cells.columns, *said.values.columns]
    wanted = pl.DataFrame({column: said.number}).hstack(said.cells[said.box]).hstack(said.values)
    seen = table.select(column, *shown)
    rows = wanted.select(seen.columns).cast(seen.schema, strict=False).hash_rows().sort()
    lost = int((rows != seen.hash_rows().sort()).sum()) if len(rows) == seen.height else abs(len(rows) - seen.height)
    found.append(("rows as they were put in", not lost, f"{some(lost, 'row')} {agree(lost, 'is', 'are')} others"))
    held = pl.DataFrame([one.values for one in said.quasi.values()])
    trees = {**text_hierarchies(policy, held), **stated}
    wrong = uncovered(said.cells, said.box.astype(np.int64), said.quasi, trees)
    untrue = ", ".join(f"{name!r} of {some(number, 'row')}" for name, number in wrong.items() if number)
    return [*found, ("cells", not untrue, f"not true: {untrue}" if untrue else "each covers the values of its rows")]
