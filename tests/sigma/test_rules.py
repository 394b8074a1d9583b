"""Files of rules: what is read, what is refused and where, levels, log sources, pipelines, filters."""

# ruff: noqa: E501

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.errors import FileError, OptionError
from tamis.sigma import read_rules
from tests.sigma.reading import matches, read, rule

ID = "5d8fd9a0-9fd1-4b2b-8f86-b9aa31f7f1f0"
OTHER = "0c1b4f3e-62a3-4ae5-86a3-3a1a3b1c5c55"
PLAIN = rule("selection: {a: x}")


def refused(folder: Path, *texts: str, **options: Any) -> list[str]:
    """The errors of a file, without its folder."""
    return [str(error).removeprefix(f"{folder}/") for error in read(folder, *texts, **options).refused]


def test_what_a_rule_has(tmp_path: Path) -> None:
    text = rule(
        "selection: {a: x}",
        title="First",
        more=f"id: {ID}\nlevel: high\ntags: [attack.t1059]\nlogsource: {{product: p}}",
    )
    [found] = read(tmp_path, text, log_sources="match").rules
    assert (found.id, found.title, found.level, found.tags) == (ID, "First", "high", ("attack.t1059",))
    assert (found.path, found.line, found.reported) == (str(tmp_path / "rules.yml"), 1, True)
    assert str(found.expression) == "logsource.product = 'p' AND lower(a) = 'x'"
    assert found.log_source == {"logsource.product": "p"}


def test_the_id_of_a_rule_without_one(tmp_path: Path) -> None:
    found = read(tmp_path, rule("selection: {a: x}", more="name: first\nlogsource: {product: p}"), PLAIN).rules
    assert [each.id for each in found] == ["first", f"{tmp_path / 'rules.yml'}:8"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: x\n  y: 1\n", "rules.yml:2: not YAML: mapping values are not allowed in this context (column 4)"),
        ("title: x\ntitle: y\n", "rules.yml:2: not YAML: the key 'title' is given twice (column 1)"),
        ("a: {b: 1, b: 2}\n", "rules.yml:1: not YAML: the key 'b' is given twice (column 11)"),
        ("- x\n", "rules.yml:1: a rule must be a mapping with title, logsource and detection"),
        ("text\n", "rules.yml:1: a rule must be a mapping with title, logsource and detection"),
        ("title: x\nlogsource: {product: p}\n", "rules.yml:1: 'x': Sigma rule must have a detection definitions"),
        ("title: x\ndetection: {s: {a: 1}, condition: s}\n", "rules.yml:1: 'x': Sigma rule must have a log source"),
        (rule("selection: {a: 1}", more="logsource: {}"), "rules.yml:2: 'rule': Sigma log source can't be empty"),
        (rule("selection: {a: 1}", more="level: loud\nlogsource: {product: p}"), "rules.yml:2: 'rule': 'loud' is not a valid Sigma rule level"),
        (rule("selection: {a: 1}", more="logsource: {product: p}\nid: 5-6"), "rules.yml:3: 'rule': Sigma rule identifier must be an UUID"),
        (rule("selection:\n  a: 1\n  b|huge: 2"), "rules.yml:6: 'rule': Unknown modifier 'huge'"),
        (rule("selection:\n  - a: 1\n  - b|lt: x"), "rules.yml:6: 'rule': Modifier SigmaLessThanModifier incompatible to value type of 'x'"),
        (rule("selection: {a: 1}\nother:\n  c|re: '('"), "rules.yml:6: 'rule': Regular expression '(' is invalid: missing ): ("),
        (rule("selection:\n  c|re: '(?=x)'"), "rules.yml:5: 'rule': Regular expression '(?=x)' is invalid: invalid perl operator: (?="),
        (rule("selection:\n  c|cidr: 10.0.0.1/8"), "rules.yml:5: 'rule': Invalid CIDR expression: 10.0.0.1/8 has host bits set"),
        (rule("selection: {a: 1}", condition="selection and"), "rules.yml:5: 'rule': Expected"),
        (rule("selection: {a: 1}", condition="nothing"), "rules.yml:5: 'rule': Detection 'nothing' not defined in detections"),
        (rule("selection: {a: 1}", condition="1 of s_*"), "rules.yml:5: 'rule': Selector '1 of s_*' doesn't match any detection"),
        (rule("selection: {a: 1}", condition="selection | count() > 5"), "rules.yml:5: 'rule': The pipe syntax"),
        (rule("selection: {a|contains: null}"), "rules.yml:4: 'rule': Modifier SigmaContainsModifier incompatible to value type of 'null'"),
        ("title: f\nlogsource: {product: p}\nfilter:\n  rules: any\n  s: {a: 1}\n  condition: s and t\n", "rules.yml:6: 'f': Detection 't' not defined"),
        (rule("selection: [null]"), "rules.yml:3: 'rule': SigmaNull cannot stand without a field"),
        (rule(f"selection: {{a: {2**70}}}"), "rules.yml:3: 'rule': the integer "),
        ("title: x\nid: 5\nlogsource: {product: p}\n", "rules.yml:1: 'x': pySigma cannot read this (AttributeError: "),
    ],
    ids=lambda value: None if "\n" in value else value.split(": ", 1)[1][:40],
)  # fmt: skip
def test_errors_say_where(text: str, message: str, tmp_path: Path) -> None:
    [found] = refused(tmp_path, text)
    assert found.startswith(message)


