"""One live run, from its sources to a report: opens what feeds it, places the sensors, runs.

A source with `run` reads its own sensor. All others read one log, played at a rate, or the built-in
world, made meanwhile; without either, the world plays where its topics are the ones that are asked
for.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from avrt.api.flights import flight_recorder, summarise_flight
from avrt.api.live_inputs import LiveInputs
from avrt.api.preparation import (
    admitted,
    built,
    check_out,
    recording,
    remade,
)
from avrt.api.report import Report
from avrt.drivers.conditions import read_conditions
from avrt.drivers.hosts import fit_to_host, supplied_by_host
from avrt.drivers.live import LiveOptions, live
from avrt.drivers.probation import TOO_OFTEN
from avrt.exec.places import works
from avrt.logs.raw import Anomaly
from avrt.logs.record.journal import all_of
from avrt.logs.record.process import RemoteRecord
from avrt.metrics.sets import DropWatch
from avrt.model.codec import to_json
from avrt.report.summary import RunSummary
from avrt.safety.recovery import FAILURES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.api.arguments import LiveRequest
    from avrt.api.pipeline import Pipeline
    from avrt.drivers.flight import FlightRecorder
    from avrt.drivers.result import RunResult
    from avrt.drivers.wall import WallClock
    from avrt.logs.record.journal import Watch
    from avrt.model.spec import PipelineSpec

log = logging.getLogger("avrt.api")


class Live:
    """A pipeline about to run in real time."""

    def __init__(self, pipeline: Pipeline, wall: WallClock, request: LiveRequest) -> None:
        self._pipeline = pipeline
        self._wall = wall
        self._request = request

    def run(self) -> Report:
        """Do it."""
        request, pipeline = self._request, self._pipeline
        spec, devices = fit_to_host(pipeline.check_stages())
        spec = pipeline.planned(spec)
        forced = admitted(pipeline, spec, forced=request.force)
        spec, supply = supplied_by_host(spec)
        check_out(pipeline, request.record, spec, [request.log])
        with ExitStack() as opened:
            inputs = LiveInputs(pipeline, spec, request, opened)
            told = {
                **inputs.conditions,
                "devices": devices,
                "supply": supply,
                "forced": forced and f"it is known to miss: {forced}",
            }
            conditions = read_conditions(
                timing="measured",
                clock=f"live, rate {self._wall.rate:g}",
                **{name: text for name, text in told.items() if text},
            )
            return self._run(inputs, conditions, opened)

    def _run(self, inputs: LiveInputs, conditions: Mapping[str, str], opened: ExitStack) -> Report:
        """Run what is opened, and record it."""
        request, spec, zero_ns = self._request, inputs.spec, inputs.zero_ns
        stages = built(self._pipeline, spec)
        feeds = inputs.feeds(self._pipeline)
        record = opened.enter_context(
            recording(self._pipeline, request.record, spec, zero_ns, conditions, RemoteRecord)
        )
        if record is not None:
            inputs.copy_truth(record)
        flight = None
        if record is None and request.kept is not None:
            flight = flight_recorder(self._pipeline, request.kept, spec, zero_ns, conditions)
            opened.callback(flight.close)
        options = LiveOptions(
            duration_ns=request.duration_ns,
            record=flight if record is None else record,
            watch=self._watch(spec, flight),
            hang_timeout_ns=request.hang_timeout_ns,
            probe=lambda device: works(spec.device(device).type),
            remake=lambda task: remade(self._pipeline, spec, task),
            look=request.look,
            orders=request.orders,
        )
        inputs.wait_ready()
        result = self._pipeline.placed(lambda: live(spec, stages, feeds, self._wall, options))
        if record is not None and not result.record_failure:
            _settle(record, result)
        conditions = {**conditions, **result.conditions}
        summary = _summary(inputs, result, conditions)
        summary.record = None if request.record is None else str(request.record)
        if flight is not None:
            summarise_flight(summary, flight)
        if record is not None and not result.record_failure:
            _finish(record, summary)
        return Report(summary, result.damage)

    def _watch(self, spec: PipelineSpec, flight: FlightRecorder | None) -> Watch:
        """Return who is told of each call of the kernel, beside the figures."""
        dropped = self._request.dropped
        return all_of(
            None if flight is None else flight.watch,
            None if dropped is None else DropWatch(spec, dropped),
        )


def _settle(record: RemoteRecord, result: RunResult) -> None:
    """Learn what could not be recorded; nobody knows before all of it was tried."""
    try:
        result.not_recorded = {**result.not_recorded, **record.settled()}
    except OSError as error:
        result.record_failure = _told(error)


def _finish(record: RemoteRecord, summary: RunSummary) -> None:
    """Close the record; what the disk refuses ends the record, and not the run."""
    told = {"decisions": summary.decisions, "run": to_json(summary.data())}
    try:
        record.close(told, summary.conditions)
    except OSError as error:
        summary.record_failure = _told(error)


def _told(error: OSError) -> str:
    log.error("recording failed: %s", error)
    return str(error)


def _summary(inputs: LiveInputs, result: RunResult, conditions: Mapping[str, str]) -> RunSummary:
    anomalies = inputs.anomalies
    anomalies += [
        Anomaly("source_failed", name, None, 1, why) for name, why in result.source_faults.items()
    ]
    anomalies += [
        Anomaly("dropped", name, None, count, "gave way to newer ones: the driver did not run")
        for name, count in result.dropped.items()
    ]
    anomalies += [
        Anomaly(
            "device_out", name, None, FAILURES_MAX, f"it did not prove itself {TOO_OFTEN}: {why}"
        )
        for name, why in result.devices_out.items()
    ]
    return RunSummary(
        inputs.spec,
        result.figures,
        "measured",
        conditions,
        end_ns=result.end_ns,
        topics=inputs.topics(result.taken, result.dropped),
        anomalies=anomalies,
        decisions=result.decisions,
        payloads=result.payloads,
        hangs=result.hangs,
        interrupted=result.interrupted,
        not_recorded=result.not_recorded,
        wakeup_late_ns=result.wakeup_late_ns.summary(),
        record_failure=result.record_failure,
        resources=result.resources,
        damage=[] if result.damage is None else result.damage.lines,
    )
