"""What goes onto a page: sieves, gaps, sweeps, tracks, truth, images."""

import base64
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PillowImage
from reading_pages import Read

import avrt
from avrt.logs.writer import LogWriter
from avrt.payload import Box, CameraInfo, Plan, Track, Tracks, TrueObject, Truth
from avrt.report.page import sensors, tracks, write_page
from avrt.report.page.clouds import BYTES_MAX as CLOUD_BYTES
from avrt.report.page.clouds import pack, points_for
from avrt.report.page.images import BYTES_MAX as IMAGE_BYTES
from avrt.report.page.messages import Messages
from avrt.report.page.sieve import Sieve, step_for
from avrt.safety.outputs import SoleOutputs

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000


@given(st.integers(1, 20), st.integers(0, 300))
def test_a_sieve_keeps_no_more_than_it_may_and_knows_the_rest(most, count):
    sieve = Sieve(most, range(count))
    assert len(sieve.items) <= most
    assert sieve.items == list(range(0, count, sieve.step))
    assert sieve.left_out + len(sieve.items) == sieve.seen == count
    assert not count or sieve.items[0] == 0


@given(st.integers(0, 1000), st.integers(1, 50))
def test_a_step_lets_no_more_through_than_there_is_room_for(count, most):
    step = step_for(count, most)
    assert len(range(0, count, step)) <= most
    assert step == 1 or len(range(0, count, step - 1)) > most


def test_a_sieve_thins_to_a_size():
    sieve = Sieve(100, [10] * 16)
    sieve.thin_to(45, int)
    assert (len(sieve.items), sieve.step) == (4, 4)
    sieve.thin_to(1, int)
    assert len(sieve.items) == 1


@pytest.mark.parametrize("period_ns", [None, 100])
def test_a_gap_is_longer_than_the_usual_step(period_ns):
    messages = Messages(period_ns)
    for capture_ns in (0, 100, 100, 200, 300, 500, 600, 550, 700, 800):
        messages.arrived(capture_ns + 5, capture_ns)
    assert messages.gaps().items == [(300, 500)]


def test_messages_slower_than_declared_are_no_gaps_each():
    messages = Messages(10)
    for capture_ns in range(0, 1000, 50):
        messages.arrived(capture_ns, capture_ns)
    assert messages.gaps().items == []


def unpacked(sweep):
    data = base64.b64decode(sweep.packed)
    xy = np.frombuffer(data[: 4 * sweep.kept], "<i2").reshape(-1, 2) * 0.02
    z = np.frombuffer(data[4 * sweep.kept :], np.int8) * 0.1
    return xy, z


def test_of_a_column_of_points_the_highest_is_kept():
    xyz = np.array([[1.01, 2.01, 0.1], [1.02, 2.02, 1.6], [5, 5, 0], [np.nan, 1, 1]], np.float32)
    sweep = pack(xyz, 10)
    assert (sweep.points, sweep.kept) == (4, 2)
    xy, z = unpacked(sweep)
    np.testing.assert_allclose(xy, [[1.02, 2.02], [5, 5]], atol=0.011)
    np.testing.assert_allclose(z, [1.6, 0], atol=0.051)


@given(st.integers(0, 400), st.integers(1, 60), st.integers(0, 5))
def test_a_sweep_has_no_more_points_than_it_may(count, most, seed):
    xyz = np.random.default_rng(seed).normal(scale=40, size=(count, 3)).astype(np.float32)
    sweep = pack(xyz, most)
    assert sweep.kept <= most
    assert sweep.points == count
    assert len(base64.b64decode(sweep.packed)) == 5 * sweep.kept


def test_sweeps_and_images_together_leave_room_for_the_rest():
    assert points_for(240) * 240 * 5 <= CLOUD_BYTES
    assert (CLOUD_BYTES + IMAGE_BYTES) * 4 / 3 < 6_000_000


def see(cloud):
    """Tracks that move ahead with every sweep."""
    x = 10.0 + cloud.stamp.sequence
    covariance = np.diag([4.0, 1.0, 0.1, 0.1, 0.01])
    box = Box(x, 2.0, 0.5, 4.0, 2.0, 1.5, 0.0)
    track = Track(7, "car", box, 10.0, 0.0, 0.0, covariance, 0.9, 5, 0, True, ("lidar",), x,
                  np.zeros((0, 3), np.float32))  # fmt: skip
    return Tracks((track,), ego_speed=0.0)


