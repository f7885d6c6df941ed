"""Every sensor has its say about the tracks, and none is needed."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic import SIZE, Car, Traffic, frames, targets

from avrt.errors import DataFault, SpecError
from avrt.model.message import Message, Stamp
from avrt.payload import Box, CameraInfo, Detections
from avrt.stages.fusion.tracker import Tracker

CARS = [Car(30, 0, 9, 0), Car(45, -3.5, 7, 0), Car(60, 4, -8, 0), Car(35, 3.5, 0, 0)]


WORLD = Traffic(CARS[:2], speed=8.0, yaw_rate=0.2)
LOOKS = [
    (name, getattr(WORLD, name)(0.1 * k))
    for k in range(4)
    for name in ("ego", "lidar", "radar", "camera")
]


def made(camera_yaw=0.0, **parameters):
    tracker = Tracker(vehicle_frame="base", **parameters)
    tracker.calibrate(frames(camera_yaw))
    return tracker


def drive(tracker, world, steps, sensors=("lidar", "radar", "camera", "ego"), start=0):
    """Run a world through the tracker at 10 Hz, each sensor a little older than the LiDAR."""
    results = []
    for k in range(start, start + steps):
        t = 0.1 * k
        inputs = {"lidar": world.lidar(t)}
        if "ego" in sensors:
            inputs["ego"] = world.ego(t - 0.01)
        if "radar" in sensors:
            inputs["radar"] = world.radar(t - 0.02)
        if "camera" in sensors:
            inputs["camera"] = world.camera(t - 0.05)
        results.append(tracker.process(**inputs))
    return results


def used(tracks, name):
    return next(one for one in tracks.inputs if one.name == name)


def test_all_sensors_support_a_track_in_a_bend():
    world = Traffic(CARS, speed=8.0, yaw_rate=0.1, seed=1)
    last = drive(made(), world, 25)[-1]
    assert [one.sensors for one in last.objects[:2]] == [("camera", "lidar", "radar")] * 2
    truth = sorted(world.seen_from(2.4, 1.0))
    for one, (x, y, vx, vy, _) in zip(
        sorted(last.objects, key=lambda o: o.box.x), truth, strict=True
    ):
        assert (one.box.x, one.box.y) == pytest.approx((x, y), abs=0.4)
        assert (one.vx, one.vy) == pytest.approx((vx, vy), abs=0.8)
    assert [one.name for one in last.inputs] == ["ego", "lidar", "radar", "camera"]
    assert [one.age_ns for one in last.inputs] == [10_000_000, 0, 20_000_000, 50_000_000]
    assert [one.anomaly for one in last.inputs] == [""] * 4
    assert last.ego_speed == 8.0
    assert last.yaw_rate == 0.1


@pytest.mark.parametrize("name", ["radar", "camera"])
def test_a_sensor_of_an_unknown_place_is_told_and_does_not_stop_the_others(name):
    world = Traffic(CARS)
    tracks = Tracker().process(lidar=world.lidar(0.0), **{name: getattr(world, name)(0.0)})
    assert len(tracks.objects) == 4
    assert used(tracks, name).anomaly == f"no transform leads from frame '{name}' to 'lidar'"
    assert used(tracks, name).dropped >= 3


@pytest.mark.parametrize("given", [("lidar",), ("lidar", "ego")])
def test_without_the_place_of_what_the_tracks_rest_on_there_are_none(given):
    world = Traffic(CARS)
    frame = "" if "ego" in given else "elsewhere"
    tracker = Tracker(vehicle_frame="base", frame=frame)
    with pytest.raises(DataFault, match="no transform leads from frame"):
        tracker.process(**{name: getattr(world, name)(0.0) for name in given})


@pytest.mark.parametrize("info", [None, CameraInfo(*SIZE, np.zeros((3, 4)))])
def test_a_camera_without_a_model_is_told_even_when_it_sees_nothing(info):
    """Zeros are what a ROS driver sends for a camera that is not calibrated."""
    world = Traffic(CARS)
    bare = replace(world.camera(0.0, miss=True).payload, info=info)
    tracks = made().process(lidar=world.lidar(0.0), camera=world.message("camera", 0.0, bare))
    assert used(tracks, "camera").anomaly.startswith("no camera model")


def test_a_camera_whose_mounting_is_wrong_by_five_degrees_is_told():
    world = Traffic(CARS, speed=8.0, seed=1)
    right, wrong = (drive(made(np.deg2rad(yaw)), world, 15)[-1] for yaw in (0.0, 5.0))
    assert used(right, "camera").residual < 10
    assert used(right, "camera").anomaly == ""
    assert used(wrong, "camera").residual > 40
    assert "check the transform" in used(wrong, "camera").anomaly
    for one, other in zip(right.objects, wrong.objects, strict=True):
        assert (one.box.x, one.box.y) == pytest.approx((other.box.x, other.box.y), abs=0.3)


def test_a_camera_that_is_turned_during_the_drive_fits_fewer_tracks():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made(camera_offset_max=30.0)
    assert used(drive(tracker, world, 15)[-1], "camera").anomaly == ""
    tracker.calibrate(frames(np.deg2rad(5.0)))
    later = drive(tracker, world, 12, start=15)
    assert "of the boxes fit the tracks" in used(later[-1], "camera").anomaly


def test_an_image_of_fog_wipes_no_track():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    before = drive(tracker, world, 10)[-1]
    for k in range(10, 25):
        t = 0.1 * k
        last = tracker.process(
            lidar=world.lidar(t),
            radar=world.radar(t - 0.02),
            camera=world.camera(t - 0.05, miss=True),
            ego=world.ego(t - 0.01),
        )
    assert [one.id for one in last.objects] == [one.id for one in before.objects]
    assert min(one.existence for one in last.objects) > 0.99
    assert "camera" not in {name for one in last.objects for name in one.sensors}


def test_nothing_received_is_not_nothing_seen():
    world = Traffic(CARS, speed=8.0, seed=1)
    silent, empty = made(), made()
    for tracker in (silent, empty):
        drive(tracker, world, 10)
    for k in range(10, 14):
        t = 0.1 * k
        found = world.lidar(t), world.ego(t - 0.01)
        gone = silent.process(lidar=found[0], radar=None, ego=found[1])
        none = empty.process(
            lidar=found[0], radar=world.message("radar", t - 0.02, targets([])), ego=found[1]
        )
    assert {one.misses for one in gone.objects} == {0}
    assert all("radar" in one.sensors for one in gone.objects)
    assert not any("radar" in one.sensors for one in none.objects)
    assert used(gone, "radar").age_ns == 420_000_000
    assert used(none, "radar").age_ns == 20_000_000


def test_support_ends_half_a_second_after_a_sensor_fell_silent():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    drive(tracker, world, 10)
    last = drive(tracker, world, 15, sensors=("lidar", "ego"), start=10)[-1]
    assert {one.sensors for one in last.objects} == {("lidar",)}
    assert used(last, "radar").anomaly == "silent for 1.5 s"


def test_radar_carries_tracks_that_lidar_lost():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    before = drive(tracker, world, 10)[-1]
    nothing = Detections()
    for k in range(10, 25):
        t = 0.1 * k
        last = tracker.process(
            lidar=world.message("lidar", t, nothing),
            radar=world.radar(t - 0.02, spots=(-0.5, 0.5)),
            ego=world.ego(t - 0.01),
        )
    assert [one.id for one in last.objects] == [one.id for one in before.objects]
    assert {one.sensors for one in last.objects} == {("radar",)}


def test_radar_without_doppler_carries_what_moves_in_the_open_but_not_along_a_fence():
    """Wherever a track drives along a fence, a post reflects near by."""
    world = Traffic([Car(35, 3.5), Car(60, -4, -8, 0)], speed=8.0, seed=1)

    def left_after(fence):
        tracker = made()
        drive(tracker, world, 10)
        for k in range(10, 25):
            t = 0.1 * k
            ahead = [(x - 8.0 * t, -5.5, 0.0) for x in range(20, 80, 2)] if fence else []
            last = tracker.process(
                lidar=world.message("lidar", t, Detections()),
                radar=world.radar(t - 0.02, doppler=False, extra=ahead),
                ego=world.ego(t - 0.01),
            )
        return [round(one.vx, -1) for one in last.objects]

    assert left_after(fence=False) == [-10.0, 0.0]
    assert left_after(fence=True) == [0.0]


def test_a_target_among_many_says_less_than_one_alone():
    """All of them may lie in the gate of a track whose place is not known well any more."""

    def existence(*others):
        tracker = made()
        drive(tracker, Traffic([Car(40, 0)]), 5)
        at_ns = 1_000_000_000
        xy = [(40 - 2.1 - 3, 0.0), *others]  # the radar is 3 m ahead of the vehicle's origin
        radar = Message(Stamp("radar", 7, at_ns, at_ns, at_ns, "radar"), targets(xy))
        lidar = Traffic([]).lidar(1.0)
        return tracker.process(lidar=lidar, radar=radar).objects[0].existence

    assert existence((36, 1.5), (36, -1.5), (38, 1), (38, -1)) < existence()


def test_the_range_rate_tells_the_speed_at_once():
    def speed_error(doppler):
        world = Traffic([Car(40, 1, -9, 0)], speed=8.0, yaw_rate=0.1, seed=3)
        tracker = made()
        tracker.process(lidar=world.lidar(0.0), ego=world.ego(0.0))
        found = tracker.process(
            lidar=world.lidar(0.1), radar=world.radar(0.09, doppler=doppler), ego=world.ego(0.05)
        )
        (_, _, vx, _, _) = next(iter(world.seen_from(0.1, 1.0)))
        return abs(found.objects[0].vx - vx)

    assert speed_error(doppler=True) < 0.5
    assert speed_error(doppler=False) > 3 * speed_error(doppler=True)


def test_several_reflections_are_one_vehicle():
    world = Traffic([Car(25, 0, 8, 0)], speed=8.0, seed=1)
    tracker = made()
    for k in range(15):
        t = 0.1 * k
        tracks = tracker.process(
            lidar=world.lidar(t),
            radar=world.radar(t, spots=(-0.8, -0.3, 0.2, 0.7)),
            ego=world.ego(t),
        )
    (track,) = tracks.objects
    assert used(tracks, "radar").matched == 4
    assert track.hits == 30
    assert track.box.y == pytest.approx(0.0, abs=0.2)


def test_radar_alone_tracks_a_moving_vehicle_and_starts_none_at_a_wall():
    world = Traffic([Car(40, 1, 12, 0)], speed=8.0, seed=2)
    wall = [(x, 7.0, -8.0 * x / np.hypot(x, 7.0)) for x in range(5, 60, 2)]
    tracker = made(trigger="radar")
    for k in range(40):
        t = 0.05 * k
        tracks = tracker.process(radar=world.radar(t, extra=wall), ego=world.ego(t))
    (track,) = tracks.objects
    x, y, vx, _, _ = next(iter(world.seen_from(t, 3.0)))
    assert track.confirmed
    assert track.label == "unknown"
    assert track.sensors == ("radar",)
    assert track.nearest_x == pytest.approx(x - 2.1, abs=0.4)
    assert track.box.y == pytest.approx(y, abs=0.5)
    assert track.vx == pytest.approx(vx, abs=0.3)


def test_a_burst_of_ghosts_confirms_nothing_and_keeps_within_the_caps():
    world = Traffic([Car(40, 1, 12, 0)], speed=8.0, seed=2)
    rng = np.random.default_rng(1)
    tracker = made(trigger="radar")
    for k in range(20):
        before = tracker.process(radar=world.radar(0.05 * k), ego=world.ego(0.05 * k))
    ghosts = rng.uniform([5, -30, -30], [80, 30, 30], (100, 3))
    burst = tracker.process(radar=world.radar(1.0, extra=ghosts.tolist()), ego=world.ego(1.0))
    assert len(burst.objects) <= 17
    assert [one.id for one in burst.objects if one.confirmed] == [before.objects[0].id]
    for k in range(21, 26):
        after = tracker.process(radar=world.radar(0.05 * k), ego=world.ego(0.05 * k))
    assert len(after.objects) == 1


def test_a_camera_alone_starts_no_track_but_names_one():
    world = Traffic([Car(40, 1, 12, 0)], speed=8.0, seed=2)
    tracker = made(trigger="camera", frame="lidar")
    for k in range(10):
        tracks = tracker.process(camera=world.camera(0.1 * k), ego=world.ego(0.1 * k))
    assert tracks.objects == ()
    assert used(tracks, "camera").measurements == 1
    for k in range(10, 25):
        t = 0.1 * k
        tracks = tracker.process(
            camera=world.camera(t), radar=world.radar(t - 0.02), ego=world.ego(t)
        )
    (track,) = tracks.objects
    assert track.label == "car"
    assert track.sensors == ("camera", "radar")


def test_what_is_no_number_is_dropped_and_counted():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    drive(tracker, world, 10)
    bad = world.radar(0.98).payload
    xy = bad.xy.copy()
    xy[0] = np.nan
    boxes = world.lidar(1.0).payload.objects
    broken = replace(boxes[0], box=replace(boxes[0].box, yaw=float("nan")))
    image = world.camera(0.95).payload
    rects = image.boxes.copy()
    rects[0, 1] = np.inf
    tracks = tracker.process(
        lidar=world.message("lidar", 1.0, Detections((broken, *boxes))),
        radar=world.message("radar", 0.98, replace(bad, xy=xy)),
        camera=world.message("camera", 0.95, replace(image, boxes=rects)),
        ego=world.ego(0.99),
    )
    assert [used(tracks, name).dropped for name in ("lidar", "radar", "camera")] == [1, 1, 1]
    assert len(tracks.objects) == 4
    assert all(np.isfinite(one.covariance).all() for one in tracks.objects)


def test_an_image_without_a_camera_model_is_told():
    world = Traffic(CARS)
    bare = replace(world.camera(0.0).payload, info=None)
    tracks = made().process(lidar=world.lidar(0.0), camera=world.message("camera", 0.0, bare))
    assert used(tracks, "camera").anomaly.startswith("no camera model")
    assert used(tracks, "camera").dropped == 4


def test_a_motion_that_is_no_number_is_left_out():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    drive(tracker, world, 10)
    broken = replace(world.ego(0.99).payload, yaw_rate=float("nan"))
    tracks = tracker.process(lidar=world.lidar(1.0), ego=world.message("base", 0.99, broken))
    assert used(tracks, "ego").anomaly == "its speed or yaw rate is no number"
    assert (tracks.ego_speed, tracks.yaw_rate) == (8.0, 0.0)
    assert [one.misses for one in tracks.objects] == [0, 0, 0, 0]


def test_a_motion_that_is_not_known_yet_is_left_out():
    """An estimator that has just begun says that the vehicle stands, give or take 15 m/s."""
    world = Traffic(CARS, speed=8.0, seed=1)
    begun = replace(world.ego(0.0).payload, speed=0.0, covariance=np.diag([225.0, 0.09]))
    tracker, other = made(), made()
    first = world.lidar(0.0)
    told = tracker.process(lidar=first, ego=world.message("base", 0.0, begun))
    other.process(lidar=first)
    assert used(told, "ego").anomaly == "its speed is not known within 2 m/s"
    for k in (1, 2, 3):
        given = {"lidar": world.lidar(0.1 * k), "ego": world.ego(0.1 * k)}
        assert tracker.process(**given).objects[0].vx == other.process(**given).objects[0].vx


@given(
    numbers=st.lists(
        st.floats(width=32) | st.sampled_from([0.0, -0.0, 1e30, -1e30]), min_size=48, max_size=48
    )
)
@settings(max_examples=60)
def test_no_measurement_makes_the_tracks_impossible(numbers):
    wild = np.array(numbers, np.float32).reshape(8, 6)
    tracker = made()
    drive(tracker, WORLD, 2)
    found = targets(wild[:, :2], wild[:, 2])
    image = WORLD.camera(0.25).payload
    image = replace(
        image, boxes=wild[:, :4], scores=np.full(8, 0.9, np.float32), labels=("car",) * 8
    )
    boxes = tuple(
        replace(one, box=Box(*map(float, row), yaw=float(row[5])))
        for one, row in zip(WORLD.lidar(0.3).payload.objects * 4, wild, strict=True)
    )
    tracks = tracker.process(
        lidar=WORLD.message("lidar", 0.3, Detections(boxes)),
        radar=WORLD.message("radar", 0.28, replace(found, velocity=wild[:, 3:5])),
        camera=WORLD.message("camera", 0.25, image),
    )
    for one in tracks.objects:
        assert np.isfinite(one.covariance).all()
        assert np.isfinite([one.box.x, one.box.y, one.box.yaw, one.vx, one.vy]).all()
        assert 0 <= one.existence <= 1


def test_a_sampled_message_is_used_once():
    world = Traffic(CARS, speed=8.0, seed=1)
    once, again = made(), made()
    for k in range(8):
        t = 0.1 * k
        given = {"lidar": world.lidar(t), "ego": world.ego(t)}
        old = Traffic(CARS, speed=8.0).radar(0.0)
        one = once.process(**given, radar=old if k == 0 else None)
        two = again.process(**given, radar=old)
        assert state_of(one) == state_of(two)
    assert used(two, "radar").lost == used(two, "radar").late == 0


def test_a_clock_that_runs_ahead_is_left_out_and_told():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    before = drive(tracker, world, 10)[-1]
    ahead = tracker.process(lidar=world.lidar(1.0), radar=world.radar(38.0), ego=world.ego(1.0))
    assert used(ahead, "radar").anomaly == "its clock runs 37.0 s ahead"
    assert used(ahead, "radar").lost == 1
    assert [one.id for one in ahead.objects] == [one.id for one in before.objects]


def test_what_was_captured_after_the_trigger_waits_and_is_no_anomaly():
    world = Traffic(CARS)
    tracker = made()
    first = tracker.process(lidar=world.lidar(0.0), radar=world.radar(0.05))
    assert (used(first, "radar").age_ns, used(first, "radar").anomaly) == (None, "")
    second = tracker.process(lidar=world.lidar(0.1), radar=world.radar(0.05))
    assert used(second, "radar").age_ns == 50_000_000


def test_a_source_that_begins_anew_ends_every_track_once():
    world = Traffic(CARS, speed=8.0, seed=1)
    tracker = made()
    old = {one.id for one in drive(tracker, world, 10)[-1].objects}
    first = world.lidar(0.0)
    at_ns = 1_000_000_000
    stamp = replace(first.stamp, capture_ns=at_ns, capture_end_ns=at_ns, sequence=10, epoch=1)
    anew = tracker.process(lidar=replace(first, stamp=stamp))
    assert not old & {one.id for one in anew.objects}
    assert {one.hits for one in anew.objects} == {1}


def test_the_trigger_must_be_there_and_new():
    world = Traffic(CARS)
    with pytest.raises(DataFault, match="expected a message of lidar or radar or camera"):
        made().process(ego=world.ego(0.0))
    tracker = made()
    sweep = world.lidar(0.0)
    tracker.process(lidar=sweep, radar=world.radar(0.0))
    with pytest.raises(DataFault, match="say which input is the trigger"):
        tracker.process(lidar=sweep, radar=world.radar(0.05))
    with pytest.raises(DataFault, match="expected a frame whose z points up"):
        made(trigger="camera").process(camera=world.camera(0.0))
    with pytest.raises(SpecError, match="expected one of lidar, radar, camera"):
        Tracker(trigger="sonar")


def test_a_payload_of_another_sensor_is_refused():
    world = Traffic(CARS)
    with pytest.raises(DataFault, match="expected Targets as radar, found Detections"):
        made().process(lidar=world.lidar(0.0), radar=world.lidar(0.05))


def test_a_thawed_tracker_goes_on_as_the_frozen_one():
    world = Traffic(CARS, speed=8.0, yaw_rate=0.1)
    first, second = made(), made()
    drive(first, world, 8)
    second.thaw(pickle.loads(pickle.dumps(first.freeze())))  # noqa: S301
    tails = [drive(one, world, 6, start=8) for one in (first, second)]
    assert [state_of(one) for one in tails[0]] == [state_of(one) for one in tails[1]]


def test_an_id_stays_when_a_late_look_starts_the_track_earlier():
    world = Traffic([Car(40, 1, 12, 0)], speed=8.0)
    tracker = made()
    tracker.process(lidar=world.message("lidar", 0.0, Detections()), ego=world.ego(0.0))
    before = tracker.process(lidar=world.lidar(0.2), ego=world.ego(0.2))
    after = tracker.process(lidar=world.lidar(0.3), radar=world.radar(0.1), ego=world.ego(0.3))
    assert used(after, "radar").late == 1
    assert [one.id for one in before.objects] == [one.id for one in after.objects] == [1]
    assert after.objects[0].hits == 3


def test_the_reverse_order_of_arrival_gives_the_same_tracks():
    expected = arrived(range(16))
    assert len(expected) == 2
    assert arrived(range(15, -1, -1)) == expected


@pytest.mark.slow
@given(order=st.permutations(range(16)))
@settings(max_examples=60)
def test_the_order_of_arrival_does_not_matter(order):
    """Sixteen looks within the history, equal stamps among them, in any order."""
    assert arrived(order) == arrived(range(16))


def arrived(order):
    """Return what is believed after these looks came in this order, and one more of the LiDAR."""
    tracker = made(frame="lidar")
    tracker.process(lidar=WORLD.message("lidar", -0.01, Detections()))
    for i in order:
        name, message = LOOKS[i]
        inputs = {name: message}
        if name == "ego":
            inputs["lidar"] = WORLD.message("lidar", -0.01 + 1e-6 * i, Detections())
        tracker.process(**inputs)
    tracks = tracker.process(lidar=WORLD.lidar(0.4))
    return [one[1:] for one in state_of(tracks)]


def state_of(tracks):
    return [
        (
            *(one.id, one.box, one.vx, one.vy, one.existence),
            *(one.hits, one.misses, one.confirmed, one.sensors, one.covariance.tobytes()),
        )
        for one in tracks.objects
    ]
