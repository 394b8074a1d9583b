"""The data of the demo: a second-hand bookshop, readers with standing wishes, books that come in.

Everything is drawn from a seed: the same seed gives the same wishes and the same books.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

if TYPE_CHECKING:
    import pyarrow as pa

_WORKS = """
Jane Austen: Pride and Prejudice 1813, Emma 1815, Persuasion 1817: romance
Charlotte Brontë: Jane Eyre 1847, Villette 1853: romance
Emily Brontë: Wuthering Heights 1847: gothic
Mary Shelley: Frankenstein 1818, The Last Man 1826: gothic
Bram Stoker: Dracula 1897: gothic
Edgar Allan Poe: The Raven 1845, Tales of Mystery 1852: gothic
Arthur Conan Doyle: A Study in Scarlet 1887, The Hound of the Baskervilles 1902: crime
Wilkie Collins: The Moonstone 1868, The Woman in White 1860: crime
Agatha Christie: The Mysterious Affair at Styles 1920, The Secret Adversary 1922: crime
Dorothy L. Sayers: Whose Body? 1923, Gaudy Night 1935: crime
Jules Verne: Around the World in Eighty Days 1872, Twenty Thousand Leagues Under the Sea 1870: adventure
Robert Louis Stevenson: Treasure Island 1883, Kidnapped 1886: adventure
Herman Melville: Moby-Dick 1851, Typee 1846: adventure
Jack London: The Call of the Wild 1903, The Sea-Wolf 1904: adventure
Alexandre Dumas: The Three Musketeers 1844, The Count of Monte Cristo 1846: adventure
Virginia Woolf: To the Lighthouse 1927, Mrs Dalloway 1925, Orlando 1928: modern
James Joyce: Dubliners 1914, Ulysses 1922: modern
Marcel Proust: Swann's Way 1913: modern
Franz Kafka: The Trial 1925, The Castle 1926: modern
Leo Tolstoy: War and Peace 1869, Anna Karenina 1878: classics
Fyodor Dostoevsky: Crime and Punishment 1866, The Idiot 1869: classics
George Eliot: Middlemarch 1872, Silas Marner 1861: classics
Charles Dickens: Great Expectations 1861, Bleak House 1853: classics
Gustave Flaubert: Madame Bovary 1857: classics
Victor Hugo: Les Misérables 1862, The Toilers of the Sea 1866: classics
H. G. Wells: The Time Machine 1895, The War of the Worlds 1898: fantastic
Lewis Carroll: Alice's Adventures in Wonderland 1865: fantastic
L. Frank Baum: The Wonderful Wizard of Oz 1900: fantastic
Selma Lagerlöf: The Wonderful Adventures of Nils 1906: fantastic
Emily Dickinson: Poems 1890: poetry
Walt Whitman: Leaves of Grass 1855: poetry
Rainer Maria Rilke: Duino Elegies 1923: poetry
""".strip()

_READERS = """
ada alma amir anouk arthur aya bela bruno carla chloe dara diego edith elio emil esra fatou felix flora gaspard greta hana
hugo ida ines ivo jana jonas kaya kenji lea lena leo lina luca maya mila milo nadia nora omar paula pia rosa ruben sami
sofia tess theo uma vera wanda yara yuki zoe
"""

FORMATS = ("paperback", "hardback", "leather")
CONDITIONS = ("new", "fine", "good", "worn")
COUNTRIES = ("FR", "GB", "DE", "IT", "ES", "NL", "SE", "PL", "PT", "IE")
LANGUAGES = ("English", "French", "German", "Italian", "Spanish")
TAGS = ("illustrated", "annotated", "first edition", "maps", "dust jacket", "large print")

Values: TypeAlias = npt.NDArray[Any]
Conditions: TypeAlias = list[tuple[str, str, Values]]
"""Attribute, operator and literals (one per wish) of wishes with the same form."""


class Work(NamedTuple):
    """A title that the shop sells again and again."""

    title: str
    author: str
    genre: str
    year: int


def works() -> list[Work]:
    """All titles."""
    found = []
    for line in _WORKS.splitlines():
        author, titles, genre = line.split(": ")
        for title, _, year in (entry.rpartition(" ") for entry in titles.split(", ")):
            found.append(Work(title, author, genre, int(year)))
    return found


class Bookshop:
    """Draws wishes and books.

    >>> shop = Bookshop(seed=1)
    >>> sorted(next(shop.books(1)))[:4]
    ['author', 'condition', 'country', 'format']
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._works = works()
        self._readers = _READERS.split()

    def wishes(self, count: int) -> pa.Table:
        """Wishes that are plain lists of conditions, as a table for `Matcher.add_table`."""
        import pyarrow as pa

        draw = np.random.default_rng([self._seed, 1])
        sizes = draw.multinomial(count, [share for share, _ in _KINDS])
        wishes = [
            _conjunctions(wanted(draw, int(size), self._works)) for size, (_, wanted) in zip(sizes, _KINDS, strict=True)
        ]
        names = draw.choice(self._readers, count).tolist()
        ids = [f"{name}-{number}" for number, name in enumerate(names)]
        return pa.table({"id": pa.array(ids), "predicates": pa.chunked_array(wishes)})

    def written_wishes(self, count: int) -> tuple[list[str], list[str]]:
        """Wishes with OR, NOT and patterns: ids and SQL texts."""
        draw = random.Random(f"written wishes {self._seed}")
        ids = [f"{draw.choice(self._readers)}-w{number}" for number in range(count)]
        return ids, [self._written_wish(draw) for _ in range(count)]

    def books(self, count: int) -> Iterator[dict[str, Any]]:
        """Books that come in, as events."""
        draw = random.Random(f"books {self._seed}")
        return (self._book(draw) for _ in range(count))

    def _book(self, draw: random.Random) -> dict[str, Any]:
        work = draw.choice(self._works)
        format = draw.choices(FORMATS, (60, 32, 8))[0]
        tags = [tag for tag in TAGS if draw.random() < 0.12]
        first = "first edition" in tags
        inscribed = draw.random() < 0.04
        price = draw.lognormvariate(2.2, 0.5) * {"paperback": 1.0, "hardback": 1.8, "leather": 4.0}[format]
        price *= (3 if first else 1) * (2 if inscribed else 1)
        return {
            "title": work.title,
            "author": work.author,
            "genre": work.genre,
            "format": format,
            "condition": draw.choices(CONDITIONS, (10, 30, 45, 15))[0],
            "language": "English" if first else draw.choices(LANGUAGES, (60, 15, 10, 8, 7))[0],
            "year": work.year if first else max(work.year, 2025 - int(draw.expovariate(1 / 35))),
            "price": round(price * 2) / 2,
            "country": draw.choice(COUNTRIES),
            "tags": tags,
            "inscribed": inscribed,
            "seller": {"rating": round(min(5.0, draw.gauss(4.3, 0.4)), 1)},
        }

    def _written_wish(self, draw: random.Random) -> str:
        work, other = draw.sample(self._works, 2)
        author, title = (text.replace("'", "''") for text in (work.author, other.title))
        limit = f"{_limit(draw):g}"
        kind = draw.randrange(5)
        if kind == 0:
            return f"(author = '{author}' OR title = '{title}') AND price <= {limit} AND NOT condition = 'worn'"
        if kind == 1:
            word = draw.choice(["Sea", "War", "World", "Time", "Wild", "Last", "Woman", "Castle"])
            return f"title LIKE '%{word}%' AND language <> 'English' AND price < {limit}"
        if kind == 2:
            return f"genre IN ('{work.genre}', '{other.genre}') AND inscribed AND price < {float(limit) * 3:g}"
        if kind == 3:
            country = draw.choice(COUNTRIES)
            return f"tags = 'maps' AND NOT (genre = '{other.genre}' OR format = 'paperback') AND country = '{country}'"
        return f"author ILIKE '%{author.split()[-1].lower()}' AND (year < 1920 OR tags = 'illustrated') AND price < {limit}"


