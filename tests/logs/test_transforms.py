import math

import pytest

from avrt.errors import SpecError
from avrt.logs import open_log
from avrt.logs.ros.types import TRANSFORMS
from avrt.logs.transforms import read_transforms
from avrt.logs.writer import LogWriter
from avrt.model.frames import SAME_DEGREES, SAME_METRES, Frames

START_NS = 1_700_000_000_000_000_000
NONE = (0.0, 0.0, 0.0, 1.0)


def turned(degrees):
    half = math.radians(degrees) / 2
    return (0.0, 0.0, math.sin(half), math.cos(half))


@pytest.fixture
def told(tmp_path):
    """Write transforms, each (parent, child, place) in a message of its own, and read them."""

    def run(*transforms):
        path = tmp_path / "log.mcap"
        with LogWriter(path) as log:
            for index, one in enumerate(transforms):
                log.add_transforms("/tf", START_NS + index, [one])
        with open_log(path) as log:
            return read_transforms(log, ["/tf"])

    return run


def test_a_mounting_takes_points_of_the_child_to_the_parent(told):
    (spec,), odd = told(("/base", "/lidar", (1.0, 2.0, 3.0, *turned(90))))
    assert (spec.parent, spec.child, spec.origin) == ("base", "lidar", "/tf")
    assert spec.matrix == pytest.approx((0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3))
    assert Frames([spec]).between("lidar", "base") == spec.matrix
    assert odd == []


@pytest.mark.parametrize(
    ("place", "moves"),
    [
        ((0.0, 0.0, 0.0, *NONE), False),
        ((SAME_METRES * 0.99, 0.0, 0.0, *NONE), False),
        ((SAME_METRES * 1.01, 0.0, 0.0, *NONE), True),
        ((0.0, 0.0, 0.0, *turned(SAME_DEGREES * 0.99)), False),
        ((0.0, 0.0, 0.0, *turned(SAME_DEGREES * 1.01)), True),
    ],
)
def test_a_mounting_that_moves_is_told_and_keeps_its_first_value(told, place, moves):
    (spec,), odd = told(("base", "lidar", (0.0, 0.0, 0.0, *NONE)), ("base", "lidar", place))
    assert spec.matrix[3] == 0.0
    assert [(a.kind, a.topic, a.at_ns, a.count) for a in odd] == [
        ("transform_moves", "/tf", START_NS + 1, 1)
    ] * moves


def test_the_largest_move_of_each_pair_is_told(told):
    _, (odd,) = told(
        ("a", "b", (0.0, 0.0, 0.0, *NONE)),
        ("a", "b", (0.5, 0.0, 0.0, *turned(10))),
        ("a", "b", (0.2, 0.0, 0.0, *turned(90))),
        ("a", "c", (0.0, 0.0, 0.0, *NONE)),
        ("a", "c", (0.0, 3.0, 0.0, *turned(180))),
    )
    assert odd.count == 3
    assert odd.detail == (
        "a to b moves up to 0.500 m and 90.00 deg; a to c moves up to 3.000 m and 180.00 deg"
    )


def test_a_gap_of_an_hour_changes_no_mounting(tmp_path):
    path, here = tmp_path / "log.mcap", ("base", "lidar", (1.0, 0.0, 0.0, *NONE))
    with LogWriter(path) as log:
        for at_ns in (START_NS, START_NS + 3600 * 10**9):
            log.add_transforms("/tf", at_ns, [here])
    with open_log(path) as log:
        (spec,), odd = read_transforms(log, ["/tf"])
    assert spec.matrix[3] == 1.0
    assert odd == []


@pytest.mark.parametrize(
    ("transforms", "what"),
    [
        ([("a", "b"), ("c", "b")], "b is below a already, and is said to be below c"),
        ([("a", "b"), ("b", "a")], "b to a closes a ring"),
        ([("a", "b"), ("b", "c"), ("c", "a")], "c to a closes a ring"),
        ([("a", "a")], "a to a closes a ring"),
    ],
)
def test_what_contradicts_the_tree_is_told_and_left_out(told, transforms, what):
    specs, (odd,) = told(*((p, c, (0.0, 0.0, 0.0, *NONE)) for p, c in transforms))
    assert [(s.parent, s.child) for s in specs] == transforms[:-1]
    assert odd.kind == "transform_contradicts"
    assert what in odd.detail


@pytest.mark.parametrize(
    "place",
    [
        (math.nan, 0.0, 0.0, *NONE),
        (0.0, 0.0, math.inf, *NONE),
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.02),
        (0.0, 0.0, 0.0, 0.0, 0.0, math.nan, 1.0),
    ],
)
def test_what_is_no_transform_is_told_and_left_out(told, place):
    specs, (odd,) = told(("a", "b", place))
    assert specs == []
    assert odd.kind == "transform_invalid"
    assert "a to b" in odd.detail


def test_a_quaternion_that_is_nearly_one_is_made_one(told):
    (spec,), odd = told(("a", "b", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.009)))
    assert spec.matrix[0] == spec.matrix[5] == spec.matrix[10] == 1.0
    assert odd == []


def test_a_message_that_cannot_be_read_is_told_and_the_rest_is_read(tmp_path):
    path = tmp_path / "log.mcap"
    with LogWriter(path) as log:
        log.add_raw("/tf", TRANSFORMS, START_NS, b"junk")
        log.add_transforms("/tf", START_NS + 1, [("a", "b", (0.0, 0.0, 0.0, *NONE))])
    with open_log(path) as log:
        specs, (odd,) = read_transforms(log, ["/tf"])
    assert [s.child for s in specs] == ["b"]
    assert (odd.kind, odd.count) == ("undecodable", 1)


def test_a_damaged_log_gives_what_it_has(tmp_path):
    path = tmp_path / "log.mcap"
    with LogWriter(path, chunk_bytes=200) as log:
        for index in range(40):
            at = (float(index), 0.0, 0.0, *NONE)
            log.add_transforms("/tf", START_NS + index, [("a", f"c{index}", at)])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with open_log(path) as log:
        specs, _ = read_transforms(log, ["/tf"])
    assert 0 < len(specs) < 40


@pytest.mark.parametrize(
    ("topic", "what"),
    [("/tff", "no topic '/tff'; did you mean '/tf'?"), ("/lidar", "expected /lidar to be of tf2")],
)
def test_a_topic_that_has_no_transforms_is_refused(tmp_path, topic, what):
    path = tmp_path / "log.mcap"
    with LogWriter(path) as log:
        log.add_transforms("/tf", START_NS, [])
        log.add_raw("/lidar", "sensor_msgs/msg/PointCloud2", START_NS, b"")
    with open_log(path) as log, pytest.raises(SpecError, match=what):
        read_transforms(log, [topic])


def test_the_recorded_bags_tell_what_is_fixed_and_what_moves(shared):
    with open_log(shared / "sick_lidar_radar_bag" / "rms_1xxx_lms_1xx_movement_off.bag") as log:
        (spec,), odd = read_transforms(log, ["/tf"])
    assert (spec.parent, spec.child, odd) == ("cloud", "radar", [])
    with open_log(shared / "rosbags_misc" / "tilt_laser.bag") as log:
        specs, (odd,) = read_transforms(log, ["/tf"])
    assert [(s.parent, s.child) for s in specs] == [
        ("tilt_axis", "camera"), ("tilt_base", "tilt_axis"), ("tilt_axis", "laser"),
    ]  # fmt: skip
    assert odd.detail.startswith("tilt_base to tilt_axis moves up to 0.000 m")
