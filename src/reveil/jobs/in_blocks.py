"""One release of a table that is larger than memory: the same job as `publish.py`, in blocks.

    different values -> books -> rows as numbers -> parts that keep the promise -> a plan for each -> files -> verified

Parts are told from the rows and the lots alone, and never from how many rows are read at once: the same seed and key
give the same bytes for any number of blocks.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from operator import add
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.base import lots
from reveil.base.errors import Fault, InfeasibleError, stop_if
from reveil.base.files import write_json
from reveil.base.progress import Progress, silent
from reveil.base.words import some
from reveil.engine.blocks import Blocks
from reveil.engine.verbs import Matrix, Rows
from reveil.hierarchies.tree import ANY
from reveil.history.history import History
from reveil.jobs.release import ReleaseInFiles
from reveil.ledger import store
from reveil.plan.cutting import admit, infeasible, parting
from reveil.plan.cutting.boxes import boxes, distinct_runs
from reveil.plan.loss import Loss
from reveil.plan.methods import method
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.format import PRIVATE, PUBLIC, part_name
from reveil.report.content import MergedFacts, ReportSource
from reveil.report.exposure import exact_sizes
from reveil.report.judgement import Origin
from reveil.report.make import today, write_pages
from reveil.table.books import Books, SeenValues, books_of, seen_in
from reveil.table.cells import texts
from reveil.table.doubts_in_parts import DoubtsInParts
from reveil.table.encode import Encoded
from reveil.table.identify import keyed_hashes, plain_spelling
from reveil.table.parts import Parts
from reveil.table.types import held_type, stated_type
from reveil.table.where import Where
from reveil.verify.certificate import certify
from reveil.verify.comparing import Truth
from reveil.verify.in_parts import verify_in_parts
from reveil.verify.verify import Bench
from reveil.write.emit import emit_package, emit_table
from reveil.write.folders import copy_release, make_halves
from reveil.write.recode import ColumnBlock, Recoded, decode, run_labels

LOT, SAMPLED = 11, 12  # purposes of lots: where a row is published, and whether it is in the sample
PLANNED = 200  # bytes that planning takes for each row


@dataclass(frozen=True)
class Sizes:
    """How much is looked at together. Only `at_once` may depend on the machine: the others settle what is published."""

    at_once: int  # rows
    part: int = 200_000  # rows that are planned together, or more where fewer do not keep the promise
    file: int = 1_000_000  # rows of a published file
    sample: int = 200_000  # rows that the bounds of parts are told from
    memory: int | None = None  # bytes


@dataclass(frozen=True, eq=False)
class TableInBlocks:
    """A table whose rows are numbers: quasi-identifiers, sensitive and insensitive columns, and two halves of a lot."""

    policy: Policy
    books: Books
    secret: int
    sizes: Sizes

    @cached_property
    def widths(self) -> tuple[int, int, int]:
        return len(self.books.quasi), len(self.books.sensitive), len(self.books.insensitive)

    @cached_property
    def totals(self) -> tuple[NDArray[np.int64], ...]:
        """Rows of each code in the whole table."""
        return tuple(
            np.array([dict(self.books.values[c.name].iter_rows()).get(value, 0) for value in c.values], dtype=np.int64)
            for c in self.books.sensitive
        )

    def encoded(self, rows: Matrix) -> Encoded:
        """Some rows as a table of its own, which knows the totals of all."""
        quasi, sensitive, _ = self.widths
        positions = np.ascontiguousarray(rows[:, :quasi])
        codes = np.ascontiguousarray(rows[:, quasi : quasi + sensitive])
        return Encoded(self.books.quasi, positions, self.books.sensitive, codes, totals=self.totals)


def anonymize_in_blocks(
    files: Sequence[Path],
    policy: Policy,
    target: Path,
    sizes: Sizes,
    *,
    seed: int | None,
    key: bytes,
    progress: Progress = silent,
    accept: Sequence[str] = (),
    where: Where | None = None,
) -> ReleaseInFiles:
    """One release, in files that each mix all groups; verified from their bytes before they are handed out."""
    with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
        staged, room = Path(scratch) / "release", Path(scratch) / "rows"
        staged.mkdir()
        room.mkdir()
        make_halves(staged)
        try:
            bench, engine = Bench.seat(policy), Blocks(room, sizes.at_once)
            parts = Parts(tuple(files), policy, sizes.at_once, tuple(accept), where)
            progress("reading", 0.0)
            seen = read_all(parts, engine, key)
            work = TableInBlocks(
                policy, books_of(seen, policy, bench.known, parts.declared), lots.secret_of(key, seed), sizes
            )
            release = _released(work, parts, engine, bench, staged, progress)
            if seed is not None:
                (staged / PRIVATE / lots.KEY_FILE).write_bytes(key)
            return release.at(copy_release(staged, store.new_folder(target)))
        except OSError as error:
            raise store.refused_by_disk(error) from error


def _released(
    work: TableInBlocks, parts: Parts, engine: Blocks, bench: Bench, staged: Path, progress: Progress
) -> ReleaseInFiles:
    progress("encoding", 0.0)
    rows = engine.rows(_numbered(work, parts))
    planned, noted = planned_rows(work, rows, progress)
    loss, withheld = loss_of(work, planned)
    if withheld == work.books.rows:
        message, remedy = f"nobody of {some(withheld, 'row')} could be published", "ask for a weaker promise"
        raise InfeasibleError(Fault("R137", "release", message, remedy, withheld))
    progress("writing", 0.0)
    write_files(work, planned, staged / PUBLIC, progress)
    progress("verifying", 0.0)
    truth = Truth(work.books.rows, withheld, work.books.values)
    verification = verify_in_parts(staged / PUBLIC, work.policy, truth, bench, engine, work.sizes.at_once)
    verification.insist()
    reasons = {"outlier, to keep others precise": withheld} if withheld else {}
    about = {"release": None, "rows": work.books.rows, "reasons": reasons, "hashes": verification.hashes}
    certificate = certify(verification, work.policy, **about)  # type: ignore[arg-type]
    progress("reporting", 0.0)
    statistics = {"parts planned by themselves": noted.parts}
    plan = Plan(np.empty(0, dtype=np.int32), noted.method, reasons=reasons, statistics=statistics)
    counted = {"groups": sum(loss.sizes.values()), "withheld": withheld}
    write_json(staged / PRIVATE / "certificate.json", certificate.to_dict())
    write_json(staged / PRIVATE / "plan.json", {"loss": loss.to_dict(), **plan.to_dict(), **counted})
    head = pl.DataFrame(schema=work.books.dtypes)
    seen = (certificate, plan, loss, verification, work.policy, bench.known, History())
    merged = MergedFacts(noted.exact, withheld, work.books.texts)
    write_pages(staged / PRIVATE, ReportSource(head, head, *seen, {}, today(), merged, origin=Origin(parts.origin)))
    return ReleaseInFiles(certificate, None, _decided(work), loss)


def _decided(work: TableInBlocks) -> dict[str, str]:
    specs = work.policy.columns
    return {
        n: held_type(pl.Series(dtype=t)) for n, t in work.books.dtypes.items() if stated_type(specs[n], None) is None
    }


def read_all(parts: Parts, engine: Blocks, key: bytes) -> SeenValues:
    """The different values of all columns; doubtful rows and people with two rows are refused."""
    found: list[SeenValues] = []
    noticed = DoubtsInParts(parts.policy, parts.accept)

    def people() -> Iterator[Matrix]:
        for block in parts:
            noticed.add(block)
            found[:] = [found[0] + seen_in(block, parts.policy)] if found else [seen_in(block, parts.policy)]
            if parts.policy.identifier in block.columns:
                identifiers = texts(block[parts.policy.identifier]).drop_nulls()
                plainest = plain_spelling(identifiers) if parts.policy.normalises else identifiers
                if len(plainest):
                    yield np.ascontiguousarray(keyed_hashes(plainest, key).to_numpy()).view(np.int32)

    hashed = engine.rows(people())
    if not found:
        stop_if([Fault("R212", "table", "has no rows", "check that the right file was given", 0)])
    stop_if(noticed.sums(found[0].values))
    shares = ceil(found[0].rows / engine.at_once)
    again = 0
    for block in hashed.together(lambda block: (block[:, 0].view(np.uint32) % shares).astype(np.int64), shares):
        _, times = np.unique(np.ascontiguousarray(block).view("V16"), return_counts=True)
        again += int(times[times > 1].sum())
    if again:
        remedy = "keep one row per person and release, for instance the latest"
        where = f"identifier {parts.policy.identifier!r}"
        stop_if([Fault("R214", where, "some people have more than one row", remedy, again)])
    return found[0]


def _numbered(work: TableInBlocks, parts: Parts) -> Iterator[Matrix]:
    """All rows as numbers, each with its lot."""
    first = 0
    for block in parts:
        drawn = lots.lots_of_rows(work.secret, LOT, first, block.height).view(np.int32).reshape(-1, 2)
        yield np.column_stack([work.books.encode(block), drawn])
        first += block.height


def _sampled(work: TableInBlocks, rows: Rows) -> Matrix:
    """Positions of rows that the bounds of parts are told from, drawn by lots of their own."""
    share = min(1.0, work.sizes.sample / work.books.rows)
    first, chosen = 0, []
    for block in rows:
        drawn = lots.lots_of_rows(work.secret, SAMPLED, first, len(block))
        chosen.append(block[drawn <= np.uint64(int(share * (2**64 - 1))), : work.widths[0]] if share < 1 else block)
        first += len(block)
    return np.concatenate(chosen)[:, : work.widths[0]]


@dataclass
class Noted:
    """What is seen of a table while its parts are planned."""

    parts: int
    method: str = ""
    exact: Counter[int] = field(default_factory=Counter)
    """Of classes of rows that share all exact quasi-identifiers, which are in one part: size -> how many."""


def planned_rows(work: TableInBlocks, rows: Rows, progress: Progress) -> tuple[Rows, Noted]:
    """Every row with its group within its part (-1: withheld) and what the group shows."""
    progress("planning", 0.0)
    sample = _sampled(work, rows)
    most = max(1, int(work.sizes.part * len(sample) / work.books.rows))
    tree = parting.grow(sample, work.books.quasi, most)
    quasi, sensitive, _ = work.widths
    widths = [len(column.values) for column in work.books.sensitive]
    counts = rows.fold(
        lambda block: parting.count(
            parting.leaf_of(tree, block), block[:, quasi : quasi + sensitive], tree.leaves, widths
        ),
        add,
    )
    settled = _settled(work, tree, counts)
    part = np.zeros(tree.leaves, dtype=np.int64)
    for number, leaves in enumerate(settled):
        part[leaves] = number
    noted = Noted(len(settled))

    def plan(block: Matrix) -> Matrix:
        sizes, times = np.unique(exact_sizes(pl.DataFrame(block[:, :quasi])), return_counts=True)
        noted.exact.update(dict(zip(sizes.tolist(), times.tolist(), strict=True)))
        progress("planning", sum(size * times for size, times in noted.exact.items()) / work.books.rows)
        return _plan(work, block, noted)

    return rows.together(lambda block: part[parting.leaf_of(tree, block)], len(settled)).each(plan).kept(), noted


def _settled(work: TableInBlocks, tree: parting.TopTree, counts: parting.LeafCounts) -> list[list[int]]:
    """Parts of leaves that each keep the promise, by exact counts."""
    quasi = work.widths[0]
    tests = admit.tests_of(work.encoded(np.empty((0, sum(work.widths) + 2), dtype=np.int32)), work.policy, work.totals)
    settled = parting.settle(tree, lambda leaves: parting.admits_counts(tests, *counts.of(leaves), quasi))
    if settled is None:
        columns = [np.repeat(np.arange(len(total), dtype=np.int32), total) for total in work.totals]
        codes = np.column_stack(columns) if columns else np.empty((work.books.rows, 0), dtype=np.int32)
        nothing = np.empty((work.books.rows, 0), dtype=np.int32)
        raise InfeasibleError(infeasible.faults(Encoded((), nothing, work.books.sensitive, codes), work.policy))
    largest = max(counts.of(leaves)[0] for leaves in settled)
    if work.sizes.memory is not None and largest * PLANNED > work.sizes.memory and largest > work.sizes.part:
        message = f"{some(largest, 'row')} cannot be parted so that each part keeps the promise by itself"
        raise InfeasibleError(
            Fault("R877", "table", message, "allow more memory, or ask for a weaker promise", largest)
        )
    return settled


def _plan(work: TableInBlocks, block: Matrix, noted: Noted) -> Matrix:
    """One part, planned as a table of its own: group, low and high of each quasi-identifier, codes, lot."""
    encoded = work.encoded(block)
    plan = method(work.policy)(encoded, History(), work.policy, seed=work.secret, progress=silent)
    noted.method = plan.method
    low, high = plan.boxes or boxes(plan.groups, encoded.positions, plan.count)
    shown = np.maximum(plan.groups, 0)
    return np.column_stack([plan.groups, low[shown], high[shown], block[:, work.widths[0] :]])


@dataclass(frozen=True, eq=False)
class Cost:
    """Sums over parts, from which the loss of a release follows."""

    columns: NDArray[np.float64]
    sizes: Counter[int]  # rows of a group -> how many groups
    blank: Counter[int]  # the same of groups that show nothing but `*`
    withheld: int

    def __add__(self, other: Cost) -> Cost:
        sizes, blank = self.sizes + other.sizes, self.blank + other.blank
        return Cost(self.columns + other.columns, sizes, blank, self.withheld + other.withheld)


def _cost(work: TableInBlocks, block: Matrix) -> Cost:
    kept, quasi = block[block[:, 0] >= 0], work.widths[0]
    columns, blank = [], np.ones(len(kept), dtype=np.bool_)
    for number, tree in enumerate(work.books.quasi):
        runs, index = distinct_runs(kept[:, 1 + number], kept[:, 1 + quasi + number], len(tree))
        columns.append(np.array([tree.loss(*run) for run in runs]) @ np.bincount(index, minlength=len(runs)))
        blank &= np.array([tree.label(*run) == ANY for run in runs], dtype=np.bool_)[index]
    sizes = _counted(kept[:, 0]), _counted(kept[blank, 0])
    return Cost(np.array(columns, dtype=np.float64), *sizes, len(block) - len(kept))


def _counted(groups: NDArray[np.int32]) -> Counter[int]:
    """How many groups have so many rows."""
    times = np.bincount(np.bincount(groups))
    return Counter({size: int(times[size]) for size in np.flatnonzero(times).tolist() if size})


def loss_of(work: TableInBlocks, planned: Rows) -> tuple[Loss, int]:
    """What the release loses, and how many rows are withheld."""
    cost, rows = planned.fold(lambda block: _cost(work, block), add), work.books.rows
    names = [tree.name for tree in work.books.quasi]
    columns = dict(zip(names, ((cost.columns + cost.withheld) / rows).tolist(), strict=True))
    shown, suppressed = cost.sizes - cost.blank, cost.withheld + sum(size * n for size, n in cost.blank.items())
    return Loss(
        columns=columns,
        mean=float(np.mean(list(columns.values()))),
        discernibility=sum(size * size * n for size, n in shown.items()) + suppressed * rows,
        average_group=sum(size * n for size, n in shown.items()) / max(1, sum(shown.values())),
        sizes=dict(sorted(cost.sizes.items())),
    ), cost.withheld


def write_files(work: TableInBlocks, planned: Rows, folder: Path, progress: Progress) -> None:
    """Rows drawn by lot into files, and there into places: where a row is says nothing of its group."""
    files = ceil(work.books.rows / work.sizes.file)

    def file_of(block: Matrix) -> NDArray[np.int64]:
        return (_lots(block) % np.uint64(files)).astype(np.int64)

    resources = []
    for number, block in enumerate(planned.each(lambda block: block[block[:, 0] >= 0]).together(file_of, files), 1):
        rows = block[np.argsort(_lots(block), kind="stable")]
        resources.append(emit_table(part_name(number), _recoded(work, rows), work.policy, folder))
        progress("writing", number / files)
    emit_package(resources, work.policy, folder)


def _lots(block: Matrix) -> NDArray[np.uint64]:
    halves: NDArray[np.uint64] = np.ascontiguousarray(block[:, -2:]).view(np.uint64).ravel()
    return halves


def _recoded(work: TableInBlocks, rows: Matrix) -> Recoded:
    """The published columns of one file, in the order of the policy."""
    quasi = work.widths[0]
    books, columns = work.books, list(work.books.columns)
    parts = []
    for name, spec in work.policy.columns.items():
        if name not in books.columns:
            continue
        at = columns.index(name)
        if spec.role == "quasi":
            tree = books.quasi[at]
            cells, index = run_labels(tree, rows[:, 1 + at], rows[:, 1 + quasi + at])
            parts.append(ColumnBlock(pl.DataFrame([cells.alias(name)]), index))
        elif spec.role == "sensitive":
            column = books.sensitive[at - quasi]
            parts.append(decode(column, rows[:, 1 + quasi + at], books.dtypes[name]))
        else:
            parts.append(ColumnBlock(books.insensitive[name].to_frame(), rows[:, 1 + quasi + at]))
    return Recoded(tuple(parts))
