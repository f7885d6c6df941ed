"""Tracks keep their identity, their numbers stay sane, and time never wipes what is known."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avrt.errors import SpecError
from avrt.payload import Box, Detection, Detections
from avrt.stages.fusion import tracking
from avrt.stages.fusion.planar import Shift
from avrt.stages.fusion.tracker import Tracker

CHECKED = settings(derandomize=True, deadline=None, max_examples=50)


def seen(x, y, *, yaw=0.0, label="car"):
    points = np.array([[x - 2.1, y, -1.0]], np.float32)
    box = Box(x, y, -1.0, 4.2, 1.75, 1.5, yaw)
    return Detection(box, label, 0.8, points, 100, x - 2.1)


def drive(tracker, sent, steps, dt=0.1, start=0.0, target=None):
    """Run a target through the tracker; return what came out of each step."""
    target = target or (lambda t: [seen(20.0 - 2.0 * t, 1.0)])
    times = [start + dt * k for k in range(steps)]
    return [tracker.process(sent(Detections(tuple(target(t))), t)) for t in times]


def test_a_constant_velocity_is_recovered(sent):
    rng = np.random.default_rng(7)

    def target(t):
        dx, dy = rng.normal(0, 0.05, 2)
        return [seen(10.0 + 3.0 * t + dx, -2.0 + 0.5 * t + dy)]

    (track,) = drive(Tracker(ego_speed=5.0), sent, 30, target=target)[-1].objects
    assert track.confirmed
    assert track.vx == pytest.approx(8.0, abs=0.4)
    assert track.vy == pytest.approx(0.5, abs=0.4)
    assert track.closing_speed == pytest.approx(-3.0, abs=0.4)
    assert track.box.x == pytest.approx(10.0 + 3.0 * 2.9, abs=0.2)


def test_the_ego_speed_moves_only_the_speed_over_ground(sent):
    slow, fast = (drive(Tracker(ego_speed=v), sent, 20)[-1].objects[0] for v in (0.0, 10.0))
    assert fast.closing_speed == pytest.approx(slow.closing_speed, abs=0.05)
    assert fast.vx - slow.vx == pytest.approx(10.0, abs=0.05)


def test_a_heading_across_pi_does_not_jump(sent):
    yaws = [3.05, 3.12, -3.10, -3.03, -2.96, -2.89]
    tracker = Tracker()
    for k, yaw in enumerate(yaws):
        tracks = tracker.process(sent(Detections((seen(20.0, 1.0, yaw=yaw),)), 0.1 * k))
        (track,) = tracks.objects
        assert -math.pi < track.box.yaw <= math.pi
        assert abs(math.remainder(track.box.yaw - yaw, math.pi)) < 0.3


def test_a_box_told_back_to_front_keeps_its_heading(sent):
    tracks = drive(
        Tracker(), sent, 20, target=lambda t: [seen(20.0, 1.0, yaw=math.pi * (round(t * 10) % 2))]
    )
    assert abs(tracks[-1].objects[0].box.yaw) < 0.05


@given(
    x=st.floats(-60, 60),
    y=st.floats(-60, 60),
    yaw=st.floats(-4, 4),
    dts=st.lists(st.floats(0, 3), min_size=1, max_size=12),
)
@CHECKED
def test_covariance_stays_symmetric_and_positive_definite(x, y, yaw, dts):
    mean = np.array([x, y, 0.0, 0.0, yaw])
    covariance = np.diag([0.1, 0.1, 36.0, 6.0, 0.1])
    for k, dt in enumerate(dts):
        shift = Shift(7.0 * dt, 0.1, 0.3 * dt)
        (mean,), (covariance,) = tracking.predict(mean[None], covariance[None], dt, shift)
        mean, covariance = tracking.update(
            mean, covariance, (x + 0.1 * k, y, yaw + 0.2 * k), (0.2, 0.2)
        )
        assert np.allclose(covariance, covariance.T, atol=0)
        assert np.linalg.eigvalsh(covariance).min() > 0
        assert -math.pi < mean[4] <= math.pi


def test_the_order_of_detections_does_not_matter(sent):
    def scene(t):
        return [seen(20.0 - t, 1.0), seen(21.0 - t, -2.0), seen(30.0, 5.0), seen(12.0, 4.5 - t)]

    results = []
    for order in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
        tracker = Tracker()
        last = None
        for k in range(6):
            objects = scene(0.1 * k)
            last = tracker.process(sent(Detections(tuple(objects[i] for i in order)), 0.1 * k))
        results.append([(one.id, one.box, one.vx, one.existence) for one in last.objects])
    assert all(result == results[0] for result in results)


def test_a_track_is_tentative_then_confirmed_then_deleted(sent):
    tracker = Tracker()
    stages = [tracks.objects[0].confirmed for tracks in drive(tracker, sent, 4)]
    assert stages == [False, False, True, True]
    empty = drive(tracker, sent, 12, start=0.4, target=lambda _: [])
    counts = [len(tracks.objects) for tracks in empty]
    assert counts[0] == 1
    assert counts[-1] == 0
    assert sorted(counts, reverse=True) == counts


def test_existence_rises_with_hits_and_falls_with_misses(sent):
    tracker = Tracker()
    rising = [tracks.objects[0].existence for tracks in drive(tracker, sent, 4)]
    assert rising == sorted(rising)
    falling = [
        tracks.objects[0].existence
        for tracks in drive(tracker, sent, 2, start=0.4, target=lambda _: [])
    ]
    assert rising[-1] > falling[0] > falling[1]


def test_an_unseen_track_is_predicted_and_supported_by_no_sensor(sent):
    tracker = Tracker()
    last = drive(tracker, sent, 10)[-1].objects[0]
    (unseen,) = tracker.process(sent(Detections(), 1.0)).objects
    assert last.sensors == ("lidar",)
    assert unseen.sensors == ()
    assert unseen.misses == 1
    assert unseen.nearest_x == pytest.approx(last.nearest_x - 0.2, abs=0.05)


def test_ids_are_never_used_again(sent):
    tracker = Tracker()
    drive(tracker, sent, 5)
    drive(tracker, sent, 12, start=0.5, target=lambda _: [])
    (again,) = tracker.process(sent(Detections((seen(20.0, 1.0),)), 2.0)).objects
    assert again.id == 2


def test_a_gap_keeps_the_track_and_widens_it(sent):
    tracker = Tracker()
    before = drive(tracker, sent, 20)[-1].objects[0]
    (missed,) = tracker.process(sent(Detections(), 3.5)).objects
    assert missed.id == before.id
    assert missed.covariance[0, 0] > 10 * before.covariance[0, 0]
    (after,) = tracker.process(sent(Detections((seen(20.0 - 7.2, 1.0),)), 3.6)).objects
    assert after.id == before.id


def test_after_a_very_long_gap_the_position_is_no_longer_known(sent):
    tracker = Tracker()
    drive(tracker, sent, 20)
    assert tracker.process(sent(Detections(), 60.0)).objects == ()


def test_two_sweeps_of_one_time_are_both_used(sent):
    tracker = Tracker()
    drive(tracker, sent, 5)
    (first,) = tracker.process(sent(Detections((seen(19.2, 1.0),)), 0.4, 4)).objects
    (second,) = tracker.process(sent(Detections((seen(19.2, 1.0),)), 0.4, 5)).objects
    assert second.hits == first.hits + 1
    assert np.isfinite(second.covariance).all()


def test_a_late_sweep_adds_no_time(sent):
    tracker = Tracker()
    drive(tracker, sent, 10)
    tracker.process(sent(Detections((seen(18.4, 1.0),)), 0.8))
    (track,) = tracker.process(sent(Detections((seen(18.0, 1.0),)), 1.0)).objects
    assert track.id == 1
    assert track.closing_speed == pytest.approx(2.0, abs=1.0)


def test_a_clock_that_steps_back_wipes_nothing(sent):
    tracker = Tracker()
    drive(tracker, sent, 10, start=100.0, target=lambda t: [seen(20.0 - 2 * (t - 100), 1.0)])
    again = drive(tracker, sent, 10, start=5.0, target=lambda t: [seen(18.2 - 2 * (t - 5), 1.0)])
    assert [one.id for one in again[-1].objects] == [1]
    assert again[-1].objects[0].closing_speed == pytest.approx(2.0, abs=0.5)


def test_a_thawed_tracker_goes_on_as_the_frozen_one(sent):
    first, second = Tracker(), Tracker()
    drive(first, sent, 8)
    second.thaw(pickle.loads(pickle.dumps(first.freeze())))  # noqa: S301
    tails = [drive(one, sent, 5, start=0.8) for one in (first, second)]
    for one, other in zip(*tails, strict=True):
        assert [(t.id, t.box, t.existence) for t in one.objects] == [
            (t.id, t.box, t.existence) for t in other.objects
        ]


def test_a_frozen_state_does_not_change_afterwards(sent):
    tracker = Tracker()
    drive(tracker, sent, 8)
    state = tracker.freeze()
    before = pickle.dumps(state)
    drive(tracker, sent, 5, start=0.8)
    assert pickle.dumps(state) == before


def test_a_foreign_state_is_refused_and_changes_nothing(sent):
    tracker = Tracker()
    drive(tracker, sent, 3)
    state = tracker.freeze()
    with pytest.raises(SpecError):
        tracker.thaw({"tracks": []})
    assert tracker.freeze() is state


@pytest.mark.parametrize(
    "wrong",
    [{"ego_speed": math.inf}, {"gate": 1.0}, {"confirm_hits": 0}, {"confirm_existence": "high"}],
)
def test_a_wrong_parameter_is_the_users_mistake(wrong):
    with pytest.raises(SpecError):
        Tracker(**wrong)
