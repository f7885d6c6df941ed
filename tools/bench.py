"""Measure avrt and print one JSON object: figures with their conditions.

    python tools/bench.py kernel [--prototype FOLDER]   cost of one event, growth with ready jobs
    python tools/bench.py simulate [--simso PYTHON]     jobs a cpu-second, SimSo beside it
    python tools/bench.py analysis [--schedcat FOLDER]  response-time analysis, SchedCAT's beside it
    python tools/bench.py replay LOG PIPELINE           speed against real time, memory
    python tools/bench.py clocks LOG PIPELINE           virtual time beside the wall clock
    python tools/bench.py reality LOG PIPELINE          a simulation beside the wall clock

Figures of one comparison come from one run, interleaved. `--prototype` names a folder with another
kernel of the interface `handle(event)` to put beside this one; it runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from heapq import heappop, heappush
from pathlib import Path

from avrt.drivers.conditions import read_conditions
from avrt.kernel import Kernel
from avrt.model.commands import Dispatch
from avrt.model.events import Completed
from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec

MS = 1_000_000
TASKS = 5
SPAN_NS = 20_000 * MS
ROUNDS = 7
READY = (10, 100, 1000)

PROTOTYPE = """
import json, sys, time
from heapq import heappop, heappush
from avrt.model.spec import PipelineSpec, TaskSpec
from avrt.kernel.kernel import Kernel
from avrt.model.events import JobCompleted, Woke
from avrt.model.commands import Dispatch
MS, TASKS, SPAN_NS = 1_000_000, %d, %d
tasks = tuple(TaskSpec(name=f"t{i}", lane="d", wcet_ns=(10 + i) * MS // TASKS,
              deadline_ns=(20 + 7 * i) * MS, period_ns=(20 + 7 * i) * MS) for i in range(TASKS))
wcet = {t.name: t.wcet_ns for t in tasks}
def run():
    kernel = Kernel(PipelineSpec(name="x", policy="edf", lanes=("d",), tasks=tasks))
    ends, spent, clock = [], [], time.perf_counter_ns
    while True:
        at = min(t for t in (kernel.next_wakeup_ns, ends[0][0] if ends else None) if t is not None)
        if at > SPAN_NS: return spent
        event = JobCompleted(at, heappop(ends)[1]) if ends and ends[0][0] == at else Woke(at)
        start = clock(); commands = kernel.handle(event); spent.append(clock() - start)
        for c in commands:
            if type(c) is Dispatch: heappush(ends, (at + wcet[c.task], c.job_id))
for _ in sys.stdin:
    print(json.dumps(run()), flush=True)
