"""How to read a table, and the faults that all readers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reveil.base.errors import Fault, InputError, stop_if

NAMELESS = "\0"  # while it is read, the name of a first column that has none


@dataclass(frozen=True)
class ReadOptions:
    """How to read; None means look and decide. A value whose text is one of `nulls` is missing, quoted or not.

    The fields are those of the same names under `[input]` in a policy.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    nulls: tuple[str, ...] = ("",)
    query: str | None = None
    sheet: str | None = None
    multiline: bool = False
    header: bool = True  # of a text file; without one, columns are column_1, column_2 ...
    strip: bool = False  # blanks around texts are no part of them
    row_index: bool = False  # a first column without a name numbers the rows, and is left out
    skip_lines: int = 0  # of a text file or a sheet: lines of title above the names of columns
    max_megabytes: int = 4_000
    max_columns: int = 10_000
    max_cell: int = 10_000_000
    accept: tuple[str, ...] = ()  # doubts that somebody accepts (`reveil.base.doubts`), not a key of policies


def refusal(code: str, where: str, message: str, remedy: str, rows: int | None = None) -> InputError:
    first, *_ = message.splitlines()  # libraries add pages of advice to their errors
    return InputError(Fault(code, where, first.rstrip("."), remedy, rows))


def checked_names(names: Iterable[str], where: str, *, index: bool = False) -> list[str]:
    """Names of columns without surrounding blanks; nameless ones and doubles are refused.

    With `index`, the first column alone may have none: it may number the rows, as its cells will tell.
    """
    stripped = [name.strip() for name in names]
    if index and stripped[:1] == [""] and stripped.count("") == 1:
        stripped[0] = NAMELESS
    places = ", ".join(str(place) for place, name in enumerate(stripped, 1) if not name)
    what = f"column {places} of {len(stripped)} has no name"
    faults = [Fault("R107", where, what, "name it; write files without a row index")] if places else []
    for name in (name for name, count in Counter(filter(None, stripped)).items() if count > 1):
        what = f"the column name '{name}' occurs {stripped.count(name)} times"
        remedy = "give every column its own name; if the file has no header line: header = false under [input]"
        faults.append(Fault("R107", where, what, f"{remedy} (`reveil init --no-header` writes it)"))
    stop_if(faults)
    return stripped
