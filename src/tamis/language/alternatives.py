"""What to write instead of SQL that the language does not have, or of text that only looks like SQL."""

from __future__ import annotations

from typing import NamedTuple

from tamis.language.words import CONDITIONS, FUNCTION_NAMES


class Alternative(NamedTuple):
    """What is wrong, where ``{}`` is what stands in the text, and what to write instead; "" for what is supported."""

    reason: str
    hint: str


_CLOCK = Alternative(
    "conditions cannot read the clock: {} is not supported", "write a literal such as TIMESTAMP '2026-11-14 10:00:00'"
)
_CAST = Alternative(
    "casts are not supported: {}", "write the literal in the kind of the values: 5, '5', DATE '2026-11-14'"
)
_ARITHMETIC = Alternative(
    "arithmetic is not supported: {}", "compute the value beforehand: in the literal, or as an attribute of the event"
)
_REGEX = "write a RLIKE 'x' for a regular expression"
_PATH = "nested values have dotted names: user.geo.country = 'FR'"
_LIST = "write 'x' = ANY (tags) to test the elements of a list"
_NETWORK = "write ip_in(a, '10.0.0.0/8') to test a network"
_PARAMETER = Alternative(
    "parameters are not supported: {}", "write the value itself, or build the expression in Python with attr(...)"
)
_QUOTE_NAME = "quote a name with this character: `any name`"

SYMBOLS: dict[str, Alternative] = {
    **dict.fromkeys("+-*/%^", _ARITHMETIC),
    "%s": _PARAMETER,
    "&": Alternative("bitwise operators are not supported: {}", "join conditions with AND"),
    "&&": Alternative("{} is not supported", "write AND"),
    "|": Alternative("bitwise operators are not supported: {}", "join conditions with OR"),
    "||": Alternative("{} is not supported", "write OR between conditions; strings cannot be joined"),
    "~": Alternative("the operator {} is not supported", _REGEX),
    "~*": Alternative("the operator {} is not supported", "write a RLIKE '(?i)x' for a regular expression"),
    "!~": Alternative("the operator {} is not supported", "write a NOT RLIKE 'x'"),
    "!~*": Alternative("the operator {} is not supported", "write a NOT RLIKE '(?i)x'"),
    "~~": Alternative("the operator {} is not supported", "write a LIKE 'x%'"),
    "~~*": Alternative("the operator {} is not supported", "write a ILIKE 'x%'"),
    "!~~": Alternative("the operator {} is not supported", "write a NOT LIKE 'x%'"),
    "!": Alternative("this character is not supported: {}", "write NOT, or <> for unequal"),
    "==": Alternative("this operator is not supported: {}", "write ="),
    "<=>": Alternative("this operator is not supported: {}", "write a IS NOT DISTINCT FROM 5"),
    "::": _CAST,
    ":": _PARAMETER,
    "?": _PARAMETER,
    **dict.fromkeys("$#", Alternative("this character is not supported: {}", _QUOTE_NAME)),
    "->": Alternative("paths are not supported: {}", _PATH),
    "->>": Alternative("paths are not supported: {}", _PATH),
    "@>": Alternative("this operator is not supported: {}", _LIST),
    ";": Alternative("a text holds only one expression: {}", "remove the semicolon and what follows it"),
    **dict.fromkeys("[]", Alternative("lists and objects are not supported: {}", _LIST)),
    **dict.fromkeys("{}", Alternative("lists and objects are not supported: {}", _PATH)),
    **dict.fromkeys("@\\", Alternative("this character is not supported: {}", _QUOTE_NAME)),
}
"""Symbols, by the longest that stands in the text."""

_FUNCTION = "this function is not supported: {}(...)"
OTHER_FUNCTION = Alternative(_FUNCTION, f"the functions are {', '.join(FUNCTION_NAMES[:-1])} and {FUNCTION_NAMES[-1]}")


def _functions(names: str, hint: str) -> dict[str, Alternative]:
    return dict.fromkeys(names.split(), Alternative(_FUNCTION, hint))


