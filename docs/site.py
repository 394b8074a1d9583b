"""Put the pages of the site together: the pages of this folder, pages from elsewhere, and the reference.

python docs/site.py FOLDER

README, CONTRIBUTING and CHANGELOG become pages, and links to them and to examples are changed to match. The reference is made
from docstrings. A public name is one in `tamis.__all__` or `tamis.spark.__all__`; each is on one of four pages.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import tamis
import tamis.broker
import tamis.spark

ROOT = Path(__file__).parent.parent

ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    **{f"examples/{path.name}": f"examples/{path.stem}.md" for path in sorted((ROOT / "examples").glob("*.py"))},
    **{
        f"examples/service/{path.name}": f"examples/service/{path.name.replace('.', '-').lower()}.md"
        for path in sorted((ROOT / "examples" / "service").iterdir())
    },
}
"""File -> page of the site."""

CONTENTS = {
    "Start": ["comparison", "cookbook", "operations"],
    "Guide": ["language", "python", "history", "pubsub", "service", "cli", "spark", "sigma", "gpu"],
    "Reference": [
        "reference/matchers",
        "reference/broker",
        "reference/clients",
        "reference/expressions",
        "reference/errors",
        "reference/spark",
    ],
    "Inside": ["architecture", "snapshot-format", "indexes", "benchmarks", "experiments"],
    "Project": ["contributing", "changelog", "license"],
}
"""Heading -> pages, in the order of the list beside every page."""

_LINK = re.compile(r"\]\((?P<target>(?![a-z]+:)[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def assemble(folder: Path) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "*.json", "__pycache__"))
    for path in folder.rglob("*.md"):
        source = ROOT / "docs" / path.relative_to(folder)
        path.write_text(_linked(path.read_text(encoding="utf-8"), source, path.relative_to(folder)), encoding="utf-8")
    for name, place in ELSEWHERE.items():
        text = _linked(_as_page(ROOT / name), ROOT / name, Path(place))
        _write(folder / place, text)
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write("".join(_tree(title, pages) for title, pages in CONTENTS.items()))
    for name in ("indexes", "experiments"):
        stems = sorted(
            (path.stem for path in (ROOT / "docs" / name).glob("*.md")), key=lambda stem: (stem != "index", stem)
        )
        with (folder / f"{name}.md").open("a", encoding="utf-8") as page:
            page.write(_tree("", [f"{name}/{stem}" for stem in stems]))
    for name, text in reference().items():
        _write(folder / "reference" / f"{name}.md", text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _as_page(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if path.is_relative_to(ROOT / "examples"):
        language = "python" if path.suffix == ".py" else "text"
        return f"---\norphan: true\n---\n\n# {path.name}\n\n```{language}\n{text}\n```\n"
    return f"# Licence\n\n```text\n{text}\n```\n" if path.name == "LICENSE" else f"{text}\n"


def _tree(title: str, pages: list[str]) -> str:
    caption = f":caption: {title}\n" if title else ""
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def _linked(text: str, source: Path, place: Path) -> str:
    """A page with links that lead to the places that files have on the site."""

    def link(found: re.Match[str]) -> str:
        target = (source.parent / found["target"]).resolve()
        name = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else ""
        there = ELSEWHERE.get(name) or name.removeprefix("docs/")
        up = "../" * (len(place.parts) - 1)
        return f"]({up}{there}{found['anchor'] or ''})" if target.is_file() else found[0]

    return _LINK.sub(link, text)


def reference() -> dict[str, str]:
    """The pages of the reference: name -> Markdown with a directive for each public name."""
    names = [name for name in tamis.__all__ if not name.startswith("__")]
    errors = [name for name in names if _is_error(getattr(tamis, name))]
    rest = [name for name in names if name not in errors]
    expressions = [
        name for name in rest if getattr(tamis, name).__module__.startswith(("tamis.language", "tamis.encoding"))
    ]
    clients = [name for name in rest if getattr(tamis, name).__module__.startswith("tamis.client")]
    matchers = [name for name in rest if name not in (*expressions, *clients)]
    matchers.sort(key=lambda name: name != "Matcher")
    errors.sort(key=lambda name: name != "TamisError")
    guide, language = "[Tamis from Python](../python.md)", "[the subscription language](../language.md)"
    return {
        "matchers": _page("Matchers", f"{guide} is a guide with examples.", tamis, matchers),
        "broker": _page(
            "Brokers", "[Publish and subscribe](../pubsub.md) is a guide with examples.", tamis.broker,
            list(tamis.broker.__all__),
        ),
        "clients": _page(
            "Clients", "[The service](../service.md#clients) is a guide with examples.", tamis, clients,
        ) + "#" + _page("Classes", "`connect` and `connect_async` make them.", tamis.client, ["Client", "AsyncClient"]),
        "expressions": _page("Expressions", f"See {language} for syntax and meaning.", tamis, expressions),
        "errors": _page("Errors", "See [the tree of errors](../python.md#errors).", tamis, errors),
        "spark": _page(
            "tamis.spark", "[Tamis on Apache Spark](../spark.md) is a guide with examples.", tamis.spark,
            list(tamis.spark.__all__),
        ),
    }  # fmt: skip


_WHOLE = (tamis.Matcher, tamis.broker.Broker)
"""Classes that have methods of their base classes."""


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tamis.TamisError)


def _page(title: str, introduction: str, module: Any, names: list[str]) -> str:
    directives = []
    for name in names:
        kind = "autoclass" if isinstance(getattr(module, name), type) else "autofunction"
        value = getattr(module, name)
        option = ":show-inheritance:" if _is_error(value) else ":inherited-members:" if value in _WHOLE else ""
        directives.append(f"```{{eval-rst}}\n.. {kind}:: {module.__name__}.{name}\n   {option}\n```")
    return f"# {title}\n\n{introduction}\n\n" + "\n\n".join(directives) + "\n"


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
