"""Overload that the declared figures alone show."""

from __future__ import annotations

from dataclasses import replace

from avrt.metrics.load import overload_warnings
from avrt.model.spec import DeviceSpec, PipelineSpec, SegmentSpec, StageSpec

MS = 1_000_000


def pipeline(*stages, slots=1):
    made = tuple(
        StageSpec(
            name=f"s{index}",
            device="cpu",
            wcet_ns=wcet * MS,
            deadline_ns=deadline * MS,
            period_ns=period * MS,
        )
        for index, (wcet, deadline, period) in enumerate(stages)
    )
    return PipelineSpec(name="p", devices=(DeviceSpec(name="cpu", slots=slots),), stages=made)


def test_a_pipeline_that_can_keep_up_has_no_warning():
    assert overload_warnings(pipeline((5, 10, 10), (5, 10, 10))) == []


def test_a_wcet_above_its_deadline_and_its_period_is_told():
    assert overload_warnings(pipeline((30, 20, 25), slots=2)) == [
        "s0: wcet 30 ms is above its deadline 20 ms: every job will be late",
        "s0: wcet 30 ms is above its period 25 ms: it falls behind",
    ]


def test_a_device_that_is_asked_for_more_than_it_has_is_told():
    stages = ((5, 10, 10), (6, 10, 10))
    assert overload_warnings(pipeline(*stages)) == ["cpu: 1.10 of 1 slot are asked for: overload"]
    assert overload_warnings(pipeline(*stages, slots=2)) == []


def test_segments_ask_for_their_own_devices_and_one_that_spins_for_its_host_too():
    def asked(wait):
        segments = (
            SegmentSpec(device="cpu", wcet_ns=4 * MS),
            SegmentSpec(device="gpu", wcet_ns=7 * MS, wait=wait),
        )
        stage = StageSpec(name="s", device="cpu", wcet_ns=11 * MS, deadline_ns=11 * MS,
                          period_ns=11 * MS, segments=segments)  # fmt: skip
        twice = tuple(replace(stage, name=name) for name in "st")
        devices = (DeviceSpec(name="cpu"), DeviceSpec(name="gpu"))
        return overload_warnings(PipelineSpec(name="p", devices=devices, stages=twice))

    gpu = "gpu: 1.27 of 1 slot are asked for: overload"
    assert asked("suspend") == [gpu]
    assert asked("spin") == ["cpu: 2.00 of 1 slot are asked for: overload", gpu]
