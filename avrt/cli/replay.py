"""`avrt replay LOG -p PIPELINE`: a recorded log through a pipeline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.api.arguments import timing_run
from avrt.cli.output import (
    add_json_option,
    add_trace_option,
    progress_bar,
    show,
    show_json,
    stdout_kept,
)
from avrt.cli.page import add_page_option, recorded_for
from avrt.errors import DamagedInputError
from avrt.exec.runner import HANG_TIMEOUT_NS
from avrt.report.page import write_page
from avrt.report.terminal import broken_promises, render
from avrt.units import format_ns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

    from avrt.api import Report


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "replay",
        help="run a recorded log through a pipeline",
        description="Run a recorded log through a pipeline: what came out, which deadlines were "
        "missed and why. In virtual time the same call gives the same answer every time.",
    )
    parser.add_argument(
        "log",
        type=Path,
        metavar="LOG",
        help="an MCAP file, a rosbag2 folder or file, a ROS 1 bag, or a comma2k19 segment",
    )
    parser.add_argument(
        "-p", "--pipeline", type=Path, required=True, metavar="FILE", help="a pipeline file (YAML)"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="RUN", help="write the run record here")
    parser.add_argument(
        "--timing",
        metavar="HOW",
        help="execution times: model (the declared wcet, default), measured (what a job takes "
        "here), recorded:RUN (what it took in that run); at the wall clock always measured",
    )
    add_trace_option(parser)
    _add_clock_options(parser)
    parser.add_argument(
        "--loops",
        type=int,
        default=1,
        metavar="N",
        help="play the log so many times; what stages believed is forgotten each time (default: 1)",
    )
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
    parser.set_defaults(run=run)


def _add_clock_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--clock",
        default="virtual",
        metavar="CLOCK",
        help="virtual (default): as fast as it goes, decisions do not depend on the machine; "
        "wall: messages come when they came and streams run side by side",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=1.0,
        metavar="R",
        help="with --clock wall: pipeline seconds in a second (default: 1)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --clock wall: run even a pipeline that is known to miss, see avrt check",
    )


def run(options: Namespace) -> int:
    others = (options.log, options.pipeline, options.trace, timing_run(options.timing))
    with recorded_for(options.report, options.out, *others) as record:
        report = _replay(options, record)
        if record != options.out:
            report.summary.record = None
        if options.report is not None:
            assert record is not None
            write_page(options.report, record, report.summary)
    return finish(report, as_json=options.json, fail_on_miss=options.fail_on_miss)


def _replay(options: Namespace, record: Path | None) -> Report:
    wanted = not options.json
    with stdout_kept(clean=options.json), progress_bar(options.log.name, wanted=wanted) as progress:
        return Pipeline.load(options.pipeline).replay(
            options.log,
            out=record,
            timing=options.timing,
            clock=options.clock,
            rate=options.rate,
            force=options.force,
            loops=options.loops,
            hang_timeout=options.hang_timeout,
            progress=progress,
            trace=options.trace,
        )


def finish(report: Report, *, as_json: bool, fail_on_miss: bool) -> int:
    """Print a report and return the exit code that it deserves."""
    if as_json:
        show_json(report.data)
    else:
        show(render(report.summary))
    if report.summary.interrupted:
        return 130
    if report.summary.record_failure:
        print("avrt: exit 1: the record could not be written", file=sys.stderr)
        return 1
    broken = fail_on_miss and report.summary.figures.broken_promises
    if broken or report.summary.broken_guarantees:
        print(f"avrt: exit 1: {broken_promises(report.summary)}", file=sys.stderr)
        return 1
    if report.damage is not None:
        return report.damage.exit_code
    lost = sum(topic.lost for topic in report.summary.topics.values())
    return DamagedInputError.exit_code if lost else 0
