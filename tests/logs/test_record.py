import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, fields

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from avrt import payload
from avrt.errors import InputError, SpecError
from avrt.logs import Channel, RawMessage, open_log
from avrt.logs.record.foxglove import make_typestore
from avrt.logs.record.run_file import RunFile, read_outputs
from avrt.logs.record.run_record import BULK_BYTES, ENTRIES_MAX, WAIT_NS_MAX, RunRecord
from avrt.logs.writer import LogWriter
from avrt.model.message import Message, Origin, Stamp
from avrt.payload import (
    Box,
    CameraInfo,
    Detection,
    Detections,
    EgoMotion,
    Fix,
    Image,
    ImageBoxes,
    ImageDetections,
    Imu,
    Plan,
    PlanCause,
    PointCloud,
    RoadMask,
    SensorUse,
    Speed,
    Targets,
    Track,
    Tracks,
)

ZERO_NS = 1_700_000_000_000_000_000
POINTS = np.arange(6, dtype=np.float32).reshape(2, 3)
BOX = Box(10.1, -2.0, 0.3, 4.0, 1.8, 1.5, 0.5)
TRACK = Track(
    id=7,
    label="car",
    box=BOX,
    vx=0.3,
    vy=0.4,
    closing_speed=-0.1,
    covariance=np.diag([0.1, 0.2, 0.3, 0.4, 1 / 3]),
    existence=0.98,
    hits=3,
    misses=0,
    confirmed=True,
    sensors=("lidar", "camera"),
    nearest_x=8.1,
    points=POINTS,
)
CAUSE = PlanCause(7, ("lidar",), POINTS, 8.1, float("inf"))
PLAN = Plan(
    t=np.array([0.0, 0.1]),
    xy=np.array([[0.0, 0.0], [1.0, 0.1]]),
    yaw=np.array([0.0, 0.1]),
    speed=np.array([10.0, 9.5]),
    acceleration=np.array([-5.0, np.nan]),
    curvature=np.zeros(2),
    kind="brake",
    time_gap=None,
    cause=CAUSE,
)
PAYLOADS = {
    "tracks": Tracks((TRACK,), 5.0, inputs=(SensorUse("radar", 40, 3, 2, residual=0.25),)),
    "detections": Detections((Detection(BOX, "car", None, POINTS, 2, 8.1),)),
    "plan": PLAN,
    "boxes": ImageBoxes(np.full((2, 12, 2, 2), 3.5, np.float32), ("a", "b")),
    "cloud": PointCloud(POINTS, np.array([1, 2], np.float32)),
    "bare_cloud": PointCloud(POINTS),
    "jpeg": Image("jpeg", np.arange(5, dtype=np.uint8)),
    "rgb": Image("rgb8", np.arange(12, dtype=np.uint8), 2, 2),
    "timed_cloud": PointCloud(POINTS, None, np.array([0, 0.1], np.float32), compensated=True),
    "image_detections": ImageDetections(
        np.array([[10, 20, 30, 40]], np.float32), np.array([0.875], np.float32), ("car",), 640, 480,
        CameraInfo(640, 480, np.arange(12.0).reshape(3, 4)),
    ),
    "road": RoadMask(np.array([[0, 1, 1]], bool), np.array([[0, 0, 1]], bool), 30, 10),
    "targets": Targets(
        np.array([[10, 1], [20, -2]], np.float32), np.full((2, 2), np.nan, np.float32),
        np.array([3, np.nan], np.float32), np.full((2, 2), np.nan, np.float32),
        np.array([20, 30], np.float32), np.array([-1, 52]),
    ),
    "motion": EgoMotion(1.0, 2.0, 0.5, 12.5, 0.1, np.diag([0.25, 0.01]), ("imu", "can")),
    "imu": Imu(np.array([0.0, 0.0, 9.8]), np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])),
    "fix": Fix(55.9, -3.3, float("nan"), np.array([1.0, 2.0, 3.0]), valid=True),
    "speed": Speed(12.5),
}  # fmt: skip


def message(payload, publish_ns=70):
    stamp = Stamp("stage", 3, 50, 55, publish_ns, "lidar_roof")
    return Message(stamp, payload, {"roof": Origin(40, 50)}, degraded=True)


def open_record(path, **options):
    options = {"conditions": {"host": "test"}, "pipeline_json": '{"name":"p"}', **options}
    return RunRecord(path, zero_ns=ZERO_NS, **options)


@pytest.fixture(scope="module")
def record_path(tmp_path_factory):
    """Return a record with one output of every payload."""
    path = tmp_path_factory.mktemp("record") / "run.mcap"
    with open_record(path, pipeline_yaml="pipeline: p\n") as record:
        for name, payload in PAYLOADS.items():
            record.output(name, message(payload))
        record.close({"met": "8"})
    return path