def _limit(draw: random.Random) -> float:
    """The highest price that a reader would pay: mostly less than the shop asks."""
    return round(draw.lognormvariate(2.0, 0.45), 1)


def _by_author(draw: Generator, count: int, works: list[Work]) -> Conditions:
    return [
        ("author", "=", _any(draw, [work.author for work in works], count)),
        ("price", "<=", _limits(draw, count)),
        ("country", "in", _any(draw, COUNTRIES, count, 2)),
    ]


def _by_title(draw: Generator, count: int, works: list[Work]) -> Conditions:
    return [
        ("title", "=", _any(draw, [work.title for work in works], count)),
        ("condition", "<>", _any(draw, ["worn"], count)),
        ("price", "<=", _limits(draw, count)),
    ]


def _from_good_sellers(draw: Generator, count: int, works: list[Work]) -> Conditions:
    return [
        ("author", "=", _any(draw, [work.author for work in works], count)),
        ("seller.rating", ">=", draw.integers(40, 50, (count, 1)) / 10),
        ("price", "<", _limits(draw, count)),
    ]


def _special(draw: Generator, count: int, works: list[Work]) -> Conditions:
    limit = _limits(draw, count)
    return [
        ("tags", "=", _any(draw, TAGS, count)),
        ("genre", "=", _any(draw, [work.genre for work in works], count)),
        ("price", "between", np.hstack([limit / 2, limit]).round(1)),
    ]


def _old(draw: Generator, count: int, works: list[Work]) -> Conditions:
    return [
        ("genre", "=", _any(draw, [work.genre for work in works], count)),
        ("year", "<", draw.integers(1890, 1960, (count, 1)).astype(float)),
        ("format", "<>", _any(draw, FORMATS[:1], count)),
        ("price", "<=", 2 * _limits(draw, count)),
    ]


_KINDS = ((0.35, _by_author), (0.25, _by_title), (0.15, _from_good_sellers), (0.15, _special), (0.10, _old))


def _any(draw: Generator, words: Sequence[str], count: int, several: int = 1) -> Values:
    return draw.choice(np.array(words, object), (count, several))


def _limits(draw: Generator, count: int) -> Values:
    return draw.lognormal(2.0, 0.45, (count, 1)).round(1)


def _conjunctions(conditions: Conditions) -> pa.ListArray:
    """Wishes in Arrow; a literal is a struct with either its number or its string set."""
    import pyarrow as pa

    attributes, operators, values = zip(*conditions, strict=True)
    count, widths = len(values[0]), [column.shape[1] for column in values]
    literals = np.hstack([column.astype(object) for column in values]).ravel()
    textual = np.tile(np.repeat([column.dtype == object for column in values], widths), count)
    literal = pa.StructArray.from_arrays(
        [pa.array(literals, pa.float64(), mask=textual), pa.array(literals, pa.string(), mask=~textual)],
        ["number", "string"],
    )
    predicate = pa.StructArray.from_arrays(
        [
            pa.array(np.tile(np.array(attributes, object), count)),
            pa.array(np.tile(np.array(operators, object), count)),
            pa.ListArray.from_arrays(_offsets(np.tile(widths, count)), literal),
        ],
        ["attribute", "operator", "values"],
    )
    return pa.ListArray.from_arrays(_offsets(np.full(count, len(conditions))), predicate)


def _offsets(lengths: Values) -> pa.Array:
    import pyarrow as pa

    return pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
