"""Kill runs while they are recorded, at random moments, and see what can be recovered.

    python tools/kill_recording.py LOG PIPELINE [--times 50] [--seed 0] [--live]

A replay in virtual time decides and computes the same at every run, so what is recovered of one
that was killed must be the beginning of what a whole one records, topic by topic and byte by byte
(but for what jobs took here, which differs from run to run). With --live the pipeline runs on the
built-in world, the process that writes its record is killed too, and what is recovered must verify
as far as it goes. Exit code 1 when one does not.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil

from avrt.drivers.verify import verify
from avrt.errors import InputError
from avrt.logs.mcap.recover import recover
from avrt.logs.reader import open_log
from avrt.logs.record.run_record import EXECUTION

POLL_S = 0.005
NOTHING_BYTES = 1024  # a file that small has no whole record of what the run was


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--live", action="store_true")
    options = parser.parse_args()
    draw = random.Random(options.seed)  # noqa: S311 - when to kill is no secret
    with tempfile.TemporaryDirectory(prefix="avrt-") as folder:
        whole = Path(folder) / "whole.mcap"
        begin = time.monotonic()
        recording(options, whole).wait()
        seconds = time.monotonic() - begin - first_byte_s(options, Path(folder) / "probe.mcap")
        known = contents(whole)
        moments = [draw.uniform(0, 0.95 * seconds) for _ in range(options.times)]
        bad = 0
        for number, after_s in enumerate(moments):
            out = Path(folder) / f"{number}.mcap"
            bad += not attempt(options, out, after_s, known)
            for path in (out, out.with_suffix(".mended.mcap")):
                path.unlink(missing_ok=True)
    print(f"{options.times - bad} of {options.times} recovered as they were written")
    return 1 if bad else 0


def recording(options: argparse.Namespace, out: Path) -> subprocess.Popen[bytes]:
    """Start a run that is recorded."""
    if options.live:
        arguments = ["run", options.pipeline, "--duration", "5s", "--force", "--record", out]
    else:
        arguments = ["replay", options.log, "-p", options.pipeline, "-o", out]
    return subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-m", "avrt", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def first_byte_s(options: argparse.Namespace, out: Path) -> float:
    """Return how long it takes until something is in the record."""
    begin = time.monotonic()
    process = recording(options, out)
    wait_for_bytes(process, out)
    took = time.monotonic() - begin
    kill(process)
    return took


def wait_for_bytes(process: subprocess.Popen[bytes], out: Path) -> None:
    while process.poll() is None and not (out.exists() and out.stat().st_size):
        time.sleep(POLL_S)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a run and whatever writes for it."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    process.send_signal(signal.SIGKILL)
    for child in children:
        child.kill()
    process.wait()
    psutil.wait_procs(children)


def contents(path: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return log time and bytes of every message of a record, by topic."""
    found: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    with open_log(path) as log:
        for message in log.messages():
            if message.topic != EXECUTION:
                found[message.topic].append((message.log_ns, bytes(message.data)))
    return found


def attempt(
    options: argparse.Namespace,
    out: Path,
    after_s: float,
    known: dict[str, list[tuple[int, bytes]]],
) -> bool:
    """Kill a run some time after its record began; return whether the record is recovered."""
    process = recording(options, out)
    wait_for_bytes(process, out)
    time.sleep(after_s)
    kill(process)
    mended = out.with_suffix(".mended.mcap")
    try:
        told = recover(out, mended)
    except InputError as error:
        print(f"{after_s:6.3f} s: {error}")
        return out.stat().st_size < NOTHING_BYTES
    found = contents(mended)
    if options.live:
        good = not found or verify(mended).equal
    else:
        good = all(known[topic][: len(items)] == items for topic, items in found.items())
    size, copied = out.stat().st_size, sum(map(len, found.values()))
    whole = sum(map(len, known.values()))
    verdict = "as written" if good else "OTHERWISE"
    print(f"{after_s:6.3f} s: {size:9} bytes, {copied:5} messages of {whole}, "
          f"{len(told.damage)} places damaged: {verdict}", flush=True)  # fmt: skip
    return good


if __name__ == "__main__":
    sys.exit(main())
