"""Is everything still as it was recorded? Chain, key and every byte of every release.

The chain shows accidents, edits and mixed-up backups. It cannot stop somebody who may write to the home and
rebuilds the whole chain: for that, keep the id of each release where they cannot write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from reveil.base.errors import Fault, TamperedError
from reveil.ledger.amendments import key_of
from reveil.ledger.anchor import Anchor
from reveil.ledger.events import event_faults
from reveil.ledger.protocols import Bulk, Catalog
from reveil.ledger.record import Identity, Record, Snapshot, chain_id, release_name
from reveil.ledger.store import key_fault

# What is at stake, by part of a release: the public files matter least, because the world has them.
_STAKES = {
    "public": "publishing can go on; verifying and auditing release {n} needs it",
    "private": "publishing can go on; the certificate or report of release {n} cannot be relied on",
    "memory": "a release that builds on it cannot be planned safely, so publishing stops until it is back",
}


def check(
    home: Path, catalog: Catalog, bulk: Bulk, fingerprint: str, numbers: set[int] | None, anchor: Anchor | None = None
) -> list[Fault]:
    """Every fault of the series; `numbers` limits which releases' files are read again."""
    # In this order, because publishing goes on meanwhile: a folder is there only after its entry.
    folders = bulk.revealed()
    try:
        series = catalog.snapshot()
    except TamperedError as error:  # without readable entries there is nothing to compare files with
        return [*_key_faults(home, fingerprint), *error.faults]
    if series is None:
        return [*_key_faults(home, fingerprint), *_unknown_folders(folders, ())]
    files = file_faults(bulk, (r for r in series.records if numbers is None or r.number in numbers))
    return [*foundation_faults(home, series, (), anchor), *files, *_unknown_folders(folders, series.chain)]


def foundation_faults(
    home: Path, series: Snapshot, folders: Sequence[str], anchor: Anchor | None, *, keyless: bool = False
) -> list[Fault]:
    """What every plan stands on: key, chain of entries, anchor, and no release that the entries forget.

    Cheap, because no file of a release is read; whoever reads one compares its hash with the entries.
    """
    wanted = None if keyless else key_of(series.identity, series.events)
    faults = [*(_key_faults(home, wanted) if wanted else ()), *_chain_faults(series.chain, series.identity)]
    faults += [*event_faults(series), *_unknown_folders(folders, series.chain)]
    return faults + ([] if anchor is None else anchor.faults(series))


def _key_faults(home: Path, fingerprint: str) -> list[Fault]:
    fault = key_fault(home, fingerprint)
    return [fault] if fault else []


def _chain_faults(records: Sequence[Record], identity: Identity) -> Iterator[Fault]:
    """Every entry must be what it was, and follow on the one before it. A discarded number is given out again."""
    edited = [record.number for record in records if not _intact(record, identity)]
    remedy = "restore ledger.sqlite from the newest backup of the home"
    if len(edited) > 1 and len(edited) == len(records):
        message = "series name, policy or key fingerprint are not those that all releases were recorded with"
        yield Fault("R521", "ledger.sqlite", message, remedy)
    else:
        for number in edited:
            message = "its entry in the ledger was changed later; what is planned on it may be wrong"
            yield Fault("R521", f"release {number}", message, remedy)
    number, previous = 0, ""
    for record in records:
        gone = list(range(number + 1, record.number))
        if gone:
            names = ", ".join(map(str, gone))
            message = f"no entry in the ledger for release {names}, though release {record.number} follows"
            yield Fault("R522", "ledger.sqlite", f"{message}; a later release may give people of it away", remedy)
        elif record.previous != previous:
            message = f"it was recorded after another release {number} than the one now in the ledger"
            yield Fault("R521", f"release {record.number}", message, remedy)
        number, previous = record.number - record.discarded, record.id


def _intact(record: Record, identity: Identity) -> bool:
    return record.id == chain_id(identity, record.previous, record.number, record.made, record.facts, record.manifest)


def file_faults(bulk: Bulk, records: Iterable[Record]) -> Iterator[Fault]:
    """Where files of these releases are not what was recorded."""
    for record in records:
        yield from _faults_of(bulk, record)


def _faults_of(bulk: Bulk, record: Record) -> list[Fault]:
    where = f"release {record.number}"
    difference = bulk.compare(record)
    if difference is None:
        message = f"the folder releases/{release_name(record.number)} is missing"
        remedy = f"restore it from a backup; {_STAKES['memory']}"
        return [Fault("R523", where, message, remedy)]
    faults = [
        Fault("R523", f"{where}, {name}", "the file is missing", _restore(record, name)) for name in difference.missing
    ]
    for name in difference.changed:
        message = "the file is not the one that was recorded"
        faults.append(Fault("R524", f"{where}, {name}", message, _restore(record, name)))
    for name in difference.extra:
        message = "the file was not there when the release was recorded"
        remedy = f"move it out of releases/{release_name(record.number)}; the release itself is not affected"
        faults.append(Fault("R525", f"{where}, {name}", message, remedy))
    return faults


def _restore(record: Record, name: str) -> str:
    stakes = _STAKES.get(name.split("/", 1)[0], _STAKES["memory"]).format(n=record.number)
    return f"restore this file from a backup (sha256 {record.manifest[name]['sha256'][:12]}...); {stakes}"


def _unknown_folders(folders: Sequence[str], records: Sequence[Record]) -> Iterator[Fault]:
    known = {release_name(record.number) for record in records}
    newest = max((record.number for record in records), default=0)
    for name in folders:
        if name in known:
            continue
        if name.isdigit() and int(name) > newest:
            message = "the ledger ends before it: the ledger comes from an older backup, or was edited"
            remedy = "restore the ledger.sqlite that belongs to it; until then a new release would ignore this one"
        else:
            message = "the ledger does not know it"
            remedy = (
                "restore the ledger.sqlite that belongs to it; move it out of releases/ only if it is no release of "
                "this series"
            )
        yield Fault("R526", f"releases/{name}", message, remedy)
