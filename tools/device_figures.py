"""What is measured of a device: each function takes a device and a time budget, returns figures.

They need torch and nothing else, run on the CPU and on CUDA alike, and measure what is compared
interleaved. Times are in us, of the host's clock, the first tenth of the samples left out.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from avrt.device import CpuDevice, Executor, Timeline
from avrt.device.overlap import overlap
from avrt.device.transfer import Part, Transfers
from avrt.errors import HardwareFault, raised_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from avrt.device import Stream
    from avrt.device.base import Device

Figures = dict[str, object]

FRAME_BYTES = 6 << 20
ROUNDS = 30
SIZE_CPU, SIZE_CUDA = (96, 160), (384, 640)
DELAY_NS = 2_000_000
FRAME_NS = 4_000_000
NETS_MAX = 50
FRAMES = 8


def hops(make_device: Callable[[], Device], budget_s: float) -> Figures:
    """Measure launch, round trip, hop between streams, and copies of 64 B and 6 MB."""
    figures: Figures = {}
    until = time.monotonic() + budget_s
    with Executor(make_device()) as executor:
        one, two = executor.stream("one"), executor.stream("two")
        steps = {
            "launch_us": lambda: executor.launch(one, int),
            "launch_and_wait_us": lambda: round_trip(executor, one),
            "hop_and_wait_us": lambda: hop(executor, one, two),
        }
        for name, step in steps.items():
            figures[name] = summary(sampled(step, 2000, until))
            executor.synchronize(one)
        for size_bytes, count in ((64, 1000), (FRAME_BYTES, 100)):
            for kind in ("pinned", "pageable") if executor.caps.pinned else ("pageable",):
                for way in ("h2d", "d2h"):
                    step = copying(executor, size_bytes, f"{way}_{size_bytes}_{kind}")
                    name = f"{way}_{size_bytes}_{kind}_us"
                    figures[name] = summary(sampled(step, count, until))
    return figures


def streams(make_device: Callable[[], Device], budget_s: float) -> Figures:
    """Measure two of everything on two streams against one, and copies beside a network.

    Two delays leave the device free for each other, so their speedup is that of the streams alone;
    two networks also share the device's engines.
    """
    timeline = Timeline(200_000)
    delays, networks, alone_us, overlaps = [], [], [], []
    until = time.monotonic() + budget_s
    with Executor(make_device(), timeline=timeline) as executor:
        one, two = executor.stream("one"), executor.stream("two")
        transfers = Transfers(executor, slots=4)
        nets = [network(executor), network(executor)]
        frame_nets = nets_a_frame(run_networks(executor, nets, (one, two), 5) / 10)
        while len(networks) < ROUNDS and (len(networks) < 2 or time.monotonic() < until):
            delays.append(run_delays(executor, (one, one), 2) / run_delays(executor, (one, two), 2))
            apart_ns = run_networks(executor, nets, (one, one), 5)
            networks.append(apart_ns / run_networks(executor, nets, (one, two), 5))
            alone_us.append(apart_ns / 10_000)
            timeline.clear()
            copy_beside_network(executor, transfers, [nets[0]] * frame_nets, one)
            overlaps.append(overlap(timeline.spans(executor.device)))
    shares = [found.fraction for found in overlaps if found.fraction is not None]
    quotients = [found.ratio for found in overlaps if found.ratio is not None]
    return {
        "network_us": summary(alone_us),
        "networks_a_frame": frame_nets,
        "two_delays_speedup": summary(delays),
        "two_networks_speedup": summary(networks),
        "copy_overlap_fraction": summary(shares),
        "copy_by_compute_ratio": summary(quotients),
    }


def failover(make_device: Callable[[], Device], budget_s: float) -> Figures:
    """Let work fail on the device and go on on the CPU; measure from the wait to the result."""
    took: list[float] = []
    done: list[float] = []
    until = time.monotonic() + budget_s
    work = torch.ones(64, 64)
    with Executor(make_device()) as device, Executor(CpuDevice()) as cpu:
        broken, whole = device.stream("work"), cpu.stream("work")
        while len(took) < 50 and (len(took) < 2 or time.monotonic() < until):
            device.launch(broken, fail)
            start_ns = time.perf_counter_ns()
            error = raised_by(partial(device.synchronize, broken))
            assert isinstance(error, HardwareFault), error
            cpu.launch(whole, lambda: done.append(float((work @ work).sum())))
            cpu.synchronize(whole)
            took.append((time.perf_counter_ns() - start_ns) / 1000)
            device.reset(broken)
    return {"failed": int(done != [64.0**3] * len(took)), "to_result_on_cpu_us": summary(took)}


def soak(make_device: Callable[[], Device], budget_s: float) -> Figures:
    """Run a pipeline for the time given; what it holds of the device's memory must not grow."""
    held: list[int] = []
    frames = 0
    until = time.monotonic() + budget_s
    with Executor(make_device()) as executor:
        main = executor.stream("main")
        transfers = Transfers(executor, slots=4, slot_bytes=1 << 20)
        while frames < 400 or time.monotonic() < until:
            buffer, views, there = transfers.send([torch.full((1000,), float(frames % 100))] * 4)
            executor.wait(main, there)
            executor.launch(main, partial(views[0].add_, 1.0), writes=(buffer,))
            arrival = transfers.to_host(Part(buffer, (1000,)), after=executor.record(main))
            assert arrival.wait()[0][0] == frames % 100 + 1
            executor.deallocate(buffer, main)
            frames += 1
            if frames % 200 == 0:
                held.append(reserved_bytes(executor))
    return {
        "failed": int(held[-1] > held[0]),
        "frames": frames,
        "bytes_grown": held[-1] - held[0],
    }


