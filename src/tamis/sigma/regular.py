"""How pySigma reads the regular expressions of rules: with RE2, as we do, and without messages on stderr."""

from __future__ import annotations

import re
from typing import Any

import re2
from sigma.policy import SigmaPolicy
from sigma.policy.regex_engine import RegexEngine, RegexPattern

_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}


class QuietEngine(RegexEngine):
    """RE2 that reports a wrong pattern as an error only. It can be copied with a rule, unlike pySigma's own."""

    @property
    def error(self) -> type[Exception]:
        wrong: type[Exception] = re2.error
        return wrong

    def compile(self, pattern: str, flags: int = 0) -> RegexPattern:
        options = re2.Options()
        options.log_errors = False
        letters = "".join(letter for flag, letter in _FLAGS.items() if flags & flag)
        try:
            compiled: Any = re2.compile(f"(?{letters}){pattern}" if letters else pattern, options)
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            raise re2.error(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from None
        found: RegexPattern = compiled
        return found


POLICY = SigmaPolicy(regex_engine=QuietEngine())
