"""The steps of publishing."""

from __future__ import annotations

from typing import Any

from tamis.broker import Receipt
from tamis.broker.arguments import plain_key
from tamis.broker.event_text import event_text
from tamis.client.answers import receipt_of
from tamis.client.event_lines import Block, blocks_of
from tamis.client.exchange import Steps
from tamis.client.subscription_steps import StepMaker
from tamis.client.writing import JSON, NDJSON, chunks, moment_text, path_of, query_of
from tamis.errors import ServiceError
from tamis.matcher.options import plain_limit

_EVENTS = path_of("events")


class PublishSteps(StepMaker):
    """Publishing events."""

    def publish(self, event: Any, valid_until: Any, key: Any, k: Any, with_matches: bool) -> Steps[Receipt]:
        text = event_text(event)
        end, name = moment_text(valid_until, "valid_until"), plain_key(key)
        if name is not None and not (name.isascii() and name.isprintable() and name == name.strip()):
            # A header cannot have this key, but a line can.
            receipts = yield from self.publish_many([event], valid_until, [name], k, with_matches)
            return receipts[0]
        found = yield from self._json(
            "POST",
            _EVENTS,
            content=text.encode(),
            headers=JSON if name is None else (*JSON, ("idempotency-key", name)),
            query=query_of(tagged=True, valid_until=end, k=_limit(k), with_matches=with_matches),
            repeatable=name is not None,
        )
        return receipt_of(found)

    def publish_many(
        self, events: Any, valid_until: Any, keys: Any, k: Any, with_matches: bool
    ) -> Steps[list[Receipt]]:
        found: list[Receipt] = []
        limit = _limit(k)
        for block in blocks_of(events, valid_until, keys):
            try:
                found += yield from self._publish_block(block, limit, with_matches)
            except ServiceError as error:
                if block.first and error.status is None:  # Nothing is known of this block, but all of those before.
                    error.add_note(f"published before: {block.first} at least")
                raise
        return found

    def _publish_block(self, block: Block, k: int | None, with_matches: bool) -> Steps[list[Receipt]]:
        query = query_of(tagged=True, receipts=True, with_matches=with_matches, k=k, wrapped=block.wrapped or None)
        found = yield from self._json(
            "POST",
            _EVENTS,
            content=lambda: chunks(block.lines),
            headers=NDJSON,
            query=query,
            repeatable=block.repeatable,
            subject={
                "row_of": lambda line: None if block.is_single else block.first + line - 1,
                "before": block.first,
            },
            patience=0,
        )
        return list(map(receipt_of, found["receipts"]))

    def would_match(self, event: Any) -> Steps[bool]:
        content = event_text(event).encode()
        found = yield from self._json(
            "POST", path_of("would-match"), content=content, headers=JSON, query=query_of(tagged=True)
        )
        return bool(found["would_match"])

    def attributes(self) -> Steps[set[str]]:
        found = yield from self._json("GET", path_of("attributes"))
        return set(found["attributes"])


def _limit(k: Any) -> int | None:
    return None if k is None else plain_limit(k)
