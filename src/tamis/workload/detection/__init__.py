"""Detection rules and their events, similar to public sets of security rules in our language. All names are invented.
Read in this order:

    config     DetectionConfig: the parameters
    words      invented words, familiar ones and odd ones
    texts      what paths, commands, keys, ... look like
    fields     the fields, and the sources of events
    rule       Rule: conditions, and their expression
    draw       one rule, from the seed and its number
    events     one event, planted for a rule or not

The rules follow the figures of a set of 3,945 rules with 58,419 predicates. See `draw`.
"""

from tamis.workload.detection.config import DetectionConfig

__all__ = ["DetectionConfig"]
