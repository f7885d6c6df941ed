"""Stages of a device that is not here run on its fallback, and that is told."""

from __future__ import annotations

import pytest

from avrt.drivers.hosts import fit_to_host
from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec


def pipeline(*devices):
    stage = StageSpec(name="s", device=devices[0].name, wcet_ns=1, deadline_ns=1, period_ns=1)
    return PipelineSpec(name="p", devices=devices, stages=(stage,))


CPU = DeviceSpec(name="cpu")


def gpu(name="gpu", fallback=None):
    return DeviceSpec(name=name, type="cuda:0", fallback=fallback)


def test_a_pipeline_without_a_gpu_is_left_alone():
    spec = pipeline(CPU)
    assert fit_to_host(spec) == (spec, "")


@pytest.mark.parametrize(
    ("devices", "place", "where"),
    [
        ((gpu(fallback="cpu"), CPU), "cpu", "on cpu instead"),
        ((gpu(fallback="second"), gpu("second", "cpu"), CPU), "cpu", "on cpu instead"),
        ((gpu(), CPU), "gpu", "computed on the processor"),
        ((gpu(fallback="second"), gpu("second", "gpu")), "gpu", "computed on the processor"),
    ],
)
def test_a_gpu_gives_its_stages_to_the_first_fallback_that_is_here(devices, place, where):
    fitted, told = fit_to_host(pipeline(*devices))
    assert fitted.stages[0].device == place
    assert told.split("; ")[0] == f"gpu (cuda:0) is not here: {where}"


def test_a_gpu_that_is_here_keeps_its_stages(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    spec = pipeline(gpu(fallback="cpu"), CPU)
    assert fit_to_host(spec) == (spec, "")
    second = pipeline(DeviceSpec(name="gpu", type="cuda:1", fallback="cpu"), CPU)
    assert fit_to_host(second)[1] == "gpu (cuda:1) is not here: on cpu instead"
