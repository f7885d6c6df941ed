"""Three faults in a live run, and how it goes on: a device error, a hang, an overload.

    python tools/live_faults.py [--record RUN]; avrt report RUN -o PAGE

A LiDAR of 20 Hz is read by a stage that at 4 s raises an error of its device, at 20 s does not come
back, and from 30 s on takes 75 ms for each of 20 messages a second: 150 % of what there is. Behind
it is a planner, and a ladder with a light variant on another device. Prints when each fault came,
when it was told, when the next output came, and at which level; exit 1 where one is not recovered.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import soak
from soak import recorded

import avrt
from avrt.errors import HardwareFault
from avrt.model.records import FaultRecord, JobRecord, MissRecord, ModeRecord, ResourceRecord
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.payload import PointCloud

RATE = 20
ERROR_S, HANG_S, OVERLOAD_S, OVERLOAD_END_S = 4.0, 20.0, 30.0, 33.0
DURATION_S = 48
FAULTS = (("device error", ERROR_S), ("hang", HANG_S), ("overload of 150 % for 3 s", OVERLOAD_S))


class Detector(avrt.Stage):
    """Counts clouds, and goes wrong when it is told to; the count is its state."""

    def __init__(self, faulty: bool = True) -> None:  # noqa: FBT001, FBT002 - a key of the file
        self.faulty = faulty
        self.count = 0
        self.raised = self.hung = False

    def process(self, cloud: avrt.Message[PointCloud]) -> int:
        at_s = cloud.stamp.capture_ns / NS_PER_S
        if self.faulty:
            self._go_wrong(at_s)
        self.count += 1
        return self.count

    def _go_wrong(self, at_s: float) -> None:
        if 0 <= at_s - ERROR_S < 1 / RATE:
            raise HardwareFault("device", "the device fell off its bus")
        if 0 <= at_s - HANG_S < 1 / RATE:
            threading.Event().wait()  # for what never comes
        busy_s = 0.075 if OVERLOAD_S <= at_s < OVERLOAD_END_S else 0.01
        time.sleep(busy_s)  # a device would be at work for so long

    def freeze(self) -> object:
        return self.count

    def thaw(self, state: object) -> None:
        assert isinstance(state, int)
        self.count = state


def plan(seen: avrt.Message[int] | None) -> bool:
    return seen is not None


def pipeline() -> avrt.Pipeline:
    """Return the pipeline that goes wrong."""
    made = avrt.Pipeline(
        "live_faults",
        devices={"fast": {"type": "cpu"}, "slow": {"type": "cpu"}, "planner": {"type": "cpu"}},
        ladder={
            "devices": ["fast"],
            "critical": ["see", "plan"],
            "max_age": "2 s",
            "levels": {
                "full": {"devices": 1},
                "light": {"stages": {"see": {"variant": "light"}}},
                "stop": {"without": ["see"]},
            },
        },
    )
    params = {"count": RATE * DURATION_S, "rate": RATE}
    made.source("lidar", type="lidar", topic="/lidar", rate=f"{RATE} Hz",
                run=f"{soak.__file__}:Clouds", params=params)  # fmt: skip
    light = {"device": "slow", "params": {"faulty": False}, "wcet": "5 ms"}
    keys = {"inputs": {"cloud": "lidar"}, "wcet": "20 ms", "deadline": "45 ms"}
    made.add(Detector, name="see", device="fast", criticality="ASIL-B", variants={"light": light},
             **keys)  # fmt: skip
    given = {"seen": {"from": "see", "optional": True, "max_age": "1 s"}}
    made.add(plan, inputs=given, device="planner", period="50 ms", wcet="5 ms", deadline="50 ms",
             criticality="ASIL-D")  # fmt: skip
    return made


def story(path: Path) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield for each fault when it was told, and when the next output came after it.

    Then the largest gap between outputs of the stage until the next fault, s.
    """
    found = list(recorded(path))
    outputs = [
        record.end_ns / NS_PER_S
        for record in found
        if isinstance(record, JobRecord) and record.stage == "see" and record.outcome == "met"
    ]
    signs = [r.at_ns / NS_PER_S for r in found if isinstance(r, FaultRecord | MissRecord)]
    ends = [*(at_s for _, at_s in FAULTS[1:]), DURATION_S]
    for (name, at_s), end_s in zip(FAULTS, ends, strict=True):
        told_s = min((s for s in signs if s >= at_s), default=float("nan"))
        back_s = min((s for s in outputs if s > told_s), default=float("nan"))
        within = [s for s in outputs if at_s - 1 < s < end_s]
        gap_s = max((b - a for a, b in pairwise(within)), default=0.0)
        yield name, at_s, told_s, back_s, gap_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, default=Path("live_faults.mcap"), metavar="RUN")
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    report = pipeline().run(
        duration=f"{DURATION_S} s", record=options.record, hang_timeout="500 ms"
    )
    good = True
    for name, at_s, told_s, back_s, gap_s in story(options.record):
        good = good and gap_s < 2
        told_ms, back_ms, gap_ms = (1e3 * s for s in (told_s - at_s, back_s - at_s, gap_s))
        print(
            f"{name} at {at_s:.1f} s: told after {told_ms:.0f} ms, next output {back_ms:.0f} ms "
            f"after it, largest gap {gap_ms:.0f} ms"
        )
    for record in recorded(options.record):
        match record:
            case ModeRecord():
                print(f"{record.at_ns / NS_PER_S:.3f} s: level {record.mode}, {record.cause}")
            case ResourceRecord():
                print(f"{record.at_ns / NS_PER_S:.3f} s: {record.name} {record.state}")
            case _:
                pass
    levels = report.summary.levels
    assert levels is not None
    print(f"jobs: {report.jobs}; available {levels.available:.2%}, back {len(levels.repairs_ns)}x")
    return 0 if good and not levels.is_open and levels.available == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