CLOCKS = frozenset(
    [
        "now",
        "today",
        "getdate",
        "sysdate",
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
    ]
)
FUNCTIONS: dict[str, Alternative] = {
    **dict.fromkeys(CLOCKS, _CLOCK),
    **dict.fromkeys(("cast", "try_cast", "convert"), _CAST._replace(reason="casts are not supported: {}(...)")),
    **_functions("coalesce ifnull nvl if iff", "write a = 0 OR a IS NULL"),
    **_functions("isnull is_null", "write a IS NULL"),
    **_functions("isnotnull is_not_null", "write a IS NOT NULL"),
    **_functions("isnan", "NaN counts as missing: write a IS NULL"),
    **_functions("len length char_length", "write a LIKE '____%' for four characters or more"),
    **_functions("regexp rlike regexp_like regexp_matches regexp_match regexp_contains match", _REGEX),
    **_functions("like", "write a LIKE 'x%'"),
    **_functions("ilike", "write a ILIKE 'x%'"),
    **_functions("prefix", "write starts_with(a, 'x')"),
    **_functions("suffix", "write ends_with(a, 'x')"),
    **_functions("instr position strpos locate charindex", "write contains(a, 'x')"),
    **_functions("lcase tolower to_lower", "write lower(a) = 'x'"),
    **_functions("ucase toupper to_upper", "write upper(a) = 'x'"),
    **_functions("list_contains list_has array_has has element_at size cardinality array_length", _LIST),
    **_functions("array arrays_overlap list_has_any", _LIST),
    **_functions("json_extract json_value get_json_object json_extract_string", _PATH),
    **_functions("cidr_match cidrmatch inet ip_address ip net_contains in_subnet", _NETWORK),
    **_functions(
        "date_trunc date_part extract year month day hour dayofweek",
        "write a range: a >= DATE '2026-11-14' AND a < DATE '2026-11-15'",
    ),
    **_functions("date to_date timestamp to_timestamp", "write the literal as DATE '2026-11-14'"),
    **_functions(
        "trim ltrim rtrim substr substring left right replace concat split",
        "change the value beforehand, or use LIKE: a LIKE 'x%'",
    ),
    **dict.fromkeys(
        ("lower", "upper"),
        Alternative("{}(...) is not allowed here", "write the literal itself in lower or upper case: lower(a) = 'x'"),
    ),
    **dict.fromkeys(
        CONDITIONS,
        Alternative("{}(...) is not allowed here", "this function is a complete condition; do not compare it"),
    ),
}
"""Functions, by their names in lower case."""

WORDS: dict[str, Alternative] = {
    **dict.fromkeys(("SIMILAR", "GLOB", "MATCHES", "MATCH", "REGEXP_LIKE"), Alternative("{} is not supported", _REGEX)),
    **dict.fromkeys(
        ("CONTAINS", "HAS", "INCLUDES"),
        Alternative("{} is not supported", "write contains(a, 'x'), or 'x' = ANY (a) for an element of a list"),
    ),
    **dict.fromkeys(("STARTS", "STARTSWITH"), Alternative("{} is not supported", "write starts_with(a, 'x')")),
    **dict.fromkeys(("ENDS", "ENDSWITH"), Alternative("{} is not supported", "write ends_with(a, 'x')")),
    "COLLATE": Alternative("{} is not supported", "write a ILIKE 'x' to ignore case"),
    "XOR": Alternative("{} is not supported", "write (a AND NOT b) OR (b AND NOT a)"),
    "ISNULL": Alternative("{} is not supported", "write a IS NULL"),
    "NOTNULL": Alternative("{} is not supported", "write a IS NOT NULL"),
    **dict.fromkeys(
        ("ORDER", "GROUP", "HAVING", "LIMIT", "OFFSET", "UNION"),
        Alternative("{} is not supported", "write the condition alone"),
    ),
}
"""Words that stand after a predicate."""

OPERANDS: dict[str, Alternative] = {
    **{clock.upper(): _CLOCK for clock in CLOCKS},
    "INTERVAL": Alternative("durations are not supported: {}", _CLOCK.hint),
    "DATE": Alternative("{} must be followed by a string", "write DATE '2026-11-14'"),
    "TIMESTAMP": Alternative("{} must be followed by a string", _CLOCK.hint),
    "TIMESTAMPTZ": Alternative("{} must be followed by a string", "write TIMESTAMPTZ '2026-11-14 10:00:00+01:00'"),
    "ARRAY": Alternative("lists are not supported: {}", "write a list of literals with IN: a IN (1, 2)"),
    "CASE": Alternative("CASE is not supported", "write the cases with AND and OR"),
    "NAN": Alternative("{} is not a literal", "NaN counts as missing: write a IS NULL"),
}
"""Words that stand where a literal should."""

CONSTRUCTS: dict[str, Alternative] = {
    "CASE": OPERANDS["CASE"],
    "SELECT": Alternative(
        "SELECT is allowed only inside ANY (...), ALL (...) and EXISTS (...)", "write only the condition after WHERE"
    ),
    "WHERE": Alternative("WHERE is not part of the condition", "remove WHERE"),
}
"""Words that begin something else than a condition."""
