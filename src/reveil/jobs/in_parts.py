"""One release of a table that comes apart: the same job as `publish.py`, in parts, on whatever engine has the rows.

    different values -> books -> rows as numbers -> parts that keep the promise -> a plan for each -> files -> verified

Everything is told from the rows, in any order, and from the secret: the same seed and key give the same bytes for any
number of blocks, for Spark with any partitions, and where a step was done twice. The key itself stays here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from operator import add
from pathlib import Path

import numpy as np
import polars as pl

from reveil.base import lots
from reveil.base.errors import Fault, InfeasibleError, stop_if
from reveil.base.files import write_json
from reveil.base.progress import Progress, silent
from reveil.base.words import some
from reveil.engine.blocks import Blocks, PiecesHere
from reveil.engine.verbs import Engine, Matrix, Pieces, Rows
from reveil.history.history import History
from reveil.jobs.release import ReleaseInFiles
from reveil.jobs.table_in_parts import PartedTable, Sizes, TableInParts, again, changed, cost_of, file_of, write_file
from reveil.ledger import store
from reveil.plan.cutting import mondrian, parting
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.format import PRIVATE, PUBLIC
from reveil.report.content import MergedFacts, ReportSource
from reveil.report.judgement import Origin
from reveil.report.make import today, write_pages
from reveil.table.books import books_of
from reveil.table.cells import texts
from reveil.table.facts import facts_of, refuse_empty
from reveil.table.identify import keyed_hashes, plain_spelling
from reveil.table.parts import Parts
from reveil.table.types import held_type, stated_type
from reveil.table.where import RowsWhere, Where
from reveil.verify.certificate import certify
from reveil.verify.comparing import Truth
from reveil.verify.in_parts import verify_in_parts
from reveil.verify.verify import Bench
from reveil.write.emit import emit_package
from reveil.write.folders import copy_release, make_halves


@dataclass(frozen=True, eq=False)
class TablePieces:
    """A table in pieces, and what is said about it."""

    pieces: Pieces[pl.DataFrame]
    policy: Policy
    origin: str
    declared: bool  # its source says of texts that they are texts
    accept: tuple[str, ...] = ()
    where: Where | None = None
    notes: tuple[str, ...] = ()  # for the certificate


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
    """One release of files, out of core on this machine."""
    with tempfile.TemporaryDirectory(prefix="reveil-") as room:
        parts, engine = Parts(tuple(files), policy, sizes.at_once, tuple(accept)), Blocks(Path(room), sizes.at_once)
        table = TablePieces(PiecesHere(engine, parts), policy, parts.origin, parts.declared, tuple(accept), where)
        return released(table, engine, sizes, target, seed=seed, key=key, progress=progress)


def released(
    table: TablePieces, engine: Engine, sizes: Sizes, target: Path, *, seed: int | None, key: bytes, progress: Progress
) -> ReleaseInFiles:
    """One release, in files that each mix all groups; verified from their bytes before they are handed out."""
    with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
        staged = Path(scratch)
        make_halves(staged)
        try:
            release = _staged(table, engine, sizes, lots.secret_of(key, seed), staged, progress)
            if seed is not None:
                (staged / PRIVATE / lots.KEY_FILE).write_bytes(key)
            return release.at(copy_release(staged, store.new_folder(target)))
        except OSError as error:
            raise store.refused_by_disk(error) from error


def _staged(
    table: TablePieces, engine: Engine, sizes: Sizes, secret: int, staged: Path, progress: Progress
) -> ReleaseInFiles:
    policy, bench = table.policy, Bench.seat(table.policy)
    work, rows = _numbered(table, engine, bench, sizes, secret, progress)
    parted = _parted(work, rows, engine, progress)
    planned = rows.together(parted.part_of, parted.parts).each(parted.planned).kept()
    cost = planned.fold(lambda block: cost_of(work, block), add)
    if cost.withheld == work.books.rows:
        message, remedy = f"nobody of {some(cost.withheld, 'row')} could be published", "ask for a weaker promise"
        raise InfeasibleError(Fault("R137", "release", message, remedy, cost.withheld))
    _begin(engine, progress, "writing")
    shown = planned.each(lambda block: block[block[:, 0] >= 0])
    by_file = shown.together(lambda block: file_of(work, block), work.files)
    resources, files = by_file.written(lambda block, folder: write_file(work, block, folder), staged / PUBLIC)
    emit_package(resources, policy, staged / PUBLIC)
    _begin(engine, progress, "verifying")
    truth = Truth(work.books.rows, cost.withheld, work.books.values)
    verification = verify_in_parts(staged / PUBLIC, files, policy, truth, bench, engine)
    verification.insist()
    reasons = {"outlier, to keep others precise": cost.withheld} if cost.withheld else {}
    certificate = certify(
        verification,
        policy,
        release=None,
        rows=work.books.rows,
        reasons=reasons,
        hashes=verification.hashes,
        notes=table.notes,
    )
    progress("reporting", 0.0)
    statistics = {"parts planned by themselves": parted.parts}
    plan = Plan(
        np.empty(0, dtype=np.int32), mondrian.described(work.empty, policy), reasons=reasons, statistics=statistics
    )
    loss = cost.loss(work, verification.sizes)
    counted = {"groups": sum(loss.sizes.values()), "withheld": cost.withheld}
    write_json(staged / PRIVATE / "certificate.json", certificate.to_dict())
    write_json(staged / PRIVATE / "plan.json", {"loss": loss.to_dict(), **plan.to_dict(), **counted})
    head = pl.DataFrame(schema=work.books.dtypes)
    seen = (certificate, plan, loss, verification, policy, bench.known, History())
    merged = MergedFacts(cost.exact, cost.withheld, work.books.texts)
    write_pages(staged / PRIVATE, ReportSource(head, head, *seen, {}, today(), merged, origin=Origin(table.origin)))
    return ReleaseInFiles(certificate, None, _decided(work), loss)


def _begin(engine: Engine, progress: Progress, stage: str) -> None:
    engine.watch = partial(progress, stage)
    engine.watch(0.0)


def _decided(work: TableInParts) -> dict[str, str]:
    specs = work.policy.columns
    return {
        n: held_type(pl.Series(dtype=t)) for n, t in work.books.dtypes.items() if stated_type(specs[n], None) is None
    }


def _numbered(
    table: TablePieces, engine: Engine, bench: Bench, sizes: Sizes, secret: int, progress: Progress
) -> tuple[TableInParts, Rows]:
    """All rows as numbers; doubtful rows and people with two rows are refused."""
    policy, accept, where = table.policy, table.accept, table.where
    _begin(engine, progress, "reading")
    facts = refuse_empty(table.pieces.fold(lambda block: facts_of(block, policy, accept, where), add))
    facts.insist()
    books = books_of(facts.seen, policy, bench.known, table.declared)
    _begin(engine, progress, "encoding")
    once = lots.fresh_key()  # people are told apart within this table only, and never by the key of a home
    named = policy.identifier is not None and policy.identifier in facts.seen.head.columns

    def numbers(block: pl.DataFrame) -> Matrix:
        block = RowsWhere(where, policy).of(block)
        try:
            coded = books.encode(block)
        except (pl.exceptions.PolarsError, IndexError):  # a value that was not there
            raise changed() from None
        return np.column_stack([coded, _hashed(block, policy, once)]) if named and len(coded) else coded

    width = len(books.columns)
    rows = table.pieces.rows(numbers)
    if named:
        shares = ceil(books.rows / engine.at_once)
        people = rows.each(lambda block: block[:, width:])
        by_person = people.together(lambda block: (block[:, 0].view(np.uint32) % shares).astype(np.int64), shares)
        if rows_again := by_person.fold(again, add):
            remedy = "keep one row per person and release, for instance the latest"
            where_ = f"identifier {policy.identifier!r}"
            stop_if([Fault("R214", where_, "some people have more than one row", remedy, rows_again)])
        rows = rows.each(lambda block: block[:, :width])
    return TableInParts(policy, books, secret, sizes), rows


def _hashed(block: pl.DataFrame, policy: Policy, key: bytes) -> Matrix:
    identifiers = texts(block[policy.identifier or ""])
    plainest = plain_spelling(identifiers) if policy.normalises else identifiers
    return np.ascontiguousarray(keyed_hashes(plainest, key).to_numpy()).view(np.int32)


def _parted(work: TableInParts, rows: Rows, engine: Engine, progress: Progress) -> PartedTable:
    """What is planned together."""
    _begin(engine, progress, "planning")
    sample = rows.fold(work.sampled, add)
    tree = parting.grow(sample, work.books.quasi, work.sizes.part / work.books.rows)
    return PartedTable.settled(work, tree, rows.fold(lambda block: work.counted(tree, block), add))
