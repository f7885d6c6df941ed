"""`avrt check PIPELINE`: is this pipeline file sound, and can it meet its deadlines?

Exit code 0 when it is sound and not known to miss, 1 when it is known to miss, 2 when it is not
sound. What could be neither shown nor refuted is told as unknown and is no failure.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from avrt.analysis.schedulability import worst_of
from avrt.analysis.sensitivity import format_rate, remedies, sensitivity
from avrt.api import Pipeline
from avrt.api.judgement import judge
from avrt.cli.check_levels import level_data, level_parts
from avrt.cli.output import add_json_option, progress_bar, show, show_json, stdout_kept
from avrt.config.schema import pipeline_schema
from avrt.errors import SpecError
from avrt.metrics.load import overload_warnings
from avrt.model.codec import encode
from avrt.model.graph import release_periods
from avrt.model.levels import at_level, first_level, levels_of
from avrt.report.levels import level_diagram
from avrt.units import format_ns

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Iterator

    from avrt.analysis.figure import Figure, Verdict
    from avrt.analysis.schedulability import Findings
    from avrt.analysis.sensitivity import Change, Sensitivity
    from avrt.model.spec import DeviceSpec, PipelineSpec, TableSpec
    from avrt.model.supply import Supply

REMEDIES_SHOWN = 5
STARTS_SHOWN = 10
MISSES = 1
STYLES = {"meets": "green", "misses": "red", "unknown": "yellow"}
SAID = {
    "meets": "every deadline and every chain's promise is met",
    "misses": "it is known to miss deadlines",
    "unknown": "whether it meets all its deadlines is not known",
}


def add_to(commands: _SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="check a pipeline file and whether it can meet its deadlines",
        description="Check a pipeline file: keys, units, names, inputs and stage parameters; and "
        "whether it meets its deadlines, by how much, and what would be enough. "
        "Exit code 1 when it is known to miss.",
    )
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE", nargs="?")
    parser.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON Schema of the pipeline file, for editors, and check nothing",
    )
    parser.add_argument(
        "--diagram",
        action="store_true",
        help="print the ladder as a Mermaid state diagram, and analyse nothing",
    )
    parser.add_argument(
        "--quick", action="store_true", help="leave out how much each figure may change"
    )
    add_json_option(parser)
    parser.set_defaults(run=run, refuse=parser.error)


def run(options: Namespace) -> int:
    if options.schema:
        show_json(pipeline_schema())
        return 0
    if options.pipeline is None:
        options.refuse("give a PIPELINE, or --schema")
    with stdout_kept(clean=options.json):
        spec = Pipeline.load(options.pipeline).check()
    if options.diagram:
        return _show_diagram(spec)
    begin = first_level(spec)
    room: Sensitivity | None = None
    changes: list[Change] | None = None
    with progress_bar("analysing; --quick leaves most out", wanted=not options.json):
        levels = {level.name: judge(at_level(spec, level)) for level in levels_of(spec)}
        findings = next(iter(levels.values())) if levels else judge(spec)
        if not options.quick and findings.verdict == "meets":
            room = sensitivity(begin)
        elif not options.quick:
            changes = remedies(begin)
    verdict = worst_of([findings.verdict, *(found.verdict for found in levels.values())])
    if options.json:
        told = check_object(begin, findings, room, changes or [])
        whole = {"verdict": verdict, "levels": level_data(levels), "spec": encode(spec)[1]}
        show_json(told | whole)
    else:
        _show(begin, findings, room, changes)
        for part in level_parts(spec, levels):
            show(part)
        show(f"{options.pipeline}: sound; {SAID[verdict]}")
    return MISSES if verdict == "misses" else 0


def _show_diagram(spec: PipelineSpec) -> int:
    if spec.ladder is None:
        raise SpecError("the pipeline has no 'ladder' to draw")
    show(level_diagram(spec))
    return 0


# For a person


def _show(
    spec: PipelineSpec,
    findings: Findings,
    room: Sensitivity | None,
    changes: list[Change] | None,
) -> None:
    show(_device_table(spec, findings))
    show(_stage_table(spec, findings, room))
    if findings.chains:
        show(_chain_table(findings))
    if spec.table is not None:
        show(_plan_table(spec.table))
    for warning in (*overload_warnings(spec), *_unbound(spec)):
        show(Text(warning, style="yellow"))
    for finding in findings.stages:
        if finding.why:
            show(Text(f"{finding.name}: {finding.why}", style=STYLES[finding.verdict]))
    if room is not None:
        _show_room(spec, room)
    for place, change in enumerate((changes or [])[:REMEDIES_SHOWN]):
        show(f"{'enough would be' if place == 0 else 'or'}: {change.what}")
    if changes == []:
        show("no single change that was tried is enough")


def _unbound(spec: PipelineSpec) -> Iterator[str]:
    """Yield what is said of stages that nothing computes."""
    names = ", ".join(stage.name for stage in spec.stages if not stage.run)
    if names:
        yield f"no 'run' yet: {names}; this file can be analysed and simulated, not replayed"


def _show_room(spec: PipelineSpec, room: Sensitivity) -> None:
    beyond = f"; beyond it {', '.join(room.first)} may not be in time" if room.first else ""
    show(f"all wcets may be {room.factor:.3g} times as long, as far as it can be shown{beyond}")
    sources = {source.name for source in spec.sources}
    for name, ns in room.period_ns.items():
        pace = (
            f"rate up to {format_rate(ns)}" if name in sources else f"period from {format_ns(ns)}"
        )
        show(f"{name}: {pace}")


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name)
    return table


def _device_table(spec: PipelineSpec, findings: Findings) -> Table:
    title = f"{spec.name}: policy {spec.policy}"
    table = _table(title, "device", "slots", "preemptive", "utilisation", "verdict", "by")
    for device in findings.devices:
        load = "-" if device.utilisation is None else f"{float(device.utilisation):.3f}"
        table.add_row(
            device.name,
            _slots(spec.device(device.name)),
            "yes" if device.preemptive else "no",
            load,
            _styled(device.verdict),
            device.source,
        )
    return table


def _slots(device: DeviceSpec) -> str:
    if device.supply is None:
        return str(device.slots)
    return f"{format_ns(device.supply.budget_ns)} of {format_ns(device.supply.period_ns)}"


def _stage_table(spec: PipelineSpec, findings: Findings, room: Sensitivity | None) -> Table:
    names = ("stage", "device", "released by", "period", "wcet", "deadline", "worst response")
    more = ("slack", "wcet up to", "criticality", "label", "verdict")
    table = _table("stages", *names, *more)
    periods = release_periods(spec)
    for stage, finding in zip(spec.stages, findings.stages, strict=True):
        trigger = stage.trigger_input
        by = "timer" if stage.period_ns else trigger.source if trigger else "synchronised set"
        table.add_row(
            stage.name,
            " > ".join(s.device for s in stage.segments) or ", ".join(dict.fromkeys(stage.homes)),
            by,
            _shown(periods[stage.name]),
            format_ns(stage.wcet_ns),
            format_ns(stage.deadline_ns),
            _shown(finding.response.ns),
            _shown(finding.slack_ns),
            _shown(None if room is None else room.wcet_ns[stage.name]),
            stage.criticality.label,
            finding.response.label,
            _styled(finding.verdict),
        )
    return table


def _chain_table(findings: Findings) -> Table:
    names = ("chain", "reaction and age", "reaction limit", "age limit", "label", "verdict", "by")
    table = _table("chains", *names)
    for chain in findings.chains:
        table.add_row(
            chain.name,
            _shown(chain.latency.ns),
            _shown(chain.reaction_limit_ns),
            _shown(chain.age_limit_ns),
            chain.latency.label,
            _styled(chain.verdict),
            chain.latency.source,
        )
    return table


def _plan_table(plan: TableSpec) -> Table:
    table = _table("table", "stage", f"starts in a cycle of {format_ns(plan.cycle_ns)}")
    for row in plan.rows:
        starts = ", ".join(format_ns(ns) for ns in row.starts_ns[:STARTS_SHOWN])
        more = len(row.starts_ns) - STARTS_SHOWN
        table.add_row(row.task, f"{starts}, {more} more" if more > 0 else starts)
    return table


def _shown(ns: int | None) -> str:
    return "-" if ns is None else format_ns(ns)


def _styled(verdict: Verdict) -> Text:
    return Text(verdict, style=STYLES[verdict])


# For a program


def check_object(
    spec: PipelineSpec, findings: Findings, room: Sensitivity | None, changes: list[Change]
) -> dict[str, object]:
    """Return everything but `levels` as one object; `docs/check.md` names its keys."""
    return {
        "pipeline": spec.name,
        "policy": spec.policy,
        "verdict": findings.verdict,
        "devices": {
            device.name: {
                "slots": device.slots,
                "preemptive": device.preemptive,
                "utilisation": None if device.utilisation is None else float(device.utilisation),
                "supply": _supply(spec.device(device.name).supply),
                "verdict": device.verdict,
                "source": device.source,
            }
            for device in findings.devices
        },
        "stages": {
            stage.name: {
                "device": stage.device,
                "limit_ns": stage.limit_ns,
                "response": _figure(stage.response),
                "slack_ns": stage.slack_ns,
                "verdict": stage.verdict,
                "why": stage.why,
            }
            for stage in findings.stages
        },
        "chains": {
            chain.name: {
                "latency": _figure(chain.latency),
                "reaction_limit_ns": chain.reaction_limit_ns,
                "age_limit_ns": chain.age_limit_ns,
                "verdict": chain.verdict,
            }
            for chain in findings.chains
        },
        "table": None
        if spec.table is None
        else {
            "cycle_ns": spec.table.cycle_ns,
            "starts_ns": {row.task: list(row.starts_ns) for row in spec.table.rows},
        },
        "sensitivity": None
        if room is None
        else {
            "wcet_ns": dict(room.wcet_ns),
            "factor": room.factor,
            "first": list(room.first),
            "period_ns": dict(room.period_ns),
        },
        "remedies": [
            {"key": ".".join(c.key), "what": c.what, "relative": c.relative} for c in changes
        ],
        "warnings": [*overload_warnings(spec), *_unbound(spec)],
    }


def _supply(supply: Supply | None) -> dict[str, int] | None:
    if supply is None:
        return None
    return {"budget_ns": supply.budget_ns, "period_ns": supply.period_ns}


def _figure(figure: Figure) -> dict[str, object]:
    return {"ns": figure.ns, "label": figure.label, "source": figure.source}
