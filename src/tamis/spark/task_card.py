"""The card that Spark gives to a task, if tasks of the session have cards as a resource.

The Python workers of an executor are processes. Each puts segments on the card of its task, so the tasks that share a card share
its memory.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tamis.engine.version import Accelerator
from tamis.errors import OptionError, shortened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GPU = "gpu"
"""Spark's name of the resource."""
_AMOUNT = "spark.task.resource.gpu.amount"
"""The setting of a session with the share of a card that each task has, or with the number of its cards."""
_MOST_FOUND = 1 << 27
"""The most matches of a segment that a card finds at a time. They take 4 bytes each in the memory of the host."""
_RESULT_SHARE, _RESULT_BYTES = 0.1, 16
"""The part of a card's memory for matches, and the bytes that each match takes there."""
_HINT = "Hint: see 'Executors with a GPU' in docs/spark.md"


def gpu_share(spark: SparkSession, device: str | None) -> float | None:
    """The share of a card that tasks of a session have; None if they match on the CPU.

    Raises
    ------
    OptionError
        If they have no card.
    """
    if device is None:
        return None
    amount = spark.conf.get(_AMOUNT, None)
    if amount is None:
        raise OptionError(f"device='gpu', but tasks of this session have no GPU: {_AMOUNT} is not set. {_HINT}")
    return min(float(amount), 1.0)


def task_card(share: float) -> Accelerator:
    """What matches on the card of the running task, of which the task has this share.

    Raises
    ------
    OptionError
        If Spark gave the task no card that this machine has.
    CapabilityError
        If numba-cuda or a driver is missing.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    resource = None if context is None else context.resources().get(_GPU)
    if resource is None or not resource.addresses:
        raise OptionError(f"device='gpu', but Spark gave this task no GPU, as in local mode. {_HINT}")
    address = resource.addresses[0]
    if not address.isdecimal():
        raise OptionError(
            f"the address of this task's GPU is {shortened(address)}, and must be the number of a card. Hint: write a discovery "
            "script that lists numbers"
        )
    return matching_on(int(address), share)


@functools.cache
def matching_on(number: int, share: float) -> Accelerator:
    """What this process keeps on a card. All its tasks use it, one after another."""
    from tamis.gpu.card import SEGMENT_SHARE, SegmentsOnCard, card_of

    card = card_of(number)
    from tamis.gpu.buffers import USUAL_BUFFERS, BufferLimits
    from tamis.gpu.matching import CardMatching

    memory = card.memory * share
    most = min(_MOST_FOUND, int(memory * _RESULT_SHARE / _RESULT_BYTES))
    limits = BufferLimits(rows=min(USUAL_BUFFERS.rows, most), most=most)
    return CardMatching(SegmentsOnCard(card, int(memory * SEGMENT_SHARE)), limits)
