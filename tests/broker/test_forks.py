"""A process that was forked while a broker was open has a copy of the broker, which must not write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PARENT = """
import os, sys, tamis, threading

def child(work):
    heard, told = os.pipe()
    number = os.fork()
    if number:
        os.close(told)
        with os.fdopen(heard) as stream:
            said = stream.read()
        os.waitpid(number, 0)
        return said
    with os.fdopen(told, "w") as stream:
        for call in work:
            try:
                call()
                print("no error", file=stream)
            except tamis.TamisError as error:
                print(type(error).__name__, "another process" in str(error), file=stream)
    os._exit(0)

folder = sys.argv[1]
broker = tamis.open(folder)
broker.subscribe("ann", "cheap", "price < 20")
for price in range(5):
    broker.publish({"price": price})
reading = broker.notifications("ann")
next(reading)

# Another thread holds the lock of the broker. In the child, nobody ever gives it back.
holds, forked = threading.Event(), threading.Event()
broker.listen(lambda subscribers, names: (holds.set(), forked.wait()))
thread = threading.Thread(target=broker.publish, args=({"price": 1},))
thread.start()
holds.wait()
print(child([
    lambda: broker.publish({"price": 1}),
    lambda: broker.publish_many([{"price": 1}]),
    lambda: broker.subscribe("ann", "other", "price < 3"),
    lambda: broker.acknowledge("ann", 1),
    lambda: list(broker.notifications("ann")),
    lambda: broker.would_match({"price": 1}),
    lambda: broker.compact(),
    lambda: broker.backup(folder + "-copy"),
    lambda: broker.find_subscriptions(),
    lambda: broker.close(),
    lambda: tamis.open(folder).close(),
    lambda: tamis.open(folder, read_only=True).close(),
]))
forked.set()
thread.join()
print(broker.publish({"price": 1}).sequence, [note.sequence for note in reading])

number = os.fork()
if not number:
    import signal
    signal.pause()  # a child that lives on
broker.close()
with tamis.open(folder) as broker:
    print(broker.publish({"price": 1}).sequence)
os.kill(number, 9)
os.waitpid(number, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_neither_writes_nor_keeps_the_lock(tmp_path: Path) -> None:
    run = [sys.executable, "-c", _PARENT, str(tmp_path / "broker")]
    found = subprocess.run(run, capture_output=True, text=True, timeout=100, check=False)
    assert found.stderr == ""
    *child, _, after, later = found.stdout.splitlines()
    assert child == 9 * ["BrokerError True"] + ["no error", "LockedError False", "no error"]
    assert after == "7 [2, 3, 4, 5, 6, 7]"
    assert later == "8"
