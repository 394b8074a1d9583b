"""Detection rules and the events they watch, like public sets of security rules put into our language. All names are invented.

    config     DetectionConfig: the parameters              words      invented words, familiar ones and odd ones
    texts      what paths, commands, keys, ... look like    fields     the fields, and which kinds of rules ask about them
    rule       Rule: conditions, and their expression       draw       one rule, from the seed and its number
    events     one event, as it comes or planted for a rule

The numbers that the rules keep to are those of a set of 3,945 rules with 58,419 predicates; see `draw`.
"""

from tamis.workload.detection.config import DetectionConfig

__all__ = ["DetectionConfig"]
