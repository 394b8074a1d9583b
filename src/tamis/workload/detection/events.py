"""Drawing one event of a source. It may be planted, so that it satisfies a rule.

Values repeat: programs, users and keys of a machine come again and again. A value that repeats is drawn by a number, which small
numbers are more likely.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import TypeAlias

from tamis.language.operators import Operator
from tamis.workload.detection.fields import LOG_SOURCE, Field, Source, draw_seen_source
from tamis.workload.detection.rule import Conditions, Rule
from tamis.workload.detection.texts import AROUND, FRAGMENTS, Shape, Text, fill
from tamis.workload.detection.words import FAMILIAR, ODD

Event: TypeAlias = dict[str, str]

_ODD_PROGRAM, _ODD_ARGUMENT = 0.12, 0.35
"""The probabilities that a value has a program that rules look for, and a command an argument that rules look for."""

_START = datetime(2026, 3, 1, tzinfo=UTC)
_PAUSE = timedelta(milliseconds=137)

_NEW: Mapping[Text, float] = {
    Text.PATH: 0.05, Text.COMMAND: 0.3, Text.KEY: 0.1, Text.HOST: 0.1, Text.NAME: 0.01, Text.HASH: 0.3,
}  # fmt: skip
"""The share of values that no other event has."""
_KNOWN = 400
"""Values of one kind that repeat."""
_HOSTS, _EVENT_IDS = 20, 12
"""Machines, and kinds of events of one source."""
_PRESENT = 0.6
"""The share of the fields of a source that an event has, besides the first one."""
_MESSAGE = 1_200
"""Characters of a message that repeats what the other fields say."""

FOLDERS = (
    r"C:\Windows\System32", r"C:\Windows\System32", r"C:\Windows\SysWOW64", r"C:\Program Files\{A}\{B}",
    r"C:\Program Files\{A}\{B}\bin", r"C:\Program Files (x86)\{A}\{B}", r"C:\ProgramData\{A}\{B}\current",
    r"C:\Users\{a}\AppData\Local\{B}\Application", r"C:\Users\{a}\AppData\Local\Programs\{B}",
)  # fmt: skip
ARGUMENTS = (
    " --{a}-{b}", " --{a}={b}{n}", " /{a}:{B}", ' -{a} "{A} {B} {n}"', " --session {h}",
    ' --{a}-file "C:\\ProgramData\\{A}\\{b}.json"', r" --{a}-dir C:\Users\{b}\AppData\Roaming\{A}\cache\{B}",
    " --{a}-url https://{b}.internal.example/{a}/v{n}", r" --log C:\ProgramData\{A}\{B}\logs\{a}-{b}-{n}.log",
)  # fmt: skip
KEYS = (
    r"HKLM\System\CurrentControlSet\Services\{A}\{B}", r"HKLM\Software\Classes\{A}.{B}\shell", r"HKU\S-1-5-21-{n}\{A}\{B}\{a}",
)  # fmt: skip
NAMES = ("{A} {B}", "{a}", "{A}", r"CORP\{a}", "0x{n}")
MACHINES = "{a}-{n}.corp.example"
_TELEMETRY = {"product": "endpoint", "service": "telemetry"}
"""What events of a source with a category alone also say."""


def draw_event(rng: Random, number: int, source: Source | None = None) -> Event:
    """An event that is not planted, from any source or from one. Its time depends on the number."""
    source = draw_seen_source(rng) if source is None else source
    log_source = _TELEMETRY | dict(source.log_source)
    kind = " ".join(log_source.values())
    channel = f"Endpoint-Telemetry-{kind.title().replace(' ', '-')}"
    code = int(_EVENT_IDS * rng.random() ** 2)
    machine = _known(MACHINES, int(_HOSTS * rng.random() ** 2))
    time = (_START + number * _PAUSE).isoformat(" ", "milliseconds")[:23]
    event = {
        "EventID": str(4_600 + code),
        "Channel": f"{channel}/Operational",
        "Provider_Name": channel,
        "SourceName": channel,
        "Category": f"{kind.title()} (rule: {code})",
        "ProviderGuid": _guid(Random(kind)),
        "Computer": machine,
        "Hostname": machine.partition(".")[0],
        "Keywords": f"0x{1 << (code % 3):016x}",
        "Task": str(12_000 + code),
        "Opcode": "Info",
        "Version": str(code % 3),
        "Severity": "Information" if code else "Warning",
        "RecordNumber": str(100_000 + number),
        "ProcessId": str(400 + 4 * int(2_000 * rng.random() ** 2)),
        "ThreadID": str(400 + 4 * int(2_000 * rng.random() ** 2)),
        "UtcTime": time,
        "EventReceivedTime": time[:19],
    }
    kept = [field for at, field in enumerate(source.fields) if at == 0 or rng.random() < _PRESENT]
    event |= {field.name: _value(field.text, rng) for field in kept if field.name not in (*event, "Message")}
    if "CommandLine" in event:
        event |= _of_process(event, rng)
    else:
        event |= _of_others(rng)
    said = "\r\n\t".join(f"{name}:\t{value}" for name, value in reversed(event.items()))
    event["Message"] = f"Something was done, which the source {kind} reports.\r\n\r\nDetails:\r\n\t{said}"[:_MESSAGE]
    return event | {LOG_SOURCE + name: value for name, value in log_source.items()}


def _of_process(event: Event, rng: Random) -> Event:
    """The fields of an event about a process that nobody asks about, and a command line that begins with the program."""
    image = event.setdefault("Image", _value(Text.PATH, rng))
    _, _, arguments = event["CommandLine"].partition(" -")
    return {
        "CommandLine": f'"{image}" -{arguments}',
        "OriginalFileName": image.rpartition("\\")[2],
        "FileVersion": f"{rng.randint(1, 20)}.{rng.randint(0, 9)}",
        "ProcessGuid": _guid(rng),
        "LogonGuid": _guid(rng),
        "TerminalSessionId": str(rng.randint(0, 3)),
        "ParentProcessGuid": _guid(rng),
        "ParentProcessId": str(rng.randint(400, 30_000)),
    }


def _of_others(rng: Random) -> Event:
    """Fields of other events that nobody asks about."""
    return {
        "ProcessGuid": _guid(rng),
        "SubjectUserSid": f"S-1-5-21-{int(90 * rng.random() ** 3)}",
        "SubjectLogonId": f"0x{int(4_000 * rng.random() ** 2):x}",
        "ObjectServer": "Security",
        "AccessMask": f"0x{1 << rng.randrange(8):x}",
        "HandleId": f"0x{4 * int(900 * rng.random() ** 2):x}",
    }


def _value(text: Text, rng: Random) -> str:
    if rng.random() < _NEW[text]:
        return _drawn(text, rng)
    return _known(text, int(_KNOWN * rng.random() ** 4))


@lru_cache(1 << 16)
def _known(text: str, number: int) -> str:
    """A value that many events have: of a kind, or from a template."""
    rng = Random(f"{text} {number}")
    return _drawn(text, rng) if isinstance(text, Text) else fill(text, FAMILIAR, rng)


def _drawn(text: Text, rng: Random) -> str:
    """A value of a kind."""
    match text:
        case Text.PATH:
            folder = fill(rng.choice(FOLDERS), FAMILIAR, rng)
            if rng.random() < _ODD_PROGRAM:
                return folder + fill(rng.choice(FRAGMENTS[Text.PATH][Shape.SUFFIX]), ODD, rng)
            return rf"{folder}\{FAMILIAR.draw(rng).plain}.exe"
        case Text.COMMAND:
            arguments = [fill(rng.choice(ARGUMENTS), FAMILIAR, rng) for _ in range(rng.randint(4, 17))]
            if rng.random() < _ODD_ARGUMENT:
                arguments.append(fill(rng.choice(FRAGMENTS[Text.COMMAND][Shape.CONTAINS]), ODD, rng))
            return f'"{_drawn(Text.PATH, rng)}"{"".join(arguments)}'
        case Text.HASH:
            lengths = {"SHA1": 160, "MD5": 128, "SHA256": 256, "IMPHASH": 128}
            return ",".join(f"{name}={rng.getrandbits(bits):0{bits // 4}x}" for name, bits in lengths.items())
        case Text.KEY:
            return fill(rng.choice(KEYS), FAMILIAR, rng)
        case Text.HOST:
            return fill(MACHINES, FAMILIAR, rng)
    return fill(rng.choice(NAMES), FAMILIAR, rng)


def plant(rule: Rule, event: Event, rng: Random) -> None:
    """Change an event of the source of a rule so that it satisfies the rule: one condition of each selection, and no filter."""
    chosen: dict[Field, Conditions] = {}
    for selection in rule.selections:
        condition = rng.choice(selection)
        chosen.setdefault(condition.field, []).append(condition)
    # If the event lacked a field of a filter, NOT of the filter would be unknown.
    for lists in rule.filters:
        for conditions in lists:
            event[conditions[0].field.name] = "".join(AROUND[conditions[0].field.text])
    for field, conditions in chosen.items():
        event[field.name] = _satisfying(field.text, conditions, rng)


def _satisfying(text: Text, conditions: Conditions, rng: Random) -> str:
    """A text that satisfies all conditions. If there are several, all have the shape CONTAINS."""
    head, tail = AROUND[text]
    samples = [
        condition.sample.upper() if condition.operator is Operator.ILIKE and rng.random() < 0.1 else condition.sample
        for condition in conditions
    ]
    match conditions[0].shape:
        case Shape.EXACT | Shape.EQUAL:
            return samples[0]
        case Shape.PREFIX:
            return samples[0] + tail
        case Shape.SUFFIX | Shape.REGEX:
            return head + samples[0]
    return head + " ".join(samples) + tail


def _guid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"{{{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}}}"
