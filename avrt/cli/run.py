"""`avrt run PIPELINE`: in real time, from sensors, a log or the built-in world."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live

from avrt.api import Pipeline
from avrt.cli.driving import (
    add_drive_options,
    add_flight_options,
    add_strict_option,
    finish,
    leave_page,
    refuse_two_records,
)
from avrt.cli.output import stdout_kept
from avrt.cli.page import recorded_for
from avrt.exec.realtime import passive_openmp
from avrt.report.live_table import live_table
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Callable, Iterator

    from avrt.metrics.progress import Progress
    from avrt.model.spec import PipelineSpec

    Preparing = Callable[[int], None] | None
    Look = Callable[[Progress], None] | None


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run a pipeline in real time",
        description="Run a pipeline in real time: messages come when they come, every stage "
        "computes on a stream of its own. Sources with 'run' read their sensors; a log or the "
        "built-in world feeds the others. Ctrl-C ends the run: what is open finishes, and the "
        "record is whole.",
    )
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE", help="a pipeline file (YAML)")
    _add_feed_options(parser)
    parser.add_argument(
        "--duration", metavar="TIME", help="release no job after this, such as 60s (default: all)"
    )
    parser.add_argument("--record", type=Path, metavar="RUN", help="write the run record here")
    add_flight_options(parser, always=True)
    parser.add_argument(
        "--force", action="store_true", help="run even what is known to miss, see avrt check"
    )
    add_strict_option(parser)
    add_drive_options(parser)
    parser.set_defaults(run=run)


def _add_feed_options(parser: ArgumentParser) -> None:
    feed = parser.add_mutually_exclusive_group()
    feed.add_argument("--log", type=Path, metavar="LOG", help="play this log, message by message")
    feed.add_argument(
        "--world",
        metavar="SCENE",
        help="a scene of the built-in world (default: cut_in, where nothing else feeds a source)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the world (default: 0)")
    parser.add_argument(
        "--rate",
        type=float,
        default=1.0,
        metavar="R",
        help="pipeline seconds in a second (default: 1)",
    )
    parser.add_argument(
        "--loops",
        type=int,
        default=1,
        metavar="N",
        help="play the log, or make drives of the world, so many times (default: 1)",
    )


def run(options: Namespace) -> int:
    refuse_two_records(options, "record")
    passive_openmp()  # before torch is loaded
    others = (options.log, options.pipeline)
    with recorded_for(options.report, options.record, *others) as record:
        pipeline = Pipeline.load(options.pipeline)
        wanted = not options.json
        with (
            stdout_kept(clean=options.json),
            screen(pipeline.declared, wanted=wanted) as (preparing, look),
        ):
            report = pipeline.run(
                options.log,
                world=options.world,
                seed=options.seed,
                rate=options.rate,
                loops=options.loops,
                strict=options.strict,
                duration=options.duration,
                record=record,
                flight=options.flight,
                keep_around_misses=options.keep_around_misses,
                force=options.force,
                hang_timeout=options.hang_timeout,
                preparing=preparing,
                look=look,
            )
        leave_page(options, report, record, wanted=options.record)
    return finish(
        report,
        as_json=options.json,
        fail_on_miss=options.fail_on_miss,
        flight_asked=options.keep_around_misses is not None,
    )


@contextmanager
def screen(spec: PipelineSpec, *, wanted: bool) -> Iterator[tuple[Preparing, Look]]:
    """Give what to tell how the preparation and the run stand; shown on a terminal only."""
    if not (wanted and sys.stderr.isatty()):
        yield None, None
        return
    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:

        def prepare(made_ns: int) -> None:
            live.update(f"making the world: {made_ns / NS_PER_S:.1f} s", refresh=True)

        def look(progress: Progress) -> None:
            live.update(live_table(spec, progress), refresh=True)

        yield prepare, look
