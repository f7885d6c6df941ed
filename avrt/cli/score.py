"""`avrt score RUN`: how right a recorded run was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.cli.output import add_json_option, show, show_json
from avrt.report.score.render import render
from avrt.report.score.run import score_run

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "score",
        help="score a recorded run against ground truth",
        description="Compare tracks, detections and boxes in images of a run record with the "
        "ground truth of its log: what was found, what was false, how far off.",
    )
    parser.add_argument("record", type=Path, metavar="RUN")
    parser.add_argument(
        "--truth", type=Path, metavar="LOG", help="take the ground truth from this log"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    score = score_run(options.record, options.truth)
    if options.json:
        show_json(score.data())
    else:
        show(render(score))
    return 3 if score.damage else 0
