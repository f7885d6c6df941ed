"""What copies refuse, and what they leave behind when they do."""

from __future__ import annotations

import pytest
import torch

from avrt.device import Executor, OrderChecker, SimulatedDevice
from avrt.device.base import BufferMisused, StreamPoisoned, WaitTimeout
from avrt.device.transfer import Part, Transfers

MS = 1_000_000


@pytest.fixture
def transfers():
    executor = Executor(SimulatedDevice(), checker=OrderChecker())
    return Transfers(executor, slots=2, slot_bytes=64)


def test_what_does_not_fit_a_slot_or_its_target_is_refused(transfers):
    target = transfers.executor.allocate(8, transfers.stream)
    with pytest.raises(BufferMisused, match="a copy of 128 bytes; slots hold 64"):
        transfers.to_device(torch.zeros(32), target)
    with pytest.raises(BufferMisused, match="16 bytes into a buffer of 8"):
        transfers.to_device(torch.zeros(4), target)
    with pytest.raises(BufferMisused, match="a copy of 0 bytes"):
        transfers.send([])
    assert transfers.copies == 0
    assert transfers.ring.take() is transfers.ring._slots[0]


def test_a_freed_source_is_refused_before_a_slot_is_held(transfers):
    source = transfers.executor.allocate(8, transfers.stream)
    transfers.executor.deallocate(source, transfers.stream)
    for _ in range(3):
        with pytest.raises(BufferMisused, match="freed"):
            transfers.to_host(Part(source, (2,)))


def test_a_slot_waits_for_its_last_copy_and_no_longer(transfers):
    executor = transfers.executor
    target = executor.allocate(8, transfers.stream)
    executor.delay(transfers.stream, 10 * MS)
    for value in range(2):
        transfers.to_device(torch.full((2,), float(value)), target)
    assert transfers.ring.waits == 0
    before_ns = executor.now_ns()
    transfers.to_device(torch.full((2,), 2.0), target)
    assert transfers.ring.waits == 1
    assert executor.now_ns() >= before_ns + 9 * MS
    (got,) = transfers.to_host(Part(target, (2,))).wait()
    assert got.tolist() == [2.0, 2.0]


def test_an_arrival_is_there_only_after_its_copy(transfers):
    executor = transfers.executor
    source = executor.allocate(8, transfers.stream)
    executor.launch(transfers.stream, source.view((2,)).fill_, 3.0, writes=(source,))
    executor.delay(transfers.stream, 10 * MS)
    arrival = transfers.to_host(Part(source, (2,)))
    assert not arrival.is_there()
    with pytest.raises(WaitTimeout):
        arrival.borrow(MS)
    (view,) = arrival.borrow()
    assert arrival.is_there()
    assert view.tolist() == [3.0, 3.0]
    arrival.release()


def test_an_arrival_behind_a_failure_raises_each_time_and_its_slot_comes_back(transfers):
    executor = transfers.executor
    main = executor.stream("main")
    source = executor.allocate(8, main)
    executor.launch(main, lambda: 1 / 0, writes=(source,))
    for _ in range(3):
        arrival = transfers.to_host(Part(source, (2,)), after=executor.record(main))
        for _ in range(2):
            with pytest.raises(StreamPoisoned, match="division by zero"):
                arrival.wait()
        arrival.release()


def test_a_forgotten_wait_for_the_producer_is_a_race(transfers):
    executor = transfers.executor
    main = executor.stream("main")
    source = executor.allocate(8, main)
    executor.launch(main, source.view((2,)).zero_, writes=(source,))
    transfers.to_host(Part(source, (2,))).wait()
    assert executor.checker.race_count == 1


def test_parts_of_many_types_arrive_as_they_were_sent(transfers):
    sent = [torch.tensor([1, 2], dtype=torch.int16), torch.tensor([0.5]), torch.tensor([True])]
    wide = Transfers(transfers.executor, name="wide", slot_bytes=4096)
    buffer, views, _ = wide.send(sent)
    assert [view.dtype for view in views] == [one.dtype for one in sent]
    parts = [Part(buffer, tuple(one.shape), one.dtype) for one in sent[:1]]
    (got,) = wide.to_host(*parts).wait()
    assert torch.equal(got, sent[0])
    assert all((view.data_ptr() - buffer.storage.data_ptr()) % 256 == 0 for view in views)
