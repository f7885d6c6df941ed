"""A fault campaign before it runs: what is broken, row by row, and what must come of it.

Plain data, as `avrt.config.campaign` reads it. Times are pipeline ns; what is named (sources,
stages, copies, devices, levels) exists in the pipeline. A fault is decided before any run: whatever
is drawn for it follows from its `seed`, so every run of a row sees the same fault (pytorchALFI
stores its faults for the same reason).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.model.spec import PipelineSpec

Place = Literal["source", "bus", "stage", "device"]
Kind = Literal[
    "drop", "repeat", "duplicate", "swap", "delay", "stamp", "drift", "jitter", "counter", "twice",
    "second", "frame_id", "cross",
    "fill", "cover", "shrink", "points", "edge", "turn", "sector", "shuffle", "underflow", "ghosts",
    "nan", "flip", "raise", "voter", "memory", "no_memory", "never", "wrong", "slow",
    "weights", "ghost", "miss", "swerve", "lost", "flap",
]  # fmt: skip
Outcome = Literal[
    "masked", "recovered", "degraded", "safe_stop", "silent_corruption", "hang", "crash"
]
OUTCOMES: tuple[Outcome, ...] = (
    "masked", "recovered", "degraded", "safe_stop", "silent_corruption", "hang", "crash",
)  # fmt: skip
HARMFUL: tuple[Outcome, ...] = ("silent_corruption", "hang", "crash")
Detector = Literal[
    "fault", "miss", "vote", "resource", "level", "skip", "chain", "sync", "guard", "log"
]  # fmt: skip
DETECTORS: tuple[Detector, ...] = (
    "fault", "miss", "vote", "resource", "level", "skip", "chain", "sync", "guard", "log",
)  # fmt: skip
"""What tells of a fault: records of the kernel by what they are about, guards, and the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One fault: of certain messages or jobs, or for a time.

    Attributes:
        place, target: what is broken: a source, what travels from a source or a stage, a task
            (`plan`, or `plan.1` of copies), a stage with all its copies, or a device.
        at_ns, for_ns: from when and how long; without `for_ns` to the end.
        frame, count: in place of a time, the first message or job and how many, counted from 0.
        other: the source whose messages come in place of its own.
        by: how far a stamp moves or a message comes late, ns; what is added to a wrong value; a
            grey level, a count or a distance in metres.
        aside: of a place `by` metres ahead of the vehicle, how far to the left, metres.
        share: which part of the numbers becomes NaN, or of a reading is missing.
        factor: how many times as long a job takes.
        bit: of an element of the weights, counted from the lowest; None draws one of its sign and
            exponent.
        up_ns, down_ns: of a device that flaps `count` times: how long it is there, how long away.
        seed: of whatever is drawn for it.
    """

    place: Place
    target: str
    kind: Kind
    at_ns: int | None = None
    for_ns: int | None = None
    frame: int | None = None
    count: int = 1
    other: str = ""
    by: float = 0.0
    aside: float = 0.0
    share: float = 1.0
    factor: float = 1.0
    bit: int | None = None
    up_ns: int = 0
    down_ns: int = 0
    seed: int = 0

    def covers(self, index: int, at_ns: int) -> bool:
        """Whether it hits the message or job of this index and time."""
        if self.frame is not None:
            return self.frame <= index < self.frame + self.count
        assert self.at_ns is not None
        return self.at_ns <= at_ns and (self.for_ns is None or at_ns < self.at_ns + self.for_ns)

    @property
    def where(self) -> str:
        """The place as the user writes it."""
        return f"{self.place}.{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must come of a row; what is None is not asked for.

    Attributes:
        outcomes: the classes it may have.
        detected_by: what may tell of it first; empty for anything that does.
        detected_ns: within which time after the injection.
        silent: nothing may tell of it: it is no fault.
        levels: the levels entered, in order.
        gap_ns: longest time without an output of a critical stage that runs.
        incorrect, lost: most outputs of critical stages that are wrong, or missing.
        recover_ns: time from the injection until all outputs are good again.
    """

    outcomes: tuple[Outcome, ...] = ("masked", "recovered", "degraded", "safe_stop")
    detected_by: tuple[Detector, ...] = ()
    detected_ns: int | None = None
    silent: bool = False
    levels: tuple[str, ...] | None = None
    gap_ns: int | None = None
    incorrect: int | None = None
    lost: int | None = None
    recover_ns: int | None = None

    @property
    def is_detected(self) -> bool:
        """Whether something must tell of it."""
        return bool(self.detected_by) or self.detected_ns is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One experiment: its faults, alone in a run of their own.

    Attributes:
        id: of the list of faults, such as "B4".
        about: what it is, one line.
        gap: what is missing, of a row that is known not to come out as expected; "" of any other.
    """

    id: str
    about: str
    faults: tuple[Injection, ...]
    expect: Expected = Expected()
    gap: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSpec:
    """What feeds the sources: a log, or a scene of the built-in world.

    Attributes:
        log: its path; "" where a scene is given.
        scene, seed: of the built-in world.
        seconds: of the drive; a log is read to its end.
    """

    log: str = ""
    scene: str = ""
    seed: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSpec:
    """Everything that a campaign needs to know before its first run."""

    name: str
    pipeline: PipelineSpec
    drive: DriveSpec
    seed: int = 0
    rows: Mapping[str, Row] = field(default_factory=dict)
