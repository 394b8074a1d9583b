"""The users' ids of subscriptions: all str or all int, each with the number of its slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import DuplicateIdError, IdTypeError, UnknownIdError, shortened
from tamis.language.values import INT64_MAX, INT64_MIN, in_words, is_iterable, is_well_formed

Id = str | int


class Ids:
    """Ids by slot and slots by id. A slot keeps its id until the ids are compacted, so results can be named later."""

    def __init__(self) -> None:
        self.type: type[str] | type[int] | None = None
        """The type of the ids; None while there are none."""
        self._slots: dict[Id, int] = {}
        self._by_slot: list[Id] = []
        self._arrow: pa.Array | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._slots)

    def __contains__(self, identifier: object) -> bool:
        try:
            return plain_id(identifier) in self._slots
        except IdTypeError:
            return False

    def slot(self, identifier: object) -> int:
        """The slot of an id.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        plain = self._checked(plain_id(identifier), self.type)
        slot = self._slots.get(plain)
        if slot is None:
            raise UnknownIdError(identifier)
        return slot

    def slots(self) -> npt.NDArray[np.int64]:
        """The slots of all ids."""
        return np.fromiter(self._slots.values(), np.int64, len(self._slots))

    def check_new(self, identifiers: Iterable[object]) -> list[Id]:
        """The ids in plain form, if all of them can be added.

        Raises
        ------
        DuplicateIdError, IdTypeError
        """
        if not is_iterable(identifiers):
            raise IdTypeError(f"ids are a list of str or int, not {type(identifiers).__name__}")
        given = list(identifiers)
        plain: list[Any] = given
        if set(map(type, given)) - {int} or not _in_range(given):
            plain = [plain_id(each) for each in given]
        wanted = self.type or (type(plain[0]) if plain else None)
        if set(map(type, plain)) - {wanted}:
            for each in plain:
                self._checked(each, wanted)
        if len(set(plain)) < len(plain) or not self._slots.keys().isdisjoint(plain):
            raise DuplicateIdError(self._first_duplicate(plain))
        return plain

    def _first_duplicate(self, identifiers: list[Id]) -> Id:
        seen = set(self._slots)
        for identifier in identifiers:
            if identifier in seen:
                break
            seen.add(identifier)
        return identifier

    def add(self, identifiers: list[Id]) -> None:
        """Give the next slots to ids that `check_new` let through."""
        first = len(self._by_slot)
        if identifiers:
            self.type = str if isinstance(identifiers[0], str) else int
        self._slots.update(zip(identifiers, range(first, first + len(identifiers)), strict=True))
        self._by_slot.extend(identifiers)

    def remove(self, identifier: Id) -> None:
        del self._slots[identifier]
        if not self._slots:
            self.type = None

    def name(self, slots: npt.NDArray[Any]) -> list[Id]:
        """The ids of slots, as a list."""
        by_slot = self._by_slot
        return [by_slot[slot] for slot in slots.tolist()]

    def column(self, slots: npt.NDArray[Any]) -> pa.Array:
        """The ids of slots, as an Arrow array."""
        return self._as_arrow().take(pa.array(slots))

    def compacted(self, live: npt.NDArray[Any]) -> Ids:
        """The ids of the live slots alone, in new slots of the same order."""
        ids = Ids()
        ids.add(self.name(live))
        return ids

    def _as_arrow(self) -> pa.Array:
        """All ids by slot; what was added since the last call is appended."""
        kind = pa.int64() if self.type is int else pa.string()
        if not self._by_slot:
            return pa.array([], kind)
        done = self._arrow if self._arrow is not None else pa.array([], kind)
        if len(done) < len(self._by_slot):
            added = pa.array(self._by_slot[len(done) :], kind)
            done = pa.concat_arrays([done, added])
        self._arrow = done
        return done

    @staticmethod
    def _checked(plain: Id, wanted: object) -> Id:
        if wanted is not None and type(plain) is not wanted:
            names = ("str", "int") if wanted is str else ("int", "str")
            raise IdTypeError(f"the ids are {names[0]}; {plain!r} is {names[1]}")
        return plain


def _in_range(numbers: list[Any]) -> bool:
    return not numbers or (min(numbers) >= INT64_MIN and max(numbers) <= INT64_MAX)


def plain_id(identifier: object) -> Id:
    """The id as a plain str or int."""
    if isinstance(identifier, str):
        if not is_well_formed(identifier):
            raise IdTypeError(f"the id {identifier!r} holds a lone surrogate and is not a Unicode string")
        return str(identifier)
    if isinstance(identifier, int | np.integer) and not isinstance(identifier, bool):
        number = int(identifier)
        if not INT64_MIN <= number <= INT64_MAX:
            raise IdTypeError(f"{in_words(number)} is beyond 64 bits and no id")
        return number
    raise IdTypeError(f"an id is a str or an int, not {type(identifier).__name__}: {shortened(identifier)}")
