"""Texts outside the language are refused at the right place, with the right reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ParseError, TamisError
from tamis.language.parser import parse, parse_afresh

# In each text, a ^ stands before the character that is refused.
REFUSED = [
    # Constructs of SQL that the language does not have.
    ("^trim(a) = 'x'", "this function is not supported: trim(...)"),
    ("a = ^upper('x')", "upper(...) is not allowed here"),
    ("5 < ^ip_in(a, '::1')", "ip_in(...) is not allowed here"),
    ("5 < ^abs(a)", "this function is not supported: abs(...)"),
    ("a AND ^date('2026-11-14') = b", "this function is not supported: date(...)"),
    ('^"lower"(a) = 1', "lower(...) is not allowed here"),
    ("a > ^NOW() - INTERVAL '1' DAY", "conditions cannot read the clock: NOW is not supported"),
    ("a > ^current_date", "conditions cannot read the clock: current_date is not supported"),
    ("^CURRENT_DATE > at", "conditions cannot read the clock: CURRENT_DATE is not supported"),
    ('"CURRENT_DATE" > ^at', "comparing two attributes is not supported: CURRENT_DATE > at"),
    ("a LIKE ^ANY ARRAY['x']", "ANY takes patterns in parentheses"),
    ("a BETWEEN ^CURRENT_DATE AND b", "conditions cannot read the clock: CURRENT_DATE is not supported"),
    ("^CAST(a AS INT) = 5", "casts are not supported: CAST(...)"),
    ("a^::int = 5", "casts are not supported: ::"),
    ("a^->>'b' = 'x'", "paths are not supported: ->>"),
    ("a = ^b", "comparing two attributes is not supported: a = b"),
    ('genre = ^"classics"', "comparing two attributes is not supported: genre = classics"),
    ("a < ^b.c", "comparing two attributes is not supported: a < b.c"),
    ("^1 = 1", "comparing two literals is not supported: one side must be an attribute"),
    ("^'x' = 'x'; DROP TABLE t", "comparing two literals is not supported: one side must be an attribute"),
    ("a = 1^; DROP TABLE t", "a text holds only one expression: ;"),
    ("a = 1^;", "a text holds only one expression: ;"),
    ("a ^+ 1 = 2", "arithmetic is not supported: +"),
    ("a = 1 ^* 2", "arithmetic is not supported: *"),
    ("a = ^-b", "arithmetic is not supported: -"),
    ("user^-id = 5", "arithmetic is not supported: -"),
    ("a = 'x' ^|| 'y'", "|| is not supported"),
    ("a ^&& b", "&& is not supported"),
    ("a ^& b", "bitwise operators are not supported: &"),
    ("a^[0] = 1", "lists and objects are not supported: ["),
    ("a = ^?", "parameters are not supported: ?"),
    ("^@timestamp > 5", "this character is not supported: @"),
    ("^!a", "this character is not supported: !"),
    ("^{# comment #} a", "lists and objects are not supported: {"),
    ("^CASE WHEN a THEN b END", "CASE is not supported"),
    ("^SELECT * FROM t", "SELECT is allowed only inside ANY (...), ALL (...) and EXISTS (...)"),
    ("a AND (^SELECT b FROM history)", "SELECT is allowed only inside ANY (...), ALL (...) and EXISTS (...)"),
    ("a = ^(SELECT 1)", "SELECT is allowed only inside ANY (...), ALL (...) and EXISTS (...)"),
    ("^WHERE a = 1", "WHERE is not part of the condition"),
    ("a > ^INTERVAL '1' DAY", "durations are not supported: INTERVAL"),
    ("a = ^CASE WHEN b THEN 1 END", "CASE is not supported"),
    ("a = ^N'x'", "N '...' is not a literal of the language"),
    ("a = 1 ^ORDER BY b", "ORDER is not supported"),
    ("a ^SIMILAR TO 'x'", "SIMILAR is not supported"),
    ("a NOT ^CONTAINS 'x'", "NOT CONTAINS is not supported"),
    ("a ^~ 'x'", "the operator ~ is not supported"),
    ("a =^~ 'x'", "the operator ~ is not supported"),
    ("a ^!~* 'x'", "the operator !~* is not supported"),
    ("a IS ^5", "IS [NOT] must be followed by NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"),
    ("a = 1 ^IS NULL", "after a condition, IS must be followed by TRUE, FALSE or UNKNOWN"),
    ("(a OR b) ^IS NOT 5", "after a condition, IS must be followed by TRUE, FALSE or UNKNOWN"),
    ("a IS DISTINCT ^5", "FROM is missing after DISTINCT"),
    ("a IS NOT DISTINCT FROM ^NULL", "NULL is not a literal here"),
    ("^lower(a)", "lower(a) alone is not a condition"),
    ("^lower(a) IS TRUE", "lower(a) alone is not a condition"),
    ("lower(a) < ^'x'", "lower(a) works with =, <>, IN and LIKE, not with <"),
    ("upper(a) RLIKE ^'x'", "upper(a) works with =, <>, IN and LIKE, not with RLIKE"),
    ("lower(a) = ^5", "lower(a) must be compared with a string, not with 5"),
    ("lower(^trim(a)) = 'x'", "a function inside a function is not supported"),
    ("lower(^'x') = a", "lower(...) takes an attribute"),
    ("starts_with(a, ^5)", "starts_with takes a string after the comma"),
    ("contains(^'x', a)", "the first argument of contains must be an attribute"),
    ("ip_in(a, '10.0.0.0/8', ^'10.0.0.1/8')", "the network '10.0.0.1/8' has host bits set"),
    ("ip_in(a, ^'10.0.0.0/33')", "the prefix of the network '10.0.0.0/33' is longer than 32 bits"),
    ("ip_in(a, ^'010.0.0.0/8')", "ip_in cannot read the network '010.0.0.0/8'"),
    ("ip_in(a, ^5)", "ip_in takes networks as strings, not 5"),
    ("a = ^ANY (b)", "after an attribute and a comparison, ANY needs a subquery on history"),
    ("5 = ^ANY (SELECT a FROM history)", "a subquery must follow an attribute and a comparison"),
    ("5 = ANY (^6)", "write one attribute between these parentheses"),
    ("5 = ANY (a^, b)", "the closing parenthesis is missing after the attribute"),
    ("a RLIKE ^ANY ('x')", "RLIKE takes one pattern"),
    ("a LIKE ^ANY 'x'", "ANY takes patterns in parentheses"),
    ("a LIKE ANY ('x'^", "a comma or the closing parenthesis is missing"),
    ("a = +^1e", "this is not a number"),
    ("a = ^+b", "arithmetic is not supported: +"),
    ("a IN (^SELECT b FROM history)", "IN (SELECT ...) is not supported"),
    ("a LIKE ANY (^SELECT b FROM history)", "LIKE takes patterns, not a subquery"),
    # NULL.
    ("a = ^NULL", "NULL is not a literal here"),
    ("^NULL <> a", "NULL is not a literal here"),
    ("a IN (1, ^NULL)", "NULL is not a literal here"),
    ("a BETWEEN ^NULL AND 2", "NULL is not a literal here"),
    # Something is missing, or superfluous.
    ("a = ^", "an attribute or a literal is missing at the end"),
    ("a AND ^", "an attribute or a literal is missing at the end"),
    ("NOT ^", "an attribute or a literal is missing at the end"),
    ("a AND ^OR b", "an attribute or a literal is missing before OR"),
    ("^= 5", "an attribute or a literal is missing before ="),
    ("a ^== 5", "this operator is not supported: =="),
    ("a^<=>5", "this operator is not supported: <=>"),
    ("5 ^== a", "this operator is not supported: =="),
    ("a = ^= 5", "an attribute or a literal is missing before ="),
    ("a = ^(5)", "a literal is written without parentheses"),
    ("a = 1 ^= 2", "the predicate before = is already complete"),
    ("(a) ^= 2", "the predicate before = is already complete"),
    ("a ^b", "AND, OR or another operator is missing before b"),
    ("a = 1 ^'x'", "AND, OR or another operator is missing before 'x'"),
    ("a = 1 ^NOT b", "AND, OR or another operator is missing before NOT"),
    ("a = 1 ^(b)", "AND, OR or another operator is missing before ("),
    ("a NOT ^b", "after an attribute, NOT must be followed by one of IN, BETWEEN, LIKE, ILIKE, RLIKE, REGEXP"),
    ("a NOT ^NULL", "after an attribute, NOT must be followed by one of IN, BETWEEN, LIKE, ILIKE, RLIKE, REGEXP"),
    ("^(a = 1", "this parenthesis is never closed"),
    ("a AND ^(b OR (c)", "this parenthesis is never closed"),
    ("a = 1^)", "this parenthesis closes nothing"),
    ("(^)", "there is nothing between these parentheses"),
    ("a = 1^, b = 2", "a comma is allowed only inside IN (...) and functions"),
    ("(a^, b)", "a comma is allowed only inside IN (...) and functions"),
    ("a.^", "a part of the name is missing after the dot"),
    ("a.^5 = 1", "a part of the name is missing after the dot"),
    ("^5 AND a", "a literal alone is not a condition"),
    ("a AND ^'x'", "a literal alone is not a condition"),
    ("^5 IN (1, 2)", "the left side of IN must be an attribute, not a literal"),
    ("^5 BETWEEN a AND b", "the left side of BETWEEN must be an attribute, not a literal"),
    ("^5 IS NULL", "the left side of IS must be an attribute, not a literal"),
    ("^5 IS DISTINCT FROM a", "the left side of IS must be an attribute, not a literal"),
    ("^ANY (a) = 5", "ANY is allowed only after a comparison"),
    ("a IN ^5", "IN must be followed by literals in parentheses"),
    ("a IN (^)", "IN () needs at least one literal"),
    ("a IN (1,^)", "a literal is missing after the comma"),
    ("a IN (^,1)", "a literal is missing after IN ("),
    ("a IN (1 ^2)", "a comma or the closing parenthesis of IN is missing"),
    ("a IN (1^", "a comma or the closing parenthesis of IN is missing"),
    ("a IN (^b)", "a literal is expected after IN (, not the attribute b"),
    ("a BETWEEN ^b AND 2", "a literal is expected after BETWEEN, not the attribute b"),
    ("a BETWEEN 1 ^", "AND is missing between the ends of BETWEEN"),
    ("a BETWEEN 1 AND ^", "a literal is missing after AND"),
    ("a BETWEEN 1 ^OR 2", "AND is missing between the ends of BETWEEN"),
    ("a LIKE ^b", "a literal is expected after LIKE, not the attribute b"),
    ("a LIKE ANY (^b)", "a literal is expected after the parenthesis, not the attribute b"),
    ("a LIKE 'x' ESCAPE ^5", "ESCAPE must be followed by a string of one character"),
    ("array_contains(^'x', a)", "the first argument of array_contains must be an attribute"),
    ("array_contains(a^)", "a comma is missing after the attribute of array_contains"),
    ("array_contains(a, ^b)", "a literal is expected after the comma, not the attribute b"),
    ("array_contains(a, 1 ^", "the closing parenthesis of array_contains is missing"),
    # Literals that are wrong in themselves.
    ("a = ^5L", "this is not a number"),
    ("a = -^1e", "this is not a number"),
    ("a = ^0x1F", "this is not a number"),
    ("a = ^1_000", "this is not a number"),
    ("a = ^1.5.2", "this is not a number"),
    ("a = ^. 5", "this is not a number"),
    ("a = ^5AND b", "this is not a number"),
    ("a = ^9223372036854775808", "the integer 9223372036854775808 is beyond 64 bits"),
    ("a = ^-9223372036854775809", "the integer -9223372036854775809 is beyond 64 bits"),
    ("a IN (1, ^1e999)", "the number 1e999 is beyond the largest double"),
    ("a = DATE ^'2026-02-30'", "there is no such day: '2026-02-30'"),
    ("a = TIMESTAMP ^'now'", "TIMESTAMP cannot read 'now'"),
    ("a = ^'\ud800'", "holds a lone surrogate"),
    ('^"\udfff" = 1', "holds a lone surrogate"),
    ('^"" = 1', "an attribute's name cannot be empty"),
    ("a < ^TRUE", "booleans have no order: a < ..."),
    ("a BETWEEN ^1 AND 'x'", "the ends of BETWEEN must be of one kind, not number and string"),
    ("a LIKE ^5", "LIKE takes a string pattern, not 5"),
    ("a RLIKE ^'('", "RLIKE cannot read the pattern '('"),
    ("a RLIKE ^'(?=x)'", "RLIKE cannot read the pattern '(?=x)'"),
    ("a LIKE ^'x!y' ESCAPE '!'", "the escape '!' must come before %, _ or itself"),
    ("a LIKE 'x' ESCAPE ^'ab'", "ESCAPE takes one character, not 'ab'"),
    ("a NOT ILIKE 'x' ESCAPE ^''", "ESCAPE takes one character, not ''"),
    ("a RLIKE 'x' ESCAPE ^'!'", "ESCAPE belongs to LIKE and ILIKE, not to RLIKE"),
]


@pytest.mark.parametrize(("marked", "reason"), REFUSED)
@pytest.mark.parametrize("around", ["{}", "größe = 'ü' /* 😀 */ AND -- x\r\n\t{}"])
def test_refused(marked: str, reason: str, around: str) -> None:
    text = around.format(marked.replace("^", "", 1))
    position = around.format(marked).index("^")
    for read in (parse, parse_afresh):
        with pytest.raises(ParseError) as error:
            read(text)
        assert reason in error.value.reason
        assert error.value.position == position
        str(error.value).encode()


@pytest.mark.parametrize("text", ["", " ", "\n\t", "-- a = 1", "/* a = 1 */", "\ufeff"])
def test_empty_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="the expression is empty") as error:
        parse(text)
    assert error.value.position == 0


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a = NULL", "write IS NULL or IS NOT NULL"),
        ('a = "x"', "double quotes hold a name; a string is written in single quotes: 'x'"),
        ('a IN ("x")', "double quotes hold a name; a string is written in single quotes: 'x'"),
        ("a = \u2018x\u2019", "write strings in straight quotes: 'x'"),
        ("a IN (b)", "a string is written in single quotes: 'b'"),
        ("a == 1", "write ="),
        ("a <=> 1", "write a IS NOT DISTINCT FROM 5"),
        ("1 IS DISTINCT FROM a", "write a IS DISTINCT FROM 1"),
        ("b OR -1 IS NOT DISTINCT FROM `a b`.c", "write `a b`.c IS NOT DISTINCT FROM -1"),
        ("1 IS DISTINCT FROM 2", "use comparisons with literals, IN, BETWEEN"),
        ("a IS 5", "write a IS TRUE to test a boolean, a = 5 to test equality"),
        ("(a) IS NULL", "write a IS NULL for an attribute, (...) IS UNKNOWN for a condition"),
        ("a ~ 'x'", "write a RLIKE 'x' for a regular expression"),
        ("a && b", "write AND"),
        ("a || b", "write OR between conditions"),
        ("a > now()", "write a literal such as TIMESTAMP '2026-11-14 10:00:00'"),
        ("a > CURRENT_DATE", "write a literal such as TIMESTAMP '2026-11-14 10:00:00'"),
        ("CAST(a AS INT) = 5", "write the literal in the kind of the values"),
        ("coalesce(a, 0) = 0", "write a = 0 OR a IS NULL"),
        ("length(a) > 3", "write a LIKE '____%' for four characters or more"),
        ("date_trunc('day', a) = DATE '2026-01-01'", "write a range"),
        ("a GLOB 'x*'", "write a RLIKE 'x' for a regular expression"),
        ("a CONTAINS 'x'", "write contains(a, 'x')"),
        ("a NOT NULL", "write a IS NOT NULL"),
        ("'x' IN tags", "write 'x' = ANY (tags) to test the elements of a list"),
        ("'x' = ANY tags", "write ANY (tags)"),
        ("a = ANY ('x', 'y')", "write a list of literals with IN: a IN (1, 2)"),
        ("a << '10.0.0.0/8'", "write ip_in(a, '10.0.0.0/8') to test a network"),
        ("ip_in(a, '10.0.0.1/8')", "write 10.0.0.0/8, or 10.0.0.1 for the one address"),
        ("SELECT * FROM t WHERE a = 1", "write only the condition after WHERE"),
        ("a = 1 LIMIT 5", "write the condition alone"),
        ("a = :name", "write the value itself"),
        ("price < $20", "numbers are written like 5, -1.5 and 2e3"),
        ("price < 1,000", "numbers are written without commas: 1000"),
        ("user-id = 5", "quote a name with this character: `user-id`"),
        ("a =", "write a literal after =, such as 5 or 'x'"),
        ("(a) = 1", "write the attribute without parentheses: a = 5"),
        ("a < TRUE", "use = or <>"),
        ("a RLIKE '(?=x)'", "the syntax is RE2's (no look-around, no back-references)"),
        ("@a = 1", "quote a name with this character: `@a`"),
        (
            "frobnicate(a) = 'x'",
            "the functions are lower, upper, starts_with, ends_with, contains, array_contains and ip_in",
        ),
        ("a OR", "use comparisons with literals, IN, BETWEEN"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)
    assert error.value.hint.startswith(hint)


def test_the_message_shows_the_line_with_a_caret() -> None:
    with pytest.raises(ParseError) as error:
        parse("genre = 'x'\n  AND price = cost")
    assert str(error.value) == (
        "comparing two attributes is not supported: price = cost (line 2, column 15)\n"
        "    AND price = cost\n"
        "                ^\n"
        "Hint: a string is written in single quotes: 'cost'"
    )
    assert (error.value.line, error.value.column) == (2, 15)


WORDS_OF_SQL = """
    a b a.b 5 -5 .5 5. 1e5 1e 'x' '' 'it''s' "q" `q` ( ) , = <> != < <= > >= AND OR NOT IN BETWEEN LIKE ILIKE RLIKE
    ESCAPE IS NULL TRUE FALSE ANY ALL SOME EXISTS SELECT FROM WHERE AS history h h.x DATE TIMESTAMP '2026-01-01'
    UNKNOWN DISTINCT REGEXP TIMESTAMPTZ lower upper contains ip_in '10.0.0.0/8' && || ~ :: now() CURRENT_DATE
    array_contains + - * . ; -- /* */ [ ] :: ' " ` {# #} $ \x00 \ud800 é 99999999999999999999 1 CASE 0x1 1_0
"""
WORDS = [
    *WORDS_OF_SQL.split(),
    "\n",
    "a = 5",
    "a IN (1, 'x')",
    "a IN (1, 2.5, -3)",
    "a IS NOT UNKNOWN",
    "a IS DISTINCT FROM",
    "= ANY (a)",
    "LIKE ANY ('x', 'y')",
    "lower(a)",
    "a NOT LIKE 'x!%' ESCAPE '!'",
    "x < ANY (SELECT y FROM history)",
    "EXISTS (SELECT 1 FROM history h WHERE h.a = a)",
]


def soups() -> st.SearchStrategy[str]:
    """Words of this language and of other languages, in any order."""
    return st.builds(str.join, st.sampled_from([" ", "", "\n"]), st.lists(st.sampled_from(WORDS), max_size=12))


@given(soups() | st.text(), st.sampled_from(["tamis", "spark"]))
def test_no_text_raises_anything_else(text: str, dialect: str) -> None:
    for read in (parse, parse_afresh):
        error = None
        try:
            read(text, dialect=dialect)
        except TamisError as raised:
            error = raised
        str(error).encode()
        assert not isinstance(error, ParseError) or 0 <= error.position <= len(text)
