"""Conformance of a device in virtual time: repeatable, as parallel as it has engines, faulty."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from avrt.device.base import WaitTimeout
from avrt.device.executor import Executor
from avrt.device.simulated import HANG, SimulatedDevice
from avrt.errors import HardwareFault, raised_by

if TYPE_CHECKING:
    from avrt.device.conformance.rig import Rig

COST_NS = 1_000_000


def the_same_calls_give_the_same_log(rig: Rig) -> None:
    _need_virtual(rig)
    assert _two_streams(2) == _two_streams(2)


def two_engines_overlap(rig: Rig) -> None:
    _need_virtual(rig)
    end_ns, _ = _two_streams(2)
    assert 3 * COST_NS <= end_ns < 4 * COST_NS


def one_engine_serialises(rig: Rig) -> None:
    _need_virtual(rig)
    end_ns, _ = _two_streams(1)
    assert end_ns >= 6 * COST_NS


def a_deadlock_is_told_at_once(rig: Rig) -> None:
    _need_virtual(rig)
    device = SimulatedDevice()
    device.fault = lambda name: HANG if name == "stuck" else None
    executor = Executor(device)
    one, two = executor.stream("one"), executor.stream("two")
    executor.launch(one, int, name="stuck")
    executor.wait(two, executor.record(one))
    error = raised_by(partial(executor.synchronize, two))
    assert isinstance(error, WaitTimeout), error
    assert "deadlock" in str(error)
    assert "hung: one" in str(error)
    assert executor.close() == ["one", "two"]


def injected_faults_are_errors_of_the_stream(rig: Rig) -> None:
    _need_virtual(rig)
    device = SimulatedDevice()
    device.fault = lambda name: HardwareFault("ecc", name) if name == "bad" else None
    executor = Executor(device)
    stream = executor.stream("s")
    ran: list[int] = []
    executor.launch(stream, ran.append, 1, name="good")
    executor.launch(stream, ran.append, 2, name="bad")
    executor.launch(stream, ran.append, 3, name="good")
    error = raised_by(partial(executor.synchronize, stream))
    assert isinstance(error, HardwareFault), error
    assert ran == [1]


def what_is_slowed_down_costs_more(rig: Rig) -> None:
    _need_virtual(rig)
    device = SimulatedDevice()
    device.slow = lambda name: 4.0 if name == "slow" else 1.0
    executor = Executor(device)
    stream = executor.stream("s")
    ends = [executor.record(stream)]
    for name in ("usual", "slow"):
        executor.launch(stream, int, cost_ns=COST_NS, name=name)
        ends.append(executor.record(stream))
    executor.synchronize(stream)
    assert executor.elapsed_ns(ends[1], ends[2]) == 4 * COST_NS


def _need_virtual(rig: Rig) -> None:
    rig.need(rig.executor.caps.clock == "virtual", "only in virtual time")


def _two_streams(engines: int) -> tuple[int, list[object]]:
    device = SimulatedDevice(engines=engines)
    executor = Executor(device)
    streams = [executor.stream("one"), executor.stream("two")]
    for stream in streams:
        for _ in range(3):
            executor.launch(stream, int, cost_ns=COST_NS)
    for stream in streams:
        executor.synchronize(stream)
    return executor.now_ns(), [*device.log]
