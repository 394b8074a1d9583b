"""The fields, and the sources of events. A rule is about one source and uses only the fields of this source.

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


class Source:
    """A source of events: its share of the rules, and the fields that these rules use. Shared and never changed."""

    def __init__(self, share: float, fields: list[Field]) -> None:
        self.share = share
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


def _source(share: float, *fields: tuple[str, Text, float]) -> Source:
    return Source(share, [Field(*field) for field in fields])


_NAMED = [
    _source(
        0.38,
        ("CommandLine", Text.COMMAND, 40),
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
    _source(0.11, ("TargetFilename", Text.PATH, 40), ("Image", Text.PATH, 10), ("User", Text.NAME, 1)),
    _source(
        0.12,
        ("TargetObject", Text.KEY, 40),
        ("Details", Text.NAME, 12),
        ("Image", Text.PATH, 8),
        ("EventType", Text.NAME, 3),
    ),
    _source(
        0.05,
        ("ImageLoaded", Text.PATH, 30),
        ("Image", Text.PATH, 12),
        ("Signature", Text.NAME, 2),
        ("Signed", Text.NAME, 2),
        ("SignatureStatus", Text.NAME, 1),
        ("Company", Text.NAME, 1),
    ),
    _source(
        0.05,
        ("DestinationHostname", Text.HOST, 20),
        ("QueryName", Text.HOST, 12),
        ("Image", Text.PATH, 10),
        ("DestinationIp", Text.NAME, 4),
        ("DestinationPort", Text.NAME, 4),
        ("Initiated", Text.NAME, 3),
        ("Protocol", Text.NAME, 1),
    ),
    _source(
        0.06,
        ("ScriptBlockText", Text.COMMAND, 40),
        ("Payload", Text.COMMAND, 8),
        ("ContextInfo", Text.COMMAND, 4),
        ("HostApplication", Text.COMMAND, 3),
        ("ScriptName", Text.PATH, 2),
        ("EventID", Text.NAME, 1),
    ),
    _source(
        0.03,
        ("EventID", Text.NAME, 10),
        ("Provider_Name", Text.NAME, 6),
        ("Channel", Text.NAME, 2),
        ("LogonType", Text.NAME, 3),
        ("SubjectUserName", Text.NAME, 3),
        ("ServiceName", Text.NAME, 3),
        ("ServiceFileName", Text.PATH, 4),
        ("PipeName", Text.PATH, 3),
        ("TaskContent", Text.COMMAND, 2),
    ),
]

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
    return [Source(left * weight / sum(weights), each) for weight, each in zip(weights, fields.values(), strict=True)]


def _names(sources: list[Source]) -> list[str]:
    return list(dict.fromkeys(field.name for source in sources for field in source.fields))


SOURCES = [*_NAMED, *_others(FIELD_COUNT - len(_names(_NAMED)))]
FIELDS: list[str] = _names(SOURCES)
"""The names of all fields that rules use."""

_CUMULATIVE = list(accumulate(source.share for source in SOURCES))


def draw_source(rng: Random) -> Source:
    return rng.choices(SOURCES, cum_weights=_CUMULATIVE)[0]
