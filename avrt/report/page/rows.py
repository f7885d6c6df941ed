"""A run's history as plain data for the scripts: columns, times relative where that is shorter.

Times are pipeline ns. `release` is absolute; the other times of a job count from it, None where it
has none. Names (tasks, outcomes, reasons, devices) are written once and referred to by place.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from avrt.model.records import OUTCOMES
from avrt.report.host import Host, HostSample
from avrt.report.page.sieve import step_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.metrics.changes import JobChange
    from avrt.model.spec import PipelineSpec
    from avrt.report.page.history import History, JobRow
    from avrt.report.summary import RunSummary

DIGITS = 3
HOST_MAX = 1_500
NO_HOST = Host()


def run_data(
    name: str, summary: RunSummary, history: History, host: Host = NO_HOST
) -> dict[str, object]:
    """Return one run: what the timeline and the charts draw."""
    spec = summary.pipeline
    return {
        "name": name,
        "end_ns": summary.end_ns,
        "tasks": _tasks(spec),
        "outcomes": [*OUTCOMES],
        "jobs": _Jobs(spec).columns(history.jobs),
        "density": history.density.data(),
        "thinned": {"met": history.met.step, "missed": history.missed.step},
        "sources": _sources(summary, history),
        "marks": [mark._asdict() for mark in history.marks.items],
        "chains": {
            chain.name: {
                "reaction_limit_ns": chain.reaction_ns,
                "age_limit_ns": chain.age_ns,
                "outputs": [
                    [one.at_ns, one.reaction_ns, one.age_ns]
                    for one in history.chains[chain.name].items
                ],
            }
            for chain in spec.chains
        },
        "broken": [
            [one.chain, one.at_ns, one.promise, one.limit_ns, one.capture_ns]
            for one in history.broken.items
        ],
        "incident": _incident(summary),
        "host": _host(host),
        "object": summary.data(),
    }


def _incident(summary: RunSummary) -> dict[str, object] | None:
    """Return when what a flight record was written for happened, and to which job, if to one."""
    record = summary.incident
    if record is None:
        return None
    return {"at_ns": record.at_ns, "job": getattr(record, "job", None)}


def _host(host: Host) -> dict[str, object] | None:
    """Return samples of the host as columns; None where there are none."""
    if not host.samples:
        return None
    samples = host.in_steps(host_step(host))
    columns = zip(HostSample._fields, zip(*samples, strict=True), strict=True)
    return {name: [_rounded(value) for value in values] for name, values in columns}


def host_step(host: Host) -> int:
    """Return how many samples make one step of a chart."""
    return step_for(len(host.samples), HOST_MAX)


def _rounded(value: float | None) -> float | None:
    return round(value, DIGITS) if isinstance(value, float) else value


def _tasks(spec: PipelineSpec) -> list[dict[str, object]]:
    return [
        {
            "name": task,
            "stage": stage.name,
            "device": home,
            "deadline_ns": stage.deadline_ns,
            "deadline_from": stage.deadline_from,
            "criticality": stage.criticality.label,
        }
        for stage in spec.stages
        for task, home in zip(stage.task_names, stage.homes, strict=True)
    ]


class _Jobs:
    """Writes jobs as columns."""

    def __init__(self, spec: PipelineSpec) -> None:
        self._tasks = [task for stage in spec.stages for task in stage.task_names]
        self._reasons: list[str] = [""]
        self._devices: list[str] = []

    def columns(self, rows: Sequence[JobRow]) -> dict[str, object]:
        records = [row.record for row in rows]
        return {
            "job": [r.job for r in records],
            "task": [self._tasks.index(r.task) for r in records],
            "index": [r.index for r in records],
            "release": [r.release_ns for r in records],
            "due": [r.due_ns - r.release_ns for r in records],
            "start": [_after(r.start_ns, r.release_ns) for r in records],
            "end": [r.end_ns - r.release_ns for r in records],
            "outcome": [OUTCOMES.index(r.outcome) for r in records],
            "reason": [_place(self._reasons, r.reason) for r in records],
            "executed": [r.executed_ns for r in records],
            "more": self._more(rows),
            "reasons": self._reasons,
            "devices": self._devices,
        }

    def _more(self, rows: Sequence[JobRow]) -> dict[str, dict[str, object]]:
        """Return by place what only some jobs have."""
        found: dict[str, dict[str, object]] = {}
        for place, row in enumerate(rows):
            more = self._rare(row)
            if more:
                found[str(place)] = more
        return found

    def _rare(self, row: JobRow) -> dict[str, object]:
        record, more = row.record, dict[str, object]()
        if record.arrival_ns != record.release_ns:
            more["arrival_ns"] = record.arrival_ns
        if record.device_ns is not None:
            more["device_ns"] = [record.device_start_ns, record.device_ns]
        if row.gap_ns is not None:
            more["gap_ns"] = row.gap_ns
        if row.host_ns is not None:
            more["host_ns"] = row.host_ns
        if record.absent:
            more["absent"] = [*record.absent]
        if row.busy_until_ns is not None and row.busy_until_ns > record.end_ns:
            more["busy_until_ns"] = row.busy_until_ns
        if row.pieces:
            devices = [_place(self._devices, piece.device) for piece in row.pieces]
            if len(row.pieces) > 1:
                more["pieces"] = [
                    [piece.start_ns, piece.end_ns, device]
                    for piece, device in zip(row.pieces, devices, strict=True)
                ]
            more["device"] = devices[0]
        if row.miss is not None:
            more["miss"] = [[i.kind, i.start_ns, i.end_ns, i.by, i.job] for i in row.miss.intervals]
        return more


def _sources(summary: RunSummary, history: History) -> list[dict[str, object]]:
    """Return every source: what came when, what its topic promised, where its captures pause."""
    rows: list[dict[str, object]] = []
    for source in summary.pipeline.sources:
        messages = history.messages[source.name]
        topic, gaps = summary.topics.get(source.topic or ""), messages.gaps()
        rows.append(
            {
                "name": source.name,
                "type": source.type,
                "topic": source.topic,
                "period_ns": source.period_ns,
                "counts": None if topic is None else asdict(topic),
                "count": messages.times.seen,
                "arrivals": [at_ns for at_ns, _ in messages.times.items],
                "gaps": [list(gap) for gap in gaps.items],
                "gap_count": gaps.seen,
                "outages": [list(outage) for outage in history.outages[source.name]],
                "anomalies": _anomalies(summary, source.topic),
            }
        )
    return rows


def _anomalies(summary: RunSummary, topic: str | None) -> list[dict[str, object]]:
    return [asdict(one) for one in summary.anomalies if topic is not None and one.topic == topic]


def changes_data(changes: Sequence[JobChange]) -> list[dict[str, object]]:
    """Return the misses that a what-if changed, by task and number of the job in each run."""
    return [
        {
            "kind": change.kind,
            "task": change.task,
            "before": None if change.before is None else change.before.index,
            "after": None if change.after is None else change.after.index,
        }
        for change in changes
    ]


def _after(at_ns: int | None, release_ns: int) -> int | None:
    return None if at_ns is None else at_ns - release_ns


def _place(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
