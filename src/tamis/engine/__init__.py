"""Our own index: immutable segments with access paths chosen by cost, and what lets them change."""
