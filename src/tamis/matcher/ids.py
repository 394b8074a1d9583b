"""The users' ids of subscriptions: all str or all int, each with the number of its slot."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import DuplicateIdError, IdTypeError, TamisError, UnknownIdError, shortened
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I32s, I64s
from tamis.language.values import INT64_MAX, INT64_MIN, in_words, is_iterable, is_well_formed
from tamis.matcher.limits import USUAL_STORE_LIMITS

Id = str | int
if TYPE_CHECKING:
    # Type checkers know this module whether it is installed or not. Python's own TypeVar takes a default from 3.13 on.
    from typing_extensions import TypeVar

    IdT = TypeVar("IdT", bound=Id, default=Id)
else:
    from typing import TypeVar

    IdT = TypeVar("IdT", bound=Id)


class StoredIds:
    """Ids of a snapshot by slot: an array of int64, or an Arrow array of strings.

    Making lists and dictionaries of Python takes long. So they are made once, when somebody first needs them.
    """

    def __init__(self, column: Any, living: I64s) -> None:
        self.column = column
        self.living = living
        """The living slots, in order of addition."""
        self._lock = threading.RLock()

    def slots(self) -> dict[Id, int]:
        with self._lock:
            return self._slots

    def texts(self) -> list[str]:
        with self._lock:
            return self._texts

    @cached_property
    def _slots(self) -> dict[Id, int]:
        if isinstance(self.column, np.ndarray):
            names = self.column[self.living].tolist()
        else:
            names = self.column.take(pa.array(self.living)).to_pylist()
        return dict(zip(names, self.living.tolist(), strict=True))

    @cached_property
    def _texts(self) -> list[str]:
        texts: list[str] = self.column.to_pylist()
        return texts


class IdDictionary:
    """The ids of all slots, each once: a free slot may still have an id that another slot has now.

    Any thread may make it while another thread adds ids. It is valid while `changes` is the number from before.
    """

    def __init__(self, changes: int, encoded: pa.DictionaryArray) -> None:
        self.changes = changes
        self.names = encoded.dictionary
        self.places = (
            encoded.indices.to_numpy().copy()
        )  # A copy may be written to. Kernels are compiled for such arrays.


class Names(NamedTuple):
    """The ids of slots."""

    place: npt.NDArray[Any]
    """By slot: its id, or the place of its id in the dictionary."""
    dictionary: pa.Array | None

    def column(self, places: npt.NDArray[Any]) -> pa.Array:
        """The ids of slots whose `place` was looked up."""
        if self.dictionary is None:
            return pa.array(places)
        return pa.DictionaryArray.from_arrays(pa.array(places), self.dictionary, safe=False)


class Ids:
    """Ids by slot and slots by id. A slot keeps its id until it is given again, so results can be named later.

    The dictionary of slots keeps ids in order of addition. An id that gets another slot keeps its place there. `few` ids can be
    laid out in the time that finding one takes.
    """

    def __init__(self, stored: StoredIds | None = None, *, few: int = USUAL_STORE_LIMITS.ids_per_lookup) -> None:
        self._few = few
        self.type: type[str] | type[int] | None = None
        """The type of the ids; None while there are none."""
        self._stored = stored
        self._numbers = GrowingArray(np.int64)
        self._dictionary: IdDictionary | None = None
        self._changes = 0
        """Counts changes of texts, each after it is done."""
        if stored is None:
            self._slots, self._texts = {}, []
        elif len(stored.living):
            self.type = int if isinstance(stored.column, np.ndarray) else str
            if self.type is int:
                self._numbers.extend(stored.column)

    @cached_property
    def _slots(self) -> dict[Id, int]:
        assert self._stored is not None
        return self._stored.slots()

    @cached_property
    def _texts(self) -> list[str]:
        assert self._stored is not None
        return self._stored.texts()

    def are_unread(self) -> bool:
        """Whether all ids are those of a snapshot, and no list or dictionary of them was made yet."""
        return self._stored is not None and not {"_slots", "_texts"} & vars(self).keys()

    def __len__(self) -> int:
        if self._stored is not None and "_slots" not in vars(self):
            return len(self._stored.living)
        return len(self._slots)

    def listed(self) -> list[Id]:
        """All ids, in order of addition."""
        if self._stored is not None and "_slots" not in vars(self):
            return self.name(self._stored.living)
        return list(self._slots)

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
        slot = self.find(identifier)
        if slot is None:
            raise UnknownIdError(identifier)
        return slot

    def find(self, identifier: object) -> int | None:
        """The slot of an id, if there is one.

        Raises
        ------
        IdTypeError
        """
        slot = self._slots.get(identifier) if type(identifier) is self.type else None
        return self._slots.get(self._checked(plain_id(identifier), self.type)) if slot is None else slot

    def slots(self) -> I64s:
        """The slots of all ids, in order of addition."""
        if self._stored is not None and "_slots" not in vars(self):
            return self._stored.living
        return np.fromiter(self._slots.values(), np.int64, len(self._slots))

    def check_new(self, identifiers: Iterable[object]) -> list[Id]:
        """The ids as plain str or int, if all of them can be added.

        Raises
        ------
        DuplicateIdError, IdTypeError
        """
        plain = self._plain(identifiers)
        if len(set(plain)) < len(plain) or not self._slots.keys().isdisjoint(plain):
            raise self._first_duplicate(plain)
        return plain

    def check_known(self, identifiers: Iterable[object]) -> list[Id]:
        """The ids as plain str or int, if all of them are there.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        plain = self._plain(identifiers)
        for identifier in plain:
            if identifier not in self._slots:
                raise UnknownIdError(identifier)
        return plain

    def _plain(self, identifiers: Iterable[object]) -> list[Any]:
        """Ids as plain str or int, if all have the type of the ids that are there, or else one type."""
        given = list_of_ids(identifiers)
        plain = given
        if set(map(type, given)) - {int} or not _in_range(given):
            plain = [plain_id(each) for each in given]
        wanted = self.type or (type(plain[0]) if plain else None)
        if set(map(type, plain)) - {wanted}:
            for each in plain:
                self._checked(each, wanted)
        return plain

    def check_each(self, identifiers: Iterable[object]) -> tuple[dict[int, Id], dict[int, TamisError]]:
        """By row: the ids that can be added, as plain str or int, and the errors of the others.

        The first of two equal ids counts. All must have the type of the ids that are there, or else of the first id.
        """
        right: dict[int, Id] = {}
        errors: dict[int, TamisError] = {}
        seen: set[Id] = set()
        wanted = self.type
        for row, identifier in enumerate(list_of_ids(identifiers)):
            try:
                plain = self._checked(plain_id(identifier), wanted)
                if plain in seen or plain in self._slots:
                    raise DuplicateIdError(plain, twice=plain in seen)
            except (DuplicateIdError, IdTypeError) as error:
                errors[row] = error
                continue
            right[row] = plain
            seen.add(plain)
            wanted = wanted or type(plain)
        return right, errors

    def check_one(self, identifier: object) -> Id:
        """`check_new` of one id."""
        plain = plain_id(identifier)
        if type(plain) is not self.type:
            self._checked(plain, self.type)
        if plain in self._slots:
            raise DuplicateIdError(plain)
        return plain

    def _first_duplicate(self, identifiers: list[Id]) -> TamisError:
        return next(iter(self.check_each(identifiers)[1].values()))

    def add(self, identifiers: list[Id], slots: npt.NDArray[Any]) -> None:
        """Give slots to new ids, which `check_new` returned, or other slots to ids that are there."""
        if not identifiers:
            return
        self.type = str if isinstance(identifiers[0], str) else int
        numbers = slots.tolist()
        # Ids that are the numbers of their slots, as 0, 1, 2 are at first, share the objects of Python: 32 bytes each.
        self._slots.update(zip(identifiers, identifiers if identifiers == numbers else numbers, strict=True))  # type: ignore[arg-type]
        missing = max(numbers) + 1 - self._room()
        if self.type is int:
            self._numbers.grow(max(missing, 0))
            self._numbers.view()[slots] = identifiers
            return
        if missing == len(numbers) and numbers[0] == len(self._texts) and numbers[-1] == numbers[0] + missing - 1:
            self._texts.extend(identifiers)  # type: ignore[arg-type]
        else:
            self._texts.extend([""] * missing)
            for number, identifier in zip(numbers, identifiers, strict=True):
                self._texts[number] = str(identifier)
        self._changes += 1

    def add_one(self, identifier: Id, slot: int) -> None:
        """The same for one id."""
        self._slots[identifier] = slot
        if isinstance(identifier, str):
            self.type = str
            self._texts.extend([""] * (slot + 1 - len(self._texts)))
            self._texts[slot] = identifier
            self._changes += 1
        else:
            self.type = int
            if slot >= len(self._numbers):
                self._numbers.grow(slot + 1 - len(self._numbers))
            self._numbers.data[slot] = identifier

    def _room(self) -> int:
        if self.type is int:
            return len(self._numbers)
        return len(self._texts) if self._stored is None or self._listed() else len(self._stored.column)

    def discard(self, *identifiers: Id) -> bool:
        """Remove the ids that are there; returns whether any id is left."""
        for identifier in identifiers:
            self._slots.pop(identifier, None)
        return bool(self._slots)

    @property
    def numbers(self) -> I64s | None:
        """The ids by slot with the room behind them, if they are int; None if they are str, or if there are none."""
        return self._numbers.data if self.type is int else None

    def name(self, slots: npt.NDArray[Any]) -> list[Id]:
        """The ids of slots, as a list."""
        if self.type is int:
            numbers: list[Id] = self._numbers.view()[slots].tolist()
            return numbers
        if self._stored is not None and not self._listed():
            texts: list[Id] = self._stored.column.take(pa.array(slots)).to_pylist()
            return texts
        return list(map(self._texts.__getitem__, slots.tolist()))

    def few_names(self, slots: I32s) -> pa.DictionaryArray:
        """The ids of slots as an Arrow array, if they are str and `names` gave None."""
        used, places = np.unique(slots, return_inverse=True)
        texts = pa.array(self.name(used), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), texts)

    def names_at_hand(self) -> Names | None:
        """The ids of all slots, if they are already laid out."""
        if self.type is int:
            return Names(self._numbers.data, None)
        dictionary, changes = self._dictionary, self._changes
        if dictionary is None or dictionary.changes != changes:
            return None
        return Names(dictionary.places, dictionary.names)

    def names(self, count: int) -> Names | None:
        """The ids of all slots, for a column of `count` ids; None if finding only those ids takes less time."""
        at_hand, changes = self.names_at_hand(), self._changes
        if at_hand is not None or self._few * count < self._room():
            return at_hand
        dictionary = self._dictionary = IdDictionary(changes, self.texts_by_slot().dictionary_encode())
        return Names(dictionary.places, dictionary.names)

    def texts_by_slot(self) -> pa.Array:
        """The ids of all slots."""
        return pa.array(self._texts, pa.string()) if self._stored is None or self._listed() else self._stored.column

    def _listed(self) -> bool:
        """Whether the ids of a snapshot are a list by now, which they are before any id is added."""
        return "_texts" in vars(self)

    def by_slot(self) -> I64s | pa.Array | None:
        """A copy of the ids of all slots, as snapshots have them; None if there are none."""
        if self.type is None:
            return None
        return self._numbers.view().copy() if self.type is int else self.texts_by_slot()

    def compacted(self, live: npt.NDArray[Any]) -> Ids:
        """The ids of the live slots alone, in new slots of the same order."""
        ids = Ids(few=self._few)
        ids.add(self.name(live), np.arange(len(live)))
        ids._slots = {identifier: ids._slots[identifier] for identifier in self._slots}  # in order of addition
        return ids

    @staticmethod
    def _checked(plain: Id, wanted: object) -> Id:
        if wanted is not None and type(plain) is not wanted:
            names = ("str", "int") if wanted is str else ("int", "str")
            raise IdTypeError(f"the ids of this matcher are {names[0]}, but {plain!r} is {names[1]}")
        return plain


