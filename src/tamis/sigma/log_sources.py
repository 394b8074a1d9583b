"""The log source of a rule as conditions on the event: `logsource.product = 'windows'`.

Events carry these attributes, or the caller states them for all events. What is stated is decided when rules are read: rules
of other log sources are left out, and no event is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sigma.rule.logsource import SigmaLogSource

from tamis.errors import OptionError, shortened
from tamis.language.builder import attr
from tamis.language.expression import FALSE, Expression, all_of

PARTS = ("product", "category", "service")

LogSources = Literal["match", "ignore"] | Mapping[str, str]
"""`match`: ask the event. `ignore`: ask nothing. A mapping: what all events have; only other parts are asked."""


def checked(log_sources: LogSources) -> LogSources:
    """The argument, or an OptionError."""
    if isinstance(log_sources, Mapping):
        wrong = [part for part in log_sources if part not in PARTS]
        if wrong:
            raise OptionError(f"a log source has product, category and service, not {shortened(wrong[0])}")
    elif log_sources not in ("match", "ignore"):
        raise OptionError(
            "log sources must be 'match', 'ignore' or a mapping such as {'product': 'windows'}, "
            f"not {shortened(log_sources)}"
        )
    return log_sources


def attribute(part: str) -> str:
    """The attribute of an event that has a part of its log source."""
    return f"logsource.{part}"


def asked(source: SigmaLogSource, log_sources: LogSources) -> dict[str, str] | None:
    """What an event must have to come from a log source, by attribute; None where no event of the run can."""
    if log_sources == "ignore":
        return {}
    stated = log_sources if isinstance(log_sources, Mapping) else {}
    wanted = {part: value for part in PARTS if (value := getattr(source, part)) is not None}
    if any(stated.get(part, value) != value for part, value in wanted.items()):
        return None
    return {attribute(part): value for part, value in wanted.items() if part not in stated}


def condition(wanted: Mapping[str, str] | None) -> Expression:
    """The same as an expression."""
    return FALSE if wanted is None else all_of(*(attr(name) == value for name, value in wanted.items()))
