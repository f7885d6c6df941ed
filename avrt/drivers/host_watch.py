"""The host beside a live run: what it granted, what it gave, and whether it starved the run.

Every thread of the run asks for its rights here when it begins. Samples are noted in the record;
for each of the first misses they tell whether the host gave too little while that job was open.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Self

from avrt.device.resources import ResourceMonitor
from avrt.device.topology import place, read_topology
from avrt.exec.realtime import (
    DISPATCHER_PRIORITY,
    FEED_PRIORITY,
    OTHER_PRIORITY,
    WORKER_PRIORITY,
    realtime_process,
    realtime_thread,
    thread_restored,
)
from avrt.exec.rights import as_conditions
from avrt.exec.room import declared_demand, host_room, tell_room
from avrt.exec.starvation import judge_starvation
from avrt.logs.record.run_record import RESOURCES
from avrt.metrics.resources import Level, ResourceLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from avrt.device.samples import ResourceSample
    from avrt.drivers.recorder import Recorder
    from avrt.drivers.wall import WallClock
    from avrt.exec.rights import Right
    from avrt.model.records import MissRecord
    from avrt.model.spec import PipelineSpec

MIB = 2**20
LEVELS = (
    "process_cores",
    "others_cores",
    "steal_cores",
    "rss_bytes",
    "available_bytes",
    "descriptors",
    "threads",
    "celsius",
)


class HostWatch:
    """Grants threads their rights and samples the host, while it is entered.

    Args:
        spec: the pipeline, whose streams are placed on cores.
        is_realtime: whether anything is asked of the host at all.

    Attributes:
        rights: what was asked for and got.
    """

    def __init__(self, spec: PipelineSpec, *, is_realtime: bool) -> None:
        self._spec = spec
        self._is_realtime = is_realtime
        threads = {
            task: spec.device(home).threads
            for stage in spec.stages
            for task, home in zip(stage.task_names, stage.homes, strict=True)
        }
        self._plan = place(read_topology(), threads)
        self.rights: list[Right] = []
        self._stack = ExitStack()
        self._sampling = ExitStack()
        self._monitor = ResourceMonitor(prepare=partial(self.other, "monitor"))
        self._noted_ns = 0

    def __enter__(self) -> Self:
        if self._is_realtime:
            self.rights.extend(self._stack.enter_context(realtime_process()))
            self._stack.enter_context(thread_restored())
            self.other("main")
        self._stack.enter_context(self._sampling)
        self._sampling.enter_context(self._monitor)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def finish(self) -> None:
        """Take the last sample; what is asked for afterwards is of the whole run."""
        self._sampling.close()

    # What threads call when they begin

    def driver(self) -> None:
        self._ask("driver", DISPATCHER_PRIORITY, self._plan.dispatcher)

    def stream(self, name: str) -> None:
        self._ask(name, WORKER_PRIORITY, self._plan.streams.get(name, frozenset()))

    def feed(self, name: str) -> None:
        self._ask(name, FEED_PRIORITY, self._plan.others)

    def other(self, name: str) -> None:
        self._ask(name, OTHER_PRIORITY, self._plan.others)

    def twin(self, name: str) -> None:
        self._ask(name, WORKER_PRIORITY, frozenset())

    def _ask(self, name: str, priority: int, cpus: Iterable[int]) -> None:
        if self._is_realtime:
            self.rights.extend(realtime_thread(name, priority=priority, cpus=cpus))

    # What the run wants to know

    def note(self, recorder: Recorder, wall: WallClock) -> None:
        """Put the samples taken since the last time into the record."""
        for sample in self._monitor.samples.since(self._noted_ns):
            recorder.note(RESOURCES, asdict(sample), max(0, wall.at_ns(sample.at_ns)))
            self._noted_ns = sample.at_ns

    def conditions(self) -> dict[str, str]:
        """Return what was granted, where threads run, and what the pipeline asks of the host."""
        told = {"cores_plan": self._plan.told, **as_conditions(self.rights)}
        if samples := self._monitor.samples.all():
            room = host_room(samples[0])
            told["room"] = tell_room(declared_demand(self._spec), room)
        return told

    def told(self) -> tuple[str, ...]:
        """Return how the host is now and what it granted, a line each."""
        lines = []
        if (sample := self._monitor.samples.last()) is not None:
            lines.append(_in_words(sample))
        refused = [right.name for right in self.rights if not right.granted]
        if self.rights:
            told = f"{len(self.rights) - len(refused)} of {len(self.rights)} rights granted"
            lines.append(f"{told}; refused: {', '.join(refused)}" if refused else told)
        return tuple(lines)

    def load(
        self,
        misses: Sequence[MissRecord],
        host_ns: Callable[[int], int],
        late: Iterable[tuple[int, int]],
    ) -> ResourceLoad:
        """Return what the run used, and what the host gave while its first misses came about.

        Args:
            misses: the first ones.
            host_ns: gives the host time of a pipeline time.
            late: when the driver was late and by how much, pipeline ns.
        """
        samples = self._monitor.samples.all()
        verdicts: Counter[str] = Counter()
        evidence = ""
        for miss in misses:
            lateness = [ns for at_ns, ns in late if miss.release_ns <= at_ns <= miss.at_ns]
            start_ns, end_ns = host_ns(miss.release_ns), host_ns(miss.at_ns)
            found = judge_starvation(samples, start_ns, end_ns, lateness)
            verdicts[found.verdict] += 1
            evidence = evidence or (found.told if found.starved else "")
        levels = {name: Level.of([getattr(s, name) for s in samples]) for name in LEVELS}
        return ResourceLoad(len(samples), levels, dict(verdicts), evidence)


def _in_words(sample: ResourceSample) -> str:
    told = [f"{sample.process_cores:.2f} cores"]
    if sample.others_cores is not None:
        told.append(f"others {sample.others_cores:.2f} of {sample.cores}")
    if sample.rss_bytes is not None:
        told.append(f"memory {sample.rss_bytes / MIB:.0f} MiB")
    if sample.celsius is not None:
        told.append(f"{sample.celsius:.0f} °C")
    told += [f"gpu {gpu.index} {gpu.busy_share:.0%}" for gpu in sample.gpus]
    return ", ".join(told)
