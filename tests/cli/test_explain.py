"""`tamis explain`: the tree, where expression and event come from, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.cli.explain import coloured
from tests.cli.running import run, write

EXPRESSION = "price < 20 AND genre = 'crime'"
TREE = """\
The event does not match.
FALSE    AND
├─ FALSE    price < 20   (price is 25)
└─ UNKNOWN  genre = 'crime'   (genre is missing)
"""


def test_expression_and_event() -> None:
    result = run("explain", EXPRESSION, '{"price": 25}')
    assert result.exit_code == 0
    assert result.stdout == TREE


def test_json_form_of_the_expression() -> None:
    assert run("explain", '[["price", "<", 20], ["genre", "=", "crime"]]', '{"price": 25}').stdout == TREE


def test_event_of_a_file_and_of_stdin(tmp_path: Path) -> None:
    path = write(tmp_path / "e.json", "{", '  "price": 25', "}")
    assert run("explain", EXPRESSION, f"@{path}").stdout == TREE
    assert run("explain", EXPRESSION, "-", stdin='{"price": 25}').stdout == TREE


@pytest.mark.parametrize(
    ("name", "lines", "identifier"),
    [
        ("s.jsonl", ["bad line", f'{{"id": 7, "expression": "{EXPRESSION}"}}'], "7"),
        ("s.csv", ["id,expression", f"ann,{EXPRESSION}"], "ann"),
        ("s.txt", ["price <", EXPRESSION], "2"),
    ],
)
def test_expression_of_a_file(tmp_path: Path, name: str, lines: list[str], identifier: str) -> None:
    path = write(tmp_path / name, *lines)
    assert run("explain", "--subscriptions", path, "--id", identifier, '{"price": 25}').stdout == TREE


def test_subscriptions_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", "bad line", '{"id": "a", "expression": "price <"}')
    result = run("explain", "--subscriptions", path, "--id", "x", "{}")
    assert result.exit_code == 1
    assert result.stderr == f"{path}: there is no subscription 'x'; 1 of its lines cannot be read, see `tamis check`\n"
    broken = run("explain", "--subscriptions", path, "--id", "a", "{}")
    assert broken.stderr.startswith(f"{path}:2: an attribute or a literal is missing")


def test_json() -> None:
    answer = json.loads(run("explain", EXPRESSION, '{"price": 5, "genre": "crime"}', "--json").stdout)
    assert answer["matched"] is True
    assert answer["expression"] == EXPRESSION
    assert answer["explanation"]["operator"] == "AND"
    assert answer["explanation"]["operands"][0] == {"truth": True, "expression": "price < 20", "values": {"price": [5]}}


@pytest.mark.parametrize(("price", "status"), [(5, 0), (25, 4)])
def test_exit_code(price: int, status: int) -> None:
    event = json.dumps({"price": price, "genre": "crime"})
    assert run("explain", EXPRESSION, event).exit_code == 0
    assert run("explain", EXPRESSION, event, "--exit-code").exit_code == status


def test_history(tmp_path: Path) -> None:
    path = write(tmp_path / "h.jsonl", '{"price": 30}', '{"price": 20}')
    expression = "price < ALL (SELECT price FROM history)"
    assert "The event matches." in run("explain", expression, '{"price": 10}', "--history", path).stdout
    cheaper = run("explain", expression, '{"price": 25}', "--history", path)
    assert "decided by earlier event 1" in cheaper.stdout
    assert "there are no earlier events" in run("explain", expression, '{"price": 25}').stdout
    bad = run("explain", expression, "{}", "--history", write(path, "{}", "x"))
    assert bad.exit_code == 1
    assert bad.stderr == f"{path}:2: not JSON: expecting value (column 1)\n"


def test_schema(tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"at": "timestamp", "price": "number"}')
    expression = "at > DATE '2026-11-14'"
    assert "UNKNOWN" in run("explain", expression, '{"at": "2026-11-15"}').stdout
    assert "The event matches." in run("explain", expression, '{"at": "2026-11-15"}', "--schema", schema).stdout
    unknown = run("explain", "prize < 5", "{}", "--schema", schema)
    assert unknown.stderr == (
        "Error: unknown attribute 'prize'; did you mean 'price'? (line 1, column 1)\n  prize < 5\n  ^\n"
    )
    wrong = run("explain", "price < 5", '{"price": "x"}', "--schema", schema)
    assert wrong.stderr == "Error: attribute 'price': 'x' is a string, but the schema declares a number\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["price <", "{}"], "Error: an attribute or a literal is missing at the end (line 1, column 8)"),
        (['[["price", "<"]]', "{}"], "Error: "),
        (["[nonsense]", "{}"], "Error: not JSON: expecting value (column 2)"),
        (["a = 1", "{"], "the event: not JSON"),
        (["a = 1", "[]"], "the event: an event must be a JSON object, not a list"),
        (["a = 1", '{"a": ["\\ud800"]}'], "Error: attribute 'a': '\\ud800' holds a lone surrogate"),
        (["a = 1", '{"a": 1, "a": 2}'], "the event: the key 'a' is given twice"),
        (["a = 1", "@missing"], "missing: there is no such file"),
        (["--subscriptions", "missing", "--id", "a", "{}"], "missing: there is no such file"),
    ],
)
def test_what_is_wrong(words: list[str], message: str) -> None:
    result = run("explain", *words)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert result.stdout == ""


@pytest.mark.parametrize("words", [[], ["a = 1"], ["a", "b", "c"], ["--id", "a", "{}"], ["--subscriptions", "f", "{}"]])
def test_usage(words: list[str]) -> None:
    result = run("explain", *words)
    assert result.exit_code == 2
    assert "Give EXPRESSION and EVENT" in result.stderr


def test_hints_about_files(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", "{}", "{}")
    assert run("explain", "a = 1", path).stderr.endswith(f"Hint: @{path} reads the file\n")
    assert run("explain", "a = 1", f"@{path}").stderr.endswith(
        "Hint: EVENT is one object; `sed -n 17p` picks one line of a file\n"
    )


def test_only_truths_are_coloured() -> None:
    tree = "TRUE     AND\n├─ FALSE    a = TRUE   (a is False)"
    assert coloured(tree) == "\x1b[32mTRUE\x1b[0m     AND\n├─ \x1b[31mFALSE\x1b[0m    a = TRUE   (a is False)"
