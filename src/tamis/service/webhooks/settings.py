"""How often webhooks are tried, how long they may take, and which addresses they may reach."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import OptionError, shortened


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """What all webhooks of a service have in common."""

    allowed_networks: tuple[str, ...] = ()
    """Networks that webhooks may reach although they are private, such as ``10.1.0.0/16``. Only these may be reached by
    ``http:``."""
    ca_file: str = ""
    """PEM file with certificates that are trusted besides those of the system."""
    timeout: float = 10.0
    """Seconds that one try may take, from looking up the address to the last byte of the answer."""
    tries: int = 10
    """Tries of one batch. After the last one, its notes become dead letters."""
    first_wait: float = 1.0
    """Seconds after the first try. Each later wait is twice as long."""
    longest_wait: float = 600.0
    """Seconds that a wait has at most."""
    failures: int = 5
    """Batches in a row that become dead letters until the webhook is disabled."""
    most: int = 1_000
    """Webhooks of one tenant."""
    most_dead_letters: int = 10_000
    """Dead letters of one webhook. With more of them, the webhook is disabled."""

    def check(self) -> None:
        """Refuse wrong settings.

        Raises
        ------
        OptionError
        """
        for name in ("timeout", "tries", "first_wait", "longest_wait", "failures", "most_dead_letters"):
            if getattr(self, name) <= 0:
                raise OptionError(f"[webhooks] `{name}` must be more than 0")
        for network in self.allowed_networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise OptionError(
                    f"[webhooks] {shortened(network)} is not a network: {error}. Hint: 10.1.0.0/16"
                ) from None
        if self.ca_file and not Path(self.ca_file).is_file():
            raise OptionError(f"[webhooks] `ca_file`: there is no file {self.ca_file}")
