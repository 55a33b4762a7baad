"""k-map: how many people of a known population match the cells that each class shows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from reveil.base.words import some
from reveil.guarantees.k_map import KMap
from reveil.history.history import History
from reveil.policy.policy import Policy
from reveil.verify.judges.contract import Background, Judge, Verdict, View
from reveil.verify.judges.presence import matches, population_with, refuse_strangers


@dataclass
class KMapJudge:
    """Every class that is shown could be about k people of the population or more."""

    k: int
    background: Background
    name: str = "k-map"

    def judge(self, view: View, history: History) -> list[Verdict]:
        known = population_with(self.background, view.quasi.columns)
        people = known.group_by(known.columns, maintain_order=True).agg(pl.len().alias("\0people"))
        person, group = matches(view, people.drop("\0people"), self.background)
        counts = people["\0people"].to_numpy().astype(np.int64)
        matching = np.zeros(view.count, dtype=np.int64)
        np.add.at(matching, group, counts[person])
        sizes = view.sizes()
        refuse_strangers(sizes - view.counterfeits, matching)
        bad = np.flatnonzero((matching < self.k) & (sizes > 0))
        worst = int(matching[sizes > 0].min(initial=int(counts.sum())))
        fit = "fits" if worst == 1 else "fit"
        at_least = f"every class could be about {some(self.k, 'person', 'people')} of the population or more"
        found = f"the poorest about {worst:,}"
        return [
            Verdict(
                guarantee=self.name,
                statement=f"{'not ' if len(bad) else ''}{at_least}; {found}",
                plain=f"Whoever looks for the person of a row finds {some(worst, 'person', 'people')} of the "
                f"population or more who {fit} it; the promise was {self.k:,}.",
                holds=not len(bad),
                worst=Fraction(worst),
                bound=self.k,
                violating_classes=len(bad),
                violating_rows=int(sizes[bad].sum()),
            )
        ]


def build_k_map(asked: KMap, policy: Policy, background: Background) -> list[Judge]:
    assert asked.k_map is not None
    population_with(background, policy.named("quasi"))
    return [KMapJudge(asked.k_map, background)]
