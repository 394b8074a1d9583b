"""`tamis`, with a broker whose figures never come."""

from __future__ import annotations

import threading
from typing import Any

from tamis.broker import Broker
from tamis.cli.main import main


def stats(broker: Any) -> dict[str, Any]:
    print("stuck", flush=True)
    threading.Event().wait()
    return {}


if __name__ == "__main__":
    Broker.stats = stats  # type: ignore[assignment, method-assign]
    main(prog_name="tamis")
