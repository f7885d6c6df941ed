"""Reports from the field of results that were read too early, of memory, and of slow threads.

What a device does is shown by its conformance suite, on CUDA where there is one; what a stage's
thread gets is shown by stages that look.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
import weakref

import pytest
import torch

import avrt
from avrt.device import CpuDevice, CudaDevice, SimulatedDevice, conformance
from avrt.device.conformance import copies, memory
from avrt.device.cpu import CpuStream
from cases import field

REPORTS = ("GPU-01", "GPU-03", "GPU-07", "GPU-09", "GPU-13")
MAKERS = {"cpu": CpuDevice, "simulated": SimulatedDevice, "cuda": CudaDevice}
DEVICES = [
    pytest.param("cpu", marks=pytest.mark.live),
    "simulated",
    pytest.param("cuda", marks=pytest.mark.gpu),
]
STAGES = 4
TINY = 1e-41


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_run.py", REPORTS)


def conforms(test, name):
    """Run one test of the conformance suite on a device; without a GPU it is not run."""
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("not run: no CUDA device")
    (check,) = [check for check in conformance.CHECKS if check.test is test]
    verdict = conformance.run_check(check, MAKERS[name], name)
    assert verdict.outcome == "passed", verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_memory_freed_while_a_side_stream_copies_it_stays_right(reports, device):
    """GPU-01."""
    answer = field.answer(reports, "GPU-01")
    assert answer["rounds"] <= memory.FIELD_ROUNDS
    assert answer["product_bad"] == 0
    conforms(memory.memory_freed_under_a_side_stream_stays_right, device)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_no_result_is_read_before_its_copy_ended(reports, device):
    """GPU-03."""
    answer = field.answer(reports, "GPU-03")
    assert answer["rounds"] <= copies.FIELD_ROUNDS
    assert answer["product_stale"] == 0
    conforms(copies.a_result_is_never_read_before_its_copy_ended, device)


@pytest.mark.slow
def test_what_ran_out_of_memory_is_let_go_before_the_next_try(reports, make_drive):
    """GPU-07: the exception's frames hold what was allocated, on any device, until it is gone."""
    assert field.answer(reports, "GPU-07")["second_attempt_free_equals_first"]
    held, left = [], []

    def fill(cloud):
        left.append(sum(one() is not None for one in held))
        block = torch.ones(1000)
        held.append(weakref.ref(block))
        if len(held) == 1:
            raise torch.OutOfMemoryError(f"no room behind {len(block)}")
        return cloud.stamp.sequence

    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu"}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(fill, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    report = pipeline.replay(make_drive(3))
    assert report.data["jobs"]["met"] == 3
    assert left == [0] * 4


def side_by_side(stage, slots, threads):
    """Return a pipeline that calls one function from as many stages as are looked at."""
    devices = {"cpu": {"type": "cpu", "slots": slots, "threads": threads}}
    pipeline = avrt.Pipeline("p", devices=devices)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    for index in range(STAGES):
        options = {"inputs": {"cloud": "lidar"}, "wcet": "5 ms", "deadline": "60 s"}
        pipeline.add(stage, name=f"s{index}", **options)
    return pipeline


@pytest.mark.live
def test_threads_that_compute_are_no_more_than_were_given(reports, make_drive):
    """GPU-09: stages' threads see the count, and no more of them compute at once than slots."""
    answer = field.answer(reports, "GPU-09")
    cores = len(os.sched_getaffinity(0))
    lock, working, peak, seen = threading.Lock(), set(), [0], set()

    def look(cloud):
        del cloud
        with lock:
            working.add(threading.get_ident())
            peak[0] = max(peak[0], len(working))
        block = torch.full((256, 256), 1.0)
        for _ in range(5):
            block = block @ block / 256
        with lock:
            working.discard(threading.get_ident())
            seen.add((threading.current_thread().name, torch.get_num_threads()))
        return float(block[0, 0])

    report = side_by_side(look, slots=cores, threads=1).run(make_drive(5), rate=20)
    assert seen == {(f"avrt-s{index}", 1) for index in range(STAGES)}
    assert peak[0] <= cores
    assert answer["report_per_stage"]
    conditions = report.data["conditions"]
    told = {name: text for name, text in conditions.items() if name.startswith("stream.")}
    assert told.keys() == {f"stream.s{index}" for index in range(STAGES)}
    assert all(text.startswith("1 thread, ") for text in told.values())


@pytest.mark.live
@pytest.mark.parametrize("threads", [1, 2])
def test_denormal_numbers_are_zero_in_the_thread_of_every_stage(reports, make_drive, threads):
    """GPU-13: also in the threads that share an operation with a stage's own."""
    assert field.answer(reports, "GPU-13")
    seen = []

    def look(cloud):
        del cloud
        left = (torch.full((1 << 17,), TINY) * 1.0).count_nonzero()
        seen.append((threading.current_thread().name, int(left)))
        return int(left)

    pipeline = side_by_side(look, slots=1, threads=threads)
    report = pipeline.run(make_drive(3), rate=20)
    assert set(seen) == {(f"avrt-s{index}", 0) for index in range(STAGES)}
    told = report.data["conditions"]["stream.s0"]
    assert told == f"{threads} thread{'s'[: threads - 1]}, denormal numbers count as zero"


@pytest.mark.live
@pytest.mark.slow
def test_denormal_numbers_do_not_slow_a_stage_down(reports):
    """GPU-13: the limit is the report's; nothing is shown where the processor does not mind."""
    limit = field.answer(reports, "GPU-13")["max_slowdown"]
    kept = slowdown(lambda call: call())
    stream = CpuStream("s")
    flushed = slowdown(lambda call: on(stream, call))
    stream.close()
    assert flushed < limit, f"{kept:.2f} times where they are kept"
    if kept < limit:
        pytest.skip(f"this processor does not mind denormal numbers: {kept:.2f} times")


def on(stream, call):
    """Do a call on a stream, and return what it gave."""
    made, done = [], threading.Event()
    stream.submit(lambda: made.append(call()))
    stream.submit_always(done.set)
    assert done.wait(60)
    return made[0]


def slowdown(where):
    """Return how much longer a convolution takes of denormal numbers; medians of turns."""

    def took(value):
        image = torch.full((1, 16, 64, 64), value)
        net = torch.nn.Conv2d(16, 16, 3, padding=1, bias=False)
        with torch.no_grad():
            net.weight.fill_(0.05)
            net(image)
            start = time.process_time()
            for _ in range(10):
                net(image) * 0.5 + image
            return time.process_time() - start

    turns = [(where(lambda: took(1.0)), where(lambda: took(TINY))) for _ in range(9)]
    normal, tiny = (statistics.median(column) for column in zip(*turns, strict=True))
    return tiny / normal
