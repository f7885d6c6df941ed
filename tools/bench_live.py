"""Measure the live driver and print one JSON object: figures with their conditions.

    python tools/bench_live.py hop [--xronos PYTHON] [--holoscan PYTHON]   source to stage, peers
    python tools/bench_live.py jitter                 late wake-ups at 200 Hz, bare sleep beside it
    python tools/bench_live.py frames [--count N]     how many small frames a second, and memory

Blocks of all contenders alternate in one run, the order turned by one each round; `times_eventfd`
is the ratio of two p50s of that run. Peers need an environment of their own: `hop_peers` says how
it is made. All times are ns.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from hop_contenders import (
    SOURCE,
    STAGE,
    Eventfd,
    Feed,
    Pace,
    Queue,
    Traffic,
    avrt_hop,
    bare_hop,
    pipeline,
    run_live,
)
from hop_peers import Peer

import avrt
from avrt.drivers.conditions import read_conditions
from avrt.drivers.host_watch import HostWatch
from avrt.drivers.live import LiveOptions, live
from avrt.drivers.wall import WallClock
from avrt.metrics.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.drivers.result import RunResult

    Hop = Callable[..., list[int]]

SMALL = Traffic("64 B", 64, 500, 500, 50)
LARGE = Traffic("6 MB", 6_000_000, 30, 60, 6)
RIGHTS = {"realtime": True, "ordinary": False}
TICK_HZ = 200
TICKS = 1000
WINDOW = 4  # frames on their way at once; a mailbox holds eight


def bench_hop(peers: dict[str, str], rounds: int) -> dict[str, object]:
    """Return the latency of a hop by size, rights and contender."""
    contenders: dict[str, Hop] = {
        "avrt": avrt_hop,
        "avrt_whole": partial(avrt_hop, whole=True),
        "eventfd": partial(bare_hop, Eventfd),
        "queue": partial(bare_hop, Queue),
    }
    processes = {kind: Peer(kind, python) for kind, python in peers.items()}
    contenders.update((kind, partial(_peer_hop, peer)) for kind, peer in processes.items())
    found: dict[str, object] = {kind: peer.version for kind, peer in processes.items()}
    for traffic in (SMALL, LARGE):
        for rights, realtime in RIGHTS.items():
            name = f"{traffic.name}, {rights}"
            found[name] = _interleaved(contenders, rounds, traffic, realtime=realtime)
            print_table(f"hop, {name}", found[name])
    for peer in processes.values():
        peer.close()
    return found


def _interleaved(
    contenders: dict[str, Hop], rounds: int, traffic: Traffic, *, realtime: bool
) -> dict[str, dict[str, float | None]]:
    latencies = {name: Distribution() for name in contenders}
    names = list(contenders)
    for index in range(rounds):
        turn = index % len(names)
        for name in names[turn:] + names[:turn]:
            for latency_ns in contenders[name](traffic, realtime=realtime):
                latencies[name].add(latency_ns)
    found = {name: dict(latency.summary()) for name, latency in latencies.items()}
    return _against(found, "eventfd")


def _against(
    found: dict[str, dict[str, int | None]], reference: str
) -> dict[str, dict[str, float | None]]:
    base = found[reference]["p50"]
    return {
        name: {**figures, f"times_{reference}": round(figures["p50"] / base, 2)}
        for name, figures in found.items()
    }


def _peer_hop(peer: Peer, traffic: Traffic, *, realtime: bool) -> list[int]:
    latencies = peer.hop(traffic.size_bytes, traffic.rate_hz, traffic.total, realtime=realtime)
    return latencies[traffic.warm_up :]


def bench_jitter(rounds: int) -> dict[str, object]:
    """Return how late a live driver wakes for its timer, and a thread that only sleeps."""
    found: dict[str, object] = {}
    for rights, realtime in RIGHTS.items():
        late = {"driver": Distribution(), "bare_sleep": Distribution()}
        for _ in range(rounds):
            for late_ns in _driver_lateness(realtime=realtime):
                late["driver"].add(late_ns)
            for late_ns in _sleep_lateness(realtime=realtime):
                late["bare_sleep"].add(late_ns)
        summaries = {name: dict(one.summary()) for name, one in late.items()}
        found[rights] = _against(summaries, "bare_sleep")
        print_table(f"jitter at {TICK_HZ} Hz, {rights}", found[rights])
    return found


def _ticking() -> avrt.Pipeline:
    made = avrt.Pipeline("jitter")
    made.add(lambda: 1, name=STAGE, period="5 ms", wcet="1 ms", deadline="4 ms")
    return made


def _driver_lateness(*, realtime: bool) -> Sequence[int]:
    made = _ticking()
    ended = threading.Event()
    feed = Feed(None, 1, partial(ended.wait, TICKS / TICK_HZ))
    options = LiveOptions(is_realtime=realtime)
    result: RunResult = live(_with_source(made).spec, made.build(), [feed], WallClock(), options)
    return result.wakeup_late_ns.values[TICK_HZ // 10 :]


def _with_source(made: avrt.Pipeline) -> avrt.Pipeline:
    made.source(SOURCE, type="camera", topic="/sensor", rate="1 Hz")
    return made


def _sleep_lateness(*, realtime: bool) -> Sequence[int]:
    late: list[int] = []
    host = HostWatch(_ticking().spec, is_realtime=realtime)

    def tick() -> None:
        host.driver()
        pace = Pace(TICK_HZ)
        for _ in range(TICKS):
            planned_ns = pace.wait()
            late.append(time.perf_counter_ns() - planned_ns)

    with host:
        thread = threading.Thread(target=tick)
        thread.start()
        thread.join()
    return late[TICK_HZ // 10 :]


def bench_frames(count: int) -> dict[str, object]:
    """Return how fast small frames go through a live run, and what that leaves behind.

    The source sends a frame as soon as fewer than WINDOW are on their way.
    """
    room = threading.Semaphore(WINDOW)
    process = psutil.Process()
    levels: dict[str, dict[str, int]] = {}
    sent = 0

    def look(name: str) -> None:
        levels[name] = {"rss_bytes": process.memory_info().rss, "descriptors": process.num_fds()}

    def wait() -> None:
        nonlocal sent
        room.acquire()
        if sent in {count // 100, count // 2}:
            look("start" if sent < count // 2 else "half")
        sent += 1

    def enter(frame: avrt.Message[object]) -> int:
        room.release()
        return frame.stamp.sequence

    feed = Feed(SMALL.payload(), count, wait)
    result = run_live(pipeline(enter), feed, realtime=True)
    look("end")
    spent_s = (feed.sent_ns[-1] - feed.sent_ns[0]) / 1e9
    found = {
        "frames": count,
        "frames_per_s": round(count / spent_s),
        "dropped": sum(result.dropped.values()),
        "jobs": {name: jobs for name, jobs in result.figures.jobs().items() if jobs},
        **levels,
    }
    print(json.dumps(found, indent=1))
    return found


def print_table(title: str, rows: object) -> None:
    """Print figures as microseconds, one contender a line."""
    assert isinstance(rows, dict)
    print(f"{title}  (us)")
    for name, figures in rows.items():
        told = [
            f"{key} {value if key.startswith(('count', 'times')) else round(value / 1000, 1)}"
            for key, value in figures.items()
        ]
        print(f"  {name:<12}" + "  ".join(told))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the live driver.")
    parser.add_argument("what", choices=("hop", "jitter", "frames"))
    parser.add_argument("--xronos", metavar="PYTHON")
    parser.add_argument("--holoscan", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    conditions = read_conditions()
    if arguments.what == "hop":
        kinds = {"xronos": arguments.xronos, "holoscan": arguments.holoscan}
        peers = {kind: python for kind, python in kinds.items() if python is not None}
        found = bench_hop(peers, arguments.rounds)
    elif arguments.what == "jitter":
        found = bench_jitter(arguments.rounds)
    else:
        found = bench_frames(arguments.count)
    conditions["load_1min_after"] = f"{os.getloadavg()[0]:.2f}"
    told = json.dumps({arguments.what: found, "conditions": conditions}, indent=1)
    if arguments.json is None:
        print(told)
    else:
        arguments.json.write_text(told + "\n")


if __name__ == "__main__":
    main()
