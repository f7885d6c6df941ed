"""A run as a table for a terminal: outcomes, responses against deadlines, chains, why late.

Every time says where it comes from: modelled, recorded or measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from avrt.logs.record.recorded import FLIGHT
from avrt.metrics.load import overload_warnings
from avrt.model.levels import first_level
from avrt.report.levels import level_notes
from avrt.report.sensors import sensor_notes
from avrt.report.streams import host_notes, lateness_note, side_by_side, streams_table
from avrt.units import NS_PER_MS, NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from avrt.metrics.distribution import Distribution
    from avrt.metrics.run import RunFigures, StageFigures
    from avrt.metrics.votes import VoteFigures
    from avrt.model.records import MissRecord
    from avrt.model.spec import StageSpec
    from avrt.report.bounds import Comparison
    from avrt.report.summary import RunSummary

CAUSES_SHOWN = 4
MISSES_SHOWN = 5
TEXT_WIDTH = 10_000
OUTCOME_STYLES = {
    "met": "green",
    "late": "red",
    "aborted": "red",
    "skipped": "yellow",
    "shed": "yellow",
    "open": "magenta",
}


def as_text(summary: RunSummary) -> str:
    """Return the whole report as plain text, lines as long as they need be."""
    console = Console(width=TEXT_WIDTH, color_system=None, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(render(summary))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def broken_promises(summary: RunSummary) -> str:
    """Return in words what was not kept; empty when everything was."""
    parts = [
        f"{count} {what}"
        for count, what in (
            (sum(stage.not_met for stage in summary.figures.stages.values()), "jobs not met"),
            (sum(s.violations for s in summary.figures.stages.values()), "(m,k) violations"),
            *(
                (count, f"times the {promise} limit of {name} passed")
                for name, chain in summary.figures.chains.items()
                for promise, count in sorted(chain.broken.items())
            ),
        )
        if count
    ]
    return ", ".join(parts)


def render(summary: RunSummary) -> RenderableType:
    """Return the whole report."""
    parts: list[RenderableType] = [_headline(summary)]
    parts += [Text(line, style="bold red") for line in summary.bounds.alarms()]
    parts += [*fruitless(summary), _stages(summary)]
    if summary.pipeline.chains:
        parts.append(_chains(summary))
    parts += [*streams_table(summary), *side_by_side(summary)]
    parts += list(why_late(summary))
    parts += list(notes(summary))
    parts.append(_footer(summary))
    return Group(*parts)


def _headline(summary: RunSummary) -> Text:
    jobs = summary.figures.jobs()
    text = Text(f"{summary.pipeline.name}", style="bold")
    text.append(
        f"  {(summary.end_ns - summary.begin_ns) / 1e9:.2f} s of pipeline time, policy ",
        style="default",
    )
    timing = f"{summary.pipeline.policy}, {summary.timing} execution times"
    clock = f", clock {summary.conditions['clock']}" if "clock" in summary.conditions else ""
    text.append(f"{timing}{clock}\n", style="default")
    text.append(f"{_jobs(jobs['released'])}: ", style="default")
    for outcome, style in OUTCOME_STYLES.items():
        if jobs[outcome] or outcome == "met":
            text.append(f"{jobs[outcome]} {outcome}  ", style=style)
    return text


def fruitless(summary: RunSummary) -> Iterator[Text]:
    """Yield the stages that had jobs and gave nothing: whoever reads no further must see it."""
    for name, stage in summary.figures.stages.items():
        if stage.outcomes and not stage.outcomes["met"] + stage.outcomes["late"]:
            yield Text(f"{name}: no job gave a result", style="bold red")


def _stages(summary: RunSummary) -> Table:
    table = Table(title="Stages (ms)", title_justify="left", header_style="bold")
    table.add_column("stage")
    counted = _outcomes_seen(summary)
    for name in ("jobs", *counted):
        table.add_column(name, justify="right")
    clock = ", pipeline time" if "clock" in summary.conditions else ""
    response = Text(f"response p50/p95/p99/max\n{summary.timing}{clock}")
    table.add_column(response, justify="right")
    table.add_column("bound", justify="right")
    table.add_column("deadline", justify="right")
    computed = has_computed(summary)
    how = "measured here, host time" if computed else summary.timing
    table.add_column(Text(f"execution p50/p95/p99/max\n{how}"), justify="right")
    table.add_column("wcet", justify="right")
    if computed:
        table.add_column("warm-up", justify="right")
    for spec in summary.pipeline.stages:
        stage = summary.figures.stages[spec.name]
        jobs = stage.jobs()
        measured = stage.host_execution.summary()["p99"]
        over = measured is not None and measured > spec.wcet_ns
        warm_ns = (stage.warm_ns or 0) + (stage.first_ns or 0)
        table.add_row(
            Text(spec.name),
            str(jobs["released"]),
            *(Text(str(jobs[n]), style=OUTCOME_STYLES[n] if jobs[n] else "") for n in counted),
            four(stage.response),
            _bound(summary.bounds.stages[spec.name]),
            _ms(spec.deadline_ns),
            Text(
                four(stage.host_execution if computed else stage.execution),
                style="red" if over else "",
            ),
            _ms(spec.wcet_ns),
            *([_ms(warm_ns) if warm_ns else "-"] if computed else []),
        )
    return table


def has_computed(summary: RunSummary) -> bool:
    """Whether any stage did compute; in a simulation none does."""
    return any(stage.first_ns is not None for stage in summary.figures.stages.values())


def _outcomes_seen(summary: RunSummary) -> list[str]:
    """Return met and late, and the other outcomes that any job had."""
    jobs = summary.figures.jobs()
    return [name for name in OUTCOME_STYLES if name in {"met", "late"} or jobs[name]]


def _chains(summary: RunSummary) -> Table:
    table = Table(title="Chains (ms)", title_justify="left", header_style="bold")
    table.add_column("chain")
    ends = ("reaction p50/p95/p99/max", "limit", "age p50/p95/p99/max", "limit")
    for name in (*ends, "bound", "broken"):
        table.add_column(name, justify="right")
    for spec in summary.pipeline.chains:
        chain = summary.figures.chains[spec.name]
        broken = ", ".join(f"{count} {name}" for name, count in sorted(chain.broken.items()))
        table.add_row(
            Text(spec.name),
            four(chain.reaction),
            _ms(spec.reaction_ns),
            four(chain.age),
            _ms(spec.age_ns),
            _bound(summary.bounds.chains[spec.name]),
            Text(broken or "0", style="red" if broken else "green"),
        )
    return table


def why_late(summary: RunSummary) -> Iterator[Text]:
    figures = summary.figures
    for name, stage in figures.stages.items():
        if not stage.causes:
            continue
        total_ns = max(1, sum(stage.causes.values()))
        ranked = sorted(stage.causes.items(), key=lambda item: (-item[1], item[0]))
        parts = [
            f"{share_ns / total_ns:.0%} {cause_of(name, kind, by)}"
            for (kind, by), share_ns in ranked[:CAUSES_SHOWN]
        ]
        rest_ns = sum(share_ns for _, share_ns in ranked[CAUSES_SHOWN:])
        if rest_ns:
            parts.append(f"{rest_ns / total_ns:.0%} others")
        yield Text(f"why {name} was late: " + ", ".join(parts), style="red")
    for miss in figures.misses[:MISSES_SHOWN]:
        yield Text("  " + describe_miss(miss))
    if figures.miss_count > MISSES_SHOWN:
        yield Text(f"  ... {figures.miss_count - MISSES_SHOWN} more misses in the record")


def describe_miss(miss: MissRecord) -> str:
    """Return one miss as a line: when, and where the time since its release went."""
    released, due = miss.release_ns / NS_PER_S, miss.due_ns / NS_PER_S
    return (
        f"{miss.task} job {miss.index}, released {released:.3f} s, "
        f"missed its due time {due:.3f} s: {spent_time(miss)}"
    )


def spent_time(miss: MissRecord) -> str:
    """Return where the time from a job's release to its due time went."""
    parts: list[tuple[str, int]] = []
    for interval in miss.intervals:
        cause, spent_ns = cause_of(miss.task, interval.kind, interval.by), interval.duration_ns
        if parts and parts[-1][0] == cause:
            spent_ns += parts.pop()[1]
        parts.append((cause, spent_ns))
    return " + ".join(f"{format_ns(spent_ns)} {cause}" for cause, spent_ns in parts)


