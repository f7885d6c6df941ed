"""The calibration section: from numbers, from files, and what is refused."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spoilt import GOOD, told

from avrt.config.pipeline import load, parse
from avrt.model.codec import decode_pipeline, encode, from_json, to_json
from avrt.model.frames import Frames

KITTI = """\
P0: 700 0 600 0 0 700 180 0 0 0 1 0
P2: 700 0 600 42 0 700 180 0.21 0 0 1 0.003
R0_rect: 1 0 0 0 1 0 0 0 1
Tr_velo_to_cam: 0 -1 0 0.01 0 0 -1 -0.07 1 0 0 -0.27
Tr_imu_to_velo: 1 0 0 -0.8 0 1 0 0.3 0 0 1 -0.8
"""
RADIATE = """\
radar_calib: {T: [0, 0, 0], R: [0, 0, 0]}
lidar_calib: {T: [0.6, -0.1, 0.25], R: [0, 0, 0]}
left_cam_calib: {T: [0.3, 0.0, 0.2], R: [0, 0, 0], fx: 338, fy: 339, cx: 342, cy: 201, res: [672, 376]}
right_cam_calib: {T: [0.4, 0.0, 0.2], R: [1, 0, 0], fx: 338, fy: 339, cx: 342, cy: 201, res: [672, 376]}
"""  # noqa: E501 - as such files are


def frames_of(calibration):
    return Frames(parse(GOOD + calibration, "p.yaml").spec.transforms)


def point(frames, source, target, xyz):
    matrix = np.reshape(frames.between(source, target), (3, 4))
    return matrix[:, :3] @ xyz + matrix[:, 3]


def test_rotation_and_translation_are_those_of_tf():
    frames = frames_of("""\
calibration:
  frames:
    top: {parent: base, translation: [1 m, 2 m, 3 m], rotation: [10 deg, -20 deg, 130 deg]}
""")
    turn = Rotation.from_euler("xyz", [10, -20, 130], degrees=True)
    expected = turn.apply([0.5, 0.6, 0.7]) + np.array([1, 2, 3])
    assert np.allclose(point(frames, "top", "base", [0.5, 0.6, 0.7]), expected)
    assert np.allclose(point(frames, "base", "top", expected), [0.5, 0.6, 0.7])


def test_a_calibration_survives_the_record():
    spec = parse(
        GOOD
        + """\
calibration:
  tf: [/tf_static]
  frames:
    top: {parent: base, matrix: [[0, -1, 0, 0.5], [1, 0, 0, 0], [0, 0, 1, 2]]}
  cameras:
    cam: {size: [640, 480], projection: [[500, 0, 320, 0], [0, 500, 240, 0], [0, 0, 1, 0]]}
