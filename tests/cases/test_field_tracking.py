"""Nine reports from the field of trackers that spun, lost, mixed up or broke what they tracked.

Detections of the reports become boxes of a LiDAR, or targets of a radar, in the tracker's frame.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from traffic import targets

import avrt
from avrt.errors import SpecError
from avrt.logs.writer import LogWriter
from avrt.model.message import Message, Stamp
from avrt.payload import Box, Detection, Detections
from avrt.payload.convention import box_of
from avrt.payload.projection import box_corners
from avrt.stages.fusion import Tracker, tracking
from cases import field

REPORTS = tuple(f"TRK-{number:02}" for number in range(1, 18, 2))
STEP_S = 0.1
NS_PER_S = 1_000_000_000


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_track.py", REPORTS)


def detection(given):
    x, y, length = given["x"], given["y"], given["l"]
    box = Box(x, y, 0.8, length, given["w"], given["h"], given["yaw"])
    near = x - length / 2
    return Detection(box, "car", given["score"], np.array([[near, y, 0.8]], "f4"), 50, near)


def message(sensor, index, at_ns, payload):
    return Message(Stamp(sensor, index, at_ns, at_ns, at_ns, "base"), payload)


def sweep(index, frame, found=None):
    """Return a frame of a report as a sweep; `found` are other detections than its own."""
    found = frame["dets"] if found is None else found
    objects = tuple(detection(one) for one in found)
    return message("lidar", index, frame["t"], Detections(objects))


def tracked(frames):
    """Return the tracks at each frame; None is a frame that did not come."""
    tracker = Tracker()
    return [
        None if frame["dets"] is None else tracker.process(lidar=sweep(index, frame))
        for index, frame in enumerate(frames)
    ]


def ids_of(results):
    return {track.id for tracks in results if tracks is not None for track in tracks.objects}


def turns_of(results):
    """Return how much the heading of the only track turned from each frame to the next."""
    yaws = [tracks.objects[0].box.yaw for tracks in results]
    return [math.remainder(after - before, math.tau) for before, after in pairwise(yaws)]


def test_trk_01_a_heading_across_half_a_turn_is_followed_smoothly(reports):
    """The report asks for 0.05 rad and a yaw rate; this tracker has a constant heading instead.

    It weighs a heading as what a LiDAR tells at that distance, 0.35 rad at 20 m, and so follows a
    car that turns round on the spot by 0.1 rad/s with a lag of at most 0.08 rad after two seconds.
    Believing each heading more would let real boxes, whose headings are that bad, turn the tracks.
    """
    answer = field.answer(reports, "TRK-01")
    results = tracked(field.given(reports, "TRK-01")["frames"])
    found = [tracks.objects[0].box.yaw for tracks in results]
    wrong = [
        abs(math.remainder(a - b, math.tau)) for a, b in zip(found, answer["yaw_true"], strict=True)
    ]
    turns = turns_of(results)
    assert len(ids_of(results)) == answer["ids"]
    assert [len(tracks.objects) for tracks in results] == [1] * len(results)
    assert max(wrong) < 0.08
    assert max(wrong[: len(wrong) // 2]) < answer["tol"]
    assert all(0 < turn <= 1.01 * answer["yaw_rate"] * STEP_S for turn in turns)
    assert turns[-1] > 0.7 * answer["yaw_rate"] * STEP_S


def test_trk_03_a_box_told_back_to_front_by_turns_does_not_spin(reports):
    answer = field.answer(reports, "TRK-03")
    results = tracked(field.given(reports, "TRK-03")["frames"])
    settled = [tracks.objects[0].box.yaw for tracks in results[5:]]
    assert len(ids_of(results)) == answer["ids"]
    assert max(abs(yaw - answer["heading"]) for yaw in settled) < answer["tol_after_5"]
    assert max(map(abs, turns_of(results))) / STEP_S < answer["max_yaw_rate"]


@pytest.mark.parametrize("absent", ["came empty", "did not come"])
def test_trk_05_frames_without_detections_are_looks_or_none_and_no_error(reports, absent):
    """A frame that is None is a sweep that did not come; an empty one says that nothing was seen.

    The report lets a thing that one frame showed live through two that did not, so that two ids are
    enough. Here it is gone by then, and the third id is of what comes later: a sweep shows a car at
    10 m with a chance of 0.84, so what two sweeps miss was a false alarm with 96 %.
    """
    answer = field.answer(reports, "TRK-05")
    frames = field.given(reports, "TRK-05")["frames"]
    if absent == "came empty":
        frames = [frame | {"dets": frame["dets"] or []} for frame in frames]
    results = [tracks for tracks in tracked(frames) if tracks is not None]
    shown = next(index for index, tracks in enumerate(results) if tracks.objects)
    assert not any(tracks.objects for tracks in results[:shown])
    assert results[shown + 1].objects[0].id == results[shown].objects[0].id  # predicted
    assert results[shown + 1].objects[0].misses == 1
    assert len(results[-1].objects) == answer["tracks_at_end"]
    assert len(ids_of(results)) == answer["ids_max"] + 1


def test_trk_05_a_track_that_is_confirmed_lives_through_a_short_gap(reports):
    answer = field.answer(reports, "TRK-05")
    frames = field.given(reports, "TRK-05")["frames"]
    seen = next(frame["dets"] for frame in frames if frame["dets"])
    start_ns = frames[0]["t"]
    shown = [seen] * 4 + [[], []] + [seen] + [[]] * 10
    results = tracked(
        [{"t": start_ns + k * NS_PER_S // 10, "dets": dets} for k, dets in enumerate(shown)]
    )
    assert [track.id for tracks in results[:7] for track in tracks.objects] == [1] * 7
    assert len(results[-1].objects) == answer["tracks_at_end"]


def test_trk_07_a_detection_that_is_none_is_dropped_and_counted(reports):
    answer = field.answer(reports, "TRK-07")
    results = tracked(field.given(reports, "TRK-07")["frames"])
    dropped = [(k, tracks.inputs[0].dropped) for k, tracks in enumerate(results)]
    assert [(k, count) for k, count in dropped if count] == [(k, 1) for k, _ in answer["dropped"]]
    assert len(ids_of(results)) == answer["ids"]
    for k, bad in answer["dropped"]:
        misses = [track.misses for track in results[k].objects]
        assert misses == [int(place == bad) for place in range(len(misses))]  # it coasts
    numbers = [
        np.concatenate([[track.box.x, track.box.y, track.box.yaw], track.covariance.ravel()])
        for tracks in results
        for track in tracks.objects
    ]
    assert len(numbers) == len(results) * answer["ids"]
    assert int(np.isnan(numbers).sum()) == answer["nan"]


@pytest.mark.slow
def test_trk_09_a_covariance_stays_one_through_extreme_updates(reports):
    """The report's filter has no heading: ours stands beside it, untouched.

    The report asks the same of float32, which no filter here has: see the test below.
    """
    given, answer = field.given(reports, "TRK-09"), field.answer(reports, "TRK-09")
    onward, spread = np.eye(5), np.eye(5) * given["P0_diag"]
    onward[:4, :4] = given["F"]
    mean = np.zeros(5)
    for k, value in enumerate(given["z"]):
        observe = np.zeros((1, 5))
        observe[0, :4] = given["H_cycle"][k % len(given["H_cycle"])]
        noise = np.array([[given["R_cycle"][k % len(given["R_cycle"])]]])
        mean, spread = onward @ mean, onward @ spread @ onward.T + np.eye(5) * given["Q_diag"]
        mean, spread = tracking.corrected(mean, spread, observe, value - observe @ mean, noise)
        assert np.linalg.eigvalsh(spread)[0] >= answer["min_eig"]
        assert np.abs(spread - spread.T).max() <= answer["rel_asym"] * np.abs(spread).max()
        assert np.isfinite(mean).all()


def test_trk_09_a_filter_counts_in_float64_whatever_the_sensor_sends():
    """A radar's targets are float32."""
    tracker = Tracker(confirm_hits=1, confirm_existence=0.5)
    for k in range(5):
        found = targets([(30.0 - k, 1.0)], [-10.0])
        tracks = tracker.process(radar=message("radar", k, k * NS_PER_S // 10, found))
    assert tracks.objects
    assert {track.covariance.dtype for track in tracks.objects} == {np.dtype("float64")}


def test_trk_11_two_that_cross_keep_their_ids(reports):
    answer = field.answer(reports, "TRK-11")
    frames = field.given(reports, "TRK-11")["frames"]
    results = tracked(frames)
    owner, switches = {}, 0
    for frame, tracks in zip(frames, results, strict=True):
        for given in frame["dets"]:
            apart = [math.hypot(t.box.x - given["x"], t.box.y - given["y"]) for t in tracks.objects]
            nearest = tracks.objects[int(np.argmin(apart))].id
            switches += owner.setdefault(given["src"], nearest) != nearest
    assert len(ids_of(results)) == answer["ids"]
    assert len(set(owner.values())) == answer["ids"]
    assert switches == answer["switches"]


@pytest.mark.slow
def test_trk_13_a_radar_that_sees_nothing_is_not_a_radar_that_is_silent(reports, tmp_path):
    answer = field.answer(reports, "TRK-13")
    frames = [f for f in field.given(reports, "TRK-13")["frames"] if f["sensor"] == "radar"]
    log, out = tmp_path / "radar.mcap", tmp_path / "run.mcap"
    with LogWriter(log) as writer:
        for frame in frames:
            at = [(d["r"] * math.cos(d["az"]), d["r"] * math.sin(d["az"])) for d in frame["dets"]]
            found = targets(at, [d["rr"] for d in frame["dets"]])
            writer.add_targets("/radar", "base", frame["t"], found)
    pipeline = avrt.Pipeline("radar", devices={"cpu": {"type": "cpu"}})
    pipeline.source("radar", type="radar", topic="/radar", rate="13 Hz", guard="default")
    keys = {"inputs": {"radar": "radar"}, "wcet": "5 ms", "deadline": "70 ms"}
    pipeline.add(Tracker, name="track", device="cpu", **keys)
    report = pipeline.replay(log, out=out)
    jobs, radar = report.data["jobs"], report.data["sensors"]["radar"]
    assert jobs["met"] == jobs["released"] == answer["frames"]
    assert jobs["skipped"] == report.data["stages"]["track"]["jobs"]["skipped"] == 0
    assert (radar["missing"], radar["rejected"]) == (answer["missing_events"], {})
    assert radar["state"] == "ok"
    assert report.data["log"]["anomalies"] == []
    counts = [len(one.payload.objects) for one in avrt.read_outputs(out, "track")]
    empty = [index for index, frame in enumerate(frames) if not frame["dets"]]
    assert counts[empty[0] - 1] == counts[empty[0]] == 1  # it coasts: what moves is tracked
    assert counts[empty[-1]] == 0  # and dies


@pytest.mark.slow
def test_trk_15_what_comes_late_is_fused_at_its_own_time(reports):
    answer = field.answer(reports, "TRK-15")
    frames = field.given(reports, "TRK-15")["frames"]
    late = fed(frames)
    in_order = fed(sorted(frames, key=lambda frame: (frame["t"], frame["sensor"])))
    (track,), (same,) = late.objects, in_order.objects
    radar = next(one for one in late.inputs if one.name == "radar")
    assert (track.id, radar.late, radar.lost) == (answer["ids"], 60, answer["negative_dt_used"])
    assert abs(track.box.x - answer["x_final"]) < answer["tol"]
    np.testing.assert_allclose(track.covariance, same.covariance, atol=1e-6)
    np.testing.assert_allclose(
        [track.box.x, track.box.y, track.vx], [same.box.x, same.box.y, same.vx], atol=1e-6
    )


@pytest.mark.slow
def test_trk_15_a_late_target_takes_no_certainty_but_what_it_knows(reports):
    """No covariance is predicted back: with one that says nothing, it is as if none had come."""
    frames = field.given(reports, "TRK-15")["frames"]
    swept = [frame for frame in frames if frame["sensor"] == "lidar"]
    saying_nothing = [f if f["sensor"] == "lidar" else f | {"dets": []} for f in frames]
    (alone,), (beside,) = fed(swept).objects, fed(saying_nothing).objects
    np.testing.assert_allclose(alone.covariance[:4, :4], beside.covariance[:4, :4], rtol=1e-6)


def fed(frames):
    """Return the tracks at the last sweep, when the frames come one by one in this order."""
    tracker, counts = Tracker(), {}
    for frame in frames:
        sensor = frame["sensor"]
        index = counts[sensor] = counts.get(sensor, -1) + 1
        if sensor == "lidar":
            newest = sweep(index, frame)
            tracker.process(lidar=newest)
        else:
            near = [(one["x"] - one["l"] / 2, one["y"]) for one in frame["dets"]]
            found = targets(near)  # what reflects is the side that faces the radar
            tracker.process(radar=message("radar", index, frame["t"], found))
    return tracker.process(lidar=newest)


def test_trk_17_a_box_is_the_same_in_every_convention(reports):
    names = ("iso8855", "nuscenes", "second")
    given, answer = field.given(reports, "TRK-17")["boxes"], field.answer(reports, "TRK-17")
    right = np.array(sorted(answer["corners_set"]))
    for name, box in zip(names, given, strict=False):
        heading = box.get("q", [box.get("yaw")])
        found = box_corners(box_of(name, box["center"], box["size"], heading)).tolist()
        apart = np.linalg.norm(np.array(found)[:, None] - right, axis=2)
        assert apart.min(axis=0).max() < 1e-6
        assert sorted(apart.argmin(axis=1)) == list(range(8))


def test_trk_17_a_box_of_no_known_convention_is_refused(reports):
    *_, untagged = field.given(reports, "TRK-17")["boxes"]
    with pytest.raises(SpecError, match="expected the convention that boxes are written in"):
        box_of(untagged["convention"], untagged["center"], untagged["size"], [untagged["yaw"]])