"""


def periodic(tasks: int) -> PipelineSpec:
    """Return timer stages on one non-preemptive slot, utilisation about 0.36 at five tasks."""
    stages = tuple(
        StageSpec(
            name=f"t{index}",
            device="d",
            wcet_ns=(10 + index) * MS // tasks,
            deadline_ns=(20 + 7 * index) * MS,
            period_ns=(20 + 7 * index) * MS,
        )
        for index in range(tasks)
    )
    return PipelineSpec(name="bench", devices=(DeviceSpec(name="d"),), stages=stages)


def event_costs(spec: PipelineSpec, span_ns: int) -> list[float]:
    """Return the call time of `handle` per event, ns, for each call of a run."""
    kernel = Kernel(spec)
    wcet = {stage.name: stage.wcet_ns for stage in spec.stages}
    ends: list[tuple[int, int]] = []
    spent: list[float] = []
    handle = 0
    while True:
        times = (kernel.next_wakeup_ns, ends[0][0] if ends else None)
        at_ns = min(time_ns for time_ns in times if time_ns is not None)
        if at_ns > span_ns:
            return spent
        events = []
        while ends and ends[0][0] == at_ns:
            events.append(Completed(heappop(ends)[1], handle, at_ns))
            handle += 1
        start = time.perf_counter_ns()
        commands = kernel.handle(at_ns, events)
        spent.append((time.perf_counter_ns() - start) / max(1, len(events)))
        for command in commands:
            if type(command) is Dispatch:
                heappush(ends, (at_ns + wcet[command.task], command.job))


def ready_cost(ready: int) -> list[float]:
    """Return the cost of one completion with the next dispatch while `ready` jobs wait, ns."""
    stages = tuple(
        StageSpec(
            name=f"t{index}",
            device="d",
            wcet_ns=MS,
            deadline_ns=10_000 * MS + index,
            period_ns=100_000 * MS,
        )
        for index in range(ready + 200)
    )
    spec = PipelineSpec(name="ready", devices=(DeviceSpec(name="d"),), stages=stages)
    kernel = Kernel(spec)
    (job,) = [c.job for c in kernel.handle(0) if type(c) is Dispatch]
    spent = []
    for step in range(1, 200):
        events = [Completed(job, step, step * MS)]
        start = time.perf_counter_ns()
        commands = kernel.handle(step * MS, events)
        spent.append(float(time.perf_counter_ns() - start))
        (job,) = [c.job for c in commands if type(c) is Dispatch]
    return spent


def bench_kernel(prototype: Path | None) -> dict[str, object]:
    event_costs(periodic(TASKS), SPAN_NS)  # warm-up: the interpreter specialises
    ours: list[float] = []
    others: list[float] = []
    peer = None if prototype is None else _Peer(prototype)
    for _ in range(ROUNDS):
        ours += event_costs(periodic(TASKS), SPAN_NS)
        if peer is not None:
            others += peer.run()
    result: dict[str, object] = {"event_ns": figures(ours)}
    if peer is not None:
        peer.close()
        theirs = figures(others)
        result["prototype_event_ns"] = theirs
        result["ratio"] = {
            name: round(value / theirs[name], 2)
            for name, value in figures(ours).items()
            if name != "count"
        }
    growth = {ready: figures([c for _ in range(3) for c in ready_cost(ready)]) for ready in READY}
    result["completion_with_ready_jobs_ns"] = growth
    return result


class _Peer:
    """The prototype in a process of its own: its package has the same name."""

    def __init__(self, folder: Path) -> None:
        self._root = tempfile.TemporaryDirectory()
        Path(self._root.name, "avrt").symlink_to(folder.resolve(), target_is_directory=True)
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, our own text
            [sys.executable, "-c", PROTOTYPE % (TASKS, SPAN_NS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._root.name,  # before any installed avrt
        )
        self.run()

    def run(self) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
        self._root.cleanup()


def bench_replay(log: Path, pipeline: Path) -> dict[str, object]:
    """Return speed and memory of three replays with a record, start-up apart."""
    import resource  # noqa: PLC0415

    from avrt.api import Pipeline  # noqa: PLC0415

    start_ns = time.perf_counter_ns()
    import avrt.api.replay as driver  # noqa: PLC0415

    start_up_s = (time.perf_counter_ns() - start_ns) / 1e9
    loops: list[float] = []
    measured = driver.replay

    def timed(*arguments, **options):  # noqa: ANN002, ANN003, ANN202
        begin_ns = time.perf_counter_ns()
        result = measured(*arguments, **options)
        loops.append((time.perf_counter_ns() - begin_ns) / 1e9)
        return result

    driver.replay = timed
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            report = Pipeline.load(pipeline).replay(log, out=Path(folder, "run.mcap"))
    span_s = report.summary.end_ns / 1e9
    return {
        "log_s": round(span_s, 2),
        "start_up_s": round(start_up_s, 2),
        "replay_s": [round(value, 2) for value in loops],
        "times_real_time": [round(span_s / value, 2) for value in loops],
        "memory_mib_max": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "stages": report.data["stages"],
    }


def bench_clocks(log: Path, pipeline: Path, rates: list[float]) -> dict[str, object]:
    """Return responses and executions in virtual time and at the wall clock, ms, each verified.

    All but `computing_host_ms` are pipeline time: at rate 4, what takes 10 ms here counts 40.
    """
    from avrt.api import Pipeline  # noqa: PLC0415
    from avrt.drivers.verify import verify  # noqa: PLC0415

    runs: dict[str, dict[str, object]] = {"virtual, measured": {"timing": "measured"}}
    runs |= {f"wall, rate {rate:g}": {"clock": "wall", "rate": rate} for rate in rates}
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in runs.items():
            out = Path(folder, "run.mcap")
            data = Pipeline.load(pipeline).replay(log, out=out, **options).data
            found[name] = {
                "verifies": verify(out).equal,
                "jobs": data["jobs"],
                "driver_late_ms": _ms(data["wakeup_late_ns"]),
                "response_ms": {n: _ms(s["response_ns"]) for n, s in data["stages"].items()},
                "execution_ms": {n: _ms(s["execution_ns"]) for n, s in data["stages"].items()},
                "computing_host_ms": {
                    n: _ms(s["host_execution_ns"]) for n, s in data["stages"].items()
                },
            }
    return found


def _ms(summary: dict[str, int | None]) -> str:
    values = [summary[name] for name in ("p50", "p95", "p99", "max")]
    shown = "/".join("-" if value is None else f"{value / MS:.1f}" for value in values)
    return f"{shown} n={summary['count']}"


def figures(values: list[float]) -> dict[str, float]:
    """Return p50, p95, p99 and max, ns, and how many values there are."""
    ordered = sorted(values)
    count = len(ordered)
    shares = {f"p{share}": ordered[-(-count * share // 100) - 1] for share in (50, 95, 99)}
    return {**{k: round(v) for k, v in shares.items()}, "max": round(ordered[-1]), "count": count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    groups = parser.add_subparsers(dest="group", required=True)
    kernel = groups.add_parser("kernel")
    kernel.add_argument("--prototype", type=Path)
    simulate = groups.add_parser("simulate")
    simulate.add_argument("--simso", metavar="PYTHON", help="interpreter that has SimSo 0.8.5")
    simulate.add_argument("--jobs", type=int, default=100_000)
    simulate.add_argument("--rounds", type=int, default=5)
    analysis = groups.add_parser("analysis")
    analysis.add_argument("--schedcat", metavar="FOLDER", type=Path, help="checkout of SchedCAT")
    analysis.add_argument("--rounds", type=int, default=5)
    for name in ("replay", "clocks"):
        group = groups.add_parser(name)
        group.add_argument("log", type=Path)
        group.add_argument("pipeline", type=Path)
    group.add_argument("--rates", type=float, nargs="*", default=[1.0, 4.0])
    reality = groups.add_parser("reality")
    reality.add_argument("log", type=Path)
    reality.add_argument("pipeline", type=Path)
    reality.add_argument("--loops", type=int, default=1, help="of the log, for the profile")
    given = parser.parse_args()
    match given.group:
        case "kernel":
            result = bench_kernel(given.prototype)
        case "simulate":
            from bench_simulate import bench_simulate  # noqa: PLC0415

            result = bench_simulate(given.simso, given.jobs, given.rounds)
        case "analysis":
            from bench_analysis import bench_analysis  # noqa: PLC0415

            result = bench_analysis(given.schedcat, given.rounds)
        case "replay":
            result = bench_replay(given.log, given.pipeline)
        case "reality":
            from bench_reality import bench_reality  # noqa: PLC0415

            result = bench_reality(given.log, given.pipeline, given.loops)
        case _:
            result = bench_clocks(given.log, given.pipeline, given.rates)
    print(json.dumps({given.group: result, "conditions": read_conditions()}, indent=2))


if __name__ == "__main__":
    main()
