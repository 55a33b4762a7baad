"""A hostile reader of one published table: plain Python, nothing of the package, slow, plainly right.

It sees what anybody sees, the text cells of the published rows, and (to check the publisher) the rows that were put in,
as text as well. An empty cell is a missing value. Every question is answered by the definition, in exact fractions.

How a column may be generalised is told by a *scale*: a pair of a name and what belongs to it.

    ("number", None)          a number, [a-b]
    ("widths", None)          a number, [a-b], [a-b[, <a, >=a
    ("date", None)            a day, [a/b], 2026-03, 2026-Q1, 2026, 2020s
    ("prefix", None)          476**
    ("order", [values])       a value, [a-b] in that order
    ("tree", {label: ...})    nested dicts; a leaf is None
    ("flat", None)            a value

Each may also show `*`, and a set {a,"b,c"} of what it can show.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections import Counter, defaultdict
from fractions import Fraction

NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"


def read_csv(text):
    """Header and rows of a published file."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return header, [row or [""] for row in rows]


def classes(header, rows, quasi):
    """Rows that nobody can tell apart by their generalised cells, as lists of row numbers."""
    places = [header.index(name) for name in quasi]
    found = defaultdict(list)
    for number, row in enumerate(rows):
        found[tuple(row[place] for place in places)].append(number)
    return list(found.values())


def columns_of(header, rows, groups, name):
    """The values of a column in each class."""
    place = header.index(name)
    return [[rows[number][place] for number in group] for group in groups]


# What must hold. `groups` are lists of values, one list per class.


def anonymous(sizes, k):
    return all(size >= k for size in sizes)


def distinct(groups, ell):
    return all(len(set(group)) >= ell for group in groups)


def entropy(groups, ell):
    """Entropy >= log l: n^n >= l^n * product of c^c over the counts."""
    for group in groups:
        n, counts = len(group), Counter(group).values()
        if Fraction(n) ** n < Fraction(ell) ** n * math.prod(count**count for count in counts):
            return False
    return True


def recursive(groups, c, ell):
    """Most frequent < c * (l-th most frequent + ... + rarest)."""
    for group in groups:
        counts = sorted(Counter(group).values(), reverse=True)
        if not counts[0] < c * sum(counts[int(ell) - 1 :]):
            return False
    return True


def largest_share(groups):
    return max(Fraction(max(Counter(group).values()), len(group)) for group in groups)


def spread_out(groups, epsilon, m, relative):
    """Around no value of a class are there more than one in m of its rows."""
    for group in groups:
        for one in group:
            near = sum(_near(one, other, epsilon, relative) for other in group)
            if near * m > len(group):
                return False
    return True


def _near(one, other, epsilon, relative):
    if one == "" or other == "":
        return one == other
    x, y = Fraction(one), Fraction(other)
    return abs(x - y) <= (epsilon * abs(x) if relative else epsilon)


def furthest(groups, distance, arrangement=None):
    """The largest earth mover's distance of a class from the whole table.

    `distance` is equal, ordered (`arrangement`: function that gives the sort key of a value) or hierarchical
    (`arrangement`: the tree as nested dicts).
    """
    everything = [value for group in groups for value in group]
    worst = Fraction(0)
    for group in groups:
        surplus = {
            value: Fraction(group.count(value), len(group)) - Fraction(everything.count(value), len(everything))
            for value in set(everything)
        }
        if distance == "equal":
            far = sum((part for part in surplus.values() if part > 0), Fraction(0))
        elif distance == "ordered":
            far = _along_a_line(surplus, arrangement)
        else:
            far = _up_a_tree(surplus, arrangement)
        worst = max(worst, far)
    return worst


def _along_a_line(surplus, key):
    line = sorted((value for value in surplus if value != ""), key=key)
    line = [""] * ("" in surplus) + line
    carried, work = Fraction(0), Fraction(0)
    for value in line:
        carried += surplus[value]
        work += abs(carried)
    return work / max(1, len(line) - 1)


def _up_a_tree(surplus, tree):
    """Whatever can be settled under a low node is settled there; the rest moves further up."""
    full, work = height(tree), Fraction(0)
    missing = surplus.get("", Fraction(0))

    def settle(label, node):
        nonlocal work
        if node is None:
            part = surplus.get(label, Fraction(0))
            return max(part, Fraction(0)), max(-part, Fraction(0))
        parts = [settle(name, below) for name, below in node.items()]
        gain, lack = sum(p for p, _ in parts), sum(p for _, p in parts)
        settled = min(gain, lack)
        work += settled * height(node)
        return gain - settled, lack - settled

    settle("*", tree)
    return work / max(1, full) + abs(missing)


