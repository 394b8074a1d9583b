"""Strings as 3-grams (BE-Tree 7.1): ``string`` becomes ``st = 'r' AND tr = 'i' AND ri = 'n' AND in = 'g'``.

The paper takes authors and titles of DBLP. Here a line of any text file is an expression, or a made name or title. In style
grams, subscriptions and events are lines, with ``=`` only. In style derived-grams, lines are joined to events of one size, and
subscriptions are derived from these as in BE-Gen.

    line            string thread       words; letters a to z, without accents
    attributes      st tr ri in | th hr re ea      pairs of letters: 26 * 26, and one more, 677 as in the paper
    values           r  i  n  g |  r  e  a  d      the letter after the pair: a cardinality of 26

Our reading: a pair that occurs again in the same line, with the same letter or another, is left out, so that an event has one
value per attribute and a subscription can match. The paper does not describe the 677th attribute. Here it is `short`, for lines
whose words all have fewer than three letters; its value is the first letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np

from tamis.errors import FileError
from tamis.kernels.numbers import Bools
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets, runs
from tamis.workload.config import BaseEvents, OperatorClass, check_derived_size
from tamis.workload.derived import DerivedDraws
from tamis.workload.domain import TableDomain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws, Stream
from tamis.workload.implied import CODE
from tamis.workload.parameters import Config
from tamis.workload.planting import Pairs, first_pairs, padded
from tamis.workload.text import FileText, Lines, LineSource, MadeText

Text = Literal["authors", "titles"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORT = len(LETTERS) ** 2
GRAM_NAMES = [*(first + second for first in LETTERS for second in LETTERS), "short"]
_DIMENSIONS = len(GRAM_NAMES)

_FIRST_LETTER = ord("a")

_MADE_WIDTH = 256
"""The most pairs of an event that is a made line. Titles have 35 on average, and one in a million more than 100."""


@dataclass(frozen=True, kw_only=True)
class GramsConfig(Config):
    """The parameters of a workload of lines as 3-grams. Two equal configs with equal files give the same workload.

    Attributes
    ----------
    style : "grams"
    subscriptions : int
        The number of subscriptions: different lines. A smaller workload is the beginning of a larger one.
    text : "authors" or "titles"
        The made lines, if there is no file: 8 or 35 predicates on average.
    text_file : path or None
        A text file in UTF-8 with one string per line. Equal lines count once. It needs more lines than there are subscriptions:
        the remaining lines become other events.
    events, other_events : int
        The numbers of events that `write` writes. Event i is the line of subscription i, so it matches. Other events are other
        lines. None for `events`: 1,000.
    seed : int
        Decides which lines are made, or the order of the lines of the file.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type or is outside its range.
    FileError
        By `generate`: if the file cannot be read, or has too few lines with letters.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("grams",), "text": get_args(Text)}
    files: ClassVar[tuple[str, ...]] = ("text_file",)

    style: Literal["grams"] = "grams"
    subscriptions: int = 760_000
    text: Text = "authors"
    text_file: str | None = None


