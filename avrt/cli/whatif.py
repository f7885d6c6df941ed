"""`avrt whatif RUN`: what a recorded run would have been with something changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.api.whatif import anomalies, what_if
from avrt.cli.output import add_json_option, show, show_json
from avrt.cli.page import add_page_option, recorded_for
from avrt.config.changes import Changes
from avrt.errors import SpecError
from avrt.report.page import write_what_if_page

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
    add_page_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    assigned = {name: tuple(getattr(options, name)) for name, _, _ in ASSIGNMENTS}
    changes = Changes(options.policy, **assigned)
    if options.anomalies and options.out is not None:
        raise SpecError("a run record holds one run; give either --anomalies or --out")
    if options.anomalies and options.report is not None:
        raise SpecError("a page shows one changed run; give either --anomalies or --report")
    looks = anomalies(options.record, changes) if options.anomalies else None
    report: WhatIfReport | AnomalyReport = looks or _what_if(options, changes)
    if options.json:
        show_json(report.data())
    else:
        show(report.render())
    return 0


def _what_if(options: Namespace, changes: Changes) -> WhatIfReport:
    with recorded_for(options.report, options.out, options.record) as out:
        report = what_if(options.record, changes, out)
        if out != options.out:
            report = replace(report, out=None)
        if options.report is not None:
            assert out is not None
            write_what_if_page(options.report, options.record, out, report)
        return report
