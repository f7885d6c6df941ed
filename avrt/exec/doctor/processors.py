"""Checks of the processors and of the kernel that hands them out."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from typing import TYPE_CHECKING

from avrt import clock
from avrt.device.topology import CORES_PINNED_MIN, place
from avrt.exec.doctor.check import Check, Host, judged
from avrt.exec.system import CAP_IPC_LOCK, CAP_SYS_NICE

if TYPE_CHECKING:
    from collections.abc import Iterator

LOAD_SHARE_MAX = 0.5
READINGS = 200
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
STEAL_SHARE_MAX = 0.01
CAPABILITIES = {"SYS_NICE": CAP_SYS_NICE, "IPC_LOCK": CAP_IPC_LOCK}


def check_processors(host: Host) -> Iterator[Check]:
    """Yield every check of processors."""
    yield cores(host)
    yield pinning(host)
    yield siblings(host)
    yield isolated(host)
    yield governor(host)
    yield clock_source(host)
    yield preemption(host)
    yield load(host)
    yield steal(host)
    yield container(host)


def cores(host: Host) -> Check:
    topology, quota = host.topology, host.topology.quota_cores
    count, nodes = len(topology.cores), len(topology.nodes)
    found = f"{len(topology.cpus)} allowed, {count} physical, {nodes} node{'s' * (nodes > 1)}"
    found += "" if quota is None else f", a quota of {quota:.3g} cores"
    return judged(
        "cores", found, "2 physical cores or more, no quota",
        good=count >= 2 and quota is None,
        remedy="let it have a cpuset in place of a quota: docker run --cpuset-cpus=0-3, not --cpus"
        if quota is not None
        else "give the machine or the container more cores",
        cost="a quota stops every thread for the rest of a 100 ms period once it is used up; with "
        "one core the dispatcher waits behind the stages",
    )  # fmt: skip


def pinning(host: Host) -> Check:
    told = place(host.topology, {}).told
    return Check("pinning", told, "what the cores allow", "ok", cost="see docs/doctor.md")


def siblings(host: Host) -> Check:
    control = host.file("sys/devices/system/cpu/smt/control") or "not told"
    return judged(
        "hyper-threads", "two or more a core" if host.topology.siblings else f"none ({control})",
        "none, or idle ones", good=not host.topology.siblings,
        remedy="echo off | sudo tee /sys/devices/system/cpu/smt/control",
        cost="two busy hyper-threads share a core, and either slows the other; avrt pins by "
        "physical core. Not measured here",
    )  # fmt: skip


def isolated(host: Host) -> Check:
    cpus = [str(cpu) for core in host.topology.cores if core.isolated for cpu in core.cpus]
    few = len(host.topology.cores) < CORES_PINNED_MIN
    last = host.topology.cpus[-1] if host.topology.cpus else 0
    return judged(
        "isolated cores", ", ".join(cpus) or "none",
        "none needed with so few cores" if few else "one for the dispatcher",
        good=few or bool(cpus),
        remedy=f"add isolcpus={last} nohz_full={last} rcu_nocbs={last} to the kernel command line",
        cost="others' threads and interrupts run on the dispatcher's core too. Not measured here",
    )  # fmt: skip


def governor(host: Host) -> Check:
    names = {
        host.file(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        for cpu in host.topology.cpus
    } - {""}
    return judged(
        "frequency governor", ", ".join(sorted(names)) or "none told (a virtual machine?)",
        "performance", good=names <= {"performance"},
        remedy="sudo cpupower frequency-set -g performance",
        cost="a job after a pause starts at a low frequency and takes longer than its profile "
        "says. Not measured here",
    )  # fmt: skip


def clock_source(host: Host) -> Check:
    name = host.file("sys/devices/system/clocksource/clocksource0/current_clocksource")
    found = f"{name or 'not told'}, {reading_ns()} ns a reading"
    return judged(
        "clock source", found, "tsc (or the like of this processor)",
        good=not name or name in GOOD_CLOCKS,
        remedy="add clocksource=tsc tsc=reliable to the kernel command line, if the processor's "
        "is stable",
        cost="every reading goes to a slow device (hpet, acpi_pm), one reader at a time, for the "
        "time shown",
    )  # fmt: skip


def reading_ns() -> int:
    """Return how long one reading of the clock takes, at the median."""
    stamps = [clock.now_ns() for _ in range(READINGS)]
    gaps = sorted(after - before for before, after in pairwise(stamps))
    return gaps[len(gaps) // 2]


def preemption(host: Host) -> Check:
    model = preemption_model(host)
    return judged(
        "kernel preemption", model, "PREEMPT_RT or full",
        good=model.startswith(("PREEMPT_RT", "full")),
        remedy="add preempt=full to the kernel command line, or install a PREEMPT_RT kernel",
        cost="a thread that is due waits until a system call of another one ends; it is in the "
        "wake-up errors that --measure shows",
    )  # fmt: skip


def preemption_model(host: Host) -> str:
    """Return how the kernel may be interrupted, from whatever tells it."""
    version = host.file("proc/sys/kernel/version")
    if host.file("sys/kernel/realtime") == "1" or "PREEMPT_RT" in version:
        return "PREEMPT_RT"
    now = host.file("sys/kernel/debug/sched/preempt")
    if "(" in now:
        return now.partition("(")[2].partition(")")[0]
    for word in host.file("proc/cmdline").split():
        if word.startswith("preempt="):
            return word.removeprefix("preempt=")
    built = _built_in(host)
    if "PREEMPT_DYNAMIC" in version:
        return f"{built}, as it was built; it can be changed at its start"
    return built


def _built_in(host: Host) -> str:
    names = ("NONE", "VOLUNTARY", "LAZY")
    try:
        with gzip.open(host.system.root / "proc/config.gz", "rt", encoding="utf-8") as text:
            lines = {line.strip() for line in text}
    except OSError:
        return "not told"
    chosen = [name.lower() for name in names if f"CONFIG_PREEMPT_{name}=y" in lines]
    return chosen[0] if chosen else "full" if "CONFIG_PREEMPT=y" in lines else "not told"


def load(host: Host) -> Check:
    text = host.file("proc/loadavg").split()
    now, count = float(text[0]) if text else 0.0, max(1, len(host.topology.cpus))
    return judged(
        "load now", f"{now:.2f} in the last minute, {count} cores",
        f"at most {LOAD_SHARE_MAX:g} a core",
        good=now <= LOAD_SHARE_MAX * count,
        remedy="see who it is: top -o %CPU",
        cost="stages wait for cores: beside one busy process a network with 2 threads an operation "
        "took p50 26, p99 62 to 513 ms",
    )  # fmt: skip


def steal(host: Host) -> Check:
    fields = [int(field) for field in host.file("proc/stat").partition("\n")[0].split()[1:9]]
    virtual = " hypervisor" in host.file("proc/cpuinfo")
    share = fields[7] / max(1, sum(fields)) if len(fields) == 8 else 0.0
    return judged(
        "virtual machine", f"{'yes' if virtual else 'no'}, {share:.2%} of the time stolen",
        f"at most {STEAL_SHARE_MAX:.0%} stolen", good=share <= STEAL_SHARE_MAX,
        remedy="pin the machine's virtual cores on its host, and overcommit none of them",
        cost="a core that is stolen stops jobs and clocks nothing; live runs tell it as a starved "
        "host",
    )  # fmt: skip


def container(host: Host) -> Check:
    kind = container_kind(host)
    missing = [
        name for name, number in CAPABILITIES.items() if not host.system.has_capability(number)
    ]
    adds = " ".join(f"--cap-add {name}" for name in missing)
    held = "all capabilities that matter" if not missing else f"without {', '.join(missing)}"
    return judged(
        "container", f"{kind}, {held}" if kind else "no", "none, or one with the rights it needs",
        good=not kind or not missing,
        remedy=f"docker run {adds} --ulimit rtprio=99 --ulimit memlock=-1",
        cost="SCHED_FIFO and memory locks are refused within",
    )  # fmt: skip


def container_kind(host: Host) -> str:
    """Return which container this is, empty for none that is known."""
    root = host.system.root
    groups = host.file("proc/1/cgroup") + host.environment.get("container", "")
    for name in ("docker", "kubepods", "lxc", "podman"):
        if name in groups:
            return name
    if os.path.exists(root / ".dockerenv"):  # noqa: PTH110 - false where it may not be looked at
        return "docker"
    return "podman" if os.path.exists(root / "run/.containerenv") else ""  # noqa: PTH110
