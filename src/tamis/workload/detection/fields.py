"""The fields, and the sources of events. A rule is about one source: it asks for its log source and uses only its fields.

The field of a list of conditions depends on the shape of the list. Conditions on programs usually have the end of a path,
conditions on commands a part, conditions on names the whole name. A field is drawn by its weight in the source times the
affinity of its kind of text to the shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate, islice, product
from random import Random
from typing import NamedTuple

from tamis.workload.detection.texts import Shape, Text

FIELD_COUNT = 411
"""The number of fields that rules use."""

_AFFINITY: Mapping[Text, Mapping[Shape, float]] = {
    Text.PATH: {Shape.CONTAINS: 2, Shape.SUFFIX: 8, Shape.EXACT: 1, Shape.PREFIX: 6, Shape.REGEX: 1, Shape.EQUAL: 0.1},
    Text.COMMAND: {Shape.CONTAINS: 8, Shape.SUFFIX: 0.3, Shape.EXACT: 0.1, Shape.PREFIX: 0.3, Shape.REGEX: 4},
    Text.KEY: {Shape.CONTAINS: 5, Shape.SUFFIX: 5, Shape.EXACT: 1, Shape.PREFIX: 2, Shape.REGEX: 1},
    Text.HOST: {Shape.CONTAINS: 1, Shape.SUFFIX: 5, Shape.EXACT: 1, Shape.PREFIX: 0.5, Shape.REGEX: 0.5},
    Text.NAME: {
        Shape.CONTAINS: 0.7, Shape.SUFFIX: 0.4, Shape.EXACT: 6, Shape.PREFIX: 1, Shape.REGEX: 0.3, Shape.EQUAL: 8,
    },
    Text.HASH: {Shape.CONTAINS: 1},
}  # fmt: skip


class Field(NamedTuple):
    name: str
    text: Text
    weight: float


LOG_SOURCE = "logsource."
"""Before the names of the fields that say where an event is from."""


class Source:
    """A source of events: its share of the rules, and the fields that these rules use. Shared and never changed.

    `seen` is its share of the events. Most events are from sources that few rules are about. `log_source` is what its rules ask
    for: category, product or service.
    """

    def __init__(self, share: float, seen: float, log_source: Mapping[str, str], fields: list[Field]) -> None:
        self.share = share
        self.seen = seen
        self.log_source = log_source
        self.fields = fields

    @cached_property
    def weights(self) -> Mapping[Shape, list[tuple[Field, float]]]:
        """The fields that a condition of a shape may be about, with their weights."""
        return {
            shape: [
                (field, field.weight * affinity)
                for field in self.fields
                if (affinity := _AFFINITY[field.text].get(shape))
            ]
            for shape in Shape
        }


def _source(share: float, seen: float, log_source: Mapping[str, str], *fields: tuple[str, Text, float]) -> Source:
    return Source(share, seen, log_source, [Field(*field) for field in fields])


def _endpoint(category: str) -> Mapping[str, str]:
    return {"category": category, "product": "endpoint"}


_NAMED = [
    _source(
        0.43,
        0.03,
        _endpoint("process_start"),
        ("CommandLine", Text.COMMAND, 200),
        ("Image", Text.PATH, 30),
        ("ParentImage", Text.PATH, 13),
        ("OriginalFileName", Text.NAME, 12),
        ("ParentCommandLine", Text.COMMAND, 4),
        ("User", Text.NAME, 2),
        ("Description", Text.NAME, 2),
        ("Product", Text.NAME, 1),
        ("Company", Text.NAME, 1),
        ("IntegrityLevel", Text.NAME, 1),
        ("CurrentDirectory", Text.PATH, 1),
        ("Hashes", Text.HASH, 1),
        ("ParentUser", Text.NAME, 0.3),
        ("LogonId", Text.NAME, 0.3),
    ),
    _source(
        0.08,
        0.06,
        _endpoint("file_write"),
        ("TargetFilename", Text.PATH, 30),
        ("Image", Text.PATH, 12),
        ("User", Text.NAME, 1),
    ),
    _source(
        0.08,
        0.1,
        _endpoint("registry_write"),
        ("TargetObject", Text.KEY, 40),
        ("Details", Text.NAME, 12),
        ("Image", Text.PATH, 8),
        ("EventType", Text.NAME, 3),
    ),
    _source(
        0.04,
        0.05,
        _endpoint("library_load"),
        ("ImageLoaded", Text.PATH, 30),
        ("Image", Text.PATH, 12),
        ("Signature", Text.NAME, 2),
        ("Signed", Text.NAME, 2),
        ("SignatureStatus", Text.NAME, 1),
        ("Company", Text.NAME, 1),
    ),
    _source(
        0.05,
        0.06,
        _endpoint("network_connection"),
        ("DestinationHostname", Text.HOST, 20),
        ("QueryName", Text.HOST, 12),
        ("Image", Text.PATH, 10),
        ("DestinationIp", Text.NAME, 4),
        ("DestinationPort", Text.NAME, 4),
        ("Initiated", Text.NAME, 3),
        ("Protocol", Text.NAME, 1),
    ),
    _source(
        0.07,
        0.15,
        _endpoint("script_block"),
        ("ScriptBlockText", Text.COMMAND, 40),
        ("Payload", Text.COMMAND, 8),
        ("ContextInfo", Text.COMMAND, 4),
        ("HostApplication", Text.COMMAND, 3),
        ("ScriptName", Text.PATH, 2),
        ("EventID", Text.NAME, 1),
    ),
    _source(
        0.05,
        0.42,
        {"product": "endpoint", "service": "audit"},
        ("EventID", Text.NAME, 10),
        ("Provider_Name", Text.NAME, 6),
        ("Channel", Text.NAME, 2),
        ("LogonType", Text.NAME, 3),
        ("SubjectUserName", Text.NAME, 3),
        ("ServiceName", Text.NAME, 3),
        ("ServiceFileName", Text.PATH, 4),
        ("PipeName", Text.PATH, 3),
        ("TaskContent", Text.COMMAND, 2),
        ("Message", Text.COMMAND, 1),
    ),
]

_OTHERS_SEEN = 0.06
"""The share of events from all sources of less common fields."""

_SUBJECTS = """
Account Archive Bucket Certificate Cluster Container Credential Database Device Directory Domain Firewall Function Gateway
Group Instance Mailbox Policy Proxy Queue Role Secret Session Share Snapshot Tenant Token Volume Workflow
"""
_PROPERTIES = [
    ("Action", Text.NAME, 4),
    ("Name", Text.NAME, 3),
    ("Path", Text.PATH, 3),
    ("Command", Text.COMMAND, 2),
    ("Host", Text.HOST, 3),
    ("Key", Text.KEY, 2),
    ("Type", Text.NAME, 2),
    ("Owner", Text.NAME, 2),
    ("Agent", Text.COMMAND, 2),
    ("Origin", Text.HOST, 2),
    ("Status", Text.NAME, 2),
    ("Operation", Text.NAME, 2),
    ("Reason", Text.NAME, 2),
    ("Scope", Text.NAME, 2),
]


def _others(count: int) -> list[Source]:
    """Sources of less common fields, `count` fields in total. Most rules use the first sources."""
    fields: dict[str, list[Field]] = {subject: [] for subject in _SUBJECTS.split()}
    for (name, text, weight), subject in islice(product(_PROPERTIES, fields), count):
        fields[subject].append(Field(subject + name, text, weight))
    weights = [1 / (rank + 5) for rank in range(len(fields))]
    left = 1 - sum(source.share for source in _NAMED)
    return [
        Source(left * weight / sum(weights), _OTHERS_SEEN * weight / sum(weights), _log_source(rank, subject), each)
        for rank, (weight, (subject, each)) in enumerate(zip(weights, fields.items(), strict=True))
    ]


def _log_source(rank: int, subject: str) -> Mapping[str, str]:
    """The log source of less common fields. Rules about one in four such sources ask for a category alone."""
    name = subject.lower()
    return {"category": name} if rank % 4 == 3 else {"product": "cloud", "service": name}


def _names(sources: list[Source]) -> list[str]:
    return list(dict.fromkeys(field.name for source in sources for field in source.fields))


SOURCES = [*_NAMED, *_others(FIELD_COUNT - len(_names(_NAMED)))]
FIELDS: list[str] = _names(SOURCES)
"""The names of all fields that rules use."""

LOG_SOURCE_FIELDS = [LOG_SOURCE + name for name in ("category", "product", "service")]

_QUIET = Source(0, 1 - sum(source.seen for source in SOURCES), {"category": "disk_access", "product": "endpoint"}, [])
"""A source that no rule is about."""

_CUMULATIVE = list(accumulate(source.share for source in SOURCES))
_SEEN = [*SOURCES, _QUIET]
_CUMULATIVE_SEEN = list(accumulate(source.seen for source in _SEEN))


def draw_source(rng: Random) -> Source:
    """The source of a rule."""
    return rng.choices(SOURCES, cum_weights=_CUMULATIVE)[0]


def draw_seen_source(rng: Random) -> Source:
    """The source of an event."""
    return rng.choices(_SEEN, cum_weights=_CUMULATIVE_SEEN)[0]
