"""What is said about text that is SQL, or nearly, but not of the language."""

from __future__ import annotations

from typing import NoReturn

from tamis.language.cursor import SUPPORTED
from tamis.language.dialect import END, NAME, NUMBER, QUOTED, STRING
from tamis.language.operands import Operands
from tamis.language.words import CONTEXTUAL, KEYWORDS

_SYMBOLS: dict[str, str] = {
    **dict.fromkeys("+-*/%^&~", "arithmetic is not supported"),
    "|": "concatenation and arithmetic are not supported",
    ":": "casts and paths are not supported",
    ";": "a text holds only one expression",
    **dict.fromkeys("[]{}", "lists and objects are not supported"),
    **dict.fromkeys("!@$#\\", "this character is not supported"),
    "?": "parameters are not supported",
    "==": "this operator is not supported",
    "<=>": "this operator is not supported",
}
_SYMBOL_HINTS: dict[str, str] = {
    **dict.fromkeys("-:@$#\\", 'a name with such a character is quoted: "any name"'),
    "!": "write NOT, or <> for unequal",
    "==": "use =",
    "<=>": "use =, or IS NULL for a missing attribute",
    "[": "array_contains(a, v) tests the elements of a list",
}
_CONSTRUCTS: dict[str, str] = {
    "CASE": "CASE is not supported",
    "SELECT": "SELECT stands only inside ANY (...), ALL (...) and EXISTS (...)",
    "WHERE": "the condition is written without WHERE",
}
_QUANTIFIERS = ("ANY", "SOME", "ALL")
_WORDS = KEYWORDS | {NAME, QUOTED, STRING, NUMBER, "*"}
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def refuse_operand(reader: Operands) -> NoReturn:
    """Where an attribute or a literal should begin, something else stands."""
    kind = reader.kind
    _refuse_symbol(reader)
    if kind == END:
        reader.refuse("an attribute or a literal is missing at the end")
    if kind == ")" and reader.at and reader.words[reader.at - 1].kind == "(":
        reader.refuse("there is nothing between these parentheses")
    if kind == "(":
        is_query = reader.kind_after(1) == "SELECT"
        reader.refuse(_CONSTRUCTS["SELECT"] if is_query else "a literal stands without parentheses")
    reader.refuse(f"an attribute or a literal is missing before {_shown(reader)}")


def refuse_after_predicate(reader: Operands) -> NoReturn:
    """After a predicate something else than AND, OR or the end stands."""
    kind = reader.kind
    before = reader.words[reader.at - 1]
    if before.kind in (NAME, "SELECT", "WHERE") and before.text.upper() in _CONSTRUCTS and kind in _WORDS:
        reader.refuse(_CONSTRUCTS[before.text.upper()], before.start)
    _refuse_symbol(reader)
    if kind == ")":
        reader.refuse("this parenthesis closes nothing", hint="remove it, or open it before")
    if kind == ",":
        reader.refuse("a comma stands only inside IN (...) and array_contains(...)")
    if kind in _OPERATORS:
        reader.refuse(f"{kind} stands where a predicate is complete already", hint="join predicates with AND or OR")
    reader.refuse(f"AND, OR or another operator is missing before {_shown(reader)}")


def refuse_function(reader: Operands) -> NoReturn:
    """A word with a parenthesis behind it, which makes it a function."""
    name = reader.word.text
    if reader.kind in _QUANTIFIERS:
        reader.refuse(f"{reader.kind} stands only after an attribute and a comparison")
    what = "casts" if name.upper() in ("CAST", "TRY_CAST") else "functions"
    reader.refuse(f"{what} are not supported: {name}(...)")


def refuse_two_attributes(reader: Operands, attribute: str, operator: str) -> NoReturn:
    """An attribute on either side of a comparison."""
    if reader.kind_after(1) == "(":
        refuse_function(reader)
    start = reader.word.start
    other = reader.name().attribute
    if reader.kind == STRING:
        reader.refuse(
            f"{other} '...' is not a literal of the language", start, "there are DATE '...' and TIMESTAMP '...'"
        )
    hint = f"a string is written in single quotes: '{other}'"
    reader.refuse(f"comparing two attributes is not supported: {attribute} {operator} {other}", start, hint)


def refuse_case_alone(reader: Operands, subject: str, start: int) -> NoReturn:
    """lower(a) or upper(a) with nothing behind it."""
    _refuse_symbol(reader)
    reader.refuse(f"{subject} alone is not a condition", start, f"compare it with a string: {subject} = 'x'")


def refuse_quantified_attribute(reader: Operands, subject: str, operator: str) -> NoReturn:
    """After a subject and a comparison, ANY or ALL with something else than a subquery."""
    word = reader.kind
    if reader.kind_after(2) == "SELECT":
        reader.refuse(f"{subject} is compared with a string, not with a subquery")
    hint = f"write a list of literals with IN: {subject} IN (1, 2)"
    if reader.kind_after(2) in (*CONTEXTUAL, NAME, QUOTED):
        hint = f"the literal comes first: 5 {operator} {word} (tags)"
    reader.refuse(f"after an attribute and a comparison, {word} holds a subquery on history", hint=hint)


def refuse_literal_alone(reader: Operands, start: int) -> NoReturn:
    """A literal with no comparison behind it."""
    _refuse_symbol(reader)
    if reader.kind in ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "IS", "NOT"):
        reader.refuse(f"the left side of {reader.kind} is an attribute, not a literal", start)
    reader.refuse("a literal alone is not a condition", start, "compare it with an attribute: a = 5")


def _refuse_symbol(reader: Operands) -> None:
    reason = _SYMBOLS.get(reader.kind)
    if reason is not None:
        reader.refuse(f"{reason}: {reader.kind}", hint=_SYMBOL_HINTS.get(reader.kind, SUPPORTED))


def _shown(reader: Operands) -> str:
    word = reader.word
    text = reader.text[word.start : word.end]
    return text if len(text) <= 30 else text[:30] + "..."
