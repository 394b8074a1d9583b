r"""The texts of fields, and the fragments of texts that rules look for.

A fragment is drawn from a template: `{a}` and `{b}` are words, `{A}` and `{B}` the same words as names, `{n}` two digits and
`{h}` a hash. ``\{a}.exe`` as the end of a path becomes ``Image ILIKE '%\torval.exe'``. Every template has a word or a hash,
so its fragments are as rare as its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import NamedTuple

from tamis.workload.detection.words import Words


class Text(StrEnum):
    """A kind of text."""

    PATH = "path"
    COMMAND = "command"
    KEY = "key"
    HOST = "host"
    NAME = "name"
    HASH = "hash"


class Shape(StrEnum):
    """How a condition looks for a fragment. The first four shapes use ILIKE, REGEX uses RLIKE, EQUAL uses = or IN."""

    CONTAINS = "contains"
    SUFFIX = "suffix"
    PREFIX = "prefix"
    EXACT = "exact"
    REGEX = "regex"
    EQUAL = "equal"


class Pattern(NamedTuple):
    """A template with wildcards, and the template of a text that it matches."""

    template: str
    sample: str


_NAMES = ("{A}", "{A} {B}", "{a}", "{a}.exe", "{A}{n}")

FRAGMENTS: Mapping[Text, Mapping[Shape, tuple[str, ...]]] = {
    Text.PATH: {
        Shape.CONTAINS: ("\\{A}\\", "\\AppData\\Local\\{A}\\", r"\{a}-{b}", r"\Temp\{a}", "\\{A}\\{B}\\"),
        Shape.SUFFIX: (r"\{a}.exe", r"\{a}.exe", r"\{a}{n}.exe", r"\{a}.dll", r"\{a}_{b}.exe", r"\{A}\{b}.exe", ".{a}"),
        Shape.PREFIX: ("C:\\ProgramData\\{A}\\", r"C:\Users\Public\{a}", "C:\\Program Files\\{A}\\"),
        Shape.EXACT: (r"C:\ProgramData\{A}\{b}.exe", r"C:\Windows\Temp\{a}.exe"),
        Shape.EQUAL: (r"C:\Windows\System32\{a}.exe",),
    },
    Text.COMMAND: {
        Shape.CONTAINS: (
            " -{a}", " -{a} ", " --{a}-{b}", " /{a}:", "/{a} ", " {a}.ps1", r"\{a}.dll,{B}", "{A}-{B}", "{A}-{b} -",
            "//{a}.example/", "\\{a}\\", "({a})", "${a}{n}", "{a}_{b}", "[{A}.{B}]::", "%{a}%",
        ),
        Shape.SUFFIX: (" -{a}", " {a}.cfg", " /{a}"),
        Shape.PREFIX: ("{a}.exe /", "{a} -{b}"),
        Shape.EXACT: ("{a}.exe -{b}", r'"C:\Windows\Temp\{a}.exe" {b}'),
        Shape.EQUAL: ("{a} {b}",),
    },
    Text.KEY: {
        Shape.CONTAINS: ("\\Software\\{A}\\", r"\{A}\{B}", r"\Services\{A}", "\\CurrentVersion\\{A}\\", "\\{a}\\"),
        Shape.SUFFIX: (r"\{A}", r"\{A}\{B}", r"\Parameters\{A}", r"\{A}{n}"),
        Shape.PREFIX: ("HKLM\\Software\\{A}\\", r"HKLM\System\{A}"),
        Shape.EXACT: (r"HKLM\System\{A}\{B}",),
        Shape.EQUAL: (r"HKLM\System\Setup\{A}",),
    },
    Text.HOST: {
        Shape.CONTAINS: ("{a}", "{a}-{b}", ".{a}."),
        Shape.SUFFIX: (".{a}.example", "{a}-{b}.example", "{a}.example"),
        Shape.PREFIX: ("{a}.", "{a}-"),
        Shape.EXACT: ("{a}.{b}.example", "{a}.example"),
        Shape.EQUAL: ("{a}.example",),
    },
    Text.NAME: {
        Shape.CONTAINS: ("{a}", "{a} {b}", "{A}-"),
        Shape.SUFFIX: (" {A}", "{a}", r"\{a}"),
        Shape.PREFIX: ("{A} ", "{a}_", "{A}"),
        Shape.EXACT: _NAMES,
        Shape.EQUAL: _NAMES,
    },
    Text.HASH: {Shape.CONTAINS: ("MD5={h}", "IMPHASH={h}", "{h}")},
}  # fmt: skip
"""The templates of fragments, by the kind of text and the shape of the condition."""

GENERAL: Mapping[Text, tuple[Pattern, ...]] = {
    Text.PATH: (Pattern(r"\{A}\%\{b}.exe", r"\{A}\bin\{b}.exe"), Pattern(r"\{a}__.exe", r"\{a}64.exe")),
    Text.COMMAND: (Pattern(" -{a}%{b}", " -{a} {b}"), Pattern("{a}_{b}", "{a}={b}")),
    Text.KEY: (Pattern(r"\{A}\%\{B}", r"\{A}\0001\{B}"), Pattern(r"\{A}_\{B}", r"\{A}7\{B}")),
    Text.HOST: (Pattern("{a}__.example", "{a}07.example"),),
    Text.NAME: (Pattern("{a}%{b}", "{a} {b}"),),
}
"""Fragments with a wildcard inside, for conditions of the shapes SUFFIX and CONTAINS."""

REGEX: Mapping[Text, tuple[Pattern, ...]] = {
    Text.PATH: (Pattern(r"(?i)\\{a}[0-9]+\.exe$", r"\{a}42.exe"), Pattern(r"\\{a}\.[a-z]{{3}}$", r"\{a}.dat")),
    Text.COMMAND: (
        Pattern(r"-{a}\s+[0-9a-f]{{4,}}", "-{a} 3f07ab"),
        Pattern(r"(?i)(^|\s)[-/]{a}\b.*\b{b}\b", " /{a} to {b}"),
    ),
    Text.KEY: (Pattern(r"\\{A}\\[0-9]+$", r"\{A}\31"),),
    Text.HOST: (Pattern(r"^[a-z0-9]+\.{a}\.example$", ".{a}.example"),),
    Text.NAME: (Pattern(r"{a}[0-9]{{2,4}}", "{a}2026"),),
}
"""Regular expressions. Each matches the head of `AROUND` followed by its sample."""

AROUND: Mapping[Text, tuple[str, str]] = {
    Text.PATH: (r"D:\Data", ".old"),
    Text.COMMAND: ("start /b ", " /q"),
    Text.KEY: (r"HKU\S-1-5-21", r"\Data"),
    Text.HOST: ("node7", ".internal"),
    Text.NAME: ("Unit", " 5"),
    Text.HASH: ("SHA1=0,", ",END"),
}
"""The texts before and after the fragments in a planted text. No rule looks for them."""


def fill(template: str, words: Words, rng: Random) -> str:
    """A text from a template."""
    return template.format_map(_drawn(words, rng))


def fill_both(pattern: Pattern, words: Words, rng: Random) -> Pattern:
    """A pattern and its sample, with the same words in both."""
    drawn = _drawn(words, rng)
    return Pattern(*(template.format_map(drawn) for template in pattern))


def _drawn(words: Words, rng: Random) -> dict[str, str]:
    first, second, bits = words.draw(rng), words.draw(rng), rng.getrandbits(128)
    return {
        "a": first.plain,
        "b": second.plain,
        "A": first.name,
        "B": second.name,
        "n": str(10 + bits % 90),
        "h": f"{bits:032x}",
    }
