"""When a process ends, no thread of ours is at work any more, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# What is at work when a script ends: merges in the background, and threads that wait for the next batch.
WORK = """
import tamis

def work(matcher):
    for part in range(6):
        ids = range(part * 5000, (part + 1) * 5000)
        matcher.add_many(ids, [f"a = {n} AND b < {n % 7}" for n in ids])
    matcher.match_batch([{"a": n, "b": 1} for n in range(3000)], threads=3)
"""

# A function that was registered before anything of Tamis sees what is left: threads with a name of ours, and how many threads of
# the system have come since the work began.
LOOK = """
import atexit, os, signal, sys, threading, time

def tasks():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0

def look():
    named = [thread.name for thread in threading.enumerate() if thread.name.startswith("tamis")]
    until = time.monotonic() + 10
    while tasks() > before and time.monotonic() < until:  # The system takes a moment to forget a thread that has ended.
        time.sleep(0.001)
    print("left:", named, tasks() - before, flush=True)

atexit.register(look)
# A shell that starts the tests in the background ignores SIGINT, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
import pyarrow.compute
pyarrow.compute.sum(pyarrow.array([1]))
"""


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(program)
    return subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", 0),
        ("sys.exit(7)", 7),
        ("raise ValueError('wrong')", 1),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
    ],
    ids=["the end", "sys.exit", "an exception", "Ctrl-C"],
)
def test_nothing_of_ours_is_alive_when_the_interpreter_goes(tmp_path: Path, end: str, status: int) -> None:
    done = run(tmp_path, f"{LOOK}{WORK}\nbefore = tasks()\nwork(tamis.Matcher())\n{end}\n")
    assert (done.returncode, done.stdout) == (status, "left: [] 0\n"), done.stderr


def test_what_comes_while_a_process_ends_is_done_without_threads(tmp_path: Path) -> None:
    late = "atexit.register(lambda: (work(matcher), print(len(matcher), flush=True)))"
    program = f"{LOOK}{WORK}\nbefore = tasks()\nmatcher = tamis.Matcher()\n{late}\nwork(tamis.Matcher())\n"
    done = run(tmp_path, program)
    assert (done.returncode, done.stdout) == (0, "30000\nleft: [] 0\n"), done.stderr


def test_a_process_ends_beside_a_thread_of_the_user_that_goes_on(tmp_path: Path) -> None:
    busy = "threading.Thread(target=lambda: [work(tamis.Matcher()) for _ in range(10**6)], daemon=True).start()"
    done = run(tmp_path, f"{LOOK}{WORK}\nbefore = tasks() + 1\nwork(tamis.Matcher())\n{busy}\ntime.sleep(0.3)\n")
    assert done.stdout == "left: [] 0\n", done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing_end(tmp_path: Path, method: str) -> None:
    done = run(
        tmp_path,
        f"""{WORK}
import multiprocessing

def child(queue):
    matcher = tamis.Matcher()
    work(matcher)
    queue.put(len(matcher))

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    work(tamis.Matcher())
    queue = context.Queue()
    children = [context.Process(target=child, args=(queue,)) for _ in range(2)]
    for each in children:
        each.start()
    print([queue.get() for _ in children])
    for each in children:
        each.join()
    print([each.exitcode for each in children])
""",
    )
    assert (done.returncode, done.stdout) == (0, "[30000, 30000]\n[0, 0]\n"), done.stderr
