"""The flight recorder of a run, and what its report tells of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.api.preparation import created
from avrt.drivers.flight import FlightLimits, FlightRecorder
from avrt.logs.record.recorded import FLIGHT
from avrt.logs.record.run_record import RunRecord
from avrt.report.summary import FlightSummary

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from avrt.api.arguments import KeepAround
    from avrt.api.pipeline import Pipeline
    from avrt.model.spec import PipelineSpec
    from avrt.report.summary import RunSummary


def flight_recorder(
    pipeline: Pipeline,
    kept: KeepAround,
    spec: PipelineSpec,
    zero_ns: int,
    conditions: Mapping[str, str],
) -> FlightRecorder:
    """Return a recorder of what is around incidents."""

    def create(path: Path, what: str) -> RunRecord:
        told = {**conditions, FLIGHT: what}
        return created(pipeline, path, spec, zero_ns, told, RunRecord)

    limits = FlightLimits()
    if kept.around_ns is not None:
        limits = replace(limits, before_ns=kept.around_ns, after_ns=kept.around_ns)
    return FlightRecorder(kept.folder, zero_ns, create, limits)


def summarise_flight(summary: RunSummary, flight: FlightRecorder) -> None:
    """Tell in a summary what a flight recorder wrote, after it was closed or before."""
    files = tuple(map(str, flight.paths))
    summary.flight = FlightSummary(files, flight.unwritten, flight.failure)
    summary.not_recorded = {**summary.not_recorded, **flight.left_out}
