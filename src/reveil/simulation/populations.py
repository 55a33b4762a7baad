"""Who the simulated people are: a hospital's patients, and the census table of the papers.

A shape draws newcomers, moves people, and writes what a table shows of them. Nobody in these tables exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Array = npt.NDArray[Any]
Traits = dict[str, Array]  # one entry per person who ever appeared
OLDEST = 99  # ages end here, as in a census: "99" means 99 or older
FIRST_DAY = 19_358  # 1 January 2023, in days since 1970
DIAGNOSES = [  # name, more with age (+1) or less (-1), more among women (+1) or men (-1); by fours of a kind
    *[("Asthma", -1, 0), ("Bronchitis", 0, 0), ("Influenza", 0, 0), ("Pneumonia", 1, -1)],
    *[("Dyspepsia", 0, 0), ("Gastritis", 0, 1), ("Gastric ulcer", 1, -1), ("Appendicitis", -1, 0)],
    *[("Hypertension", 1, 0), ("Angina", 1, -1), ("Arrhythmia", 1, 0), ("Heart failure", 1, 0)],
    *[("Migraine", -1, 1), ("Epilepsy", -1, 0), ("Stroke", 1, 0), ("Huntington disease", 0, 0)],
    *[("Diabetes", 1, 0), ("Thyroid disorder", 0, 1), ("Obesity", 0, 0), ("Wilson disease", -1, 0)],
    *[("Arthritis", 1, 1), ("Back pain", 0, 0), ("Fracture", -1, -1), ("Osteoporosis", 1, 1)],
]
RARE = ("Huntington disease", "Wilson disease")
REGIONS = {
    "Europe": "Germany France Italy Spain Poland Romania Greece Portugal Ireland Norway Sweden Austria",
    "Asia": "China India Japan Vietnam Korea Philippines Thailand Indonesia Pakistan Nepal",
    "Middle East": "Turkey Iran Iraq Syria Lebanon Jordan Israel",
    "Africa": "Nigeria Egypt Ethiopia Ghana Kenya Morocco Algeria Senegal Somalia Uganda",
    "North America": "Canada Mexico Cuba Jamaica Haiti Panama Guatemala Honduras",
    "South America": "Brazil Argentina Colombia Peru Chile Ecuador Bolivia",
    "Oceania": "Australia Fiji Samoa",
}
COUNTRIES = [country for countries in REGIONS.values() for country in countries.split()]
ZIPS = [
    f"{region}{2 * town}{3 * (code // 5)}{2 * (code % 5) + 1}"
    for region in ("01", "02", "05", "06", "10", "11")
    for town in range(5)
    for code in range(20)
]
WARDS = [f"{wing} {floor}" for wing in ("North", "South") for floor in range(1, 5)]
MARITAL = ["never married", "married", "separated", "divorced", "widowed", "spouse absent"]
MARITAL_BY_AGE = np.array(  # one row per 20 years of age
    [
        [100, 0, 0, 0, 0, 0],
        [45, 42, 4, 6, 0, 3],
        [14, 60, 5, 15, 3, 3],
        [7, 60, 3, 14, 14, 2],
        [5, 37, 1, 6, 50, 1],
    ]
)


def draw(rng: np.random.Generator, weights: Array, stratum: Array) -> Array:
    """One column index per person, with the weights of the person's row. Exact, and without a loop."""
    share = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    ladder = (share + np.arange(len(weights))[:, None]).ravel()
    drawn = np.searchsorted(ladder, stratum + rng.random(len(stratum)), side="right")
    # Rounding may lift a draw just below 1 to 1, which is the next row.
    return np.asarray(np.minimum(drawn - stratum * weights.shape[1], weights.shape[1] - 1), dtype=np.int16)


def zipf(count: int, exponent: float) -> Array:
    return np.asarray(np.arange(1.0, count + 1) ** -exponent)


def text(names: list[str], codes: Array) -> pl.Series:
    return pl.Series(names, dtype=pl.String).gather(codes.astype(np.uint32))


