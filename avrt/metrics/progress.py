"""What somebody who watches a run wants to see of it: cheap to make, several times a second."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.metrics.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.metrics.run import RunFigures
    from avrt.model.guard import SensorState

RECENT = 100


@dataclass(frozen=True, slots=True)
class StageProgress:
    """One stage so far.

    Attributes:
        jobs: how many were released, and how many had each outcome; see `StageFigures.jobs`.
        reported_late: of the late ones, those that the device had done in time.
        recent_ns: p50, p95, p99, max and count of the last RECENT responses.
    """

    jobs: Mapping[str, int]
    reported_late: int
    recent_ns: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Progress:
    """A run so far; the caller adds what only the driver knows.

    Attributes:
        driver_late_ns: of the driver at planned instants, the last RECENT ones.
        dropped: by source, messages that gave way to newer ones.
        lost: devices and streams that are lost now.
        host: what the host gave lately, and what it granted, a line each.
        sensors: those that are not ok, and what they are.
        sets: by stage, what its incomplete sets lack, in words.
    """

    at_ns: int
    stages: Mapping[str, StageProgress]
    driver_late_ns: Mapping[str, int | None]
    lost: tuple[str, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    host: tuple[str, ...] = ()
    sensors: Mapping[str, SensorState] = field(default_factory=dict)
    sets: Mapping[str, str] = field(default_factory=dict)


def progress_of(figures: RunFigures, at_ns: int, driver_late_ns: Distribution) -> Progress:
    """Return how a run stands at a pipeline time."""
    stages = {
        name: StageProgress(stage.jobs(), stage.reported_late, recent(stage.response))
        for name, stage in figures.stages.items()
    }
    lost: dict[str, None] = {}
    for record in figures.resources:
        if record.state == "lost":
            lost[record.name] = None
        else:
            lost.pop(record.name, None)
    faults = dict(figures.faults)
    sensors = {name: s.state for name, s in figures.sensors.items() if s.state != "ok"}
    late = recent(driver_late_ns)
    sets = {name: found.told for name, found in figures.sets.items() if found.incomplete}
    return Progress(at_ns, stages, late, tuple(lost), faults, sensors=sensors, sets=sets)


def recent(figure: Distribution) -> dict[str, int | None]:
    """Return the summary of the newest values."""
    newest = Distribution()
    for value in figure.newest(RECENT):
        newest.add(value)
    return newest.summary()
