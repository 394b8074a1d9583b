"""What is said about text that is SQL, or nearly, but not of the language."""

from __future__ import annotations

from typing import NoReturn

from tamis.language.alternatives import (
    CONSTRUCTS,
    FUNCTIONS,
    OPERANDS,
    OTHER_FUNCTION,
    SYMBOLS,
    WORDS,
    Alternative,
)
from tamis.language.cursor import SUPPORTED
from tamis.language.dialect import END, NAME, NUMBER, QUOTED, STRING
from tamis.language.operands import NUMBERS, Operands
from tamis.language.operators import COMPARISONS
from tamis.language.words import CONTEXTUAL, KEYWORDS

_QUANTIFIERS = ("ANY", "SOME", "ALL")
_NAMES = (*CONTEXTUAL, NAME, QUOTED)
_WORDS = KEYWORDS | {NAME, QUOTED, STRING, NUMBER, "*"}
_LONGEST_SYMBOL = 3


def refuse_operand(reader: Operands) -> NoReturn:
    """Where an attribute or a literal should begin, something else stands."""
    kind = reader.kind
    _refuse_symbol(reader)
    before = reader.words[reader.at - 1].kind if reader.at else ""
    if kind == END:
        hint = f"write a literal after {before}, such as 5 or 'x'" if before in COMPARISONS else SUPPORTED
        reader.refuse("an attribute or a literal is missing at the end", hint=hint)
    if kind == ")" and before == "(":
        reader.refuse("there is nothing between these parentheses")
    if kind == "(":
        if reader.kind_after(1) == "SELECT":
            _refuse(reader, CONSTRUCTS["SELECT"], "SELECT")
        reader.refuse("a literal is written without parentheses", hint="write a = 5")
    hint = SUPPORTED
    if kind == before == "<":
        hint = "write ip_in(a, '10.0.0.0/8') to test a network"
    reader.refuse(f"an attribute or a literal is missing before {_shown(reader)}", hint=hint)


def refuse_after_predicate(reader: Operands) -> NoReturn:
    """After a predicate something else than AND, OR or the end stands."""
    kind = reader.kind
    before = reader.words[reader.at - 1]
    if before.kind in (NAME, "SELECT", "WHERE") and before.text.upper() in CONSTRUCTS and kind in _WORDS:
        construct = CONSTRUCTS[before.text.upper()]
        reader.refuse(construct.reason, before.start, construct.hint)
    _refuse_symbol(reader)
    if kind == ")":
        reader.refuse("this parenthesis closes nothing", hint="remove it, or add the missing (")
    if kind == ",":
        number = before.kind == NUMBER and reader.kind_after(1) == NUMBER
        hint = "numbers are written without commas: 1000" if number else SUPPORTED
        reader.refuse("a comma is allowed only inside IN (...) and functions", hint=hint)
    if kind in COMPARISONS:
        hint = (
            "write the attribute without parentheses: a = 5" if before.kind == ")" else "join predicates with AND or OR"
        )
        reader.refuse(f"the predicate before {kind} is already complete", hint=hint)
    word = reader.word.text.upper()
    if kind == NAME and word in WORDS:
        _refuse(reader, WORDS[word], reader.word.text)
    hint = SUPPORTED
    if before.kind in _QUANTIFIERS and kind in _NAMES:
        hint = f"write {before.kind} ({reader.word.text})"
    reader.refuse(f"AND, OR or another operator is missing before {_shown(reader)}", hint=hint)


def refuse_not(reader: Operands, followers: str) -> NoReturn:
    """After an attribute and NOT stands no operator."""
    alternative = WORDS.get(reader.word.text.upper()) if reader.kind == NAME else None
    if alternative is not None:
        reader.refuse(f"NOT {reader.word.text} is not supported", hint=f"{alternative.hint}; put NOT before it")
    hint = "write a IS NOT NULL" if reader.kind == "NULL" else SUPPORTED
    reader.refuse(f"after an attribute, NOT must be followed by one of {followers}", hint=hint)


def refuse_function(reader: Operands) -> NoReturn:
    """A word with a parenthesis behind it, which makes it a function."""
    name = reader.word.text
    if reader.kind in _QUANTIFIERS:
        reader.refuse(
            f"{reader.kind} is allowed only after a comparison", hint=f"the list comes last: 5 = {reader.kind} (tags)"
        )
    _refuse(reader, FUNCTIONS.get(name.lower(), OTHER_FUNCTION), name)


def refuse_two_attributes(reader: Operands, attribute: str, operator: str) -> NoReturn:
    """An attribute on either side of a comparison."""
    if reader.kind_after(1) == "(":
        refuse_function(reader)
    word, left = reader.word, reader.words[reader.at - 2]
    quoted = word.kind == QUOTED
    if not quoted and reader.kind_after(1) != "." and word.text.upper() in OPERANDS:
        _refuse(reader, OPERANDS[word.text.upper()], word.text)
    if left.kind != QUOTED and left.text == attribute and attribute.upper() in OPERANDS:
        _refuse(reader, OPERANDS[attribute.upper()], attribute, left.start)
    other = reader.name().attribute
    if reader.kind == STRING:
        reader.refuse(
            f"{other} '...' is not a literal of the language",
            word.start,
            "write DATE '...', TIMESTAMP '...' or TIMESTAMPTZ '...'",
        )
    reader.refuse(
        f"comparing two attributes is not supported: {attribute} {operator} {other}",
        word.start,
        string_hint(other, quoted=quoted),
    )


