"""Prefixes of words (OpIndex 7.7, figure 14): attributes with numbers and attributes with words, ``=`` and ``LIKE 'abc%'``.

The paper gives 1,000,000 subscriptions, 10,000 attributes with numbers and 100 with strings, words of Wikipedia, and ``=`` and
prefix as the only operators. It varies the share of prefixes and their length. Our reading: a predicate is a prefix on an
attribute with words with the probability `like_share`, else ``=`` on an attribute with numbers. Events have `event_words`
attributes with words, since with ten pairs in a thousand on words, hardly any prefix would be looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from tamis.kernels.numbers import I32s, I64s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.domain import TableDomain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Stream
from tamis.workload.implied import CODE
from tamis.workload.parameters import Config, check_limit
from tamis.workload.planting import PlantedDraws
from tamis.workload.text import FileText, LineSource, MadeText
from tamis.workload.zipf import Popularity


@dataclass(frozen=True, kw_only=True)
class PrefixesConfig(Config):
    """The parameters of a workload of prefixes. Two equal configs with equal files give the same workload.

    Attributes
    ----------
    style : "prefixes"
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    number_attributes, word_attributes : int
        The numbers of attributes with numbers, `a0`, `a1`, ..., and with words, `s0`, `s1`, ...
    cardinality : int
        The number of values of an attribute with numbers. The values are the numbers 1 to `cardinality`, drawn uniformly.
    subscription_size : int
        The largest number of predicates. Sizes are uniform from 1 to this number.
    like_share : float
        The share of prefixes among the predicates. The others are ``=`` on attributes with numbers.
    prefix_length : int
        The number of characters of a prefix. A shorter word is a prefix as a whole.
    event_size : int
        The number of attributes of each event.
    event_words : int
        How many of them have words.
    text_file : path or None
        A text file in UTF-8 whose words are the values, as often as they occur. None: made words, by Zipf's law.
    planted_share : float
        The share of planted events, which are spread evenly: events with values that satisfy a subscription. The first one
        satisfies subscription 0, the next subscription 1, and so on.
    events, other_events : int
        The numbers of events that `write` writes. None for `events`: 1,000.
    seed : int
        Chooses one of the workloads that these parameters describe.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type, is outside its range, or contradicts another.
    FileError
        By `generate`: if the file cannot be read, or has no words.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("prefixes",)}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {
        "number_attributes": (1, 1_000_000),
        "word_attributes": (1, 1_000_000),
        "cardinality": (2, 10_000_000),
        "subscription_size": (1, 1_000),
        "prefix_length": (1, 100),
        "event_size": (1, 1_000),
        "event_words": (0, 1_000),
    }
    real: ClassVar[Mapping[str, tuple[float, float]]] = {"like_share": (0, 1), "planted_share": (0, 1)}
    files: ClassVar[tuple[str, ...]] = ("text_file",)

    style: Literal["prefixes"] = "prefixes"
    subscriptions: int = 1_000_000
    number_attributes: int = 10_000
    word_attributes: int = 100
    cardinality: int = 800
    subscription_size: int = 6
    like_share: float = 0.5
    prefix_length: int = 3
    event_size: int = 60
    event_words: int = 10
    text_file: str | None = None
    planted_share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, limit_name, limit in (
            ("subscription_size", self.subscription_size, "number_attributes", self.number_attributes),
            ("subscription_size", self.subscription_size, "word_attributes", self.word_attributes),
            ("event_words", self.event_words, "event_size", self.event_size),
            ("event_words", self.event_words, "word_attributes", self.word_attributes),
            (
                "event_size - event_words",
                self.event_size - self.event_words,
                "number_attributes",
                self.number_attributes,
            ),
        ):
            check_limit(name, value, limit_name, limit)


class PrefixDraws(PlantedDraws):
    """Draws the subscriptions and events of a config. Attributes with numbers come first."""

    def __init__(self, config: PrefixesConfig) -> None:
        super().__init__(config, max(config.event_size, config.subscription_size))
        self._config = config
        # All words of some lines, as often as they occur: drawing from them is drawing by frequency.
        source: LineSource
        if config.text_file is None:
            source = MadeText("pages", config.seed, Stream.SUBSCRIPTIONS)
            self._text = source.take(np.arange(1_000)).word
        else:
            source = FileText(config.text_file, "text_file", config.seed)
            self._text = source.take(np.arange(source.count)).word
        self._words = source.words
        self._numbers = Popularity(config.number_attributes, 0)
        self._strings = Popularity(config.word_attributes, 0)

    def domain(self) -> TableDomain:
        """The attributes and values."""
        config = self._config
        names = [f"a{number}" for number in range(config.number_attributes)]
        names += [f"s{number}" for number in range(config.word_attributes)]
        strings = [False] * config.number_attributes + [True] * config.word_attributes
        return TableDomain(names, self._words, strings)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        config, largest = self._config, self._config.subscription_size
        sizes = rng.integers(1, largest, SUBSCRIPTION_BLOCK, endpoint=True)
        used = np.arange(largest) < sizes[:, None]
        like = rng.random(used.shape) < config.like_share
        numbers = self._numbers.draw_distinct(rng, SUBSCRIPTION_BLOCK, largest)
        strings = config.number_attributes + self._strings.draw_distinct(rng, SUBSCRIPTION_BLOCK, largest)
        attribute = np.where(like, strings, numbers)[used].astype(np.int32)
        is_like = like[used]
        count = len(attribute)
        return PredicateArrays(
            ptr=offsets(sizes),
            attribute=attribute,
            operator=np.where(is_like, CODE[Operator.LIKE], CODE[Operator.EQ]).astype(np.uint8),
            literal_ptr=np.arange(count + 1),
            literals=self._values(rng, attribute),
            prefix=np.where(is_like, config.prefix_length, 0).astype(np.uint8),
        )

    def _values(self, rng: np.random.Generator, attribute: I32s) -> I64s:
        """A number or the number of a word, as the attribute needs."""
        numbers = rng.integers(1, self._config.cardinality, attribute.shape, endpoint=True)
        words = self._text[rng.integers(0, len(self._text), attribute.shape)]
        return np.where(attribute < self._config.number_attributes, numbers, words)

    def _drawn_events(self, stream: Stream, block: int) -> EventArrays:
        config, rng = self._config, self._rng(stream, block)
        attribute = np.full((EVENT_BLOCK, self._event_size), -1, np.int32)
        words, size = config.event_words, config.event_size
        if size > words:
            attribute[:, words:size] = self._numbers.draw_distinct(rng, EVENT_BLOCK, size - words)
        if words:
            attribute[:, :words] = config.number_attributes + self._strings.draw_distinct(rng, EVENT_BLOCK, words)
        return EventArrays(attribute, self._values(rng, attribute))