def test_the_payloads_here_are_those_that_there_are():
    held = {type(p).__name__ for p in PAYLOADS.values()}
    parts = {"Box", "CameraInfo", "Detection", "Lens", "PlanCause", "SensorUse", "Track"}
    never_published = {"TrueObject", "Truth"}
    assert held | parts | never_published == set(payload.__all__)


def equal(a, b):
    """Whether two payloads hold the same values; points and pixels by shape only."""
    if isinstance(a, float) and a != a:  # noqa: PLR0124 - NaN
        return type(b) is float and b != b  # noqa: PLR0124
    if isinstance(a, np.ndarray):
        same = a.shape == b.shape and a.dtype == b.dtype
        return same and (np.array_equal(a, b, equal_nan=True) or not np.any(np.nan_to_num(b)))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(
            equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
        )
    return a == b


@pytest.mark.parametrize("name", PAYLOADS)
def test_every_output_reads_back_with_its_numbers(record_path, name):
    (read,) = read_outputs(record_path, name)
    assert read.stamp == message(None).stamp
    assert read.origins == {"roof": Origin(40, 50)}
    assert read.degraded
    assert not read.speculative
    assert equal(PAYLOADS[name], read.payload)


def test_bulk_arrays_keep_their_shape_and_the_cause_of_a_plan_its_points(record_path):
    (tracks,) = read_outputs(record_path, "tracks")
    assert tracks.payload.objects[0].points.shape == (2, 3)
    assert np.isnan(tracks.payload.objects[0].points).all()
    (plan,) = read_outputs(record_path, "plan")
    assert plan.payload.cause.points.tolist() == POINTS.tolist()


def views(path):
    """Return {stage: decoded view} as a ROS tool reads them, with the record's own definitions."""
    found = {}
    with AnyReader([path]) as reader:
        connections = [c for c in reader.connections if c.topic.startswith("/avrt/view/")]
        for connection, log_ns, data in reader.messages(connections):
            assert log_ns == ZERO_NS + 70
            stage = connection.topic.removeprefix("/avrt/view/")
            found[stage] = (connection.msgtype, reader.deserialize(data, connection.msgtype))
    return found


def test_every_view_opens_in_ros_tools(record_path):
    found = views(record_path)
    assert {stage: kind for stage, (kind, _) in found.items()} == {
        "tracks": "foxglove_msgs/msg/SceneUpdate",
        "detections": "foxglove_msgs/msg/SceneUpdate",
        "plan": "nav_msgs/msg/Path",
        "boxes": "foxglove_msgs/msg/ImageAnnotations",
        "cloud": "sensor_msgs/msg/PointCloud2",
        "bare_cloud": "sensor_msgs/msg/PointCloud2",
        "jpeg": "sensor_msgs/msg/CompressedImage",
        "rgb": "sensor_msgs/msg/Image",
        "timed_cloud": "sensor_msgs/msg/PointCloud2",
        "image_detections": "foxglove_msgs/msg/ImageAnnotations",
        "road": "sensor_msgs/msg/Image",
        "targets": "sensor_msgs/msg/PointCloud2",
        "motion": "nav_msgs/msg/Odometry",
    }
    entity = found["tracks"][1].entities[0]
    assert entity.id == "track 7"
    assert entity.frame_id == "lidar_roof"
    assert entity.timestamp.sec * 10**9 + entity.timestamp.nanosec == ZERO_NS + 50
    assert entity.texts[0].text == "id 7 car 0.5 m/s p=0.98, lidar + camera"
    assert entity.cubes[0].size.x == 4.0
    assert entity.arrows[0].shaft_length == pytest.approx(0.5)
    assert found["detections"][1].entities[0].texts[0].text == "car ?, 2 points"
    path = found["plan"][1]
    assert [(p.pose.position.x, p.pose.position.y) for p in path.poses] == [(0, 0), (1, 0.1)]
    assert path.poses[1].header.stamp.nanosec == 100_000_050
    assert len(found["boxes"][1].points[0].points) == 24
    assert found["cloud"][1].data.view(np.float32).reshape(2, 4)[:, :3].tolist() == POINTS.tolist()
    assert found["bare_cloud"][1].point_step == 12
    assert found["jpeg"][1].data.tolist() == [0, 1, 2, 3, 4]
    assert found["rgb"][1].step == 6


