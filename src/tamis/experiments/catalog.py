"""The catalog of all figures."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from tamis.errors import ExperimentError, did_you_mean
from tamis.experiments import be_tree, fabret, op_index, ps_tree, tatbul
from tamis.experiments.figure import Figure


class Paper(NamedTuple):
    """A paper with experiments."""

    title: str
    figures: tuple[Figure, ...]
    note: str = ""
    """What holds for all its figures, in sentences."""


PAPERS = MappingProxyType(
    {
        "ps-tree": Paper("Ji and Jacobsen: PS-Tree, VLDB 2018", ps_tree.FIGURES),
        "be-tree": Paper("Sadoghi and Jacobsen: BE-Tree, SIGMOD 2011", be_tree.FIGURES, be_tree.NOTE),
        "op-index": Paper("Zhang, Chan and Tan: OpIndex, VLDB 2014", op_index.FIGURES),
        "fabret": Paper("Fabret et al.: Filtering algorithms, SIGMOD 2001", fabret.FIGURES),
        "tatbul": Paper("Tatbul: Profiles, 2001", tatbul.FIGURES),
    }
)
"""Name -> paper."""


def find_figures(paper: str | None = None, number: str | None = None) -> list[Figure]:
    """The figures of a paper, or of all; with a number one of them, or a family such as "6" for 6a and 6b.

    Raises
    ------
    ExperimentError
    """
    if paper is None:
        if number is not None:
            raise ExperimentError(f"figure {number} of which paper? The papers are: {', '.join(PAPERS)}")
        return [figure for each in PAPERS.values() for figure in each.figures]
    if paper not in PAPERS:
        raise ExperimentError(
            f"no paper {paper!r}{did_you_mean(paper, list(PAPERS))}; the papers are: {', '.join(PAPERS)}"
        )
    figures = list(PAPERS[paper].figures)
    if number is None:
        return figures
    found = [figure for figure in figures if number in (figure.number, figure.family)]
    if not found:
        known = [figure.number for figure in figures]
        raise ExperimentError(
            f"{paper} has no figure {number!r}{did_you_mean(number, known)}; its figures are: {', '.join(known)}"
        )
    return found
