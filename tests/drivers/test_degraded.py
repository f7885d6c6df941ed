"""Four GPUs, three, two, the CPU alone: the rates follow from what a frame takes where it runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from avrt.api.scenario import Scenario
from avrt.drivers.recorded import prepare
from avrt.drivers.scenario import run_scenario
from avrt.model.execution import ByDevice, Constant
from avrt.model.scenario import Expectation

PATH = Path(__file__).parents[2] / "scenarios" / "four_three_two_cpu.yaml"
MS = 1_000_000
PHASES = ((0, 1900), (2100, 3900), (4100, 5900), (6100, 7900), (8200, 10_000))


@pytest.fixture(scope="module")
def scenario():
    return Scenario.load(PATH).spec


def rates(spec):
    """Return the frames served a second in each phase, rounded."""
    windows = [(from_ms * MS, to_ms * MS) for from_ms, to_ms in PHASES]
    expect = tuple(
        Expectation("all", "", "met_rate", "exactly", -1, "-1 Hz", window) for window in windows
    )
    unmet = run_scenario(prepare(replace(spec, expect=expect)), 1).unmet
    return [round(float(item.sentence.partition("found ")[2].split(" ")[0])) for item in unmet]


def with_times(spec, gpu_ns, cpu_ns):
    """The scenario with constant times on each device."""
    models = {
        name: ByDevice(
            {device: Constant(cpu_ns if device == "cpu" else gpu_ns) for device in model.models}
        )
        for name, model in spec.execution.items()
    }
    return replace(spec, execution=models)


def test_rates_as_declared(scenario):
    assert rates(scenario) == pytest.approx([300, 225, 150, 30, 300], abs=2)


def test_a_gpu_of_twice_the_speed_has_room_for_a_second_camera(scenario):
    """Two lost: one GPU has three cameras and serves two; all lost changes nothing."""
    faster = with_times(scenario, 13_333_333 // 2, 33 * MS)
    assert rates(faster) == pytest.approx([300, 300, 225, 30, 300], abs=2)


def test_a_faster_cpu_serves_more_when_it_is_alone(scenario):
    faster = with_times(scenario, 13_300_000, 20 * MS)
    assert rates(faster) == pytest.approx([300, 225, 150, 50, 300], abs=2)


def test_on_a_cpu_that_is_too_slow_for_the_deadline_no_frame_is_in_time(scenario):
    slower = with_times(scenario, 13_300_000, 66 * MS)
    assert rates(slower) == pytest.approx([300, 225, 150, 0, 300], abs=2)


def test_without_fallbacks_a_lost_gpu_is_a_lost_camera(scenario):
    devices = tuple(replace(device, fallback=None) for device in scenario.pipeline.devices)
    alone = replace(scenario, pipeline=replace(scenario.pipeline, devices=devices))
    assert rates(alone) == pytest.approx([300, 225, 150, 0, 300], abs=2)
