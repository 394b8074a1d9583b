"""The part of the demo in which the shop keeps everything: a broker tells readers, also those who come back another day."""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tamis.cli import demo_page as page
from tamis.cli.diagnostics import counted

if TYPE_CHECKING:
    from tamis.broker import Broker
    from tamis.cli.bookshop import Bookshop

_WISHES = 2_000


def shop_that_remembers(shop: Bookshop, reader: str, wish: str, book: dict[str, Any], books: int) -> None:
    """Tell readers about books, close the shop, and open it again. `wish` has a place for the highest price."""
    import tamis

    page.heading("The shop remembers")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "shop")
        page.line("A broker keeps wishes, books and notes in a folder:")
        page.code(f'broker = tamis.open("{folder.name}")')
        with tamis.open(folder) as broker:
            _open_shop(broker, shop, reader, wish)
            _meet_a_stored_book(broker, reader, wish, book)
            _busy_morning(broker, shop, books)
        page.line("The shop closes, and opens again. Nothing is lost:")
        with tamis.open(folder) as broker:
            _come_back(broker, reader)


def _open_shop(broker: Broker, shop: Bookshop, reader: str, wish: str) -> None:
    ids, texts = shop.written_wishes(_WISHES)
    rows = [
        {"subscriber": name.partition("-")[0], "name": name, "expression": text}
        for name, text in zip(ids, texts, strict=True)
    ]
    broker.subscribe_many([*rows, {"subscriber": reader, "name": "woolf", "expression": wish.format(25)}])
    figures = broker.stats()
    page.line(f"{figures['subscriptions']:,} wishes of {figures['subscribers']:,} readers are in it.")


def _meet_a_stored_book(broker: Broker, reader: str, wish: str, book: dict[str, Any]) -> None:
    click.echo()
    page.line("This book stays on the shelf until tomorrow:")
    page.book(book)
    broker.publish(book, valid_until=datetime.now(UTC) + timedelta(days=1))
    page.line(f"It is too dear for {page.name(reader)}, who now raises the limit to {page.price(40)}. The new wish")
    page.line("meets the books on the shelf:")
    broker.subscribe(reader, "woolf", wish.format(40))
    for note in broker.notifications(reader):
        page.line(f"  note {note.sequence} for {page.name(reader)}: {page.title(note.event)}")


def _busy_morning(broker: Broker, shop: Bookshop, books: int) -> None:
    click.echo()
    coming = list(shop.books(books))
    started = time.perf_counter()
    receipts = broker.publish_many(coming)
    seconds = time.perf_counter() - started
    told = sum(len(receipt.matches) for receipt in receipts)
    page.line(
        f"{counted(len(receipts), 'book')} come in. {counted(told, 'wish is', 'wishes are')} met, and all of it is on disk."
    )
    page.figure(f"{seconds:.1f} s: {len(receipts) / seconds:,.0f} books a second.")


def _come_back(broker: Broker, reader: str) -> None:
    notes = list(broker.notifications(reader))
    broker.acknowledge(reader, notes[-1].sequence)
    left = len(list(broker.notifications(reader)))
    page.line(f"  {page.name(reader)} reads {counted(len(notes), 'note')}, and acknowledges the last one.")
    page.line(f"  {counted(left, 'note')} {'is' if left == 1 else 'are'} left to read.")
