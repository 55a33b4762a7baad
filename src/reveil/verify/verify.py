"""A second opinion before anything is revealed: read the published bytes again and judge them.

Imports nothing that planned, recoded or wrote the release. What is checked is what anyone could see in the files, with
the worst case that it is known who is in which group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.background.loading import Background, load_background
from reveil.background.prior import load
from reveil.base.errors import Fault, GuaranteeError, InputError
from reveil.base.words import agree, some
from reveil.guarantees.lasting import Evolving
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.published.format import COUNT, GROUP, PACKAGE
from reveil.verify.bags import bag_findings, one_row_each, rows_and_invented
from reveil.verify.bundles import bundle_findings, view_of_bundles
from reveil.verify.changes import odd_changes
from reveil.verify.comparing import Check, Truth, compare, covered
from reveil.verify.judges.contract import Judge, Verdict, View
from reveil.verify.judges.counts import among
from reveil.verify.judges.registry import judges
from reveil.verify.leaks import measured_limits
from reveil.verify.reading import Reading, grouped, published_columns, read_release
from reveil.verify.steady import steady_boxes
from reveil.verify.tuples import check_tuples, told_by_tuples
from reveil.verify.waiting import Waiting, who_waits


@dataclass(frozen=True, eq=False)
class Bench:
    """The judges that a policy asks for, and what they know beside a release. Seated once for each release."""

    known: Background
    judges: tuple[Judge, ...]

    @classmethod
    def seat(cls, policy: Policy) -> Bench:
        known = load_background(policy)
        return cls(known, tuple(judges(policy, known)))


@dataclass(frozen=True)
class Verification:
    """What the verifier found in one folder of public files."""

    checks: tuple[Check, ...]
    verdicts: tuple[Verdict, ...]
    rows: int
    classes: int
    counterfeits: int
    sizes: Sequence[int] = field(repr=False)  # of the classes, ascending
    alone: int = 0  # classes of one real row and counterfeits
    stand_ins: int = 0  # people who are shown while a counterfeit stands in for their value
    hashes: Mapping[str, str] = field(default_factory=dict, repr=False)  # SHA-256 of the files that were judged
    labels: Mapping[str, int] = field(default_factory=dict, repr=False)  # different cells of each quasi-identifier
    waiting: Waiting = field(default_factory=Waiting)  # what being left out tells
    limits: tuple[str, ...] = ()  # where what is assumed does not agree with what the series has seen
    boxes: tuple[int, ...] = field(default=(), repr=False)  # two tables: people who show the same cells, ascending

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks) and all(verdict.holds for verdict in self.verdicts)

    def insist(self) -> None:
        """Raise when anything does not hold."""
        faults = [
            Fault("R601", check.name, check.finding, "do not publish; report this as a bug of Reveil")
            for check in self.checks
            if not check.holds
        ]
        faults += [
            Fault("R602", verdict.guarantee, verdict.statement, "do not publish this table", verdict.violating_rows)
            for verdict in self.verdicts
            if not verdict.holds
        ]
        if faults:
            raise GuaranteeError(faults)


def unreadable(error: Exception) -> str:
    """What a folder lacks, or why it cannot be read."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"holds no {Path(error.filename).name}"
    if isinstance(error, KeyError):
        return f"its data package names no {error.args[0]!r}"
    return f"cannot be read: {str(error).partition(chr(10))[0]}"


