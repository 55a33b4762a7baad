"""All lots of a release come from one secret number, and nobody without the key of its home can find that number.

    secret = HMAC-SHA-256(key, seed and number of the release)        256 bits
    generator of a purpose = Philox4x64-10, keyed with HMAC-SHA-512(secret, purpose)

A seed alone tells nothing: whoever guesses it would have to guess 32 random bytes as well. The 128 bits of Philox' key
and the 256 bits of its counter are taken from the HMAC directly. (`default_rng` would squeeze them into a pool of 128,
and from enough output of its PCG64 the state, and with it all other lots, has been computed.) Philox is a block
cipher in counter mode with ten rounds of multiplications; no way is known to find its key from its output. Purposes
have generators of their own, so that one of them tells nothing about another.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from reveil.base.errors import Fault, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEY_BYTES = 32
KEY_FILE = "key"  # in a home, or in the private half of a release outside any series
KeyLike = bytes | str | Path


def fresh_key() -> bytes:
    """A new key, from the operating system."""
    return secrets.token_bytes(KEY_BYTES)


def key_for(seed: int | None, given: KeyLike | None) -> bytes:
    """The key of a release outside any series: a new one, or that of the release which is to be made again."""
    if given is None:
        return fresh_key()
    if seed is None:
        message, remedy = "does nothing without a seed", "give the seed of that release, or leave the key out"
        raise InputError(Fault("R280", "key", message, remedy))
    try:
        key = given if isinstance(given, bytes) else Path(given).read_bytes()
    except OSError as error:
        key, reason = b"", error.strerror or "cannot be read"
    else:
        reason = f"has {len(key)} bytes and not {KEY_BYTES}"
    if len(key) != KEY_BYTES:
        where = "key" if isinstance(given, bytes) else f"key '{given}'"
        raise InputError(Fault("R280", where, reason, "give the file private/key of the release to be made again"))
    return key


def secret_of(key: bytes, seed: int | None, release: int = 0, discarded: int = 0) -> int:
    """The secret of a release: the same for the same key, seed and number; without a seed, another one each time.

    A release that takes the number of a discarded one draws other lots.

    >>> secret_of(bytes(32), 1) == secret_of(bytes(32), 1), secret_of(bytes(32), 1) == secret_of(bytes(32), 1, 2)
    (True, False)
    >>> other = bytes(31) + b"1"
    >>> secret_of(other, 1) == secret_of(bytes(32), 1), secret_of(other, None) == secret_of(other, None)
    (False, False)
    """
    given = secrets.token_hex(KEY_BYTES) if seed is None else f"seed {seed}"
    again = f" after {discarded} discarded" if discarded else ""
    return int.from_bytes(hmac.digest(key, f"lots of release {release}{again}, {given}".encode(), "sha256"))


def generator(secret: int, purpose: int = 0) -> np.random.Generator:
    """The lots for one purpose. Tests and benches may give any number that is not negative for a secret.

    >>> first = generator(7, 3).permutation(5).tolist()
    >>> first == generator(7, 3).permutation(5).tolist(), first == generator(7, 4).permutation(5).tolist()
    (True, False)
    """
    import numpy as np  # here, because the ledger has keys and no lots, and loads quickly

    material = hmac.digest(_bytes(secret), f"purpose {purpose}".encode(), "sha512")
    key, counter = int.from_bytes(material[:16]), int.from_bytes(material[16:48])
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def lots_of_rows(secret: int, purpose: int, first: int, rows: int) -> NDArray[np.uint64]:
    """One lot of 64 bits for each of some rows from the `first` on: the same however rows are taken together.

    >>> whole = lots_of_rows(7, 3, 0, 9).tolist()
    >>> whole == lots_of_rows(7, 3, 0, 5).tolist() + lots_of_rows(7, 3, 5, 4).tolist()
    True
    """
    stream = generator(secret, purpose).bit_generator
    stream.advance(first // 4)  # type: ignore[attr-defined]  # four lots for each step of the counter
    lots: NDArray[np.uint64] = stream.random_raw(first % 4 + rows)[first % 4 :]
    return lots


def token(secret: int, purpose: str) -> str:
    """A public name of 128 bits that tells nothing about the secret it comes from.

    >>> len(token(1, "id")), token(1, "id") == token(1, "id"), token(1, "id") == token(1, "series")
    (32, True, False)
    """
    return hmac.digest(_bytes(secret), f"name for {purpose}".encode(), "sha256").hex()[:32]


def _bytes(secret: int) -> bytes:
    return secret.to_bytes(max(KEY_BYTES, (secret.bit_length() + 7) // 8))
