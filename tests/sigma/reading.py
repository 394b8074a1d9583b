"""Rules written in tests, read as files are."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import tamis
from tamis.sigma import RuleSet, read_rules

LOG_SOURCE = "logsource: {product: any}"


def rule(detection: str, *, title: str = "rule", more: str = LOG_SOURCE, condition: str = "selection") -> str:
    """A rule with a detection, which is YAML."""
    lines = [f"title: {title}", *dedent(more).strip().splitlines(), "detection:"]
    lines += [f"  {line}" for line in dedent(detection).strip("\n").splitlines()]
    return "\n".join([*lines, f"  condition: {condition}"]) + "\n"


def read(folder: Path, *texts: str, **options: Any) -> RuleSet:
    """The rules of a file with these documents. By default any event may match."""
    path = folder / "rules.yml"
    path.write_text("---\n".join(texts), encoding="utf-8")
    return read_rules(path, **{"log_sources": "ignore", **options})


def matches(rules: RuleSet, event: dict[str, Any]) -> list[str]:
    """The titles of the rules whose expressions are TRUE, as the reference evaluator says."""
    prepared = rules.deriver.added(event)
    return [each.title for each in rules.rules if tamis.evaluate(each.expression, prepared) is True]
