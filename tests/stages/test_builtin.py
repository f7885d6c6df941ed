"""The network that avrt brings along sees what its world shows, and refuses weights of others."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import avrt
from avrt.api.drive import write_drive
from avrt.drivers.inject.weights import flip
from avrt.errors import SpecError
from avrt.exec.scrub import Scrub, ScrubPlan
from avrt.exec.weights import blocks_of
from avrt.payload import Image, ImageDetections
from avrt.stages.camera import Detector
from avrt.stages.camera.builtin import WEIGHTS, BuiltinSession, CentreNetwork
from avrt.stages.camera.networks import Centre
from avrt.stages.camera.suppression import area, intersection
from avrt.world import World, make_scene

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def detector():
    made = Detector(model="builtin")
    made.warm()
    return made


@pytest.fixture(scope="module")
def world():
    made = World(make_scene("hard_brake", 2), 6.0)
    made.advance()
    return made


def image(world, at_s):
    return Image("jpeg", np.frombuffer(world.camera(at_s * SECOND), np.uint8))


def iou(box, other):
    box, other = np.asarray(box, np.float32), np.asarray(other, np.float32)
    shared = intersection(box, other[None])[0]
    return shared / (area(box) + area(other) - shared)


@pytest.mark.parametrize("at_s", [0, 2, 4])
def test_the_car_ahead_is_found(detector, world, sent, at_s):
    found = detector.process(sent(image(world, at_s)))
    seen = next(one for one in world.appearances(at_s * SECOND) if one.user == world.scene.key_user)
    overlaps = [iou(box, seen.box) for box in found.boxes]
    best = int(np.argmax(overlaps))
    assert overlaps[best] > 0.5
    assert found.labels[best] in {"car", "truck"}  # the white one passes for one at 2 s


def test_on_an_empty_road_nothing_is_found(detector, sent):
    scene = make_scene("cut_in", 4)
    empty = World(replace(scene, users=scene.users[:1]), 1.0)
    assert detector.process(sent(image(empty, 0))).labels == ()
    assert (
        detector.process(sent(Image("rgb8", np.zeros(96 * 48 * 3, np.uint8), 96, 48))).labels == ()
    )


def test_the_same_image_gives_the_same_bits(detector, world, sent):
    first, second = (
        one.process(sent(image(world, 1))) for one in (detector, Detector(model="builtin"))
    )
    assert first.boxes.tobytes() == second.boxes.tobytes()
    assert first.scores.tobytes() == second.scores.tobytes()


def test_a_cell_beside_a_likelier_one_is_none(monkeypatch):
    session = BuiltinSession(WEIGHTS, 1)
    logits = torch.full((1, 4, 64, 128), -5.0)
    logits[0, 2, 10, 10], logits[0, 2, 10, 11], logits[0, 3, 10, 11] = 2.0, 1.0, 1.5
    monkeypatch.setattr(session, "network", lambda _: (logits, logits))
    likely, _ = session.run(None, {"images": np.zeros((1, 3, 256, 512), np.float32)})
    assert likely[0, 2, 10, 10] == pytest.approx(0.8808, abs=1e-4)
    assert likely[0, 2, 10, 11] == 0.0
    assert likely[0, 3, 10, 11] > 0.8  # another kind


def test_what_the_session_says_of_itself_is_what_it_gives():
    session = BuiltinSession(WEIGHTS, 1)
    shape = session.get_inputs()[0].shape
    outputs = session.run(None, {"images": np.zeros(shape, np.float32)})
    assert [list(one.shape) for one in outputs] == [slot.shape for slot in session.get_outputs()]
    assert all(one.dtype == np.float32 for one in outputs)


def test_the_threads_of_others_stay_as_they_are():
    before = torch.get_num_threads()
    images = {"images": np.zeros((1, 3, 256, 512), np.float32)}
    BuiltinSession(WEIGHTS, before + 1).run(None, images)
    assert torch.get_num_threads() == before


def test_normalisation_is_gone_from_what_is_shipped():
    assert WEIGHTS.stat().st_size < 1_000_000
    with np.load(WEIGHTS) as held:
        assert {name: held[name].shape for name in held.files} == {
            name: tuple(value.shape) for name, value in CentreNetwork().state_dict().items()
        }


def refused(path):
    with pytest.raises(SpecError) as caught:
        Detector(model=str(path))
    assert caught.value.key == ("model",)
    assert "expected weights of avrt's camera network" in caught.value.what
    assert len(caught.value.what.splitlines()) == 1
    return caught.value.what


def test_weights_of_something_else_are_refused(tmp_path):
    with np.load(WEIGHTS) as held:
        weights = {name: held[name] for name in held.files}
    other = tmp_path / "other.npz"
    np.savez(other, **{**weights, "kinds.bias": np.zeros(7, np.float16)})
    assert "kinds.bias being [4]; found float16 [7]" in refused(other)
    np.savez(other, **{name: one for name, one in weights.items() if name != "kinds.bias"})
    assert "found none" in refused(other)
    np.savez(other, **weights, more=np.zeros(3))
    assert f"found {len(weights) + 1}" in refused(other)
    np.savez(other, **{**weights, "kinds.bias": np.array([None] * 4)})
    assert "pickle" in refused(other)


def test_a_file_that_holds_no_arrays_is_refused(tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(WEIGHTS.read_bytes()[:5000])
    refused(broken)
    broken.write_text("weights, honestly\n")
    refused(broken)
    with broken.open("wb") as file:
        np.save(file, np.zeros(3))
    refused(broken)
    assert "no such file" in refused(tmp_path / "none.npz")


@pytest.mark.slow
def test_the_package_of_cameras_brings_no_torch():
    code = "import sys, avrt.stages.camera; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


@pytest.mark.slow
def test_in_a_pipeline_it_finds_cars(tmp_path):
    write_drive(tmp_path / "drive.mcap", "hard_brake", seconds=1.0)
    pipeline = avrt.Pipeline("camera")
    pipeline.source(
        "front", type="camera", topic="/camera/front/compressed", rate="10 Hz", frame="camera_front"
    )
    pipeline.add(
        Detector,
        name="detect",
        inputs={"image": "front"},
        params={"model": "builtin"},
        wcet="30 ms",
        deadline="60 ms",
    )
    pipeline.replay(tmp_path / "drive.mcap", out=tmp_path / "run.mcap")
    found = avrt.read_outputs(tmp_path / "run.mcap", "detect")
    assert len(found) == 10
    assert all(isinstance(one.payload, ImageDetections) for one in found)
    assert all("car" in one.payload.labels for one in found)
    assert Centre.score_min <= min(one.payload.scores.min() for one in found)


def test_a_network_that_moves_takes_its_weights_from_the_host_and_sees_the_same():
    """Wherever it was before may be lost with everything on it."""
    detector = Detector(model="builtin")
    image = np.random.default_rng(0).integers(0, 255, (384, 640, 3), np.uint8)
    before = detector._found(image)
    for parameter in detector.session.network.parameters():
        parameter.data.fill_(float("nan"))
    detector.place("cpu")
    assert np.array_equal(detector._found(image).boxes, before.boxes)


def test_a_flipped_bit_of_its_weights_is_found_and_the_network_sees_as_before():
    detector = Detector(model="builtin")
    scrub = Scrub("it", ScrubPlan(3, 99))
    scrub.hold("", detector.weight_arrays())
    image = np.random.default_rng(0).integers(0, 255, (384, 640, 3), np.uint8)
    before = detector._found(image)
    flip(detector.weight_arrays(), None, np.random.default_rng(0))
    for _ in range(3):
        scrub.check("")
    assert scrub.fault("").kind == "weights"
    assert np.array_equal(detector._found(image).boxes, before.boxes)
    detector.place("cpu")
    scrub.moved("", detector.weight_arrays())
    assert scrub.fault("") is None
    count = sum(block.size_bytes for block in blocks_of(detector.weight_arrays()))
    assert count == 4 * sum(one.numel() for one in detector.session.network.state_dict().values())