def drive(scene):  # noqa: ARG001 - by its name
    t = np.linspace(0, 2, 9)
    zeros = np.zeros(9)
    xy = np.stack([8 * t, zeros], axis=1)
    return Plan(t, xy, zeros, zeros + 8, zeros - 1, zeros, "brake", 2.5, None)


def write_log(path, frames=4):
    """A LiDAR, a camera that looks ahead, and one car that is really there."""
    buffer = io.BytesIO()
    PillowImage.new("RGB", (900, 300), (90, 120, 90)).save(buffer, "JPEG")
    info = CameraInfo(900, 300, np.array([[450.0, 0, 450, 0], [0, 450, 150, 0], [0, 0, 1, 0]]))
    with LogWriter(path) as log:
        for index in range(frames):
            at_ns = START_NS + index * PERIOD_NS
            xyz = np.random.default_rng(index).normal(size=(50, 3)).astype(np.float32)
            log.add_cloud("/lidar", "roof", at_ns, xyz)
            log.add_camera_info("/info", "lens", at_ns + 10_000_000, info)
            log.add_jpeg("/camera", "lens", at_ns + 10_000_000, buffer.getvalue())
            car = TrueObject(3, "car", Box(1.0, 2.0, 0.5, 4, 2, 1.5, 0.0), 5.0, math.nan)
            log.add_truth("/truth", "base", at_ns, Truth((car,)))
    return path


def make_pipeline(*, calibrated=True):
    frames = {
        "lens": {"parent": "roof", "rotation": ["-90 deg", "0 deg", "-90 deg"]},
        "base": {"parent": "roof", "translation": ["10 m", "0 m", "0 m"],
                 "rotation": ["0 deg", "0 deg", "90 deg"]},
    }  # fmt: skip
    more = {"calibration": {"frames": frames}} if calibrated else {}
    pipeline = avrt.Pipeline("p", **more)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.source("front", type="camera", topic="/camera", info="/info", rate="10 Hz")
    pipeline.add(see, inputs={"cloud": "lidar"}, wcet="20 ms", deadline="50 ms")
    pipeline.add(drive, inputs={"scene": "see"}, wcet="5 ms", deadline="20 ms")
    return pipeline


@pytest.fixture
def read_scene(settled, tmp_path):  # noqa: ARG001 - by its name
    """Return a function that replays the log through a pipeline and reads the page."""

    def read(pipeline, **more):
        record, page = tmp_path / "run.mcap", tmp_path / "page.html"
        pipeline.replay(write_log(tmp_path / "log.mcap", **more), out=record)
        write_page(page, record)
        return Read(page)

    return read


def test_the_scene_is_by_capture_time_and_in_the_frame_of_the_tracks(read_scene):
    page = read_scene(make_pipeline())
    scene = page.scene
    assert scene["frame"] == "roof"
    assert [row["t"] for row in scene["tracks"]] == [0, 100_000_000, 200_000_000, 300_000_000]
    assert scene["tracks"][1]["published"] == 120_000_000
    (sweeps,) = scene["clouds"]
    assert [row["t"] for row in sweeps["sweeps"]] == [row["t"] for row in scene["tracks"]]
    assert scene["plans"][0]["kind"] == "brake"
    assert scene["plans"][0]["xy"][-1] == [16.0, 0.0]
    assert page.data["steps"] == [10_000_000 + i * PERIOD_NS for i in range(4)]


def test_a_track_has_box_velocity_and_the_ellipse_of_95_percent(read_scene):
    scene = read_scene(make_pipeline()).scene
    id_, label, x, y, z, length, width, height, yaw, vx, vy, major, minor, turn, *_ = scene[
        "tracks"
    ][2]["objects"][0]
    assert (id_, scene["labels"][label]) == (7, "car")
    assert (x, y, z, length, width, height, yaw) == (12.0, 2.0, 0.5, 4.0, 2.0, 1.5, 0.0)
    assert (vx, vy) == (10.0, 0.0)
    assert (major, minor) == (round(2 * math.sqrt(5.991), 2), round(math.sqrt(5.991), 2))
    assert math.sin(turn) == pytest.approx(0, abs=1e-3)


