"""Sigma rules, the detection rules that security teams share, on Tamis. Needs the extra: ``pip install 'tamis[sigma]'``.

pySigma reads the rules; we convert them to expressions and match them. Read in this order:

    backend          the backend for pySigma: conditions to expressions     values         strings, numbers, lists of them
    log_sources      product, category and service as conditions            derived        attributes computed from an event
    documents        YAML files as documents that know their lines          parsing        documents as rules of pySigma
    pipelines        processing pipelines by name                           conversion     rules of pySigma as ours
    regular          how pySigma reads regular expressions
    rule             a rule about single events                             correlations   a rule about several events
    rules            read_rules: folders of rules as a RuleSet              windows        correlations over matches
    detector         Detector: events against rules                         on_spark       the same on Spark
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.sigma.backend import TamisBackend
    from tamis.sigma.correlations import Correlation
    from tamis.sigma.detector import Detector
    from tamis.sigma.rule import Rule
    from tamis.sigma.rules import RuleSet, read_rules
    from tamis.sigma.windows import Finding

_LAZY = {
    "Correlation": "correlations",
    "Detector": "detector",
    "Finding": "windows",
    "Rule": "rule",
    "RuleSet": "rules",
    "TamisBackend": "backend",
    "read_rules": "rules",
}

__all__ = ["Correlation", "Detector", "Finding", "Rule", "RuleSet", "TamisBackend", "read_rules"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tamis.sigma' has no attribute {name!r}")
    return getattr(import_module(f"tamis.sigma.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return __all__