@dataclass(frozen=True, kw_only=True)
class DerivedGramsConfig(BaseEvents, Config):
    """The parameters of subscriptions that are derived from lines as 3-grams.

    Attributes
    ----------
    style : "derived-grams"
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    text, text_file
        The lines, as in style grams. A file may have fewer lines than there are subscriptions.
    subscription_size : float
        The mean number of predicates of a subscription.
    event_size : int
        The number of attributes of an event: lines are joined until there are enough, and the rest is cut off.
    match_probability, equality_ratio, operator_class, range_share
        As in style be-gen. Values are the numbers of letters, 1 for a: some indexes hold ranges of numbers only.
    events, other_events, seed : int
        As in style be-gen.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type, is outside its range, or contradicts another.
    FileError
        By `generate`: if the file cannot be read, or has no lines with letters.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "style": ("derived-grams",),
        "text": get_args(Text),
        "operator_class": get_args(OperatorClass),
    }
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {"event_size": (1, 500)}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {
        "subscription_size": (1, 500),
        "match_probability": (1e-9, 1),
        "equality_ratio": (0, 1),
        "range_share": (0, 0.5),
    }
    files: ClassVar[tuple[str, ...]] = ("text_file",)

    style: Literal["derived-grams"] = "derived-grams"
    subscriptions: int = 400_000
    text: Text = "authors"
    text_file: str | None = None
    subscription_size: float = 8
    event_size: int = 16
    match_probability: float = 0.01
    equality_ratio: float = 0.3
    operator_class: OperatorClass = "med"
    range_share: float = 0.12

    def __post_init__(self) -> None:
        super().__post_init__()
        check_derived_size(self.subscription_size, self.event_size)

    @property
    def cardinality(self) -> int:
        """The number of values of an attribute: the letters."""
        return len(LETTERS)

    @property
    def event_count(self) -> int:
        """The number of events that the workload offers by default."""
        return self.base_events if self.events is None else self.events


class GramDomain(TableDomain):
    """The pairs of letters, and `short`, with letters as values."""

    def __init__(self) -> None:
        super().__init__(GRAM_NAMES, ["", *LETTERS])


class GramTable:
    """The 3-grams of the words of a text."""

    def __init__(self, words: Sequence[str]) -> None:
        longest = max(len(word) for word in (*words, "abc"))
        letters = np.array([word.encode() for word in words], f"S{longest}").view(np.uint8).reshape(len(words), longest)
        number = letters.astype(np.int64) - _FIRST_LETTER
        complete = letters[:, 2:] > 0
        self._sizes = np.count_nonzero(complete, axis=1)
        self._starts = offsets(self._sizes)[:-1]
        self._attribute = (len(LETTERS) * number[:, :-2] + number[:, 1:-1])[complete]
        self._value = 1 + number[:, 2:][complete]
        self._first_letter = 1 + number[:, 0]

    def grams(self, lines: Lines) -> Pairs:
        """The 3-grams of lines. The first one of each attribute of a line counts."""
        sizes = self._sizes[lines.word]
        places = runs(self._starts[lines.word], sizes)
        owner = np.repeat(lines.owner, sizes)
        attribute, value = self._attribute[places], self._value[places]
        # A line without any becomes its first letter.
        none = np.setdiff1d(np.arange(len(lines.ptr) - 1), owner)
        owner = np.concatenate([owner, none])
        order = np.argsort(owner, kind="stable")
        attribute = np.concatenate([attribute, np.full(len(none), _SHORT)])[order]
        value = np.concatenate([value, self._first_letter[lines.word[lines.ptr[none]]]])[order]
        return first_pairs(owner[order], attribute, value, len(lines.ptr) - 1)


def letter_words(line: str) -> list[str]:
    """The words of a line: runs of letters from a to z, after accents and case are dropped."""
    plain = unicodedata.normalize("NFKD", line).casefold()
    return re.findall("[a-z]+", "".join(letter for letter in plain if not unicodedata.combining(letter)))


def _source(config: GramsConfig | DerivedGramsConfig, stream: Stream) -> LineSource:
    if config.text_file is None:
        return MadeText(config.text, config.seed, stream)
    return FileText(config.text_file, "text_file", config.seed, letter_words, distinct=True)


def _table(source: LineSource) -> GramTable:
    return _made_table(source.words) if isinstance(source.words, tuple) else GramTable(source.words)


@lru_cache(2)
def _made_table(words: tuple[str, ...]) -> GramTable:
    """The table of a made vocabulary, which all seeds share."""
    return GramTable(words)


class GramDraws(Draws):
    """Draws the workload of a config of style grams."""

    def __init__(self, config: GramsConfig) -> None:
        super().__init__(config.seed, config.subscriptions, _MADE_WIDTH if config.text_file is None else _DIMENSIONS)
        self._config = config
        self._lines = _source(config, Stream.SUBSCRIPTIONS)
        self._table = _table(self._lines)
        # Where the other events begin among the lines.
        self._other_first, self._other_count = 0, 10**12
        if isinstance(self._lines, FileText):
            self._other_first, self._other_count = config.subscriptions, self._lines.count - config.subscriptions
            self._other_lines: LineSource = self._lines
            if self._other_count < 1:
                raise FileError(
                    f"the text (text_file) has {self._lines.count:,} different lines with letters. "
                    f"{config.subscriptions:,} subscriptions need more, since other events are other lines. "
                    "Hint: choose fewer subscriptions",
                    path=str(config.text_file),
                )
        else:
            self._other_lines = _source(config, Stream.OTHER_EVENTS)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        grams = self._table.grams(self._lines.take(first + np.arange(SUBSCRIPTION_BLOCK)))
        count = len(grams.value)
        return PredicateArrays(
            ptr=grams.ptr,
            attribute=grams.attribute,
            operator=np.full(count, CODE[Operator.EQ], np.uint8),
            literal_ptr=np.arange(count + 1),
            literals=grams.value,
            prefix=np.zeros(count, np.uint8),
        )

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        rows = block * EVENT_BLOCK + np.arange(EVENT_BLOCK)
        if stream == Stream.EVENTS:
            lines = self._lines.take(rows % self._config.subscriptions)
        else:
            lines = self._other_lines.take(self._other_first + rows % self._other_count)
        return padded(self._table.grams(lines), self._event_size)


class DerivedGramDraws(DerivedDraws):
    """Draws the workload of a config of style derived-grams."""

    def __init__(self, config: DerivedGramsConfig) -> None:
        super().__init__(config)
        self._config = config
        self._lines = {stream: _source(config, stream) for stream in (Stream.EVENTS, Stream.OTHER_EVENTS)}
        self._table = _table(self._lines[Stream.EVENTS])
        sample = self._table.grams(self._lines[Stream.EVENTS].take(np.arange(1_000)))
        # Enough lines that seldom too few attributes remain: attributes repeat in the lines that are joined.
        self._joined = 2 + int(2.5 * config.event_size / np.diff(sample.ptr).mean())

    def _event_block(self, stream: Stream, block: int) -> EventArrays:
        rows = block * EVENT_BLOCK * self._joined + np.arange(EVENT_BLOCK * self._joined)
        if stream == Stream.OTHER_EVENTS and self._config.text_file is not None:
            rows = rows[::-1] * -1 - 1  # from the other end of the file
        lines = self._lines[stream].take(rows)
        whole = Lines(lines.ptr[:: self._joined], lines.word)
        return padded(self._table.grams(whole), self._config.event_size)

    def _keep(self, rng: np.random.Generator, base: EventArrays) -> Bools:
        kept = super()._keep(rng, base) & (base.attribute >= 0)
        kept[:, 0] |= ~kept.any(axis=1)
        return kept
