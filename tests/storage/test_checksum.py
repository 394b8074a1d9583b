"""The checksum is XXH64, and sees what disks do to files."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from tamis.storage.checksum import Checksum, checksum
from tests.storage.naive import xxh64

PAGE = 4096


def random_bytes(size: int, seed: int = 1) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


@pytest.mark.parametrize(
    ("data", "published"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_naive_checksum_gives_published_values(data: bytes, published: int) -> None:
    assert xxh64(data) == published


@pytest.mark.kernels
@pytest.mark.parametrize("size", [0, 32, 64, 96, 128, 1024, 4096])
def test_it_equals_the_naive_checksum(size: int) -> None:
    data = random_bytes(size)
    assert checksum(data) == xxh64(data.tobytes())
    assert checksum(np.full(size, 255, np.uint8)) == xxh64(b"\xff" * size)
    assert checksum(np.zeros(size, np.uint8)) == xxh64(bytes(size))


@pytest.mark.kernels
def test_pieces_make_the_whole() -> None:
    data = random_bytes(1024)
    for cuts in ([], [32], [64, 64, 512], list(range(0, 1024, 32))):
        total = Checksum()
        for first, last in zip([0, *cuts], [*cuts, 1024], strict=True):
            total.update(data[first:last])
        assert total.value() == checksum(data)


@pytest.mark.kernels
@pytest.mark.parametrize("offset", [1, 3, 8, 63])
def test_bytes_may_lie_anywhere_in_memory(offset: int) -> None:
    data = random_bytes(512 + 64)[offset : offset + 512]
    assert checksum(data) == xxh64(data.tobytes())


def test_bytes_stay_writable() -> None:
    data = random_bytes(64)
    checksum(data)
    data[0] = 1


@pytest.mark.parametrize("data", [random_bytes(512), np.zeros(512, np.uint8)], ids=["random", "zeros"])
def test_every_flipped_bit_is_seen(data: npt.NDArray[np.uint8]) -> None:
    sound = checksum(data)
    seen = set()
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        seen.add(checksum(data))
        data[bit // 8] ^= 1 << bit % 8
    assert sound not in seen
    assert len(seen) == 8 * len(data)


def test_every_pair_of_flipped_signs_is_seen() -> None:
    data = random_bytes(512)
    sound = checksum(data)
    for i in range(7, len(data), 8):
        for j in range(i + 8, len(data), 8):
            data[[i, j]] ^= 0x80
            assert checksum(data) != sound
            data[[i, j]] ^= 0x80


def test_zeros_of_another_length_have_another_checksum() -> None:
    sums = {checksum(np.zeros(64 * lines, np.uint8)) for lines in range(1000)}
    assert len(sums) == 1000


@pytest.mark.parametrize("unit", [1, 8, 32, 64, 512, PAGE])
def test_swapped_zeroed_and_repeated_blocks_are_seen(unit: int) -> None:
    data = random_bytes(16 * PAGE)
    sound = checksum(data)
    draw = random.Random(2)
    for _ in range(100):
        left, right = draw.sample(range(len(data) // unit), 2)
        a, b = slice(left * unit, (left + 1) * unit), slice(right * unit, (right + 1) * unit)
        if (data[a] == data[b]).all() or not data[a].any():
            continue
        swapped, zeroed, repeated = data.copy(), data.copy(), data.copy()
        swapped[a], swapped[b] = data[b], data[a]
        zeroed[a] = 0
        repeated[a] = data[b]
        assert sound not in {checksum(swapped), checksum(zeroed), checksum(repeated)}
