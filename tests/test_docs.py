"""The documentation tells the truth: its code runs, its tables hold, its links lead somewhere.

- A ``python`` block runs, after those before it on the page. An expression that stands alone has its value behind it as a
  comment; what the block prints, or the error it ends with, is the ``text`` block that follows.
- A ``console`` block is run by bash in a folder that the page has for itself: what follows a line ``$ command`` is what the
  command says. A block that names a file (``json alerts.jsonl``) puts it there. After a change of the commands,
  ``TAMIS_UPDATE_DOCS=1 pytest tests/test_docs.py`` writes what they say now into the pages.
- The rows of some tables are checked too, known by the names of their columns.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import date, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import tamis
from tamis.cli import exit_status
from tamis.language.event import MAX_NESTING
from tamis.language.expression import MAX_DEPTH
from tamis.language.normal import CLAUSE_LIMIT
from tamis.papers.interface import Capabilities, Index
from tamis.workload import PRESETS
from tests.forked_commands import command as forked_command
from tests.markdown import ROOT, Block, Page, Row, pages

PAGES = {page.name: page for page in pages()}
LANGUAGE = PAGES["docs/language.md"]
TRUTHS = {"TRUE": True, "FALSE": False, "UNKNOWN": None}
NAMES = {
    **{name: getattr(tamis, name) for name in ("Interval", "attr", "exists", "history")},
    "date": date,
    "datetime": datetime,
}

each_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


def of_rows(*columns: str) -> pytest.MarkDecorator:
    """A test for every row of the tables of the language's page that have these columns."""
    return pytest.mark.parametrize("row", LANGUAGE.rows(*columns), ids=lambda row: next(iter(row.values())))


# -- code


@each_page
def test_python_blocks(page: Page) -> None:
    namespace: dict[str, Any] = {}
    for block in page.of_language("python"):
        if block.file:
            continue  # It needs more than Python; other tests run it.
        assert run(page, block, namespace) == page.output_of(block), f"{page.name}:{block.line}"


