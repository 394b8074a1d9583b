"""JSON is read strictly, and errors are one short sentence."""

from __future__ import annotations

import pytest

from tamis.cli.json_text import JsonError, read_json, read_object


def test_right_json() -> None:
    assert read_json('[1, 2.5, "é", null, true, {"a": {"b": []}}]') == [1, 2.5, "é", None, True, {"a": {"b": []}}]
    assert read_object(' {"a": 1} ', "an event") == {"a": 1}


def test_an_integer_that_is_too_long_for_python_is_large() -> None:
    large, small, one = read_json(f"[{'1' * 5_000}, -{'1' * 5_000}, 1]")
    assert large == -small
    assert 16_600 < large.bit_length() < 16_620
    assert one == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: expecting value (column 1)"),
        ('{"a": 1', "not JSON: expecting ',' delimiter (column 8)"),
        ('{"a": 1}\n}', "not JSON: extra data (line 2, column 1)"),
        ('{"a": 1, "a": 1}', "the key 'a' is given twice in one object"),
        ('{"x": {"a": 1, "b": 2, "b": 3}}', "the key 'b' is given twice in one object"),
        ("[" * 100_000, "the JSON is nested too deep"),
    ],
)
def test_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(JsonError) as caught:
        read_json(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "found"),
    [("1", "a number"), ('"a"', "a string"), ("null", "null"), ("false", "false"), ("[{}]", "a list")],
)
def test_something_else_than_an_object(text: str, found: str) -> None:
    with pytest.raises(JsonError, match=f"an event must be a JSON object, not {found}"):
        read_object(text, "an event")


def test_a_list_where_an_object_per_line_is_wanted() -> None:
    with pytest.raises(JsonError, match=r"not a list\. Hint: one object per line"):
        read_object("[{}]", "an event", per_line=True)
    with pytest.raises(JsonError, match=r"not a list$"):
        read_object("[{}]", "a schema")
