"""The layout of the code: sizes of files, functions and kernels, arrays of kernels, and the page that describes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tamis"
CODE = [*SOURCE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
FILE_LINES, FUNCTION_LINES, KERNEL_LINES, PARAMETERS = 500, 80, 60, 8

NUMBERED = {
    ("storage/checksum.py", "_take_in"): "four lanes, which have no other names",
    ("encoding/events/one_event.py", "unpack_event"): "the bounds of the only event",
    ("encoding/expressions/plain_row.py", "plain_conjunction"): "the bounds of the only row",
    ("engine/layout/pairs.py", "_enter_pairs"): "the masks of the two predicates of a pair",
    ("papers/ps_tree/elements.py", "write_elements"): "the first two of many elements",
}
"""Kernels that may take elements of an array by a number other than 0, with the reason."""

WORDS = frozenset(
    {
        "kernels/bits.py",
        "kernels/hashing.py",
        "engine/layout/aspects.py",
        "engine/layout/lookup.py",
        "engine/layout/record_header.py",
        "engine/layout/record_words.py",
    }
)
"""The modules that declare words: they say which bits of a number mean what, and give them names."""
SHIFTED = {
    ("engine/layout/runs.py", "_side"): "the number of bits of a width",
    ("kernels/sorting.py", "middle_of"): "half of a sum",
    ("papers/ps_tree/signatures.py", "_step"): "one half of a hash",
    ("papers/tatbul/matching.py", "_verify"): "the bits of a word, one after another",
    ("papers/tatbul/segment_tree.py", "_search"): "half of a number of nodes",
    ("papers/tatbul/segment_tree.py", "_store"): "halves of numbers of nodes, and whether one is odd",
}
"""Kernels that may shift by a number or mask with one, with the reason."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@cache
def functions_of(path: Path) -> list[Function]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def functions(files: list[Path]) -> Iterator[tuple[str, Path, Function]]:
    for path in files:
        for node in functions_of(path):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", path, node


@cache
def compiling_decorators() -> frozenset[str]:
    """The names of the decorators that compile a function."""
    found = {node.name for node in functions_of(SOURCE / "kernels" / "kernel.py")}
    tree = ast.parse((SOURCE / "kernels" / "kernel.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in found if "kernel" in name or name in ("inlined", "merged"))


def is_kernel(node: Function) -> bool:
    words = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(isinstance(word, ast.Name) and word.id in compiling_decorators() for word in words)


def has_reason(path: Path, node: Function) -> bool:
    """Whether a comment stands before a function, or between its decorators and its name."""
    first = min(each.lineno for each in (node, *node.decorator_list))
    return any(lines_of(path)[line - 2].lstrip().startswith("#") for line in (first, node.lineno))


def test_no_file_function_or_kernel_is_too_long() -> None:
    assert [str(path) for path in CODE if len(lines_of(path)) > FILE_LINES] == []
    assert len([node for path in CODE for node in functions_of(path) if is_kernel(node)]) > 500
    too_long = []
    for place, _, node in functions(CODE):
        assert node.end_lineno is not None
        lines = node.end_lineno - node.lineno + 1
        if lines > (KERNEL_LINES if is_kernel(node) else FUNCTION_LINES):
            too_long.append(f"{place}: {lines} lines")
    assert too_long == []


def test_many_parameters_have_a_reason_beside_them() -> None:
    without = []
    for place, path, node in functions(list(SOURCE.rglob("*.py"))):
        given = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([name for name in given if name not in ("self", "cls")])
        if count > PARAMETERS and not has_reason(path, node):
            without.append(f"{place}: {count} parameters")
    assert without == []


def test_kernels_read_arrays_by_name() -> None:
    """A number other than 0 stands for a field that has no name."""
    numbered, allowed = [], {(str(SOURCE / path), name) for path, name in NUMBERED}
    for place, path, node in functions(list(SOURCE.rglob("*.py"))):
        if not is_kernel(node) or (str(path), node.name) in allowed:
            continue
        taken = [each for each in ast.walk(node) if isinstance(each, ast.Subscript)]
        indexes = [
            each.slice.value
            for each in taken
            if isinstance(each.slice, ast.Constant) and not ast.unparse(each.value).endswith(".shape")
        ]
        if any(isinstance(index, int) and index for index in indexes):
            numbered.append(place)
    assert numbered == []


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number, perhaps with a type: 15, U32(15), U32(1 << 4)."""
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return node.func.id in ("I64", "U8", "U32", "U64", "UP") and is_number(node.args[0])
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def takes_bits(node: ast.AST) -> bool:
    """Whether an expression or assignment shifts by a number, or masks with one."""
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
    elif isinstance(node, ast.AugAssign):
        left, right = node.target, node.value
    else:
        return False
    if isinstance(node.op, ast.BitAnd):
        return is_number(left) or is_number(right)
    return isinstance(node.op, ast.LShift | ast.RShift) and is_number(right)


def test_kernels_name_the_bits_that_they_take() -> None:
    """A number in a shift or a mask stands for a part of a word that has no name."""
    nameless, allowed = [], {(str(SOURCE / path), name) for path, name in SHIFTED}
    words = {str(SOURCE / path) for path in WORDS}
    for place, path, node in functions(list(SOURCE.rglob("*.py"))):
        if is_kernel(node) and str(path) not in words and (str(path), node.name) not in allowed:
            nameless += [f"{place}: {ast.unparse(each)}" for each in ast.walk(node) if takes_bits(each)]
    assert nameless == []


def test_tests_change_no_constants() -> None:
    """Limits are arguments, so no test gives a constant or a private name another value."""
    changed = []
    for path in (ROOT / "tests").rglob("*.py"):
        for name in re.findall(r'setattr\([^,"]*,?\s*"([^"]+)"', path.read_text(encoding="utf-8")):
            last = name.split(".")[-1]
            if last.isupper() or last.startswith("_"):
                changed.append(f"{path.relative_to(ROOT)}: {name}")
    assert changed == []


def test_the_page_of_the_architecture_names_all_packages() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == set(re.findall(r"^\| `tamis\.(\w+)` \|", page, re.MULTILINE))
    drawing = page[page.index("```text") : page.index("errors           all")]
    assert packages <= set(re.findall(r"^(\w+)", drawing, re.MULTILINE))


def test_the_glossary_is_short() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    glossary = page[page.index("## Glossary") : page.index("## Truth")]
    assert 20 < len(re.findall(r"^\| (?!word|---)", glossary, re.MULTILINE)) <= 30