def height(node):
    """Steps down to the deepest leaf. A node with one child only is that child."""
    while node is not None and len(node) == 1:
        (node,) = node.values()
    return 0 if node is None else 1 + max(height(below) for below in node.values())


def chances_of_presence(boxes, rows, people):
    """How likely each person is there: every way to fill the classes with different people counts alike.

    `boxes[c]` is the set of people (numbers) who fit class c, `rows[c]` how many rows it has.
    """
    ways, present = 0, [0] * people

    def fill(number, taken):
        nonlocal ways
        if number == len(boxes):
            ways += 1
            for person in taken:
                present[person] += 1
            return
        for chosen in itertools.combinations(sorted(boxes[number] - taken), rows[number]):
            fill(number + 1, taken | set(chosen))

    fill(0, frozenset())
    return [Fraction(count, ways) for count in present] if ways else None


# What a published cell says about a value.


def covers(cell, value, scale):
    """Whether the value may stand behind the cell."""
    if cell == "*":
        return True
    if cell == "" or value == "":
        return cell == value or (value == "" and cell != "" and "" in (elements(cell) or []))
    kind, detail = scale
    inside = elements(cell)
    if inside is not None and not _names(cell, value, kind):
        return any(_covers_one(element, value, kind, detail) for element in inside if element != "")
    return _covers_one(cell, value, kind, detail)


def _names(cell, value, kind):
    return kind in ("flat", "order", "tree") and cell == value


def _covers_one(cell, value, kind, detail):
    return {
        "number": _number_covers,
        "widths": _number_covers,
        "date": _date_covers,
        "prefix": lambda cell, value, _: cell == value or (cell[-1] == "*" and value.startswith(cell.rstrip("*"))),
        "order": _order_covers,
        "tree": lambda cell, value, tree: value in leaves_below(tree, cell),
        "flat": lambda cell, value, _: cell == value,
    }[kind](cell, value, detail)


def _number_covers(cell, value, _):
    x = Fraction(value)
    if match := re.fullmatch(rf"\[({NUMBER})-({NUMBER})([\[\]])", cell):
        low, high = Fraction(match[1]), Fraction(match[2])
        return low <= x < high or (x == high and match[3] == "]")
    if match := re.fullmatch(rf"(<|>=)({NUMBER})", cell):
        return x < Fraction(match[2]) if match[1] == "<" else x >= Fraction(match[2])
    return re.fullmatch(NUMBER, cell) is not None and Fraction(cell) == x


def _date_covers(cell, value, _):
    if match := re.fullmatch(r"\[(\d{4}-\d\d-\d\d)/(\d{4}-\d\d-\d\d)\]", cell):
        return match[1] <= value <= match[2]
    year, month = value[:4], value[:7]
    return cell in (value, month, f"{year}-Q{(int(month[5:]) + 2) // 3}", year, f"{year[:3]}0s")


def _order_covers(cell, value, order):
    if cell == value:
        return True
    runs = [
        order[order.index(low) : order.index(high) + 1] for low in order for high in order if cell == f"[{low}-{high}]"
    ]
    return bool(runs) and all(value in run for run in runs)


def leaves_below(tree, label):
    """The leaves under the node with this label; only leaves are called like values."""
    for name, below in tree.items():
        if name == label:
            return {name} if below is None else all_leaves(below)
        if below is not None and (found := leaves_below(below, label)):
            return found
    return set()


def all_leaves(tree):
    return {leaf for name, below in tree.items() for leaf in ({name} if below is None else all_leaves(below))}


def elements(cell):
    """The elements of {a,"b,c"}, or None where the cell is no set."""
    if len(cell) < 2 or cell[0] != "{" or cell[-1] != "}":
        return None
    found, text, inside, quoted = [], "", cell[1:-1], False
    place = 0
    while place < len(inside):
        sign = inside[place]
        if quoted and sign == '"' and inside[place + 1 : place + 2] == '"':
            text, place = text + '"', place + 1
        elif sign == '"':
            quoted = not quoted
        elif sign == "," and not quoted:
            found.append(text)
            text = ""
        else:
            text += sign
        place += 1
    return None if quoted else [*found, text]


def matched(published, originals, fits):
    """Whether each published row can be paired with an input row of its own that fits it."""
    partner = {}

    def place(row, tried):
        for other in range(len(originals)):
            if other in tried or not fits(published[row], originals[other]):
                continue
            tried.add(other)
            if other not in partner or place(partner[other], tried):
                partner[other] = row
                return True
        return False

    return all(place(row, set()) for row in range(len(published)))


def partitions(things):
    """All ways to part a list into groups."""
    if not things:
        yield []
        return
    first, *others = things
    for rest in partitions(others):
        yield [[first], *rest]
        for number, group in enumerate(rest):
            yield [*rest[:number], [first, *group], *rest[number + 1 :]]
