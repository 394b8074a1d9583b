"""The parts of our Markdown pages that tests look at: code blocks, tables, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

_FENCE = re.compile(r"```(?P<language>[a-z]*)(?: (?P<file>\S+))?")
_HEADING = re.compile(r"#+ (?P<title>.+)")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_CELL_END = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"^(`+)((?:(?!\1).)*)\1$")

Row = dict[str, str]


class Block(NamedTuple):
    """A fenced block: the line of its first line of text, its language, and the file that it shows, if it names one."""

    line: int
    language: str
    file: str | None
    text: str


class Page:
    """A Markdown page, read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.blocks: list[Block] = []
        self._prose: list[str] = []
        self._split()

    def _split(self) -> None:
        """Tell the blocks from the rest; the rest keeps its lines, so that numbers stay right."""
        opened: re.Match[str] | None = None
        start = 0
        for number, line in enumerate(self.lines, 1):
            if opened is None:
                opened = _FENCE.fullmatch(line)
                start = number + 1
                self._prose.append("" if opened else line)
                continue
            self._prose.append("")
            if line == "```":
                text = "\n".join(self.lines[start - 1 : number - 1])
                self.blocks.append(Block(start, opened["language"], opened["file"], text))
                opened = None
        assert opened is None, f"{self.name}: a block is never closed"

    @property
    def prose(self) -> str:
        """The text outside blocks."""
        return "\n".join(self._prose)

    def of_language(self, language: str) -> list[Block]:
        return [block for block in self.blocks if block.language == language]

    def output_of(self, block: Block) -> str:
        """The text of the block that follows with nothing between, which is what a block of code prints."""
        end = block.line + len(block.text.splitlines())
        for other in self.of_language("text"):
            between = self.lines[end : other.line - 2]
            if other.line > end and not any(line.strip() for line in between):
                return other.text
        return ""

    def anchors(self) -> set[str]:
        """The headings as links name them."""
        titles = [match["title"] for line in self._prose if (match := _HEADING.fullmatch(line))]
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    def links(self) -> Iterator[str]:
        return (match["target"] for match in _LINK.finditer(self.prose))

    def rows(self, *columns: str) -> list[Row]:
        """The rows of all tables that have these columns first; backquotes around a whole cell are taken off."""
        found: list[Row] = []
        header: list[str] | None = None
        for line in self._prose:
            if not line.startswith("|"):
                header = None
            elif header is None:
                header = _cells(line)
            elif tuple(header[: len(columns)]) == columns and not set(line) <= set("|- :"):
                cells = _cells(line)
                assert len(cells) == len(header), f"{self.name}: a row has {len(cells)} cells: {line}"
                found.append(dict(zip(header, cells, strict=True)))
        return found


def pages() -> list[Page]:
    """The README and all pages of the documentation."""
    return [Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))]


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in _CELL_END.split(line.strip().strip("|"))]
    return [_CODE.sub(r"\2", cell).replace(r"\|", "|") for cell in cells]
