"""JSON texts as Python's own reader reads them: every error is one short sentence, and names given twice can be refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

_Pairs = list[tuple[str, Any]]
_Hook = Callable[[_Pairs], Any]


class NotJsonError(ValueError):
    """A text is not JSON, or not the JSON that is needed."""


class GivenTwiceError(NotJsonError):
    """A name is given twice in one object."""


class Doubled(dict[str, Any]):
    """An object in which names are given twice. The last value of each name counts."""

    names: tuple[str, ...] = ()


def reader(hook: _Hook) -> Callable[[str], Any]:
    """A function that reads texts. `hook` makes an object of its names and values.

    The function raises NotJsonError.
    """
    # Made once: json.loads would make one for every text.
    quick = json.JSONDecoder(object_pairs_hook=hook)
    with_long_integers = json.JSONDecoder(object_pairs_hook=hook, parse_int=_integer)

    def read(text: str) -> Any:
        try:
            try:
                return quick.decode(text)
            except (json.JSONDecodeError, NotJsonError):
                raise
            except ValueError:  # an integer of more digits than Python reads
                return with_long_integers.decode(text)
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
            raise NotJsonError(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} ({place})") from None
        except RecursionError:
            raise NotJsonError("the JSON is nested too deep") from None

    return read


def _integer(digits: str) -> int:
    """An integer. If it has too many digits for Python, a power of two near it, which is beyond 64 bits too."""
    try:
        return int(digits)
    except ValueError:
        size = 1 << int(len(digits.lstrip("-")) * math.log2(10))
        return -size if digits.startswith("-") else size


def noting_doubled(pairs: _Pairs) -> dict[str, Any]:
    """A hook that notes names given twice."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    doubled = Doubled(found)
    doubled.names = tuple(dict.fromkeys(twice_in(pairs)))
    return doubled


def refusing_doubled(pairs: _Pairs) -> dict[str, Any]:
    """A hook that refuses names given twice.

    Raises
    ------
    GivenTwiceError
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise twice_error(twice_in(pairs)[0])
    return found


def twice_in(pairs: _Pairs) -> list[str]:
    """The names that come again after they came once."""
    seen: set[str] = set()
    return [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def twice_error(name: str) -> GivenTwiceError:
    return GivenTwiceError(f"the key {name!r} is given twice in one object")


def name_of(value: Any) -> str:
    """What a value that is not an object is called in messages."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else "a number"
