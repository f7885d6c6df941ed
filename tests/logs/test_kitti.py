"""KITTI's folders as logs: places, times, and what is missing."""

import math
from pathlib import Path

import numpy as np
import pytest
import small_sets
import yaml
from small_sets import FRAMES, text

from avrt.errors import DamagedInputError, InputError
from avrt.logs import open_log
from avrt.logs.decode import decode
from avrt.logs.kitti.frames import START_NS
from avrt.logs.transforms import read_transforms
from avrt.logs.truth import read_truth
from avrt.model.frames import Frames

ROOT = Path(__file__).parents[2]
S = 1_000_000_000
POINTS = "/lidar/velodyne/points"
OF_CAMERA = {"/camera/image_02/camera_info", "/camera/image_02/compressed"}
OF_OXTS = {"/oxts/imu", "/oxts/fix", "/oxts/speed"}


@pytest.fixture
def drive(tmp_path):
    return small_sets.write_kitti_raw(tmp_path)


@pytest.fixture
def sequence(tmp_path):
    return small_sets.write_kitti_tracking(tmp_path)


@pytest.fixture
def frames(tmp_path):
    return small_sets.write_kitti_frames(tmp_path)


def decoded(path, topic, kind):
    with open_log(path) as log:
        return [(raw.log_ns, decode(raw, kind)) for raw in log.messages([topic])]


def frames_of(path):
    with open_log(path) as log:
        return Frames(tuple(read_transforms(log, ["/tf_static"])[0]))


def truth_of(path):
    with open_log(path) as log:
        return list(read_truth(log))


def lost(path):
    """Return what is lost by topic, and what is told of the damage."""
    with open_log(path) as log:
        with pytest.raises(DamagedInputError) as caught:
            list(log.messages())
        return {a.topic: a.count for a in log.anomalies if a.kind == "lost"}, str(caught.value)


# Where things are


def test_the_frames_are_where_the_sensor_setup_has_them(drive, sequence, frames):
    for path in (drive, sequence, frames):
        known = frames_of(path)
        lidar = np.array(known.between("velodyne", "base_link")).reshape(3, 4)
        assert lidar[:, 3] == pytest.approx([0.76, 0.0, 1.73], abs=0.02)
        camera = np.array(known.between("camera_02", "base_link")).reshape(3, 4)
        assert camera[:, 3] == pytest.approx([1.09, 0.06, 1.65], abs=0.03)
        assert camera[:, 2] == pytest.approx([1.0, 0.0, 0.0], abs=0.03)  # it looks ahead


def test_the_calibration_of_a_day_is_that_of_the_shipped_pipeline(drive):
    day = {
        small_sets.P2: "721.5377 0 609.5593 44.85728 0 721.5377 172.854 0.2163791 "
        "0 0 1 0.002745884",
        small_sets.R0: "0.9999239 0.00983776 -0.007445048 -0.009869795 0.9999421 -0.004278459 "
        "0.007402527 0.004351614 0.9999631",
    }
    cameras = (drive.parent / "calib_cam_to_cam.txt").read_text()
    for old, new in day.items():
        cameras = cameras.replace(old, new)
    text(drive.parent / "calib_cam_to_cam.txt", cameras)
    turn = (
        "0.007533745 -0.9999714 -0.000616602 0.01480249 0.0007280733 -0.9998902 "
        "0.9998621 0.00752379 0.01480755"
    )
    velodyne = f"R: {turn}\nT: -0.004069766 -0.07631618 -0.2717806\n"
    text(drive.parent / "calib_velo_to_cam.txt", velodyne)
    shipped = yaml.safe_load((ROOT / "pipelines/kitti.yaml").read_text())
    matrix = shipped["calibration"]["frames"]["velodyne"]["matrix"]
    found = np.array(frames_of(drive).between("velodyne", "camera_02")).reshape(3, 4)
    assert found == pytest.approx(np.array(matrix), abs=1e-6)


def test_a_point_is_in_the_image_where_the_development_kit_has_it(drive):
    (_, info), *_ = decoded(drive, "/camera/image_02/camera_info", "camera_info")
    known = frames_of(drive)
    point = np.array([12.0, 1.0, -0.5, 1.0])
    matrix = np.array(known.between("velodyne", "camera_02")).reshape(3, 4)
    u, v, depth = info.payload.projection[:, :3] @ (matrix @ point)
    numbers = [
        np.array(words.split(), float) for words in (small_sets.P2, small_sets.R0, small_sets.VELO)
    ]
    projection, turn, velo = (m.reshape(3, -1) for m in numbers)
    x, y, z = turn @ (velo @ point)
    expected = projection @ (x, y, z, 1)
    assert (u / depth, v / depth) == pytest.approx(expected[:2] / expected[2], abs=0.05)


