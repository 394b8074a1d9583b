"""The page of benchmarks, made from the result files.

python -m tamis.bench.page RESULTS_FOLDER PAGE
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tamis.bench import loading

_INTRODUCTION = """# Benchmarks

Made by `make bench-loading` from the files in `docs/results`; do not edit. Times depend on the machine, the ratios of one
run less so: each table comes from a single run.
"""


def to_page(results: list[dict[str, Any]]) -> str:
    """The page as Markdown."""
    sections = [_INTRODUCTION]
    for result in results:
        machine = result["machine"]
        sections.append(
            f"## {result['benchmark'].capitalize()}\n\n"
            f"Tamis {result['tamis']}, {machine['system']} on {machine['processor']} with {machine['cores']} cores, "
            f"Python {machine['python']}. Most memory in use: {result['peak_bytes'] / 1e9:.1f} GB.\n\n"
            f"{loading.DESCRIPTION}\n\n{loading.to_table(result)}\n"
        )
    return "\n".join(sections)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tamis.bench.page", description="Make the page of benchmarks.")
    parser.add_argument("results", type=Path, help="the folder with the result files")
    parser.add_argument("page", type=Path, help="the file to write")
    options = parser.parse_args(arguments)
    results = [json.loads(file.read_text()) for file in sorted(options.results.glob("*.json"))]
    options.page.write_text(to_page(results))


if __name__ == "__main__":
    main()
