"""Who is who: identifiers as keyed 128-bit hashes, the only form in which they are ever remembered.

SipHash-2-4 with a 128-bit result, keyed with the series' secret. Without the key nobody can tell whether a person is in
the ledger, not even by hashing a list of all possible identifiers.
"""

from __future__ import annotations

import hmac
from decimal import Context, Decimal

import numpy as np
import polars as pl
from numba import uint64
from numpy.typing import NDArray

from reveil.base.arrays import U64
from reveil.base.errors import Fault, brief
from reveil.base.kernels import kernel
from reveil.table.cells import texts


def keyed_hashes(identifiers: pl.Series, key: bytes) -> pl.DataFrame:
    """Two 64-bit halves per identifier, by its plain text: 7, 7.0, Decimal("7.00") and "7" are the same person.

    >>> twice = keyed_hashes(pl.Series(["p1", "p2", "p1"]), bytes(32))
    >>> twice.row(0) == twice.row(2), twice.row(0) == twice.row(1)
    (True, False)
    """
    text = texts(identifiers).fill_null("")
    begins = np.concatenate([[0], text.str.len_bytes().cum_sum().to_numpy()]).astype(np.int64)
    content = np.frombuffer(text.str.join("").item().encode(), dtype=np.uint8)
    halves = np.frombuffer(key[:16], dtype="<u8")
    lo, hi = siphash(content, begins, halves[0], halves[1])
    return pl.DataFrame({"hi": hi, "lo": lo})


def person_hashes(identifiers: pl.Series, key: bytes, *, normalise: bool) -> pl.DataFrame:
    """What the ledger remembers of people: the hash of each identifier, and that of its plainest spelling.

    People are known again by the first; the second finds those who were spelled in another way. With `normalise` the
    plainest spelling is all that counts.
    """
    plainest = plain_spelling(identifiers)
    told = keyed_hashes(plainest if normalise else identifiers, key)
    other = hmac.digest(key, b"plainest spelling", "sha256")  # so that nobody sees whose identifier is plain already
    return told.with_columns(keyed_hashes(plainest, other).rename({"hi": "spelled_hi", "lo": "spelled_lo"}))


def plain_spelling(identifiers: pl.Series) -> pl.Series:
    """Identifiers in their plainest spelling: what programs change in passing is settled.

    Composed letters, no blanks or invisible characters around, small letters, and one text for each number.

    >>> plain_spelling(pl.Series(["007", " 7", "+7", "7.0", "7e0", "'7", "A-07", "a-07"])).to_list()
    ['7', '7', '7', '7', '7', '7', 'a-07', 'a-07']
    """
    text = identifiers.cast(pl.String).str.normalize("NFKC").str.replace_all(INVISIBLE, "")
    text = text.str.strip_chars().str.strip_prefix("'").str.strip_chars()
    text = text.str.to_lowercase().str.replace_all("ß", "ss", literal=True).str.replace_all("ς", "σ", literal=True)
    whole = text.str.contains(r"^\+?[0-9]+$")
    digits = text.str.strip_prefix("+").str.strip_chars_start("0")
    settled = pl.select(pl.when(whole).then(pl.when(digits == "").then(pl.lit("0")).otherwise(digits)).otherwise(text))
    spelled = settled.to_series().alias(identifiers.name)
    odd = spelled.str.contains(NUMBER).fill_null(False) & ~whole.fill_null(False)
    if not odd.any():
        return spelled
    return spelled.scatter(odd.arg_true(), [_number(text) for text in spelled.filter(odd)])


def collision_faults(identifiers: pl.Series) -> list[Fault]:
    """Identifiers that are told apart as written, and not in their plainest spelling: 007 and 7."""
    plainest = plain_spelling(identifiers)
    alike = plainest.is_duplicated() & ~identifiers.is_duplicated() & identifiers.is_not_null()
    if not alike.any():
        return []
    shown = ", ".join(map(brief, identifiers.filter(alike & (plainest == plainest.filter(alike)[0])).head(3)))
    message = f'these differ in spelling only, and identifiers = "normalise" would make them one person: {shown}'
    remedy = "give each person an identifier of their own, or leave identifiers out of [input] for a new series"
    rows, places = int(alike.sum()), tuple((alike.arg_true().head(4) + 1).to_list())
    return [Fault("R281", f"identifier {identifiers.name!r}", message, remedy, rows, places)]


INVISIBLE = "[\\p{Cf}\\p{Cc}]"  # zero-width characters, byte order marks, soft hyphens, tabs and line ends
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?$"


def _number(text: str) -> str:
    """One text for a number: 7.0, 7e0 and 7. are 7; 100.10 is 100.1."""
    number = Decimal(text)
    if not number:
        return "0"
    return format(number.normalize(Context(prec=len(text) + 1)), "f")


@kernel
def rotate(x: int, bits: int) -> int:
    return int((x << uint64(bits)) | (x >> uint64(64 - bits)))


@kernel
def sip_round(v: U64) -> None:
    v[0] += v[1]
    v[1] = rotate(v[1], 13) ^ v[0]
    v[0] = rotate(v[0], 32)
    v[2] += v[3]
    v[3] = rotate(v[3], 16) ^ v[2]
    v[0] += v[3]
    v[3] = rotate(v[3], 21) ^ v[0]
    v[2] += v[1]
    v[1] = rotate(v[1], 17) ^ v[2]
    v[2] = rotate(v[2], 32)


@kernel
def siphash(data: NDArray[np.uint8], begins: NDArray[np.int64], k0: int, k1: int) -> tuple[U64, U64]:
    """SipHash-2-4-128 of each run of bytes."""
    n = len(begins) - 1
    lo = np.empty(n, dtype=np.uint64)
    hi = np.empty(n, dtype=np.uint64)
    v = np.empty(4, dtype=np.uint64)
    for i in range(n):
        a, b = begins[i], begins[i + 1]
        v[0] = k0 ^ uint64(0x736F6D6570736575)
        v[1] = k1 ^ uint64(0x646F72616E646F6D) ^ uint64(0xEE)
        v[2] = k0 ^ uint64(0x6C7967656E657261)
        v[3] = k1 ^ uint64(0x7465646279746573)
        while b - a >= 8:
            word = uint64(0)
            for j in range(8):
                word |= uint64(data[a + j]) << uint64(8 * j)
            v[3] ^= word
            sip_round(v)
            sip_round(v)
            v[0] ^= word
            a += 8
        word = uint64((begins[i + 1] - begins[i]) & 0xFF) << uint64(56)
        for j in range(b - a):
            word |= uint64(data[a + j]) << uint64(8 * j)
        v[3] ^= word
        sip_round(v)
        sip_round(v)
        v[0] ^= word
        v[2] ^= uint64(0xEE)
        for _ in range(4):
            sip_round(v)
        lo[i] = v[0] ^ v[1] ^ v[2] ^ v[3]
        v[1] ^= uint64(0xDD)
        for _ in range(4):
            sip_round(v)
        hi[i] = v[0] ^ v[1] ^ v[2] ^ v[3]
    return lo, hi
