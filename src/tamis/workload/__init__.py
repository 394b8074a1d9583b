"""Workloads to try and measure matching: the generators of the papers, price alerts, and detection rules. Read in this order:

    parameters           what all configs share
    config               WorkloadConfig: the papers' styles
    styles               the config of each style
    presets              the papers' defaults and our own shapes
    tables               the papers' tables: which values each parameter takes
    workload             Workload: the interface of all workloads
    predicate_workload   conjunctions: papers and alerts
    rule_workload        detection rules
    generate             from a config to its workload
    arrays, arrow        the flat arrays, and these in Arrow
    draw                 subscriptions and events, in blocks
    derived, papers      drawing the papers' styles
    alerts               AlertsConfig, and drawing price alerts
    fabret               FabretConfig, and drawing Fabret's workload
    tatbul               TatbulConfig, intervals and their overlap
    ads                  AdsConfig, advertisements and sessions
    text/                lines of text: of files, or made of syllables
    grams                GramsConfig, DerivedGramsConfig: lines as 3-grams
    keywords             KeywordsConfig: queries as subscriptions, documents as events
    products             ProductsConfig: conditions on item specifics, from a product_table
    prefixes             PrefixesConfig: words and their prefixes
    planting             events that satisfy chosen subscriptions
    detection/           DetectionConfig, rules and their events
    domain               the meaning of the numbers
    zipf, implied        drawing by popularity; operators that a value satisfies
    write                to a folder of Parquet files

References: BE-Gen, Sadoghi and Jacobsen, BE-Tree, SIGMOD 2011, section 7.1; Ji and Jacobsen, PS-Tree, VLDB 2018, section 7.1;
Zhang, Chan and Tan, OpIndex, VLDB 2014, section 7.1; Fabret et al., Filtering Algorithms and Implementation for Very Fast
Publish/Subscribe Systems, SIGMOD 2001; Tatbul, profiles, 2001, section 4.1.
"""

from tamis.errors import WorkloadError
from tamis.workload.ads import AdsConfig
from tamis.workload.alerts import AlertsConfig
from tamis.workload.arrays import EventArrays, PredicateArrays
from tamis.workload.config import Numbers, OperatorClass, Style, WorkloadConfig
from tamis.workload.detection import DetectionConfig
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK
from tamis.workload.fabret import FabretConfig
from tamis.workload.generate import generate
from tamis.workload.grams import DerivedGramsConfig, GramsConfig
from tamis.workload.implied import OPERATORS
from tamis.workload.keywords import KeywordsConfig
from tamis.workload.predicate_workload import PredicateWorkload
from tamis.workload.prefixes import PrefixesConfig
from tamis.workload.presets import PRESETS, preset
from tamis.workload.products import ProductsConfig
from tamis.workload.rule_workload import RuleWorkload
from tamis.workload.styles import AnyConfig
from tamis.workload.tables import TABLES, Column, column
from tamis.workload.tatbul import TatbulConfig, measured_overlap
from tamis.workload.workload import Workload
from tamis.workload.write import read_config, write

__all__ = [
    "EVENT_BLOCK",
    "OPERATORS",
    "PRESETS",
    "SUBSCRIPTION_BLOCK",
    "TABLES",
    "AdsConfig",
    "AlertsConfig",
    "AnyConfig",
    "Column",
    "DerivedGramsConfig",
    "DetectionConfig",
    "EventArrays",
    "FabretConfig",
    "GramsConfig",
    "KeywordsConfig",
    "Numbers",
    "OperatorClass",
    "PredicateArrays",
    "PredicateWorkload",
    "PrefixesConfig",
    "ProductsConfig",
    "RuleWorkload",
    "Style",
    "TatbulConfig",
    "Workload",
    "WorkloadConfig",
    "WorkloadError",
    "column",
    "generate",
    "measured_overlap",
    "preset",
    "read_config",
    "write",
]
