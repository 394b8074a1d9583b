"""A card: its memory, and segments on it.

segments   uploaded when a batch first meets them, shared by all threads, dropped when they are gone or lack room
buffers    what one call of a kernel reads and writes, made anew for a larger call; one set for each thread
"""

from __future__ import annotations

import functools
import itertools
import threading
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.programs import ACCEPT
from tamis.engine.layout.aspects import ASPECTS
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.segment_build import Body
from tamis.engine.rows import nbytes
from tamis.engine.segment import Segment
from tamis.errors import CapabilityError, OptionError
from tamis.gpu.kernel_cache import specialized
from tamis.gpu.toolkit import cuda_library, is_simulated
from tamis.kernels.numbers import U32s

_MOST_SHARED = 30 << 10
"""Shared memory for the arrays of an event. A block has 48 KiB, the rest holds lists and queues."""
SEGMENT_SHARE = 0.8
"""The part of a card's memory that segments may take, unless the user says how much."""


class Device(NamedTuple):
    """A card, as `tamis.gpu.devices` shows it."""

    number: int
    name: str
    memory: int
    """Bytes of memory."""
    compute_capability: tuple[int, int]


class SegmentArrays(NamedTuple):
    """A segment on a card, as kernels read it."""

    body: Body
    owners: Any
    """`CardOwners`."""
    sizes: tuple[int, int, int]
    """The lengths of the arrays of an event: keys, aspects, spaces."""
    has_programs: bool
    """Whether owners of open rows have programs, which need the keys of events."""
    nbytes: int


def devices() -> list[Device]:
    """The cards of this machine that Tamis can use. Empty if there is no card, no driver or no numba-cuda.

    Examples
    --------
    >>> import tamis.gpu
    >>> tamis.gpu.devices()  # doctest: +SKIP
    [Device(number=0, name='NVIDIA H200', memory=150754820096, compute_capability=(9, 0))]
    """
    try:
        cuda = cuda_library()
    except CapabilityError:
        return []
    return [_device(cuda, number) for number in range(len(cuda.gpus))]


def _device(cuda: Any, number: int) -> Device:
    with cuda.gpus[number]:
        card = cuda.get_current_device()
        name = getattr(card, "name", "simulator")
        name = name.decode() if isinstance(name, bytes) else str(name)
        return Device(number, name, _memory(cuda), tuple(card.compute_capability))


def _memory(cuda: Any) -> int:
    """Bytes of memory of the card in use. The simulator says that there is no end to it."""
    return int(min(cuda.current_context().get_memory_info().total, 1 << 50))


@functools.cache
def card_of(number: int) -> Card:
    """The card with this number.

    Raises
    ------
    CapabilityError
        If cards cannot be used here.
    OptionError
        If there is no card of this number.
    """
    cuda = cuda_library()
    if number >= len(cuda.gpus):
        count = len(cuda.gpus)
        known = "gpu" if count == 1 else f"gpu:0 to gpu:{count - 1}"
        raise OptionError(f"this machine has no device 'gpu:{number}'. Hint: it has {known}")
    return Card(cuda, number)


class Card:
    """A card, and how arrays get there."""

    def __init__(self, cuda: Any, number: int) -> None:
        self.cuda = cuda
        self.number = number
        self.is_simulated = is_simulated(cuda)
        self._launching = threading.RLock()
        self._kernels: dict[tuple[Any, ...], Any] = {}

    def here(self) -> Any:
        """A context in which the calling thread uses this card."""
        return self.cuda.gpus[self.number]

    def launch(
        self, kernel: Any, blocks: int, threads: int, stream: Any, shared: int, arguments: tuple[Any, ...]
    ) -> None:
        """Put a kernel into a queue. Named tuples among the arguments always have the same types.

        numba-cuda takes a part of the time if it need not look at the types of all arrays first.
        """
        types = kernel.__name__, *(getattr(each, "dtype", None) for each in arguments)
        with self._launching, self.here():
            special = self._kernels.get(types)
            if special is None:
                special = self._kernels[types] = kernel if self.is_simulated else specialized(kernel, arguments)
            special[blocks, threads, stream, shared](*arguments)

    @functools.cached_property
    def memory(self) -> int:
        """Bytes of memory of the card."""
        with self.here():
            return _memory(self.cuda)

    @functools.cached_property
    def processors(self) -> int:
        """How many blocks run at the same time, at least."""
        with self.here():
            return int(getattr(self.cuda.get_current_device(), "MULTIPROCESSOR_COUNT", 1))

    def new_stream(self) -> Any:
        """A queue of work for the card."""
        with self.here():
            return self.cuda.stream()

    def put(self, array: npt.NDArray[Any]) -> Any:
        """A copy of an array in the memory of the card."""
        return array.copy() if self.is_simulated else self.cuda.to_device(np.ascontiguousarray(array))

    def room(self, count: int, kind: Any) -> Any:
        """An array in the memory of the card with anything in it."""
        return np.zeros(count, kind) if self.is_simulated else self.cuda.device_array(count, kind)

    def pinned(self, size: int) -> npt.NDArray[np.uint8]:
        """Bytes that the system does not move, so that the card reads and writes them at its full speed."""
        return np.zeros(size, np.uint8) if self.is_simulated else self.cuda.pinned_array(size, np.uint8)

    def copy_there(self, array: npt.NDArray[Any], there: Any, stream: Any) -> None:
        """Copy an array into one of the card, as soon as the stream gets there."""
        if self.is_simulated:
            there[:] = array
        elif len(array):
            there.copy_to_device(array, stream=stream)

    def copy_here(self, there: Any, array: npt.NDArray[Any], stream: Any) -> None:
        """Copy an array of the card, likewise."""
        if self.is_simulated:
            array[:] = there
        elif len(array):
            there.copy_to_host(array, stream=stream)

    def put_fields(self, values: Any) -> Any:
        """A named tuple of arrays and numbers with its arrays on the card."""
        if isinstance(values, np.ndarray):
            return self.put(values)
        return values if isinstance(values, int) else type(values)._make(map(self.put_fields, values))


