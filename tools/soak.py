"""A long live run beside busy processes: what grows, what drifts, and whether everything adds up.

    python tools/soak.py [--seconds 180] [--hogs 1] [--json FILE]        as a vehicle would run
    python tools/soak.py --frames 100000 [--rate 200]                    so many frames, quickly
    python tools/soak.py --pipeline FILE --log LOG --loops N             a pipeline of one's own

Without a pipeline of one's own, a source gives small clouds to a stage and a second one reads what
that made, beside a timer stage of 100 Hz. Prints a verdict for each property, exit 1 if one is
broken:

* memory: a line through the second half's samples rises by no more than twice its standard error
  and what is known to be kept in that half: figures (8 bytes a value, up to `KEPT_MAX` of each
  kind), and the index of a record, about 1 KB a chunk of a second until it is closed;
* descriptors: as many at the end as after the first tenth;
* timer: release k is at offset + k periods exactly, and the count is what the time holds;
* outcomes: they sum to what was released, and nothing is open;
* threads: as many at the end as after the first tenth.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mcap.reader import make_reader

import avrt
from avrt import clock
from avrt.device.resources import ResourceMonitor
from avrt.drivers.conditions import read_conditions
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.metrics.distribution import KEPT_MAX
from avrt.model.commands import Record
from avrt.model.records import JobRecord
from avrt.payload import PointCloud
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.api import Report
    from avrt.device.samples import ResourceSample
    from avrt.model.records import AnyRecord

MIB = 1 << 20
VALUE_BYTES = 8
KINDS = 9  # distributions that take a value a job: response, execution, host, start, gaps, late
BEAT_MS = 10
SLACK_MIB_H = 1.0  # pages are what is counted: 4 KiB in three minutes are 0.08 MiB/h
BEHIND_S = 0.1  # a source that is later than this leaves the rest out
HOG = "x = 1.0\nwhile True: x = x * 1.000001 % 7"


class Clouds(avrt.Source):
    """Gives `count` small clouds at a rate, the times themselves being waited for."""

    def __init__(self, count: int = 100, rate: float = 20.0) -> None:
        self._left, self._period_s = count, 1 / rate
        self._closed = threading.Event()
        self._next_s: float | None = None

    def read(self) -> avrt.Reading | None:
        now_s = time.monotonic()
        planned_s = now_s if self._next_s is None else self._next_s + self._period_s
        self._next_s = max(planned_s, now_s - BEHIND_S)
        if self._left == 0 or self._closed.wait(max(0.0, self._next_s - now_s)):
            return None
        self._left -= 1
        return avrt.Reading(PointCloud(np.full((64, 3), self._left, np.float32), None, None))

    def close(self) -> None:
        self._closed.set()


def centre(cloud: avrt.Message[PointCloud]) -> list[float]:
    return [float(value) for value in cloud.payload.xyz.mean(axis=0)]


def judge(middle: avrt.Message[list[float]]) -> float:
    return math.hypot(*middle.payload)


def beat() -> int:
    return 1


def light(count: int, rate: float) -> avrt.Pipeline:
    """Return a pipeline of a source, two stages behind it, and a timer stage."""
    pipeline = avrt.Pipeline("soak", devices={"cpu": {"type": "cpu", "slots": 3}})
    keys = {"type": "lidar", "topic": "/lidar", "rate": f"{rate:g} Hz"}
    params = {"count": count, "rate": rate}
    pipeline.source("lidar", run=f"{__file__}:Clouds", params=params, **keys)
    pipeline.add(centre, inputs={"cloud": "lidar"}, wcet="1 ms", deadline="1 s")
    pipeline.add(judge, inputs={"middle": "centre"}, wcet="1 ms", deadline="1 s")
    pipeline.add(beat, period=f"{BEAT_MS} ms", wcet="1 ms", deadline=f"{BEAT_MS} ms")
    return pipeline


@dataclass(frozen=True, slots=True)
class Line:
    """A line by least squares: its slope, and the standard error of it."""

    slope: float
    error: float


def fitted(times: list[float], values: list[float]) -> Line:
    """Return the line through samples; flat where there are fewer than three."""
    if len(times) < 3:
        return Line(0.0, math.inf)
    x, y = np.asarray(times), np.asarray(values)
    x, y = x - x.mean(), y - y.mean()
    slope = float((x * y).sum() / (x * x).sum())
    left = float(((y - slope * x) ** 2).sum() / (len(x) - 2))
    return Line(slope, math.sqrt(left / float((x * x).sum())))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a property holds, and what was found."""

    name: str
    holds: bool
    told: str


