"""The calls of a broker for streams that match events elsewhere, such as on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tamis.broker.arguments import plain_number
from tamis.broker.delivering import read_deliveries
from tamis.broker.session import Session
from tamis.broker.subscribing import checked_name
from tamis.kernels.numbers import I64s


class DeliveryCalls(Session):
    """Taking in what a stream found."""

    def deliver(self, matched: Iterable[tuple[Any, Sequence[int] | I64s]], *, source: str, batch: int) -> bool:
        """Store events that were matched elsewhere, and tell their subscribers: all of a batch, and once.

        `tamis.spark.to_broker` calls this for every micro-batch. The events are not matched again. A subscription that was
        removed or paused meanwhile is not told.

        Parameters
        ----------
        matched : list of pairs
            Each an event and the numbers of the subscriptions that it satisfies. `Change.id` is the number of a subscription.
        source : str
            The name of the stream of batches.
        batch : int
            The number of the batch. Batches of a stream count up.

        Returns
        -------
        bool
            False if this batch, or a later one of this stream, was delivered before. Nothing happens then.

        Raises
        ------
        EventError, OptionError, UnknownIdError, QueueFullError
            Nothing changes.
        """
        name, number, deliveries = (
            checked_name(source, "stream"),
            plain_number(batch, "batch"),
            read_deliveries(matched),
        )
        with self._publishing():
            return self._delivering.put(deliveries, name, number)

    def last_batch(self, source: str) -> int | None:
        """The number of the last batch of a stream that was delivered; None if there is none."""
        with self._looking():
            return self._delivering.last_batch(checked_name(source, "stream"))
