"""What the commands that drive a pipeline share: options, the page, and how they end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, show, show_json
from avrt.cli.page import add_page_option
from avrt.errors import DamagedInputError, SpecError
from avrt.exec.runner import HANG_TIMEOUT_NS
from avrt.report.page import write_page
from avrt.report.terminal import broken_promises, render
from avrt.units import format_ns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from avrt.api import Report


def add_drive_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--hang-timeout",
        default=format_ns(HANG_TIMEOUT_NS),
        metavar="TIME",
        help="host time after which a stage counts as hung (default: %(default)s)",
    )
    parser.add_argument(
        "--fail-on-miss",
        action="store_true",
        help="exit 1 if a job was not met or a chain promise was broken (a stage with guarantee "
        "hard does so in any case)",
    )
    add_page_option(parser)
    add_json_option(parser)


def add_flight_options(parser: ArgumentParser, *, always: bool) -> None:
    """Add where the flight recorder writes, and how much; in a live run it is always on."""
    parser.add_argument(
        "--flight",
        type=Path,
        default=Path("flight"),
        metavar="FOLDER",
        help="where the flight recorder writes what is around a miss, a fault or a change of mode "
        "(default: %(default)s)",
    )
    more = "" if always else "write these records: "
    parser.add_argument(
        "--keep-around-misses",
        metavar="TIME",
        help=f"{more}how long before and after it, such as 5s{' (default: 5s)' if always else ''}; "
        "not with a record of the whole run",
    )


def refuse_two_records(options: Namespace, record: str) -> None:
    """Refuse a record of the whole run beside one of what is around misses.

    Raises:
        SpecError: both are asked for; `record` is the option of the whole run's.
    """
    if options.keep_around_misses is not None and getattr(options, record) is not None:
        raise SpecError(f"give --{record} or --keep-around-misses: the first one keeps everything")


def add_strict_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--strict",
        action="store_true",
        help="end with exit code 3 where the log is damaged; by default all good messages are "
        "played, and then it is told",
    )


def leave_page(
    options: Namespace, report: Report, record: Path | None, *, wanted: Path | None
) -> None:
    """Write the page that was asked for, from a record that goes unless it was `wanted`."""
    if record != wanted:
        report.summary.record = None
    if options.report is not None:
        assert record is not None
        write_page(options.report, record, report.summary)


def finish(report: Report, *, as_json: bool, fail_on_miss: bool, flight_asked: bool = False) -> int:
    """Print a report and return the exit code that it deserves.

    A flight recorder that gave up costs it only where it was `flight_asked` for.
    """
    if as_json:
        show_json(report.data)
    else:
        show(render(report.summary))
    if report.summary.interrupted:
        return 130
    if report.summary.record_failure:
        print("avrt: exit 1: the record could not be written", file=sys.stderr)
        return 1
    if flight_asked and report.summary.flight.failure:
        print("avrt: exit 1: a flight record could not be written", file=sys.stderr)
        return 1
    broken = fail_on_miss and report.summary.figures.broken_promises
    if broken or report.summary.broken_guarantees:
        print(f"avrt: exit 1: {broken_promises(report.summary)}", file=sys.stderr)
        return 1
    if report.damage is not None:
        return report.damage.exit_code
    lost = sum(topic.lost for topic in report.summary.topics.values())
    return DamagedInputError.exit_code if lost else 0
