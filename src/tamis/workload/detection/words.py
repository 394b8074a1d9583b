"""Invented words. Events are made of familiar words. Rules look for odd words, which events seldom have.

All words are made of the same syllables and have six letters. In texts, characters other than letters separate words. So no odd
word contains a familiar word, and no familiar word an odd one, although they look alike.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import NamedTuple

_SYLLABLES = """
bal bem bor cal cas cor dal den dor fal fen fir gal gen gor hal hem jas jor kal ken kor lan lem lor lur mar mel mon nal ner
nor pal pel por ral ren rim sal sen sor tal tel tor val ven vor wan wes zel
"""

_FAMILIAR_EVERY = 6
"""One word in this many is familiar."""

_SCATTER = 1_000_003
"""A prime. Its multiples visit all words in a scattered order, so words of similar rank have different spellings."""


class Word(NamedTuple):
    """A word, and the same word as a name, with a capital letter."""

    plain: str
    name: str


class Words:
    """Words by popularity. The first of n words has the probability ``(1 / n) ** 0.5``, and later words have less."""

    def __init__(self, words: list[str]) -> None:
        scattered = [words[place * _SCATTER % len(words)] for place in range(len(words))]
        self.words = [Word(word, word.title()) for word in scattered]

    def draw(self, rng: Random) -> Word:
        return self.words[int(len(self.words) * rng.random() ** 2)]


def _words(familiar: bool) -> Words:
    syllables = _SYLLABLES.split()
    pairs = product(enumerate(syllables), repeat=2)
    return Words([x + y for (i, x), (j, y) in pairs if i != j and ((i + j) % _FAMILIAR_EVERY == 0) is familiar])


FAMILIAR, ODD = _words(True), _words(False)