""",
        "p.yaml",
    ).spec
    assert spec.tf_topics == ("/tf_static",)
    assert spec.cameras[0].projection[2] == 320.0
    assert spec.transforms[0].origin == "p.yaml:27"
    assert decode_pipeline(from_json(to_json(encode(spec)))) == spec


def test_a_kitti_file_gives_every_frame_and_camera(tmp_path):
    (tmp_path / "calib.txt").write_text(KITTI)
    path = tmp_path / "p.yaml"
    path.write_text(
        GOOD + "calibration:\n  files:\n    calib.txt: {format: kitti, frames: {velodyne: top}}\n"
    )
    spec = load(path).spec
    frames = Frames(spec.transforms)
    p2 = np.array([[700, 0, 600, 42], [0, 700, 180, 0.21], [0, 0, 1, 0.003]])
    lidar = np.array([20.0, 3.0, -1.0])
    rectified = point(frames, "top", "camera_rect", lidar)
    assert np.allclose(rectified, [-3 + 0.01, 1 - 0.07, 20 - 0.27])
    camera = next(camera for camera in spec.cameras if camera.frame == "camera_02")
    projection = np.reshape(camera.projection, (3, 4))
    ours = projection @ [*point(frames, "top", "camera_02", lidar), 1]
    assert np.allclose(ours, p2 @ [*rectified, 1])
    assert np.allclose(point(frames, "imu", "top", [0, 0, 0]), [-0.8, 0.3, -0.8])


def test_raw_kitti_files_join_at_the_unrectified_camera(tmp_path):
    (tmp_path / "velo.txt").write_text(
        "calib_time: 15-Mar-2012\nR: 0 -1 0 0 0 -1 1 0 0\nT: 0.01 -0.07 -0.27\ndelta_f: 0 0\n"
    )
    (tmp_path / "cam.txt").write_text(
        "R_rect_00: 1 0 0 0 1 0 0 0 1\nS_rect_02: 1242 375\n"
        "P_rect_02: 700 0 600 42 0 700 180 0 0 0 1 0\n"
    )
    path = tmp_path / "p.yaml"
    files = "    velo.txt: {format: kitti}\n    cam.txt: {format: kitti}\n"
    path.write_text(GOOD + "calibration:\n  files:\n" + files)
    spec = load(path).spec
    moved = point(Frames(spec.transforms), "velodyne", "camera_02", [20, 3, -1])
    assert np.allclose(moved, [-2.99 + 42 / 700, 0.93, 19.73])
    assert (spec.cameras[0].width_px, spec.cameras[0].height_px) == (1242, 375)


def test_a_radiate_file_places_lidar_and_cameras(tmp_path):
    (tmp_path / "calib.yaml").write_text(RADIATE)
    path = tmp_path / "p.yaml"
    path.write_text(GOOD + "calibration:\n  files:\n    calib.yaml: {format: radiate}\n")
    frames = Frames(load(path).spec.transforms)
    assert np.allclose(point(frames, "lidar", "radar", [1, 2, 3]), [1.6, 1.9, 3.25])
    assert np.allclose(point(frames, "lidar", "left_camera", [1, 20, 3]), [1.3, -3.1, 20.05])


@pytest.mark.parametrize(
    ("section", "what"),
    [
        ("frames: {top: {translation: [1 m, 2 m, 3 m]}}", "'parent' is missing"),
        ("frames: {top: {parent: top}}", "another one as its parent"),
        ("frames: {top: {parent: base, translation: [1, 2, 3]}}", "a length in metres"),
        ("frames: {top: {parent: base, translation: [1 m, 2 m]}}", "a list of three, found 2"),
        ("frames: {top: {parent: base, rotation: [1 m, 2 m, 3 m]}}", "an angle in degrees"),
        ("frames: {top: {parent: base, matrix: [[1, 0, 0], [0, 1, 0]]}}", "3 rows of 4 numbers"),
        (
            "frames: {top: {parent: base, matrix: [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}}",
            "expected a rotation",
        ),
        (
            "frames: {top: {parent: base, matrix: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0]]}}",
            "expected a rotation",
        ),
        ("cameras: {cam: {size: [640]}}", "'projection' is missing"),
        (
            "cameras: {c: {size: [0, 1], projection: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}}",
            "width and height",
        ),
        (
            "cameras: {c: {size: [9, 9], projection: [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}}",
            "focal lengths above zero",
        ),
        ("files: {no.txt: {format: kitti}}", "cannot read no.txt"),
        ("files: {no.txt: {format: kiti}}", "did you mean 'kitti'?"),
        ("tf: /tf", "a list of topics"),
        ("frame: {}", "did you mean 'frames'?"),
        (
            "frames: {a: {parent: b, translation: [1 m, 0 m, 0 m]}, b: {parent: a}}",
            "p.yaml:25 and p.yaml:25 are 1 m and 0 deg apart",
        ),
    ],
)
def test_a_wrong_calibration_is_told_with_its_line(section, what):
    line = told(f"{GOOD}calibration:\n  {section}\n")
    assert what in line
    assert "is taken" not in line
    assert line.startswith("p.yaml:2")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "a KITTI calibration file with keys such as P2"),
        ("P2: 1 2 3\n", "expected 12 numbers in P2"),
        ("P2: one two\n", "expected numbers after 'P2' in"),
        ("P2: nan 0 0 0 0 1 0 0 0 0 1 0\n", "expected finite numbers"),
        ("P2: 0 0 0 0 0 0 0 0 0 0 1 0\n", "focal lengths above zero"),
        (f"{KITTI}S_rect_02: 1242\n", "expected 2 numbers in S_rect_02 of .*, found 1"),
        (f"{KITTI}P2: 1 0 0 0 0 1 0 0 0 0 1 0\n", "'P2' stands for the second time in .*:6"),
        (KITTI.replace("R0_rect: 1", "R0_rect: 9"), "expected a rotation in .* R0_rect"),
        (" " * (1 << 18) + KITTI, "longer than 262144 bytes"),
    ],
)
def test_a_broken_kitti_file_is_told(tmp_path, content, what):
    (tmp_path / "calib.txt").write_text(content)
    text = f"{GOOD}calibration:\n  files: {{calib.txt: {{format: kitti}}}}\n"
    with pytest.raises(Exception, match=what) as caught:
        parse(text, str(tmp_path / "p.yaml"))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("lidar_calib", "lidr_calib", "T and R of three numbers each in lidar_calib"),
        ("[0.6, -0.1, 0.25]", "[0.6, .nan, 0.25]", "finite numbers in T and R"),
        ("fx: 338", "fx: wide", "fx, fy, cx, cy"),
        ("res: [672, 376]", "res: 672", "res: .width, height."),
        ("T:", "T", "no YAML|three numbers"),
        ("[0.6, -0.1, 0.25]", f"[0.6, {10**400}, 0.25]", "finite numbers in T and R"),
        ("[0.6, -0.1, 0.25]", "[0.6, true, 0.25]", "finite numbers in T and R"),
        ("fx: 338", f"fx: {10**400}", "expected fx, fy, cx, cy"),
        ("fx: 338", "fx: 0", "fx, fy and res above zero in left_cam_calib"),
        ("res: [672, 376]", "res: [672, 0]", "fx, fy and res above zero in left_cam_calib"),
        ("lidar_calib", "[" * 10_000, "is no YAML: [^\n]*$"),
        ("lidar_calib:", "lidar_calib", "is no YAML: [^\n]*$"),
    ],
)
def test_a_broken_radiate_file_is_told(tmp_path, old, new, what):
    (tmp_path / "calib.yaml").write_text(RADIATE.replace(old, new, 1 if old != "T:" else -1))
    text = f"{GOOD}calibration:\n  files: {{calib.yaml: {{format: radiate}}}}\n"
    with pytest.raises(Exception, match=what) as caught:
        parse(text, str(tmp_path / "p.yaml"))
    assert caught.value.exit_code == 2


def test_a_frame_that_a_file_lacks_cannot_be_renamed(tmp_path):
    (tmp_path / "calib.txt").write_text(KITTI)
    files = "{calib.txt: {format: kitti, frames: {velo: top}}}"
    with pytest.raises(Exception, match=r"has no frame 'velo'; it has .*velodyne"):
        parse(f"{GOOD}calibration:\n  files: {files}\n", str(tmp_path / "p.yaml"))
