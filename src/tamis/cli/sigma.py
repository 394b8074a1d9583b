"""``tamis sigma``: detection rules of the Sigma format, checked and matched."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.cli import sigma_files
from tamis.cli.byte_stream import STDIN
from tamis.cli.diagnostics import Diagnostics, OnError, counted, is_terminal
from tamis.cli.error_file import open_errors
from tamis.cli.event_files import EventFiles
from tamis.cli.exit_status import FAILED, SKIPPED
from tamis.cli.match_files import STDOUT
from tamis.cli.options import errors_option, event_format_option, on_error_option, quiet_option
from tamis.errors import FileError

if TYPE_CHECKING:
    from tamis.sigma import RuleSet

F = TypeVar("F", bound=Callable[..., Any])

_SHOWN = 8
_LEVELS = ("informational", "low", "medium", "high", "critical")


@click.group()
def sigma() -> None:
    """Match detection rules of the Sigma format.

    Rules are YAML files. pySigma reads them, so this needs the extra: pip install 'tamis[sigma]'.

    \b
    Examples:
      tamis sigma check rules/
      tamis sigma match rules/ 'logs/*.jsonl.gz' --level high
    """


def _rule_options(command: F) -> F:
    """The options that say how rules are read."""
    options = (
        click.option(
            "-p",
            "--pipeline",
            "pipelines",
            metavar="NAME|FILE",
            multiple=True,
            help="Processing pipeline of pySigma that translates the rules: an installed one, or a YAML file. May be repeated.",
        ),
        click.option("--level", type=click.Choice(_LEVELS), help="Lowest level of rules. Default: all rules."),
        click.option(
            "--log-source",
            "log_sources",
            metavar="PART=NAME|ignore",
            multiple=True,
            help="What all events have, such as product=windows or category=process_creation; may be repeated. Or ignore: "
            "any rule may match any event. Default: events say it in logsource.product, logsource.category and "
            "logsource.service.",
        ),
        click.option(
            "--keyword-field",
            metavar="FIELD",
            help="Field of events in which keywords are searched. Default: all values of the event.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@sigma.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULES...")
@_rule_options
@quiet_option
def check(
    rules: tuple[str, ...],
    pipelines: tuple[str, ...],
    level: str | None,
    log_sources: tuple[str, ...],
    keyword_field: str | None,
    quiet: bool,
) -> None:
    """Check Sigma rules.

    RULES are YAML files, packed with gzip or not, or folders of them (.yml, .yaml). Each rule that cannot be converted is
    printed with file, line and reason. A summary comes last. The exit status is 1 if there are such rules.

    \b
    Examples:
      tamis sigma check rules/
      tamis sigma check rules/windows -p sysmon --log-source ignore
    """
    diagnostics = Diagnostics(quiet=quiet, progress=not is_terminal(sys.stdout))
    found = _read(rules, pipelines, level, log_sources, keyword_field, diagnostics)
    for error in found.refused:
        place = f"{error.path}:" if error.line is None else f"{error.path}:{error.line}:"
        reason = str(error).removeprefix(place).lstrip()
        click.echo(f"{place} {click.style('error', fg='red', bold=True)}: {reason}")
    if not quiet:
        _show_summary(found)
    if found.refused:
        sys.exit(FAILED)


@sigma.command()
@click.argument("rules")
@click.argument("events", nargs=-1, metavar="[EVENTS]...")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default=STDOUT,
    help="Write the matches to FILE, which appears when it is complete. Default: stdout.",
)
@_rule_options
@click.option("--time", metavar="FIELD", help="Field with the time of events. Correlation rules need it.")
@click.option(
    "--event-id",
    metavar="FIELD",
    help="Write the value of this field, a string or an integer, instead of the number of the event.",
)
@event_format_option
@on_error_option
@errors_option
@quiet_option
# Its parameters are the options of the command.
def match(
    rules: str,
    events: tuple[str, ...],
    output: str,
    pipelines: tuple[str, ...],
    level: str | None,
    log_sources: tuple[str, ...],
    keyword_field: str | None,
    time: str | None,
    event_id: str | None,
    event_format: str | None,
    on_error: OnError,
    errors: str | None,
    quiet: bool,
) -> None:
    """Match EVENTS against Sigma RULES.

    RULES is a YAML file or a folder of them. EVENTS are files, folders or patterns such as 'logs/*.jsonl': JSONL, a JSON
    array, CSV or Parquet, packed with gzip or zstd or not. Without EVENTS, or for -, events come from stdin.

    Each match is a line {"event": ..., "line": ..., "rule": ..., "title": ..., "level": ..., "tags": ...}. "rule" is the id
    of the rule. "event" counts from 0 over all files, "line" counts from 1. With several files there is also "file".
    Correlation rules come last: event and line are those of the event that completed the correlation.

    Rules that cannot be converted are reported and left out. The exit status is then 3, and also if bad lines of events
    were skipped. It is 1 if a bad line stopped the work.

    \b
    Examples:
      tamis sigma match rules/ events.jsonl > matches.jsonl
      tamis sigma match rules/ logs/ --level high --log-source product=windows
      tamis sigma match brute-force.yml auth.jsonl.gz --time timestamp
      tail -f events.jsonl | tamis sigma match rules/ -
    """
    paths = sigma_files.event_files(events)
    if rules == STDIN:
        raise click.UsageError("RULES are a file or a folder, not stdin.")
    if output != STDOUT and output in paths:
        raise click.BadParameter("matches need a file of their own", param_hint="--output")
    with open_errors(errors) as error_file:
        quiet_progress = output == STDOUT and is_terminal(sys.stdout)
        about_rules = Diagnostics("skip", quiet=quiet, progress=not quiet_progress, errors=error_file)
        about_events = Diagnostics(on_error, quiet=quiet, progress=not quiet_progress, errors=error_file)
        found = _read((rules,), pipelines, level, log_sources, keyword_field, about_rules)
        for error in found.refused:
            about_rules.bad_line(error)
        if not found:
            left_out = f", {found.left_out:,} left out" if found.left_out else ""
            raise FileError(f"no rule is left to match ({len(found.refused):,} refused{left_out})", path=rules)
        run = sigma_files.SigmaRun(found, EventFiles(paths, event_format, id_field=event_id), about_events, time=time)
        try:
            with sigma_files.open_lines(output) as stream:
                run.match_all(stream)
        except FileError as error:
            about_events.say(str(error))
            about_events.summary(run.summary() + ("" if output == STDOUT else f"; {output} is not written"))
            sys.exit(FAILED)
    about_events.summary(run.summary())
    if about_rules.bad_lines or about_events.bad_lines:
        sys.exit(SKIPPED)


def _read(
    paths: tuple[str, ...],
    pipelines: tuple[str, ...],
    level: str | None,
    log_sources: tuple[str, ...],
    keyword_field: str | None,
    diagnostics: Diagnostics,
) -> RuleSet:
    # The namespace `sigma` is there without pySigma: it has our backend.
    if find_spec("sigma.rule") is None:
        raise click.ClickException("pySigma is not installed. Hint: pip install 'tamis[sigma]'")
    from tamis.sigma import read_rules

    found = read_rules(
        paths,
        pipelines=pipelines,
        level=level,
        log_sources=_log_sources(log_sources),
        keyword_field=keyword_field,
        progress=lambda done: diagnostics.progress(f"{counted(done, 'rule')} read", None),
    )
    diagnostics.clear()
    return found


def _log_sources(given: tuple[str, ...]) -> Any:
    """What `read_rules` takes."""
    if not given:
        return "match"
    if given == ("ignore",):
        return "ignore"
    stated = {}
    for each in given:
        part, equals, name = each.partition("=")
        if part not in ("product", "category", "service") or not equals or not name:
            raise click.BadParameter(
                f"{each!r} is not product=NAME, category=NAME or service=NAME, nor ignore alone",
                param_hint="--log-source",
            )
        stated[part] = name
    return stated


def _show_summary(found: RuleSet) -> None:
    attributes = Counter(name for rule in found.rules for name in rule.expression.attributes())
    levels = Counter(rule.level or "none" for rule in found.rules)
    levels.update(each.level or "none" for each in found.correlations)
    parts = [
        counted(len(found.rules), "rule"),
        counted(len(found.correlations), "correlation"),
        counted(len(found.refused), "error"),
        *([f"{found.left_out:,} left out"] if found.left_out else []),
    ]
    click.echo(", ".join(parts))
    if len(found):
        shown = [f"{level} {levels[level]:,}" for level in (*reversed(_LEVELS), "none") if levels[level]]
        click.echo(f"  levels      {', '.join(shown)}")
    if attributes:
        ordered = sorted(attributes.items(), key=lambda item: (-item[1], item[0]))
        names = ", ".join(f"{name} {count:,}" for name, count in ordered[:_SHOWN])
        more = f" and {len(attributes) - _SHOWN:,} more" if len(attributes) > _SHOWN else ""
        click.echo(f"  attributes  {names}{more}")
