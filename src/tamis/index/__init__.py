"""The indexes: one module per algorithm, one interface, found by name."""
