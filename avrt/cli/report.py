"""`avrt report RUN`: what a recorded run showed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, add_trace_option, show, show_json
from avrt.cli.page import check_page
from avrt.report.page import write_page
from avrt.report.summary import read_summary
from avrt.report.terminal import render
from avrt.report.trace.writing import write_trace

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="show what a recorded run showed",
        description="Show outcomes, responses, chains and misses of a run record.",
    )
    parser.add_argument("record", type=Path, metavar="RUN")
    add_trace_option(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="PAGE",
        help="write the report page here: one HTML file that needs nothing else",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    if options.out is not None:
        check_page(options.out, options.record, options.trace)
    summary = read_summary(options.record)
    if options.trace is not None:
        write_trace(options.record, options.trace)
    if options.out is not None:
        write_page(options.out, options.record, summary)
    if options.json:
        show_json(summary.data())
    else:
        show(render(summary))
    return 3 if summary.damage else 0
