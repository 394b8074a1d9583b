"""`k-index`: posting lists by size, attribute and value (`index`, `posting`, `enumeration`), and how they are intersected
(`conjunction_algorithm`)."""