def test_ground_truth_is_turned_into_the_frame_of_the_tracks(read_scene):
    scene = read_scene(make_pipeline()).scene
    id_, _, x, y, _, _, _, _, yaw, vx, vy = scene["truth"][0]["objects"][0]
    assert id_ == 3
    assert (x, y) == (pytest.approx(8.0, abs=0.01), pytest.approx(1.0, abs=0.01))
    assert yaw == pytest.approx(math.pi / 2, abs=1e-3)
    assert (vx, vy) == (0.0, 0.0)


def test_boxes_in_an_image_stand_where_the_track_was_when_it_was_taken(read_scene):
    scene = read_scene(make_pipeline()).scene
    (camera,) = scene["cameras"]
    image = camera["images"][0]
    assert (image["width"], image["height"]) == (640, 213)
    picture = PillowImage.open(io.BytesIO(base64.b64decode(image["jpeg"])))
    assert picture.size == (640, 213)
    ((id_, label, edges),) = image["boxes"]
    assert (id_, label, len(edges)) == (7, "car", 48)
    rear = 10.0 - 2.0 + 10.0 * 0.01
    left = (450 - 450 * 3.0 / rear) * 640 / 900
    assert min(edges[::2]) == pytest.approx(left, abs=1)


def test_what_no_transform_reaches_is_left_out_and_told(read_scene):
    page = read_scene(make_pipeline(calibrated=False))
    assert page.scene["truth"] == []
    assert page.scene["cameras"][0]["images"][0]["boxes"] == []
    assert "ground truth is not drawn: no transform leads from 'base' to 'roof'" in page.text


def test_many_sweeps_and_objects_are_thinned_and_told(read_scene, monkeypatch):
    monkeypatch.setattr(sensors, "SWEEPS_MAX", 2)
    monkeypatch.setitem(tracks.ROOM, avrt.payload.Tracks, (2, tracks._objects))
    page = read_scene(make_pipeline(), frames=5)
    assert len(page.scene["clouds"][0]["sweeps"]) == 2
    assert len(page.scene["tracks"]) == 2
    assert "lidar: 1 in 3 of 5 is drawn" in page.text
    assert "Tracks of see: 1 in 4 of 5 is drawn" in page.text


def test_images_that_are_too_large_together_lose_every_second(read_scene, monkeypatch):
    monkeypatch.setattr(sensors, "BYTES_MAX", 4000)
    page = read_scene(make_pipeline(), frames=8)
    images = page.scene["cameras"][0]["images"]
    assert 1 <= len(images) < 8
    assert f"front: 1 in {8 // len(images)} of 8 is drawn" in page.text


def odd(cloud):
    """Tracks of which one is nowhere, and two kinds of output in turn."""
    seen = see(cloud)
    if cloud.stamp.sequence % 2:
        return avrt.payload.Detections()
    lost = replace(seen.objects[0], box=replace(seen.objects[0].box, x=math.nan), vx=math.nan)
    return Tracks((*seen.objects, lost), ego_speed=math.nan)


def lost_plan(scene):
    if scene.payload.objects:
        plan = drive(scene)
        return replace(plan, xy=np.full((9, 2), np.nan), time_gap=math.inf)
    return None


def test_what_is_no_number_is_left_out_and_told(read_scene, monkeypatch):
    """No job gives it any more, but records of older versions hold it."""
    monkeypatch.setattr(SoleOutputs, "fault", lambda *_: None)
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(odd, inputs={"cloud": "lidar"}, wcet="20 ms", deadline="50 ms")
    pipeline.add(lost_plan, inputs={"scene": "odd"}, wcet="5 ms", deadline="20 ms")
    page = read_scene(pipeline)
    assert [len(row["objects"]) for row in page.scene["tracks"]] == [1, 1]
    assert page.scene["plans"][0]["xy"] == []
    assert "2 objects have a place or size that is no number" in page.text


def test_of_two_stages_with_tracks_the_first_is_drawn(read_scene):
    pipeline = make_pipeline()
    pipeline.add(see, name="again", inputs={"cloud": "lidar"}, wcet="2 ms", deadline="50 ms")
    page = read_scene(pipeline)
    assert len(page.scene["tracks"]) == 4
    assert re.search(r"Tracks of (see|again) are not drawn: (again|see)'s are", page.text)
