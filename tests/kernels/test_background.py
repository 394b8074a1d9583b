"""Threads of ours end before their process does."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from tamis.kernels.background import begin_thread, stop_threads
begun, go_on = threading.Event(), threading.Event()
assert begin_thread(lambda: (begun.set(), go_on.wait()))
assert begun.wait(60)
go_on.set()
print([stop_threads() for _ in range(2)], begin_thread(print))
"""


def test_threads_may_be_stopped_twice() -> None:
    """The end of a process stops them for `atexit` and for `multiprocessing`: the second time, there is nothing to wait for."""
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    assert (answer.stdout, answer.stderr) == ("[True, True] False\n", "")


LATE = """
import threading
import tamis

open_broker, main = tamis.open, threading.main_thread()

def labour():
    main.join()
    with open_broker(":memory:") as broker:
        broker.subscribe("ann", "all", "price > 0")
        print(sum(len(receipt.matches) for receipt in broker.publish_many([{"price": 1}] * 100)))

threading.Thread(target=labour).start()
"""


def test_threads_that_outlive_the_main_thread_match_batches() -> None:
    answer = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False, timeout=120)
    assert (answer.stdout, answer.stderr) == ("100\n", "")
