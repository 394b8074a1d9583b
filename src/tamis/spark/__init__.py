"""Tamis on Apache Spark. Needs the extra: ``pip install 'tamis[spark]'``."""
