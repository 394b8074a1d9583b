"""Workloads to try and measure matching with, after the generators of the papers.

    config     WorkloadConfig: the parameters, checked       presets    the papers' defaults and our own shapes
    zipf       drawing by popularity                         implied    operators and literals that a value satisfies
    domain     what the numbers stand for                    arrays     the flat arrays
    draw       subscriptions and events, in blocks           arrow      arrays to Arrow
    generate   Workload: what a config gives                 write      to a folder of Parquet files

References: BE-Gen, Sadoghi and Jacobsen, BE-Tree, SIGMOD 2011, section 7.1; Ji and Jacobsen, PS-Tree, VLDB 2018, section 7.1;
Zhang, Chan and Tan, OpIndex, VLDB 2014, section 7.1.
"""

from tamis.errors import WorkloadError
from tamis.workload.arrays import EventArrays, PredicateArrays
from tamis.workload.config import Numbers, OperatorClass, Style, WorkloadConfig
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK
from tamis.workload.generate import Workload, generate
from tamis.workload.implied import OPERATORS
from tamis.workload.presets import PRESETS, preset
from tamis.workload.write import read_config, write

__all__ = [
    "EVENT_BLOCK",
    "OPERATORS",
    "PRESETS",
    "SUBSCRIPTION_BLOCK",
    "EventArrays",
    "Numbers",
    "OperatorClass",
    "PredicateArrays",
    "Style",
    "Workload",
    "WorkloadConfig",
    "WorkloadError",
    "generate",
    "preset",
    "read_config",
    "write",
]
