"""What is done to a series as a whole, years later: another key, a release that is retracted, the end."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from reveil.base.errors import Fault, InputError, stop_if
from reveil.base.lots import fresh_key
from reveil.base.words import agree, some, some_people
from reveil.history.amended import erased_hashes, nobodies
from reveil.history.history import PERSONS, SPELLED
from reveil.jobs.amending import Amended, Memory, Tables, recipients
from reveil.jobs.past import ledger_of
from reveil.ledger.amendments import KEY, ROTATE
from reveil.ledger.ledger import Ledger
from reveil.ledger.record import ReleaseState, canonical
from reveil.policy.policy import PolicyLike
from reveil.table.identify import person_hashes
from reveil.table.roles import read_prepared


def rotate(
    policy: PolicyLike, home: str | Path | None, tables: Sequence[Any], *, forget_erased: bool = False, by: str = ""
) -> Amended:
    """Another key for the identifiers' hashes. Tables with everybody ever seen are needed: hashes cannot be undone."""
    memory = Memory(policy, home)
    past, rules, key = memory.past, memory.policy, fresh_key()
    assert rules.followed is not None  # or it would be no series
    frames = [read_prepared(table, rules, series=True, types=past.types)[1] for table in tables]
    names = pl.concat([frame[rules.followed].cast(pl.String) for frame in frames]).unique(maintain_order=True)
    old = memory.hashes(names)
    pairs = pl.concat([old, person_hashes(names, key, normalise=rules.normalises).rename(_fresh)], how="horizontal")
    standing = past.standing()
    missing = standing.filter(~nobodies(standing)).join(pairs, on=list(PERSONS), how="anti").height
    missing += past.merged.join(pairs, on=list(PERSONS), how="anti").height
    gone = past.erased.join(erased_hashes(names, memory.ledger.key), on=list(PERSONS), how="anti").height
    faults = []
    if missing:
        message = f"{some(missing, 'identifier')} of the series {agree(missing, 'is', 'are')} in none of these tables"
        remedy = "add the tables of earlier releases: without its text no identifier can be hashed with another key"
        faults.append(Fault("R556", "tables", message, remedy, missing))
    if gone and not forget_erased:
        message = f"{some_people(gone)} asked to be erased, and could no longer be known by their identifiers"
        remedy = "add a table that has them, or say --forget-erased and keep them out of every table yourself"
        faults.append(Fault("R556", "tables", message, remedy, gone))
    stop_if(faults)
    again = erased_hashes(names, memory.ledger.key)
    both = pl.concat([again, erased_hashes(names, key).rename(_fresh)], how="horizontal")
    kept = both.join(past.erased, on=list(PERSONS), how="semi")
    erased = kept.select(pl.col(_fresh(name)).alias(name) for name in PERSONS)
    rehashed: Tables = {}
    for number, before in memory.standings().items():
        rehashed[number] = {"standing": _rehashed(before, pairs)}
        if not past.erased.is_empty():
            rehashed[number]["erased"] = erased
    for number, others in memory.tables("merged").items():
        rehashed[number]["merged"] = _rehashed(others, pairs)
    digest = memory.digest(ROTATE, forget_erased)
    event = memory.amend(ROTATE, {}, rehashed, digest, by, key)
    notes = (
        "The old key opens nothing in this home any more; destroy its copies, and backups of the home that hold it.",
        "A table that was published before is no longer known as the same: its keyed hash was made with the old key.",
    )
    return Amended(event, notes, {}, memory.settled)


def _fresh(name: str) -> str:
    return f"new {name}"


def _rehashed(people: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The same people with their new hashes; who is nobody stays nobody."""
    names = [name for name in (*PERSONS, *SPELLED) if name in people.columns]
    fresh = people.join(pairs.drop(SPELLED), on=list(PERSONS), how="left", maintain_order="left")
    return fresh.with_columns(pl.col(_fresh(name)).fill_null(pl.col(name)).alias(name) for name in names).select(
        people.columns
    )


def retract(policy: PolicyLike, home: str | Path | None, number: int, note: str, by: str = "") -> Amended:
    """A release that others have must not be used: noted, and said in the package of every later release."""
    ledger, settled = ledger_of(policy, home)
    series = ledger.checked()
    record = next((one for one in series.records if one.number == number), None)
    if record is None:
        raise InputError(Fault("R510", f"release {number}", "is not in this series", "see `reveil history`"))
    if record.state is not ReleaseState.HANDED_OVER:
        again = record.state is ReleaseState.RETRACTED
        message = "was retracted already" if again else "was handed over to nobody"
        remedy = "see `reveil history`" if again else f"discard it: `reveil discard {number}`"
        raise InputError(Fault("R558", f"release {number}", message, remedy))
    having = recipients(series, number)
    about = {"note": note} if note else {}
    event = ledger.amending.retract(number, about, _plain_digest(ledger, "retract", number, note), by)
    notes = (
        f"Tell those who have it: {'; '.join(having)}.",
        "Later packages of the series name it as retracted. It stays in the memory: what others have, later releases "
        "must go on taking into account.",
    )
    return Amended(event, notes, {"release": number, "handed over": having}, tuple(settled))


def end(
    policy: PolicyLike, home: str | Path | None, *, destroy_key: bool, destroy_memory: bool, sure: bool, by: str = ""
) -> Amended:
    """No further release. The key, or key and memory, can go; a key that is lost already ends a series too."""
    ledger, settled = ledger_of(policy, home)
    if not sure:
        message = "no further release could be made; this cannot be undone"
        raise InputError(Fault("R560", f"series {ledger.series!r}", message, "if that is meant, say so: --yes"))
    words = {True: "destroyed", False: "kept"}
    what = {KEY: words[destroy_key or destroy_memory], "memory": words[destroy_memory]}
    event = ledger.amending.end(what, _plain_digest(ledger, "end", what), by)
    fate = event.details.get(KEY, what[KEY])
    notes = ["Verify, audit, hand over and retract still work." if not destroy_memory else _FORGOTTEN]
    notes += {"kept": [], "lost": ["The key is lost: the hashes of identifiers belong to nobody any more."]}.get(
        fate, ["The key is destroyed: the hashes of identifiers belong to nobody any more. Destroy its backups too."]
    )
    return Amended(event, tuple(notes), what, tuple(settled))


_FORGOTTEN = "The memory is destroyed: public bytes can still be compared, the promise cannot be judged again."


def _plain_digest(ledger: Ledger, *what: Any) -> str:
    """Of what holds nothing secret: two who ask for the same ask for this."""
    return hmac.digest(ledger.series.encode(), canonical(list(what)).encode(), "sha256").hex()
