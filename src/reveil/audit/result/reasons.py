"""Why something is certain, as a short chain of reasons in plain words, and what would have prevented it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reveil.audit.infer.certain import State
from reveil.audit.infer.filters import CHAIN, EQUAL, GROUP, KNOWN, SEARCH
from reveil.audit.infer.infer import Inference
from reveil.audit.input.knowledge import Adversary
from reveil.audit.result.counterfactuals import appearances_of, smallest_change, sufficient_groups
from reveil.base.words import some

LONGEST = 14  # sentences
NAMES = 6  # people or values listed by name
MOST_STEPS = 400  # followed back


@dataclass(frozen=True)
class Reasoning:
    """A chain of reasons for one inference; `groups` are those it speaks of, by number.

    `enough`: the value follows from these groups by themselves. Where too many are involved, that is not shown."""

    person: str
    release: str
    value: str
    sentences: tuple[str, ...]
    groups: tuple[int, ...]
    change: str  # the smallest change that would have prevented it
    enough: bool

    @property
    def caveat(self) -> str:
        """What is left open."""
        return "" if self.enough else "Further groups may be needed: that those named here are enough was not shown."

    def __str__(self) -> str:
        return " ".join(text for text in (*self.sentences, self.caveat, self.change) if text)

    def to_dict(self) -> dict[str, object]:
        return {
            "person": self.person,
            "release": self.release,
            "value": self.value,
            "reasons": list(self.sentences),
            "enough": self.enough,
            "smallest_change": self.change,
        }


def explain(inference: Inference, app: int, who: Adversary, end: float = float("inf")) -> Reasoning:
    """Why the value of this appearance is certain to this adversary; until `end` (of processor time) it is tried what
    would have prevented it."""
    o = inference.model.observed
    (value,) = inference.state.values_of(app)
    name = str(o.persons[int(o.app_person[app])])
    told = _twins(inference.state, app, value) or _Teller(inference.state).tell(app, value)
    if told.partial:
        told.groups, told.partial = sufficient_groups(inference.model, who, told.groups, app, value, end)
    change = smallest_change(inference, app, value, told.groups, who, end)
    groups = tuple(dict.fromkeys(told.groups))
    release = o.releases[o.app_release[app]]
    return Reasoning(name, release, str(o.values[value]), tuple(told.sentences), groups, change, not told.partial)


@dataclass
class _Told:
    sentences: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)  # factors
    partial: bool = False  # something was found by trying everything, or by more steps or groups than are told

    def say(self, sentence: str, *groups: int) -> None:
        self.groups += groups
        if sentence not in self.sentences:
            self.sentences.append(sentence)


def words(items: Iterable[object], joint: str = "and") -> str:
    """A list as people say it.

    >>> words(["flu", "cold", "asthma"])
    'flu, cold and asthma'
    """
    texts = [str(item) for item in items]
    if len(texts) > NAMES:
        texts = [*texts[: NAMES - 1], f"{len(texts) - NAMES + 1} more"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {joint} {texts[-1]}"


def _people(state: State, factor: int) -> frozenset[int]:
    m = state.model
    apps = m.factor_apps[m.factor_start[factor] : m.factor_start[factor + 1]]
    return frozenset(m.observed.app_person[apps].tolist())


def _shown(state: State, factor: int) -> dict[int, int]:
    m = state.model
    cells = slice(m.cell_start[factor], m.cell_start[factor + 1])
    return dict(zip(m.cell_value[cells].tolist(), m.cell_cap[cells].tolist(), strict=True))


def factor_name(state: State, factor: int) -> str:
    """The group (or groups) of a factor in words."""
    m = state.model
    groups = sorted({int(g) for g in m.cell_group[m.cell_start[factor] : m.cell_start[factor + 1]] if g >= 0})
    name = m.observed.group_name(groups[0])
    return (
        name
        if len(groups) == 1
        else f"{name} (and {some(len(groups) - 1, 'group that overlaps it', 'groups that overlap it')})"
    )


def _twins(state: State, app: int, value: int) -> _Told | None:
    """The shortest story: two groups that differ in this person and in one whose value is known."""
    m, o = state.model, state.model.observed
    if m.change != "never" or not o.located:
        return None
    person, told = int(o.app_person[app]), _Told()
    for a in appearances_of(o.person_start, person):
        here = int(m.app_factor[a])
        people = _people(state, here)
        for mate in people - {person}:
            for b in appearances_of(o.person_start, mate):
                there = int(m.app_factor[b])
                others = _people(state, there)
                (gone, come) = people - others, others - people
                if gone != {person} or len(come) != 1 or _shown(state, here) != _shown(state, there):
                    continue
                other = next(iter(come))
                if other not in m.known or state.values_of(int(o.person_start[other])) != {value}:
                    continue
                one, two, what = o.persons[other], o.persons[person], o.values[value]
                told.say(f"{one} is known to have {what}.")
                told.say(
                    f"{factor_name(state, there).capitalize()} and {factor_name(state, here)} are the same people "
                    f"except {one} and {two}, and show the same values.", there, here,
                )  # fmt: skip
                told.say(f"So {two} has {what}.")
                return told
    return None


class _Teller:
    """Follows the reasons back, premises first, each said once."""

    def __init__(self, state: State) -> None:
        self.state, self.told = state, _Told()
        self.done: set[int] = set()  # options explained

    def tell(self, app: int, value: int) -> _Told:
        m, o = self.state.model, self.state.model.observed
        name, what = o.persons[int(o.app_person[app])], o.values[value]
        options = range(m.opt_start[app], m.opt_start[app + 1])
        gone = sorted((int(self.state.when[i]), i) for i in options if not self.state.alive[i])
        if not gone:
            where = factor_name(self.state, int(m.app_factor[app]))
            self.told.say(f"Everybody in {where} has {what}.", int(m.app_factor[app]))
        for _, option in gone:
            self.option(option)
        if len(self.told.sentences) > LONGEST:
            more = len(self.told.sentences) - LONGEST
            self.told.sentences[LONGEST // 2 : -LONGEST // 2] = [f"({some(more, 'more step')} of the same kind.)"]
        self.told.say(f"So {name} has {what} in release {o.releases[o.app_release[app]]}.")
        return self.told

    def option(self, option: int) -> None:
        """Why this option went."""
        if option in self.done:
            return
        if len(self.done) > MOST_STEPS:
            self.told.partial = True
            return
        self.done.add(option)
        kind = int(self.state.why[option])
        {KNOWN: self._known, GROUP: self._group, CHAIN: self._chain, EQUAL: self._equal, SEARCH: self._search}[kind](
            option
        )

    def _names(self, option: int) -> tuple[str, str, int]:
        m, o = self.state.model, self.state.model.observed
        app = m.app_of(option)
        value = int(m.cell_value[m.opt_cell[option]])
        return str(o.persons[int(o.app_person[app])]), str(o.values[value]) if value >= 0 else "absent", app

    def _known(self, option: int) -> None:
        m, o = self.state.model, self.state.model.observed
        name, value, app = self._names(option)
        if app in m.pinned:
            self.told.say(f"{name} is known to have {o.values[m.pinned[app]]}.")
        else:
            self.told.say(f"{name} cannot have {value}, by what is known beforehand.")

    def _chain(self, option: int) -> None:
        m, o = self.state.model, self.state.model.observed
        name, _, app = self._names(option)
        time = int(self.state.when[option])
        person = int(o.app_person[app])
        others = sorted(
            (a for a in appearances_of(o.person_start, person) if a != app and self._blocks(a, app, option, time)),
            key=lambda a: len(self._open_before(a, 0)) != len(self._open_before(a, time)),  # without premises first
        )
        release = o.releases[o.app_release[app]]
        if not others:
            factors = [int(m.app_factor[a]) for a in appearances_of(o.person_start, person)]
            for a in appearances_of(o.person_start, person):
                self._removed_before(a, time)
            self.told.say(
                f"Over all releases together, no course of {name}'s values passes through {self._names(option)[1]} in "
                f"release {release}.",
                *factors,
            )
            return
        other = others[0]
        self._removed_before(other, time)
        alike = [i for i in self._gone(app, CHAIN) if self._blocks(other, app, i, time)]
        self.done.update(alike)
        lost = words(sorted({self._names(i)[1] for i in alike}), "or")
        left = words(sorted(str(o.values[v]) for v in self._open_before(other, time) if v >= 0), "or")
        rule = "values do not change" if m.change == "never" else f"no possible change links {lost} to that"
        where = factor_name(self.state, int(m.app_factor[other]))
        self.told.say(
            f"In {where} {name} can only have {left}; {rule}, so {name} does not have {lost} in release {release}.",
            int(m.app_factor[other]),
            int(m.app_factor[app]),
        )

    def _gone(self, app: int, kind: int) -> list[int]:
        m = self.state.model
        return [i for i in range(m.opt_start[app], m.opt_start[app + 1]) if self.state.why[i] == kind]

    def _blocks(self, other: int, app: int, option: int, time: int) -> bool:
        """Whether what is open at another appearance rules the option out by itself."""
        m = self.state.model
        mine, before = int(m.cell_value[m.opt_cell[option]]), self._open_before(other, time)
        if m.change == "never" or mine < 0:
            return mine not in before
        if abs(other - app) != 1:
            return False
        return not any(m.relation[mine, v] if other > app else m.relation[v, mine] for v in before if v >= 0)

    def _open_before(self, app: int, time: int) -> set[int]:
        m, s = self.state.model, self.state
        span = range(m.opt_start[app], m.opt_start[app + 1])
        return {int(m.cell_value[m.opt_cell[i]]) for i in span if s.alive[i] or s.when[i] >= time}

    def _removed_before(self, app: int, time: int) -> None:
        m, s = self.state.model, self.state
        for i in range(m.opt_start[app], m.opt_start[app + 1]):
            if not s.alive[i] and s.when[i] < time:
                self.option(i)

    def _group(self, option: int) -> None:
        """Rows of a few values are taken by people who can have nothing else."""
        m, o = self.state.model, self.state.model.observed
        name, value, app = self._names(option)
        factor, time = int(self.state.where[option]), int(self.state.when[option])
        apps = [int(a) for a in m.factor_apps[m.factor_start[factor] : m.factor_start[factor + 1]] if a != app]
        tight = self._tight(apps, int(m.cell_value[m.opt_cell[option]]), time, factor)
        where = factor_name(self.state, factor)
        if tight is None:
            for a in (app, *apps):
                self._removed_before(a, time)
            self.told.say(f"If {name} had {value}, the rows of {where} could not be given out to the others.", factor)
            return
        values, holders = tight
        for a in holders:
            self._removed_before(a, time)
        alike = [i for i in self._gone(app, GROUP) if int(m.cell_value[m.opt_cell[i]]) in values]
        self.done.update(alike)
        lost = words(sorted({self._names(i)[1] for i in alike}), "or")
        who = words(o.persons[int(o.app_person[a])] for a in holders)
        what = words(str(o.values[v]) for v in sorted(values))
        rows = "has the row" if len(holders) == 1 else "have the rows"
        self.told.say(f"In {where} {who} {rows} with {what}, so {name} does not have {lost}.", factor)

    def _tight(self, apps: list[int], value: int, time: int, factor: int) -> tuple[set[int], list[int]] | None:
        """The smallest set of values with this one whose rows are all taken by people confined to it."""
        shown = _shown(self.state, factor)
        values = {value}
        for _ in range(len(shown) + 1):
            inside = [a for a in apps if self._open_before(a, time) <= values]
            if len(inside) >= sum(shown.get(v, 0) for v in values):
                return values, inside
            touching = [self._open_before(a, time) for a in apps]
            near = [v for v in touching if v & values and not v <= values]
            if not near:
                return None
            values = values | min(near, key=lambda v: len(v - values))
        return None

    def _equal(self, option: int) -> None:
        o = self.state.model.observed
        name, value, _ = self._names(option)
        e = self.state.equal[int(self.state.where[option])]
        plus = [factor_name(self.state, f) for f, c in e.groups if c > 0]
        minus = [factor_name(self.state, f) for f, c in e.groups if c < 0]
        factors = [f for f, _ in e.groups]
        took = f"Take {words(plus)} together" + (f" and take away {words(minus)}" if minus else "")
        if not e.groups:
            took = "Add and subtract the many groups that link these people in the right way"
            self.told.partial = True
        if e.other is None:
            left = f"the only person left is {name}, and the only value left is {o.values[e.value or 0]}"
            self.told.say(f"{took}: {left}.", *factors)
            return
        one, two = o.persons[e.one], o.persons[e.other]
        if e.value is not None and e.other_value is not None:
            first, second = o.values[e.value], o.values[e.other_value]
            self.told.say(
                f"{took}: the people differ in {one} and {two} only, and the values in {first} and {second}. "
                f"So {one} has {first} and {two} has {second}.",
                *factors,
            )
            return
        self.told.say(
            f"{took}: the people differ in {one} and {two} only, and the values cancel. "
            f"So {one} and {two} have the same value.",
            *factors,
        )
        person = e.other if str(one) == name else e.one
        self._removed_before(int(o.person_start[person]), int(self.state.when[option]))
        self.told.say(f"So {name} does not have {value}.")

    def _search(self, option: int) -> None:
        m, o = self.state.model, self.state.model.observed
        name, value, app = self._names(option)
        self.told.partial = True
        factors = [int(m.app_factor[a]) for a in appearances_of(o.person_start, int(o.app_person[app]))]
        self.told.say(
            f"Of all ways to give out the rows of the groups that {name} is linked to, none gives {name} {value}.",
            *factors,
        )
