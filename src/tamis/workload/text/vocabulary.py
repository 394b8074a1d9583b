"""Words made of syllables, and some of random letters.

No word is meant to be one of a language, but letters and pairs of letters are about as frequent.

The words of a vocabulary are in order of popularity. Popular words are short, as in natural languages.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tamis.kernels.numbers import I64s
from tamis.workload.zipf import Popularity

_ONSETS = (
    "t", "s", "r", "n", "l", "d", "m", "c", "p", "b", "", "f", "h", "v", "w", "g", "st", "tr", "pr", "ch", "k", "th", "j", "br",
    "gr", "cl", "pl", "cr", "fl", "qu", "z", "bl", "dr", "sp", "fr", "gl", "sl", "str", "wh", "sc", "ph", "y", "sk", "sm", "x",
    "sn", "tw", "kn", "wr",
)  # fmt: skip
_VOWELS = ("e", "a", "i", "o", "u", "io", "ea", "ou", "ai", "ee", "y", "ie", "au", "oo", "oi", "ue", "ei", "oa")
_CODAS = (
    "", "n", "r", "l", "s", "t", "m", "d", "nd", "st", "ng", "c", "rs", "nce", "p", "rt", "g", "ll", "ss", "rm", "b", "lt", "k",
    "mp", "rd", "f", "th", "v", "z",
)  # fmt: skip
_STEEPNESS = {_ONSETS: 0.9, _VOWELS: 1.4, _CODAS: 1.4}
"""Parts of a syllable -> the exponent of Zipf's law by which they are drawn. Most syllables have a single vowel and no coda."""

_SYLLABLES = ((30, (0.9, 0.1, 0.0, 0.0)), (1_000, (0.3, 0.6, 0.1, 0.0)), (10**9, (0.05, 0.45, 0.4, 0.1)))
"""Ranks below the first number have one to four syllables with these probabilities."""

_NAME_SYLLABLES = (0.4, 0.55, 0.05, 0.0)
"""The same for names of people."""

_ODD_SHARE, _ODD_FIRST = 0.3, 1_000
"""The share of words of random letters, from this rank on: codes, misspelt words and foreign names begin with any letters."""

_ODD_LENGTHS = 3, 10
"""The shortest and the longest of these words."""

_MAX_SYLLABLES = 4


@lru_cache(8)
def made_words(count: int, seed: int, *, names: bool = False) -> tuple[str, ...]:
    """`count` different words of at least two letters, in order of popularity.

    A smaller vocabulary is the beginning of a larger one. With `names`, all words are about as long as names of people.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    words: dict[str, None] = {}
    while len(words) < count:
        # Always as many, so that the first words do not depend on `count`.
        rank = len(words) + np.arange(4_096)
        odd = (rng.random(len(rank)) < _ODD_SHARE) & (rank >= _ODD_FIRST) & (not names)
        drawn = zip(odd.tolist(), _odd(rng, len(rank)), _drawn(rng, _syllables(rng, rank, names)), strict=True)
        for is_odd, odd_word, word in drawn:
            if len(word) > 1:
                words[odd_word if is_odd else word] = None
    return tuple(words)[:count]


def _odd(rng: np.random.Generator, count: int) -> list[str]:
    """Words of random letters."""
    letters = (ord("a") + rng.integers(0, 26, (count, _ODD_LENGTHS[1]), np.uint8)).tobytes().decode("ascii")
    sizes = rng.integers(*_ODD_LENGTHS, count, endpoint=True).tolist()
    return [letters[place * _ODD_LENGTHS[1] : place * _ODD_LENGTHS[1] + size] for place, size in enumerate(sizes)]


def _syllables(rng: np.random.Generator, rank: I64s, names: bool) -> I64s:
    """The numbers of syllables of words of these ranks."""
    syllables = np.empty(len(rank), np.int64)
    below = 0
    for limit, shares in _SYLLABLES:
        here = (rank >= below) & (rank < limit)
        law = _NAME_SYLLABLES if names else shares
        syllables[here] = 1 + rng.choice(_MAX_SYLLABLES, int(np.count_nonzero(here)), p=law)
        below = limit
    return syllables


def _drawn(rng: np.random.Generator, syllables: I64s) -> list[str]:
    """A word for each number of syllables. Words may repeat."""
    count = len(syllables)
    parts = [
        [table[number] for number in Popularity(len(table), alpha).draw(rng, (count * _MAX_SYLLABLES,)).tolist()]
        for table, alpha in _STEEPNESS.items()
    ]
    pieces = ["".join(part) for part in zip(*parts, strict=True)]
    return [
        "".join(pieces[place * _MAX_SYLLABLES : place * _MAX_SYLLABLES + size])
        for place, size in enumerate(syllables.tolist())
    ]
