"""`op-index`: by counting down (`counting_index`), or by bitmaps over conjunctions of disjunctions with the option `cnf`."""

from __future__ import annotations

from tamis.papers.interface import Index
from tamis.papers.op_index.cnf import CnfOpIndex
from tamis.papers.op_index.counting_index import CountingOpIndex, OpIndexOptions
from tamis.papers.options import Options


class OpIndex(CountingOpIndex):
    """The index that users name. Its options choose how it counts."""

    @classmethod
    def variant(cls, options: Options) -> type[Index]:
        return CnfOpIndex if isinstance(options, OpIndexOptions) and options.cnf else cls
