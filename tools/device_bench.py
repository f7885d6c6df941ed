"""Measure CPU streams and print one JSON object: figures with their conditions.

    python tools/device_bench.py [--budget SECONDS]

- a call put to a busy stream, to an idle one until it runs, and a hop by an event between two;
- the same of an executor, which checks what it is given and keeps buffers alive;
- two networks on two streams against one, and copies beside a network, interleaved.

Times are in us. The garbage collector is frozen, as it is in a run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from device_figures import Figures, hops, streams, summary

from avrt.device import CpuDevice, CpuStream, Executor, OrderChecker

if TYPE_CHECKING:
    from collections.abc import Callable

BURST = 2000
BURSTS = 30
WAKES = 1500
IDLE_S = 0.0005


def worker_figures() -> Figures:
    """Measure a bare stream."""
    stream = CpuStream("one")
    stream.ready()
    try:
        return {
            "submit_busy_us": burst(stream.submit, lambda: stream.submit(int)),
            "wake_us": wake(stream),
        }
    finally:
        stream.close()


def executor_figures() -> Figures:
    """Measure an executor over CPU streams, plain and with the order checker."""
    with Executor(CpuDevice()) as executor:
        stream, other = executor.stream("one"), executor.stream("two")
        buffer = executor.allocate(64, stream)
        hold = lambda call: executor.launch(stream, call)  # noqa: E731
        figures: Figures = {
            "launch_busy_us": burst(hold, lambda: executor.launch(stream, int)),
            "launch_with_buffer_us": burst(
                hold, lambda: executor.launch(stream, int, reads=(buffer,))
            ),
            "record_us": burst(hold, lambda: executor.record(stream)),
            "event_hop_us": event_hop(executor, stream, other),
        }
        executor.checker = OrderChecker()
        figures["launch_checked_us"] = burst(
            hold, lambda: executor.launch(stream, int, reads=(buffer,))
        )
        return figures


def burst(hold: Callable[[Callable[[], object]], object], step: Callable[[], object]) -> Figures:
    """Return the mean time of a step over bursts to a stream that is held busy."""
    times = []
    for _ in range(BURSTS):
        gate, over = threading.Event(), threading.Event()
        hold(gate.wait)
        time.sleep(IDLE_S)
        start_ns = time.perf_counter_ns()
        for _ in range(BURST):
            step()
        times.append((time.perf_counter_ns() - start_ns) / BURST / 1000)
        gate.set()
        hold(over.set)
        over.wait()
    return {"bursts_of": BURST, "min": round(min(times), 4), **summary(times)}


def wake(stream: CpuStream) -> Figures:
    """Return the time from a submit to an idle stream until its thread runs the call.

    Beside it, alternating, what waking a thread by a bare lock takes: the floor on this machine.
    """
    bell, ran = threading.Lock(), threading.Event()
    bell.acquire()
    began: list[int] = []

    def note() -> None:
        began.append(time.perf_counter_ns())
        ran.set()

    def sleep_and_note() -> None:
        for _ in range(WAKES):
            bell.acquire()
            note()

    bare = threading.Thread(target=sleep_and_note)
    bare.start()
    times: dict[str, list[float]] = {"stream": [], "bare_lock": []}
    for _ in range(WAKES):
        for name, ring in (("stream", lambda: stream.submit(note)), ("bare_lock", bell.release)):
            ran.clear()
            time.sleep(IDLE_S)
            start_ns = time.perf_counter_ns()
            ring()
            ran.wait()
            times[name].append((began.pop() - start_ns) / 1000)
    bare.join()
    skipped = WAKES // 10
    return {
        name: {"min": round(min(taken), 4), **summary(taken[skipped:])}
        for name, taken in times.items()
    }


def event_hop(executor: Executor, one: object, two: object) -> Figures:
    """Return the time from the end of one stream's call to the start of the other's behind it."""
    times = []
    for _ in range(WAKES):
        gate = threading.Event()
        at: list[int] = []

        def note(at: list[int] = at) -> None:
            at.append(time.perf_counter_ns())

        executor.launch(one, gate.wait)  # type: ignore[arg-type]
        executor.launch(one, note)  # type: ignore[arg-type]
        executor.wait(two, executor.record(one))  # type: ignore[arg-type]
        executor.launch(two, note)  # type: ignore[arg-type]
        time.sleep(IDLE_S)
        gate.set()
        executor.synchronize(two)  # type: ignore[arg-type]
        times.append((at[1] - at[0]) / 1000)
    return {"min": round(min(times), 4), **summary(times[WAKES // 10 :])}


def conditions() -> Figures:
    """Return what the figures depend on."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "switch_interval_s": sys.getswitchinterval(),
        "clock_read_us": round(clock_cost_us(), 3),
    }


def processor() -> str:
    """Return the processor's name."""
    with open("/proc/cpuinfo", encoding="utf-8") as text:  # noqa: PTH123 - a kernel file
        names = [line.partition(":")[2].strip() for line in text if "model name" in line]
    return names[0] if names else platform.machine()


def clock_cost_us() -> float:
    """Return what reading the clock costs: part of each figure."""
    instants = [time.perf_counter_ns() for _ in range(10_000)]
    return statistics.median(b - a for a, b in pairwise(instants)) / 1000


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure CPU streams.")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for the networks")
    options = parser.parse_args(arguments)
    gc.collect()
    gc.freeze()
    found = {
        "conditions": conditions(),
        "worker": worker_figures(),
        "executor": executor_figures(),
        "copies": hops(CpuDevice, 20.0),
        "networks": streams(CpuDevice, options.budget),
        "load_1min_after": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
