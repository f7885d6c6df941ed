"""Ground truth goes into a log, through a replay, and comes back as it was."""

import math

import pytest

import avrt
from avrt.errors import InputError, SpecError
from avrt.logs.reader import open_log
from avrt.logs.ros.types import TRUE_OBJECTS
from avrt.logs.truth import read_truth, truth_topics
from avrt.logs.writer import LogWriter
from avrt.payload import Box, TrueObject, Truth

CAR = TrueObject(7, "car", Box(10.0, -2.0, 0.75, 4.2, 1.8, 1.5, 0.5), 8.0, -0.25)
WALKER = TrueObject(9, "pedestrian", Box(5.0, 4.0, 0.9, 0.5, 0.6, 1.8, -3.0), 0.0, 1.4)
STAMP_NS = 1_700_000_000_123_456_789
TOPIC = "/ground_truth/objects"


def written(path, *truths):
    with LogWriter(path) as log:
        for index, truth in enumerate(truths):
            log.add_truth(TOPIC, "vehicle", STAMP_NS + index, truth)
    return path


def read(path):
    with open_log(path) as reader:
        return list(read_truth(reader))


def test_truth_comes_back_with_stamp_and_frame(tmp_path):
    path = written(tmp_path / "log.mcap", Truth((CAR, WALKER)), Truth())
    first, second = read(path)
    assert (first.stamp_ns, first.frame, first.topic) == (STAMP_NS, "vehicle", TOPIC)
    assert second.truth == Truth()
    for found, sent in zip(first.truth.objects, (CAR, WALKER), strict=True):
        assert (found.id, found.label, found.vx, found.vy) == (
            sent.id,
            sent.label,
            sent.vx,
            sent.vy,
        )
        assert found.box.yaw == pytest.approx(sent.box.yaw)
        assert found.box.x == sent.box.x
        assert found.box.length == sent.box.length


def test_a_velocity_may_be_unknown_but_a_place_may_not(tmp_path):
    unknown = TrueObject(1, "unknown", CAR.box, math.nan, math.nan)
    (scene,) = read(written(tmp_path / "log.mcap", Truth((unknown,))))
    assert math.isnan(scene.truth.objects[0].vx)
    for box in (Box(math.nan, 0, 0, 1, 1, 1, 0), Box(0, 0, 0, 1, 1, 1, math.nan)):
        nowhere = TrueObject(1, "car", box, 0.0, 0.0)
        with pytest.raises(InputError, match="place, size or heading that is no number"):
            read(written(tmp_path / "bad.mcap", Truth((nowhere,))))


def test_a_log_without_truth_has_none(make_drive):
    with open_log(make_drive(2)) as reader:
        assert truth_topics(reader) == []
        assert list(read_truth(reader)) == []


def test_the_record_of_a_run_has_the_truth_of_its_log(tmp_path):
    path = tmp_path / "log.mcap"
    with LogWriter(path) as log:
        for index in range(3):
            stamp_ns = STAMP_NS + index * 100_000_000
            log.add_truth(TOPIC, "vehicle", stamp_ns, Truth((CAR,)))
            log.add_speed("/speed", "vehicle", stamp_ns, avrt.payload.Speed(3.0))
    pipeline = avrt.Pipeline("p")
    pipeline.source("speed", type="can", topic="/speed", rate="10 Hz")

    @avrt.stage(wcet="1 ms", deadline="5 ms")
    def keep(speed):
        return {"speed": speed.payload.speed}

    pipeline.add(keep, inputs={"speed": "speed"})
    pipeline.replay(path, out=tmp_path / "run.mcap")
    assert read(tmp_path / "run.mcap") == read(path)
    with open_log(tmp_path / "run.mcap") as reader:
        assert reader.topics()[TOPIC].type == TRUE_OBJECTS


def test_truth_on_a_topic_of_the_records_own_is_refused(tmp_path):
    path = tmp_path / "log.mcap"
    with LogWriter(path) as log:
        log.add_truth("/avrt/journal", "vehicle", STAMP_NS, Truth((CAR,)))
        log.add_speed("/speed", "vehicle", STAMP_NS, avrt.payload.Speed(3.0))
    pipeline = avrt.Pipeline("p")
    pipeline.source("speed", type="can", topic="/speed", rate="10 Hz")

    @avrt.stage(wcet="1 ms", deadline="5 ms")
    def keep(speed):
        return {"speed": speed.payload.speed}

    pipeline.add(keep, inputs={"speed": "speed"})
    with pytest.raises(SpecError, match="rename /avrt/journal"):
        pipeline.replay(path, out=tmp_path / "run.mcap")
