"""The promise of a first policy: what the table can keep, for a series where people can be known again.

A promise about a series is suggested as the design of Reveil has it: values that never change, closed cohorts. It is
the assumption that fails safely, because a release in which somebody's value has changed is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from reveil.base.words import some
from reveil.guarantees import compromise_safety, k_anonymity, l_diversity, t_closeness
from reveil.start.looks import Facts

K, L, M = 5, 3, 6
T = ((2, "0.2"), (5, "0.3"))  # for so many sensitive columns; each one costs detail
LARGEST_T = "0.5"
ROOM = Fraction(4, 5)  # of what the first table allows: newcomers of later releases may be more one-sided
FEWEST = 3  # values in a group, so that one known person leaves two for the others
CHANGES = """[values]
# Can a person's sensitive value change from one release to the next? "never" fails safely: a release in
# which somebody's value has changed is refused. A series keeps its first promise, so decide beforehand:
#   values change freely, and one says nothing about the next:
#     change = "freely"; below: model = "global", l = 2, strategy = "telescoping"
#   values change by known rules, such as stages that only rise:
#     change = "transitions", transitions = "FILE.csv"; below: model = "m-distinct", m = 3
{hint}change = "never"

"""
HINT = "# By its name this one may well change: look twice.\n"
OPEN = """[values]
# Can a person's sensitive value change from one release to the next? State it before a series begins.
# change = "never"         # or "freely", or "transitions"

"""
CHANGED = """[values]
# In this table sensitive values change from one period to the next, so change = "never" would be refused at the
# second release. For a promise about all releases together, say how they change and choose its model below:
#   by chances (one sensitive column): change = "transitions", transitions = "transitions.csv", which
#   `reveil transitions estimate TABLE --period COLUMN --value COLUMN` counts; model = "m-distinct", m = 3
#   freely, so that one says nothing about the next:
#     change = "freely"; below: model = "global", l = 2, strategy = "telescoping"

"""
COHORTS = """# All releases together are protected: people are grouped once and stay together.
model = "{model}"
m = {m}                      # every group shows at least this many different sensitive values
compromised = 1            # even if any one person's value is known, no other's is certain
refill = "never"           # places that people leave stay theirs, so that nobody waits for one
k = {k}                      # in each release at least this many people share a box

[method]
publish = "anatomy"        # two tables: people, and the values of each group; or "generalized": one
people = "boxes"           # or "stable-boxes"; or "exact": it is no secret who is in the table
infeasible = "wait"        # newcomers without a group wait for more; or "refuse", or "withhold" by value
"""
REFUSE = """
[method]
infeasible = "refuse"      # or "withhold": leave out the rows that stand in the way, and count them
"""
ALONE = """# Each release is protected on its own, but not all of them together:
# {why}. See `reveil explain compromise-safety`.
"""
CLOSENESS = """# One sensitive value stands in more than half of the rows, so counting values says little.
# t-closeness bounds instead how far a group may differ from the whole table.
model = "{model}"
t = {t}                    # 0: every group is like the whole table; 1: anything goes
"""


def promise(
    sensitive: Sequence[Facts], rows: int, *, known_again: bool, changing: bool = False, changed: bool = False
) -> str:
    """The sections [values], [guarantee] and [method].

    `known_again`: a column says which rows are the same person. `changing`: the name of a sensitive column says so;
    `changed`: its values do, from period to period.
    """
    alone = OPEN + "[guarantee]\n{}" + _single(sensitive, rows) + REFUSE
    if not known_again or not sensitive:
        return alone.format("")
    if changed:
        why = "how its sensitive values change has to be said for that"
        return CHANGED + "[guarantee]\n" + ALONE.format(why=why) + _single(sensitive, rows) + REFUSE
    harmless = needs_harmless(sensitive)
    worst = max(sensitive, key=lambda facts: _counting(facts, harmless))
    frequent_rows = _counting(worst, harmless)
    most = rows // frequent_rows if frequent_rows else M
    m = values_in_a_group(rows, frequent_rows)
    if m < FEWEST:
        return alone.format(ALONE.format(why=f"one value stands in {_percent(worst)} of rows"))
    room = "" if m == M else ";\n# fewer leave room for later releases"
    share = f"{frequent_rows / max(1, rows):.1%}".replace("%", " %")
    apart = " that is not harmless" if harmless else ""
    frequent = f"# The most frequent sensitive value{apart} stands in {share} of rows, which allows m up to {most}"
    values = CHANGES.format(hint=HINT if changing else "")
    cohorts = COHORTS.format(m=m, k=min(K, rows) or K, model=compromise_safety.DESCRIPTOR.name)
    return f"{values}[guarantee]\n{frequent}{room}.\n{cohorts}"


def values_in_a_group(rows: int, frequent_rows: int) -> int:
    """How many different values a group of a series shows, if the most frequent one stands in so many rows.

    >>> values_in_a_group(100, 10), values_in_a_group(100, 25), values_in_a_group(100, 0)
    (6, 3, 4)
    """
    return min(M, int(ROOM * (rows // frequent_rows if frequent_rows else M)))


def needs_harmless(sensitive: Sequence[Facts]) -> bool:
    """Whether a promise about a series is possible only if frequent values that mean none are harmless."""

    def possible(harmless: bool) -> bool:
        largest = max((_counting(facts, harmless) for facts in sensitive), default=0)
        return not largest or int(ROOM * (sensitive[0].rows // largest)) >= FEWEST

    return not possible(False) and possible(True)


def _counting(facts: Facts, harmless: bool) -> int:
    return facts.something_rows if harmless and facts.nothing else facts.top_rows


def _percent(facts: Facts) -> str:
    return f"{facts.top_share:.1%}".replace("%", " %")


def _single(sensitive: Sequence[Facts], rows: int) -> str:
    """The usual promise about one release, as far as this table can keep it when all of it is one group."""
    k = max(2, min(K, rows)) if rows else K
    few = "" if k == K else f"# The table has {some(rows, 'row')}, so no group can be larger.\n"
    size = f"{few}k = {k}                      # nobody is in a group of fewer than this many rows\n"
    if not sensitive:
        note = "# No sensitive column was found, so only being singled out is protected against.\n"
        return f'{note}model = "{k_anonymity.DESCRIPTOR.name}"\n{size}'
    worst = max(sensitive, key=lambda facts: facts.top_rows)
    most = rows // worst.top_rows if rows else L
    if most < 2:
        t = next((t for columns, t in T if len(sensitive) <= columns), LARGEST_T)
        many = "" if t == T[0][1] else f"# So many sensitive columns leave little detail at t = {T[0][1]}.\n"
        return many + CLOSENESS.format(t=t, model=t_closeness.DESCRIPTOR.name) + size
    note = f"# The most frequent sensitive value stands in {_percent(worst)} of rows, which allows l up to {most}.\n"
    fewest = f"l = {min(L, most)}                      # each group has at least this many sensitive values\n"
    return f'{note}model = "{l_diversity.DESCRIPTOR.name}"\n{fewest}{size}'
