"""What only traces of runs in real time have: when devices worked, and what the host gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.report.host import HostSample
    from avrt.report.trace.courses import Course
    from avrt.report.trace.file import TraceFile, Unit

CORES = {"process_cores": "process", "others_cores": "others", "steal_cores": "stolen"}


def work_of(course: Course) -> tuple[int, int] | None:
    """Return when a device began and ended a job's last piece; None unless that lies in it."""
    record, pieces = course.record, course.pieces
    if record is None or not pieces or record.device_start_ns is None or record.device_ns is None:
        return None
    began_ns, done_ns = record.device_start_ns, record.device_ns
    piece = pieces[-1]
    assert piece.end_ns is not None
    nests = piece.start_ns <= began_ns < done_ns <= piece.end_ns
    return (began_ns, done_ns) if nests else None


def draw_host(file: TraceFile, samples: Sequence[HostSample]) -> None:
    """Add the samples of the host as counters, each where it begins to hold."""
    if not samples:
        return
    group = file.add_track("host")
    for name, told in CORES.items():
        values = [(sample.since_ns, getattr(sample, name)) for sample in samples]
        _draw(file, f"{told} cores", group, "count", values)
    memory = [(sample.at_ns, sample.rss_bytes) for sample in samples]
    _draw(file, "process memory", group, "bytes", memory)


def _draw(
    file: TraceFile, name: str, group: int, unit: Unit, values: Sequence[tuple[int, float | None]]
) -> None:
    """Add one counter, where any value of it is known."""
    known = [(at_ns, value) for at_ns, value in values if value is not None]
    if known:
        track = file.add_track(name, group, unit)
        for at_ns, value in known:
            file.add_count(track, at_ns, value)
