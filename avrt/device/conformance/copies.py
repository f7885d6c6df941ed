"""Conformance of copies: content, staging slots, packing, arrivals, and from device to device."""

from __future__ import annotations

from functools import partial

import torch

from avrt.device.base import BufferMisused, StreamPoisoned, WaitTimeout
from avrt.device.conformance.rig import MS, SLOW_NS, Rig, integers, races
from avrt.device.transfer import Part, Transfers, copy_between
from avrt.errors import raised_by

FIELD_ROUNDS = 500
NUMBERS = 512


def a_copy_has_the_content(rig: Rig) -> None:
    executor = rig.executor
    main, transfers = executor.stream("main"), Transfers(executor, slot_bytes=8 * NUMBERS)
    source = torch.arange(NUMBERS)
    buffer, numbers = integers(executor, main, NUMBERS)
    there = transfers.to_device(source, buffer, after=executor.record(main))
    source.zero_()
    executor.wait(main, there)
    executor.launch(main, partial(numbers.add_, 1), writes=(buffer,))
    arrival = transfers.to_host(Part(buffer, (NUMBERS,), torch.int64), after=executor.record(main))
    (got,) = arrival.wait()
    assert got.tolist() == list(range(1, NUMBERS + 1))
    assert races(executor) == 0


def a_staging_slot_is_not_reused_before_its_event(rig: Rig) -> None:
    executor = rig.executor
    main = executor.stream("main")
    transfers = Transfers(executor, slots=2, slot_bytes=8 * NUMBERS)
    targets = [integers(executor, main, NUMBERS) for _ in range(6)]
    executor.synchronize(main)
    for step, (buffer, _) in enumerate(targets):
        executor.delay(transfers.stream, MS)
        transfers.to_device(torch.full((NUMBERS,), step), buffer)
    executor.synchronize(transfers.stream)
    for step, (buffer, _) in enumerate(targets):
        (got,) = transfers.to_host(Part(buffer, (NUMBERS,), torch.int64)).wait()
        assert got.tolist() == [step] * NUMBERS
    if executor.caps.clock == "virtual":
        assert transfers.ring.waits == 4
    assert races(executor) == 0


def borrowed_slots_run_out_and_come_back(rig: Rig) -> None:
    executor = rig.executor
    transfers = Transfers(executor, slots=2, slot_bytes=8)
    buffer, _ = integers(executor, transfers.stream)
    part = Part(buffer, (1,), torch.int64)
    arrivals = [transfers.to_host(part) for _ in range(2)]
    error = raised_by(partial(transfers.to_host, part))
    assert isinstance(error, WaitTimeout), error
    arrivals[0].release()
    assert isinstance(raised_by(arrivals[0].borrow), BufferMisused)
    assert transfers.to_host(part).wait()[0].tolist() == [0]


def small_copies_are_packed_into_one(rig: Rig) -> None:
    executor = rig.executor
    main, transfers = executor.stream("main"), Transfers(executor, slot_bytes=1 << 16)
    sources = [torch.full((3, index + 1), index, dtype=torch.float32) for index in range(10)]
    sources.append(torch.tensor([5], dtype=torch.uint8))
    buffer, views, there = transfers.send(sources)
    assert transfers.copies == 1
    executor.wait(main, there)
    doubled = executor.allocate(buffer.size_bytes, main)
    executor.copy(doubled, buffer, main)
    parts = [Part(buffer, tuple(views[0].shape)), Part(doubled, (3, 1))]
    got = transfers.to_host(*parts, after=executor.record(main)).wait()
    assert transfers.copies == 2
    assert all(one.eq(0).all() for one in got)
    tail = transfers.to_host(Part(buffer, (buffer.size_bytes,), torch.uint8)).wait()[0]
    assert tail[-1] == 5
    executor.deallocate(buffer, main)
    executor.deallocate(doubled, main)
    assert races(executor) == 0


def a_result_is_never_read_before_its_copy_ended(rig: Rig) -> None:
    """Field case GPU-03: 500 results, each read as soon as the arrival gives it."""
    executor = rig.executor
    main, transfers = executor.stream("main"), Transfers(executor, slots=3, slot_bytes=64)
    buffer, number = integers(executor, main)
    part = Part(buffer, (1,), torch.int64)
    stale = 0
    for step in range(1, FIELD_ROUNDS + 1):
        if step % 100 == 0:
            executor.delay(main, SLOW_NS)
        executor.launch(main, partial(number.fill_, step), writes=(buffer,))
        arrival = transfers.to_host(part, after=executor.record(main))
        stale += arrival.wait()[0].tolist() != [step]
        assert executor.query(arrival.event)
    assert stale == 0
    assert races(executor) == 0


def a_failed_copy_harms_no_other(rig: Rig) -> None:
    executor = rig.executor
    bad, good = executor.stream("bad"), executor.stream("good")
    transfers = Transfers(executor, slots=2, slot_bytes=64)
    buffers = [integers(executor, stream) for stream in (bad, good)]
    executor.launch(bad, _breaks, writes=(buffers[0][0],))
    executor.launch(good, partial(buffers[1][1].fill_, 4), writes=(buffers[1][0],))
    parts = [Part(buffer, (1,), torch.int64) for buffer, _ in buffers]
    failed = transfers.to_host(parts[0], after=executor.record(bad))
    right = transfers.to_host(parts[1], after=executor.record(good))
    assert isinstance(raised_by(failed.wait), StreamPoisoned)
    assert right.wait()[0].tolist() == [4]


def a_copy_goes_from_device_to_device(rig: Rig) -> None:
    other = rig.make()
    rig.need(other.device.name != "cuda:0" or torch.cuda.device_count() > 1, "one CUDA device")
    here, there = Transfers(rig.executor, slot_bytes=4096), Transfers(other, slot_bytes=4096)
    source, numbers = integers(rig.executor, here.stream, NUMBERS // 8)
    rig.executor.launch(here.stream, partial(numbers.fill_, 9), writes=(source,))
    target, _ = integers(other, there.stream, NUMBERS // 8)
    copy_between(Part(source, (NUMBERS // 8,), torch.int64), here, target, there)
    (got,) = there.to_host(Part(target, (NUMBERS // 8,), torch.int64)).wait()
    assert got.tolist() == [9] * (NUMBERS // 8)


def _breaks() -> None:
    raise ValueError("a kernel failed")
