"""Keyword search: subscriptions are queries, events are documents, after the PS-Tree and the OpIndex paper.

    predicates   query                    subscription
    halves       boolean vldb             boo = 'lea' AND vl = 'db'                     PS-Tree 7.1
    words        boolean vldb             boolean = 1 AND vldb = 1                      OpIndex 7.1
    counts       boolean vldb             boolean BETWEEN 1 AND 4 AND vldb BETWEEN 2 AND 8      OpIndex 7.1

A document has the same attributes for its words: with halves the second half, with words 1, with counts how often the word
occurs. With halves, a word of more than six characters gives its first three and its next three characters. Another word is cut
in the middle, and the first half is the shorter one.

Our reading: two words of one line may have the same attribute (`boolean`, `boomerang`). The first of them counts, in queries and
in documents. So an event has one value per attribute, as all the papers' indexes expect, and no subscription is impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from tamis.kernels.numbers import I64s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.domain import Domain, IntegerDomain, TableDomain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Stream
from tamis.workload.implied import CODE
from tamis.workload.parameters import Config
from tamis.workload.planting import Pairs, PlantedDraws, first_pairs, padded
from tamis.workload.text import FileText, Lines, LineSource, MadeText
from tamis.workload.text.files import words_of

KeywordPredicates = Literal["halves", "words", "counts"]
Documents = Literal["messages", "pages", "articles"]

_PART = 3
"""Characters of the attribute and of the value of a long word, with halves."""

_WIDEST = 2_000
"""The most pairs of an event that is a line of a file. Longer documents are cut off."""

_FIRST_OTHER = 10**10
"""The first made document that is an other event. There are at most 1,000,000,000 events."""

_WIDEST_INTERVAL = 15
"""The most that the upper end of an interval of counts is above the lower end. The paper's examples are [5, 20] and [2, 8]."""


