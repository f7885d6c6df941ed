"""`avrt profile LOG -p PIPELINE`: what every stage takes on real input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api import Pipeline
from avrt.cli.driving import add_strict_option
from avrt.cli.output import add_json_option, progress_bar, show, show_json, stdout_kept
from avrt.errors import DamagedInputError, SpecError
from avrt.report.outputs import keep_apart

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

INTERRUPTED = 130


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "profile",
        help="measure what every stage takes on a recorded log",
        description="Measure the execution times of every stage on a recorded log, one stage at a "
        "time, warm-up and first job apart; with a probabilistic wcet where its assumptions hold. "
        "Of stages with copies also how far the outputs of these lie apart: what their tolerance "
        "may be taken from.",
    )
    parser.add_argument("log", type=Path, metavar="LOG")
    parser.add_argument(
        "-p", "--pipeline", type=Path, required=True, metavar="FILE", help="a pipeline file (YAML)"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="PROFILE", help="write the profile here (YAML)"
    )
    parser.add_argument(
        "--loops", type=int, default=1, metavar="N", help="play the log so many times (default: 1)"
    )
    add_strict_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    from avrt.api.profile import profile, write_profile  # noqa: PLC0415 - brings scipy.stats, 1 s

    _check_out(options)
    wanted = not options.json
    with stdout_kept(clean=options.json), progress_bar(options.log.name, wanted=wanted) as progress:
        pipeline = Pipeline.load(options.pipeline)
        asked = {"loops": options.loops, "strict": options.strict, "progress": progress}
        found, report = profile(pipeline, options.log, **asked)
    if options.out is not None:
        write_profile(found, options.out)
    if options.json:
        show_json(found.data())
    else:
        show(found.render())
    if report.summary.interrupted:
        return INTERRUPTED
    if report.damage is not None:
        return report.damage.exit_code
    lost = sum(topic.lost for topic in report.summary.topics.values())
    return DamagedInputError.exit_code if lost else 0


def _check_out(options: Namespace) -> None:
    """Refuse to write the profile over what is read, or where it cannot be."""
    if options.out is None:
        return
    if not options.out.parent.is_dir():
        raise SpecError(f"cannot write the profile {options.out}: no such folder; make it first")
    keep_apart("the profile", options.out, (options.log, options.pipeline))