def run(page: Page, block: Block, namespace: dict[str, Any]) -> str:
    """What a block of code prints, with the error it ends with as Python shows it."""
    comments = comments_of(block.text)
    printed = io.StringIO()
    with redirect_stdout(printed):
        try:
            for node in ast.parse(block.text).body:
                if isinstance(node, ast.Expr):
                    value = eval(compile(ast.Expression(node.value), page.name, "eval"), namespace)
                    place = f"{page.name}:{block.line + node.lineno - 1}"
                    assert repr(value) == comments.get(node.end_lineno, "None"), place
                else:
                    exec(compile(ast.Module([node], []), page.name, "exec"), namespace)
        except tamis.TamisError as error:
            print(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
    return printed.getvalue().rstrip("\n")


def comments_of(code: str) -> dict[int | None, str]:
    """The comments by line."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {token.start[0]: token.string.removeprefix("# ") for token in tokens if token.type == tokenize.COMMENT}


@pytest.mark.parametrize(
    "path",
    [path for path in sorted((ROOT / "src").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")],
    ids=lambda path: path.relative_to(ROOT / "src").as_posix(),
)
def test_examples_in_docstrings(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


# -- commands


@each_page
def test_console_blocks(page: Page, shell: Shell) -> None:
    text = page.text
    for block in page.blocks:
        if block.file:
            shell.write(block.file, block.text)
        if block.language == "console":
            text = text.replace(block.text, answered(block.text, shell))
    if text != page.text and os.environ.get("TAMIS_UPDATE_DOCS"):
        page.path.write_text(text, encoding="utf-8")
    else:
        assert text == page.text, "TAMIS_UPDATE_DOCS=1 writes what commands say now into the page"


USUAL_PORT = "8750"
"""The port of ``tamis serve`` in the pages. Tests take a free one instead."""


class Shell:
    """Runs commands in a folder. `programs` has `tamis`. A service runs until the end of the page."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._service: subprocess.Popen[str] | None = None
        self._port = USUAL_PORT
        self._folder = folder / "here"
        self._folder.mkdir()
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONUTF8": "1",
            "COLUMNS": "100",
        }

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text + "\n", encoding="utf-8")

    def run(self, command: str) -> str:
        """What a command shows on a terminal."""
        if command.startswith("tamis serve ") and "--check" not in command:
            return self._serve(command)
        if "curl " in command and shutil.which("curl") is None:
            pytest.skip("needs curl")
        return self._run(command.replace(f":{USUAL_PORT}", f":{self._port}")).replace(
            f":{self._port}", f":{USUAL_PORT}"
        )

    def _serve(self, command: str) -> str:
        """The first line of a service, which comes when it is ready."""
        self._service = subprocess.Popen(
            ["bash", "-c", f"exec '{sys.executable}' -m {command} --port 0 --log error"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self._service.stdout is not None
        line = self._service.stdout.readline().rstrip("\n")
        self._port = line.rpartition(":")[2]
        return line.replace(f":{self._port}", f":{USUAL_PORT}")

    def close(self) -> None:
        """End the service."""
        if self._service is not None:
            self._service.terminate()
            self._service.communicate()

    def _run(self, command: str) -> str:
        answer = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return answer.stdout.rstrip("\n")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the command `tamis`, which is this one."""
    with forked_command(tmp_path_factory.mktemp("programs")) as path:
        yield path.parent


@pytest.fixture
def shell(tmp_path: Path, programs: Path) -> Iterator[Shell]:
    found = Shell(tmp_path, programs)
    yield found
    found.close()


def answered(session: str, shell: Shell) -> str:
    """A session with the answers that commands give now; one that differs in measured figures only stays as it is."""
    parts = []
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = part.rstrip("\n").partition("\n")
        found = shell.run(command)
        answer = shown if without_figures(found) == without_figures(shown) else found
        parts.append(f"$ {command}\n{answer}" if answer else f"$ {command}")
    return "\n".join(parts)


def without_figures(text: str) -> str:
    """Times, rates and sizes differ from run to run."""
    return re.sub(r"[\d.,]+ (s|ms|MB|events/s)\b", r"# \1", text)


# -- tables


@of_rows("expression", "event", "result")
def test_results(row: Row) -> None:
    check_result(row, [])


@of_rows("expression", "earlier events", "event", "result")
def test_results_with_earlier_events(row: Row) -> None:
    check_result(row, eval(row["earlier events"], dict(NAMES)))


def check_result(row: Row, history: list[dict[str, Any]]) -> None:
    """The evaluator says what the row says, and so does a matcher."""
    expression, event = tamis.parse(row["expression"]), eval(row["event"], dict(NAMES))
    assert tamis.evaluate(expression, event, history) is TRUTHS[row["result"]]
    if not expression.needs_history():
        matcher = tamis.Matcher()
        matcher.add("it", expression)
        assert matcher.match(event) == (["it"] if row["result"] == "TRUE" else [])


@of_rows("a", "b", "a AND b", "a OR b", "NOT a")
def test_truth_table(row: Row) -> None:
    event = {name: TRUTHS[row[name]] for name in ("a", "b")}
    for text in ("a AND b", "a OR b", "NOT a"):
        assert tamis.evaluate(tamis.parse(text), event) is TRUTHS[row[text]]


@of_rows("SQL", "Python", "JSON")
def test_three_ways_make_one_expression(row: Row) -> None:
    expression = tamis.parse(row["SQL"])
    assert eval(row["Python"], dict(NAMES)) == expression
    assert tamis.from_json(json.loads(row["JSON"])) == expression


@of_rows("text", "the error says")
def test_refusals(row: Row) -> None:
    with pytest.raises(tamis.ParseError) as refusal:
        tamis.parse(row["text"])
    assert refusal.value.reason.startswith(row["the error says"])


def test_tables_are_there() -> None:
    assert len(LANGUAGE.rows("expression", "event", "result")) > 40
    assert len(LANGUAGE.rows("expression", "earlier events", "event", "result")) > 5
    assert len(LANGUAGE.rows("SQL", "Python", "JSON")) > 20
    assert len(LANGUAGE.rows("a", "b")) == 6
    assert len(LANGUAGE.rows("text", "the error says")) > 10


# -- facts


def test_limits() -> None:
    limits = {row["what"]: row["limit"] for row in LANGUAGE.rows("what", "limit")}
    assert limits["nesting of an expression"].startswith(f"{MAX_DEPTH} levels")
    assert limits["nesting of an event"].startswith(f"{MAX_NESTING} levels")
    assert limits["JSON form of an expression"].startswith(f"{CLAUSE_LIMIT:,} clauses")


def test_the_oldest_python() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = settings["project"]["requires-python"].removeprefix(">=")
    for name in ("README.md", "docs/operations.md"):
        assert f"Python {oldest} or newer" in PAGES[name].text


def test_every_preset_is_listed() -> None:
    assert {row["preset"] for row in PAGES["docs/cli.md"].rows("preset")} == set(PRESETS)


def test_every_exit_status_is_listed() -> None:
    known = {value for value in vars(exit_status).values() if isinstance(value, int)}
    assert {int(row["status"]) for row in PAGES["docs/cli.md"].rows("status")} == known | {0, 2}


def test_every_index_has_its_page_and_is_listed() -> None:
    listed = [re.findall(r"`(.*)`", row["index"])[0] for row in PAGES["docs/indexes.md"].rows("index", "idea", "from")]
    assert sorted(listed) == sorted(tamis.indexes())
    for name in listed:
        assert f"docs/indexes/{name}.md" in PAGES


def test_the_interface_of_indexes() -> None:
    methods = {row["method"].partition("(")[0] for row in PAGES["docs/indexes.md"].rows("method")}
    assert methods == Index.__abstractmethods__
    assert {row["capability"] for row in PAGES["docs/indexes.md"].rows("capability")} == set(Capabilities().to_dict())


def test_every_package_is_described() -> None:
    packages = {f"tamis.{module.name}" for module in pkgutil.iter_modules(tamis.__path__) if module.ispkg}
    assert {row["package"] for row in PAGES["docs/architecture.md"].rows("package")} == packages


def test_every_figure_of_a_matcher_is_described() -> None:
    told = re.findall(r"\w+", " ".join(row["key"] for row in PAGES["docs/python.md"].rows("key")))
    assert {*told, "index", "index_stats"} == set(tamis.Matcher().stats())


def test_every_public_name_is_mentioned() -> None:
    text = "\n".join(page.text for page in PAGES.values())
    names = [name for name in tamis.__all__ if not name.startswith("__")]
    members = {name: getattr(tamis.Matcher, name) for name in dir(tamis.Matcher) if not name.startswith("_")}
    methods = [f"{name}(" if callable(member) else f".{name}" for name, member in members.items()]
    assert [name for name in names + methods if name not in text] == []


def test_the_tree_of_errors() -> None:
    tree = dedent((tamis.errors.__doc__ or "").split("\n\n")[1])
    assert tree in [block.text for block in PAGES["docs/python.md"].of_language("text")]


def test_every_page_is_reached_from_the_readme() -> None:
    # The benchmarks are made by a command and need not be there; indexes and experiments have lists of their own.
    listed = {f"docs/{link}" for name in ("indexes", "experiments") for link in PAGES[f"docs/{name}.md"].links()}
    assert set(PAGES) - {"README.md", "docs/benchmarks.md"} <= set(PAGES["README.md"].links()) | listed


# -- form


@each_page
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links():
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path) if path else page.path
        assert target.exists(), link
        if anchor:
            assert anchor in Page(target.resolve()).anchors(), link


@each_page
def test_make_targets_exist(page: Page) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    mentioned = re.findall(r"(?:^|`)make ([a-z-]+)", page.text, re.MULTILINE)
    assert set(mentioned) <= targets


@pytest.mark.parametrize(
    "path", sorted({*ROOT.glob("*.md"), *(page.path for page in PAGES.values())}), ids=lambda path: path.name
)
def test_no_path_of_a_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.:/~-])/(?:data|home|mnt|opt|root|srv|tmp|usr|Users|var|work)\b\S*", text) == []
