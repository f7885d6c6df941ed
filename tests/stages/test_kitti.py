"""What the stages must reach on real data: a KITTI sequence of 78 sweeps and five labelled frames.

The sequence has no ground truth; `lead_distance.csv` is the distance to the rear of the vehicle
ahead, measured with a fixed box of points. Its time stamps are borrowed (see its PROVENANCE.md).
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_typestore

from avrt.model.message import Message, Stamp
from avrt.payload import PointCloud
from avrt.stages.fusion.tracker import Tracker
from avrt.stages.lidar.detector import Detector
from avrt.stages.planning.planner import Planner

DATA = Path(__file__).parents[3] / "shared" / "data"
SEQUENCE = DATA / "kitti_sfnd_seq"
LABELLED = DATA / "kitti_object_labelled" / "training"
EGO_SPEED = 1.1  # m/s, mean over the sequence; it slows down from 2.4 to rest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SEQUENCE.exists(), reason="../shared/data is not here"),
]


def sweeps():
    store = get_typestore(Stores.ROS2_HUMBLE)
    with (SEQUENCE / "kitti_sfnd_7p8s.mcap").open("rb") as file:
        for schema, _, raw in make_reader(file).iter_messages():
            if schema.name.endswith("PointCloud2"):
                message = store.deserialize_cdr(raw.data, schema.name)
                rows = np.frombuffer(message.data.tobytes(), np.float32)
                at = message.header.stamp
                yield rows.reshape(-1, message.point_step // 4)[:, :3], at.sec * 10**9 + at.nanosec


def run():
    """Return (tracks, plan) of each sweep."""
    detector, tracker, planner = Detector(), Tracker(ego_speed=EGO_SPEED), Planner()
    results = []
    for index, (xyz, at_ns) in enumerate(sweeps()):
        stamp = Stamp("velodyne", index, at_ns, at_ns, at_ns, "velodyne")
        found = detector.process(Message(stamp, PointCloud(xyz)))
        tracks = tracker.process(Message(stamp, found))
        results.append((tracks, planner.process(Message(stamp, tracks))))
    return results


@pytest.fixture(scope="module")
def results():
    return run()


@pytest.fixture(scope="module")
def near_faces():
    with (SEQUENCE / "lead_distance.csv").open() as file:
        return [float(row["near_face_m"]) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def lead(results, near_faces):
    """Return the vehicle ahead by frame: the confirmed track whose near face fits most often."""
    fits: dict[int, dict] = {}
    for frame, (tracks, _) in enumerate(results):
        for one in tracks.objects:
            if one.confirmed and abs(one.box.y) < 1 and abs(one.nearest_x - near_faces[frame]) < 1:
                fits.setdefault(one.id, {})[frame] = one
    return max(fits.values(), key=len)


def test_the_vehicle_ahead_is_one_track(lead):
    assert len(lead) >= 75
    assert {one.label for one in lead.values()} == {"car"}


def test_its_near_face_is_where_the_reference_has_it(lead, near_faces):
    errors = [abs(one.nearest_x - near_faces[frame]) for frame, one in lead.items()]
    assert max(errors) < 0.4


def test_it_comes_to_rest_relative_to_the_ego_vehicle(lead):
    last = [lead[frame].closing_speed for frame in range(68, 78)]
    assert max(abs(speed) for speed in last) < 0.5
    assert abs(np.mean(last)) < 0.2


def test_its_closing_speed_follows_the_reference(lead, near_faces):
    for frame in range(15, 70):
        before, after = near_faces[frame - 5], near_faces[frame + 5]
        assert lead[frame].closing_speed == pytest.approx((before - after) / 1.031, abs=0.5)


def test_eight_others_are_tracked_for_twenty_sweeps(results, lead):
    sweeps_of: dict[int, int] = {}
    for tracks, _ in results:
        for one in tracks.objects:
            if one.confirmed:
                sweeps_of[one.id] = sweeps_of.get(one.id, 0) + 1
    lead_id = next(iter(lead.values())).id
    assert sum(count >= 20 for key, count in sweeps_of.items() if key != lead_id) >= 8


def test_nothing_stands_between_the_vehicles(results, near_faces):
    for frame, (tracks, _) in enumerate(results):
        for one in tracks.objects:
            inside = abs(one.box.y) < 1.2 + one.box.width / 2
            if one.confirmed and inside and one.box.x > 0:
                assert one.nearest_x > near_faces[frame] - 0.4, (frame, one.id)


def test_the_plan_keeps_behind_the_vehicle_ahead(results, lead):
    for frame, (_, plan) in enumerate(results):
        if frame not in lead:
            continue
        assert plan.kind in {"follow", "stop"}
        assert plan.time_gap is not None
        front = plan.xy[:, 0] + 2.7
        assert (front < lead[frame].nearest_x + lead[frame].vx * plan.t).all()
        assert plan.acceleration.min() > -3.0


def test_two_runs_are_equal_bit_for_bit(results):
    assert _digest(run()) == _digest(results)


def test_labelled_cars_are_found():
    hits, cars = 0, 0
    for frame in ("000000", "000002", "000008", "000035", "000134"):
        found = Detector().process(_message(_cloud(frame))).objects
        for x, y in _cars(frame):
            cars += 1
            hits += any(
                np.hypot(one.box.x - x, one.box.y - y) < 1.5 and one.label == "car" for one in found
            )
    assert cars == 13
    assert hits >= 12


def _message(xyz):
    return Message(Stamp("velodyne", 0, 0, 0, 0), PointCloud(xyz))


def _cloud(frame):
    path = LABELLED / "velodyne" / f"{frame}.bin"
    if not path.exists():
        path = path.with_suffix(".front_fov.bin")
    return np.fromfile(path, np.float32).reshape(-1, 4)[:, :3]


def _cars(frame):
    """Return the centres of the labelled cars in the LiDAR frame, metres."""
    lines = (LABELLED / "calib" / f"{frame}.txt").read_text().splitlines()
    rows = dict(line.split(":", 1) for line in lines if ":" in line)
    number = {key: np.array(value.split(), np.float64) for key, value in rows.items()}
    turn = number["R0_rect"].reshape(3, 3)
    to_camera = turn @ number["Tr_velo_to_cam"].reshape(3, 4)
    for line in (LABELLED / "label_2" / f"{frame}.txt").read_text().splitlines():
        label, *values = line.split()
        if label == "Car":
            centre = np.array(values[10:13], np.float64) - to_camera[:, 3]
            yield tuple(np.linalg.solve(to_camera[:, :3], centre)[:2])


def _digest(results):
    digest = hashlib.blake2s()
    for tracks, plan in results:
        for one in tracks.objects:
            digest.update(repr((one.id, one.label, one.box, one.vx, one.existence)).encode())
            digest.update(one.covariance.tobytes())
        digest.update(plan.xy.tobytes())
    return digest.hexdigest()
