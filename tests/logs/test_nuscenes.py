"""A scene of nuScenes, made after its published schema: no recorded one is at hand."""

import json
import math
import shutil

import numpy as np
import pytest
import small_sets
from small_sets import PCD_FIELDS, START_NS

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.decode import decode, parse
from avrt.logs.pcd import read_pcd
from avrt.logs.transforms import read_transforms
from avrt.logs.truth import read_truth
from avrt.model.frames import Frames

S = 1_000_000_000
COUNTS = {
    "/tf_static": 1,
    "/CAM_FRONT/camera_info": 11,
    "/CAM_FRONT/image_rect_compressed": 11,
    "/LIDAR_TOP": 21,
    "/RADAR_FRONT": 11,
    "/odom": 21,
    "/ground_truth/objects": 3,
}


@pytest.fixture
def scene(tmp_path):
    return small_sets.write_nuscenes(tmp_path / "set")


def decoded(path, topic, kind):
    with open_log(path) as log:
        return [(raw.log_ns, decode(raw, kind)) for raw in log.messages([topic])]


def counts(path):
    with open_log(path) as log:
        return {topic: info.messages for topic, info in log.topics().items()}


def change(scene, table, edit):
    path = scene.parent / f"{table}.json"
    rows = json.loads(path.read_text())
    edit(rows)
    path.write_text(json.dumps(rows))


