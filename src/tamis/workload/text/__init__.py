"""Lines of text as numbers of words: of files that a user has, or made here with natural word frequencies. Read in this order:

lines         Lines: words by number, line after line; LineSource: lines by their number
vocabulary    words made of syllables
made          authors, titles, queries, messages and longer documents of these words
files         lines of a text file
"""

from tamis.workload.text.files import FileText
from tamis.workload.text.lines import Lines, LineSource
from tamis.workload.text.made import KINDS, MadeText

__all__ = ["KINDS", "FileText", "LineSource", "Lines", "MadeText"]
