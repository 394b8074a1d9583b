"""The slots of an engine: when each died, which part has its rows, and which are free.

    slot    0      1    2      3
    died    ALIVE  7    ALIVE  ALIVE      time of death
    home    A      A    B      NOWHERE    id of the part that has the rows of the slot

The rows of a dead slot stay in their part until that part is built again. Then the slot is *released*: it is free as soon as
nobody holds a version with the old part.

Only the writer changes the table, under the lock of the engine. Other threads only add to what is released.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from tamis.engine.matching.owners import ALIVE
from tamis.engine.matching.results import Life
from tamis.engine.slot_lease import Lease
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I32s, I64s

NOWHERE = 0
"""The home of a slot that has no rows."""
NO_DEATHS = np.zeros(0, np.int64)
_SlotArray = I32s


class SlotTable:
    """All slots that were given so far."""

    def __init__(self) -> None:
        self.now = 0
        """The time: how often slots have died."""
        self._lives = 0
        """How often `clear` has forgotten all slots, so that numbers begin at 0 again."""
        self._released: deque[tuple[int, list[int]]] = deque()
        """Lists of slots that no reader can find any more, each with the value of `_lives` when its slots were given."""
        self._reset()

    def _reset(self) -> None:
        self._died = GrowingArray(np.int64)
        self._home = GrowingArray(np.int64)
        self.free: list[int] = []
        self.deaths = 0
        """Dead slots that some part has rows of."""
        self.dead: dict[int, int] = {}
        """Id of a part -> number of its slots that are dead, as matching sees it."""
        self._dying: list[_SlotArray] = []
        """Dead slots that `dead` does not count yet."""

    def clear(self) -> None:
        """Forget all slots."""
        self._lives += 1
        self._reset()

    def restore(self, alive: Bools, held: Bools) -> None:
        """Begin with slots of a snapshot: which are alive, and which have rows in a segment."""
        self.now += 1
        self._died.extend(np.where(alive, ALIVE, self.now))
        self._home.grow(len(alive), fill=NOWHERE)
        self.deaths = int(np.count_nonzero(held & ~alive))
        self.free = np.flatnonzero(~held & ~alive).tolist()

    # -- life

    @property
    def died(self) -> I64s:
        """Times of death with the room behind them, as versions keep them; empty while nobody is dead."""
        return self._died.data if self.deaths else NO_DEATHS

    def life(self, now: int) -> Life:
        """Which slots were alive at some time."""
        return Life(self._died.view(), now)

    def living_among(self, slots: _SlotArray) -> _SlotArray:
        """The slots that have not died."""
        return slots[self._died.view()[slots] == ALIVE]

    def kill(self, slots: _SlotArray) -> None:
        """Let slots die. Call `count_dead` when matching sees it."""
        is_nowhere = self._home.view()[slots] == NOWHERE
        self.now += 1
        self.deaths += len(slots) - int(np.count_nonzero(is_nowhere))
        # In one step: an interrupt comes before all of them have died, or after.
        self._died.view()[slots] = self.now
        self._dying.append(slots[~is_nowhere])
        self.free.extend(slots[is_nowhere].tolist())  # Nobody ever found a slot without rows.

    def is_alive(self, slot: int) -> bool:
        return self._died.data.item(slot) == ALIVE

    def kill_one(self, slot: int) -> None:
        """Let a slot die. If an interrupt comes before its time of death is written, it is still alive."""
        home = self._home.data.item(slot)
        if home == NOWHERE:
            self._died.data[slot] = self.now
            self.free.append(slot)
            return
        self.now += 1
        self.deaths += 1
        self._died.data[slot] = self.now
        self.dead[home] = self.dead.get(home, 0) + 1

    def count_dead(self) -> None:
        """Count the dead of each part, now that matching sees all of them."""
        for slots in self._dying:
            for home in self._home.view()[slots].tolist():
                self.dead[home] = self.dead.get(home, 0) + 1
        self._dying = []

    # -- homes

    def settle(self, slots: _SlotArray, part: int) -> None:
        """Note that a part, given by its id, has the rows of slots."""
        self._home.view()[slots] = part

    def settle_one(self, slot: int, part: int) -> None:
        self._home.data[slot] = part

    def settle_part(self, slots: _SlotArray, part: int, seen: int) -> None:
        """Note that a new part has the rows of slots. Count slots that were dead at `seen`, the time that matching sees."""
        self.settle(slots, part)
        dead = int(np.count_nonzero(self._died.view()[slots] <= seen))
        if dead:
            self.dead[part] = dead

    def homeless_among(self, slots: _SlotArray) -> _SlotArray:
        """The slots that have no rows."""
        return slots[self._home.view()[slots] == NOWHERE]

    # -- giving slots

    def take(self, count: int) -> _SlotArray:
        """Slots for new subscriptions, free ones first."""
        self._take_back()
        again = [self.free.pop() for _ in range(min(count, len(self.free)))]
        slots = np.concatenate(
            (np.array(again, np.int32), np.arange(count - len(again), dtype=np.int32) + len(self._died))
        )
        self._grow(count - len(again))
        self._died.view()[slots] = ALIVE
        self._home.view()[slots] = NOWHERE
        return slots

    def take_one(self) -> int:
        """A free slot, of which there must be one. It takes no lock: only the writer takes slots, and nobody else knows a free
        one."""
        slot = self.free.pop()
        self._died.data[slot] = ALIVE
        self._home.data[slot] = NOWHERE
        return slot

    def have_free(self, at_once: int) -> None:
        """Make new slots if none is free."""
        self._take_back()
        if not self.free:
            first = len(self._died)
            self._grow(at_once)
            self.free.extend(range(first + at_once - 1, first - 1, -1))

    def _grow(self, count: int) -> None:
        """Make room for more slots. Homes come first: an interrupt in between leaves homes without a slot, no more."""
        self._home.grow(max(len(self._died) + count - len(self._home), 0))
        self._died.grow(count, fill=ALIVE)

    def release(self, slots: _SlotArray, kept: _SlotArray, lease: Lease) -> None:
        """Free the slots of a part that are not kept, as soon as its lease ends: until then, readers may meet them."""
        # Not `np.setdiff1d`, which keeps the GIL for tens of milliseconds.
        gone = np.zeros(len(self._died), np.bool_)
        gone[slots] = True
        gone[kept] = False
        dropped = np.flatnonzero(gone)
        if len(dropped):
            released = (self._lives, dropped.tolist())
            weakref.finalize(lease, self._released.append, released).atexit = False

    def _take_back(self) -> None:
        """Free the slots that were released."""
        while self._released:
            lives, slots = self._released.popleft()
            if lives == self._lives:
                self.free.extend(slots)
                self.deaths -= len(slots)

    def count_deaths(self) -> int:
        """Dead slots that some part has rows of. Slots that nobody can find any more do not count."""
        self._take_back()
        return self.deaths
