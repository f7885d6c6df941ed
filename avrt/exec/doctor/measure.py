"""What the measures for real time bring on this host: the same work with and without them.

Blocks of both kinds take turns within one run, so that whatever else the host does hits both alike.
Every block has threads of its own, which take what was done to them with them when they end.

* wake: sleep until the next instant, every 5 ms, as the dispatcher does; how late it woke.
* wake beside busy processes: the same while one process a core computes, as a neighbour might.
* hand-over: one thread gives another something to do; how long until that one has it.
* hand-over beside one busy thread: the same while a third thread computes in pure Python.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from avrt import clock
from avrt.device.topology import read_topology
from avrt.exec.process import quick_switching
from avrt.exec.realtime import DISPATCHER_PRIORITY, SWITCH_NS, realtime_process, realtime_thread
from avrt.metrics.distribution import Distribution
from avrt.units import NS_PER_MS, NS_PER_S, format_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.exec.rights import Right

WAKE_PERIOD_NS = 5 * NS_PER_MS
HAND_OVER_PERIOD_NS = NS_PER_MS
DEFAULT_SWITCH_NS = 5 * NS_PER_MS
ROUNDS = 5
NEIGHBOUR = "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end: pass"
END_NS = 30 * NS_PER_S  # whoever waits for the other thread gives up then


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to set up the process and its threads.

    Attributes:
        name: shown to the user.
        measures: none, the timer slack alone (which needs no right), or all that is granted.
        switch_ns: how long a thread keeps the interpreter from one that waits.
    """

    name: str
    measures: str = "none"
    switch_ns: int = DEFAULT_SWITCH_NS


ORDINARY = Arm("ordinary")
SLACK = Arm("timer slack only", "slack")
REALTIME = Arm("all that is granted", "all", SWITCH_NS)
SWITCHED = Arm(f"switch interval {format_ns(SWITCH_NS)} only", "none", SWITCH_NS)


@dataclass(frozen=True, slots=True)
class Trial:
    """One kind of work under several arms; `count` of it in each block."""

    name: str
    block: Callable[[Arm, int, Distribution], None]
    arms: tuple[Arm, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Measured:
    """How long one kind of work took under one arm."""

    trial: str
    arm: str
    taken: Distribution


def measure(trials: tuple[Trial, ...] | None = None, rounds: int = ROUNDS) -> list[Measured]:
    """Run every trial under all of its arms in turns; return what each took."""
    results: list[Measured] = []
    for trial in TRIALS if trials is None else trials:
        taken = {arm: Distribution() for arm in trial.arms}
        for turn in range(rounds):
            shift = turn % len(trial.arms)
            for arm in (*trial.arms[shift:], *trial.arms[:shift]):
                with ExitStack() as stack:
                    _set_process_up(arm, stack)
                    trial.block(arm, trial.count, taken[arm])
        results += [Measured(trial.name, arm.name, taken[arm]) for arm in trial.arms]
    return results


def granted_rights() -> list[Right]:
    """Ask for every measure once, as a dispatcher would; return what was got."""
    rights: list[Right] = []

    def ask() -> None:
        rights.extend(realtime_thread("dispatcher", priority=DISPATCHER_PRIORITY))

    with realtime_process() as process:
        _run_threads(ask)
        return [*process, *rights]


def _set_process_up(arm: Arm, stack: ExitStack) -> None:
    if arm.measures == "all":
        stack.enter_context(realtime_process(switch_ns=arm.switch_ns))
    else:
        stack.enter_context(quick_switching(arm.switch_ns / NS_PER_S))


def _set_thread_up(arm: Arm, priority: int) -> None:
    if arm.measures != "none":
        realtime_thread("measured", priority=priority if arm.measures == "all" else 0)


def wake_block(arm: Arm, count: int, taken: Distribution) -> None:
    """Sleep until `count` instants and note how late each wake-up was."""

    def run() -> None:
        _set_thread_up(arm, DISPATCHER_PRIORITY)
        nothing: SimpleQueue[int] = SimpleQueue()
        at_ns = clock.now_ns()
        for _ in range(count):
            at_ns = max(at_ns, clock.now_ns()) + WAKE_PERIOD_NS
            clock.take(nothing, at_ns - clock.now_ns())
            taken.add(clock.now_ns() - at_ns)

    _run_threads(run)


def crowded_block(arm: Arm, count: int, taken: Distribution) -> None:
    """Sleep until `count` instants while other processes want every core."""
    others = [
        subprocess.Popen([sys.executable, "-S", "-c", NEIGHBOUR])  # noqa: S603 - this interpreter
        for _ in range(len(read_topology().cpus))
    ]
    try:
        wake_block(arm, count, taken)
    finally:
        for other in others:
            other.kill()
            other.wait()


def hand_over_block(arm: Arm, count: int, taken: Distribution) -> None:
    """Give `count` instants to another thread and note when it has each."""
    given: SimpleQueue[int] = SimpleQueue()

    def give() -> None:
        _set_thread_up(arm, DISPATCHER_PRIORITY - 1)
        nothing: SimpleQueue[int] = SimpleQueue()
        for _ in range(count):
            clock.take(nothing, HAND_OVER_PERIOD_NS)
            given.put(clock.now_ns())

    def have() -> None:
        _set_thread_up(arm, DISPATCHER_PRIORITY)
        for _ in range(count):
            sent_ns = clock.take(given, END_NS)
            if sent_ns is None:
                return
            taken.add(clock.now_ns() - sent_ns)

    _run_threads(have, give)


def busy_block(arm: Arm, count: int, taken: Distribution) -> None:
    """Hand over beside a thread that computes in pure Python."""
    done = threading.Event()

    def compute() -> None:
        number = 0
        while not done.is_set():
            number += 1

    busy = threading.Thread(target=compute, name="avrt-busy", daemon=True)
    busy.start()
    try:
        hand_over_block(arm, count, taken)
    finally:
        done.set()
        busy.join()


TRIALS = (
    Trial("wake", wake_block, (ORDINARY, SLACK, REALTIME), 40),
    Trial("wake beside busy processes", crowded_block, (ORDINARY, SLACK, REALTIME), 40),
    Trial("hand-over", hand_over_block, (ORDINARY, REALTIME), 100),
    Trial("hand-over beside a busy thread", busy_block, (ORDINARY, SWITCHED, REALTIME), 20),
)


def _run_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work, name="avrt-measured", daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