def test_a_labelled_car_stands_on_the_ground_ahead_and_faces_away(frames):
    first, second, *_ = truth_of(frames)
    assert first.truth.objects == ()
    (car,) = second.truth.objects
    assert (second.frame, car.label, car.id) == ("velodyne", "car", 2000)
    assert (car.box.length, car.box.width, car.box.height) == (4.0, 1.6, 1.5)
    assert (car.box.x, car.box.y) == pytest.approx((20.3, -2.0), abs=0.2)
    assert car.box.z - car.box.height / 2 == pytest.approx(-1.73, abs=0.2)
    assert car.box.yaw == pytest.approx(0.0, abs=0.02)
    assert math.isnan(car.vx)


# Object frames


def test_object_frames_come_one_second_apart(frames):
    with open_log(frames) as log:
        topics = log.topics()
        times = log.log_times()
    assert topics.keys() == {
        "/tf_static", *OF_CAMERA, POINTS, f"{POINTS}_in_image", "/ground_truth/objects",
    }  # fmt: skip
    for found in times.values():
        assert found.tolist() == [START_NS + index * S for index in range(FRAMES)]


def test_a_frame_has_what_it_has_files_of(frames):
    (frames / "training/velodyne/000001.bin").unlink()
    (frames / "training/image_2/000002.png").unlink()
    with open_log(frames) as log:
        counts = {topic: info.messages for topic, info in log.topics().items()}
        assert len(list(log.messages())) == sum(counts.values())
    assert (counts[POINTS], counts[f"{POINTS}_in_image"]) == (FRAMES - 1, FRAMES - 2)
    assert counts["/ground_truth/objects"] == FRAMES


def test_files_of_no_number_are_no_frames_and_the_shorter_name_counts(frames):
    whole = decoded(frames, POINTS, "lidar")
    for name in (".DS_Store", "readme.txt", "000001.reduced.bin"):
        text(frames / "training/velodyne" / name, "")
    with open_log(frames) as log:
        assert log.topics()[POINTS].messages == FRAMES
    assert [one.payload.count for _, one in decoded(frames, POINTS, "lidar")] == [
        one.payload.count for _, one in whole
    ]


def test_a_folder_of_frames_without_any_is_refused(tmp_path):
    (tmp_path / "velodyne").mkdir()
    with pytest.raises(InputError, match="expected frames in velodyne, image_2, label_2"):
        open_log(tmp_path)


# Tracking sequences


def test_a_sequence_has_truth_for_every_frame_and_ids_that_stay(sequence):
    scenes = truth_of(sequence)
    assert [scene.stamp_ns for scene in scenes] == [
        START_NS + index * S // 10 for index in range(FRAMES)
    ]
    assert [[one.id for one in scene.truth.objects] for scene in scenes] == [[7], [], [7, 8], []]
    assert {scene.frame for scene in scenes} == {"velodyne"}


def test_a_sequence_is_opened_by_its_labels_its_name_or_its_folder(sequence):
    folder = sequence.parent
    paths = (sequence, folder / "label_02/0003.txt", folder, folder.parent)
    topics = []
    for path in paths:
        with open_log(path) as log:
            topics.append({topic: info.messages for topic, info in log.topics().items()})
    assert topics == topics[:1] * len(paths)
    assert topics[0].keys() == {
        "/tf_static", *OF_CAMERA, POINTS, f"{POINTS}_in_image", *OF_OXTS, "/ground_truth/objects",
    }  # fmt: skip