LAUGHS = "".join(f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]\n" for level in range(1, 8))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: x\na: &a {b: *a}\n", "Recursive YAML structure is not supported"),
        (f"title: x\nx0: &x0 [1]\n{LAUGHS}", "YAML aliases expand to too many nodes"),
        (rule(f"selection: {'[' * 3000}1{']' * 3000}"), "is nested too deeply"),
        (rule(f"selection: {'{a: ' * 150}1{'}' * 150}"), ""),
    ],
    ids=["itself", "laughs", "deep", "deep detection"],
)
def test_values_that_would_be_walked_for_ever(text: str, message: str, tmp_path: Path) -> None:
    [found] = refused(tmp_path, text)
    assert message in found


def test_an_error_leaves_other_rules_alone(tmp_path: Path) -> None:
    found = read(tmp_path, PLAIN, "title: x\n", "", PLAIN.replace("rule", "last"))
    assert [each.title for each in found.rules] == ["rule", "last"]
    assert [error.line for error in found.refused] == [7]


def test_an_id_belongs_to_the_first_rule(tmp_path: Path) -> None:
    text = rule("selection: {a: x}", more=f"id: {ID}\nlogsource: {{product: p}}")
    found = read(tmp_path, text, text)
    assert len(found.rules) == 1
    assert str(found.refused[0]).endswith(f":8: 'rule': the id {ID} is already that of {tmp_path / 'rules.yml'}:1")


def test_folders_and_packed_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.yml").write_text(PLAIN)
    (tmp_path / "deep" / "b.YAML").write_text(PLAIN)
    (tmp_path / "deep" / "c.yml.gz").write_bytes(gzip.compress(PLAIN.encode()))
    (tmp_path / "notes.txt").write_text("no rule")
    (tmp_path / "broken.yml.gz").write_bytes(gzip.compress(PLAIN.encode())[:20])
    found = read_rules(tmp_path)
    assert [Path(each.path).name for each in found.rules] == ["a.yml", "b.YAML", "c.yml.gz"]
    assert [Path(str(error.path)).name for error in found.refused] == ["broken.yml.gz"]
    assert len(read_rules([tmp_path / "a.yml", tmp_path / "deep"])) == 3


def test_paths_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no such file"):
        read_rules(tmp_path / "none.yml")
    with pytest.raises(FileError, match=r"the folder has no files that end in \.yml"):
        read_rules(tmp_path)
    (tmp_path / "x.yml").write_bytes(b"title: \xff\xff")
    assert [error.line for error in read_rules(tmp_path).refused] == [None]


def test_levels(tmp_path: Path) -> None:
    levels = ("informational", "low", "medium", "high", "critical")
    texts = [
        rule("selection: {a: x}", title=level, more=f"level: {level}\nlogsource: {{product: p}}") for level in levels
    ]
    found = read(tmp_path, *texts, PLAIN, level="high")
    assert [each.title for each in found.rules] == ["high", "critical"]
    assert found.left_out == 4
    assert len(read(tmp_path, *texts, PLAIN)) == 6
    with pytest.raises(
        OptionError, match="a level must be one of informational, low, medium, high, critical, not 'loud'"
    ):
        read(tmp_path, PLAIN, level="loud")


def test_log_sources(tmp_path: Path) -> None:
    windows = rule(
        "selection: {a: x}", title="windows", more="logsource: {product: windows, category: c, definition: d}"
    )
    linux = rule("selection: {a: x}", title="linux", more="logsource: {product: linux, service: s}")
    asked = read(tmp_path, windows, linux, log_sources="match")
    assert [str(each.expression) for each in asked.rules] == [
        "logsource.product = 'windows' AND logsource.category = 'c' AND lower(a) = 'x'",
        "logsource.product = 'linux' AND logsource.service = 's' AND lower(a) = 'x'",
    ]
    assert matches(asked, {"a": "X", "logsource": {"product": "windows", "category": "c"}}) == ["windows"]
    assert matches(asked, {"a": "X", "logsource.product": "windows"}) == []
    ignored = read(tmp_path, windows, linux, log_sources="ignore")
    assert matches(ignored, {"a": "X"}) == ["windows", "linux"]
    stated = read(tmp_path, windows, linux, log_sources={"product": "windows"})
    assert [str(each.expression) for each in stated.rules] == ["logsource.category = 'c' AND lower(a) = 'x'"]
    assert stated.left_out == 1


@pytest.mark.parametrize("wrong", ["all", {"vendor": "x"}, None, 5])
def test_log_sources_that_are_wrong(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="log source"):
        read(tmp_path, PLAIN, log_sources=wrong)


