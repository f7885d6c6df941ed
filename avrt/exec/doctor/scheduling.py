"""Checks of what this user may ask of the scheduler: priorities, timers, limits, switching."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from avrt.exec.doctor.check import LIMITS_FILE, Check, Host, asked, judged
from avrt.exec.realtime import (
    DISPATCHER_PRIORITY,
    SWITCH_NS,
    locked_memory,
    realtime_thread,
    thread_restored,
)
from avrt.exec.rights import COSTS
from avrt.units import NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES_MIN = 4096


def check_scheduling(host: Host) -> Iterator[Check]:
    """Yield every check of the scheduler and of limits."""
    yield fifo(host)
    yield throttling(host)
    yield timer_slack(host)
    yield memory_lock(host)
    yield open_files(host)
    yield switch_interval(host)


def fifo(host: Host) -> Check:
    """Ask for the dispatcher's priority, and give it back."""
    with thread_restored(host.system):
        *_, right = realtime_thread("", priority=DISPATCHER_PRIORITY, system=host.system)
    return asked(
        "SCHED_FIFO", right, f"SCHED_FIFO {DISPATCHER_PRIORITY}",
        _limit(f"rtprio {DISPATCHER_PRIORITY}"),
    )  # fmt: skip


def timer_slack(host: Host) -> Check:
    try:
        before = f"{format_ns(host.system.timer_slack_ns())} by default"
    except OSError:
        before = "default not told"
    with thread_restored(host.system):
        right = realtime_thread("", system=host.system)[0]
    check = asked("timer slack", right, "1 ns while running", "let the sandbox allow prctl")
    return Check(
        check.name, f"{before}, {right.told} while running" if right.granted else right.told,
        check.wanted, check.verdict, check.remedy, check.cost,
    )  # fmt: skip


def memory_lock(host: Host) -> Check:
    """Lock memory, and let it go."""
    with locked_memory(host.system) as right:
        pass
    return asked("memory lock", right, "all memory", _limit("memlock unlimited"))


def throttling(host: Host) -> Check:
    runtime = host.file("proc/sys/kernel/sched_rt_runtime_us")
    period = host.file("proc/sys/kernel/sched_rt_period_us")
    return judged(
        "real-time throttling", f"{runtime} of {period} us" if runtime else "not told",
        "on: 950000 of 1000000 us", good=runtime not in {"-1", "0"},
        remedy="sudo sysctl kernel.sched_rt_runtime_us=950000",
        cost="off (-1), a SCHED_FIFO thread that never waits takes a core for good, and the "
        "machine with it; on, such threads rest for 50 ms a second when they use all of it",
    )  # fmt: skip


def open_files(host: Host) -> Check:
    limit = host.system.limit("RLIMIT_NOFILE")
    soft = -1 if limit is None else limit[0]
    return judged(
        "open files", "unlimited" if soft < 0 else str(soft), f"{FILES_MIN} or more",
        good=soft < 0 or soft >= FILES_MIN,
        remedy=f"ulimit -n 65536, and for good: {_limit('nofile 65536')}",
        cost="split logs, sensors and partitions each hold some; at the limit the next one fails",
    )  # fmt: skip


def switch_interval(_host: Host) -> Check:
    now = format_ns(round(sys.getswitchinterval() * NS_PER_S))
    found = f"{now} by default, {format_ns(SWITCH_NS)} while running live"
    return Check(
        "switch interval", found, format_ns(SWITCH_NS), "ok", cost=COSTS["switch_interval"]
    )


def _limit(what: str) -> str:
    """Return the command that gives the user at hand a limit."""
    line = f'echo "$(id -un) - {what}" | sudo tee -a {LIMITS_FILE}'
    return f"{line}, then log in again"
