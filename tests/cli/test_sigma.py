"""``tamis sigma``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tamis.cli.exit_status import FAILED, SKIPPED
from tests.cli.running import run, write, write_jsonl

WHOAMI = r"""
title: Whoami
id: 5d8fd9a0-9fd1-4b2b-8f86-b9aa31f7f1f0
logsource: {product: windows, category: process_creation}
detection:
  selection: {Image|endswith: '\whoami.exe'}
  condition: selection
level: high
tags: [attack.discovery]
"""
KEYWORD = """
title: Keyword
name: keyword
logsource: {product: linux}
detection:
  words: [segfault]
  condition: words
level: low
"""
WRONG = "title: Wrong\nlogsource: {product: linux}\ndetection: {s: {a|huge: 1}, condition: s}\n"
BURST = """
title: Burst
name: burst
correlation: {type: event_count, rules: [keyword], group-by: [host], timespan: 1m, condition: {gte: 2}}
level: critical
"""
FOUND = {
    "rule": "5d8fd9a0-9fd1-4b2b-8f86-b9aa31f7f1f0",
    "title": "Whoami",
    "level": "high",
    "tags": ["attack.discovery"],
}
SOURCE = {"logsource": {"product": "windows", "category": "process_creation"}}
EVENTS = [
    {"Image": "C:\\WHOAMI.exe", **SOURCE},
    {"Image": "C:\\cmd.exe", **SOURCE},
    {"text": "a SegFault at 0", "host": "h", "at": "2026-11-14T10:00:00Z", "logsource.product": "linux"},
    {"text": "a segfault at 1", "host": "h", "at": "2026-11-14T10:00:30Z", "logsource.product": "linux"},
]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    (folder / "linux").mkdir(parents=True)
    (folder / "whoami.yml").write_text(WHOAMI)
    (folder / "linux" / "keyword.yml.gz").write_bytes(gzip.compress(KEYWORD.encode()))
    return folder


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "events.jsonl", EVENTS)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_check(rules: Path) -> None:
    result = run("sigma", "check", rules)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == ["2 rules, 0 correlations, 0 errors", "  levels      high 1, low 1"]
    assert "Image 1" in result.stdout
    assert run("sigma", "check", rules, "--quiet").stdout == ""


def test_check_lists_what_cannot_be_converted(rules: Path) -> None:
    (rules / "wrong.yml").write_text(f"{WHOAMI}---\n{WRONG}")
    result = run("sigma", "check", rules / "wrong.yml", rules / "whoami.yml", "--level", "low")
    assert result.exit_code == FAILED
    first, second, summary, *_ = result.stdout.splitlines()
    assert first.startswith(
        f"{rules}/whoami.yml:2: error: 'Whoami': the id 5d8fd9a0-9fd1-4b2b-8f86-b9aa31f7f1f0 is already"
    )
    assert second == f"{rules}/wrong.yml:13: error: 'Wrong': Unknown modifier 'huge'"
    assert summary == "1 rule, 0 correlations, 2 errors"


@pytest.mark.compiled
def test_match(rules: Path, events: Path) -> None:
    result = run("sigma", "match", rules, events)
    assert result.exit_code == 0
    keyword = {"rule": "keyword", "title": "Keyword", "level": "low", "tags": []}
    assert lines(result.stdout) == [
        {"event": 0, "line": 1, **FOUND},
        {"event": 2, "line": 3, **keyword},
        {"event": 3, "line": 4, **keyword},
    ]
    assert result.stderr.startswith("4 events against 2 rules: 3 matches in ")


@pytest.mark.compiled
def test_match_folders_levels_and_stated_log_sources(rules: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "deep"
    logs.mkdir(parents=True)
    plain = json.dumps({"Image": "x\\whoami.exe", "nr": "e7"}) + "\n"
    (logs / "a.jsonl.gz").write_bytes(gzip.compress(plain.encode()))
    (logs.parent / "b.csv").write_text("Image,nr\nx\\whoami.exe,e8\n")
    (logs / "notes.txt").write_text("no events")
    source = ["--log-source", "product=windows", "--log-source", "category=process_creation"]
    output = tmp_path / "found.jsonl"
    result = run(
        "sigma", "match", rules, logs.parent, *source, "--level", "high", "--event-id", "nr", "-o", output, "-q"
    )
    assert (result.exit_code, result.output) == (0, "")
    assert lines(output.read_text()) == [
        {"event": "e8", "file": str(logs.parent / "b.csv"), "line": 2, **FOUND},
        {"event": "e7", "file": str(logs / "a.jsonl.gz"), "line": 1, **FOUND},
    ]


@pytest.mark.compiled
def test_match_correlates(rules: Path, events: Path) -> None:
    (rules / "burst.yml").write_text(BURST)
    result = run("sigma", "match", rules, events, "--time", "at", "--level", "high")
    assert lines(result.stdout) == [
        {"event": 0, "line": 1, **FOUND},
        {
            "event": 3,
            "line": 4,
            "rule": "burst",
            "title": "Burst",
            "level": "critical",
            "tags": [],
            "group": {"host": "h"},
            "number": 2,
            "since": "2026-11-14T10:00:00Z",
            "until": "2026-11-14T10:00:30Z",
        },
    ]
    untimed = run("sigma", "match", rules, events)
    assert untimed.exit_code == FAILED
    assert (
        untimed.stderr
        == "Error: 'Burst' is about several events, and needs their time: say which attribute has it. Hint: --time FIELD\n"
    )
    missing = run("sigma", "match", rules, events, "--time", "when", "--on-error", "skip")
    assert missing.exit_code == SKIPPED
    assert f"{events}:3: 'when' is missing: correlations leave the event out" in missing.stderr


@pytest.mark.compiled
def test_bad_lines_and_bad_rules(rules: Path, events: Path, tmp_path: Path) -> None:
    write(events, "oops", json.dumps(EVENTS[0]), json.dumps({"Image": ["x", {"y": 1}], "a": 2**70, **SOURCE}))
    stopped = run("sigma", "match", rules, events)
    assert (stopped.exit_code, stopped.stdout) == (FAILED, "")
    assert f"{events}:1: not JSON" in stopped.stderr
    (rules / "wrong.yml").write_text(WRONG)
    errors = tmp_path / "errors.jsonl"
    skipped = run("sigma", "match", rules, events, "--on-error", "skip", "--errors", errors)
    assert skipped.exit_code == SKIPPED
    assert [record["event"] for record in lines(skipped.stdout)] == [1]
    assert [(record["file"], record["line"]) for record in lines(errors.read_text())] == [
        (str(rules / "wrong.yml"), 3),
        (str(events), 1),
    ]


def test_wrong_words(rules: Path, events: Path, tmp_path: Path) -> None:
    for words, message in (
        (("match", rules, tmp_path / "none"), "none: there is no such file"),
        (("match", tmp_path / "none", events), "none: there is no such file"),
        (("match", "-", events), "RULES are a file or a folder, not stdin"),
        (("match", rules, events, "-o", events), "matches need a file of their own"),
        (("match", rules, rules), "the folder has no files of events"),
        (("match", rules, events, "--log-source", "vendor=x"), "'vendor=x' is not product=NAME"),
        (
            ("match", rules, events, "--log-source", "ignore", "--log-source", "product=x"),
            "'ignore' is not product=NAME",
        ),
        (("match", rules, events, "--level", "critical"), "no rule is left to match (0 refused, 2 left out)"),
        (("check", rules, "--pipeline", "none"), "there is no processing pipeline or file 'none'"),
        (("check",), "Missing argument 'RULES...'"),
    ):
        result = run("sigma", *words)
        assert result.exit_code in (FAILED, 2), words
        assert message in result.stderr
