"""Texts that differ in their literals only are read once.

A text's *shape* is the text with a mark in place of every string and number. The literals of an IN that are all strings
or all numbers have one mark together, so that lists of any length share a shape. The second text of a shape makes a
template. All later texts only fill in their literals. The first text makes a template only if it has a long list: if no two texts
are alike, templates would cost a third more for nothing.

A template is used only if the result is certainly the same as that of reading word by word. Odd texts and wrong texts are read
word by word, so that errors are the same. Templates never change, so any thread may use them.
"""

from __future__ import annotations

import re
import threading

from tamis.errors import ExpressionError
from tamis.language.expression import Expression
from tamis.language.template import Template, is_regular
from tamis.language.values import is_well_formed

MAX_SHAPES = 8192
"""The most templates that are kept. The oldest are dropped first."""

MAX_LENGTH = 4096
"""The longest shape that is kept. Longer shapes are rare and would fill the memory; their texts are read word by word."""

LONG_LIST = 512
"""The length of a list, in characters, from which on the first text of a shape leaves a template."""

_STRING_TEXT = "'[^']*(?:''[^']*)*'"
_NUMBER_TEXT = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_COMMA = r"[ \t\r\n]*,[ \t\r\n]*"
_STRINGS = rf"{_STRING_TEXT}(?:{_COMMA}{_STRING_TEXT})*+"
_NUMBERS = rf"[+-]?{_NUMBER_TEXT}(?:{_COMMA}[+-]?{_NUMBER_TEXT})*+"
# Lists, strings, quoted names and numbers. A number is one only where it stands alone between spaces, parentheses, commas
# and comparisons: the digits of a1, and of whatever is doubtful, stay in the shape. So does the sign.
PIECE = re.compile(
    rf"""((?<![\w.])[iI][nN][ \t\r\n]*\([ \t\r\n]*(?:{_STRINGS}|{_NUMBERS})[ \t\r\n]*\)"""
    rf"""|{_STRING_TEXT}|"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`"""
    rf"""|(?<![^\s(,=<>+-]){_NUMBER_TEXT}(?![^\s),=<>!]))"""
)
# A comment, or a quote that is never closed, between the pieces: the text behind it cannot be cut into pieces.
_DOUBTFUL = re.compile("--|/\\*|['\"`]")

_MARK = "\0"
_QUOTE = "'"
_STRING, _INTEGER, _DECIMAL, _STRING_LIST, _NUMBER_LIST = (_MARK + kind for kind in "sidSN")
# The one literal that stands for all of a list where its template is made.
_SAMPLES = {_STRING_LIST: "''", _NUMBER_LIST: "0"}

_templates: dict[str, Template] = {}
_sighted: set[int] = set()
_MAX_SIGHTED = 1 << 17
_writing = threading.Lock()


def parse_by_shape(text: str, max_shapes: int = MAX_SHAPES) -> Expression:
    """Read a text, by its template if there is one. At most `max_shapes` templates are kept."""
    if _MARK in text or not is_well_formed(text):
        return _read_afresh(text)
    pieces = PIECE.split(text)
    literals = []
    long = False
    for i in range(1, len(pieces), 2):
        piece = pieces[i]
        first = piece[0]
        if first == "'":
            literals.append(piece)
            pieces[i] = _STRING
        elif first in "iI":
            at = piece.index("(") + 1
            literals.append(piece[at:-1])
            pieces[i] = f"{piece[:at]}{_STRING_LIST if _QUOTE in piece else _NUMBER_LIST})"
            long = long or len(piece) > LONG_LIST
        elif first not in '"`':
            literals.append(piece)
            pieces[i] = _INTEGER if piece.isdigit() else _DECIMAL
    shape = "".join(pieces)
    template = _templates.get(shape)
    if template is None:
        if len(shape) > MAX_LENGTH or not (_seen_before(shape) or long):
            return _read_afresh(text)
        template = _learn(shape, pieces, literals, max_shapes)
    try:
        filled = None if template is None else template.fill(literals)
    except ExpressionError:
        filled = None
    return _read_afresh(text) if filled is None else filled


def known_shapes() -> list[str]:
    """The shapes that have a template, the oldest first."""
    with _writing:
        return list(_templates)


def forget_shapes() -> None:
    """Drop all templates."""
    with _writing:
        _templates.clear()
        _sighted.clear()


def _seen_before(shape: str) -> bool:
    """Whether a text of this shape came before; if not, this one is noted."""
    # By hash: two shapes that share one merely make a template too early.
    sight = hash(shape)
    if sight in _sighted:
        return True
    with _writing:
        if len(_sighted) >= _MAX_SIGHTED:
            _sighted.clear()
        _sighted.add(sight)
    return False


def _read_afresh(text: str) -> Expression:
    from tamis.language.grammar import read

    return read(text).expression


def _learn(shape: str, pieces: list[str], literals: list[str], max_shapes: int) -> Template | None:
    """The template of a shape, which is kept; None if the text is wrong, or the template would not be safe to use.

    It is made of a text with one literal in each list.
    """
    from tamis.language.grammar import read

    text, found, lists = _sampled(pieces, literals)
    try:
        reading = read(text)
    except ExpressionError:  # of the text itself the error may be another one
        return None
    if (
        any(map(_DOUBTFUL.search, pieces[::2]))
        or found != [(place.start, place.end) for place in reading.places]
        or not all(map(is_regular, reading.uses))
    ):
        return None
    template = Template(text, reading, lists)
    with _writing:
        if shape not in _templates and len(_templates) >= max_shapes:
            del _templates[next(iter(_templates))]
        _templates[shape] = template
    return template


def _sampled(pieces: list[str], literals: list[str]) -> tuple[str, list[tuple[int, int]], set[int]]:
    """A text of a shape, where its literals stand, and which of them stand for a list."""
    parts: list[str] = []
    found: list[tuple[int, int]] = []
    lists: set[int] = set()
    end = 0
    for number, piece in enumerate(pieces):
        before, mark, after = piece.partition(_MARK) if number % 2 else (piece, "", "")
        literal = ""
        if mark:
            literal = _SAMPLES.get(mark + after[0], literals[len(found)])
            if mark + after[0] in _SAMPLES:
                lists.add(len(found))
            start = end + len(before)
            found.append((start, start + len(literal)))
            after = after[1:]
        parts += [before, literal, after]
        end += len(before) + len(literal) + len(after)
    return "".join(parts), found, lists
