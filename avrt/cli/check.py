"""`avrt check PIPELINE`: is this pipeline file sound?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.api import Pipeline
from avrt.cli.output import add_json_option, show, show_json, stdout_kept
from avrt.metrics.load import overload_warnings
from avrt.model.codec import encode
from avrt.model.graph import release_periods
from avrt.units import format_ns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

    from avrt.model.spec import PipelineSpec


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="check a pipeline file",
        description="Check a pipeline file: keys, units, names, inputs and stage parameters.",
    )
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: Namespace) -> int:
    with stdout_kept(clean=options.json):
        spec = Pipeline.load(options.pipeline).check()
    warnings = overload_warnings(spec)
    if options.json:
        show_json({"pipeline": spec.name, "spec": encode(spec)[1], "warnings": warnings})
        return 0
    show(_table(spec))
    for warning in warnings:
        show(Text(warning, style="yellow"))
    show(f"{options.pipeline}: sound; schedulability is not analysed in this version")
    return 0


def _table(spec: PipelineSpec) -> Table:
    table = Table(title=f"{spec.name}: policy {spec.policy}", title_justify="left")
    for name in ("stage", "device", "released by", "wcet", "deadline", "period", "criticality"):
        table.add_column(name)
    periods = release_periods(spec)
    for stage in spec.stages:
        period_ns = periods[stage.name]
        trigger = stage.trigger_input
        by = "timer" if stage.period_ns else trigger.source if trigger else "synchronised set"
        table.add_row(
            stage.name,
            " > ".join(s.device for s in stage.segments) or stage.device,
            by,
            format_ns(stage.wcet_ns),
            format_ns(stage.deadline_ns),
            "-" if period_ns is None else format_ns(period_ns),
            stage.criticality.label,
        )
    return table