def test_a_frame_without_a_sweep_keeps_the_others_in_time(sequence):
    times = [at for at, _ in decoded(sequence, POINTS, "lidar")]
    assert times == [START_NS + index * S // 10 for index in (0, 2, 3)]


def test_of_several_sequences_one_is_to_be_named(sequence):
    text(sequence.parent / "label_02/0004.txt", f"0 1 {small_sets.CAR}")
    with pytest.raises(InputError, match=r"found 0003, 0004; name one as .*training/0003"):
        open_log(sequence.parent)


def test_labels_alone_are_in_the_level_axes_of_the_camera(tmp_path):
    text(tmp_path / "0000.txt", f"0 3 {small_sets.CAR}\n")
    (scene,) = truth_of(tmp_path / "0000.txt")
    (car,) = scene.truth.objects
    assert scene.frame == "camera_00_level"
    assert (car.box.x, car.box.y, car.box.z) == pytest.approx((20.0, -2.0, -0.95))
    assert car.box.yaw == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "expected a file with something in it, found an empty file"),
        (f"0 1 {small_sets.CAR} 0.9", "line 1: expected 17 words, found a score"),
        (f"0 1 {small_sets.CAR}\n0 1 Car", "line 2: expected 17 words, found 3"),
        (f"0 1 {small_sets.CAR.replace('Car', 'Boat')}", "line 1: expected Car, Van, .* 'Boat'"),
        (f"-1 1 {small_sets.CAR}", "line 1: expected a frame up to 1000000 .* -1 and 1"),
        (f"2000000 1 {small_sets.CAR}", "line 1: expected a frame up to 1000000 and a number"),
        (f"1 4294967296 {small_sets.CAR}", "line 1: expected .* up to 4294967295, found 1 and"),
        (f"0 x {small_sets.CAR}", "line 1: expected the numbers of a frame and an object"),
        (f"0 1 {small_sets.CAR.replace('20.00', 'inf')}", "line 1: expected finite numbers"),
    ],
)
def test_labels_that_are_none_cost_the_truth_only(sequence, content, what):
    text(sequence.parent / "label_02/0003.txt", content)
    with open_log(sequence) as log:
        messages = []
        with pytest.raises(DamagedInputError, match=what):
            messages.extend(log.messages())
    assert len(messages) == 1 + 2 * FRAMES + 2 * (FRAMES - 1) + 3 * FRAMES


def test_labels_without_anything_else_are_refused(tmp_path):
    text(tmp_path / "label_02/0000.txt", "")
    with pytest.raises(InputError, match="found an empty file"):
        open_log(tmp_path / "label_02/0000.txt")


def test_recorded_labels_are_all_there(shared):
    for path in sorted((shared / "kitti_tracking_text/label_02").iterdir()):
        words = [line.split() for line in path.read_text().splitlines()]
        named = [line for line in words if line[2] != "DontCare"]
        scenes = truth_of(path)
        assert len(scenes) == 1 + max(int(line[0]) for line in words)
        assert sum(len(scene.truth.objects) for scene in scenes) == len(named) > 100
        nearest = [min((o.box.x for o in s.truth.objects), default=9.0) for s in scenes]
        assert min(nearest) > -5.0  # what is labelled is in the image


@pytest.mark.parametrize(
    ("name", "what"),
    [("0000", "line 1: expected 17 words, found a score"), ("0017", "found an empty file")],
)
def test_recorded_results_of_a_tracker_are_no_truth(shared, name, what):
    with pytest.raises(InputError, match=what):
        open_log(shared / f"kitti_tracking_text/tracker_results/{name}.txt")


# Raw drives


