"""Which of many subscriptions are identical, covered by others, or never true.

report      `find_covering`, what users call, and the report
forms       reading subscriptions: groups with the same form, and subscriptions that are never true
search      searching for wider ones
corners     a clause as an event at the ends of its sets, and an expression that such events satisfy
ends        the lowest and the highest value of a set
widths      which subscriptions are wide

`tamis.language.implication` decides what follows from what. Comparing each subscription with each takes too long, so a matcher
finds the candidates:

    price BETWEEN 12 AND 15  ->  event       {low price: 12, high price: 15}
    price < 20               ->  expression  low price < 20 AND high price < 20            satisfied: a candidate
    price < 14               ->  expression  low price < 14 AND high price < 14            not satisfied

If a clause covers another, it takes both ends of each set. So a subscription that covers another is always a candidate.
"""

from tamis.matcher.covering.report import CoveringReport, find_covering

__all__ = ["CoveringReport", "find_covering"]
