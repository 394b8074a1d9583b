"""Messages about text that is not CSV."""

from __future__ import annotations

import csv


def not_csv(error: csv.Error) -> str:
    """What is wrong with a record that is not CSV."""
    if "unexpected end" in str(error):
        return "not CSV: a double quote that opens in this record is never closed; all lines after it belong to it"
    return f"not CSV: {error}"