def cause_of(task: str, kind: str, by: str) -> str:
    if kind == "running":
        return "running"
    if kind == "planned":
        return "until its start in the table"
    if kind == "blocking":
        return f"blocked by {by}"
    if by == task:
        return "waiting for its own predecessor"
    return f"waiting for {by}" if by else "not yet reported"


def notes(summary: RunSummary) -> Iterator[Text]:
    """Yield what must not be overlooked: overload, lost input, anomalies, faults, damage."""
    for warning in overload_warnings(first_level(summary.pipeline)):
        yield Text(warning, style="yellow")
    yield from level_notes(summary)
    yield from _conditions_notes(summary)
    yield from input_notes(summary)
    yield from sensor_notes(summary.figures)
    yield from lateness_note(summary)
    yield from host_notes(summary)
    for fault, count in summary.figures.faults.items():
        yield Text(f"fault {fault} ({count}x)", style="red")
    for name, (count, why) in summary.not_recorded.items():
        yield Text(f"{name}: {count} messages are not in the record: {why}", style="yellow")
    for spec in summary.pipeline.stages:
        yield from _stage_notes(spec, summary.figures)
    for name in summary.broken_guarantees:
        yield Text(f"{name}: guarantee hard is broken", style="bold red")
    yield from _end_notes(summary)


