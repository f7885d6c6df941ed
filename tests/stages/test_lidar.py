"""The detector finds what stands on the road, on slopes too, and makes nothing of the road."""

from __future__ import annotations

import math

import numpy as np
import pytest

from avrt.errors import DataFault, SpecError
from avrt.model.frames import Frames, TransformSpec
from avrt.payload import Box, Detections
from avrt.stages.lidar.detector import KEPT_POINTS, Detector
from avrt.stages.lidar.ground import GroundModel


def car(x, y=0.0, yaw=0.0, road=-1.73):
    return Box(x, y, road + 0.8, 4.4, 1.8, 1.5, yaw)


def test_a_car_ahead_is_found_where_it_is(scan, sweep):
    found = Detector().process(sweep(scan([car(14.0)]))).objects
    assert [one.label for one in found] == ["car"]
    (one,) = found
    assert one.nearest_x == pytest.approx(11.8, abs=0.1)
    assert one.box.x - one.box.length / 2 == pytest.approx(11.8, abs=0.1)
    assert one.box.y == pytest.approx(0.0, abs=0.15)
    assert abs(math.remainder(one.box.yaw, math.pi)) < math.radians(4)
    assert one.score is not None
    assert 0 < one.score <= 1


@pytest.mark.parametrize("slope", [-0.08, 0.08])
def test_a_car_on_a_slope_is_found_where_it_is(scan, sweep, slope):
    road = -1.73 + slope * (14.0 - 6.0)
    found = Detector().process(sweep(scan([car(14.0, road=road)], slope, 6.0))).objects
    cars = [one for one in found if one.label == "car"]
    assert len(cars) == 1
    assert cars[0].nearest_x == pytest.approx(11.8, abs=0.1)


@pytest.mark.parametrize("slope", [-0.08, -0.04, 0.0, 0.04, 0.08])
@pytest.mark.parametrize("slope_from", [0.0, 10.0, 25.0])
def test_a_slope_is_no_object(scan, sweep, slope, slope_from):
    assert Detector().process(sweep(scan((), slope, slope_from))) == Detections()


def test_the_road_is_at_height_zero(scan):
    points = scan((), 0.06, 12.0)
    height = GroundModel(1.73, 0.2).heights(points)
    near = points[:, 0] < 40
    assert np.abs(height[near]).max() < 0.2


def test_mirror_images_below_the_road_do_not_sink_it(scan):
    points = scan([car(14.0)])
    ghosts = points[::40] * np.array([1, 1, 1.3], np.float32)
    height = GroundModel(1.73, 0.2).heights(np.concatenate([points, ghosts]))[: len(points)]
    flat = (np.abs(points[:, 2] + 1.73) < 1e-3) & (np.hypot(*points[:, :2].T) < 30)
    assert np.abs(height[flat]).max() < 0.15


def test_an_empty_sweep_shows_nothing(sweep):
    assert Detector().process(sweep(np.zeros((0, 3)))) == Detections()


def test_points_that_are_no_numbers_change_nothing(scan, sweep):
    points = scan([car(14.0)])
    broken = np.full((500, 3), np.nan, np.float32)
    broken[::3] = np.inf
    broken[1::3, 0] = 5.0
    mixed = np.concatenate([broken, points])
    expected = Detector().process(sweep(points)).objects
    found = Detector().process(sweep(mixed)).objects
    assert [one.box for one in found] == [one.box for one in expected]


def test_only_broken_points_show_nothing(sweep):
    assert Detector().process(sweep(np.full((50, 3), np.nan))) == Detections()


def test_the_same_sweep_gives_the_same_bits(scan, sweep):
    points = scan([car(14.0, 0.3, 0.2), car(22.0, -3.5), car(9.0, 4.0)])
    first, second = (Detector().process(sweep(points)).objects for _ in range(2))
    assert [one.box for one in first] == [one.box for one in second]
    for one, other in zip(first, second, strict=True):
        assert one.points.tobytes() == other.points.tobytes()


def test_a_wall_is_no_vehicle(scan, sweep):
    wall = Box(25.0, 8.0, 0.2, 40.0, 0.3, 4.0, 0.0)
    found = Detector().process(sweep(scan([wall]))).objects
    assert not [one for one in found if one.label != "unknown"]


def test_a_wall_across_the_corridor_is_reported_whatever_it_is(scan, sweep):
    wall = Box(25.0, 0.0, 0.2, 0.3, 60.0, 4.0, 0.0)
    found = Detector().process(sweep(scan([wall]))).objects
    assert [one.label for one in found] == ["unknown"]
    assert found[0].nearest_x == pytest.approx(24.85, abs=0.1)


def test_a_pole_is_no_road_user(scan, sweep):
    pole = Box(12.0, 4.0, 1.0, 0.25, 0.25, 6.0, 0.0)
    assert Detector().process(sweep(scan([pole]))) == Detections()


def test_people_are_told_from_cars(scan, sweep):
    person = Box(9.0, 3.0, -0.85, 0.5, 0.6, 1.75, 0.0)
    found = Detector().process(sweep(scan([person, car(16.0, -3.5)]))).objects
    assert [one.label for one in found] == ["pedestrian", "car"]


def test_a_visible_face_stays_and_the_box_grows_away_from_it(scan, sweep):
    (one,) = Detector().process(sweep(scan([car(20.0, 0.0)]))).objects
    assert one.box.length >= 4.2
    assert one.box.x - one.box.length / 2 == pytest.approx(17.8, abs=0.15)


def test_kept_points_are_bounded_and_near_the_visible_face(scan, sweep):
    (one,) = Detector().process(sweep(scan([car(10.0)]))).objects
    assert one.points.shape == (KEPT_POINTS, 3)
    assert one.point_count > KEPT_POINTS
    assert one.points[:, 0].max() < one.nearest_x + 2.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"sensor_height": 0.0},
        {"range_min": 90.0},
        {"range_max": math.nan},
        {"points_min": 0},
        {"clearance": "0.2 m"},
        {"elevation_max": None},
    ],
)
def test_a_wrong_parameter_is_the_users_mistake(wrong):
    with pytest.raises(SpecError) as caught:
        Detector(**wrong)
    assert caught.value.key == tuple(wrong)


def test_warming_up_finds_a_wall_without_a_sweep():
    Detector().warm()


def test_a_detector_looks_in_the_frame_it_is_told(scan, sweep):
    """A LiDAR whose y points forward sees the same boxes once it is turned."""
    points = scan([car(14.0)])
    straight = Detector().process(sweep(points)).objects
    turned = Detector(frame="vehicle")
    own = sweep(points[:, [1, 0, 2]] * np.array([-1, 1, 1], np.float32))
    turn = (0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    mounted = TransformSpec(parent="vehicle", child=own.stamp.frame, matrix=turn)
    turned.calibrate(Frames([mounted]))
    assert turned.output_frame == "vehicle"
    assert [one.box for one in turned.process(own).objects] == [one.box for one in straight]


def test_a_frame_without_a_transform_is_a_fault_of_the_job(scan, sweep):
    with pytest.raises(DataFault, match="'vehicle'"):
        Detector(frame="vehicle").process(sweep(scan(())))
