"""A pipeline before it runs: devices, sources, stages, chains, as the user declared them.

Every relation between them (known names, cycles, periods) is checked by `avrt.model.graph`, which
the YAML reader and the Python API share. Times are ns; relative deadlines are `deadline_ns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from avrt.model.frames import TransformSpec  # noqa: TC001 - the codec reads the fields' types
from avrt.model.guard import GuardSpec  # noqa: TC001 - likewise
from avrt.model.ladder import LadderSpec, VariantSpec  # noqa: TC001 - likewise
from avrt.model.supply import Supply  # noqa: TC001 - likewise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Policy = Literal["edf", "rm", "dm", "fp", "llf", "fifo", "table"]
POLICIES: tuple[Policy, ...] = ("edf", "rm", "dm", "fp", "llf", "fifo", "table")
SourceType = Literal["camera", "lidar", "radar", "imu", "gnss", "can"]
OnMiss = Literal["continue", "abort", "skip_next"]
OnOverrun = Literal["report", "abort"]
DeadlineFrom = Literal["release", "capture"]
PublishAt = Literal["asap", "at_deadline"]
Wait = Literal["suspend", "spin"]
VoteBy = Literal["kind", "exact", "tolerance", "number", "angle", "choice"]
Safe = Literal["", "least", "greatest"]
Guarantee = Literal["hard", "firm", "soft", "best_effort"]


def majority_of(copies: int) -> int:
    """Return how many are more than half."""
    return copies // 2 + 1


class Criticality(IntEnum):
    """Automotive safety integrity levels (ISO 26262); higher is more critical."""

    QM = 0
    ASIL_A = 1
    ASIL_B = 2
    ASIL_C = 3
    ASIL_D = 4

    @property
    def label(self) -> str:
        return self.name.replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """Something that runs jobs: `slots` of them may be in flight on it at once.

    With a `supply` it is there for part of the time only, and has one slot.
    """

    name: str
    type: str = "cpu"
    slots: int = 1
    preemptive: bool = False
    fallback: str | None = None
    threads: int = 1
    supply: Supply | None = None

    @property
    def slots_told(self) -> str:
        """How many slots it has, in words."""
        return "1 slot" if self.slots == 1 else f"{self.slots} slots"

    @property
    def capacity(self) -> Fraction:
        """How many jobs it executes at once, in the long run."""
        return Fraction(self.slots) if self.supply is None else self.supply.share


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """Where sensor data enters.

    Attributes:
        topic: topic of the log or bus; None for a source fed by the program.
        info_topic: topic of the CameraInfo that belongs to a camera.
        period_ns: declared period; None when the user does not know it.
        clock_offset_ns: added to the sensor's stamps; None means estimate it and tell.
        latency_ns: from a capture to its message's arrival at least; what comes on top of it is the
            jitter of the stages that it releases.
        run: the class of a live source that reads the sensor; "" for one that a log or a bus feeds.
        guard: what is asked of each of its messages; None where nothing is.
    """

    name: str
    type: SourceType
    topic: str | None = None
    info_topic: str | None = None
    period_ns: int | None = None
    frame: str = ""
    clock_offset_ns: int | None = None
    latency_ns: int = 0
    run: str = ""
    params: Mapping[str, object] = field(default_factory=dict, hash=False)
    guard: GuardSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraSpec:
    """The model of a rectified camera whose log has none.

    Attributes:
        frame: its optical frame.
        width_px, height_px: size of its images.
        projection: 12 numbers, rows of the 3 x 4 matrix from that frame to pixels.
    """

    frame: str
    width_px: int
    height_px: int
    projection: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """One input of a stage: `source` is the source or stage it reads."""

    name: str
    source: str
    optional: bool = False
    max_age_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSpec:
    """All inputs together release the job when their capture times lie within `tolerance_ns`."""

    tolerance_ns: int
    timeout_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancySpec:
    """The stage runs `copies` times per activation and one decision is made over the outputs.

    Attributes:
        vote: how outputs are compared: "kind" by what they are, "exact" to the bit, "tolerance"
            number by number; "number" and "angle" are one number each, the latter in radians;
            "choice" is one of several texts.
        tolerance: share of the largest magnitude in an array by which outputs may differ; None
            where the voter's own holds.
        within: by how much a number or an angle may differ, in its unit.
        safe: which of different numbers is the conservative one.
        order: what may be chosen, the most conservative first; anything where it is empty.
        decide_ns: how long before the deadline the decision is made over what is there by then.
        runs: what each copy runs, where they are not all the stage's `run`.
        devices: where each copy belongs, where that is not the stage's `device` for all.
        one_domain: all copies may run the same code, so that one fault may hit all.
        single: a single output that passes the acceptance test is good enough.
        spare: how many of the copies run only when the others cannot decide (time redundancy).
    """

    copies: int
    vote: VoteBy = "kind"
    tolerance: float | None = None
    within: float = 0.0
    safe: Safe = ""
    order: tuple[str, ...] = ()
    decide_ns: int = 0
    runs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    one_domain: bool = False
    single: bool = False
    spare: int = 0

    @property
    def quorum(self) -> int:
        """How many outputs must agree."""
        return majority_of(self.copies)

    def of(self, copies: int) -> RedundancySpec | None:
        """Return the redundancy of fewer copies, None of a single one."""
        if copies == 1:
            return None
        spare = max(0, copies - (self.copies - self.spare))
        runs, devices = self.runs[:copies], self.devices[:copies]
        return replace(self, copies=copies, runs=runs, devices=devices, spare=spare)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSpec:
    """One part of every job of a stage, on a device of its own.

    Attributes:
        wait: what the job does with the slot of the part before until this one has ended:
            "suspend" frees it, "spin" keeps it.
    """

    device: str
    wcet_ns: int
    wait: Wait = "suspend"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """One stage and its timing contract.

    Released by its timer (`period_ns`), by its `trigger` input, or by a synchronised set (`sync`);
    exactly one of them is given. `budget_ns` None means the wcet. `misses_max` of `window_jobs` is
    the weakly-hard (m,k) promise. `guarantee` has chosen defaults already; of a "hard" stage every
    job that is not met is an error of the run. With `segments`, `device` is the first one's and
    `wcet_ns` at most their sum. `profile_ns` are execution times measured elsewhere, ascending.
    Of the messages of its trigger it takes each `every`-th, the first among them. `scrub_ns` is
    within which time a change of its weights is told; None where they are not checked.
    """

    name: str
    device: str
    wcet_ns: int
    deadline_ns: int
    run: str = ""
    inputs: tuple[InputSpec, ...] = ()
    trigger: str | None = None
    sync: SyncSpec | None = None
    period_ns: int | None = None
    offset_ns: int = 0
    bcet_ns: int | None = None
    jitter_ns: int = 0
    deadline_from: DeadlineFrom = "release"
    priority: int | None = None
    criticality: Criticality = Criticality.QM
    guarantee: Guarantee | None = None
    on_miss: OnMiss = "continue"
    queue: int = 4
    budget_ns: int | None = None
    on_overrun: OnOverrun = "report"
    misses_max: int | None = None
    window_jobs: int | None = None
    publish: PublishAt = "asap"
    redundancy: RedundancySpec | None = None
    segments: tuple[SegmentSpec, ...] = ()
    profile_ns: tuple[int, ...] = ()
    every: int = 1
    variants: tuple[VariantSpec, ...] = ()
    scrub_ns: int | None = None
    params: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def task_names(self) -> tuple[str, ...]:
        """What the kernel schedules: the stage itself, or one task a replica."""
        if self.redundancy is None:
            return (self.name,)
        return tuple(f"{self.name}.{copy}" for copy in range(self.redundancy.copies))

    @property
    def homes(self) -> tuple[str, ...]:
        """The device to which each task belongs, in the order of `task_names`."""
        if self.redundancy is not None and self.redundancy.devices:
            return self.redundancy.devices
        return (self.device,) * len(self.task_names)

    def home(self, task: str) -> str:
        """Return the device to which a task belongs."""
        return self.homes[self.task_names.index(task)]

    def on(self, device: str) -> StageSpec:
        """Return the stage with all its copies on one device."""
        redundancy = self.redundancy and replace(self.redundancy, devices=())
        return replace(self, device=device, redundancy=redundancy)

    def copy(self, number: int) -> StageSpec:
        """Return the stage as one of its copies runs it, and where."""
        if self.redundancy is None:
            return self
        run = self.redundancy.runs[number] if self.redundancy.runs else self.run
        return replace(self, run=run, device=self.homes[number])

    def variant(self, name: str) -> VariantSpec | None:
        """Return a variant of the stage, None where it has none of that name."""
        return next((variant for variant in self.variants if variant.name == name), None)

    @property
    def is_cut(self) -> bool:
        """Whether a job that wants its wcet is aborted by its budget before."""
        budget_ns = self.wcet_ns if self.budget_ns is None else self.budget_ns
        return self.on_overrun == "abort" and budget_ns < self.wcet_ns

    @property
    def trigger_input(self) -> InputSpec | None:
        return next((i for i in self.inputs if i.name == self.trigger), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSpec:
    """An end-to-end promise along `path`, from a source (or timer stage) to a stage."""

    name: str
    path: tuple[str, ...]
    reaction_ns: int | None = None
    age_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """When jobs of one task start, ns from the beginning of each cycle, ascending."""

    task: str
    starts_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A time-triggered table: it begins at pipeline time 0 and repeats every cycle."""

    cycle_ns: int
    rows: tuple[TableRow, ...]

    def starts_ns(self, task: str) -> tuple[int, ...]:
        """Return the starts of a task within the cycle."""
        return next(row.starts_ns for row in self.rows if row.task == task)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """Everything the kernel and the drivers need to know before time starts.

    Attributes:
        table: what policy "table" executes; None until it is computed, and under other policies.
        transforms: where the sensors are mounted.
        cameras: models of cameras, by frame.
        tf_topics: topics of the log that hold more transforms.
        checksums: whether each reader of a message checks that it is what was published.
    """

    name: str
    policy: Policy = "edf"
    devices: tuple[DeviceSpec, ...]
    sources: tuple[SourceSpec, ...] = ()
    stages: tuple[StageSpec, ...]
    chains: tuple[ChainSpec, ...] = ()
    transforms: tuple[TransformSpec, ...] = ()
    cameras: tuple[CameraSpec, ...] = ()
    tf_topics: tuple[str, ...] = ()
    table: TableSpec | None = None
    ladder: LadderSpec | None = None
    checksums: bool = False

    def stage(self, name: str) -> StageSpec:
        return next(stage for stage in self.stages if stage.name == name)

    def source(self, name: str) -> SourceSpec:
        return next(source for source in self.sources if source.name == name)

    def device(self, name: str) -> DeviceSpec:
        return next(device for device in self.devices if device.name == name)

    def places(self, device: DeviceSpec) -> tuple[DeviceSpec, ...]:
        """Return where the streams of a device may run, in order; fallbacks may form a ring."""
        places = [device]
        while (fallback := places[-1].fallback) is not None:
            place = self.device(fallback)
            if place in places:
                break
            places.append(place)
        return tuple(places)


def placed_supplies(devices: Iterable[DeviceSpec]) -> dict[str, Supply]:
    """Return the supplies by device of which it is known when they are given."""
    found = {device.name: device.supply for device in devices}
    return {name: s for name, s in found.items() if s is not None and s.is_placed}