def memory(samples: list[ResourceSample], released: list[int], index_bytes: int) -> Verdict:
    """Judge the second half of a run that released so many jobs of each stage.

    Args:
        samples: of the process, in order.
        released: jobs by stage.
        index_bytes: what the index of the whole record takes in memory.
    """
    half = [sample for sample in samples[len(samples) // 2 :] if sample.rss_bytes is not None]
    line = fitted(
        [sample.at_ns / NS_PER_S / 3600 for sample in half],
        [(sample.rss_bytes or 0) / MIB for sample in half],
    )
    hours = (half[-1].at_ns - half[0].at_ns) / NS_PER_S / 3600
    values = sum(min(count, KEPT_MAX) - min(count // 2, KEPT_MAX) for count in released)
    figures_mib_h = VALUE_BYTES * KINDS * values / MIB / hours
    index_mib_h = index_bytes / 2 / MIB / hours
    kept_mib_h = figures_mib_h + index_mib_h
    told = (
        f"{line.slope:+.2f} MiB/h (standard error {line.error:.2f}), "
        f"of figures {figures_mib_h:.2f}, of the record's index {index_mib_h:.2f}; "
        f"{(half[-1].rss_bytes or 0) / MIB:.1f} MiB at the end"
    )
    return Verdict("memory", line.slope <= kept_mib_h + SLACK_MIB_H + 2 * line.error, told)


def constant(name: str, samples: list[ResourceSample]) -> Verdict:
    """Judge a count that must not have grown since the run had begun."""
    values = [getattr(sample, name) for sample in samples]
    early = values[: max(1, len(values) // 10)]
    told = f"{early[-1]} at the beginning, {values[-1]} at the end, {max(values)} at most"
    return Verdict(name, values[-1] <= max(early), told)


def timer(report: Report, record: Path | None) -> Verdict:
    """Judge the releases of the timer stage: no error adds up."""
    period_ns, end_ns = BEAT_MS * 1_000_000, report.summary.end_ns
    count = report.summary.figures.stages["beat"].released
    expected = end_ns // period_ns + 1
    late = report.summary.wakeup_late_ns
    open_ms = (late["max"] or 0) / 1e6 + 2 * BEAT_MS  # releases cease before the last job ends
    told = f"{count} releases in {end_ns / NS_PER_S:.3f} s, which holds {expected}"
    wrong = 0
    if record is not None:
        jobs = (found for found in recorded(record) if isinstance(found, JobRecord))
        found = [(job.index, job.release_ns) for job in jobs if job.task == "beat"]
        wrong = sum(release_ns != index * period_ns for index, release_ns in found)
        told += f"; {wrong} of {len(found)} recorded ones not at k periods"
    p50, p99, most = ((late[key] or 0) / 1e6 for key in ("p50", "p99", "max"))
    told += f"; driver late p50 {p50:.2f}, p99 {p99:.2f}, at most {most:.2f} ms"
    return Verdict("timer", not wrong and 0 <= expected - count <= open_ms / BEAT_MS, told)


def index_bytes(record: Path | None) -> int:
    """Return what the writer of a record keeps of its chunks until it is closed."""
    if record is None:
        return 0
    with record.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    return sum(
        sys.getsizeof(value)
        for chunk in summary.chunk_indexes
        for value in (*vars(chunk).values(), *chain(*chunk.message_index_offsets.items()))
    )


def recorded(path: Path) -> Iterator[AnyRecord]:
    """Yield what the kernel recorded in a run, in order."""
    with RunFile(path) as run_file:
        for line in run_file.journal():
            for command in parse_entry(line.text).commands:
                if isinstance(command, Record):
                    yield command.record


def outcomes(report: Report) -> Verdict:
    jobs = dict(report.jobs)
    ended = sum(count for name, count in jobs.items() if name not in {"released", "open"})
    told = ", ".join(f"{count} {name}" for name, count in jobs.items())
    return Verdict("outcomes", ended == jobs["released"] and jobs["open"] == 0, told)


def run(options: argparse.Namespace, hogs: list[subprocess.Popen[bytes]]) -> dict[str, object]:
    """Do the run, and return its verdicts and conditions."""
    if options.pipeline is not None:
        pipeline = avrt.Pipeline.load(options.pipeline)
        keys = {"log": options.log, "loops": options.loops, "rate": options.rate or 1.0}
    else:
        rate = options.rate or (200.0 if options.frames else 20.0)
        count = options.frames or math.ceil(options.seconds * rate)
        pipeline, keys = light(count, rate), {}
    if options.seconds and not options.frames:
        keys["duration"] = f"{options.seconds:g} s"
    keys["record"] = options.record
    logging.disable(logging.WARNING)
    looks: dict[str, int] = {}

    def look(_: object) -> None:
        looks["last"] = clock.now_ns()
        looks.setdefault("first", looks["last"])

    with ResourceMonitor() as monitor:
        report = pipeline.run(force=True, look=look, **keys)
    taken = monitor.samples.all()
    within = [s for s in taken if looks["first"] <= s.since_ns and s.at_ns <= looks["last"]]
    samples = [sample for sample in within if sample.rss_bytes]
    jobs = report.summary.figures.jobs()["released"]
    stages = report.summary.figures.stages
    verdicts = [
        memory(samples, [stage.released for stage in stages.values()], index_bytes(options.record)),
        constant("descriptors", samples),
        constant("threads", samples),
        outcomes(report),
    ]
    if "beat" in stages:
        verdicts.append(timer(report, options.record))
    conditions = read_conditions(hogs=str(len(hogs)), jobs=str(jobs))
    return {
        "verdicts": [[one.name, one.holds, one.told] for one in verdicts],
        "samples": [[s.at_ns - samples[0].at_ns, s.rss_bytes, s.descriptors] for s in samples],
        "conditions": {**conditions, **report.data["conditions"]},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="(default: 180)")
    parser.add_argument("--frames", type=int, default=0, help="so many, whatever time it takes")
    parser.add_argument("--rate", type=float, help="frames a second; of a log, its rate")
    parser.add_argument("--hogs", type=int, default=0, help="busy processes beside the run")
    parser.add_argument("--record", type=Path, metavar="RUN", help="write the run record here")
    parser.add_argument("--pipeline", type=Path, metavar="FILE")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything here")
    options = parser.parse_args()
    hogs = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(options.hogs)]  # noqa: S603
    try:
        found = run(options, hogs)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    verdicts = found["verdicts"]
    assert isinstance(verdicts, list)
    for name, holds, told in verdicts:
        print(f"{'holds ' if holds else 'BROKEN'} {name}: {told}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if all(holds for _, holds, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
