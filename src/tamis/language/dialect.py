"""How the text of an expression falls into words: a dialect of sqlglot with the lexical rules of the language.

The tokenizer knows no keywords, only operators, so that every word is a plain name unless the grammar wants a keyword
where it stands. This is the only module that needs sqlglot; it is imported when the first text is read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import ExpressionError, ParseError, did_you_mean, shortened
from tamis.language.words import keyword

NAME = "name"
QUOTED = "quoted name"
STRING = "string"
NUMBER = "number"
END = "end"

_FOREIGN = TokenType.UNKNOWN

_LONE_SURROGATE = "\ud800"
"""The character for an escaped half of a surrogate pair. It is refused, like a lone surrogate in the text.
(Spark reads a question mark.)"""

_SYMBOLS: dict[TokenType, str] = {
    TokenType.EQ: "=",
    TokenType.NEQ: "<>",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
    TokenType.L_PAREN: "(",
    TokenType.R_PAREN: ")",
    TokenType.COMMA: ",",
    TokenType.DOT: ".",
    TokenType.DASH: "-",
    TokenType.STAR: "*",
}

_LITERALS: dict[TokenType, str] = {
    TokenType.STRING: STRING,
    TokenType.RAW_STRING: STRING,
    TokenType.NUMBER: NUMBER,
    TokenType.IDENTIFIER: QUOTED,
}


class Word(NamedTuple):
    """One word, literal or symbol of the text.

    `kind` is the keyword in capitals, the symbol itself, or one of NAME, QUOTED, STRING, NUMBER, END; `text` is the
    content, without quotes and escapes; the word is ``source[start:end]``.
    """

    kind: str
    text: str
    start: int
    end: int


class Tamis(Dialect):
    """The language's own text: standard SQL quotes, where a backslash is a backslash."""

    class Tokenizer(tokens.Tokenizer):
        QUOTES = ["'"]
        IDENTIFIERS = ['"', "`"]
        STRING_ESCAPES = ["'"]
        # Every character that ends a name must be listed. The grammar refuses characters that the language does not have.
        SINGLE_TOKENS = {
            **dict.fromkeys("[]{}&^:%!|+;/\\~?@#$'\"`", _FOREIGN),
            **{symbol: kind for kind, symbol in _SYMBOLS.items() if len(symbol) == 1},
        }
        KEYWORDS = {
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            # Not in the language. As one word each, they can be refused by name.
            "==": _FOREIGN,
            "<=>": _FOREIGN,
        }
        COMMANDS = set()
        NESTED_COMMENTS = False


class TamisSpark(Tamis):
    """The same with the literals of Spark SQL 4: backslash escapes, strings in double quotes too, r'...'."""

    UNESCAPED_SEQUENCES = {"\\0": "\0", "\\Z": "\x1a", "\\%": "\\%", "\\_": "\\_", "\\a": "a", "\\f": "f", "\\v": "v"}

    class Tokenizer(Tamis.Tokenizer):
        KEYWORDS = {**Tamis.Tokenizer.KEYWORDS, "==": TokenType.EQ}
        QUOTES = ["'", '"']
        IDENTIFIERS = ["`"]
        STRING_ESCAPES = ["\\", "'", '"']
        RAW_STRINGS = [(prefix + quote, quote) for prefix in "rR" for quote in "'\""]
        NUMERIC_ESCAPES = {"u": (16, 4, 4, 0xFFFF), "U": (16, 8, 8, 0x10FFFF), "0": (8, 3, 3, 0x7F)}
        DROP_UNKNOWN_ESCAPES = True
        LONE_SURROGATE_REPLACEMENT = _LONE_SURROGATE
        STRING_ESCAPES_ALLOWED_IN_RAW_STRINGS = False


for _tokenizer in (Tamis.Tokenizer, TamisSpark.Tokenizer):
    # sqlglot gives every dialect Jinja comments, which would drop text silently, and N'...' strings.
    _tokenizer._COMMENTS = {"--": None, "/*": "*/"}
    _tokenizer._FORMAT_STRINGS = {
        start: format for start, format in _tokenizer._FORMAT_STRINGS.items() if format[1] is TokenType.RAW_STRING
    }

_CURLY_QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4"

_SURROGATES = re.compile("[\ud800-\udfff]")

_DIALECTS: dict[str, Dialect] = {"tamis": Tamis(), "spark": TamisSpark()}


def parse_error(reason: str, text: str, position: int, hint: str) -> ParseError:
    """The error for a place of the text."""
    # A lone surrogate could not be printed; the replacement keeps every position.
    reason, text, hint = (_SURROGATES.sub("\ufffd", part) for part in (reason, text, hint))
    return ParseError(reason, text, position, hint=hint)


def split_words(text: str, dialect: str = "tamis") -> list[Word]:
    """The words of a text, without spaces and comments; the last one has the kind END.

    Raises
    ------
    ParseError
        For a string, quoted name or comment without an end, and for characters that no name can hold.
    """
    # A tokenizer keeps the state of its scan: one for each text makes this safe in threads.
    tokenizer = _dialect(dialect).tokenizer()
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    try:
        found = tokenizer.tokenize(text)
    except TokenError:
        raise _unterminated(text, _skip(text, tokenizer.tokens)) from None
    words = [_word(text, token) for token in found]
    end = _skip(text, found)
    if end < len(text):
        raise _unterminated(text, end)
    words.append(Word(END, "", end, end))
    return words


def _dialect(name: str) -> Dialect:
    if isinstance(name, str) and name in _DIALECTS:
        return _DIALECTS[name]
    close = did_you_mean(name, list(_DIALECTS))
    raise ExpressionError(f"unknown dialect {shortened(name)}{close}; the dialects are: {', '.join(_DIALECTS)}")


def _word(source: str, token: Token) -> Word:
    kind = token.token_type
    start, end = token.start, token.end + 1
    if kind is TokenType.VAR:
        text = token.text
        if not text.isidentifier():
            raise _odd_character(source, start, text)
        return Word(keyword(text) or NAME, text, start, end)
    if kind in _LITERALS:
        return Word(_LITERALS[kind], token.text, start, end)
    return Word(_SYMBOLS.get(kind) or token.text, token.text, start, end)


_SPACE = re.compile(r"(?:\s|--[^\n\r]*|/\*.*?\*/)*", re.DOTALL)


def _skip(text: str, found: list[Token]) -> int:
    """The place after the last token and its spaces: the end of the text, unless something there is never closed."""
    match = _SPACE.match(text, found[-1].end + 1 if found else 0)
    assert match is not None
    return match.end()


def _unterminated(text: str, position: int) -> ParseError:
    rest = text[position : position + 2]
    if rest == "/*":
        return parse_error("the comment has no end", text, position, hint="close it with */")
    quote = rest.lstrip("rR")[:1]
    what = "quoted name" if quote == "`" else "quoted text" if quote == '"' else "string"
    return parse_error(
        f"the {what} has no end", text, position, hint=f"close it with {quote}; write {quote * 2} for a {quote} inside"
    )


def _odd_character(source: str, start: int, text: str) -> ParseError:
    # Character by character: looking at longer and longer beginnings would take quadratic time.
    later = (i for i, symbol in enumerate(text) if not f"_{symbol}".isidentifier())
    first = next(later) if text[0].isidentifier() else 0
    hint = "quote a name with characters other than letters, digits and _: `any name`"
    if text[first] in _CURLY_QUOTES:
        hint = "write strings in straight quotes: 'x'"
    return parse_error(f"unexpected character {text[first]!r}", source, start + first, hint=hint)