class Hospital:
    """Six regions of five towns with 20 zip codes each. Regions differ in age; most old people are women."""

    key, prefix, sensitive = "patient", "P", "diagnosis"
    columns = """patient = "identifier"
age = "quasi"
sex = "quasi"
zip = { role = "quasi", type = "category", prefixes = [4, 3, 2] }   # 01031 -> 0103* -> 010** -> 01***
admitted = { role = "quasi", type = "date", levels = ["month", "quarter", "year"] }
ward = "insensitive"
diagnosis = "sensitive"
"""
    adult = 0  # age from which people move

    def newcomers(self, rng: np.random.Generator, count: int) -> Traits:
        town = draw(rng, zipf(30, 0.6)[None, np.arange(30) * 7 % 30], np.zeros(count, dtype=np.int64))
        age = np.minimum(np.abs(rng.normal(28 + 7 * (town // 5) + 3 * (town % 5), 15)), OLDEST)
        women = 0.45 + 0.15 * (age > 60)
        chance = rng.random(count)
        sex = np.where(chance < 0.01, 2, np.where(chance < 0.01 + women, 0, 1)).astype(np.int8)
        return {"age": age, "sex": sex, "place": (town * 20 + rng.integers(20, size=count)).astype(np.int16)}

    def strata(self, who: Traits, age: Array) -> Array:
        return np.asarray(age // 20 * 3 + who["sex"], dtype=np.int64)

    def move(self, rng: np.random.Generator, who: Traits, people: Array) -> None:
        town, code = np.divmod(who["place"][people], 20)
        near = rng.random(len(people)) < 0.7  # most people stay in their town
        far_town = (town + rng.integers(1, 30, size=len(people))) % 30
        next_code = (code + rng.integers(1, 20, size=len(people))) % 20
        who["place"][people] = np.where(near, town, far_town) * 20 + next_code

    def table(
        self, rng: np.random.Generator, release: int, years: float, who: Traits, age: Array
    ) -> dict[str, pl.Series]:
        start, end = (FIRST_DAY + int(number * years * 365.25) for number in (release, release + 1))
        admitted = rng.integers(start, end, size=len(age), dtype=np.int32)
        return {
            "sex": text(["F", "M", "X"], who["sex"]),
            "zip": text(ZIPS, who["place"]),
            "admitted": pl.Series(admitted).cast(pl.Date),
            # A ward that followed from the diagnosis would give it away: it is published as it is.
            "ward": text(WARDS, rng.integers(len(WARDS), size=len(age))),
        }


class Census:
    """The table of the papers: age 100, gender 2, education 17, birthplace 57, marital 6, occupation 50."""

    key, prefix, sensitive = "person", "C", "occupation"
    columns = """person = "identifier"
age = "quasi"
gender = "quasi"
education = "quasi"   # 17 levels, in order
birthplace = { role = "quasi", hierarchy = "birthplace.csv" }   # country -> region -> *
marital = "quasi"
occupation = "sensitive"
"""
    adult = 18  # age from which the marital status changes

    def newcomers(self, rng: np.random.Generator, count: int) -> Traits:
        age = 100 * rng.beta(1.3, 1.9, size=count)
        birth = draw(rng, zipf(57, 0.8)[None, np.arange(57) * 16 % 57], np.zeros(count, dtype=np.int64))
        school = np.rint(rng.normal(11 - age / 30 + 2 * np.sin(birth / 6), 2.5))
        return {
            "age": age,
            "sex": rng.integers(2, size=count).astype(np.int8),
            "birth": birth,
            "school": np.clip(school, 1, 17).astype(np.int8),
            "marital": draw(rng, MARITAL_BY_AGE, (age // 20).astype(np.int64)),
        }

    def education(self, who: Traits, age: Array) -> Array:
        """Children climb one level a year until they reach the level they will keep."""
        return np.asarray(np.minimum(who["school"], np.clip(age - 4, 1, 17)))

    def strata(self, who: Traits, age: Array) -> Array:
        return np.asarray((self.education(who, age) - 1) * 5 // 17 * 3 + who["sex"], dtype=np.int64)

    def move(self, rng: np.random.Generator, who: Traits, people: Array) -> None:
        now = who["marital"][people]
        other = (now - 1 + rng.integers(1, 5, size=len(people))) % 5 + 1
        who["marital"][people] = np.where(now == 0, 1, other)  # nobody goes back to "never married"

    def table(
        self, rng: np.random.Generator, release: int, years: float, who: Traits, age: Array
    ) -> dict[str, pl.Series]:
        return {
            "gender": text(["female", "male"], who["sex"]),
            "education": pl.Series(self.education(who, age).astype(np.int16)),
            "birthplace": text(COUNTRIES, who["birth"]),
            "marital": text(MARITAL, who["marital"]),
        }


SHAPES: dict[str, Hospital | Census] = {"hospital": Hospital(), "census": Census()}
