"""Addresses of databases without their passwords: in all that is said, suggested or written, nobody reads one."""

from __future__ import annotations

import re

HIDDEN = "***"
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<rest>\S+)")
_KEYS = r"(?:ssl)?pass(?:word|wd|phrase)?|pwd|token|secret"
_QUERY = re.compile(rf"(?i)([?&](?:{_KEYS})=)[^&\s]*")
_STATED = re.compile(rf"(?i)\b({_KEYS})(\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&'\"]+)")


def masked(text: str) -> str:
    """A text in which the passwords of database addresses are hidden.

    A password with an @ that nobody escaped is hidden as a whole: up to the last @ of the address.

    >>> masked("reveil publish postgresql://ann:p@ss@host/db?sslmode=require")
    'reveil publish postgresql://ann:***@host/db?sslmode=require'
    >>> masked("postgresql://host/db?user=ann&password=x%40y&port=5"), masked("people.csv")
    ('postgresql://host/db?user=ann&password=***&port=5', 'people.csv')
    """
    hidden = _ADDRESS.sub(lambda match: match["scheme"] + _without_password(match["rest"]), text)
    return _STATED.sub(rf"\1\2{HIDDEN}", _QUERY.sub(rf"\1{HIDDEN}", hidden))


def _without_password(rest: str) -> str:
    before, mark, query = rest.partition("?")
    if "@" not in before and "@" in query and ":" in before:  # a password may hold a question mark as well
        before, mark, query = rest, "", ""
    secret, at, place = before.rpartition("@")
    user, colon, _ = secret.partition(":")
    return f"{user}:{HIDDEN}@{place}{mark}{query}" if at and colon else rest


def several_marks(address: str) -> bool:
    """Whether user and password hold an @ of their own, so that nobody can tell where the host begins.

    >>> several_marks("postgresql://ann:p@ss@host/db"), several_marks("postgresql://ann:p%40ss@host/db")
    (True, False)
    """
    return address.partition("://")[2].partition("?")[0].count("@") > 1
