"""The form of a release: what its files, its tables and their columns are called, and which types its cells have.

    public/datapackage.json     which tables there are, and of which type their columns are
    public/table.csv            one table; releases of a series number its groups
    public/table-00001.csv      or the same in many files, table-00002.csv and so on; each mixes all groups
    public/counterfeits.csv     how many of its rows are invented, by group

    public/people.csv           or two: people, each with their group,
    public/values.csv           and how often a group has each value; what it has beyond its people is invented
    public/tuples.csv           and how often it has which values of several columns together, where that is asked for

Whoever writes or reads a release takes the names from here. The verifier shares nothing else with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PUBLIC, PRIVATE = "public", "private"  # the halves of a release folder
PACKAGE = "datapackage.json"
TABLE = "table"
PEOPLE = "people"  # two tables: the quasi-identifiers of people, with their group
VALUES = "values"  # two tables: the values by group, or what the names of several such tables begin with
FORMER = ("qit", "st")  # what these were called before a series could have them
TUPLES = "tuples"  # two tables: values of several columns side by side, where the policy asks for it
COUNTERFEITS = "counterfeits"
GROUP, COUNT = "group", "count"  # columns
BUNDLE = "bundle"  # two tables where somebody has several rows: values of one person of the group, whoever it is
HOUSEHOLD, PERSON = "household", "person"  # columns that say which rows belong together, where somebody has several
INTEGER, NUMBER, DATE, TEXT = "integer", "number", "date", "string"  # types of columns, in the data package
SUFFIXES = (".csv", ".parquet")
# Spreadsheets take a text that begins with one of these for a formula. In CSV it gets an apostrophe in front, unless it
# is a number; so does a text that has apostrophes before it, so that readers can take one away.
FORMULAS = "=+@\t\r-"  # the hyphen last, for patterns
ESCAPED = "formulaEscape"  # of a resource in the data package
APOSTROPHE = "'"


def value_tables(names: Sequence[str]) -> dict[str, str]:
    """The name of the value table of each sensitive column.

    >>> value_tables(("disease",)), value_tables(("disease", "drug"))
    ({'disease': 'values'}, {'disease': 'values-1', 'drug': 'values-2'})
    """
    if len(names) == 1:
        return {names[0]: VALUES}
    return {name: f"{VALUES}-{number}" for number, name in enumerate(names, 1)}


def part_name(number: int) -> str:
    """The name of one file of a table in many.

    >>> part_name(7), is_part(part_name(7)), is_part("table")
    ('table-00007', True, False)
    """
    return f"{TABLE}-{number:05}"


def is_part(name: str) -> bool:
    """Whether a file of this name is one of many that hold one table."""
    return name.startswith(f"{TABLE}-") and name[len(TABLE) + 1 :].isdecimal()


def is_value_table(name: str) -> bool:
    """Whether a table of this name holds values by group.

    >>> is_value_table("values"), is_value_table("values-2"), is_value_table("valuess")
    (True, True, False)
    """
    return name == VALUES or name.startswith(f"{VALUES}-")


def is_table(name: str) -> bool:
    """Whether a release may have a table of this name."""
    return name in (TABLE, PEOPLE, TUPLES, COUNTERFEITS, *FORMER) or is_value_table(name) or is_part(name)


def public_half(folder: Path) -> Path:
    """The public half of a release folder; a folder without halves is public as it is."""
    half = folder / PUBLIC
    return half if half.is_dir() else folder
