"""From how many of a class have what to who has it: a world of a program as the option of every appearance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reveil.audit.infer.programs import Program
from reveil.base.arrays import I64


def handed(program: Program, columns: I64, rng: np.random.Generator, near: I64 | None = None) -> I64:
    """The option (by its place in the program) of each appearance in a world, in order of appearances.

    Who of a class has what is drawn; with `near`, another world, people keep what they have there where they can."""
    classes = program.classes
    app_start = np.flatnonzero(np.diff(program.option_app, prepend=-1))  # of each appearance, its first option
    held = np.full(len(app_start), -1, dtype=np.int64)
    number = np.repeat(np.arange(len(app_start)), np.diff(np.append(app_start, len(program.option))))
    loose = np.flatnonzero(program.option_column < 0)  # being away, last of the options of its appearance
    held[number[loose]] = loose
    sole = classes.size[classes.of_person[classes.owner]] == 1
    shown = np.flatnonzero(sole & (program.option_column >= 0) & (columns[program.option_column] > 0))
    held[number[shown]] = shown
    for one in np.flatnonzero(classes.size > 1).tolist():
        members = classes.members(one)
        order = members if near is not None else rng.permutation(members)
        _hand_out(program, columns, [_apps_of(program, number, int(n)) for n in order], near, held)
    _send_away(program, number, loose, near, held, rng)
    assert (held >= 0).all()
    return held


def _send_away(
    program: Program, number: I64, loose: I64, near: I64 | None, held: I64, rng: np.random.Generator
) -> None:
    """Where more people have a value than rows show it, some are not there: of those who may be, by lot."""
    away = np.full(len(held), -1, dtype=np.int64)
    away[number[loose]] = loose
    staying = np.zeros(len(held), dtype=bool) if near is None else near == held
    apps = np.flatnonzero(away >= 0)
    apps = apps[np.lexsort((rng.random(len(apps)), ~staying[apps], program.option_cell[held[apps]]))]
    cells = program.option_cell[held[apps]]
    turn = np.arange(len(apps)) - np.searchsorted(cells, cells)
    out = apps[turn >= program.rows[cells]]
    held[out] = away[out]


def _apps_of(program: Program, number: I64, person: int) -> list[tuple[int, range]]:
    """Appearances of a person, and the options of each."""
    start = program.classes.start
    span = range(int(start[person]), int(start[person + 1]))
    cuts = [n for n in span if n == span.start or number[n] != number[n - 1]]
    return [(int(number[first]), range(first, last)) for first, last in zip(cuts, [*cuts[1:], span.stop], strict=True)]


def _hand_out(
    program: Program, columns: I64, people: Sequence[list[tuple[int, range]]], near: I64 | None, held: I64
) -> None:
    """One class: values first, and then the cells of each release."""
    first = people[0]
    value_of = {
        int(program.option_value[n]): int(columns[program.option_having[n]])
        for _, span in first
        for n in span
        if program.option_value[n] >= 0
    }
    had = [None if near is None else _value_in(program, apps, near) for apps in people]
    values = _matched(had, value_of)
    for k, (_, span) in enumerate(first):
        left = [int(columns[program.option_column[n]]) for n in span]
        counted = program.option_column[span[-1]] >= 0  # otherwise who is away is settled afterwards
        for value in value_of:
            mine = [apps[k] for apps, held_value in zip(people, values, strict=True) if held_value == value]
            room = {i: left[i] for i, n in enumerate(span) if program.option_value[n] == value}
            if program.option_value[span[-1]] < 0 and counted:  # the last one: being away
                room[len(span) - 1] = len(mine) - sum(room.values())
            if not room:
                continue  # nobody is there with this value: away
            now = [None if near is None else int(near[app]) - own.start for app, own in mine]
            for (app, own), place in zip(mine, _matched(now, room), strict=True):
                held[app] = own.start + place


def _value_in(program: Program, apps: list[tuple[int, range]], near: I64) -> int | None:
    shown = [int(program.option_value[near[app]]) for app, _ in apps]
    return next((value for value in shown if value >= 0), None)


def _matched(had: Sequence[int | None], counts: dict[int, int]) -> list[int]:
    """A number for each, so many of each; who can keep theirs does."""
    left, chosen = dict(counts), list[int | None]()
    for one in had:
        keeps = one is not None and left.get(one, 0) > 0
        if keeps and one is not None:
            left[one] -= 1
        chosen.append(one if keeps else None)
    rest = [one for one, number in left.items() for _ in range(number)]
    return [rest.pop() if one is None else one for one in chosen]
