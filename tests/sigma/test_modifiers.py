"""What rules mean, by the specification of Sigma: events that match and events that do not."""

# ruff: noqa: E501

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sigma.modifiers import modifier_mapping

from tamis.sigma import Detector, RuleSet
from tests.sigma.reading import matches, read, rule

Event = dict[str, Any]


class Case(NamedTuple):
    name: str
    detection: str
    yes: list[Event]
    no: list[Event]
    condition: str = "selection"


def of(name: str, *values: Any) -> list[Event]:
    """Events with one attribute each."""
    return [{name: value} for value in values]


WIDE_CMD = "c\0m\0d\0"

CASES = [
    Case("equality has no case", "selection: {a: Cmd.EXE}", of("a", "cmd.exe", "CMD.EXE", ["x", "Cmd.exe"]), of("a", "cmd.ex", "xcmd.exe", 1, None, [])),
    Case("letters beyond ASCII", "selection: {a: ÉCOLE}", of("a", "école", "École"), of("a", "ecole")),
    Case("an empty string", "selection: {a: ''}", of("a", ""), [{}, {"a": None}, {"a": " "}]),
    Case("a list is OR", "selection: {a: [x, y, 3]}", of("a", "X", "y", 3, "3"), of("a", "z", 4, "33")),
    Case("a map is AND", "selection: {a: x, b: y}", [{"a": "X", "b": "Y"}], [{"a": "x"}, {"a": "x", "b": "z"}]),
    Case("a list of maps is OR", "selection:\n  - {a: x, b: y}\n  - {c: z}", [{"a": "x", "b": "y"}, {"c": "z"}], [{"a": "x"}, {"b": "y"}]),
    Case("wildcards", "selection: {a: 'x*y?z'}", of("a", "XyAz", "x--y-z", "x\nyyz"), of("a", "xyz", "xyaz-", "axyaz")),
    Case("escaped wildcards", r"selection: {a: 'x\*y\?'}", of("a", "x*y?", "X*Y?"), of("a", "x-y?", "x*yz", r"x\*y\?")),
    Case("backslashes", r"selection: {a: 'C:\win\*'}", of("a", "C:\\win*"), of("a", "C:\\win\\a")),
    Case("a backslash before a wildcard", r"selection: {a: 'C:\win\\*'}", of("a", "c:\\win\\", "C:\\Win\\cmd"), of("a", "C:\\win")),
    Case("backslashes before letters", r"selection: {a: '\\server\share'}", of("a", "\\server\\share"), of("a", "server\\share")),
    Case("signs of LIKE are letters", "selection: {a: '*100%_!*'}", of("a", "a 100%_! b"), of("a", "a 100x_! b", "a 100%x! b", "100%_")),
    Case("only a wildcard: present", "selection: {a: '*'}", of("a", "", "x", 5, False), [{}, {"a": None}]),
    Case("a number and its text", "selection: {a: 4624}", of("a", 4624, 4624.0, "4624", ["x", 4624]), of("a", 4625, "04624", "4624.0", True)),
    Case("the text of a number", "selection: {a: '4'}", of("a", 4, "4", 4.0), of("a", "04", 5, True)),
    Case("a decimal number", "selection: {a: 0.5}", of("a", 0.5, "0.5"), of("a", ".5", 5)),
    Case("a text that is no number as JSON writes it", "selection: {a: '007'}", of("a", "007"), of("a", 7, "7")),
    Case("a boolean and its text", "selection: {a: true}", of("a", True, "true", "True"), of("a", False, 1, "1", "yes")),
    Case("the text of a boolean", "selection: {a: 'False'}", of("a", False, "false"), of("a", True, 0, None)),
    Case("null: missing", "selection: {a: null}", [{}, {"a": None}, {"a": []}], of("a", "", 0, "null")),
    Case("nested fields", "selection: {user.name: bob}", [{"user": {"name": "Bob"}}, {"user.name": "bob"}, {"user": [{"name": "x"}, {"name": "bob"}]}], [{"user": "bob"}, {"name": "bob"}]),
    Case("names with signs", "selection: {c-uri: /x, '@t': 1}", [{"c-uri": "/X", "@t": 1}], [{"c": "/x", "@t": 1}]),
    Case("contains", "selection: {a|contains: Foo}", of("a", "xfoox", "FOO", ["x", "a foo"]), of("a", "fo o", 5, None)),
    Case("startswith", "selection: {a|startswith: Foo}", of("a", "foox", "FOO"), of("a", "xfoo")),
    Case("endswith", r"selection: {a|endswith: '\cmd.exe'}", of("a", "C:\\CMD.exe"), of("a", "cmd.exe", "\\cmd.exe ")),
    Case("all", "selection: {a|contains|all: [x, y]}", of("a", "yx", "X y"), of("a", "x", "y", "")),
    Case("all of wildcards", "selection: {a|all: ['x*', '*y']}", of("a", "x..y", "xy"), of("a", "x", "y", "yx")),
    Case("cased", "selection: {a|cased: Foo}", of("a", "Foo"), of("a", "foo", "FOO")),
    Case("cased parts", "selection: {a|contains|cased: Foo}", of("a", "a Foo"), of("a", "a foo")),
    Case("cased numbers are texts", "selection: {a|cased: '4'}", of("a", "4"), of("a", 4)),
    Case("neq", "selection: {a|neq: x}", [{"a": "y"}, {"a": 1}, {}], of("a", "x", "X", ["x", "y"])),
    Case("neq of a list", "selection: {a|neq: [x, 1]}", of("a", "y", 2), of("a", "x", 1, "1")),
    Case("exists", "selection: {a|exists: true}", of("a", "", 0, False), [{}, {"b": 1}]),
    Case("exists not", "selection: {a|exists: false}", [{}, {"b": 1}], of("a", "", 0)),
    Case("lt", "selection: {a|lt: 5}", of("a", 4, 4.9, -1), of("a", 5, 6, "4", None)),
    Case("lte", "selection: {a|lte: 5}", of("a", 5, 4), of("a", 5.1)),
    Case("gt", "selection: {a|gt: 5}", of("a", 5.1, 2**60), of("a", 5, "6")),
    Case("gte", "selection: {a|gte: 5}", of("a", 5, 9), of("a", 4)),
    Case("re", r"selection: {a|re: '^x[0-9]+\.y'}", of("a", "x12.yz"), of("a", "X12.y", "ax1.y", "x12y", 12)),
    Case("re is found anywhere", "selection: {a|re: 'b+'}", of("a", "abbc"), of("a", "aBc")),
    Case("re without case", "selection: {a|re|i: 'b+c$'}", of("a", "aBBC"), of("a", "abd")),
    Case("re, ignorecase", "selection: {a|re|ignorecase: '^b'}", of("a", "Bx"), of("a", "xb")),
    Case("re over lines", "selection: {a|re|m: '^b$'}", of("a", "a\nb\nc"), of("a", "abc")),
    Case("re, multiline", "selection: {a|re|multiline: '^b$'}", of("a", "a\nb"), of("a", "ab")),
    Case("re, the dot meets newlines", "selection: {a|re|s: 'a.b'}", of("a", "a\nb"), of("a", "ab")),
    Case("re, dotall", "selection: {a|re|dotall: 'a.b'}", of("a", "a\nb"), of("a", "a")),
    Case("re, the dot meets no newline", "selection: {a|re: 'a.b'}", of("a", "a b"), of("a", "a\nb")),
    Case("re of a list", "selection: {a|re: ['^x', 'y$']}", of("a", "xa", "ay"), of("a", "axya")),
    Case("cidr", "selection: {a|cidr: 10.0.0.0/8}", of("a", "10.1.2.3", "::ffff:10.0.0.1"), of("a", "11.0.0.1", "10", "x", None)),
    Case("cidr of version 6", "selection: {a|cidr: ['2001:db8::/32', 192.168.1.1/32]}", of("a", "2001:DB8::1", "192.168.1.1"), of("a", "2001:db9::1", "192.168.1.2")),
    Case("windash", "selection: {a|windash|contains: ' -f'}", of("a", "x -F", "x /f", "x \u2013f", "x \u2014f", "x \u2015f"), of("a", "x +f", "-f")),
    Case("windash and all", "selection: {a|contains|all|windash: [' -a', ' /b']}", of("a", "x /a -b", "x -a /b"), of("a", "x -a", "x -b")),
    Case("base64", "selection: {a|base64|contains: foobar}", of("a", "x Zm9vYmFy x"), of("a", "foobar", "Zm9vYmF")),
    Case("base64offset", "selection: {a|base64offset|contains: foobar}", of("a", "Zm9vYmFy", "IGZvb2Jhcg==", "ICBmb29iYXI="), of("a", "foobar")),
    Case("wide", "selection: {a|wide: cmd}", of("a", WIDE_CMD), of("a", "cmd")),
    Case("utf16le", "selection: {a|utf16le|contains: cmd}", of("a", f"x{WIDE_CMD}"), of("a", "cmd")),
    Case("utf16be", "selection: {a|utf16be: cmd}", of("a", "\0c\0m\0d"), of("a", "cmd", WIDE_CMD)),
    Case("utf16", "selection: {a|utf16: cmd}", of("a", "\ufeff" + WIDE_CMD), of("a", WIDE_CMD)),
    Case("wide and base64offset", "selection: {a|wide|base64offset|contains: IEX}", of("a", "SQBFAFgA"), of("a", "SUVY")),
    Case("fieldref", "selection: {a|fieldref: b}", [{"a": "x", "b": "X"}, {"a": 4, "b": "4"}, {"a": ["x", "y"], "b": "y"}], [{"a": "x", "b": "y"}, {"a": "x"}, {}]),
    Case("fieldref that begins", "selection: {a|fieldref|startswith: b.c}", [{"a": "xyz", "b": {"c": "XY"}}], [{"a": "yx", "b": {"c": "x"}}]),
    Case("fieldref that ends", "selection: {a|fieldref|endswith: b}", [{"a": "xyz", "b": "yz"}], [{"a": "xyz", "b": "xy"}]),
    Case("fieldref inside", "selection: {a|fieldref|contains: b}", [{"a": "xyz", "b": "y"}], [{"a": "y", "b": "xyz"}]),
    Case("fieldref that differs", "selection: {a|fieldref|neq: b}", [{"a": "x", "b": "y"}, {"a": "x"}], [{"a": "x", "b": "x"}]),
    Case("minute", "selection: {a|minute: 5}", of("a", "2026-11-14T10:05:00Z"), of("a", "2026-11-14T05:10:05", 5, "x")),
    Case("hour", "selection: {a|hour: [3, 4]}", of("a", "2026-11-14T03:05:00+02:00", "2026-11-14 04:00:00.123"), of("a", "2026-11-14T01:05:00")),
    Case("day", "selection: {a|day: 14}", of("a", "2026-11-14"), of("a", "2026-11-15")),
    Case("week", "selection: {a|week: 46}", of("a", "2026-11-14"), of("a", "2026-11-16")),
    Case("month", "selection: {a|month: 11}", of("a", "2026-11-14"), of("a", "2026-10-14")),
    Case("year", "selection: {a|year: 2026}", of("a", "2026-11-14"), of("a", "2025-11-14")),
    Case("keywords", "selection: [Foo, 'a*b', 12]", [{"x": "a foo"}, {"x": {"y": ["1", "xA-Bx"]}}, {"x": 3124}], [{"foo": "x"}, {"x": "b a"}, {}]),
    Case("all keywords", "selection:\n  '|all': [foo, bar]", [{"x": "foo", "y": "Bar"}, {"x": "barfoo"}], [{"x": "foo"}]),
    Case("a keyword of wildcards", "selection: ['f?o']", [{"x": "a fXo b"}], [{"x": "fo"}]),
    Case("a regular expression as keyword", "selection:\n  '|re': '^fo+$'", [{"x": "foo"}], [{"x": "a foo"}]),
    Case("windash as keyword", "selection:\n  '|windash': [' -f']", [{"x": "a /f"}], [{"x": "-f"}]),
    Case("not, of a missing field", "selection: {a: x}\nfilter: {b: y}", [{"a": "x"}, {"a": "x", "b": 1}, {"a": "x", "b": "z"}], [{"a": "x", "b": "Y"}], "selection and not filter"),
    Case("not, of several fields", "selection: {a: x}\nfilter: {b: y, c: z}", [{"a": "x", "b": "y"}, {"a": "x", "c": "z"}], [{"a": "x", "b": "y", "c": "z"}], "selection and not filter"),
    Case("not not", "selection: {a: x}", of("a", "x"), [{}, {"a": "y"}], "not (not selection)"),
    Case("1 of a pattern", "s_a: {a: x}\ns_b: {b: y}\nother: {c: z}", [{"a": "x"}, {"b": "y"}], [{"c": "z"}], "1 of s_*"),
    Case("all of a pattern", "s_a: {a: x}\ns_b: {b: y}\nother: {c: z}", [{"a": "x", "b": "y"}], [{"a": "x"}, {"b": "y"}], "all of s_*"),
    Case("1 of them", "p: {a: x}\nq: {b: y}\n_r: {c: z}", [{"a": "x"}, {"b": "y"}], [{"c": "z"}], "1 of them"),
    Case("all of them", "p: {a: x}\nq: {b: y}\n_r: {c: z}", [{"a": "x", "b": "y"}], [{"a": "x"}], "all of them"),
    Case("not 1 of", "p: {a: x}\nf_a: {b: y}\nf_b: {c: z}", [{"a": "x"}], [{"a": "x", "c": "z"}, {"a": "x", "b": "y"}], "p and not 1 of f_*"),
    Case("and before or", "p: {a: x}\nq: {b: y}\nr: {c: z}", [{"a": "x"}, {"b": "y", "c": "z"}], [{"b": "y"}, {"c": "z"}], "p or q and r"),
    Case("parentheses", "p: {a: x}\nq: {b: y}\nr: {c: z}", [{"a": "x", "c": "z"}], [{"a": "x"}, {"c": "z"}], "(p or q) and r"),
    Case("several conditions are OR", "p: {a: x}\nq: {b: y}", [{"a": "x"}, {"b": "y"}], [{}], "[p, q]"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_meaning(case: Case, tmp_path: Path) -> None:
    rules = read(tmp_path, rule(case.detection, condition=case.condition))
    assert not rules.refused
    assert case.yes, case.no
    for event in case.yes:
        assert matches(rules, event) == ["rule"], (event, rules.rules[0].expression)
    for event in case.no:
        assert matches(rules, event) == [], (event, rules.rules[0].expression)


@pytest.fixture(scope="module")
def all_rules(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    texts = [rule(case.detection, title=case.name, condition=case.condition) for case in CASES]
    return read(tmp_path_factory.mktemp("all"), *texts)


@pytest.mark.compiled
def test_a_detector_finds_what_the_evaluator_says(all_rules: RuleSet) -> None:
    events = [event for case in CASES for event in (*case.yes, *case.no)]
    found = Detector(all_rules).match(events)
    for number, event in enumerate(events):
        assert sorted(each.title for row, each in found if row == number) == sorted(matches(all_rules, event)), event


def test_every_modifier_has_a_case() -> None:
    tried = {
        modifier
        for case in CASES
        for key in re.findall(r"\|([a-z0-9|]+)", case.detection)
        for modifier in key.split("|")
    }
    placeholders = {"expand"}  # in test_rules.py: they need a pipeline
    assert tried >= modifier_mapping.keys() - placeholders
