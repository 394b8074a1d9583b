"""The demo tells the same story every time, in plain text where nobody sees colour, within the width of a page."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from tamis.cli.bookshop import Bookshop, works
from tamis.cli.demo import whole_day
from tamis.cli.main import main
from tamis.language.evaluate import evaluate
from tamis.language.parser import parse
from tamis.matcher.matcher import Matcher
from tests.cli.running import run

SMALL = ["demo", "--wishes", 500, "--books", 40]


def untimed(text: str) -> str:
    """The story without what the clock says."""
    return re.sub(r"[0-9.,]+(?= (s|ms|a second|books a second)\b)", "_", text)


def test_the_story() -> None:
    result = run(*SMALL)
    assert result.exit_code == 0
    assert result.stderr == ""
    story = result.stdout
    assert "511 wishes taken" in story
    assert "Wanted by camille" in story
    assert "camille is told of To the Lighthouse, because\n    TRUE     AND\n" in story
    assert "├─ FALSE    price <= 25   (price is 34.0)" in story
    assert re.search(r"matcher\.replace\(.*\) +matches\n", story)
    assert re.search(r"matcher\.remove\(.*\) +does not match\n", story)
    assert "40 books against 510 wishes" in story
    assert "note 1 for camille: Orlando" in story
    assert "camille reads 1 note, and acknowledges the last one.\n    0 notes are left to read." in story
    assert "\x1b" not in story
    assert max(map(len, story.splitlines())) <= 100


def test_it_is_the_same_every_time_and_another_with_another_seed() -> None:
    first = untimed(run(*SMALL).stdout)
    assert untimed(run(*SMALL).stdout) == first
    assert untimed(run(*SMALL, "--seed", 8).stdout) != first


def test_colour_on_a_terminal() -> None:
    result = CliRunner().invoke(main, [str(word) for word in SMALL], color=True)
    assert "\x1b[32mTRUE\x1b[0m" in result.stdout


def test_it_stops_when_the_machine_is_slow(capsys: pytest.CaptureFixture[str]) -> None:
    shop, matcher = Bookshop(7), Matcher()
    matcher.add_table(shop.wishes(500))
    whole_day(matcher, shop, 40, batch=10, most_seconds=1e-9)
    assert "  10 books against 500 wishes" in capsys.readouterr().out


def test_wishes_are_what_they_say() -> None:
    """What the matcher finds among the demo's wishes is what the language says."""
    shop = Bookshop(3)
    table, (ids, texts) = shop.wishes(120), shop.written_wishes(60)
    matcher = Matcher()
    matcher.add_table(table)
    matcher.add_many(ids, texts)
    expressions = {name: matcher.explain(name, {}).expression for name in table["id"].to_pylist()}
    expressions |= {name: parse(text) for name, text in zip(ids, texts, strict=True)}
    found = 0
    for book in shop.books(60):
        wanted = {name for name, expression in expressions.items() if evaluate(expression, book) is True}
        assert set(matcher.match(book)) == wanted
        found += len(wanted)
    assert found > 20


def test_books_look_real() -> None:
    first_years = {work.title: work.year for work in works()}
    assert len(first_years) == len(works()) > 50
    for book in Bookshop(1).books(200):
        assert first_years[book["title"]] <= book["year"] <= 2025
        assert book["price"] > 0
        assert ("first edition" not in book["tags"]) or book["year"] == first_years[book["title"]]
