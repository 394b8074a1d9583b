"""Drawing one event: a process that starts, and its parents. It may be planted, so that it satisfies a rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple, TypeAlias

from tamis.language.operators import Operator
from tamis.workload.detection.fields import Field
from tamis.workload.detection.rule import Conditions, Rule
from tamis.workload.detection.texts import AROUND, FRAGMENTS, Shape, Text, fill
from tamis.workload.detection.words import FAMILIAR, ODD

Event: TypeAlias = dict[str, str]

_ODD_PROGRAM, _ODD_ARGUMENT = 0.03, 0.10
"""The probabilities that a process has a program that rules look for, and an argument that rules look for."""

_START = datetime(2026, 3, 1, tzinfo=UTC)
_PAUSE = timedelta(milliseconds=137)

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
_LEVELS = ("Medium", "Medium", "Medium", "High", "System", "Low")


class _Process(NamedTuple):
    image: str
    command: str


def draw_event(rng: Random, number: int) -> Event:
    """An event that is not planted. Its time depends on the number."""
    process, parent, grandparent = (_process(rng) for _ in range(3))
    user, host = FAMILIAR.draw(rng).plain, FAMILIAR.draw(rng).plain
    vendor, product = FAMILIAR.draw(rng).name, FAMILIAR.draw(rng).name
    program = process.image.rpartition("\\")[2]
    version = f"{rng.randint(1, 20)}.{rng.randint(0, 9)}.{rng.randint(1000, 30000)}.{rng.randint(0, 999)}"
    return {
        "EventID": "1",
        "Provider_Name": "Endpoint-Telemetry-Processes",
        "Channel": "Endpoint-Telemetry/Operational",
        "Computer": f"{host}-{rng.randint(100, 999)}.corp.example",
        "UtcTime": (_START + number * _PAUSE).isoformat(" ", "milliseconds")[:23],
        "ProcessGuid": _guid(rng),
        "ProcessId": str(rng.randint(400, 30_000)),
        "Image": process.image,
        "OriginalFileName": program,
        "FileVersion": version,
        "Description": f"{vendor} {product} {program[:-4]} component",
        "Product": f"{vendor} {product}",
        "Company": f"{vendor} Limited",
        "CommandLine": process.command,
        "CurrentDirectory": f"C:\\Users\\{user}\\Documents\\",
        "User": rf"CORP\{user}",
        "LogonGuid": _guid(rng),
        "LogonId": f"0x{rng.getrandbits(24):x}",
        "TerminalSessionId": str(rng.randint(0, 3)),
        "IntegrityLevel": rng.choice(_LEVELS),
        "Hashes": _hashes(rng),
        "Signature": f"{vendor} Limited Code Signing {rng.randint(2020, 2026)}",
        "SignatureStatus": "Valid",
        "ParentProcessGuid": _guid(rng),
        "ParentProcessId": str(rng.randint(400, 30_000)),
        "ParentImage": parent.image,
        "ParentCommandLine": parent.command,
        "ParentUser": rf"CORP\{user}",
        "GrandparentImage": grandparent.image,
        "GrandparentCommandLine": grandparent.command,
    }


def plant(rule: Rule, event: Event, rng: Random) -> None:
    """Change an event so that it satisfies a rule: one condition of each selection, and no filter."""
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


def _process(rng: Random) -> _Process:
    """A running program: its file, and its command line."""
    folder = fill(rng.choice(FOLDERS), FAMILIAR, rng)
    if rng.random() < _ODD_PROGRAM:
        image = folder + fill(rng.choice(FRAGMENTS[Text.PATH][Shape.SUFFIX]), ODD, rng)
    else:
        image = rf"{folder}\{FAMILIAR.draw(rng).plain}.exe"
    arguments = [fill(rng.choice(ARGUMENTS), FAMILIAR, rng) for _ in range(rng.randint(4, 17))]
    if rng.random() < _ODD_ARGUMENT:
        arguments.append(fill(rng.choice(FRAGMENTS[Text.COMMAND][Shape.CONTAINS]), ODD, rng))
    return _Process(image, f'"{image}"{"".join(arguments)}')


def _guid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"{{{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}}}"


def _hashes(rng: Random) -> str:
    lengths = {"SHA1": 160, "MD5": 128, "SHA256": 256, "IMPHASH": 128}
    return ",".join(f"{name}={rng.getrandbits(bits):0{bits // 4}x}" for name, bits in lengths.items())
