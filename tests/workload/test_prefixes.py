"""Prefixes of words: shares and lengths, planted events, files of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.errors import FileError
from tamis.workload import OPERATORS, PrefixesConfig, WorkloadError, generate
from tests.workload.satisfaction import event_dicts, matches, plain


@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_shares_and_attributes(share: float) -> None:
    made = generate(PrefixesConfig(subscriptions=10_000, like_share=share))
    arrays = made.arrays()
    like = arrays.operator == OPERATORS.index("like")
    assert like.mean() == pytest.approx(share, abs=0.01)
    assert (arrays.operator[~like] == OPERATORS.index("=")).all()
    assert np.array_equal(like, arrays.attribute >= 10_000)
    assert np.array_equal(arrays.prefix, np.where(like, 3, 0))
    sizes = np.bincount(np.diff(arrays.ptr))
    assert (sizes[0], len(sizes)) == (0, 7)
    assert len(made.attribute_names) == 10_100
    events = made.other_event_arrays(100)
    assert ((events.attribute >= 10_000).sum(axis=1) == 10).all()
    assert ((events.attribute >= 0).sum(axis=1) == 60).all()


@pytest.mark.parametrize("length", [1, 2, 5, 100])
def test_prefixes_have_their_length(length: int) -> None:
    made = generate(PrefixesConfig(subscriptions=200, like_share=1, prefix_length=length))
    literals = [plain(each["values"][0]) for row in made.subscriptions()["predicates"].to_pylist() for each in row]
    sizes = {len(text) - 1 for text in literals}
    assert max(sizes) == length or length == 100
    assert (sizes == {length}) == (length <= 2)
    assert all(text.endswith("%") and text[:-1].isalnum() for text in literals)


@pytest.mark.parametrize("changes", [{}, {"event_words": 0, "event_size": 5}, {"event_words": 60, "like_share": 1}])
def test_planted_events_match(changes: dict[str, Any]) -> None:
    made = generate(PrefixesConfig(subscriptions=300, **changes))
    matcher = tamis.Matcher()
    matcher.add_table(made.subscriptions())
    found = matcher.match_batch(made.events(310)).to_pylist()
    assert {(row, row % 300) for row in range(310)} <= {(match["event"], match["subscription"]) for match in found}
    rows = made.subscriptions()["predicates"].to_pylist()
    assert all(matches(rows[row], event) for row, event in enumerate(event_dicts(made.events(40))))


def test_words_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Äpfel äpfel sea_moon äpfel", encoding="utf-8")
    config = PrefixesConfig(subscriptions=2_000, like_share=1, subscription_size=1, text_file=str(tmp_path / "text"))
    rows = generate(config).subscriptions()["predicates"].to_pylist()
    texts = [plain(row[0]["values"][0]) for row in rows]
    assert set(texts) == {"äpf%", "sea%", "moo%"}
    assert texts.count("äpf%") / 2_000 == pytest.approx(0.6, abs=0.04)
    with pytest.raises(FileError, match="cannot read the text"):
        generate(PrefixesConfig(text_file=str(tmp_path / "none")))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"subscription_size": 101}, "subscription_size must not be above word_attributes: 101 is above 100"),
        ({"number_attributes": 5}, "subscription_size must not be above number_attributes: 6 is above 5"),
        ({"event_words": 61}, "event_words must not be above event_size: 61 is above 60"),
        ({"event_words": 101, "event_size": 200}, "event_words must not be above word_attributes"),
        ({"number_attributes": 40}, "event_size - event_words must not be above number_attributes: 50 is above 40"),
        ({"prefix_length": 0}, "prefix_length must be from 1"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        PrefixesConfig(**parameters)
