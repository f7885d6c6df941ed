"""What guards make of a log: `python tools/guard_alarms.py LOG PIPELINE [LOG PIPELINE ...]`.

Every source of the pipeline gets the guard of its kind, and every message of the log passes it; no
stage runs. On a log that is sound each rejected message and each change of state is a false alarm.
Printed are the messages of each source, what was rejected, the states, and what a pass took here.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from avrt.config.guard import DEFAULTS
from avrt.config.pipeline import load
from avrt.drivers.gate import Gate
from avrt.drivers.recorder import Recorder
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.metrics.run import RunFigures
from avrt.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def passed(
    log: Path, pipeline: Path
) -> tuple[RunFigures, Counter[str], Mapping[str, Sequence[int]]]:
    """Let a log pass; return what was noted, and by source how many came and what each took."""
    spec = load(pipeline).spec
    sources = tuple(replace(source, guard=DEFAULTS[source.type]) for source in spec.sources)
    spec = replace(spec, sources=sources)
    figures = RunFigures(spec)
    gate = Gate(spec, figures, Recorder(None))
    counts: Counter[str] = Counter()
    took_ns: dict[str, list[int]] = defaultdict(list)
    with open_log(log) as reader:
        for item in MergedLog(reader, spec.sources):
            gate.until(item.log_ns)
            start_ns = time.perf_counter_ns()
            gate.admits(gate.look_at(item))
            took_ns[item.source].append(time.perf_counter_ns() - start_ns)
            counts[item.source] += 1
    return figures, counts, took_ns


def tell(log: Path, pipeline: Path) -> int:
    """Print what became of a log; return how many messages were rejected or states changed."""
    figures, counts, took_ns = passed(log, pipeline)
    print(f"{log} through {pipeline}: {counts.total()} messages")
    alarms = 0
    for name, sensor in figures.sensors.items():
        took = sorted(took_ns[name]) or [0]
        half, most = took[len(took) // 2] / NS_PER_MS, took[len(took) * 95 // 100] / NS_PER_MS
        changes = [(c.state, round(c.at_ns / NS_PER_S, 3)) for c in sensor.changes]
        found = dict(sensor.rejected) or "none rejected"
        more = f"{sensor.missing} missing, {sensor.dropped} points dropped, {changes}"
        print(f"  {name}: {counts[name]}, {found}, {more}, p50 {half:.3f} p95 {most:.3f} ms")
        alarms += sensor.rejected.total() + sensor.change_count
    return alarms


def main(arguments: Sequence[str]) -> None:
    paths = [Path(text) for text in arguments]
    alarms = sum(tell(*pair) for pair in zip(paths[::2], paths[1::2], strict=True))
    print(f"{alarms} messages rejected or states changed")


if __name__ == "__main__":
    main(sys.argv[1:])
