"""Was a job late because of itself, or because the host gave this process too little?

Pure functions over resource samples. The rules, each over the part of the interval that samples
cover, shares being of the cores this process may use:

| evidence | limit |
|---|---|
| the quota stopped the process | 1 % of the time |
| the hypervisor took cores | 5 % of them |
| somebody waited for memory | 10 % of the time |
| others kept our cores busy | 50 % of them, less than one idle; or 10 %, less than 5 % idle |

| any evidence | driver late by more than 10 ms | verdict |
|---|---|---|
| yes | either | starved |
| no | yes | held: this process itself kept the driver waiting, or the host did for an instant |
| no | no | fed: the job itself took so long |

Without samples over half of the interval the verdict is unknown. The driver's lateness alone shows
no starvation: beside a stage that holds the interpreter it is late on an idle host too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from avrt.units import NS_PER_MS, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from avrt.device.samples import ResourceSample

THROTTLED_MAX = 0.01
STEAL_MAX = 0.05
MEMORY_STALL_MAX = 0.10
OTHERS_MAX = 0.50
IDLE_CORES_MIN = 1.0  # a thread that may run finds a core at once
OTHERS_WHEN_FULL_MAX = 0.10
IDLE_MIN = 0.05
LATE_NS_MAX = 10 * NS_PER_MS
COVERED_MIN = 0.5

StarvationVerdict = Literal["starved", "held", "fed", "unknown"]


@dataclass(frozen=True, slots=True)
class Starvation:
    """Whether the host starved this process in an interval, and by what it is shown."""

    verdict: StarvationVerdict
    evidence: tuple[str, ...]
    told: str

    @property
    def starved(self) -> bool:
        return self.verdict == "starved"


@dataclass(frozen=True, slots=True)
class Shares:
    """Means over an interval: of our cores, and of the time where something stopped or waited."""

    cores: int
    process: float
    others: float
    steal: float
    throttled: float
    memory_stall: float


def judge_starvation(
    samples: Iterable[ResourceSample],
    start_ns: int,
    end_ns: int,
    lateness_ns: Iterable[int] = (),
) -> Starvation:
    """Return whether the host starved this process from `start_ns` to `end_ns` of host time.

    Args:
        samples: of the interval; others are left out.
        start_ns: first ns of the interval, on the samples' clock.
        end_ns: the ns after its last.
        lateness_ns: how late the driver was at the planned instants within.
    """
    weighed = [(sample, _overlap_ns(sample, start_ns, end_ns)) for sample in samples]
    weighed = [(sample, share_ns) for sample, share_ns in weighed if share_ns > 0]
    covered_ns = sum(share_ns for _, share_ns in weighed)
    if covered_ns < COVERED_MIN * (end_ns - start_ns) or not weighed:
        return Starvation("unknown", (), "too little of that time was sampled")
    found = evidence(mean_shares(weighed))
    late_ns = max(lateness_ns, default=0)
    if found:
        return Starvation("starved", found, "the host was starved: " + ", ".join(found))
    if late_ns > LATE_NS_MAX:
        told = f"the driver was {format_ns(late_ns)} late while the host had room: this process "
        return Starvation("held", (), told + "held it up, or the host for an instant")
    return Starvation("fed", (), "the host gave what was asked for")


def mean_shares(weighed: Sequence[tuple[ResourceSample, int]]) -> Shares:
    """Return the means of samples, each with the ns that it counts for."""
    total_ns = sum(share_ns for _, share_ns in weighed)

    def mean(name: str, *, of_cores: bool) -> float:
        total = 0.0
        for sample, share_ns in weighed:
            value = getattr(sample, name) or 0
            whole = sample.cores if of_cores else sample.at_ns - sample.since_ns
            total += share_ns * value / max(1, whole)
        return total / total_ns

    return Shares(
        cores=min(sample.cores for sample, _ in weighed),
        process=mean("process_cores", of_cores=True),
        others=mean("others_cores", of_cores=True),
        steal=mean("steal_cores", of_cores=True),
        throttled=min(1.0, mean("throttled_ns", of_cores=False)),  # each core's stop is counted
        memory_stall=mean("memory_stall_ns", of_cores=False),
    )


def evidence(shares: Shares) -> tuple[str, ...]:
    """Return in words what shows that the host gave too little; empty when nothing does."""
    idle = max(0.0, 1 - shares.process - shares.others - shares.steal)
    found: list[str] = []
    if shares.throttled > THROTTLED_MAX:
        found.append(f"the quota stopped the process for {shares.throttled:.0%} of the time")
    if shares.steal > STEAL_MAX:
        found.append(f"the hypervisor took {shares.steal:.0%} of the cores")
    if shares.memory_stall > MEMORY_STALL_MAX:
        found.append(f"memory was waited for {shares.memory_stall:.0%} of the time")
    many = shares.others > OTHERS_MAX and idle * shares.cores < IDLE_CORES_MIN
    if many or (shares.others > OTHERS_WHEN_FULL_MAX and idle < IDLE_MIN):
        found.append(f"others kept {shares.others:.0%} of the cores busy, {idle:.0%} were idle")
    return tuple(found)


def _overlap_ns(sample: ResourceSample, start_ns: int, end_ns: int) -> int:
    return min(sample.at_ns, end_ns) - max(sample.since_ns, start_ns)
