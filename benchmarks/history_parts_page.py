"""The figures of the benchmark of the parts of earlier events as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import number_text

DESCRIPTION = """What each part of matching with [earlier events](history.md) brings: the same work with and without it, by turns
in one process, in processor time of one thread. Tatbul's paper has no measurements of these parts, so its claims stand beside."""

_NOTES = {
    "table": "The joins of the candidates of an event: each distinct one decided once, or once for each subscription.",
    "phases": (
        "Constants first, as Tamis always does, or all joins first. Then the engine finds the candidates, and those whose join "
        "holds are left. *Projected*: from 250 of the joins."
    ),
    "prefilter": (
        "Matchers with and without it. *Skipped* counts the subscriptions that are skipped at the end, *skips an event* how "
        "often one is skipped."
    ),
    "needs": "The pre-filter with few and with many needs, half of which no earlier event satisfies. One in ten events asks.",
}

Row = dict[str, Any]


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    sizes = result["sizes"]
    counts = f"{sizes['subscriptions']:,} subscriptions, {sizes['retained']:,} earlier events"
    filtered = f"{sizes['filtered']:,} subscriptions, {sizes['retained']:,} earlier events"
    sections = {
        "table": (f"Join table: {counts}", table_rows),
        "phases": (f"Order of phases: {counts}", phases_rows),
        "prefilter": (f"Pre-filter: {filtered}", prefilter_rows),
        "needs": ("Pre-filter: distinct needs", needs_rows),
    }
    return "\n\n".join(
        f"### {title}\n\n{_NOTES[part]} Tatbul, {result[part][0]['claim']}.\n\n{rows(result[part])}"
        for part, (title, rows) in sections.items()
        if result[part]
    )


def table_rows(rows: list[Row]) -> str:
    lines = [
        [
            row["set"],
            f"{row['joins']:,}",
            f"{row['candidates']:.0f}",
            number_text(row["shared_us"]),
            number_text(row["alone_us"]),
            f"{row['ratio']:.1f}",
        ]
        for row in rows
    ]
    heads = ["subscriptions", "distinct joins", "candidates", "each join once, us", "each subscription, us", "ratio"]
    return table(heads, lines)


def phases_rows(rows: list[Row]) -> str:
    lines = [
        [
            row["set"],
            f"{row['joins']:,}",
            f"{row['joins_left']:.1f}",
            number_text(row["constants_first_us"]),
            number_text(row["joins_first_us"]) + (" (projected)" if row["joins_first_is_projected"] else ""),
            f"{row['joins_first_us'] / row['constants_first_us']:.1f}",
            f"{row['estimates']['constants_first']:,.0f}",
            f"{row['estimates']['joins_first']:,.0f}",
        ]
        for row in rows
    ]
    heads = ["subscriptions", "j", "j'", "constants first, us", "joins first, us", "ratio"]
    return table([*heads, "constants first, estimate", "joins first, estimate"], lines)


def prefilter_rows(rows: list[Row]) -> str:
    lines = [
        [row["set"], f"{row['skipped']:,}", number_text(row["skips"])]
        + [
            text
            for way in ("batch", "single")
            for text in (
                number_text(row[f"{way}_off_us"]),
                number_text(row[f"{way}_on_us"]),
                f"{row[f'{way}_ratio']:.2f}",
            )
        ]
        for row in rows
    ]
    heads = ["subscriptions", "skipped", "skips an event"]
    heads += [f"{way}, {what}" for way in ("batch", "single") for what in ("without, us", "with, us", "ratio")]
    return table(heads, lines)


def needs_rows(rows: list[Row]) -> str:
    lines = [
        [f"{row['needs']:,}"]
        + [f"{row[f'{way}_ratio']:.2f}" for way in ("batch", "single")]
        + [number_text(row[f"single_{label}_us"]) for label in ("off", "on")]
        for row in rows
    ]
    heads = ["distinct needs", "batch, without / with", "single, without / with", "single, without, us"]
    return table([*heads, "single, with, us"], lines)
