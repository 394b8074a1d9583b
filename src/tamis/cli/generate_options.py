"""The options of `tamis generate` for single styles: one for each parameter that other styles do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

# Repeated here, because loading the library for --help would take long.
_TEXTS = ("authors", "titles")
_PREDICATES = ("halves", "words", "counts")
_CONDITIONS = ("equal", "set")
_DOCUMENTS = ("messages", "pages", "articles")

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS: dict[str, tuple[Any, str]] = {
    "fixed_equal": (int, "fabret only: number of predicates with = on fixed attributes."),
    "fixed_less": (int, "fabret only: number of predicates with < on fixed attributes."),
    "fixed_greater": (int, "fabret only: number of predicates with > on fixed attributes."),
    "fixed_event_size": (int, "fabret only: number of attributes that all events have."),
    "lowest": (int, "fabret only: lowest value of predicates."),
    "highest": (int, "fabret only: highest value of predicates."),
    "event_lowest": (int, "fabret only: lowest value of events."),
    "event_highest": (int, "fabret only: highest value of events."),
    "subscription_skew": (float, "fabret only: skew of the popularity of values in subscriptions. 0 is uniform."),
    "event_skew": (float, "fabret only: skew of the popularity of values in events."),
    "correlation": (float, "fabret only: share of the values of events that are popular in subscriptions too."),
    "focus_start": (int, "fabret only: first attribute that subscriptions use."),
    "focus_names": (int, "fabret only: number of attributes that subscriptions use. 0: all."),
    "few_values": (int, "fabret only: number of values on fixed attributes. 0: all."),
    "length": (int, "tatbul only: length of the intervals."),
    "overlap": (float, "tatbul only: share of the pairs of intervals that intersect."),
    "spread": (int, "tatbul only: number of different distances from the origin, instead of --overlap."),
    "largest_size": (int, "ads only: largest number of predicates per subscription."),
    "text": (click.Choice(_TEXTS), "grams only: what made lines are, if there is no --text-file."),
    "text_file": (str, "grams: text file with one string per line. prefixes: text file whose words are the values."),
    "predicates": (click.Choice(_PREDICATES), "keywords only: what a word becomes."),
    "queries_file": (str, "keywords only: text file with one query per line."),
    "documents_file": (str, "keywords only: text file with one document per line."),
    "documents": (click.Choice(_DOCUMENTS), "keywords only: made documents, if there is no --documents-file."),
    "vocabulary": (int, "keywords only: number of words, the most frequent ones."),
    "conditions": (click.Choice(_CONDITIONS), "products only: = or IN."),
    "products_file": (str, "products only: CSV file with the columns product, attribute, value."),
    "products": (int, "products only: number of made products, if there is no --products-file."),
    "number_attributes": (int, "prefixes only: number of attributes with numbers."),
    "word_attributes": (int, "prefixes only: number of attributes with words."),
    "like_share": (float, "prefixes only: share of prefixes among the predicates."),
    "prefix_length": (int, "prefixes only: number of characters of a prefix."),
    "event_words": (int, "prefixes only: number of attributes with words per event."),
}
"""Parameter -> the type and the help of its option."""


def style_options(command: _Command) -> _Command:
    """Give a command all these options, in this order."""
    for name, (kind, text) in reversed(_OPTIONS.items()):
        command = click.option(f"--{name.replace('_', '-')}", name, type=kind, help=text)(command)
    return command
