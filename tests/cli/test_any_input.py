"""Whatever a file holds, the command answers with a message and a status."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.running import run, write

# Pieces that lead deeper into the readers than plain random bytes do.
PIECES = st.sampled_from(
    [
        b'{"id": ', b'"expression": ', b'"predicates": ', b"id,expression\n", b'"price < 5"', b'"a = \\ud800"', b"}", b"{",
        b"[", b"]", b'"', b"'", b",", b"\n", b"\r\n", b"1", b"-0.0", b"1e999", b"NaN", b"null", b'["a", "<", 1]', b"\xff",
        b"\xef\xbb\xbf", b"\x00", b"price < 5", b"x IN (1, 2)", b" AND ", b"NOT ", b"--", b"PAR1", b"99999999999999999999",
        b'{"id": 1, "expression": "price < 5"}\n', b'{"price": 1, "tags": ["a", null]}\n',
    ]
)  # fmt: skip
CONTENT = st.lists(PIECES | st.binary(max_size=3), max_size=12).map(b"".join)


@pytest.mark.parametrize("format", ["jsonl", "csv", "text", "parquet"])
@given(content=CONTENT)
def test_any_subscriptions(tmp_path_factory: pytest.TempPathFactory, format: str, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / f"any-{format}"
    path.write_bytes(content)
    assert run("check", path, "--format", format).exit_code in (0, 1)


@pytest.mark.parametrize("format", ["jsonl", "csv"])
@given(content=CONTENT)
def test_any_events(tmp_path_factory: pytest.TempPathFactory, format: str, content: bytes) -> None:
    folder: Path = tmp_path_factory.getbasetemp()
    subscriptions = write(folder / "subscriptions.txt", "price < 5", "tags = 'a'")
    events = folder / f"any.{format}"
    events.write_bytes(content)
    for words in (["match", subscriptions], ["filter", "price < 5"]):
        assert run(*words, events).exit_code in (0, 1)
        skipped = run(*words, events, "--on-error", "skip")
        # A header, or a file that is no text, cannot be skipped.
        whole = skipped.stderr.startswith((f"{events}: ", f"{events}:1: ")) if skipped.exit_code == 1 else False
        assert skipped.exit_code in (0, 3) or whole


@given(expression=CONTENT, event=CONTENT)
def test_any_words(expression: bytes, event: bytes) -> None:
    words = [word.decode(errors="surrogateescape").replace("\0", "") for word in (expression, event)]
    if not words[1].startswith("@") and words[1] != "-":
        assert run("explain", "--", *words).exit_code in (0, 1)
