"""Made lines: authors' names, titles, search queries, short messages, longer documents.

Words are drawn by Zipf's law from a vocabulary of syllables, independently of each other. Lines come in blocks. The seed of a
block comes from the config's seed, the purpose of the text and the number of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tamis.kernels.numbers import I64s
from tamis.workload.arrays import offsets, runs
from tamis.workload.text.lines import Lines, LineSource, first_places
from tamis.workload.text.vocabulary import made_words
from tamis.workload.zipf import Popularity

LINE_BLOCK = 10_000
"""Lines drawn at a time. Of longer documents, a tenth of it: only events are made of them."""

_KEPT_BLOCKS = 4
"""Blocks of lines kept for reuse: up to 15 MB each, for the longest documents."""


class Kind(NamedTuple):
    """How lines of one kind are made.

    The number of words of a line is 1 plus a Poisson number, or a Gamma number with shape 4, which varies more. `mean_words`
    counts repeated words too, but a line of a kind with `distinct` has each word once.
    """

    mean_words: float
    most_words: int
    gamma: bool
    distinct: bool
    alpha: float
    shift: int


KINDS: dict[str, Kind] = {
    "titles": Kind(mean_words=10.0, most_words=40, gamma=False, distinct=False, alpha=1.0, shift=3),
    "queries": Kind(mean_words=2.8, most_words=10, gamma=False, distinct=True, alpha=0.9, shift=10),
    "messages": Kind(mean_words=5.4, most_words=30, gamma=False, distinct=True, alpha=0.9, shift=10),
    "pages": Kind(mean_words=106, most_words=500, gamma=True, distinct=False, alpha=0.9, shift=10),
    "articles": Kind(mean_words=130, most_words=500, gamma=True, distinct=False, alpha=0.9, shift=10),
}
"""Kinds of lines. Authors are made in another way."""

_FIRST_NAMES, _SURNAMES = 5_000, 100_000
_MIDDLE_SHARE = 0.1
"""The share of authors with two first names."""

_NAMES_SEED, _WORDS_SEED = 1, 2
"""The vocabularies do not depend on the config: attributes stay the same from seed to seed."""


@lru_cache(1)
def _all_names() -> tuple[str, ...]:
    """First names and then surnames, in one vocabulary."""
    return made_words(_FIRST_NAMES, _NAMES_SEED, names=True) + made_words(_SURNAMES, _WORDS_SEED, names=True)


class MadeText(LineSource):
    """Lines of one kind, as many as somebody asks for.

    `purpose` tells apart the texts of one seed: queries and documents, lines for subscriptions and for other events.
    """

    def __init__(self, kind: str, seed: int, purpose: int, vocabulary: int = 50_000) -> None:
        self._kind = KINDS[kind] if kind != "authors" else None
        self._key = seed, purpose
        self._size = LINE_BLOCK // 10 if self._kind is not None and self._kind.gamma else LINE_BLOCK
        self.words: Sequence[str]
        if self._kind is None:
            self.words = _all_names()
            self.longest = 3
            self._first_names, self._surnames = Popularity(_FIRST_NAMES, 0.8, 5), Popularity(_SURNAMES, 0.5, 20)
        else:
            self.words = made_words(vocabulary, _WORDS_SEED)
            self.longest = self._kind.most_words
            self._popularity = Popularity(vocabulary, self._kind.alpha, self._kind.shift)
        self._block = lru_cache(_KEPT_BLOCKS)(self._draw)

    def take(self, rows: I64s) -> Lines:
        blocks, within = np.divmod(rows, self._size)
        numbers, place = np.unique(blocks, return_inverse=True)
        if len(numbers) == 1:
            return self._block(int(numbers[0])).take(within)
        drawn = [self._block(number) for number in numbers.tolist()]
        starts = offsets(np.array([len(lines.word) for lines in drawn]))
        first = np.concatenate([lines.ptr[:-1] + start for lines, start in zip(drawn, starts[:-1], strict=True)])
        sizes = np.concatenate([np.diff(lines.ptr) for lines in drawn])
        wanted = place.reshape(rows.shape) * self._size + within
        words = np.concatenate([lines.word for lines in drawn])
        return Lines(offsets(sizes[wanted]), words[runs(first[wanted], sizes[wanted])])

    def _draw(self, block: int) -> Lines:
        seed, purpose = self._key
        # Two numbers more than the keys of `Draws`, so that no key is the same.
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, block, 0, 0)))
        return self._names(rng) if self._kind is None else self._sentences(rng, self._kind)

    def _names(self, rng: np.random.Generator) -> Lines:
        sizes = 2 + (rng.random(LINE_BLOCK) < _MIDDLE_SHARE)
        ptr = offsets(sizes)
        word = self._first_names.draw(rng, (int(ptr[-1]),))
        word[ptr[1:] - 1] = _FIRST_NAMES + self._surnames.draw(rng, (LINE_BLOCK,))
        return Lines(ptr, word)

    def _sentences(self, rng: np.random.Generator, kind: Kind) -> Lines:
        if kind.gamma:
            sizes = np.rint(rng.gamma(4, kind.mean_words / 4, self._size)).astype(np.int64)
        else:
            sizes = 1 + rng.poisson(kind.mean_words - 1, self._size)
        ptr = offsets(np.clip(sizes, 1, kind.most_words))
        lines = Lines(ptr, self._popularity.draw(rng, (int(ptr[-1]),)))
        return lines.kept(first_places(lines.owner, lines.word, len(self.words))) if kind.distinct else lines