def test_a_drive_has_its_times_and_a_sweep_is_recorded_when_it_ends(drive):
    first_ns = int(np.datetime64("2011-09-26T13:02:25", "ns").astype(np.int64))
    sweeps = decoded(drive, POINTS, "lidar")
    assert [(at, one.header_ns) for at, one in sweeps] == [
        (first_ns + index * S // 10 + S // 20, first_ns + index * S // 10)
        for index in range(FRAMES)
    ]
    images = decoded(drive, "/camera/image_02/compressed", "camera")
    assert [at for at, _ in images] == [first_ns + index * S // 10 for index in range(FRAMES)]
    assert images[0][1].payload.encoding == "png"
    assert images[0][1].payload.pixels().shape == (32, 96, 3)


@pytest.mark.slow
def test_a_recorded_sequence_is_the_same_in_a_drive_as_in_the_file_it_came_in(shared, tmp_path):
    recorded = shared / "kitti_sfnd_seq/kitti_sfnd_7p8s.mcap"
    topics = {POINTS: "lidar", "/camera/image_02/compressed": "camera"}
    for topic, folder in zip(topics, ("velodyne_points", "image_02"), strict=True):
        lines = []
        for index, (_, one) in enumerate(decoded(recorded, topic, topics[topic])):
            path = tmp_path / folder / "data" / f"{index:010d}"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines.append(f"{np.datetime64(one.header_ns, 'ns')}\n".replace("T", " "))
            if topic == POINTS:
                rows = np.column_stack((one.payload.xyz, one.payload.intensity))
                rows.astype("<f4").tofile(path.with_suffix(".bin"))
            else:
                path.with_suffix(".jpg").write_bytes(one.payload.data.tobytes())
        text(tmp_path / folder / "timestamps.txt", "".join(lines))
    for topic, kind in topics.items():
        pairs = zip(decoded(recorded, topic, kind), decoded(tmp_path, topic, kind), strict=True)
        for (_, one), (_, other) in pairs:
            assert one.header_ns == other.header_ns
            if topic == POINTS:
                assert np.array_equal(one.payload.xyz, other.payload.xyz)
                assert np.array_equal(one.payload.intensity, other.payload.intensity)
            else:
                assert np.array_equal(one.payload.data, other.payload.data)


def test_the_unit_tells_motion_in_its_own_axes(drive):
    (_, imu), *_ = decoded(drive, "/oxts/imu", "imu")
    assert imu.payload.acceleration == pytest.approx([1.1, 1.2, 1.3])
    assert imu.payload.angular_rate == pytest.approx([1.7, 1.8, 1.9])
    x, y, z, w = imu.payload.orientation
    assert math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) == pytest.approx(0.5)
    assert math.asin(2 * (w * y - z * x)) == pytest.approx(0.01)
    (_, speed), *_ = decoded(drive, "/oxts/speed", "can")
    assert (speed.payload.speed, speed.payload.yaw_rate) == pytest.approx((0.8, 2.2))
    (_, fix), *_ = decoded(drive, "/oxts/fix", "gnss")
    assert (fix.payload.latitude, fix.payload.longitude) == (49.01, 8.43)
    assert fix.payload.sigma == pytest.approx([2.3] * 3)


def test_a_file_that_is_missing_or_cut_costs_its_message_only(drive):
    (drive / "velodyne_points/data/0000000001.bin").unlink()
    for index, cut in ((0, 1), (2, 40)):
        image = drive / f"image_02/data/{index:010d}.png"
        image.write_bytes(image.read_bytes()[:-cut])
    (drive / "oxts/data/0000000003.txt").write_text("49.0 8.4")
    counts, told = lost(drive)
    assert counts == {
        POINTS: 1, "/camera/image_02/compressed": 2, "/oxts/imu": 1, "/oxts/fix": 1,
        "/oxts/speed": 1,
    }  # fmt: skip
    assert "0000000000.png: expected a whole png, found one that is cut; and 3 more" in told


def test_the_only_drive_of_a_day_is_meant_and_of_several_one_is_to_be_named(drive):
    with open_log(drive) as one, open_log(drive.parent) as other:
        assert one.topics() == other.topics()
    second = drive.with_name("2011_09_26_drive_0009_sync")
    text(second / "oxts/timestamps.txt", "2011-09-26 13:02:25.0")
    with pytest.raises(InputError, match=r"one drive, found .*0005_sync, .*0009_sync; name one as"):
        open_log(drive.parent)


@pytest.mark.parametrize("content", ["", "yesterday\n", "2011-09-26 13:02:25\n13 o'clock"])
def test_times_that_are_none_cost_their_sensor_only(drive, content):
    (drive / "image_02/timestamps.txt").write_text(content)
    counts, told = lost(drive)
    assert counts == {}
    assert "image_02/timestamps.txt" in told
    assert "expected a" in told


@pytest.mark.parametrize(
    ("old", "new"), [("0.9999128", "0.8999128"), ("0.9999128", "nan"), ("R_rect", "P_rect")]
)
def test_a_calibration_that_holds_no_rotation_costs_what_needs_it(sequence, old, new):
    path = sequence.parent / "calib/0003.txt"
    path.write_text(path.read_text().replace(old, new))
    _, told = lost(sequence)
    assert "0003.txt: expected " in told
    assert "rotation" in told or "9 numbers of R0_rect or R_rect" in told


def test_a_calibration_that_is_damaged_is_told_and_one_that_is_missing_is_not(drive):
    file = drive.parent / "calib_velo_to_cam.txt"
    file.write_text("R: 1 2 3\nT: 1 2 3\n")
    _, told = lost(drive)
    assert "expected 9 numbers of R, found '1 2 3'" in told
    (drive.parent / "calib_cam_to_cam.txt").unlink()
    with open_log(drive) as log:
        assert "/tf_static" not in log.topics()
        assert len(list(log.messages())) == 5 * FRAMES
