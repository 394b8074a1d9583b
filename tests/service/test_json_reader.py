"""Strict JSON, in time that grows with the text."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.errors import shortened
from tamis.service.json_reader import object_of_pairs, read_json
from tamis.service.problems import ProblemError


class Key(str):
    """A key that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Key.compared += 1
        return str.__eq__(self, other)


def test_a_repeated_key_is_found_in_linear_time() -> None:
    pairs: list[tuple[str, Any]] = [(Key(number), 0) for number in [*range(1000), 999]]
    Key.compared = 0
    with pytest.raises(ProblemError, match="the key '999' is given twice"):
        object_of_pairs(pairs)
    assert Key.compared < 5000


def test_the_first_repeated_key_is_named() -> None:
    with pytest.raises(ProblemError, match="the key 'b' is given twice"):
        read_json(b'{"a": 1, "b": 2, "b": 3, "a": 4}', 5)


@pytest.mark.parametrize("value", [list(range(1000)), tuple(range(1000))])
def test_long_values_are_shown_as_before(value: object) -> None:
    whole = repr(value)
    assert shortened(value) == f"{whole[:80]} ... {whole[-15:]}"
