"""Sigma rules on Spark: a DataFrame of events against the rules about single events.

`tamis.spark` matches. Computed attributes become the fields of one column, `sigma`. Correlations are left out: they are about
events of several partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tamis.errors import FileError, OptionError
from tamis.sigma.derived import PREFIX
from tamis.sigma.rule import Rule
from tamis.sigma.rules import RuleSet

_COLUMNS = "id string, expression string, title string, level string, tags array<string>"


def usable(rules: RuleSet) -> tuple[list[Rule], list[FileError]]:
    """The rules that `match` uses, and why it leaves out the correlations."""
    left_out = []
    for each in rules.correlations:
        reason = f"'{each.title}': correlations are not supported on Spark"
        left_out.append(FileError(reason, path=each.path, line=each.line))
    return [rule for rule in rules.rules if rule.reported], left_out


def match(events: Any, rules: RuleSet, *, event_id: str = "id", keep: Sequence[str] = ()) -> Any:
    """The matches of a DataFrame of events: `id`, `rule`, the columns of `keep`, `title`, `level` and `tags`.

    Parameters
    ----------
    events : DataFrame
        In one of the forms that `tamis.spark.match` takes. If rules ask for computed attributes (`rules.deriver`), each attribute
        must be a column.
    rules : RuleSet
        `usable` says which of them are matched.
    event_id : str
        The column with the ids of events.
    keep : sequence of str
        Columns of events to return with each match.

    Raises
    ------
    OptionError
        When no rule can be used.
    FrameError
        When events have another form.
    """
    from tamis.spark.computed_column import with_computed
    from tamis.spark.given import checked_frame
    from tamis.spark.matching import match as match_frame

    checked_frame(events, "events")
    found, left_out = usable(rules)
    if not found:
        raise OptionError(f"no rule can be used on Spark: {len(left_out):,} are left out")
    if rules.deriver:
        events = with_computed(events, PREFIX, rules.deriver.struct, rules.deriver.fields)
    rows = [(rule.id, str(rule.expression), rule.title, rule.level, list(rule.tags)) for rule in found]
    subscriptions = events.sparkSession.createDataFrame(rows, _COLUMNS)
    matches = match_frame(events, subscriptions, event_id=event_id, keep=keep, carry=["title", "level", "tags"])
    return matches.withColumnRenamed("subscription", "rule")