def test_keywords_are_looked_for_only_where_the_log_source_fits(tmp_path: Path) -> None:
    found = read(tmp_path, rule("selection: [foo]", more="logsource: {product: linux}"), log_sources="match")
    other = {"a": "foo", "logsource": {"product": "windows"}}
    assert found.deriver.added(other) is other
    for source in (
        {"logsource": {"product": "linux"}},
        {"logsource.product": "linux"},
        {"logsource.product": ["linux"]},
    ):
        assert "sigma.values" in found.deriver.added({"a": "foo", **source})
        assert matches(found, {"a": "foo", **source}) == ["rule"]


def test_a_field_for_keywords(tmp_path: Path) -> None:
    found = read(tmp_path, rule("selection: [foo]"), keyword_field="Message")
    assert not found.deriver
    assert matches(found, {"Message": "a FOO"}) == ["rule"]
    assert matches(found, {"a": "foo"}) == []


def test_documents_that_build_on_others(tmp_path: Path) -> None:
    general = "action: global\ntitle: both\nlogsource: {product: p}\n"
    one = "detection: {s: {a: x}, condition: s}\n"
    two = "detection: {s: {a: y}, condition: s}\n"
    found = read(tmp_path, general, one, two, "action: repeat\ndetection: {s: {b: z}}\n", "action: reset\n", one)
    assert [str(each.expression) for each in found.rules] == [
        "lower(a) = 'x'",
        "lower(a) = 'y'",
        "lower(a) = 'y' AND lower(b) = 'z'",
    ]
    assert [error.line for error in found.refused] == [14]


def test_filters_are_added_to_rules(tmp_path: Path) -> None:
    first = rule("selection: {a: x}", title="first", more=f"id: {ID}\nlogsource: {{product: p}}")
    second = rule("selection: {a: x}", title="second", more=f"id: {OTHER}\nlogsource: {{product: p}}")
    exception = f"title: f\nlogsource: {{product: p}}\nfilter:\n  rules: ['{ID}']\n  known: {{user: bob}}\n  condition: not known\n"
    found = read(tmp_path, first, second, exception)
    assert matches(found, {"a": "x", "user": "Bob"}) == ["second"]
    assert matches(found, {"a": "x"}) == ["first", "second"]


PIPELINE = """
name: ours
priority: 10
vars: {admins: [ann, 'b*']}
transformations:
  - {id: names, type: field_name_mapping, mapping: {a: our.a}}
  - {id: places, type: value_placeholders, include: [admins]}
  - {id: lists, type: query_expression_placeholders, include: [servers], expression: "{field} IN ('srv1', 'srv2')"}
"""


def test_pipelines(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(PIPELINE)
    texts = [
        rule("selection: {a: x}"),
        rule("selection: {u|expand: '%admins%'}"),
        rule("selection: {s-1|expand: '%servers%'}"),
    ]
    found = read(tmp_path, *texts, pipelines=[str(tmp_path / "ours.yaml")])
    assert [str(each.expression) for each in found.rules] == [
        "lower(our.a) = 'x'",
        "lower(u) = 'ann' OR u ILIKE 'b%'",
        "\"s-1\" IN ('srv1', 'srv2')",
    ]


def test_placeholders_without_a_pipeline(tmp_path: Path) -> None:
    [message] = refused(tmp_path, rule("selection: {u|expand: '%admins%'}"))
    assert message == (
        "rules.yml:3: 'rule': no processing pipeline says what %admins% stands for. "
        "Hint: a pipeline with `value_placeholders` and `vars`"
    )


def test_pipelines_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no processing pipeline or file 'none'"):
        read(tmp_path, PLAIN, pipelines=["none"])
    for text in ("- x\n", "a: [\n"):
        (tmp_path / "wrong.yaml").write_text(text)
        with pytest.raises((FileError, OptionError)):
            read(tmp_path, PLAIN, pipelines=[str(tmp_path / "wrong.yaml")])
    (tmp_path / "other.yaml").write_text("name: o\npriority: 1\nallowed_backends: [splunk]\ntransformations: []\n")
    with pytest.raises(OptionError, match="not allowed for backend 'tamis'"):
        read(tmp_path, PLAIN, pipelines=[str(tmp_path / "other.yaml")])


def test_long_lists_stay_short(tmp_path: Path) -> None:
    names = [f"name{number}.exe" for number in range(300)]
    [found] = read(tmp_path, rule(f"selection: {{a: {names}, b: [1, 2, 'x']}}")).rules
    assert str(found.expression).startswith("lower(a) IN ('name0.exe', 'name1.exe', ")
    assert str(found.expression).endswith(") AND (b IN (1, '1', 2, '2') OR lower(b) = 'x')")


def test_a_matcher_of_the_rules(tmp_path: Path) -> None:
    matcher = read(tmp_path, rule("selection: {a: x}", more="name: first\nlogsource: {product: p}")).matcher()
    assert isinstance(matcher, tamis.Matcher)
    assert len(matcher) == 1
