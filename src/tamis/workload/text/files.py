"""Lines of a text file: UTF-8, one name, title, query or document per line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from tamis.errors import FileError
from tamis.kernels.numbers import I64s
from tamis.workload.arrays import offsets
from tamis.workload.text.lines import Lines, LineSource

_WORD = re.compile(r"[^\W_]+")


def read_text(path: str, what: str) -> str:
    """The text of a file. `what` names the parameter that has its path."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise FileError(f"cannot read the text ({what}): {error.strerror or error}", path=path) from None
    except UnicodeDecodeError as error:
        raise FileError(
            f"the text ({what}) must be UTF-8, but byte {error.start:,} is not. Hint: convert the file", path=path
        ) from None
    except ValueError as error:
        raise FileError(f"cannot read the text ({what}): {error}", path=repr(path)) from None
    if not text:
        raise FileError(f"the text ({what}) is empty. Hint: give a file with one entry per line", path=path)
    return text


def words_of(line: str) -> list[str]:
    """The words of a line: letters and digits of any language, in lower case."""
    return _WORD.findall(line.lower())


class FileText(LineSource):
    """The lines of a file that have words, in an order that the seed decides. After the last line comes the first again.

    Parameters
    ----------
    path, what : str
        The file, and the parameter that has its path.
    seed : int
        Decides the order of the lines.
    split : function
        From a line to its words.
    distinct : bool
        Whether equal lines count once.
    most : int or None
        The number of different words to keep: the most frequent ones. None: all.
    """

    def __init__(
        self,
        path: str,
        what: str,
        seed: int,
        split: Callable[[str], list[str]] = words_of,
        *,
        distinct: bool = False,
        most: int | None = None,
    ) -> None:
        found: Iterable[tuple[str, ...]] = (tuple(split(line)) for line in read_text(path, what).splitlines())
        lines = [words for words in found if words]
        if distinct:
            lines = list(dict.fromkeys(lines))
        if not lines:
            raise FileError(f"the text ({what}) has no words", path=path)
        # The most frequent words have the lowest numbers, as in made text.
        counts = Counter(word for words in lines for word in words)
        self.words = [word for word, _ in counts.most_common(most)]
        number = {word: place for place, word in enumerate(self.words)}
        if len(number) < len(counts):
            lines = [kept for words in lines if (kept := tuple(word for word in words if word in number))]
        flat = [number[word] for words in lines for word in words]
        whole = Lines(offsets(np.array([len(words) for words in lines])), np.array(flat, np.int64))
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(lines))
        self.count = len(lines)
        self.longest = int(np.diff(whole.ptr).max())
        self._lines = whole.take(order)

    def take(self, rows: I64s) -> Lines:
        return self._lines.take(rows % self.count)
