"""The description of the package: the README, with links that work where there is no clone.

Everything else is in ``pyproject.toml``. ``TAMIS_URL`` names the place of the files on the web, if there is one, for example
``https://example.org/tamis/blob/v0.2.0``. Relative links then begin with it. Without it they become plain text, and pictures are
left out.
"""

import os
import re
from pathlib import Path

from setuptools import setup

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>(?![a-z]+:)[^)\s]+)\)")


def outside(readme: str, url: str | None) -> str:
    """The README for readers who have no clone."""

    def link(found: re.Match[str]) -> str:
        if url:
            return f"{found['picture']}[{found['text']}]({url.rstrip('/')}/{found['target']})"
        return "" if found["picture"] else found["text"]

    return _LINK.sub(link, readme)


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(
        long_description=outside(readme, os.environ.get("TAMIS_URL")),
        long_description_content_type="text/markdown",
    )
