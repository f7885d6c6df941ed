"""`avrt whatif RUN`: what a recorded run would have been with something changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api.whatif import anomalies, what_if
from avrt.cli.output import add_json_option, show, show_json
from avrt.config.changes import Changes
from avrt.errors import SpecError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

    from avrt.report.anomalies import AnomalyReport
    from avrt.report.whatif import WhatIfReport

ASSIGNMENTS = (
    ("cost", "STAGE=COST", "what its jobs take: +20%% or -5%% of what they took, or 12ms for all"),
    ("wcet", "STAGE=TIME", "its declared wcet"),
    ("deadline", "STAGE=TIME", "its deadline"),
    ("rate", "STAGE=RATE", "the rate or period of a stage that its own timer releases"),
    ("device", "STAGE=DEVICE", "the device that it runs on, or one for each segment: cpu,gpu"),
    ("slots", "DEVICE=COUNT", "how many jobs a device runs at once"),
)


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "whatif",
        help="repeat a recorded run with something changed",
        description="Repeat the arrivals and execution times of a recorded run with another "
        "policy, other costs, deadlines or devices: which misses appear, vanish or move, and why. "
        "Nothing computes; with nothing changed the recorded decisions come out again.",
    )
    parser.add_argument("record", type=Path, metavar="RUN")
    parser.add_argument("--policy", metavar="POLICY", help="the scheduling policy, such as rm")
    for name, metavar, text in ASSIGNMENTS:
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar=metavar, help=f"{text}; repeatable"
        )
    parser.add_argument(
        "--anomalies",
        action="store_true",
        help="look for jobs that end later when others take less, see docs/report.md",
    )
    parser.add_argument("-o", "--out", type=Path, metavar="RUN2", help="write the changed run here")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    assigned = {name: tuple(getattr(options, name)) for name, _, _ in ASSIGNMENTS}
    changes = Changes(options.policy, **assigned)
    if options.anomalies and options.out is not None:
        raise SpecError("a run record holds one run; give either --anomalies or --out")
    report: WhatIfReport | AnomalyReport
    if options.anomalies:
        report = anomalies(options.record, changes)
    else:
        report = what_if(options.record, changes, options.out)
    if options.json:
        show_json(report.data())
    else:
        show(report.render())
    return 0
