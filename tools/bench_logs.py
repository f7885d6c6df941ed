"""How long avrt takes to read a log, against the bare `mcap` library on the same file.

Both check the CRC of every chunk and neither decompresses an image; avrt also decodes every message
it can to views. Runs are interleaved, the file is in the page cache. Prints one JSON object.

    python tools/bench_logs.py LOG.mcap [RUNS]
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from mcap.reader import make_reader

from avrt.logs import open_log
from avrt.logs.decode import READABLE, Decoder

if TYPE_CHECKING:
    from collections.abc import Callable


def read_bare(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in make_reader(file, validate_crcs=True).iter_messages())


def read_avrt(path: Path) -> int:
    decoder, count = Decoder(), 0
    with open_log(path) as log:
        for raw in log.messages():
            if raw.type in READABLE:
                decoder.decode(raw)
            count += 1
    return count


def timed_ns(read: Callable[[Path], int], path: Path) -> tuple[int, int]:
    start_ns = time.perf_counter_ns()
    count = read(path)
    return time.perf_counter_ns() - start_ns, count


def figures(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=20)
    return {
        "p50": round(statistics.median(values), 4),
        "p95": round(cuts[-1], 4),
        "max": round(max(values), 4),
        "n": len(values),
    }


def main() -> None:
    path, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50
    first = [timed_ns(read, path)[0] / 1e6 for read in (read_bare, read_avrt)]
    bare_ms, avrt_ms, ratios = [], [], []
    counts = set()
    for _ in range(runs):
        bare_ns, bare_count = timed_ns(read_bare, path)
        avrt_ns, avrt_count = timed_ns(read_avrt, path)
        counts |= {bare_count, avrt_count}
        bare_ms.append(bare_ns / 1e6)
        avrt_ms.append(avrt_ns / 1e6)
        ratios.append(avrt_ns / bare_ns)
    report = {
        "ratio": figures(ratios),
        "bare_ms": figures(bare_ms),
        "avrt_ms": figures(avrt_ms),
        "first_run_ms": {"bare": round(first[0], 2), "avrt": round(first[1], 2)},
        "messages": sorted(counts),
        "conditions": {
            "log": path.name,
            "size_bytes": path.stat().st_size,
            "crc": True,
            "page_cache": "warm",
            "cpu": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            **{name: version(name) for name in ("mcap", "rosbags", "numpy", "zstandard")},
        },
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
