"""The whole job, in order.

    read -> roles -> encode -> plan -> recode -> emit (staged) -> verify (the staged bytes) -> record -> reveal

`anonymize` makes one release without memory. A `Series` remembers: later releases must respect what it recorded.
Recording comes before revealing, because what has been published can never be taken back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from reveil.base import lots
from reveil.base.doubts import accepted
from reveil.base.errors import InfeasibleError, ReveilError, TamperedError, stop_if
from reveil.base.lots import generator, secret_of, token
from reveil.base.progress import Progress, silent
from reveil.history.amended import as_recorded, corrected_limits
from reveil.history.bags import as_people, one_row_each
from reveil.history.history import History
from reveil.history.memory import RULE_OF_WAITING, facts_of, memory_of
from reveil.history.recorded import history_of
from reveil.history.returning import hashes_of, recognise
from reveil.history.tables import doubtful_table, trace_of
from reveil.jobs.approval_specs import AcceptSpec, WithdrawSpec
from reveil.jobs.draft import FIXED, Draft, preview_of
from reveil.jobs.engines import EngineAsked, beyond_memory, in_parts
from reveil.jobs.input import Meant, encoded_of, origin_of, usable
from reveil.jobs.past import home_of
from reveil.jobs.release import Preview, Release, html_table
from reveil.ledger import store
from reveil.ledger.anchor import refuse_seen
from reveil.ledger.ledger import Ledger
from reveil.ledger.moving import refuse_other
from reveil.ledger.record import Head
from reveil.plan.loss import loss_of
from reveil.plan.methods import method
from reveil.plan.plan import refuse_nothing
from reveil.policy.agreement import faults_alone, faults_together
from reveil.policy.policy import Policy, PolicyLike, load_policy
from reveil.published.format import PEOPLE, PRIVATE, PUBLIC, TABLE, TUPLES, value_tables
from reveil.published.imprint import Imprint
from reveil.report.make import write_reports
from reveil.table.types import decided_types
from reveil.table.where import Where
from reveil.verify.certificate import certify
from reveil.verify.verify import Verification, verify
from reveil.write.emit import count_counterfeits, emit, stamp
from reveil.write.folders import copy_release, make_halves
from reveil.write.recode import recode
from reveil.write.truth import truth_of
from reveil.write.two_tables import part

if TYPE_CHECKING:
    from reveil.audit.audit import Audit
    from reveil.jobs.afterwards import Afterwards
    from reveil.jobs.proposing import Proposed


def draft(
    table: Any,
    policy: Policy,
    history: History | None,
    key: bytes,
    seed: int | None,
    progress: Progress,
    *,
    new_people: bool = False,
    accept: Sequence[str] = (),
    where: Where | None = None,
) -> Draft:
    """Read, check, encode and plan. Nothing is written. `history` is None outside a series."""
    progress("reading", 0.0)
    past = history or History()
    raw, frame, bench = usable(table, policy, past, history is not None, seed, accepted(accept), where)
    trace = None if history is None else trace_of(frame, raw, key)
    stop_if([] if trace is None else doubtful_table(raw, trace, past.traces, accept))
    progress("encoding", 0.0)
    each = one_row_each(frame, policy) if policy.bundled and history is not None else frame
    people = recognise(each, past, key, policy, new_people=new_people)
    frame, corrected = as_recorded(frame, people.numbers, past)
    # Another secret each time, also where the same seed is given: rows in the same order twice would be known again by
    # their places, and counterfeits by the lots they draw.
    secret = secret_of(key, seed, past.head, past.discarded)
    encoded = encoded_of(frame, None if history is None else people.numbers, past, policy, bench.known, secret)
    plan = method(policy)(encoded, past, policy, seed=secret, progress=progress)
    refuse_nothing(plan)
    rng = generator(secret)
    plan = plan.renumbered(rng)
    names = token(secret, "series"), token(secret, "release")
    imprint = None if history is None else Imprint.following(past.imprint, past.head + 1, *names)
    known = (bench, people, imprint, trace, origin_of(table), corrected)
    return Draft(policy, frame, encoded, plan, loss_of(encoded, plan, policy), rng, *known)


def write_release(d: Draft, folder: Path, history: History, number: int | None, progress: Progress) -> Release:
    """Recode and emit into folder/public, verify those bytes, and write certificate and reports into folder/private."""
    series = number is not None
    progress("writing", 0.0)
    counterfeits = count_counterfeits(d.plan) if series else None
    values, boxes, tuples = None, None, None
    if d.policy.method.two_tables:
        parted = part(d.frame, d.encoded, d.plan, d.policy, d.rng)
        names, values, boxes = value_tables(d.policy.named("sensitive")), parted.values, parted.boxes
        table, tuples = parted.people.table, parted.tuples
        counted = {names[name]: values[name] for name in values} | ({} if tuples is None else {TUPLES: tuples})
        emit({PEOPLE: parted.people, **counted}, None, d.policy, folder / PUBLIC)
    else:
        grouped = series or bool(d.policy.guarantee.priors)
        recoded = recode(d.frame, d.encoded, d.plan, d.policy, d.rng, group_column=grouped)
        table = recoded.table
        emit({TABLE: recoded}, counterfeits, d.policy, folder / PUBLIC)
    if d.imprint is not None:
        stamp(folder / PUBLIC, d.imprint, history.retracted)
    progress("verifying", 0.0)
    said = truth_of(d.frame, d.encoded, d.plan, d.policy, boxes)
    (verification := verify(folder / PUBLIC, d.policy, history, said, d.bench)).insist()
    certificate = certify(
        verification,
        d.policy,
        release=number,
        rows=d.encoded.rows,
        reasons=d.plan.reasons,
        hashes=verification.hashes,
        people=d.owners | (d.people.returning.counts() if series else {}),
        notes=(*d.people.returning.limits(), *corrected_limits(d.corrected)),
    )
    progress("reporting", 0.0)
    seen = (d.frame, table, certificate, d.plan, d.loss, verification, d.policy, d.bench.known, history)
    write_reports(folder / PRIVATE, *seen, losses=history.losses, values=values, origin=d.origin)
    about = (number, values, decided_types(d.frame, d.policy.columns, history.types), tuples)
    return Release(table, d.plan.people_groups, counterfeits, certificate, None, *about, d.plan.with_stand_in)


def anonymize(
    table: Any,
    policy: PolicyLike,
    *,
    seed: int | None = None,
    key: lots.KeyLike | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
    accept: Sequence[str] = (),
    where: Where | None = None,
    engine: str = "auto",
    memory: int | str | None = None,
    master: str | None = None,
) -> Release:
    """One release of one table: verified, without a series and without memory.

    `out` is a new or empty folder for the public and the private half; without it, nothing is left on disk. A release
    made with a `seed` keeps a key in its private half: seed and key together repeat it, and neither does so alone.
    `accept` names doubts about the table that are right as they are (`reveil.base.doubts`), `where` takes only the rows
    with these values, such as {"year": 1985}. `engine`: "whole", "blocks" (out of core), "spark" (`master`: its
    URL), or "auto": Spark for its own frames, blocks where files are larger than `memory` ("4GB") allows.

    >>> people = pl.DataFrame({"age": [20, 21, 40, 41], "illness": ["flu", "cold", "flu", "asthma"]})
    >>> columns = {"age": "quasi", "illness": "sensitive"}
    >>> release = anonymize(people, {"columns": columns, "guarantee": {"k": 2}}, seed=1)
    >>> sorted(release.table["age"].unique())
    ['[20-21]', '[40-41]']
    """
    loaded = load_policy(policy)
    stop_if(faults_alone(loaded))
    target = None if out is None else Path(out)
    if target is not None and target.exists():
        store.new_folder(target)  # an occupied folder is refused before any work
    own = lots.key_for(seed, key)
    if parts := in_parts(table, loaded, target, EngineAsked(engine, memory, master)):
        return parts.run(seed=seed, key=own, progress=progress, accept=accepted(accept), where=where)
    planned = draft(table, loaded, None, own, seed, progress, accept=accept, where=where)
    with tempfile.TemporaryDirectory(prefix="reveil-") as scratch:
        staged = Path(scratch)
        make_halves(staged)
        try:
            release = write_release(planned, staged, History(), None, progress)
            if seed is not None:
                (staged / PRIVATE / lots.KEY_FILE).write_bytes(own)
            return release if target is None else release.at(copy_release(staged, store.new_folder(target)))
        except OSError as error:
            raise store.refused_by_disk(error) from error


def open_series(policy: PolicyLike, home: str | Path | None = None, *, catalog: str | None = None) -> Series:
    """Open the series whose private memory is in `home`, or begin it there.

    Without `home`, it is in `.reveil` beside the policy file. A new series has its ledger in the database `catalog`.
    """
    return Series(loaded := load_policy(policy), home_of(loaded, home), catalog)


class Series:
    """Releases made under one policy, with the memory that later releases must respect.

    A new series is entered in its home by its first release: a plan, or a refused table, leaves nothing behind.
    """

    def __init__(self, policy: Policy, home: Path, catalog: str | None = None) -> None:
        refuse_other(home, catalog)
        self.policy, self.home, self._catalog = policy, home, catalog
        self.begun = not store.vacant(home)
        self._first_key = lots.fresh_key()  # the home's, where this begins it
        self._loaded: dict[str, Release] = {}  # by id of the record

    def __repr__(self) -> str:
        count = len(self.ledger.records()) if self.begun else 0
        return f"Series({self.policy.series.name!r}, {count} releases, home {str(self.home)!r})"

    def _repr_html_(self) -> str:
        return html_table(self.ledger.records() if self.begun else (), repr(self))

    @cached_property
    def ledger(self) -> Ledger:
        """The private memory; made when it is first needed."""
        name, fixed = self.policy.series.name, self.policy.fixed()
        about: dict[str, Any] = {"anchor": self.policy.anchor, "catalog": self._catalog}
        ledger = Ledger.create_or_open(self.home, series=name, policy=fixed, key=self._first_key, **about)
        self.begun = True
        return ledger

    def settle(self) -> list[str]:
        """Finish or clear away what an interrupted command left, and say what was done. Publishing begins with it."""
        return self.ledger.settle() if self.begun else []

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every release so far. Files are checked against the ledger when a release is first loaded."""
        records = self.ledger.records() if self.begun else []
        fresh = [record for record in records if record.id not in self._loaded]
        if fresh and (faults := self.ledger.check(record.number for record in fresh)):
            raise TamperedError(faults)
        self._loaded |= {record.id: Release.read(self.ledger, record) for record in fresh}
        return tuple(self._loaded[record.id] for record in records)

    def history(self) -> History:
        """The past as planning and verification see it."""
        return history_of(self.ledger) if self.begun else History()

    def draft(
        self,
        table: Any,
        past: History,
        seed: int | None,
        progress: Progress,
        policy: Policy | None = None,
        **meant: Unpack[Meant],
    ) -> Draft:
        """The next release, planned. A series that has not begun has its key ready: the first lots come from it."""
        stop_if(beyond_memory(table, self.policy) + faults_together(self.policy))
        key = self.ledger.key if self.begun else self._first_key
        try:
            return draft(table, policy or self.policy, past, key, seed, progress, **meant)
        except InfeasibleError as error:
            if past.head:
                error.add_note(FIXED)
            raise

    def plan(
        self,
        table: Any,
        *,
        seed: int | None = None,
        progress: Progress = silent,
        forms: bool = False,
        **meant: Unpack[Meant],
    ) -> Preview:
        """What would be published and what it would cost; with `forms`, in one table and in two. Changes nothing."""
        past = self.history()
        if faults_together(self.policy) and not self.begun:  # then it is one release by itself that is planned
            stop_if(beyond_memory(table, self.policy))
            return preview_of(draft(table, self.policy, None, self._first_key, seed, progress, **meant), None)
        d = self.draft(table, past, seed, progress, **meant)
        preview = preview_of(d, past)
        if not forms:
            return preview
        from reveil.jobs.forms import forms_of

        return replace(preview, forms=forms_of(d, partial(self.draft, table, past, seed, progress, **meant)))

    def publish(
        self, table: Any, *, seed: int | None = None, progress: Progress = silent, **meant: Unpack[Meant]
    ) -> Release:
        """One more release: planned, written, verified, recorded, revealed. Or nothing at all, with the reason.

        `new_people` says that far fewer people than usual are expected to come back, `accept` which doubts about the
        table are right as they are (`reveil.base.doubts`): the same table again, an older one, rows of sums. `where`
        takes only the rows with these values, such as {"year": 1985}; never of a sensitive column.
        """
        with self._made(table, seed, progress, **meant) as (staged, release, head, facts):
            record = self.ledger.record(staged, on=head, facts=facts)
        return release.at(self.ledger.reveal(record.number))

    def propose(
        self, table: Any, *, seed: int | None = None, progress: Progress = silent, by: str = "", **meant: Unpack[Meant]
    ) -> Proposed:
        """The next release as `publish` would make it, sealed and kept until it is accepted or withdrawn."""
        from reveil.jobs.proposing import proposed_of

        with self._made(table, seed, progress, proposing=True, **meant) as (staged, _, head, facts):
            proposal = self.ledger.approval.propose(staged, on=head, facts=facts, by=by)
        return proposed_of(self.ledger, proposal.token)

    def accept(self, token: str = "") -> Release:
        """Record and reveal a proposal (the one that is open), if it is what was sealed; under four eyes, signed."""
        return AcceptSpec(self.policy, token, self.home).run()

    def withdraw(self, token: str = "", *, note: str = "") -> Proposed:
        """Give a proposal up. Nobody outside has seen it, so that nothing is told by it."""
        return WithdrawSpec(self.policy, token, note, self.home).run()

    @contextmanager
    def _made(
        self, table: Any, seed: int | None, progress: Progress, *, proposing: bool = False, **meant: Unpack[Meant]
    ) -> Iterator[tuple[Path, Release, Head, dict[str, Any]]]:
        """The next release, written and verified in staging/, and what is recorded of it; removed if it is not."""
        past = self._settled_history(proposing)
        d = self.draft(table, past, seed, progress, **meant)
        staged = self.ledger.stage()
        try:
            with ThreadPoolExecutor(1) as beside:
                remembering = beside.submit(self._remember, d, past, staged)
                try:
                    release = write_release(d, staged, past, past.head + 1, progress)
                finally:
                    memory = remembering.result()  # where both fail, the disk is the reason to tell
            if self.policy.audit.gate:
                self._pass_gate(d, staged, memory, progress)
            progress("recording", 0.0)
            assert d.imprint is not None and d.trace is not None
            facts = facts_of(d.encoded, d.plan, past, d.frame, release.certificate, d.loss, d.imprint)
            facts |= d.trace.to_dict() | (RULE_OF_WAITING if self.policy.method.infeasible == "wait" else {})
            yield staged, release, Head(past.head, past.head_id), facts
        except OSError as error:
            raise store.refused_by_disk(error) from error
        finally:
            self.ledger.discard(staged)

    def _pass_gate(self, d: Draft, staged: Path, memory: Mapping[str, pl.DataFrame], progress: Progress) -> None:
        """The last gate: the audit of the series with the staged release, before it is recorded."""
        from reveil.audit.gate import insist

        progress("auditing", 0.0)
        books = {column.name: list(column.values) for column in d.encoded.sensitive}
        insist(self.ledger, self.policy, staged / PUBLIC, memory, books, progress)

    def _settled_history(self, proposing: bool) -> History:
        """The past to build on, after what a crash left of it is settled; both from one look into the catalog."""
        if not self.begun:
            refuse_seen(self.policy.anchor)
            return History()
        now = self.ledger.checked()
        self.ledger.settle(now)
        self.ledger.approval.refuse_early(now, proposing=proposing)
        return history_of(self.ledger, now)

    def _remember(self, d: Draft, past: History, staged: Path) -> dict[str, pl.DataFrame]:
        """Write what later releases must know into the staged release."""
        each = as_people(d.frame, d.encoded, d.plan, self.policy)
        hashes = hashes_of(each.frame, self.ledger.key, self.policy) if d.people.hashes is None else d.people.hashes
        memory = memory_of(each.encoded, each.plan, past, hashes, self.policy)
        for name, content in memory.items():
            self.ledger.write_memory(staged, name, content)
        return memory

    def hand_over(self, to: str | Path, number: int | None = None, *, recipient: str = "") -> Afterwards:
        """Copy the public half of a release (the latest) out and record it; it can never be discarded after that."""
        from reveil.jobs.specs import HandOverSpec

        return HandOverSpec(self.policy, to, number, recipient, self.home).run()

    def discard(self, number: int, *, reason: str = "", no_copy_left: bool = False) -> Afterwards:
        """Take back the newest release. `no_copy_left`: you are certain that nobody has it."""
        from reveil.jobs.specs import DiscardSpec

        return DiscardSpec(self.policy, number, reason, no_copy_left, self.home).run()

    def verify(self, number: int | None = None) -> Mapping[int, Verification | ReveilError]:
        """Check recorded releases again: their files against the ledger, and their bytes against the promise."""
        from reveil.verify.recheck import recheck

        return recheck(self.ledger, self.policy, number) if self.begun else {}

    def audit(self, **how: Any) -> Audit:
        """Attack this series as an adversary would, and say who is exposed and why (see `reveil.audit`)."""
        from reveil.audit.gate import audit_series

        return audit_series(self.ledger, self.policy, **how)
