"""Makes the page of benchmarks and its charts from the result files.

python -m benchmarks.page RESULTS_FOLDER PAGE
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import (
    broker_page,
    detection,
    engine_page,
    first_use,
    gpu_page,
    headline,
    history_page,
    history_parts_page,
    loading,
    service_page,
    spark_costs,
    spark_page,
)

_INTRODUCTION = """# Benchmarks

`make bench-headline`, `make bench-first-use`, `make bench-loading`, `make bench-engine`, `make bench-detection`,
`make bench-spark`, `make bench-broker`, `make bench-history`, `make bench-service` and `make bench-gpu` make this page from
the files in `docs/results`. Do not edit it. The indexes of the papers are measured by [their experiments](experiments.md).
Times depend on the machine. Ratios within a section depend less on the machine, since each section comes from a single run.
"""

_SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "loading": (loading.DESCRIPTION, loading.to_table),
    "headline": (headline.DESCRIPTION, headline.to_table),
    "first use": (first_use.DESCRIPTION, first_use.to_table),
    "engine": (engine_page.DESCRIPTION, engine_page.to_tables),
    "detection": (detection.DESCRIPTION, detection.to_tables),
    "GPU": (gpu_page.DESCRIPTION, gpu_page.to_tables),
    "spark": (spark_page.DESCRIPTION, spark_page.to_tables),
    "spark, processor time": (spark_costs.DESCRIPTION, spark_costs.to_tables),
    "broker": (broker_page.DESCRIPTION, broker_page.to_tables),
    "service": (service_page.DESCRIPTION, service_page.to_tables),
    "history": (history_page.DESCRIPTION, history_page.to_tables),
    "history, part by part": (history_parts_page.DESCRIPTION, history_parts_page.to_tables),
}
"""Name of a benchmark -> its description and its tables."""

_CHARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "headline": headline.to_chart,
    "engine": engine_page.to_chart,
    "spark": spark_page.to_chart,
}


def to_page(results: list[dict[str, Any]], charts: str = "results") -> str:
    """The page as Markdown, with links to charts in a folder."""
    sections = [_INTRODUCTION]
    for result in results:
        machine, name = result["machine"], result["benchmark"]
        description, tables = _SECTIONS[name]
        chart = f"![{name.capitalize()}]({charts}/{name}.svg)\n\n" if name in _CHARTS else ""
        sections.append(
            f"## {name[:1].upper()}{name[1:]}\n\n"
            f"Tamis {result['tamis']}, {machine['system']} on {machine['processor']} with {machine['cores']} cores"
            f"{_more(machine)}, Python {machine['python']}.{_peak(result)}\n\n"
            f"{description}\n\n{chart}{tables(result)}\n"
        )
    return "\n".join(sections)


def _peak(result: dict[str, Any]) -> str:
    """The peak memory, if it was measured."""
    return f" Peak memory: {result['peak_bytes'] / 1e9:.1f} GB." if "peak_bytes" in result else ""


def _more(machine: dict[str, Any]) -> str:
    """The model of the processor and the sizes of its caches, if they are known."""
    known = [machine["model"]] if "model" in machine else []
    known += [f"{size / 2**20:.3g} MB {level}" for level, size in machine.get("caches", {}).items()]
    return f" ({', '.join(known)})" if known else ""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description="Make the page of benchmarks.")
    parser.add_argument("results", type=Path, help="the folder with the result files")
    parser.add_argument("page", type=Path, help="the file to write")
    options = parser.parse_args(arguments)
    files = [json.loads(file.read_text()) for file in sorted(options.results.glob("*.json"))]
    # The folder also has the points of the papers' experiments, which have pages of their own.
    results = [result for result in files if "benchmark" in result]
    for result in results:
        name = result["benchmark"]
        if name in _CHARTS:
            (options.results / f"{name}.svg").write_text(_CHARTS[name](result))
    charts = Path(os.path.relpath(options.results, options.page.parent)).as_posix()
    options.page.write_text(to_page(results, charts))


if __name__ == "__main__":
    main()
