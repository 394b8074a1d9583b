"""Tamis among the backends that pySigma discovers: ``sigma convert -t tamis``. Only this file is in pySigma's namespace."""

from __future__ import annotations

from tamis.sigma.backend import TamisBackend

__all__ = ["TamisBackend"]

backends = {"tamis": TamisBackend}
