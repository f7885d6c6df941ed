"""What a pipeline declares, beside what the host can give."""

from fractions import Fraction

import pytest

from avrt.config.pipeline import parse
from avrt.device.samples import ResourceSample
from avrt.exec.room import Demand, Room, declared_demand, host_room, tell_room

PIPELINE = """
pipeline: small
devices:
  cpu: {type: cpu, slots: 2}
  gpu: {type: "cuda:0", slots: 1, fallback: cpu}
sources:
  lidar: {type: lidar, topic: /lidar, rate: 10 Hz}
  radar: {type: radar, topic: /radar}
stages:
  one: {device: cpu, inputs: {cloud: lidar}, wcet: 25 ms, deadline: 50 ms}
  two: {device: gpu, inputs: {cloud: lidar}, wcet: 90 ms, deadline: 90 ms}
  three: {device: cpu, inputs: {targets: radar}, wcet: 5 ms, deadline: 50 ms}
  four:
    inputs: {cloud: lidar}
    deadline: 90 ms
    segments: [{device: cpu, wcet: 5 ms}, {device: gpu, wcet: 8 ms, wait: suspend}]
"""


@pytest.fixture
def spec():
    return parse(PIPELINE, "small.yaml").spec


def test_stages_on_processors_are_added_up(spec):
    assert declared_demand(spec) == Demand(Fraction(3, 10), ("three",))


def test_room_is_what_others_leave():
    sample = ResourceSample(0, 1, 4, 2.0, others_cores=1.0, steal_cores=0.5, available_bytes=7)
    assert host_room(sample) == Room(2.5, 7)
    assert host_room(sample, usable_cores=1.5) == Room(1.5, 7)
    assert host_room(ResourceSample(0, 1, 4, 0.0)) == Room(4.0)


def test_both_are_told_beside_each_other():
    told = tell_room(Demand(Fraction(3, 2), ("radar",)), Room(1.0, 3 << 30), 4 << 30)
    assert told == (
        "1.50 cores declared, 1.00 free now: TOO LITTLE (not counted, no known period: radar); "
        "3.0 GiB of memory free now for 4.0 GiB: TOO LITTLE"
    )
    assert tell_room(Demand(Fraction(1)), Room(1.0)) == "1.00 cores declared, 1.00 free now: enough"
    assert tell_room(Demand(Fraction(0)), Room(1.0, 3 << 30), 1 << 30).endswith("1.0 GiB: enough")