def string_hint(text: str, *, quoted: bool) -> str:
    """How to write a string that was taken for a name."""
    single = f"a string is written in single quotes: '{text}'"
    return f"double quotes hold a name; {single}" if quoted else single


def refuse_case_alone(reader: Operands, subject: str, start: int) -> NoReturn:
    """lower(a) or upper(a) with nothing behind it."""
    _refuse_symbol(reader)
    reader.refuse(f"{subject} alone is not a condition", start, f"compare it with a string: {subject} = 'x'")


def refuse_quantified_attribute(reader: Operands, subject: str, operator: str) -> NoReturn:
    """After a subject and a comparison, ANY or ALL with something else than a subquery."""
    word = reader.kind
    if reader.kind_after(2) == "SELECT":
        reader.refuse(f"{subject} must be compared with a string, not with a subquery", hint=f"write {subject} = 'x'")
    hint = f"write a list of literals with IN: {subject} IN (1, 2)"
    if reader.kind_after(2) in _NAMES and reader.kind_after(3) == ")":
        hint = f"the literal comes first: 5 {operator} {word} (tags)"
    reader.refuse(f"after an attribute and a comparison, {word} needs a subquery on history", hint=hint)


def refuse_literal_alone(reader: Operands, start: int) -> NoReturn:
    """A literal with no comparison behind it."""
    _refuse_symbol(reader)
    if reader.kind == "IN":
        hint = "write 'x' = ANY (tags) to test the elements of a list"
        reader.refuse("the left side of IN must be an attribute, not a literal", start, hint)
    kind = reader.kind
    if kind in ("BETWEEN", "LIKE", "ILIKE", "RLIKE", "IS", "NOT"):
        hint = _turned(reader, start) if kind == "IS" else SUPPORTED
        reader.refuse(f"the left side of {kind} must be an attribute, not a literal", start, hint)
    reader.refuse("a literal alone is not a condition", start, "compare it with an attribute: a = 5")


def _turned(reader: Operands, start: int) -> str:
    """How to write `1 IS DISTINCT FROM a` with the attribute first. The reader stands at IS."""
    literal, operator = reader.text[start : reader.words[reader.at - 1].end], "IS DISTINCT FROM"
    reader.at += 1
    if reader.take_if("NOT"):
        operator = "IS NOT DISTINCT FROM"
    if not (reader.take_if("DISTINCT") and reader.take_if("FROM") and reader.is_name()) or reader.kind_after(1) == "(":
        return SUPPORTED
    first = reader.word.start
    reader.name()
    return f"write {_cut(reader.text[first : reader.words[reader.at - 1].end])} {operator} {_cut(literal)}"


def _refuse(reader: Operands, alternative: Alternative, written: str, start: int | None = None) -> NoReturn:
    reader.refuse(alternative.reason.replace("{}", written), start, alternative.hint)


def _refuse_symbol(reader: Operands) -> None:
    symbol = _symbol(reader)
    alternative = SYMBOLS.get(symbol)
    if alternative is None:
        return
    name = _name_around(reader)
    hint = f"quote a name with this character: `{name}`" if name else alternative.hint
    if symbol == "$" and reader.kind_after(1) == NUMBER:
        hint = NUMBERS
    reader.refuse(alternative.reason.replace("{}", symbol), hint=hint)


def _symbol(reader: Operands) -> str:
    """The longest known symbol that begins here; characters that follow each other are words of their own."""
    if reader.kind not in SYMBOLS:
        return reader.kind
    start = reader.word.start
    texts = [reader.text[start : start + length] for length in range(_LONGEST_SYMBOL, 0, -1)]
    return next(text for text in texts if text in SYMBOLS)


def _name_around(reader: Operands) -> str:
    """What looks like one name around a character that a name cannot hold: user-id, @timestamp; "" for anything else."""
    at, words = reader.at, reader.words
    word, after = words[at], words[min(at + 1, len(words) - 1)]
    if after.kind not in (NAME, *KEYWORDS) or after.start != word.end:
        return ""
    if word.kind in "@#":
        return word.text + after.text
    before = words[at - 1] if at else word
    if word.kind == "-" and before.kind in (NAME, *KEYWORDS) and before.end == word.start:
        return reader.text[before.start : after.end]
    return ""


def _shown(reader: Operands) -> str:
    return _cut(reader.text[reader.word.start : reader.word.end])


def _cut(text: str) -> str:
    return text if len(text) <= 30 else text[:30] + "..."
