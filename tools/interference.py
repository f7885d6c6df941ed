"""What a bad neighbour costs: two stages beside one that spins, allocates, prints, raises or hangs.

    python tools/interference.py [--seconds 5] [--rounds 3] [--json FILE]

All stages run in threads of one process, as stages without a partition do. Every run is a fresh
process; arms take turns. Responses are pooled over the rounds; of the driver's lateness the median
of the rounds is given, and the greatest of all.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

import torch

import avrt
from avrt.drivers.conditions import read_conditions

if TYPE_CHECKING:
    from collections.abc import Callable

    Run: TypeAlias = dict[str, object]

MS = 1_000_000
PERIOD_S = 0.05
BUSY_S = 0.047  # a little less, so that its job is met where it has a core
BLOCKS = 50  # of 1 MB in each job: 1 GB a second
LINES = 5_000  # in each job: 100,000 a second
HANG_S = 2.0
VICTIMS = ("control", "detect")
GRANTS = ("cores_plan", "realtime.fifo:driver", "realtime.switch_interval")


def spin_in_python() -> int:
    """Hold the interpreter all the time, as far as it lets a thread."""
    end, turns = time.perf_counter() + BUSY_S, 0
    while time.perf_counter() < end:
        turns += 1
    return turns


def spin_in_torch() -> float:
    """Compute all the time with the interpreter let go."""
    end, block = time.perf_counter() + BUSY_S, torch.full((384, 384), 1.0)
    while time.perf_counter() < end:
        block = block @ block / 384
    return float(block[0, 0])


def allocate() -> int:
    """Take 50 MB, touch every byte, give them back."""
    return sum(len(block) for block in [bytes([index]) * 1_000_000 for index in range(BLOCKS)])


def printing() -> Callable[[], int]:
    """Return a stage that prints."""
    sink = Path(tempfile.mkdtemp(), "printed").open("w", encoding="utf-8")  # noqa: SIM115

    def prints() -> int:
        for line in range(LINES):
            print("a line that somebody forgot", line, file=sink)
        sink.seek(0)
        return LINES

    return prints


def raise_always() -> int:
    raise ValueError("every time")


def hang() -> int:
    """Wait for much longer than the hang timeout."""
    threading.Event().wait(HANG_S)
    return 0


ARMS: dict[str, Callable[[], object] | None] = {
    "nobody": None,
    "spins in Python": spin_in_python,
    "spins in torch": spin_in_torch,
    "allocates 1 GB/s": allocate,
    "prints 100,000 lines/s": printing,
    "raises every time": raise_always,
    "hangs": hang,
}


class Detect(avrt.Stage):
    """A small network on an image of its own."""

    def warm(self) -> None:
        parts: list[torch.nn.Module] = [torch.nn.Conv2d(3, 24, 3, padding=1)]
        for _ in range(3):
            parts += [torch.nn.ReLU(), torch.nn.Conv2d(24, 24, 3, padding=1)]
        self.network = torch.nn.Sequential(*parts)
        self.image = torch.rand(1, 3, 128, 128)
        self.process()

    def process(self) -> float:
        with torch.no_grad():
            return float(self.network(self.image).mean())


def control() -> int:
    return sum(range(200))


def run_one(arm: str, seconds: float) -> Run:
    """Run the victims beside one offender in this process; return what they took."""
    logging.disable(logging.WARNING)
    pipeline = avrt.Pipeline("neighbours", devices={"cpu": {"type": "cpu", "slots": 3}})
    pipeline.add(control, period="10 ms", wcet="1 ms", deadline="10 ms")
    pipeline.add(Detect, name="detect", period="100 ms", wcet="40 ms", deadline="100 ms")
    offender = ARMS[arm]
    if offender is not None:
        made = printing() if offender is printing else offender
        times = {"period": f"{round(PERIOD_S * 1000)} ms", "wcet": "1 ms", "deadline": "50 ms"}
        pipeline.add(made, name="offender", on_miss="skip_next", **times)
    options = {"duration": f"{round(seconds * 1000)} ms", "hang_timeout": "300 ms"}
    report = pipeline.run(force=True, **options)
    figures = report.summary.figures.stages
    return {
        "response_ns": {name: list(figures[name].response.values) for name in VICTIMS},
        "jobs": {name: stage.jobs() for name, stage in figures.items()},
        "late_ns": dict(report.summary.wakeup_late_ns),
        "cores": report.data["host"]["levels"]["process_cores"],
        "granted": {name: report.data["conditions"].get(name, "") for name in GRANTS},
    }


def ranked(values: list[int], share: float) -> float:
    """Return a percentile by nearest rank, in ms."""
    ordered = sorted(values)
    return ordered[max(1, ceil(len(ordered) * share)) - 1] / MS if ordered else float("nan")


def figures_of(runs: list[Run]) -> dict[str, object]:
    """Return the figures of one arm over its rounds."""
    found: dict[str, object] = {}
    for name in VICTIMS:
        values = [ns for run in runs for ns in run["response_ns"][name]]
        jobs = [run["jobs"][name] for run in runs]
        released = sum(job["released"] for job in jobs)
        met = sum(job["met"] for job in jobs)
        found[name] = {
            **{f"p{share}_ms": ranked(values, share / 100) for share in (50, 95, 99)},
            "max_ms": ranked(values, 1.0),
            "count": len(values),
            "missed_share": (released - met) / released,
        }
    late = [run["late_ns"] for run in runs]
    found["driver_late"] = {
        **{f"{key}_ms": median(one[key] for one in late) / MS for key in ("p50", "p99")},
        "max_ms": max(one["max"] for one in late) / MS,
    }
    counts = [run["jobs"].get("offender", {}) for run in runs]
    totals = {key: sum(count[key] for count in counts) for key in counts[0]}
    found["offender"] = {key: total for key, total in totals.items() if total}
    found["process_cores"] = median(run["cores"]["p50"] for run in runs)
    return found


def table(found: dict[str, dict[str, object]]) -> str:
    """Return the table in Markdown; times in ms."""
    heads = ["neighbour"]
    for name in VICTIMS:
        heads += [f"{name} p50 / p95 / p99 / max", "missed"]
    heads += ["driver late p50 / p99 / max", "neighbour's jobs", "cores"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for arm, one in found.items():
        cells = [arm]
        for name in VICTIMS:
            victim = one[name]
            keys = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
            cells.append(" / ".join(f"{victim[key]:.2f}" for key in keys))
            cells.append(f"{victim['missed_share']:.1%}")
        late = one["driver_late"]
        cells.append(" / ".join(f"{late[key]:.2f}" for key in ("p50_ms", "p99_ms", "max_ms")))
        told = ", ".join(f"{count} {name}" for name, count in one["offender"].items())
        cells += [told or "-", f"{one['process_cores']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run_apart(arm: str, seconds: float) -> Run:
    """Run an arm in a process of its own."""
    command = [sys.executable, __file__, "--arm", arm, "--seconds", str(seconds)]
    done = subprocess.run(  # noqa: S603 - this script
        command, check=True, stdout=subprocess.PIPE, timeout=120 + 3 * seconds
    )
    found: Run = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run (default: 5)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each arm (default: 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--arm", choices=ARMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm is not None:
        print(json.dumps(run_one(options.arm, options.seconds)))
        return
    conditions = read_conditions(seconds=str(options.seconds), rounds=str(options.rounds))
    runs: dict[str, list[Run]] = {arm: [] for arm in ARMS}
    for _ in range(options.rounds):
        for arm in ARMS:
            runs[arm].append(run_apart(arm, options.seconds))
    found = {arm: figures_of(ones) for arm, ones in runs.items()}
    conditions.update(runs["nobody"][0]["granted"])
    print(table(found))
    print("\n" + "; ".join(f"{name} {text}" for name, text in conditions.items()))
    if options.json is not None:
        data = {"arms": found, "conditions": conditions}
        options.json.write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
