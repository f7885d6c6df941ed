"""Check and measure devices, CUDA's first of all, in one run that needs torch and nothing else.

    PYTHONPATH=. python tools/gpu.py [--out FILE] [--budget SECONDS] [--only SECTION ...]
                                     [--rehearse]

Prints one JSON object. `--out`, `$OUT/gpu.json` where OUT is set, is written anew after each
section, so what was found survives an interruption. Each section is a process of its own, because
an error of CUDA poisons its process for good, and ends when twice its share of the budget is over;
it prints then where it hung. A section that cannot run says `not run` and why; the exit code is 1
only when something failed. `--rehearse` runs the sections for CUDA on the CPU instead, which shows
that the script is whole and nothing about CUDA.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from device_figures import Figures, failover, hops, soak, streams

from avrt.device import CpuDevice, CudaDevice, SimulatedDevice, conformance
from avrt.errors import raised_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.device.base import Device

BUDGET_S = 300.0
START_S = 30.0
"""A process may take so long to start, on top of its share."""
MS = 1_000_000
FRAME = (1 << 18,)
DEVICES = {"cpu": CpuDevice, "simulated": SimulatedDevice, "cuda": CudaDevice}


def conforming(make_device: Callable[[], Device], budget_s: float) -> Figures:
    """Run the conformance suite on a device, the quick tests before the slow ones."""
    name = next(name for name, made in DEVICES.items() if made is make_device)
    until = time.monotonic() + budget_s
    verdicts: list[conformance.Verdict] = []
    for check in sorted(conformance.CHECKS, key=lambda check: check.slow):
        if time.monotonic() < until:
            verdicts += conformance.run(make_device, name, [check])
        else:
            late = conformance.Verdict(check.name, name, "not run", "the time was up")
            verdicts.append(late)
        shown = verdicts[-1]
        print(f"   {shown.outcome:8} {shown.name} {shown.reason}", file=sys.stderr, flush=True)
    rows = [[v.name, v.device, v.outcome, v.reason, v.took_ns] for v in verdicts]
    return {"failed": len(conformance.failed(verdicts)), "verdicts": rows}


def sanitizer(make_device: Callable[[], Device], budget_s: float) -> Figures:
    """Run a right and a wrong pipeline in a process each, with torch's own sanitizer on CUDA."""
    on = "cuda" if make_device is CudaDevice else "cpu"
    found = {name: watched(name, on, budget_s / 2 + START_S) for name in ("right", "mutant")}
    seen = "theirs" if on == "cuda" else "ours"
    wrong = int(found["right"][seen] != 0) + int(found["mutant"][seen] == 0)
    wrong += int(found["right"]["ours"] != 0) + int(found["mutant"]["ours"] == 0)
    return {"failed": wrong, **found}


def watched(name: str, on: str, budget_s: float) -> Figures:
    """Return how many races torch's sanitizer and ours found in a child process."""
    ended = subprocess.run(  # noqa: S603 - this file
        [sys.executable, __file__, "--sanitized", name, "--on", on],
        env={**os.environ, **({"TORCH_CUDA_SANITIZER": "1"} if on == "cuda" else {})},
        capture_output=True,
        text=True,
        timeout=budget_s,
        check=False,
    )
    ours = [int(line.split()[1]) for line in ended.stdout.splitlines() if line.startswith("races")]
    report = ended.stderr
    return {
        "exit": ended.returncode,
        "theirs": report.count("possible data race"),
        "ours": ours[0] if ours else -1,
        "report": report[:1500],
    }


def sanitized(name: str, on: str) -> int:
    """Be the process that is watched: freed frames of one stream are had by another."""
    rig = conformance.Rig(DEVICES[on])
    executor = rig.executor
    executor.pool.guarded = name == "right"
    one, two = executor.stream("one"), executor.stream("two")
    for step in range(20):
        frame = executor.allocate(1 << 20, one)
        executor.launch(one, partial(frame.view(FRAME).fill_, float(step)), writes=(frame,))
        executor.deallocate(frame, one)
        other = executor.allocate(1 << 20, two)
        executor.launch(two, partial(other.view(FRAME).fill_, -1.0), writes=(other,))
        executor.deallocate(other, two)
    raised = raised_by(partial(executor.synchronize, two))
    print(f"races {executor.checker.race_count if executor.checker else 0}", flush=True)
    print(f"{type(raised).__name__}: {raised}" if raised else "", file=sys.stderr)
    rig.close()
    return int(raised is not None)


class Section(NamedTuple):
    """A part of the run, its share of the budget, and the device that it is about."""

    call: Callable[[Callable[[], Device], float], Figures]
    share: float
    device: str = "cuda"