def _conditions_notes(summary: RunSummary) -> Iterator[Text]:
    if "devices" in summary.conditions:
        yield Text(summary.conditions["devices"], style="yellow")
    for line in summary.bounds.notes():
        yield Text(line, style="yellow")
    if FLIGHT in summary.conditions:
        what = f"a flight record, the middle of a run: {summary.conditions[FLIGHT]}"
        yield Text(what, style="yellow")
    if "forced" in summary.conditions:
        yield Text(f"forced: {summary.conditions['forced']}", style="bold yellow")


def _end_notes(summary: RunSummary) -> Iterator[Text]:
    for problem in summary.damage:
        yield Text(f"damaged: {problem}", style="red")
    if summary.record_failure:
        what = f"recording FAILED, the run went on without it: {summary.record_failure}"
        yield Text(what, style="bold red")
    flight = summary.flight
    if flight.files:
        more = f", and {flight.unwritten} incidents in none" if flight.unwritten else ""
        yield Text(f"flight records: {', '.join(flight.files)}{more}", style="yellow")
    if flight.failure:
        yield Text(f"the flight recorder gave up: {flight.failure}", style="bold red")
    if summary.interrupted:
        yield Text("ended by Ctrl-C", style="yellow")
    elif not summary.complete and FLIGHT not in summary.conditions:
        yield Text("the record was cut short: figures go as far as it does", style="yellow")
    if summary.hangs:
        yield Text(f"{_jobs(summary.hangs)} hung: this run is not reproducible", style="red")


def input_notes(summary: RunSummary) -> Iterator[Text]:
    for name, topic in summary.topics.items():
        style = "red" if topic.lost else ""
        counts = f"{topic.delivered} of {topic.messages} delivered, {topic.lost} lost"
        if topic.unread:
            counts += f", {topic.unread} unread"
        yield Text(f"input {name}: {counts}", style=style)
    for anomaly in summary.anomalies:
        where = anomaly.topic or "file"
        yield Text(f"anomaly {anomaly.kind} in {where}: {anomaly.detail} ({anomaly.count}x)")