class SegmentsOnCard:
    """The segments of a matcher that are on a card, at most `most` bytes of them. The least recently used one gives way."""

    def __init__(self, card: Card, most: int | None = None) -> None:
        self.card = card
        self.most = int(card.memory * SEGMENT_SHARE) if most is None else most
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[Segment, SegmentArrays] = WeakKeyDictionary()
        self._used: WeakKeyDictionary[Segment, int] = WeakKeyDictionary()
        self._turns = itertools.count()
        self.uploads = 0

    def find(self, segment: Segment) -> SegmentArrays | None:
        """A segment on the card, which may have to be uploaded; None if it does not fit."""
        with self._lock:
            self._used[segment] = next(self._turns)
            found = self._kept.get(segment)
            if found is None and _size(segment) <= self.most:
                self._make_room(_size(segment))
                with self.card.here():
                    found = self._kept[segment] = _uploaded(segment, self.card)
                self.uploads += 1
            return found

    def _make_room(self, size: int) -> None:
        while self._kept and self.nbytes + size > self.most:
            del self._kept[min(self._kept, key=lambda kept: self._used[kept])]

    @property
    def nbytes(self) -> int:
        return sum(arrays.nbytes for arrays in self._kept.values())

    def stats(self, segments: tuple[Segment, ...]) -> dict[str, Any]:
        """Figures about the segments of a version."""
        with self._lock:
            there = [segment in self._kept for segment in segments]
            return {
                "device": f"gpu:{self.card.number}",
                "segments": sum(there),
                "segments_elsewhere": len(there) - sum(there),
                "bytes": self.nbytes,
                "most_bytes": self.most,
                "uploads": self.uploads,
            }


def _size(segment: Segment) -> int:
    return nbytes((segment.body._replace(row=segment.body.row[:0]), segment.owners.sole, segment.numbering.is_sole))


def _uploaded(segment: Segment, card: Card) -> SegmentArrays:
    from tamis.gpu.card_arrays import CardOwners

    body = segment.body
    ranked = min(body.dimensions, RANKED)
    wide = len(body.lookup.shift) > 0
    sizes = body.dimensions if wide and len(body.runs.list) else 0, ASPECTS * ranked if wide else 0, ranked + 1
    numbering = segment.numbering
    no_deaths = card.put(np.zeros(0, np.uint8))
    owners = CardOwners(card.put(segment.owners.sole), card.put(numbering.is_sole), int(numbering.first[0]), no_deaths)
    words = body._replace(entry=_pairs(body.entry), run_entry=_pairs(body.run_entry), row=body.row[:0])
    on_card = card.put_fields(words)
    has_programs = bool((segment.owners.program != ACCEPT).any())
    return SegmentArrays(on_card, owners, sizes, has_programs, _size(segment))


def _pairs(words: U32s) -> Any:
    """Both words of each entry as one, the filter word in the lower half."""
    return words.astype("<u4", copy=False).view("<u8").astype(np.uint64, copy=False)


def shared_places(sizes: tuple[int, int, int]) -> tuple[tuple[int, int, int], int]:
    """Where the arrays of an event lie in shared memory, in their own elements, and the bytes of all; -1: not there.

    What does not fit lies in the memory of the card, the largest array first.
    """
    widths = 8, 4, 1
    order = sorted(range(3), key=lambda each: sizes[each] * widths[each])
    taken, at = set[int](), 0
    for each in order:
        if sum(sizes[other] * widths[other] for other in taken | {each}) <= _MOST_SHARED:
            taken.add(each)
    places = [-1, -1, -1]
    for each in range(3):  # The widest elements first, so that each array is aligned.
        if each in taken:
            places[each] = at // widths[each]
            at += sizes[each] * widths[each]
    return (places[0], places[1], places[2]), at
