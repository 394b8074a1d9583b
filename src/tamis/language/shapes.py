"""Texts that differ in their literals only are read once.

A text's *shape* is the text with a mark in place of every string and number. The second text of a shape leaves a
template, into which all later ones only fill their literals. (The first does not: where no two texts are alike, making
templates would cost a third more for nothing.)

A template is used only when the outcome is certain to be that of reading word by word: what is odd is read in that
way, and so is whatever is wrong, so that errors are the same. Templates never change, so any thread may use them.
"""

from __future__ import annotations

import re
import threading

from tamis.errors import ExpressionError
from tamis.language.expression import Expression
from tamis.language.template import Template, is_regular
from tamis.language.values import is_well_formed

MAX_SHAPES = 8192
"""How many templates are kept; the oldest go first."""

MAX_LENGTH = 4096
"""Longer texts are read word by word: they are rare, and their shapes would fill the memory."""

# Strings, quoted names and numbers. A number is one only where it stands alone between spaces, parentheses, commas and
# comparisons: the digits of a1, and of whatever is doubtful, stay in the shape. So does the sign.
_PIECE = re.compile(
    r"""('[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`"""
    r"""|(?<![^\s(,=<>-])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![^\s),=<>!]))"""
)
# Between the pieces, a comment or a quote that is never closed: what follows it cannot be told by pieces.
_DOUBTFUL = re.compile("--|/\\*|['\"`]")

_MARK = "\0"
_STRING, _INTEGER, _DECIMAL = (_MARK + kind for kind in "sid")

_templates: dict[str, Template] = {}
_sighted: set[int] = set()
_MAX_SIGHTED = 1 << 17
_writing = threading.Lock()


def parse_by_shape(text: str) -> Expression:
    """Read a text, by its template if there is one."""
    if len(text) > MAX_LENGTH or _MARK in text or not is_well_formed(text):
        return _read_afresh(text)
    pieces = _PIECE.split(text)
    literals = []
    for i in range(1, len(pieces), 2):
        piece = pieces[i]
        first = piece[0]
        if first == "'":
            literals.append(piece)
            pieces[i] = _STRING
        elif first not in '"`':
            literals.append(piece)
            pieces[i] = _INTEGER if piece.isdigit() else _DECIMAL
    shape = "".join(pieces)
    template = _templates.get(shape)
    if template is None:
        return _learn(text, shape) if _seen_before(shape) else _read_afresh(text)
    try:
        filled = template.fill(literals)
    except ExpressionError:
        filled = None
    return _read_afresh(text) if filled is None else filled


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


def _learn(text: str, shape: str) -> Expression:
    """Read a text word by word, and keep its template if it is safe to use."""
    from tamis.language.grammar import read

    reading = read(text)
    found = [match.span() for match in _PIECE.finditer(text) if match[0][0] not in '"`']
    doubtful = any(map(_DOUBTFUL.search, _PIECE.split(text)[::2]))
    if (
        not doubtful
        and found == [(slot.start, slot.end) for slot in reading.slots]
        and all(map(is_regular, reading.uses))
    ):
        template = Template(text, reading)
        with _writing:
            if shape not in _templates and len(_templates) >= MAX_SHAPES:
                del _templates[next(iter(_templates))]
            _templates[shape] = template
    return reading.expression
