"""`avrt replay LOG -p PIPELINE`: a recorded log through a pipeline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.api.arguments import timing_run
from avrt.cli.driving import (
    add_drive_options,
    add_flight_options,
    add_strict_option,
    finish,
    leave_page,
    refuse_two_records,
)
from avrt.cli.output import add_trace_option, progress_bar, stdout_kept
from avrt.cli.page import recorded_for

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
        help="an MCAP file, a rosbag2, a ROS 1 bag, or another of the formats of docs/logs.md",
    )
    parser.add_argument(
        "-p",
        "--pipeline",
        type=Path,
        metavar="FILE",
        help="a pipeline file (YAML); one that fits the log by default, see avrt info --pipeline",
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
        "--start",
        metavar="TIME",
        help="play it from so long after its first message, such as '5 s'; mountings and camera "
        "models of before count (default: its beginning)",
    )
    add_flight_options(parser, always=False)
    add_strict_option(parser)
    add_drive_options(parser)
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
    refuse_two_records(options, "out")
    others = (options.log, options.pipeline, options.trace, timing_run(options.timing))
    with recorded_for(options.report, options.out, *others) as record:
        report = _replay(options, record)
        leave_page(options, report, record, wanted=options.out)
    return finish(
        report,
        as_json=options.json,
        fail_on_miss=options.fail_on_miss,
        flight_asked=options.keep_around_misses is not None,
    )


def _pipeline(options: Namespace) -> Pipeline:
    """Return the pipeline asked for, or one that fits the log; what it assumes is told."""
    if options.pipeline is not None:
        return Pipeline.load(options.pipeline)
    pipeline = Pipeline.fitting(options.log)
    assert pipeline.loaded is not None
    for line in pipeline.loaded.text.splitlines():
        if line.startswith("#"):
            print(f"avrt: {line.removeprefix('# ')}", file=sys.stderr)
    return pipeline


def _replay(options: Namespace, record: Path | None) -> Report:
    wanted = not options.json
    with stdout_kept(clean=options.json), progress_bar(options.log.name, wanted=wanted) as progress:
        return _pipeline(options).replay(
            options.log,
            out=record,
            flight=None if options.keep_around_misses is None else options.flight,
            keep_around_misses=options.keep_around_misses,
            timing=options.timing,
            clock=options.clock,
            rate=options.rate,
            force=options.force,
            loops=options.loops,
            start=options.start,
            strict=options.strict,
            hang_timeout=options.hang_timeout,
            progress=progress,
            trace=options.trace,
        )
