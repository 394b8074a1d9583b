"""Text made of syllables has natural word frequencies; files are read as they are, and bad ones are refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tamis.errors import FileError
from tamis.workload.text import KINDS, FileText, Lines, LineSource, MadeText
from tamis.workload.text.made import LINE_BLOCK
from tamis.workload.text.vocabulary import made_words

MADE = [*KINDS, "authors"]


def sentences(source: LineSource, rows: list[int]) -> list[str]:
    lines = source.take(np.array(rows))
    return [
        " ".join(source.words[number] for number in lines.word[lines.ptr[row] : lines.ptr[row + 1]])
        for row in range(len(rows))
    ]


def test_words_are_different_and_pronounceable() -> None:
    words = made_words(20_000, 2)
    assert len(set(words)) == 20_000
    assert words[:500] == made_words(500, 2)
    assert all(word.isalpha() and word.isascii() and word.islower() for word in words)
    lengths = [len(word) for word in words]
    assert np.mean(lengths[:30]) < np.mean(lengths[:1_000]) < np.mean(lengths) < 9
    # 26 letters and most pairs of letters occur.
    assert len(set("".join(words))) >= 24
    assert len({first + second for word in words for first, second in pairwise(word)}) > 400


@pytest.mark.parametrize("kind", MADE)
def test_lines_are_the_same_wherever_they_are_asked_for(kind: str) -> None:
    source = MadeText(kind, seed=1, purpose=5)
    some = [3, 0, LINE_BLOCK + 4, 3, LINE_BLOCK - 1]
    together = sentences(source, some)
    assert together == [sentences(MadeText(kind, 1, 5), [row])[0] for row in some]
    assert together[0] == together[3]
    assert sentences(MadeText(kind, 2, 5), some) != together
    assert sentences(MadeText(kind, 1, 6), some) != together


@pytest.mark.parametrize(("kind", "mean"), [("authors", 2.1), ("queries", 2.8), ("messages", 5.4), ("titles", 10)])
def test_sizes(kind: str, mean: float) -> None:
    sizes = np.diff(MadeText(kind, 1, 0).take(np.arange(LINE_BLOCK)).ptr)
    assert sizes.mean() == pytest.approx(mean, rel=0.02)
    assert sizes.min() >= 1


def test_words_follow_zipf() -> None:
    lines = MadeText("titles", 1, 0).take(np.arange(LINE_BLOCK))
    counts = np.bincount(lines.word)
    assert counts[0] / counts[27] == pytest.approx(10, rel=0.15)  # (27 + 3) / (0 + 3)
    assert np.count_nonzero(counts) > 10_000
    assert np.count_nonzero(counts == 1) > np.count_nonzero(counts) / 3


@pytest.mark.parametrize("kind", ["queries", "messages"])
def test_short_lines_have_each_word_once(kind: str) -> None:
    lines = MadeText(kind, 1, 0).take(np.arange(5_000))
    pairs = np.column_stack([lines.owner, lines.word])
    assert len(np.unique(pairs, axis=0)) == len(pairs)


def test_lines_by_place() -> None:
    lines = Lines(np.array([0, 2, 2, 5]), np.array([7, 8, 1, 2, 3]))
    assert lines.owner.tolist() == [0, 0, 2, 2, 2]
    taken = lines.take(np.array([2, 1, 0, 2]))
    assert taken.ptr.tolist() == [0, 3, 3, 5, 8]
    assert taken.word.tolist() == [1, 2, 3, 7, 8, 1, 2, 3]
    kept = lines.kept(np.array([1, 4]))
    assert (kept.ptr.tolist(), kept.word.tolist()) == ([0, 1, 1, 2], [8, 3])


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("The sea, the SEA!\n\n---\nmoon_1 été\nthe sea the sea\n", encoding="utf-8")
    source = FileText(str(tmp_path / "lines"), "text_file", seed=1)
    assert source.count == 3
    assert sorted(sentences(source, [0, 1, 2])) == ["moon 1 été", "the sea the sea", "the sea the sea"]
    assert sentences(source, [3, 5]) == sentences(source, [0, 2])
    assert source.words[:2] == ["the", "sea"]
    assert FileText(str(tmp_path / "lines"), "text_file", seed=1, distinct=True).count == 2


def test_the_seed_decides_the_order_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("\n".join(f"line{number}" for number in range(50)))
    orders = [sentences(FileText(str(tmp_path / "lines"), "text_file", seed), list(range(50))) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"cannot read the text \(text_file\): No such file or directory"),
        (b"", r"the text \(text_file\) is empty. Hint: give a file with one entry per line"),
        (b"abc\xff", r"the text \(text_file\) must be UTF-8, but byte 3 is not. Hint: convert the file"),
        (b"--\n..\n", r"the text \(text_file\) has no words"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "lines"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        FileText(str(path), "text_file", 1)
    assert caught.value.path == str(path)


def test_an_impossible_path() -> None:
    with pytest.raises(FileError, match=r"cannot read the text \(text_file\): embedded null"):
        FileText("a\0b", "text_file", 1)
