"""``tamis demo``: a bookshop, some hundred thousand readers with standing wishes, and a day of books coming in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from tamis.cli import demo_page as page
from tamis.cli.demo_broker import shop_that_remembers
from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.explain import coloured

if TYPE_CHECKING:
    from tamis.cli.bookshop import Bookshop
    from tamis.matcher.matcher import Matcher

_SHOWN = 3

_READER = "camille"
_WISH = "author = 'Virginia Woolf' AND price <= {} AND (format = 'hardback' OR inscribed) AND NOT condition = 'worn'"
_WANTED = {
    "title": "To the Lighthouse", "author": "Virginia Woolf", "genre": "modern", "format": "hardback", "condition": "fine",
    "language": "English", "year": 1938, "price": 22.0, "country": "GB", "tags": ["dust jacket"], "inscribed": False,
    "seller": {"rating": 4.8},
}  # fmt: skip
_TOO_DEAR = {
    "title": "Orlando", "author": "Virginia Woolf", "genre": "modern", "format": "paperback", "condition": "good",
    "language": "English", "year": 1928, "price": 34.0, "country": "IE", "tags": [], "inscribed": True,
    "seller": {"rating": 4.6},
}  # fmt: skip


@click.command()
@click.option(
    "--wishes", type=click.IntRange(100), default=200_000, show_default=True, help="Number of readers who wait."
)
@click.option(
    "--books", type=click.IntRange(10), default=2_000, show_default=True, help="Number of books that come in."
)
@click.option(
    "--seed", type=click.IntRange(0), default=7, show_default=True, help="Seed of the random books and wishes."
)
def demo(wishes: int, books: int, seed: int) -> None:
    """Show Tamis at work: books against the standing wishes of many readers.

    \b
    Example:
      tamis demo --wishes 50000 --seed 11
    """
    from tamis.cli.bookshop import Bookshop

    shop = Bookshop(seed)
    click.echo()
    click.echo(click.style("  A second-hand bookshop with very patient readers", bold=True))
    page.line("Each left a wish: a condition on the books that may come in one day.")
    page.line("Every book that comes in is compared with all wishes.")
    _prepare()
    matcher = _add_wishes(shop, wishes)
    _first_books(matcher, shop)
    _explanations(matcher)
    _change_of_mind(matcher)
    whole_day(matcher, shop, books)
    shop_that_remembers(shop, _READER, _WISH, _TOO_DEAR, books)
    _what_next()


def _prepare() -> None:
    """Use every kernel once, so that timings do not include compiling."""
    from tamis.cli.bookshop import Bookshop
    from tamis.matcher.matcher import Matcher

    click.echo()
    click.echo(page.faint("  Compiling kernels; later runs only load them ... "), nl=False)
    started = time.perf_counter()
    shop, matcher = Bookshop(0), Matcher()
    matcher.add_table(shop.wishes(4_200))  # enough to make a segment
    matcher.add_many(*shop.written_wishes(5))
    matcher.add(_READER, _WISH.format(25))
    matcher.match_batch([_WANTED, *shop.books(20)])
    matcher.match(_WANTED)
    matcher.replace(_READER, _WISH.format(40))
    matcher.remove(_READER)
    click.echo(page.faint(f"{time.perf_counter() - started:.1f} s"))


def _add_wishes(shop: Bookshop, wishes: int) -> Matcher:
    from tamis.matcher.matcher import Matcher

    page.heading("Readers leave their wishes")
    matcher = Matcher()
    table, (ids, texts) = shop.wishes(wishes), shop.written_wishes(wishes // 50)
    started = time.perf_counter()
    matcher.add_table(table)
    matcher.add_many(ids, texts)
    matcher.add(_READER, _WISH.format(25))
    seconds = time.perf_counter() - started
    some = table["id"].to_pylist()[:: wishes // _SHOWN][:_SHOWN] + ids[:2]
    for reader in some:
        page.wish(reader, str(matcher.explain(reader, {}).expression))
    page.wish(_READER, _WISH.format(25))
    page.line(f"... and {len(matcher) - len(some) - 1:,} more.")
    page.figure(f"{len(matcher):,} wishes taken in {seconds:.1f} s, {len(matcher) / seconds:,.0f} a second.")
    return matcher


def _first_books(matcher: Matcher, shop: Bookshop) -> None:
    page.heading("Books come in")
    for place, book in enumerate([*shop.books(_SHOWN), _WANTED]):
        if place:
            click.echo()
        started = time.perf_counter()
        readers = matcher.match(book)
        seconds = time.perf_counter() - started
        page.book(book)
        page.line(page.wanted_by(readers, _READER), page.faint(f"({1000 * seconds:.1f} ms)"))


def _explanations(matcher: Matcher) -> None:
    page.heading("Why?")
    page.line(f"{page.name(_READER)} is told of {page.title(_WANTED)}, because")
    _tree(matcher, _WANTED)
    click.echo()
    page.line("Then this one comes in:")
    page.book(_TOO_DEAR)
    page.line(f"{page.name(_READER)} hears nothing of it, because")
    _tree(matcher, _TOO_DEAR)


def _tree(matcher: Matcher, book: dict[str, Any]) -> None:
    for line in coloured(str(matcher.explain(_READER, book))).splitlines():
        page.line(f"  {line}")


def _change_of_mind(matcher: Matcher) -> None:
    page.heading("A change of mind")
    page.line(f"An inscribed Woolf! {page.name(_READER)} raises the limit to {page.price(40)}:")
    matcher.replace(_READER, _WISH.format(40))
    page.call(f'matcher.replace({_READER!r}, "... price <= 40 ...")', _READER in matcher.match(_TOO_DEAR))
    page.line("Bought, wish granted. The next copy is for someone else:")
    matcher.remove(_READER)
    page.call(f"matcher.remove({_READER!r})", _READER in matcher.match(_TOO_DEAR))


def whole_day(matcher: Matcher, shop: Bookshop, count: int, *, batch: int = 100, most_seconds: float = 12.0) -> None:
    """Match a day's books. This stops after some seconds, since the demo should end within a minute, even on a slow machine."""
    page.heading("The rest of the day")
    progress = Diagnostics()
    books = list(shop.books(count))
    wanted: list[int] = []
    started = time.perf_counter()
    seconds = 0.0
    while len(wanted) < count and seconds < most_seconds:
        progress.progress(f"{len(wanted):,} books", len(wanted) / count)
        wanted += matcher.count_batch(books[len(wanted) : len(wanted) + batch]).tolist()
        seconds = time.perf_counter() - started
    progress.clear()
    done, wishes = len(wanted), len(matcher)
    page.line(f"{done:,} books against {wishes:,} wishes: {done * wishes / 1e6:,.0f} million pairs decided,")
    page.line(f"{counted(sum(wanted), 'match', 'matches')} found; {wanted.count(0):,} books nobody was waiting for.")
    page.line(f"The most wanted, by {counted(max(wanted), 'reader')}:")
    page.book(books[wanted.index(max(wanted))])
    page.figure(
        f"{seconds:.1f} s: {done / seconds:,.0f} books a second, {1000 * seconds / done:.2f} ms each, on one core."
    )


def _what_next() -> None:
    page.heading("Try it yourself")
    page.line("""tamis explain "price < 20 AND tags = 'maps'" '{"price": 12, "tags": ["maps", "old"]}'""")
    page.line("tamis generate workload --subscriptions 100000")
    page.line("tamis match workload/subscriptions.parquet workload/other_events.parquet --count")
    page.line("tamis --help")
    click.echo()