def network(executor: Executor) -> Callable[[], object]:
    """Return the call of a small convolution network, about 20 ms on one core."""
    where = "cuda" if executor.kind == "cuda" else "cpu"
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = [torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU()]
    for _ in range(3):
        layers += [torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers).eval().to(where)
    image = torch.randn(1, 3, *(SIZE_CUDA if where == "cuda" else SIZE_CPU)).to(where)
    return partial(net, image)


def run_networks(
    executor: Executor,
    nets: list[Callable[[], object]],
    on: tuple[Stream, Stream],
    times: int,
) -> int:
    """Launch each network so often on its stream; return how long all of it took, in ns."""
    start_ns = executor.now_ns()
    for _ in range(times):
        for net, stream in zip(nets, on, strict=True):
            executor.launch(stream, net, name="network")
    for stream in on:
        executor.synchronize(stream)
    return executor.now_ns() - start_ns


def run_delays(executor: Executor, on: tuple[Stream, Stream], times: int) -> int:
    """Queue delays on two streams; return how long all of it took, in ns."""
    start_ns = executor.now_ns()
    for _ in range(times):
        for stream in on:
            executor.delay(stream, DELAY_NS)
    for stream in on:
        executor.synchronize(stream)
    return executor.now_ns() - start_ns


def nets_a_frame(network_ns: float) -> int:
    """Return how many networks keep the device busy while the host stages one frame."""
    return min(NETS_MAX, max(1, round(FRAME_NS / network_ns)))


def copy_beside_network(
    executor: Executor, transfers: Transfers, nets: list[Callable[[], object]], stream: Stream
) -> None:
    """Copy 6 MB frames to the device while networks run on the frames before."""
    frame = torch.zeros(FRAME_BYTES, dtype=torch.uint8)
    target = executor.allocate(FRAME_BYTES, transfers.stream)
    for _ in range(FRAMES):
        for net in nets:
            executor.launch(stream, net, name="network")
        transfers.to_device(frame, target)
    executor.synchronize(stream)
    executor.synchronize(transfers.stream)
    executor.deallocate(target, transfers.stream)


def round_trip(executor: Executor, stream: Stream) -> None:
    """Launch something tiny and wait for it."""
    executor.launch(stream, int)
    executor.synchronize(stream)


def hop(executor: Executor, one: Stream, two: Stream) -> None:
    """Let one stream wait for another, and the host for it."""
    executor.wait(two, executor.record(one, timing=False))
    executor.synchronize(two)


def copying(executor: Executor, size_bytes: int, name: str) -> Callable[[], None]:
    """Return a step that copies once and waits; the name says which way and from what memory."""
    stream = executor.stream(name)
    there = executor.allocate(size_bytes, stream).view((size_bytes,), torch.uint8)
    host = torch.zeros(size_bytes, dtype=torch.uint8, pin_memory=name.endswith("pinned"))
    target, source = (there, host) if name.startswith("h2d") else (host, there)

    def step() -> None:
        executor.launch(stream, lambda: target.copy_(source, non_blocking=True))
        executor.synchronize(stream)

    return step


def fail() -> None:
    """Fail as broken hardware does."""
    raise HardwareFault("injected", "this is a drill")


def reserved_bytes(executor: Executor) -> int:
    """Return what is held of the device's memory."""
    if executor.kind == "cuda":
        return torch.cuda.memory_reserved()
    held = executor.pool.statistics
    return held.bytes_in_use + held.bytes_free


def sampled(step: Callable[[], object], count: int, until: float) -> list[float]:
    """Return the time of each call in us, the first tenth left out."""
    instants = [time.perf_counter_ns()]
    while len(instants) <= count and (len(instants) < 20 or time.monotonic() < until):
        step()
        instants.append(time.perf_counter_ns())
    times = [(after - before) / 1000 for before, after in pairwise(instants)]
    return times[len(times) // 10 :]


def summary(values: list[float]) -> dict[str, float]:
    """Return n, p50, p95, p99 and max."""
    if len(values) < 2:
        return {"n": len(values)}
    at = statistics.quantiles(values, n=100, method="inclusive")
    shown = {"p50": at[49], "p95": at[94], "p99": at[98], "max": max(values)}
    return {"n": len(values), **{name: round(value, 4) for name, value in shown.items()}}