def test_views_of_radar_motion_and_networks_hold_their_numbers(record_path):
    found = {stage: view for stage, (_, view) in views(record_path).items()}
    (box,), (text,) = found["image_detections"].points, found["image_detections"].texts
    assert [(p.x, p.y) for p in box.points] == [(10, 20), (30, 20), (30, 40), (10, 40)]
    assert (text.text, text.position.x, text.position.y) == ("car 0.88", 10, 20)
    road = found["road"]
    assert (road.encoding, road.width, road.height, road.step) == ("mono8", 3, 1, 3)
    assert road.data.tolist() == [0, 128, 255]
    targets = found["targets"]
    assert [f.name for f in targets.fields] == [
        "x", "y", "z", "range_rate", "vx", "vy", "strength", "id",
    ]  # fmt: skip
    rows = targets.data.reshape(2, 32)
    assert rows[:, :12].copy().view(np.float32).tolist() == [[10, 1, 0], [20, -2, 0]]
    assert rows[:, 28:].copy().view(np.int32).ravel().tolist() == [-1, 52]
    motion = found["motion"]
    assert (motion.header.frame_id, motion.child_frame_id) == ("odom", "lidar_roof")
    assert (motion.pose.pose.position.x, motion.pose.pose.position.y) == (1.0, 2.0)
    assert (motion.twist.twist.linear.x, motion.twist.twist.angular.z) == (12.5, 0.1)
    assert motion.twist.covariance[[0, 35]].tolist() == [0.25, 0.01]
    assert [f.name for f in found["timed_cloud"].fields] == ["x", "y", "z", "time"]


def test_an_object_that_is_gone_is_taken_out_of_the_scene(tmp_path):
    path = tmp_path / "run.mcap"
    store = make_typestore()
    with open_record(path) as record:
        record.output("a", message(Tracks((TRACK,), 0.0)))
        record.output("b", message(Tracks((), 0.0)))
        record.output("a", message(Tracks((), 0.0)))
    with open_log(path) as log:
        scenes = [store.deserialize_cdr(m.data, m.type) for m in log.messages(["/avrt/view/a"])]
        (other,) = [store.deserialize_cdr(m.data, m.type) for m in log.messages(["/avrt/view/b"])]
    assert [[d.id for d in s.deletions] for s in scenes] == [[], ["track 7"]]
    assert scenes[0].entities[0].lifetime.sec == 1
    assert not other.deletions


def test_edges_behind_the_camera_are_not_drawn(tmp_path):
    edges = np.full((2, 12, 2, 2), np.nan, np.float32)
    edges[1, 3] = [[1, 2], [3, 4]]
    with open_record(tmp_path / "run.mcap") as record:
        record.output("boxes", message(ImageBoxes(edges, ("behind", "car"))))
    view = views(tmp_path / "run.mcap")["boxes"][1]
    assert [(p.x, p.y) for p in view.points[0].points] == [(1, 2), (3, 4)]
    assert [t.text for t in view.texts] == ["car"]


def test_conditions_pipeline_result_and_notes_read_back(record_path, tmp_path):
    with RunFile(record_path) as run:
        assert run.complete
        assert run.conditions == {"host": "test"}
        assert run.result == {"met": "8"}
        assert run.pipeline_json == '{"name":"p"}'
        assert run.pipeline_yaml == "pipeline: p\n"
        assert run.zero_ns == ZERO_NS
        assert run.stages() == list(PAYLOADS)
        assert not run.damage
    with open_record(tmp_path / "run.mcap") as record:
        record.note("/avrt/execution", {"stage": "a", "execution_ns": 5}, 12)
    with RunFile(tmp_path / "run.mcap") as run:
        assert run.result is None
        assert run.pipeline_yaml is None
        (line,) = run.lines("/avrt/execution")
        assert (line.index, line.at_ns, line.damaged) == (0, 12, False)
        assert json.loads(line.text) == {"stage": "a", "execution_ns": 5}
        assert list(run.journal()) == []


def test_sensor_messages_pass_through_with_bytes_and_schema(tmp_path, log_path):
    with open_log(log_path) as log, open_record(tmp_path / "run.mcap") as record:
        original = list(log.messages())
        for raw in original:
            record.input(raw.topic, raw)
        topics = log.topics()
    with open_log(tmp_path / "run.mcap") as log:
        copied = list(log.messages())
        assert log.topics() == topics
    assert [(m.topic, m.log_ns, m.sequence, bytes(m.data)) for m in copied] == [
        (m.topic, m.log_ns, m.sequence, bytes(m.data)) for m in original
    ]


@dataclass
class Mine:
    gain: float
    table: dict


