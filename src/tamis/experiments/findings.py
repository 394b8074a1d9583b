"""Findings: why a claim of a paper does not hold here, each with what was measured."""

from __future__ import annotations

FINDINGS: dict[str, str] = {}
"""Paper and number of a figure -> the reason, in sentences."""


def finding_of(name: str) -> str:
    """The finding for a figure such as "ps-tree 6a", or an empty string."""
    return FINDINGS.get(name, "")