def list_of_ids(identifiers: object) -> list[Any]:
    """Ids as a list. The ids themselves are not checked.

    Raises
    ------
    IdTypeError
        If `identifiers` is not a list.
    """
    if not is_iterable(identifiers):
        raise IdTypeError(f"ids must be a list of str or int, not {type(identifiers).__name__}")
    assert isinstance(identifiers, Iterable)
    return list(identifiers)


def _in_range(numbers: list[Any]) -> bool:
    return not numbers or (min(numbers) >= INT64_MIN and max(numbers) <= INT64_MAX)


def plain_id(identifier: object) -> Id:
    """The id as a plain str or int."""
    if type(identifier) is int and INT64_MIN <= identifier <= INT64_MAX:
        return identifier
    if isinstance(identifier, str):
        if not is_well_formed(identifier):
            raise IdTypeError(f"the id {identifier!r} holds a lone surrogate and is not a Unicode string")
        return str(identifier)
    if isinstance(identifier, int | np.integer) and not isinstance(identifier, bool):
        number = int(identifier)
        if not INT64_MIN <= number <= INT64_MAX:
            raise IdTypeError(f"{in_words(number)} is beyond 64 bits and cannot be an id")
        return number
    raise IdTypeError(f"an id must be a str or an int, not {type(identifier).__name__}: {shortened(identifier)}")