def test_any_plain_payload_is_recorded_and_what_cannot_be_is_told(tmp_path):
    path = tmp_path / "run.mcap"
    with open_record(path) as record:
        assert record.output(
            "mine", message(Mine(float("-inf"), {"a": np.eye(2), "b": [None, True]}))
        )
        assert not record.output("other", message(object()))
        assert not record.output("other", message({"a": {1, 2}}))
        with pytest.raises(TypeError, match="found object"):
            record.note("/t", object(), 0)
    (read,) = read_outputs(path, "mine")
    assert read.payload["$type"] == "Mine"
    assert read.payload["gain"] == float("-inf")
    assert read.payload["table"]["a"].tolist() == [[1, 0], [0, 1]]
    assert read.payload["table"]["b"] == (None, True)
    assert read_outputs(path, "other") == []


def test_closing_twice_is_harmless_and_an_interrupt_closes(tmp_path):
    path = tmp_path / "run.mcap"
    record = open_record(path)

    def interrupted():
        with record:
            record.journal("{}", 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    record.close({"late": "0"})
    with RunFile(path) as run:
        assert run.complete
        assert run.result is None
        assert len(list(run.journal())) == 1


def test_a_record_that_cannot_be_created_is_the_users_fault(tmp_path):
    with pytest.raises(SpecError, match="cannot create the run record"):
        open_record(tmp_path / "none" / "run.mcap")


def test_conditions_and_full_chunks_are_on_disk_before_the_end(tmp_path):
    path = tmp_path / "run.mcap"
    record = open_record(path)
    with RunFile(path) as run:
        assert not run.complete
        assert run.conditions == {"host": "test"}
        assert run.pipeline_json == '{"name":"p"}'
    for k in range(2 * ENTRIES_MAX + 5):
        record.journal(f'{{"index":{k}}}', k * WAIT_NS_MAX // ENTRIES_MAX)
    with RunFile(path) as run:
        lines = list(run.journal())
        assert [line.index for line in lines] == list(range(2 * ENTRIES_MAX + 1))
        assert not any(line.damaged for line in lines)
    record.input("/raw", RawMessage(Channel(1, "/raw", "", "cdr"), 1, 1, 0, bytes(BULK_BYTES)))
    with RunFile(path) as run:
        assert len(list(run.journal())) == 2 * ENTRIES_MAX + 5
    record.close()


KILLED = textwrap.dedent("""
    import os, sys
    sys.path.insert(0, {here!r})
    from avrt.logs.record.run_record import RunRecord
    record = RunRecord({path!r}, zero_ns=5, conditions={{"a": "b"}}, pipeline_json="{{}}")
    for k in range(1000):
        record.journal('{{"index":%d}}' % k, k * 20_000_000)
    os.kill(os.getpid(), {signal})
""")


@pytest.mark.slow
def test_the_record_of_a_killed_process_is_readable(tmp_path):
    path = tmp_path / "run.mcap"
    code = KILLED.format(here=str(tmp_path), path=str(path), signal=int(signal.SIGKILL))
    done = subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))  # noqa: S603 - our own code
    assert done.returncode == -signal.SIGKILL
    with RunFile(path) as run:
        assert not run.complete
        assert run.conditions == {"a": "b"}
        assert run.result is None
        lines = list(run.journal())
        assert any("footer" in str(error) for error in run.damage)
    assert [line.at_ns for line in lines] == [
        k * 20_000_000 for k in range(1000 // ENTRIES_MAX * ENTRIES_MAX)
    ]


def test_a_log_that_is_no_run_record_is_told(log_path, tmp_path):
    with pytest.raises(InputError, match="expected a run record of avrt"):
        RunFile(log_path)
    (tmp_path / "x").write_bytes(b"text")
    with pytest.raises(InputError, match="expected a run record"):
        RunFile(tmp_path / "x")


def test_one_topic_of_two_types_keeps_both_schemas(tmp_path, record_path):
    xyz = np.zeros((2, 3), np.float32)
    log = tmp_path / "two.mcap"
    with LogWriter(log) as writer:
        writer.add_cloud("/both", "roof", 10**9, xyz)
    other = tmp_path / "other.mcap"
    with LogWriter(other) as writer:
        writer.add_jpeg("/both", "camera", 2 * 10**9, b"\xff\xd8")
    with RunRecord(record_path, zero_ns=0, conditions={}, pipeline_json="{}") as record:
        for path in (log, other):
            with open_log(path) as reader:
                for raw in reader.messages():
                    record.input(raw.topic, raw)
    with open_log(record_path) as reader:
        types = [raw.type for raw in reader.messages() if raw.topic == "/both"]
    assert types == ["sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/CompressedImage"]