@dataclass(frozen=True, kw_only=True)
class KeywordsConfig(Config):
    """The parameters of a workload of keyword queries. Two equal configs with equal files give the same workload.

    Attributes
    ----------
    style : "keywords"
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    predicates : "halves", "words" or "counts"
        What a word becomes. See the top of this module.
    queries_file : path or None
        A text file in UTF-8 with one query per line. After the last query comes the first again. None: made queries.
    documents_file : path or None
        A text file in UTF-8 with one document per line. None: made documents.
    documents : "messages", "pages" or "articles"
        The made documents, if there is no file: with 5.4, 93 or 123 attributes on average.
    vocabulary : int
        The number of words: the most frequent ones. The other words of files are left out.
    planted_share : float
        The share of planted events, which are spread evenly: documents with the words of a query in place of their first words.
        The first one satisfies subscription 0, the next subscription 1, and so on.
    events, other_events : int
        The numbers of events that `write` writes. Other events are documents as they are. None for `events`: 1,000.
    seed : int
        Decides which lines are made, or the order of the lines of the files.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type or is outside its range.
    FileError
        By `generate`: if a file cannot be read, or has no words.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "style": ("keywords",),
        "predicates": get_args(KeywordPredicates),
        "documents": get_args(Documents),
    }
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {"vocabulary": (100, 1_000_000)}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {"planted_share": (0, 1)}
    files: ClassVar[tuple[str, ...]] = ("queries_file", "documents_file")

    style: Literal["keywords"] = "keywords"
    subscriptions: int = 1_000_000
    predicates: KeywordPredicates = "words"
    queries_file: str | None = None
    documents_file: str | None = None
    documents: Documents = "messages"
    vocabulary: int = 50_000
    planted_share: float = 1.0


def halves(word: str) -> tuple[str, str]:
    """The attribute and the value of a word of at least two characters.

    >>> halves("boolean"), halves("vldb"), halves("index")
    (('boo', 'lea'), ('vl', 'db'), ('in', 'dex'))
    """
    first = _PART if len(word) > 2 * _PART else len(word) // 2
    return word[:first], word[first : 2 * _PART]


class Words(NamedTuple):
    """What the words of queries and documents become, in a common numbering of all words."""

    names: list[str]
    """The attributes."""
    values: list[str]
    """The values, with halves."""
    attribute: I64s
    """The attribute of each word."""
    value: I64s
    """The value of each word, with halves; else 1."""
    of_document: I64s
    """The common number of each word of documents. Words of queries keep their numbers."""


@lru_cache(4)
def _words(of_queries: tuple[str, ...], of_documents: tuple[str, ...], predicates: KeywordPredicates) -> Words:
    number = {word: place for place, word in enumerate(of_queries)}
    for word in of_documents:
        number.setdefault(word, len(number))
    of_document = np.array([number[word] for word in of_documents], np.int64)
    words = list(number)
    if predicates != "halves":
        return Words(words, [], np.arange(len(words)), np.ones(len(words), np.int64), of_document)
    parts = [halves(word) for word in words]
    names, attribute = _numbered([first for first, _ in parts])
    values, value = _numbered([second for _, second in parts])
    return Words(names, values, attribute, value, of_document)


class KeywordDraws(PlantedDraws):
    """Draws the subscriptions and events of a config."""

    def __init__(self, config: KeywordsConfig) -> None:
        self._queries = _source(config, "queries", config.queries_file, Stream.SUBSCRIPTIONS)
        self._documents = _source(config, config.documents, config.documents_file, Stream.EVENTS)
        super().__init__(config, max(min(self._documents.longest, _WIDEST), self._queries.longest))
        self._words = _words(tuple(self._queries.words), tuple(self._documents.words), config.predicates)
        self._config = config

    def domain(self) -> Domain:
        """The attributes and values."""
        if self._config.predicates == "halves":
            return TableDomain(self._words.names, self._words.values)
        return IntegerDomain(len(self._words.names), self._words.names)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        lines = self._queries.take(first + np.arange(SUBSCRIPTION_BLOCK))
        word = lines.word
        pairs = first_pairs(lines.owner, self._words.attribute[word], self._words.value[word], SUBSCRIPTION_BLOCK)
        count = len(pairs.value)
        operator, literals, sizes = Operator.EQ, pairs.value, np.ones(count, np.int64)
        if self._config.predicates == "counts":
            operator, sizes = Operator.BETWEEN, np.full(count, 2)
            lowest = rng.geometric(0.5, count)
            literals = np.column_stack(
                [lowest, lowest + rng.integers(1, _WIDEST_INTERVAL, count, endpoint=True)]
            ).ravel()
        return PredicateArrays(
            ptr=pairs.ptr,
            attribute=pairs.attribute,
            operator=np.full(count, CODE[operator], np.uint8),
            literal_ptr=offsets(sizes),
            literals=literals,
            prefix=np.zeros(count, np.uint8),
        )

    def _drawn_events(self, stream: Stream, block: int) -> EventArrays:
        rows = block * EVENT_BLOCK + np.arange(EVENT_BLOCK)
        if stream == Stream.OTHER_EVENTS:
            # From the other end of a file.
            rows = -1 - rows if isinstance(self._documents, FileText) else _FIRST_OTHER + rows
        lines = self._documents.take(rows)
        return padded(self._pairs(lines._replace(word=self._words.of_document[lines.word])), self._event_size)

    def _pairs(self, lines: Lines) -> Pairs:
        owner, attribute = lines.owner, self._words.attribute[lines.word]
        if self._config.predicates != "counts":
            return first_pairs(owner, attribute, self._words.value[lines.word], EVENT_BLOCK)
        key = owner * len(self._words.names) + attribute
        _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        return first_pairs(owner, attribute, counts[inverse.reshape(key.shape)], EVENT_BLOCK)


def _source(config: KeywordsConfig, kind: str, path: str | None, stream: Stream) -> LineSource:
    if path is None:
        return MadeText(kind, config.seed, stream, config.vocabulary)
    what = "queries_file" if kind == "queries" else "documents_file"
    least = 2 if config.predicates == "halves" else 1
    return FileText(path, what, config.seed, partial(_long_words, least), most=config.vocabulary)


def _long_words(least: int, line: str) -> list[str]:
    """The words of a line with at least so many characters."""
    return [word for word in words_of(line) if len(word) >= least]


def _numbered(texts: Sequence[str]) -> tuple[list[str], I64s]:
    """The different texts, and the number of each one."""
    number: dict[str, int] = {}
    numbers = [number.setdefault(text, len(number)) for text in texts]
    return list(number), np.array(numbers, np.int64)
