"""Where a stage computes, and what becomes of it when that is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.errors import FaultError, HardwareFault
from avrt.exec.places import OnProcessor, places_of, urgency, works
from avrt.exec.runner import fault_of
from avrt.exec.scrub import ScrubPlan
from avrt.exec.stream import Stream, wait
from avrt.model.spec import DeviceSpec, PipelineSpec, RedundancySpec, StageSpec
from avrt.model.stage import Stage

FOREVER_NS = 60 * 10**9


class Placed:
    """A place that tells what is computed on it."""

    def __init__(self, device, seen):
        self.device = device
        self.seen = seen

    def compute(self, call):
        self.seen.append(self.device)
        return call()


class Asked(Stage):
    """A stage that notes where it is sent."""

    def __init__(self, refused=()):
        self.sent = []
        self.refused = refused

    def place(self, device):
        if device in self.refused:
            raise HardwareFault("device", f"{device} is broken")
        self.sent.append(device)

    def process(self, number):
        return number


class Weighing(Asked):
    """A stage with a weight that goes where it goes."""

    def __init__(self):
        super().__init__()
        self.weight = np.ones(4)

    def place(self, device):
        super().place(device)
        self.weight = self.weight.copy()

    def weight_arrays(self):
        return [self.weight]

    def process(self, number):
        return number * self.weight


def streamed(stage, seen):
    places = {
        "gpu": lambda: Placed("cuda:0", seen),
        "cpu": lambda: Placed("cpu", seen),
    }
    return Stream("it", stage, places=places, scrub=ScrubPlan(9, 9))


def results(stream, devices):
    futures = [stream.submit({"number": i}, device=device) for i, device in enumerate(devices)]
    return [wait(future, FOREVER_NS) for future in futures]


def test_a_stage_is_sent_to_its_own_device_before_it_is_warm():
    stage, seen = Asked(), []
    stream = streamed(stage, seen)
    assert wait(stream.warm(), FOREVER_NS).fault is None
    assert (stage.sent, seen) == (["cuda:0"], ["cuda:0"])
    stream.close()


def test_a_stage_follows_its_jobs_and_is_told_once_each_time():
    stage, seen = Asked(), []
    stream = streamed(stage, seen)
    done = results(stream, ["gpu", "gpu", "cpu", "cpu", "gpu"])
    assert [result.payload for result in done] == [0, 1, 2, 3, 4]
    assert stage.sent == ["cuda:0", "cpu", "cuda:0"]
    assert seen == ["cuda:0", "cuda:0", "cpu", "cpu", "cuda:0"]
    stream.close()


def test_a_stage_that_cannot_go_there_fails_there_and_works_elsewhere():
    stream = streamed(Asked(refused={"cuda:0"}), [])
    first, second = results(stream, ["gpu", "cpu"])
    assert isinstance(first.fault, HardwareFault)
    assert second.payload == 1
    stream.close()


def test_weights_that_changed_on_the_way_to_another_device_are_mended_there():
    stage = Weighing()
    stream = streamed(stage, [])
    assert wait(stream.warm(), FOREVER_NS).fault is None
    (done,) = results(stream, ["gpu"])
    stage.weight[2] = 5.0
    told, after = results(stream, ["cpu", "cpu"])
    assert told.fault.kind == "weights"
    assert [list(result.payload) for result in (done, after)] == [[0] * 4, [1] * 4]
    stream.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("AcceleratorError", "device"),
        ("OutOfMemoryError", "out_of_memory"),
        ("ValueError", "exception"),
    ],
)
def test_an_error_of_the_device_is_no_error_of_the_stage(name, kind):
    fault = fault_of(type(name, (RuntimeError,), {})("CUDA error: device-side assert triggered"))
    assert isinstance(fault, FaultError)
    assert fault.kind == kind
    assert isinstance(fault, HardwareFault) == (kind == "device")


def stage_of(name, **keys):
    defaults = {"device": "gpu", "wcet_ns": 1, "deadline_ns": 10, "period_ns": 10}
    return StageSpec(name=name, **{**defaults, **keys})


def spec_of(*stages, policy="dm"):
    devices = (DeviceSpec(name="gpu", type="cuda:0", fallback="cpu"), DeviceSpec(name="cpu"))
    return PipelineSpec(name="p", policy=policy, devices=devices, stages=stages)


def test_a_stage_has_a_place_on_its_device_and_on_each_fallback():
    stage = stage_of("it")
    places = places_of(spec_of(stage), stage, "it")
    assert list(places) == ["gpu", "cpu"]
    assert isinstance(places["cpu"](), OnProcessor)


def test_each_copy_has_the_places_of_its_own_device():
    stage = stage_of("it", redundancy=RedundancySpec(copies=2, devices=("gpu", "cpu")))
    found = [list(places_of(spec_of(stage), stage, task)) for task in stage.task_names]
    assert found == [["gpu", "cpu"], ["cpu"]]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_streams_on_a_gpu_are_as_urgent_as_the_policys_fixed_order_says(deadlines):
    stages = [stage_of(f"s{i}", deadline_ns=ns) for i, ns in enumerate(deadlines)]
    spec = spec_of(*stages)
    for stage in stages:
        later = [other for other in stages if other.deadline_ns > stage.deadline_ns]
        assert urgency(spec, stage) == len(later)


def test_a_policy_without_a_fixed_order_gives_all_streams_the_same_urgency():
    stages = [stage_of("a", deadline_ns=1), stage_of("b", deadline_ns=9)]
    assert {urgency(spec_of(*stages, policy="edf"), stage) for stage in stages} == {0}


def test_a_device_of_this_process_works_and_a_gpu_that_answers_nothing_does_not(monkeypatch):
    assert works("cpu")
    assert works("simulated")

    def broken(*_arguments, **_keys):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr("torch.ones", broken)
    with pytest.raises(RuntimeError, match="CUDA error"):
        works("cuda:0")