def verify(
    public: Path,
    policy: Policy,
    history: History,
    truth: Truth | None = None,
    bench: Bench | None = None,
) -> Verification:
    """Judge the public files of one release; `truth` adds checks against what was put in, `bench` has its judges."""
    try:
        with ThreadPoolExecutor(1) as beside:  # bytes are hashed while they are parsed
            hashing = beside.submit(hashes_in, public)
            reading = read_release(public, policy)
        hashes = hashing.result()
    except (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
        remedy = "name a release of this policy, or restore it from a backup"
        fault = Fault("R603", f"release in {public}", unreadable(error), remedy)
        raise InputError(fault) from None
    checks = [files_check(hashes, reading.package), _columns(reading, policy)]
    if not all(check.holds for check in checks):
        return Verification(tuple(checks), (), reading.table.height, 0, 0, (), hashes=hashes)
    return replace(check_reading(reading, policy, history, truth, checks, bench), hashes=hashes)


def check_table(table: pl.DataFrame, policy: Policy) -> Verification:
    """Judge a table that others have published, by itself; people and values may be side by side in it."""
    people, values = None, table
    if policy.method.two_tables and grouped(table, policy):
        sensitive = [name for name in policy.named("sensitive") if name in table.columns]
        people, values = table.drop(sensitive), table.select(GROUP, *sensitive)
    return check_reading(Reading({}, values, None, people), policy, History(), checks=[_strangers(table, policy)])


def check_reading(
    reading: Reading,
    policy: Policy,
    history: History,
    truth: Truth | None = None,
    checks: Sequence[Check] = (),
    bench: Bench | None = None,
) -> Verification:
    """Judge a release that has been read already."""
    table, findings = reading.table, list(checks)
    if policy.bundled and reading.people is None:
        return _check_bundles(table, policy, history, truth, checks, bench)
    seated = bench or Bench.seat(policy)
    rows = reading.people
    if policy.bundled and rows is not None:
        said, known = None if truth is None else truth.bundles, seated.known.hierarchies
        findings += [Check(*one) for one in bag_findings(rows, table, said, policy, known)]
        reading = replace(reading, people=one_row_each(rows, policy))
    groups, view = _view(reading, policy, truth)
    findings.append(_uniform(table, view, policy) if view.people is None else _parted(view, policy))
    findings += _standing_in(view, policy)
    if reading.counterfeits is not None:
        findings.append(_counterfeits(groups, view, reading.counterfeits))
    shown = _by_class(view) if view.people is None else view.quasi
    if truth is not None:
        findings += compare(table, view, truth)
        findings += covered(view, shown, truth, policy, seated.known.hierarchies)
        findings += steady_boxes(truth, policy, history, seated.known.hierarchies)
    waiting, limits = Waiting(), list[str]()
    if reading.tuples is not None:
        findings += check_tuples(reading.tuples, table, truth, history)
        limits += told_by_tuples(reading.tuples)
    if truth is not None and truth.members is not None and truth.left_out is not None:
        everybody = pl.concat([truth.members, truth.left_out], how="diagonal_relaxed")
        waiting = who_waits(everybody, history, policy, by_lot=truth.by_lot)
        findings += _waited(waiting)
        odd = odd_changes(policy, history, everybody)
        limits += [*waiting.limits(), *odd, *measured_limits(policy, history, everybody, table, bool(odd))]
    verdicts = [verdict for judge in seated.judges for verdict in judge.judge(view, history)]
    sizes, fakes = view.sizes(), view.counterfeits
    alone = int(np.count_nonzero((fakes > 0) & (sizes - fakes == 1)))
    several = policy.bundled and rows is not None
    shown_rows, invented = rows_and_invented(view, policy) if several else (table.height, int(fakes.sum()))
    counts = (shown_rows, view.count, invented, tuple(np.sort(sizes).tolist()))
    return Verification(
        tuple(findings),
        tuple(verdicts),
        *counts,
        alone,
        0 if view.stand_ins is None else view.stand_ins.height,
        labels=_labels(rows.select(policy.named("quasi")) if several and rows is not None else shown),
        waiting=waiting,
        limits=tuple(limits),
        boxes=() if view.people is None else _box_sizes(view.quasi),
    )


def _check_bundles(
    table: pl.DataFrame,
    policy: Policy,
    history: History,
    truth: Truth | None,
    checks: Sequence[Check],
    bench: Bench | None,
) -> Verification:
    """The same where somebody has several rows: classes are of people (or households), and not of rows."""
    if policy.bundle not in table.columns:
        finding = f"no column says which rows are of one of the {policy.bundled}"
        return Verification((*checks, Check("rows together", False, finding)), (), table.height, 0, 0, ())
    seated = bench or Bench.seat(policy)
    view = view_of_bundles(table, policy)
    said = None if truth is None else truth.bundles
    findings = [*checks, *(Check(*one) for one in bundle_findings(table, said, policy, seated.known.hierarchies))]
    findings += compare(table, view, truth) if truth is not None else []
    verdicts = [verdict for judge in seated.judges for verdict in judge.judge(view, history)]
    sizes = tuple(np.sort(view.owners()).tolist())
    counts = (table.height, view.count, 0, sizes)
    return Verification(tuple(findings), tuple(verdicts), *counts, labels=_labels(view.quasi))


def _box_sizes(people: pl.DataFrame) -> tuple[int, ...]:
    """How many people show the same cells, ascending."""
    return tuple(people.group_by(people.columns).len("\0people")["\0people"].sort().to_list())


def _waited(waiting: Waiting) -> list[Check]:
    """Nobody is shown whom an earlier release left out because of their value."""
    if not (waiting.people or waiting.crowd or waiting.shown):
        return []
    finding = f"{some(waiting.shown, 'person', 'people')} shown who had to wait because of their value"
    alike = f"{some(waiting.too_sure, 'person', 'people')} drawn to wait of whom one value is too frequent"
    checks = [Check("people who waited", waiting.shown == 0, finding)]
    return [*checks, Check("people drawn to wait", waiting.too_sure == 0, alike)] if waiting.parted else checks


def _labels(shown: pl.DataFrame) -> dict[str, int]:
    """How many different cells each quasi-identifier shows."""
    return shown.select(pl.all().n_unique()).row(0, named=True) if shown.width else {}


def _by_class(view: View) -> pl.DataFrame:
    """The cells of one row of each class: but for an anatomy's, all its rows show the same."""
    model = np.zeros(view.count, dtype=np.int64)
    model[view.classes] = np.arange(len(view.classes))
    return view.quasi[model] if len(view.classes) else view.quasi


def hashes_in(public: Path) -> dict[str, str]:
    hashes = {}
    for path in sorted(public.iterdir()):
        with path.open("rb") as file:
            hashes[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes


def files_check(hashes: Mapping[str, str], package: Mapping[str, Any]) -> Check:
    stated = {resource["path"]: resource["hash"] for resource in package["resources"]}
    extra = sorted(set(hashes) - {*stated, PACKAGE})
    wrong = [path for path, hashed in stated.items() if hashed != f"sha256:{hashes.get(path)}"]
    if extra or wrong:
        return Check("public files", False, f"unexpected {extra}, changed {wrong}")
    return Check("public files", True, f"{len(hashes)} files, each with the hash that the data package states")


def _strangers(table: pl.DataFrame, policy: Policy) -> Check:
    """A table that others have published may lack what tells nothing, but must not show more than the policy knows."""
    more = [name for name in table.columns if name not in (*published_columns(policy), GROUP)]
    finding = f"also published: {more}" if more else "none but those the policy publishes"
    return Check("published columns", not more, finding)


def _columns(reading: Reading, policy: Policy) -> Check:
    return columns_check([*([] if reading.people is None else reading.people.columns), *reading.table.columns], policy)


def columns_check(everything: Sequence[str], policy: Policy) -> Check:
    wanted = published_columns(policy)
    columns = [name for name in everything if name in wanted or name != GROUP]
    if sorted(columns) != sorted(wanted):  # a policy does not fix their order
        return Check("published columns", False, f"columns are {columns}, the policy publishes {wanted}")
    return Check("published columns", True, "exactly those the policy publishes; no identifier, no dropped column")


def _uniform(table: pl.DataFrame, view: View, policy: Policy) -> Check:
    if not grouped(table, policy):
        return Check("one generalisation per group", True, "groups are the rows that share all generalised cells")
    shown = view.quasi.hash_rows().to_numpy()  # 64 bits: two combinations that look like one are not met
    model = np.zeros(view.count, dtype=np.uint64)
    model[view.classes] = shown  # of some row of each group; all others must show the same
    uneven = len(np.unique(view.classes[shown != model[view.classes]]))
    finding = (
        f"{some(view.count, 'group')}, of which {uneven:,} {agree(uneven, 'shows', 'show')} more than "
        "one combination of cells"
    )
    return Check("one generalisation per group", uneven == 0, finding)


def _parted(view: View, policy: Policy) -> Check:
    """Everybody's group has values, and at least as many as people; more only where counterfeits are allowed."""
    assert view.people is not None
    lost, fakes = int((view.people < 0).sum()), view.counterfeits
    real = view.sizes() - fakes
    few, empty, more = int((fakes < 0).sum()), int((real == 0).sum()), int(fakes.clip(0).sum())
    allowed = policy.guarantee.descriptor.counterfeits
    finding = f"{some(len(view.people), 'person', 'people')} and {some(len(view.classes), 'value')} by group"
    if lost or few or empty or (more and not allowed):
        finding += f"; {some(lost, 'person', 'people')} of groups without values"
        finding += f", {some(few, 'group')} with too few, {empty:,} with nobody"
        finding += f"; {more:,} values are nobody's" if not allowed else ""
        return Check("two tables", False, finding)
    return Check("two tables", True, f"{finding}; {more:,} of the values are counterfeits")


def _standing_in(view: View, policy: Policy) -> list[Check]:
    """Only under a promise that weighs it is anybody shown without their own value, beside a group that is shown."""
    if view.stand_ins is None:
        return []
    asked, lost = policy.guarantee.find(Evolving), int((view.stand_ins["class"] < 0).sum())
    weighed = view.people is not None and asked is not None and asked.stands_in
    finding = f"{some(view.stand_ins.height, 'person', 'people')} shown while a counterfeit has their place"
    if lost or not weighed:
        finding += f"; {lost:,} of them beside groups that are not there" if lost else ", which nothing weighs here"
    return [Check("stand-ins", weighed and not lost, finding)]


def _numbered(groups: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of groups that occur, ascending, and the place of each row's among them."""
    numbers = groups.cast(pl.Int64).fill_null(-1)
    distinct = numbers.unique().sort().to_numpy()
    return distinct, among(numbers.to_numpy(), distinct)


def _classes_of(wanted: pl.Series, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class of each group number, -1 where no published row has it; `groups` are the numbers that occur."""
    return among(wanted.cast(pl.Int64).fill_null(-1).to_numpy(), groups)


def _view(reading: Reading, policy: Policy, truth: Truth | None) -> tuple[NDArray[np.int64], View]:
    """The numbers of groups that occur, ascending (none where the table has no groups), and what the judges look at."""
    table, counterfeits, parted = reading.table, reading.counterfeits, reading.people
    quasi = (table if parted is None else parted).select(policy.named("quasi"))
    members, stand_ins, signatures, people, groups = None, None, None, None, np.empty(0, dtype=np.int64)
    if not grouped(table, policy):
        kinds = quasi.unique(maintain_order=True).with_row_index("\0class")
        joined = quasi.join(kinds, on=quasi.columns, how="left", nulls_equal=True, maintain_order="left")
        classes, invented = joined["\0class"].cast(pl.Int64).to_numpy(), np.zeros(kinds.height, dtype=np.int64)
    else:
        groups, classes = _numbered(table[GROUP])
        invented = np.zeros(len(groups), dtype=np.int64)
        if counterfeits is not None:
            of_class = _classes_of(counterfeits[GROUP], groups)
            stated = counterfeits[COUNT].fill_null(0).to_numpy()[of_class >= 0]
            np.add.at(invented, of_class[of_class >= 0], stated)
        if parted is not None:
            people = _classes_of(parted[GROUP], groups)
            real = np.bincount(people[people >= 0], minlength=len(groups))
            invented = np.bincount(classes, minlength=len(groups)) - real
        if truth is not None and truth.stand_ins is not None:  # they are people beside whom no value is theirs
            of_class = _classes_of(truth.stand_ins[GROUP], groups)
            stand_ins = truth.stand_ins.select("person").with_columns(pl.Series("class", of_class))
            np.add.at(invented, of_class[of_class >= 0], 1)
        if truth is not None and truth.members is not None:
            members = truth.members.select("person").with_columns(
                pl.Series("class", _classes_of(truth.members[GROUP], groups))
            )
        if parted is not None and policy.guarantee.priors:  # people are shown as they are
            columns = {prior.name: prior.match(parted) for prior in load(policy)}
            signatures = pl.DataFrame({"class": people, **columns})
        elif truth is not None and truth.signatures is not None:
            of_class = _classes_of(truth.signatures[GROUP], groups)
            signatures = truth.signatures.drop(GROUP).insert_column(0, pl.Series("class", of_class))
    sensitive = {name: table[name] for name in policy.named("sensitive")}
    original = {} if truth is None else truth.put_in()
    known = (members, signatures, people)
    return groups, View(classes, quasi, sensitive, invented, *known, original=original, stand_ins=stand_ins)


def _counterfeits(groups: NDArray[np.int64], view: View, counterfeits: pl.DataFrame) -> Check:
    stated = counterfeits.drop_nulls()[GROUP].sort().to_numpy()
    each = counterfeits.height == len(stated) and np.array_equal(stated, groups)
    fits = bool(((view.counterfeits >= 0) & (view.counterfeits <= view.sizes())).all())
    finding = f"{int(view.counterfeits.sum()):,} counterfeit rows are stated, "
    if each:
        finding += (
            "none more than its group has rows" if fits else "in some group more than it has rows, or fewer than 0"
        )
    else:
        finding += "but not once for each published group"
    return Check("counterfeit counts", each and fits, finding)