SECTIONS = {
    "conformance_cuda": Section(conforming, 0.25),
    "hops": Section(hops, 0.1),
    "streams": Section(streams, 0.15),
    "failover": Section(failover, 0.05),
    "sanitizer": Section(sanitizer, 0.15),
    "soak": Section(soak, 0.1),
    "conformance_simulated": Section(conforming, 0.1, "simulated"),
    "conformance_cpu": Section(conforming, 0.1, "cpu"),
}


def conditions() -> Figures:
    """Return what the figures depend on."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "load_1min": round(os.getloadavg()[0], 2),
        "threads": torch.get_num_threads(),
    }


def measured(name: str, budget_s: float, *, rehearse: bool) -> Figures:
    """Run one section in this process; what it raises is part of the result."""
    section = SECTIONS[name]
    faulthandler.dump_traceback_later(limit_s(name, budget_s), exit=True)
    device = DEVICES["cpu" if rehearse and section.device == "cuda" else section.device]
    start = time.monotonic()
    found: Figures = {}
    raised = raised_by(lambda: found.update(section.call(device, section.share * budget_s)))
    took_s = round(time.monotonic() - start, 2)
    if raised is not None:
        told = f"{type(raised).__name__}: {raised}"
        return {"outcome": "FAILED", "reason": told, **found, "took_s": took_s}
    outcome = "FAILED" if found.pop("failed", 0) else "rehearsed" if rehearse else "done"
    return {"outcome": outcome, **found, "took_s": took_s}


def isolated(name: str, budget_s: float, *, rehearse: bool) -> Figures:
    """Run one section in a process of its own."""
    if SECTIONS[name].device == "cuda" and not rehearse and not torch.cuda.is_available():
        return {"outcome": "not run", "reason": "no CUDA device"}
    command = [sys.executable, __file__, "--child", name, "--budget", str(budget_s)]
    try:
        ended = subprocess.run(  # noqa: S603 - this file
            [*command, "--rehearse"] if rehearse else command,
            stdout=subprocess.PIPE,
            text=True,
            timeout=limit_s(name, budget_s) + START_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"outcome": "FAILED", "reason": "it did not end in time and could not say where"}
    if not ended.stdout.strip():
        return {"outcome": "FAILED", "reason": f"the process ended with {ended.returncode}"}
    found: Figures = json.loads(ended.stdout.splitlines()[-1])
    return found


def limit_s(name: str, budget_s: float) -> float:
    """Return after how long a section is ended."""
    return 2 * SECTIONS[name].share * budget_s + START_S


def verdicts_in(sections: dict[str, Figures]) -> list[conformance.Verdict]:
    """Return the verdicts of all devices, those that were not run too."""
    found: list[conformance.Verdict] = []
    for name, section in sections.items():
        rows = section.get("verdicts")
        if isinstance(rows, list):
            found += [conformance.Verdict(*row) for row in rows]
        elif SECTIONS[name].call is conforming:
            found += [
                conformance.Verdict(
                    check.name, SECTIONS[name].device, "not run", str(section["reason"])
                )
                for check in conformance.CHECKS
            ]
    order = [check.name for check in conformance.CHECKS]
    return sorted(found, key=lambda verdict: (order.index(verdict.name), verdict.device))


def options_of(arguments: list[str]) -> argparse.Namespace:
    """Return what the command line says."""
    folder = os.environ.get("OUT")
    parser = argparse.ArgumentParser(description="Check and measure devices.")
    parser.add_argument("--out", type=Path, default=Path(folder, "gpu.json") if folder else None)
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds for all sections")
    parser.add_argument("--only", nargs="+", choices=[*SECTIONS], default=[*SECTIONS])
    parser.add_argument("--rehearse", action="store_true", help="run CUDA's sections on the CPU")
    parser.add_argument("--child", choices=[*SECTIONS], help=argparse.SUPPRESS)
    parser.add_argument("--sanitized", choices=["right", "mutant"], help=argparse.SUPPRESS)
    parser.add_argument("--on", choices=["cpu", "cuda"], default="cuda", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the sections that were asked for and print what they found."""
    options = options_of(arguments)
    if options.sanitized:
        return sanitized(options.sanitized, options.on)
    if options.child:
        print(json.dumps(measured(options.child, options.budget, rehearse=options.rehearse)))
        return 0
    sections: dict[str, Figures] = {}
    found = {"conditions": conditions(), "sections": sections}
    for name in options.only:
        print(f"== {name}", file=sys.stderr, flush=True)
        sections[name] = isolated(name, options.budget, rehearse=options.rehearse)
        if options.out is not None:
            options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(conformance.table(verdicts_in(sections)), file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))
    return int(any(section["outcome"] == "FAILED" for section in sections.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
