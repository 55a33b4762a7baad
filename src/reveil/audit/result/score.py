"""Beliefs as frames and counts: who is certain, above one half, above the promise, undecided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reveil.audit.infer.infer import Inference
from reveil.audit.input.terms import beyond
from reveil.audit.model.options import likeliest
from reveil.base.arrays import I64, Bools


@dataclass(frozen=True)
class PersonBelief:
    """What is believed of one person in some releases, likeliest values first (None: no belief was computed)."""

    person: str
    releases: tuple[str, ...]
    known: bool  # from elsewhere
    settled: bool  # all these values are truly possible
    beliefs: tuple[tuple[str, float | None], ...]

    @property
    def certain(self) -> bool:
        return len(self.beliefs) == 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "person": self.person,
            "releases": list(self.releases),
            "known": self.known,
            "settled": self.settled,
            "beliefs": [{"value": value, "probability": share} for value, share in self.beliefs],
        }


Protects = Callable[[object], bool]


def everything(value: object) -> bool:
    """Every value is one that people need protection from."""
    return True


SMALL = 1e-9  # floats that come from exact fractions are compared with this much slack


@dataclass(frozen=True, eq=False)
class Score:
    """What an inference means for people. `truth` is the true value's code of each appearance, where it is given."""

    inference: Inference
    truth: I64 | None
    looked: Bools  # appearances that were asked about
    beyond: Bools  # appearances of which the promise does not speak: too many people are known
    protects: Protects = everything  # which values are those that somebody needs protection from

    @cached_property
    def targets(self) -> I64:
        """Appearances asked about of people who were not known beforehand."""
        o, known = self.inference.model.observed, self.inference.model.known
        targets: I64 = np.nonzero(self.looked & ~np.isin(o.app_person, np.array(sorted(known), dtype=np.int64)))[0]
        return targets

    @cached_property
    def options(self) -> pl.DataFrame:
        """Open values by appearance: app, value, probability (nan: not computed)."""
        m, s = self.inference.model, self.inference.state
        keep = s.alive & m.by_option(self.looked)
        apps = m.by_option(np.arange(len(self.looked), dtype=np.int32))[keep]
        values = m.cell_value.astype(np.int32)[m.opt_cell[keep]]
        frame = pl.DataFrame({"app": apps, "value": values, "p": self.inference.share[keep]})
        if m.observed.located:
            return frame
        return frame.group_by("app", "value").agg(pl.col("p").sum()).sort("app", "value")

    @cached_property
    def top(self) -> pl.DataFrame:
        """By appearance: how many values are open, which (if one), the highest probability, and that of the truth."""
        m, s = self.inference.model, self.inference.state
        truth = np.full(len(self.looked), -2, dtype=np.int64) if self.truth is None else self.truth
        lists = (m.opt_start, m.opt_cell, m.cell_value)
        likeliest_cells = likeliest(*lists, s.alive, self.inference.share, truth, len(m.observed.values))
        frame = pl.DataFrame(dict(zip(("open", "value", "p", "of_truth"), likeliest_cells, strict=True)))
        return frame.with_row_index("app").filter(pl.Series(self.looked) & (frame["open"] > 0))

    @property
    def certain_apps(self) -> I64:
        sure = self.top.filter((pl.col("open") == 1) & (pl.col("value") >= 0))
        return sure["app"].to_numpy()

    @cached_property
    def protected(self) -> Bools:
        """Of each value, whether it is protected; others are harmless."""
        return np.array([self.protects(value) for value in self.inference.model.observed.values], dtype=bool)

    @property
    def sure_apps(self) -> I64:
        """Appearances with a certain value that is protected."""
        sure = self.top.filter((pl.col("open") == 1) & (pl.col("value") >= 0))
        apps: I64 = sure["app"].to_numpy()[self.protected[sure["value"].to_numpy()]]
        return apps

    @cached_property
    def exposed_apps(self) -> I64:
        """The first appearance of everybody whose protected value is certain and who was not known."""
        o, known = self.inference.model.observed, self.inference.model.known
        apps = self.sure_apps
        apps = apps[~np.isin(o.app_person[apps], np.fromiter(known, dtype=np.int64, count=len(known)))]
        _, first = np.unique(o.app_person[apps], return_index=True)
        return apps[np.sort(first)]

    @cached_property
    def exposed_people(self) -> I64:
        return self.inference.model.observed.app_person[self.exposed_apps]

    @cached_property
    def certain(self) -> pl.DataFrame:
        m = self.inference.model
        apps = self.certain_apps
        value = self.top.filter((pl.col("open") == 1) & (pl.col("value") >= 0))["value"].to_numpy()
        known = np.isin(m.observed.app_person[apps], np.fromiter(m.known, dtype=np.int64, count=len(m.known)))
        return self._named(apps, value).with_columns(pl.Series("known", known))

    @cached_property
    def posterior(self) -> pl.DataFrame:
        """person, release, value, probability; null where it was neither counted nor sampled."""
        shown = self.options.filter(pl.col("value") >= 0)
        frame = self._named(shown["app"].to_numpy(), shown["value"].to_numpy())
        return frame.with_columns(shown["p"].fill_nan(None).alias("probability"))

    def standings(self, person: int) -> list[PersonBelief]:
        """What is believed of one person, releases with the same beliefs together."""
        m, o = self.inference.model, self.inference.model.observed
        first, last = int(o.person_start[person]), int(o.person_start[person + 1])
        shown = self.options.filter(pl.col("app").is_between(first, last - 1))
        people: list[PersonBelief] = []
        for app in range(first, last):
            mine = shown.filter(pl.col("app") == app).sort("p", descending=True, maintain_order=True, nulls_last=True)
            beliefs = tuple(
                ("not in this release" if v < 0 else str(o.values[v]), None if np.isnan(p) else p)
                for v, p in mine.select("value", "p").iter_rows()
            )
            settled, release = bool(self.inference.decided[app]), o.releases[o.app_release[app]]
            new = PersonBelief(str(o.persons[person]), (release,), person in m.known, settled, beliefs)
            if people and replace(people[-1], releases=(release,)) == new:
                people[-1] = replace(new, releases=(*people[-1].releases, release))
            else:
                people.append(new)
        return people

    def _named(self, apps: I64, values: I64) -> pl.DataFrame:
        o = self.inference.model.observed
        texts = pl.Series([str(v) for v in o.values], dtype=pl.String)
        return pl.DataFrame(
            {
                "person": o.persons.gather(o.app_person[apps]),
                "release": pl.Series(o.releases, dtype=pl.String).gather(o.app_release[apps]),
                "value": texts.gather(values),
            }
        )

    @cached_property
    def ever(self) -> dict[tuple[int, int], float]:
        """The probability that a person had a value in at least one release."""
        m, o = self.inference.model, self.inference.model.observed
        if m.change == "transitions":
            return {key: float(share) for key, share in self.inference.ever.items()}
        shown = self.options.filter((pl.col("value") >= 0) & pl.col("p").is_not_nan())
        persons = pl.Series("person", o.app_person[shown["app"].to_numpy()])
        frame = shown.with_columns(persons)
        once = 1 - (1 - pl.col("p")).product() if m.change == "freely" else pl.col("p").max()
        rows = frame.group_by("person", "value").agg(once.alias("p"))
        return {(p, v): share for p, v, share in rows.iter_rows()}

    def ever_of(self, people: Sequence[int]) -> list[dict[str, Any]]:
        """The same for these people by name: person, value, probability."""
        o = self.inference.model.observed
        return [
            {"person": str(o.persons[p]), "value": str(o.values[v]), "probability": share}
            for (p, v), share in sorted(self.ever.items())
            if p in people
        ]

    def _people(self, apps: I64) -> int:
        return len(np.unique(self.inference.model.observed.app_person[apps]))

    def _all_beyond(self, apps: I64) -> int:
        """People whose appearances among these are all beyond the terms of the promise."""
        return self._people(apps) - self._people(apps[~self.beyond[apps]])

    def linked(self, bound: float) -> set[int]:
        """People who are linked to a protected value in some release with more than this chance."""
        above = {p for (p, v), share in self.ever.items() if share > bound + SMALL and self.protected[v]}
        return above - self.inference.model.known

    @property
    def highest_ever(self) -> float | None:
        """The highest chance with which anybody not known is linked to a protected value in some release."""
        known = self.inference.model.known
        shares = [share for (p, v), share in self.ever.items() if self.protected[v] and p not in known]
        return max(shares, default=None)

    def _believed(self, top: pl.DataFrame) -> NDArray[np.float64]:
        """The highest belief in a protected value, by appearance of `top`; nan where it was not computed."""
        if self.protected.all():
            return top["p"].to_numpy()
        codes = np.flatnonzero(self.protected).tolist()
        shown = self.options.filter(pl.col("value").is_in(codes)).group_by("app").agg(pl.col("p").max().alias("q"))
        both = top.select("app", "p").join(shown.cast({"app": top.schema["app"]}), on="app", how="left")
        belief = pl.when(pl.col("p").is_nan()).then(pl.col("p")).otherwise(pl.col("q").fill_null(0.0))
        return both.select(belief).to_series().to_numpy()

    @cached_property
    def risk(self) -> dict[str, float]:
        """Re-identification by group size alone: prosecutor (highest, mean), journalist (highest: by the people who may
        be in a group, where that is not known), marketer, and people alone in a group. Of two tables the rows that
        count are those of the person's box: a group of values has people of several."""
        o = self.inference.model.observed
        apps = np.nonzero(self.looked & o.app_sure & (np.diff(o.cand_start) == 1))[0]
        if not len(apps):
            return {}
        home = o.cand_group[o.cand_start[:-1]][apps]
        sizes = np.maximum(o.group_rows[home] if o.crowd is None else o.crowd[apps], 1)
        around = np.bincount(o.cand_group, minlength=len(o.group_release)) + np.maximum(o.group_fakes, 0)
        return {
            "prosecutor_highest": float(1 / sizes.min()),
            "prosecutor_mean": float(np.mean(1 / sizes)),
            "journalist_highest": float(1 / np.maximum(around[home] if o.crowd is None else sizes, 1).min()),
            "marketer": float(np.sum(o.group_rows / np.maximum(np.maximum(around, o.group_rows), 1)) / max(1, o.rows)),
            "singled_out": float(np.mean(sizes == 1)),
        }

    def counts(self, promise: Fraction | None) -> dict[str, Any]:
        m, o = self.inference.model, self.inference.model.observed
        known = np.fromiter(m.known, dtype=np.int64, count=len(m.known))
        others = self.top.filter(pl.Series(~np.isin(o.app_person[self.top["app"].to_numpy()], known)))
        apps, p = others["app"].to_numpy(), self._believed(others)
        harmless = np.setdiff1d(np.intersect1d(self.certain_apps, apps), self.sure_apps)
        above = apps[p > (np.inf if promise is None else float(promise) + SMALL)]
        undecided = np.nonzero(~self.inference.decided & ~self.inference.clear & self.looked)[0]
        return {
            "exposed": len(self.exposed_people),
            "exposed_beyond": self._all_beyond(np.intersect1d(self.sure_apps, apps)),
            "harmless_certain": self._people(harmless),
            "above_half": self._people(apps[p > 0.5 + SMALL]),
            "above_promise": self._people(above),
            "beyond_promise": self._all_beyond(above),
            "highest": None if not len(p) or np.isnan(p).all() else float(np.nanmax(p)),
            "without_belief": self._people(apps[np.isnan(p)]),
            "undecided": self._people(undecided),
            "posterior_of_truth": others["of_truth"].drop_nans().mean(),
            "risk": self.risk,
        }


def score(
    inference: Inference,
    truth: I64 | None,
    people: Sequence[int] | None,
    allowed: int | None = None,
    protects: Protects = everything,
) -> Score:
    """`allowed`: how many people may be known in the terms of the promise (None: it has no such terms)."""
    looked: NDArray[np.bool_] = np.ones(len(inference.model.app_factor), dtype=bool)
    if people is not None:
        looked = np.isin(inference.model.observed.app_person, list(people))
    none: Bools = np.zeros(len(looked), dtype=bool)
    outside = none if allowed is None else beyond(inference.model, allowed)
    return Score(inference, truth, looked, outside, protects)
