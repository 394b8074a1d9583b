"""Arrays of a matcher on a card, for all threads and all parts of a batch: each is uploaded once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tamis.gpu.card import Card


class Uploads:
    """What was uploaded, by the object that it stands for. These objects live as long as the uploads, and must not change."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[object, Any]] = {}

    def find(self, name: str, of: object, make: Callable[[], Any]) -> Any:
        """What `make` gives, on the card. It is made again if it was made of another object the last time."""
        with self._lock:
            kept = self._kept.get(name)
            if kept is None or kept[0] is not of:
                with self._card.here():
                    kept = self._kept[name] = of, self._card.put_fields(make())
            return kept[1]
