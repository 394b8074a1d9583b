"""Random JSON texts, right, wrong and strange, and what they mean by way of Python's own reader."""

from __future__ import annotations

import json
import random
from collections.abc import Collection
from typing import Any

NAMES = ("a", "b", "c", "a.b", "b.c", "x y", "ä", "", "unasked", "a_longer_name_than_eight")
ASKED = ("a", "b", "c", "a.b", "b.c", "a.b.c", "x y", "ä", "a_longer_name_than_eight")
NUMBERS = (
    *(
        "0",
        "-0",
        "5",
        "-7",
        "12",
        "5.0",
        "0.1",
        "-0.0",
        "1e2",
        "1E+2",
        "25e-1",
        "3.0000000000000004",
        "0.30000000000000004",
    ),
    *("123456789012345678", "9007199254740993", "-9007199254740993", "9007199254740993.0", "9223372036854775807"),
    *(
        "9223372036854775808",
        "-9223372036854775808",
        "1e22",
        "1e23",
        "1.7976931348623157e308",
        "1e400",
        "-1e400",
        "5e-324",
    ),
    *("1e-400", "123456789012345678901234567890", "0.00000000000000000000000000012", "8.41e21", "1" * 5000),
    *("NaN", "Infinity", "-Infinity"),
)
STRINGS = (
    *(
        '""',
        '"x"',
        '"xy"',
        '"XY"',
        '"a longer text than any vector of bytes, and then some more"',
        '"ä€😀"',
        '"\\u00e4\\u20ac"',
    ),
    *(
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\ude00\\ud83d"',
        '"\\ud83d\\u0041"',
        '"x\\ny\\t\\\\\\"\\/"',
        '"C:\\\\xy\\\\x.exe"',
        '"\\u0000"',
    ),
    *('"5"', '"10.0.0.1"', '"\\b\\f\\r"', '"x' + " " * 40 + '\\\\"', '"\x7f"'),
)
WORDS = ("true", "false", "null", "true", "null")
WRONG = (
    "tru",
    "nul",
    "01",
    "1.",
    "-",
    "+1",
    ".5",
    "1e",
    "'x'",
    '"\\x"',
    '"\\u12g4"',
    '"\t"',
    '"x',
    "{",
    "[",
    "]",
    "",
    "nan",
    "1 2",
    "--1",
)
NAMES_WITH_ESCAPES = ("\\u0061", "a\\n", "\\ud800", "x\\u0020y", "un\\u0061sked")


class JsonTexts:
    """Makes one text after another."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def line(self) -> bytes:
        """A text without line feeds: usually an object with some names given twice, values of all kinds, and mistakes."""
        chance = self._random.random()
        if chance < 0.02:
            return self._random.choice(
                (b"", b" ", b"\t\r", b"[]", b"[{}]", b"5", b'"a"', b"null", b"\xef\xbb\xbf{}", b"\xff")
            )
        text = self._blank() + self._object(0) + self._blank()
        if chance < 0.1:
            text = self._damaged(text)
        data = text.encode(errors="surrogatepass")
        return data[:-2] + b"\xff" + data[-2:] if chance > 0.99 else data

    def _object(self, depth: int) -> str:
        count = self._random.choice((0, 1, 2, 3, 5))
        parts = [f"{self._blank()}{self._name()}{self._blank()}:{self._value(depth)}" for _ in range(count)]
        return "{" + ",".join(parts) + self._blank() + "}"

    def _name(self) -> str:
        if self._random.random() < 0.03:
            return f'"{self._random.choice(NAMES_WITH_ESCAPES)}"'
        return f'"{self._random.choice(NAMES)}"'

    def _value(self, depth: int) -> str:
        chance, choice = self._random.random(), self._random.choice
        text: str
        if chance < 0.15 and depth < 4:
            text = self._object(depth + 1)
        elif chance < 0.3 and depth < 4:
            elements = [self._value(depth + 1) for _ in range(choice((0, 1, 2, 3)))]
            text = "[" + ",".join(elements) + self._blank() + "]"
        elif chance < 0.31:
            text = choice(WRONG)
        elif chance < 0.33:
            text = choice(NUMBERS)
        else:
            text = choice(
                (
                    choice(NUMBERS[:14]),
                    choice(STRINGS),
                    choice(STRINGS[:5]),
                    choice(WORDS),
                    str(self._random.random() * 20),
                )
            )
        return self._blank() + text + self._blank()

    def _blank(self) -> str:
        return self._random.choice(("", "", "", "", " ", "  ", "\t", "\r"))

    def _damaged(self, text: str) -> str:
        at, gone = self._random.randrange(len(text) + 1), self._random.choice((0, 1, 1, 2))
        new: str = self._random.choice(("", *'{}[],:"\\ 1ex\x01'))
        return text[:at] + new + text[at + gone :]


class WrongTextError(ValueError):
    """A text is not an event."""


class _Pairs(list[tuple[str, Any]]):
    """The names and values of one object."""


def meaning(data: bytes, asked: Collection[str]) -> dict[str, Any]:
    """The event that a text stands for, if no asked name, and no object around one, is given twice in one object.

    Raises
    ------
    WrongTextError
    """
    try:
        read = json.loads(data.decode(), object_pairs_hook=_Pairs, parse_int=_integer)
    except ValueError:
        raise WrongTextError from None
    if not isinstance(read, _Pairs):
        raise WrongTextError
    event: dict[str, Any] = _plain(read, "", asked)
    return event


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < 4000 else 10**100


def _plain(value: Any, prefix: str | None, asked: Collection[str]) -> Any:
    """A value with objects as dictionaries. `prefix` is None if nobody asks about anything below."""
    if isinstance(value, _Pairs):
        names = [name for name, _ in value]
        if prefix is not None:
            for name in names:
                own = prefix + name
                if name and names.count(name) > 1 and any(each == own or each.startswith(f"{own}.") for each in asked):
                    raise WrongTextError
        return {
            name: _plain(inner, f"{prefix}{name}." if name and prefix is not None else None, asked)
            for name, inner in value
        }
    if isinstance(value, list):
        return [_plain(each, prefix, asked) for each in value]
    return value
