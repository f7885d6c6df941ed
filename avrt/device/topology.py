"""Which cores this process may use, and which of them the dispatcher and each stream get.

Linux says it in `/sys` and `/proc`; both are read below a root that tests replace. What is not
told there is taken as absent: every core is then a physical one of node 0, and there is no quota.

Placing is pure. Its rules:

* A physical core counts once, whatever hyper-threads it has: two busy threads on one share it.
* No more cores than the quota of the control group lasts for are given out.
* With two physical cores or fewer nothing is pinned: two streams pinned to two quiet cores took
  as long as unpinned ones (1.94 to 1.99 times one core's work, unpinned 1.90 to 2.01), and on a
  busy core a pinned thread cannot get away.
* With more the dispatcher has one of its own, an isolated one where there is one, else the last:
  the first takes most interrupts.
* Streams get cores of their own where one is left for everything else, isolated ones first, all of
  a stream in one node; otherwise all streams share what the dispatcher leaves.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CORES_PINNED_MIN = 3
CPU_SETS = ("cpuset.cpus.effective", "cpuset.effective_cpus")  # control groups 2 and 1


@dataclass(frozen=True, slots=True)
class Core:
    """A physical core: its hyper-threads that this process may use, and where it is."""

    cpus: tuple[int, ...]
    node: int = 0
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class Topology:
    """What this process may run on.

    Attributes:
        cores: physical cores by their first hyper-thread.
        quota_cores: how many cores' time the control group gives; None without a limit.
        siblings: whether any core here has two hyper-threads or more, allowed or not.
    """

    cores: tuple[Core, ...]
    quota_cores: float | None = None
    siblings: bool = False

    @property
    def cpus(self) -> tuple[int, ...]:
        """All hyper-threads that this process may use."""
        return tuple(sorted(cpu for core in self.cores for cpu in core.cpus))

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({core.node for core in self.cores}))

    @property
    def usable_cores(self) -> float:
        """How many physical cores can be busy at once in the long run."""
        most = float(len(self.cores))
        return most if self.quota_cores is None else min(most, self.quota_cores)


@dataclass(frozen=True, slots=True)
class CorePlan:
    """Where threads run; an empty set leaves a thread where the system puts it.

    Attributes:
        dispatcher: hyper-threads of the dispatcher.
        streams: of each stream.
        others: of every other thread of this process.
        told: the plan and its reason in words.
    """

    dispatcher: frozenset[int] = frozenset()
    streams: Mapping[str, frozenset[int]] = field(default_factory=dict)
    others: frozenset[int] = frozenset()
    told: str = ""


# Placing


def place(topology: Topology, streams: Mapping[str, int]) -> CorePlan:
    """Return where the dispatcher and each stream run.

    Args:
        topology: what there is.
        streams: name of each stream, to how many threads one operation of it uses.
    """
    count = len(topology.cores)
    usable = min(count, floor(topology.usable_cores))
    if usable < CORES_PINNED_MIN:
        return _unpinned(streams, _why_unpinned(topology, count))
    cores = sorted(topology.cores, key=lambda core: (core.isolated, core.cpus[0]), reverse=True)
    first, rest = cores[0], cores[1:]
    own = _own_cores(rest, streams, spare=1 + count - usable)
    dispatcher = frozenset(first.cpus[:1])
    told = f"the dispatcher alone on core {first.cpus[0]}"
    told += ", isolated" if first.isolated else ""
    if own is None:
        shared = _cpus(rest)
        why = f"{_count(streams)} and the rest share the other {len(rest)} physical cores"
        return CorePlan(dispatcher, dict.fromkeys(streams, shared), shared, f"{told}; {why}")
    taken = frozenset().union(*own.values()) if own else frozenset()
    others = frozenset(cpu for core in rest for cpu in core.cpus if core.cpus[0] not in taken)
    return CorePlan(dispatcher, own, others, f"{told}; {_count(streams)} on cores of their own")


def _why_unpinned(topology: Topology, count: int) -> str:
    if count < CORES_PINNED_MIN:
        cores = "1 physical core" if count == 1 else f"{count} physical cores"
        return f"{cores}, and with fewer than {CORES_PINNED_MIN} pinning gains nothing"
    quota = topology.quota_cores or 0.0
    return f"the quota is {quota:.3g} cores of {count}, and below 3 pinning gains nothing"


def _unpinned(streams: Mapping[str, int], why: str) -> CorePlan:
    return CorePlan(streams=dict.fromkeys(streams, frozenset()), told=f"nothing is pinned: {why}")


def _own_cores(
    cores: Sequence[Core], streams: Mapping[str, int], spare: int
) -> dict[str, frozenset[int]] | None:
    """Return cores for each stream, or None where `spare` of them would not be left."""
    if sum(streams.values()) > len(cores) - spare:
        return None
    # what is left at the end of a node is left to the rest: a stream is in one node
    free = list(cores)
    plan: dict[str, frozenset[int]] = {}
    for name, threads in sorted(streams.items(), key=lambda item: -item[1]):
        nodes = [core.node for core in free]
        node = next((n for n in nodes if nodes.count(n) >= threads), None)
        if node is None:
            return None
        mine = [core for core in free if core.node == node][:threads]
        plan[name] = frozenset(core.cpus[0] for core in mine)
        free = [core for core in free if core not in mine]
    return {name: plan[name] for name in streams}


def _cpus(cores: Sequence[Core]) -> frozenset[int]:
    return frozenset(cpu for core in cores for cpu in core.cpus)


def _count(streams: Mapping[str, int]) -> str:
    return "1 stream" if len(streams) == 1 else f"{len(streams)} streams"


# Reading


def read_topology(root: Path = Path("/"), allowed: frozenset[int] | None = None) -> Topology:
    """Return what this process may run on.

    Args:
        root: where `/sys` and `/proc` are.
        allowed: hyper-threads that this process may use; those of the calling thread when not
            given. Isolated ones of its cpuset are added: no thread is there unless it asks.
    """
    isolated = parse_cpus(_text(root / "sys/devices/system/cpu/isolated"))
    cpus = _allowed() if allowed is None else allowed
    cpus |= isolated & _cpu_set(root)
    groups = {cpu: _siblings(root, cpu) for cpu in cpus}
    cores = {
        min(group): Core(
            cpus=tuple(sorted(group & cpus)), node=_node(root, cpu), isolated=cpu in isolated
        )
        for cpu, group in groups.items()
    }
    return Topology(
        cores=tuple(core for _, core in sorted(cores.items())),
        quota_cores=read_quota(root),
        siblings=any(len(group) > 1 for group in groups.values()),
    )


def read_quota(root: Path = Path("/")) -> float | None:
    """Return how many cores' time the control groups of this process give; None without a limit."""
    found: list[float] = []
    for folder in control_groups(root, "cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota = _text(folder / "cpu.cfs_quota_us")
            period = _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            found.append(int(quota) / int(period))
    return min(found, default=None)


def control_groups(root: Path, controller: str) -> list[Path]:
    """Return the folders of this process's control group and those above it, nearest first.

    Within a container its own group often is the root of what it sees: that one is last.
    """
    folders: list[Path] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        base = root / "sys/fs/cgroup"
        if names and controller not in names.split(","):
            continue
        tops = [base / names, base / controller] if names else [base, base / "unified"]
        for top in dict.fromkeys(tops):
            inner = top / path.lstrip("/")
            folders += [inner, *(p for p in inner.parents if p == top or top in p.parents)]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def parse_cpus(text: str) -> frozenset[int]:
    """Return the cores of a list such as `0-3,8`."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _allowed() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _cpu_set(root: Path) -> frozenset[int]:
    for name in CPU_SETS:
        for folder in control_groups(root, "cpuset"):
            cpus = parse_cpus(_text(folder / name))
            if cpus:
                return cpus
    return parse_cpus(_text(root / "sys/devices/system/cpu/online"))


def _siblings(root: Path, cpu: int) -> frozenset[int]:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    return parse_cpus(_text(folder / "thread_siblings_list")) | {cpu}


def _node(root: Path, cpu: int) -> int:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}"
    names = (path.name.removeprefix("node") for path in folder.glob("node[0-9]*"))
    return next((int(name) for name in names if name.isdigit()), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
