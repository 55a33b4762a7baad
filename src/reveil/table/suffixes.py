"""Kinds of table files by how their names end."""

from __future__ import annotations

TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
COLUMNAR = (".parquet", ".arrow", ".feather", ".ipc")
STATS = {".dta": "read_dta", ".sav": "read_sav", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}
SUFFIXES = (*TEXT, *(s + ".gz" for s in TEXT), *COLUMNAR, ".xlsx", *STATS)
