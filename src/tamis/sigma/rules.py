"""Sigma rules from files, as expressions of our language. What cannot be converted is kept with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tamis.errors import FileError, OptionError, shortened
from tamis.language.expression import FALSE
from tamis.matcher.matcher import Matcher
from tamis.sigma.backend import TamisBackend
from tamis.sigma.conversion import Conversion, chosen
from tamis.sigma.correlations import Correlation
from tamis.sigma.derived import Deriver
from tamis.sigma.documents import Document, documents
from tamis.sigma.log_sources import LogSources
from tamis.sigma.parsing import Parsed, Parser
from tamis.sigma.pipelines import pipeline_of
from tamis.sigma.rule import Rule

LEVELS = ("informational", "low", "medium", "high", "critical")
"""From the least to the most severe."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules that were read together.

    Attributes
    ----------
    rules : tuple of Rule
    correlations : tuple of Correlation
        A correlation comes after those that it refers to.
    refused : tuple of FileError
        What cannot be read or converted: file, line and reason.
    left_out : int
        Correct rules below the wanted level, or of log sources that the events do not have.
    deriver : Deriver
        Adds the computed attributes that the rules ask for to an event.
    """

    rules: tuple[Rule, ...]
    correlations: tuple[Correlation, ...]
    refused: tuple[FileError, ...]
    left_out: int
    deriver: Deriver

    def __len__(self) -> int:
        """The number of rules and correlations."""
        return len(self.rules) + len(self.correlations)

    def matcher(self) -> Matcher:
        """A matcher with the rules as subscriptions. Events go through `deriver` first."""
        matcher = Matcher()
        matcher.add_many([rule.id for rule in self.rules], [rule.expression for rule in self.rules])
        return matcher


def read_rules(
    paths: str | Path | Iterable[str | Path],
    *,
    pipelines: Sequence[str] = (),
    level: str | None = None,
    log_sources: LogSources = "match",
    keyword_field: str | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> RuleSet:
    """Read Sigma rules, correlations and filters from YAML files, packed with gzip or not, and from folders of them.

    Parameters
    ----------
    paths : path or paths
    pipelines : sequence of str
        Processing pipelines of pySigma: names of installed ones, or YAML files.
    level : str, optional
        The lowest level of rules: informational, low, medium, high or critical. By default all rules, also those without one.
    log_sources : "match", "ignore" or mapping
        ``match``: events carry their log source in `logsource.product`, `logsource.category` and `logsource.service`. ``ignore``:
        any rule may match any event. A mapping, such as ``{"product": "windows"}``, says what all events have.
    keyword_field : str, optional
        The attribute in which keywords are searched. By default they are searched in all values of the event.
    progress : callable, optional
        Called with the number of documents read so far.

    Raises
    ------
    FileError
        When a path does not exist, or a pipeline cannot be read. Errors inside of rules are in the result.
    OptionError
        When a level, a log source or a pipeline is wrong.
    """
    if level is not None and level not in LEVELS:
        raise OptionError(f"a level must be one of {', '.join(LEVELS)}, not {shortened(level)}")
    backend = TamisBackend(pipeline_of(pipelines), keyword_field=keyword_field, log_sources=log_sources, derive=True)
    parser, read, refused = Parser(), list[tuple[Document, Parsed]](), list[FileError]()
    for number, item in enumerate(documents([paths] if isinstance(paths, str | Path) else paths)):
        parsed = item if isinstance(item, FileError) else parser.parse(item)
        if isinstance(parsed, FileError):
            refused.append(parsed)
        elif parsed is not None:
            assert isinstance(item, Document)
            read.append((item, parsed))
        progress(number + 1)
    conversion = Conversion(backend, read)
    wanted = [
        *(each.id for each in conversion.rules.values() if each.expression != FALSE and _severe(each, level)),
        *(each.id for each in conversion.correlations.values() if _severe(each, level)),
    ]
    rules, correlations = chosen(conversion.rules, conversion.correlations, wanted)
    correct = len(conversion.rules) + len(conversion.correlations)
    return RuleSet(
        tuple(rules),
        tuple(correlations),
        tuple(sorted([*refused, *conversion.refused], key=lambda error: (str(error.path), error.line or 0))),
        correct - len(rules) - len(correlations),
        _deriver(backend, rules),
    )


def _severe(rule: Rule | Correlation, level: str | None) -> bool:
    return level is None or (rule.level is not None and LEVELS.index(rule.level) >= LEVELS.index(level))


def _deriver(backend: TamisBackend, rules: Sequence[Rule]) -> Deriver:
    derived = {}
    for each in backend.derived:
        sources = [rule.log_source for rule in rules if each.name in rule.expression.attributes()]
        if sources:
            derived[each] = sources
    return Deriver(derived)
