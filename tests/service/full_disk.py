"""``tamis`` on a disk that is full after SIGUSR1, and has room again after SIGUSR2."""

from __future__ import annotations

import signal

from tamis.cli.main import main
from tests.broker.faults import FULL, Faults

if __name__ == "__main__":
    with Faults() as faults:
        signal.signal(signal.SIGUSR1, lambda *_: faults.fail("write", FULL, at=1, is_lasting=True))
        signal.signal(signal.SIGUSR2, lambda *_: faults.mend())
        main()