def _vote_notes(name: str, votes: VoteFigures) -> Iterator[Text]:
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(votes.verdicts.items()))
    held = f"; the last output was held {votes.held}x" if votes.held else ""
    style = "red" if votes.without_majority else ""
    yield Text(f"{name}: {votes.count} votes: {told}{held}", style=style)
    for task, count in sorted(votes.blamed.items()):
        yield Text(f"{task}: wrong, late or missing in {count} votes", style="yellow")


def _stage_notes(spec: StageSpec, figures: RunFigures) -> Iterator[Text]:
    stage = figures.stages[spec.name]
    if (sets := figures.sets.get(spec.name)) is not None and sets.incomplete:
        yield Text(f"{spec.name}: {sets.told}", style="yellow")
    if stage.first_fault is not None:
        yield Text(f"{spec.name}: first fault {stage.first_fault}", style="red")
    for reason, count in sorted(stage.reasons.items()):
        yield Text(f"{spec.name}: {count} {reason}")
    for absent, count in sorted(stage.absent.items()):
        yield Text(f"{spec.name}: {_jobs(count)} ran without {absent}")
    for anomaly, count in stage.anomalies.items():
        yield Text(f"{spec.name}: {anomaly} ({count}x)", style="yellow")
    if stage.votes.count:
        yield from _vote_notes(spec.name, stage.votes)
    if stage.overruns:
        yield Text(f"{spec.name}: {_jobs(stage.overruns)} overran the budget", style="yellow")
    yield from late_starts(spec.name, stage)
    if stage.violations:
        yield Text(f"{spec.name}: {stage.violations} (m,k) violations", style="red")
    p99 = stage.host_execution.summary()["p99"]
    if p99 is not None and p99 > spec.wcet_ns:
        what = f"measured p99 {format_ns(p99)} is above its wcet {format_ns(spec.wcet_ns)}"
        yield Text(f"{spec.name}: {what}", style="red")


def late_starts(name: str, stage: StageFigures) -> Iterator[Text]:
    """Yield how many jobs started later than the table says, if any did."""
    late_ns = stage.start_late.summary()["max"]
    if late_ns is not None:
        what = f"started later than the table says, by up to {format_ns(late_ns)}"
        yield Text(f"{name}: {_jobs(len(stage.start_late))} {what}", style="yellow")


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _footer(summary: RunSummary) -> Text:
    conditions = summary.conditions
    shown = [conditions[k] for k in ("processor", "cores", "python", "date") if k in conditions]
    decisions, payloads = summary.decisions[:16] or "-", summary.payloads[:16] or "-"
    text = f"decisions {decisions}  payloads {payloads}\n"
    if summary.record is not None:
        text += f"record {summary.record}\n"
    if len(shown) == 4:
        done = "measured" if has_computed(summary) else "simulated"
        text += f"{done} on {shown[0]}, {shown[1]} cores, Python {shown[2]}, {shown[3]}"
    return Text(text, style="dim")


def four(figure: Distribution) -> str:
    """Return p50/p95/p99/max in ms."""
    summary = figure.summary()
    values = [summary[name] for name in ("p50", "p95", "p99", "max")]
    return "/".join(_ms(value) for value in values) if len(figure) else "-"


def bound_cells(row: Comparison | None) -> tuple[str, Text]:
    """Return the longest observation and its bound."""
    return ("-", Text("-")) if row is None else (_ms(row.observed_ns), _bound(row))


def _bound(row: Comparison) -> Text:
    """Return what the analyses allow, and whether the observation is within it."""
    if row.bound.ns is None:
        return Text("unknown")
    sign = "=" if row.bound.label == "exact" else "<="
    style = "" if row.holds is None else "green" if row.holds else "red"
    return Text(f"{sign} {_ms(row.bound.ns)}", style=style)


def _ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / NS_PER_MS:.1f}"