def test_every_sensor_has_its_topic_and_its_times(scene):
    assert counts(scene) == COUNTS
    times = [at for at, _ in decoded(scene, "/LIDAR_TOP", "lidar")]
    assert times == [START_NS + index * S // 20 for index in range(21)]


def test_sensors_are_where_their_calibration_has_them(scene):
    with open_log(scene) as log:
        known = Frames(tuple(read_transforms(log, ["/tf_static"])[0]))
    lidar = np.array(known.between("LIDAR_TOP", "base_link")).reshape(3, 4)
    assert lidar[:, 3] == pytest.approx([0.94, 0.0, 1.84])
    assert lidar[:, :3] @ [0, 1, 0] == pytest.approx([1, 0, 0])  # its y is ahead
    camera = np.array(known.between("CAM_FRONT", "base_link")).reshape(3, 4)
    assert camera[:, :3] @ [0, 0, 1] == pytest.approx([1, 0, 0])


def test_returns_of_a_radar_keep_their_fields_of_mixed_types(scene):
    (_, first), *_ = decoded(scene, "/RADAR_FRONT", "radar")
    assert first.payload.xy[0].tolist() == [20.0, -2.0]
    assert first.payload.velocity[0].tolist() == [-5.0, 0.0]
    assert (first.payload.strength[0], first.payload.ids.tolist()) == (7.5, list(range(6)))
    with open_log(scene) as log:
        (raw, *_) = log.messages(["/RADAR_FRONT"])
    assert [field.name for field in parse(raw).fields] == [name for name, *_ in PCD_FIELDS]


def test_a_camera_has_its_model_and_its_jpeg(scene):
    (_, info), *_ = decoded(scene, "/CAM_FRONT/camera_info", "camera_info")
    assert (info.payload.width_px, info.payload.height_px) == (96, 32)
    assert info.payload.projection[0].tolist() == [1266.4, 0.0, 48.0, 0.0]
    (_, image), *_ = decoded(scene, "/CAM_FRONT/image_rect_compressed", "camera")
    assert (image.payload.encoding, image.payload.pixels().shape) == ("jpeg", (32, 96, 3))


def test_odometry_is_the_difference_of_poses_along_the_vehicle(scene):
    for _, one in decoded(scene, "/odom", "can"):
        assert one.frame == "base_link"
        assert (one.payload.speed, one.payload.yaw_rate) == pytest.approx((5.0, 0.0), abs=1e-6)


def test_annotations_are_truth_in_the_vehicle_that_was_there(scene):
    with open_log(scene) as log:
        scenes = list(read_truth(log))
    assert [one.stamp_ns for one in scenes] == [START_NS + index * S // 2 for index in range(3)]
    assert {one.frame for one in scenes} == {"base_link"}
    assert [[o.id for o in one.truth.objects] for one in scenes] == [[1], [1, 2], [1]]
    for one in scenes:
        car = one.truth.objects[0]
        assert (car.label, car.box.length, car.box.width) == ("car", 4.5, 1.8)
        assert (car.box.x, car.box.y, car.box.z) == pytest.approx((20.0, 0.0, 1.0), abs=1e-6)
        assert (car.box.yaw, car.vx, car.vy) == pytest.approx((0.0, 5.0, 0.0), abs=1e-6)
    walker = scenes[1].truth.objects[1]
    assert walker.label == "pedestrian"
    assert (walker.box.x, walker.box.y) == pytest.approx((10.0, 3.0), abs=1e-6)
    assert math.isnan(walker.vx)


def test_a_set_without_annotations_does_not_say_that_nobody_was_there(scene):
    change(scene, "sample_annotation", lambda rows: rows.clear())
    assert "/ground_truth/objects" not in counts(scene)


def test_the_only_scene_is_meant_where_none_is_named(scene):
    for path in (scene.parent, scene.parent.parent, scene.parent.parent / scene.name):
        assert counts(path) == COUNTS


def test_of_several_scenes_one_is_to_be_named(tmp_path):
    scene = small_sets.write_nuscenes(tmp_path, ("scene-0061", "scene-0103"), samples=1)
    with pytest.raises(InputError, match=r"found scene-0061, scene-0103; name one as .*-0061"):
        open_log(scene.parent)
    with pytest.raises(InputError, match="no such scene of nuScenes; did you mean 'scene-0103'"):
        open_log(scene.with_name("scene-0102"))
    with open_log(scene.with_name("scene-0103")) as log:
        assert {raw.log_ns for raw in log.messages()} == {START_NS + 100 * S}
    shutil.copytree(scene.parent, tmp_path / "v1.0-trainval")
    with pytest.raises(InputError, match=r"one version of nuScenes, found v1.0-mini, v1.0-trainv"):
        open_log(tmp_path)


def test_a_file_that_is_missing_costs_itself_and_a_sensor_that_was_not_unpacked_nothing(scene):
    root = scene.parent.parent
    next((root / "sweeps/LIDAR_TOP").iterdir()).unlink()
    shutil.rmtree(root / "sweeps/CAM_FRONT")
    with open_log(scene) as log:
        messages = []
        with pytest.raises(DamagedInputError, match="cannot be read: No such file"):
            messages.extend(log.messages())
        assert log.topics()["/CAM_FRONT/camera_info"].messages == 3
        assert [(a.topic, a.count) for a in log.anomalies if a.kind == "lost"] == [
            ("/LIDAR_TOP", 1)
        ]


@pytest.mark.parametrize(
    ("table", "edit", "what"),
    [
        ("sample_data", lambda rows: rows[3].update(timestamp="noon"), "timestamp to be a whole"),
        (
            "ego_pose",
            lambda rows: rows[0].update(rotation=[1, 0]),
            r"rotation to be \(4,\) numbers",
        ),
        ("ego_pose", lambda rows: rows.pop(), "ego_pose.json: expected a record 'scene-0061-CAM_F"),
        ("sensor", lambda rows: rows.clear(), "expected a record 's-LIDAR_TOP'"),
        ("sample", lambda rows: rows.clear(), "expected samples of the scene, found none"),
        ("scene", lambda rows: rows.append(3), "scene.json: expected a list of records"),
    ],
)
def test_tables_that_say_something_else_make_the_scene_unusable(scene, table, edit, what):
    change(scene, table, edit)
    with pytest.raises(InputError, match=what):
        open_log(scene)


def test_annotations_that_are_damaged_cost_the_truth_only(scene):
    (scene.parent / "sample_annotation.json").write_text("[{")
    with open_log(scene) as log, pytest.raises(DamagedInputError, match="expected JSON") as caught:
        list(log.messages())
    assert caught.value.good_messages == sum(COUNTS.values()) - 3


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"DATA binary", b"DATA ascii", "with binary data, found DATA ascii"),
        (b"DATA binary", b"TADA binary", "with binary data, found b'# .PCD v0.7"),
        (b"POINTS 6", b"POINTS 7", r"expected 7 points of 38 bytes, found \d+ bytes"),
        (b"POINTS 6", b"POINTS -1", "expected -1 points"),
        (b"POINTS 6\n", b"", "POINTS"),
        (b"TYPE F", b"TYPE X", "FIELDS, SIZE, TYPE"),
        (b"SIZE 4", b"SIZE 3", "field x is of 1 F3"),
        (b"COUNT 1", b"COUNT 2", "field x is of 2 F4"),
        (b"FIELDS x", b"FIELDS", "FIELDS, SIZE, TYPE"),
    ],
)
def test_a_pcd_of_another_kind_is_refused(tmp_path, old, new, what):
    path = tmp_path / "a.pcd"
    small_sets.radar_pcd(path)
    assert read_pcd(path)["x"].tolist() == [20, 21, 22, 23, 24, 25]
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(InputError, match=what):
        read_pcd(path)
