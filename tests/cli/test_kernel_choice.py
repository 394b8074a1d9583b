"""Kernels are loaded when they pay: at once for a long file, and for a stream when it has been long."""

from __future__ import annotations

from tamis.cli.kernel_choice import KernelChoice

LINES = b'{"a": 5}\n' * 2_000


def test_a_short_file_needs_no_kernels() -> None:
    choice = KernelChoice()
    assert choice.alone(LINES, 0) >= 2_000
    assert not choice.is_made


def test_a_long_file_gets_kernels_behind_its_first_lines() -> None:
    choice = KernelChoice(first=500)
    assert choice.alone(LINES, 1 << 30) == 500
    assert choice.is_made
    assert choice.alone(LINES, 0) == 0


def test_the_first_lines_may_come_in_many_blocks() -> None:
    choice = KernelChoice(first=2_500, loading=0)
    assert choice.alone(LINES, None) >= 2_000
    assert 400 < choice.alone(LINES, None) < 600
    assert choice.alone(LINES, None) == 0


def test_a_stream_gets_kernels_when_they_would_have_paid() -> None:
    choice = KernelChoice()
    blocks = 0
    while choice.alone(LINES, None):
        blocks += 1
    assert 10 < blocks < 1_000
