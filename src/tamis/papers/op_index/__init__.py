"""OpIndex: subscriptions by pivot attribute, their predicates by operator, matched by counting down."""
