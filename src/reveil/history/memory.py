"""From a plan to what the ledger keeps (`recorded.py` reads it back), and what a new table must agree with.

Memory of a release: `standing` (of everybody ever published: keyed hash, and where they stood last), `members` (who was
in which group, with their true codes), `groups` (sizes), `values` (the published multiset of each group), and spans of
these three; where people are shown in boxes, `boxes` (who was in which), for the audit, and `cuts`,
where boxes are stable; `stand_ins`: who was shown beside which group while a counterfeit had their place. Facts:
counts, codebook and hierarchy paths.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reveil.background.transitions import weights_of
from reveil.base.errors import Fault, InputError, brief
from reveil.base.text import plain_text
from reveil.base.words import some
from reveil.hierarchies.tree import Hierarchy
from reveil.history.history import ROLLED, History
from reveil.history.recorded import STAND_INS, spans_of, standing_of
from reveil.ledger.amendments import AMENDED
from reveil.plan.loss import Loss
from reveil.plan.plan import Plan
from reveil.policy.policy import Policy
from reveil.published.imprint import Imprint
from reveil.table.encode import Encoded
from reveil.table.numbers import first_rows
from reveil.table.types import held_type
from reveil.verify.certificate import Certificate

# How newcomers without a group wait (`infeasible = "wait"`), as it is recorded of a release: all together, and of many
# some are drawn by lot. The first releases that had such a rule drew none, and say only the one.
RULE_OF_WAITING = {"waits": True, "by_lot": True}


def memory_of(
    encoded: Encoded, plan: Plan, past: History, hashes: pl.DataFrame, policy: Policy
) -> dict[str, pl.DataFrame]:
    """The frames to keep for a release; `hashes` are the keyed hashes of its people, row by row."""
    assert encoded.persons is not None
    names = [column.name for column in encoded.sensitive]
    members = pl.DataFrame(
        {
            "person": encoded.persons.astype(np.uint32),
            "group": plan.groups,
            **{name: encoded.codes[:, number] for number, name in enumerate(names)},
        }
    )
    now = {"members": members, **_published(members, plan, names)}
    standing = standing_of(past, hashes, encoded.persons, members)
    spans = spans_of(past, now) if policy.promises_series else {}
    signatures = signatures_of(encoded, plan, policy)
    kept = {} if signatures is None else {"signatures": signatures}
    if plan.people is not None:
        kept["boxes"] = pl.DataFrame({"person": members["person"], "box": plan.people}).filter(pl.col("box") >= 0)
    if plan.cuts is not None:
        kept["cuts"] = plan.cuts
    if plan.stood_in:
        beside = pl.DataFrame({"person": members["person"], "group": plan.stand_ins})
        kept[STAND_INS] = beside.filter(pl.col("group") >= 0)
    amended = {name: getattr(past, name) for name in ROLLED if not getattr(past, name).is_empty()}
    return {"standing": standing, **now, **spans, **kept, **amended}


def signatures_of(encoded: Encoded, plan: Plan, policy: Policy) -> pl.DataFrame | None:
    """Who is in which group, told only by what the priors distinguish: group and, by prior, the signature."""
    if encoded.signatures is None:
        return None
    kept = plan.groups >= 0
    names = [Path(file).name for file in policy.guarantee.priors]
    columns = {name: encoded.signatures[kept, number] for number, name in enumerate(names)}
    return pl.DataFrame({"group": plan.groups[kept], **columns})


def _published(members: pl.DataFrame, plan: Plan, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Sizes and value counts of the groups as they were published, counterfeits included."""
    kept = plan.groups >= 0
    groups = np.concatenate([plan.groups[kept], plan.counterfeit_groups])
    invented = np.bincount(plan.counterfeit_groups, minlength=plan.count)
    sizes = pl.DataFrame(
        {
            "group": np.arange(plan.count, dtype=np.int32),
            "rows": np.bincount(groups, minlength=plan.count).astype(np.uint32),
            "counterfeits": invented.astype(np.uint32),
        }
    )
    schema = pl.Schema({"group": pl.Int32, "code": pl.Int32, "rows": pl.UInt32, "column": pl.String})
    values = [pl.DataFrame(schema=schema)]
    for number, name in enumerate(names):
        fakes = plan.counterfeit_codes[:, number] if plan.counterfeits else np.empty(0, dtype=np.int32)
        codes = np.concatenate([members[name].to_numpy()[kept], fakes]).astype(np.int64)
        domain = int(codes.max(initial=0)) + 1
        keys, rows = np.unique(groups.astype(np.int64) * domain + codes, return_counts=True)
        columns = {"group": keys // domain, "code": keys % domain, "rows": rows}
        values.append(pl.DataFrame(columns).with_columns(pl.lit(name).alias("column")).cast(schema))
    return {"groups": sizes, "values": pl.concat(values)}


def facts_of(
    encoded: Encoded,
    plan: Plan,
    past: History,
    frame: pl.DataFrame,
    certificate: Certificate,
    loss: Loss,
    imprint: Imprint,
) -> dict[str, Any]:
    """What the catalog shows of a release without opening its files; of paths only those that are new to the series."""
    trees = [tree for tree in encoded.quasi if not tree.free and len(tree) <= 10_000]
    return {
        "counts": dict(certificate.counts),
        "loss": loss.to_dict(),
        "method": plan.method,
        "codebook": {column.name: [_pack(value) for value in column.values] for column in encoded.lasting},
        "paths": {tree.name: _new_paths(_paths(tree), past.paths.get(tree.name, {})) for tree in trees},
        "types": {column.name: held_type(column) for column in frame if column.null_count() < column.len()},
        **imprint.to_dict(),
        **({AMENDED: past.amended} if past.amended else {}),
    }


def _pack(value: Any) -> Any:
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def _paths(tree: Hierarchy) -> dict[str, list[str]]:
    """The generalisations of each leaf, so that a later release cannot quietly mean something else by a label."""
    start = int(tree.has_missing)
    return {str(tree.leaves[p]): list(tree.ancestors(p))[1:] for p in range(start, len(tree))}


def _new_paths(now: Mapping[str, list[str]], known: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {leaf: labels for leaf, labels in now.items() if known.get(leaf) != labels}


def refuse_changes(encoded: Encoded, past: History, policy: Policy) -> None:
    """A new table must agree with the past: persistent values persist, and labels keep their meaning."""
    faults = [
        *(_moved_leaves(tree, past) for tree in encoded.quasi if isinstance(policy.columns[tree.name].hierarchy, str)),
        *(_changed_values(encoded, number, past, policy) for number in range(len(encoded.sensitive))),
    ]
    refused = [fault for fault in faults if fault is not None]
    if refused:
        raise InputError(refused)


def _moved_leaves(tree: Hierarchy, past: History) -> Fault | None:
    """Labels of a file that stand for other values than before. All other hierarchies follow from the fixed policy."""
    known, now = past.paths.get(tree.name, {}), _paths(tree)
    # A label with a single value below it is left out of paths, so labels come and go as values are added.
    common = _labels(known) & _labels(now)
    moved = [leaf for leaf in now if leaf in known and common & (set(now[leaf]) ^ set(known[leaf]))]
    if not moved:
        return None
    shown = ", ".join(map(brief, moved[:5]))
    message = (
        f"{some(len(moved), 'value is', 'values are')} generalised in another way than in earlier releases: {shown}"
    )
    return Fault("R310", f"column {tree.name!r}", message, "keep what earlier releases used; new values may be added")


def _labels(paths: Mapping[str, Sequence[str]]) -> set[str]:
    return set().union(*paths.values())


def _changed_values(encoded: Encoded, number: int, past: History, policy: Policy) -> Fault | None:
    """People whose value changed in a way that the policy rules out."""
    if policy.values.change in (None, "freely") or encoded.persons is None:
        return None
    column = encoded.sensitive[number]
    before, now = past.last_codes(encoded.persons, column.name), encoded.codes[:, number]
    both = pl.DataFrame({"a": before, "b": now})
    pairs = both.filter((pl.col("a") >= 0) & (pl.col("a") != pl.col("b"))).group_by("a", "b").len("rows")
    if policy.values.transitions is not None:
        relation, texts = weights_of(policy), [plain_text(value) for value in column.values]
        known = [texts[b] in relation.get(texts[a], ()) for a, b in pairs.select("a", "b").iter_rows()]
        pairs = pairs.filter(~pl.Series(known, dtype=pl.Boolean))
    if pairs.is_empty():
        return None
    wrong = both.join(pairs, on=["a", "b"], how="left", maintain_order="left")["rows"].is_not_null()
    worst = pairs.sort("rows", "a", "b", descending=[True, False, False]).head(3)
    shown = ", ".join(
        f"{brief(column.values[a])} -> {brief(column.values[b])} ({rows:,})" for a, b, rows in worst.iter_rows()
    )
    shown += f" and {pairs.height - worst.height:,} more" if pairs.height > worst.height else ""
    return Fault(
        "R311",
        f"column {column.name!r}",
        f'values.change = "{policy.values.change}" rules out changes that people have made: {shown}',
        _way_out(policy),
        int(pairs["rows"].sum()),
        first_rows(wrong),
    )


def _way_out(policy: Policy) -> str:
    if policy.values.change == "never":
        return "correct the table; where the series has recorded a wrong value, `reveil correct TABLE` with these rows"
    return "correct the table, or begin a series in a new home whose values.change allows this"
