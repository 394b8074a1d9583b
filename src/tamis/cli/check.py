"""``tamis check``: finds errors in files of subscriptions, and summarises their contents."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from tamis.cli.check_report import FileMessage, Report
from tamis.cli.diagnostics import Diagnostics, counted, is_terminal
from tamis.cli.error_file import message_of
from tamis.cli.exit_status import FAILED
from tamis.cli.options import format_option, quiet_option, read_schema, schema_option
from tamis.cli.subscription_files import SubscriptionFile
from tamis.errors import FileError

if TYPE_CHECKING:
    from tamis.language.schema import Schema

_SHOWN = 8
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@format_option
@schema_option
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, one object per file.")
@quiet_option
def check(
    files: tuple[str, ...], format: str | None, schema_path: str | None, strict: bool, as_json: bool, quiet: bool
) -> None:
    """Check files of subscriptions.

    FILE is what `tamis match` takes as SUBSCRIPTIONS; - is stdin. Each error is printed with its line: a line that cannot
    be read, an expression that does not fit the schema, an id that an earlier line has. Warnings are about expressions
    that never match, always match, or have needless parts. A summary of attributes and operators comes last. The exit
    status is 1 if there are errors.

    \b
    Examples:
      tamis check alerts.jsonl
      tamis check alerts.csv --schema attributes.json --strict
      grep price alerts.txt | tamis check - --format text
    """
    schema = read_schema(schema_path)
    wrong = False
    for path in files:
        report = _check(path, format, schema, quiet=quiet, silent=as_json)
        if as_json:
            click.echo(json.dumps(report.to_dict(), ensure_ascii=False))
        elif not quiet:
            _show_summary(report)
        wrong = wrong or bool(report.errors) or (strict and bool(report.warnings))
    if wrong:
        sys.exit(FAILED)


def _check(path: str, format: str | None, schema: Schema | None, *, quiet: bool, silent: bool) -> Report:
    """Go through a file, and show findings unless silent."""
    diagnostics = Diagnostics(quiet=quiet, progress=not is_terminal(sys.stdout))
    report = Report(path, schema)
    findings: list[tuple[str, FileMessage]]
    try:
        file = SubscriptionFile(path, format)
        report.path = file.name
        for item in file:
            findings = report.add(item)
            if findings:
                diagnostics.clear()
                _show(report.path, [] if silent else findings)
            diagnostics.progress(f"{report.subscriptions:,} checked", file.share())
        if not report.subscriptions and not report.errors:
            raise FileError("the file has no subscriptions", path=file.name)
    except FileError as error:  # about the whole file; other files are still checked
        report.errors.append(FileMessage(error.line, message_of(error)))
        _show(report.path, [] if silent else [("error", report.errors[-1])])
    diagnostics.clear()
    return report


def _show(path: str, findings: list[tuple[str, FileMessage]]) -> None:
    for kind, finding in findings:
        place = path if finding.line is None else f"{path}:{finding.line}"
        click.echo(f"{place}: {click.style(kind, fg=_COLOURS[kind], bold=True)}: {finding.message}")


def _show_summary(report: Report) -> None:
    repeated = report.repeated
    for lines in repeated[:_SHOWN]:
        shown = ", ".join(str(line) for line in lines[:_SHOWN])
        more = f" and {len(lines) - _SHOWN:,} more" if len(lines) > _SHOWN else ""
        _show(report.path, [("note", FileMessage(lines[0], f"the same expression in lines {shown}{more}"))])
    if len(repeated) > _SHOWN:
        click.echo(f"... and {counted(len(repeated) - _SHOWN, 'more expression')} that are in several lines")
    result = [
        counted(report.subscriptions, "subscription"),
        counted(len(report.errors), "error"),
        counted(len(report.warnings), "warning"),
        f"{sum(len(lines) - 1 for lines in repeated):,} repeated",
    ]
    click.echo(f"{report.path}: {', '.join(result)}")
    if report.attributes:
        click.echo(f"  attributes  {_most_common(report.attributes)}")
        click.echo(f"  operators   {_most_common(report.operators)}")


def _most_common(counts: Counter[str]) -> str:
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(_SHOWN))
    return f"{shown} and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else shown
