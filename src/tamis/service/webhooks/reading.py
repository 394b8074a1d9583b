"""What a webhook sends next. These functions run in threads."""

from __future__ import annotations

from tamis.broker import Broker
from tamis.errors import RetentionError
from tamis.service.note_pages import NoteText, read_page, within
from tamis.service.webhooks.record import Batch, Webhook
from tamis.service.webhooks.store import Store


def next_batch(broker: Broker, store: Store, webhook: Webhook, after: int) -> Batch | None:
    """What a webhook sends next: the batch that is under way, dead letters that are replayed, or new notes.

    `after` is the last note that was delivered. The cursor of the subscriber may be before it, or beyond it if others
    acknowledge.

    Raises
    ------
    UnknownIdError
        There is no such subscriber any more.
    """
    cursor = broker.subscriber(webhook.subscriber).cursor
    if webhook.retrying != "notes":
        last = webhook.batch_last if webhook.retrying == "replay" else 0
        letters = store.replays(webhook.subscriber, last, webhook.batch)
        if letters:
            return Batch("replay", within((NoteText(each.sequence, each.note) for each in letters), webhook.batch))
    notes = _notes(broker, webhook, max(after, cursor))
    if webhook.retrying == "notes":
        notes = [each for each in notes if each.sequence <= webhook.batch_last]
    return Batch("notes", notes) if notes else None


def _notes(broker: Broker, webhook: Webhook, after: int) -> list[NoteText]:
    try:
        return read_page(broker, webhook.subscriber, after, webhook.batch)
    except RetentionError as error:
        webhook.missed += error.first - 1 - error.after
        return _notes(broker, webhook, error.first - 1)
