"""Which records and anomalies are alarms, wrong numbers in messages, and drives of the world."""

import numpy as np
import pytest

from avrt.api.campaign import FaultCampaign
from avrt.drivers.inject.applied import Applied
from avrt.drivers.inject.campaign import Campaign
from avrt.drivers.inject.detection import alarm_of_flaw, alarms_of, alarms_of_sensor
from avrt.drivers.inject.messages import spoilt
from avrt.drivers.inject.run import run_once
from avrt.logs.merge import SourceMessage
from avrt.logs.raw import Channel, RawMessage
from avrt.metrics.observed import Detection
from avrt.model.campaign import Injection
from avrt.model.guard import FlawRecord, SensorRecord
from avrt.model.records import (
    ChainBroken,
    FaultRecord,
    JobRecord,
    MissRecord,
    ModeRecord,
    OverrunRecord,
    ResourceRecord,
    SyncRecord,
    VoteRecord,
    WindowRecord,
)
from avrt.payload import PointCloud


def job(outcome, reason):
    ends = (0, 0, 0, None, 0)
    return JobRecord(1, 1, "see.0", "see", 4, *ends, outcome, reason, 0, None, None, ())


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (FaultRecord(1, "see.0", 0, "exception"), ("fault", "see.0: exception")),
        (MissRecord(1, "see.0", 4, 0, 0, 0, ()), ("miss", "see.0 4")),
        (OverrunRecord(1, "see.0", 0, 0), ("miss", "see.0")),
        (WindowRecord("see.0", 0, (), 1, 10), ("miss", "see.0")),
        (VoteRecord(1, "see", 0, "", blamed=("see.0",)), ("vote", "blames see.0")),
        (VoteRecord(1, "see", 0, "tie"), ("vote", "see: tie")),
        (VoteRecord(1, "see", 0, "majority_of_two"), None),
        (VoteRecord(1, "see", 0, "superseded"), None),
        (ResourceRecord("gpu", 0, "lost"), ("resource", "gpu")),
        (ResourceRecord("gpu", 0, "back"), None),
        (ModeRecord("stop", 0, "failing", True), ("level", "stop: failing")),
        (ModeRecord("full", 0, "clear", True), None),
        (job("skipped", "input_missing"), ("skip", "see.0: input_missing")),
        (job("skipped", "busy"), None),
        (job("late", ""), None),
        (ChainBroken("c", 0, "age", 0, 0), ("chain", "c")),
        (SyncRecord("see", 0, ("a",)), ("sync", "see")),
    ],
)
def test_what_tells_of_a_fault(record, told):
    found = [(alarm.by, alarm.what) for alarm in alarms_of(record, 7)]
    assert found == ([] if told is None else [told])


def items(source, count=4):
    raw = RawMessage(Channel(0, "/a", "t", "cdr"), 0, 0, 0, b"")
    for index in range(count):
        cloud = PointCloud(np.ones((50, 3), np.float32))
        at_ns = index * 100
        yield SourceMessage(source, index, at_ns, at_ns, at_ns, "f", cloud, raw)


@pytest.mark.parametrize("kind", ["nan", "flip"])
def test_numbers_of_the_messages_that_are_hit_are_wrong_and_of_no_others(kind):
    fault = Injection(place="source", target="a", kind=kind, frame=1, count=2, share=0.5, seed=3)
    applied = Applied()
    found = [item.payload.xyz for item in spoilt(items("a"), [fault], applied)]
    assert [bool((xyz == 1).all()) for xyz in found] == [True, False, False, True]
    assert applied.times_ns == [100]
    if kind == "nan":
        assert 0.3 < np.isnan(found[1]).mean() < 0.7
    again = [item.payload.xyz for item in spoilt(items("a"), [fault], Applied())]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, again, strict=True))
    others = [item.payload.xyz for item in spoilt(items("b"), [fault], Applied())]
    assert all((xyz == 1).all() for xyz in others)


PIPELINE = """
pipeline: wheels
sources: {wheels: {type: can, topic: /vehicle/speed, rate: 50 Hz}}
stages: {see: {run: "see.py:see", inputs: {speed: wheels}, wcet: 1 ms, deadline: 15 ms}}
"""
CAMPAIGN = """
campaign: wheels
pipeline: wheels.yaml
world: {scene: cut_in, duration: 1 s, seed: 4}
rows: {S1: {about: it, faults: [{where: source.wheels, what: drop, frame: 9}]}}
"""


def test_the_world_feeds_the_sources_that_the_pipeline_has(tmp_path):
    (tmp_path / "see.py").write_text("def see(speed): return speed.payload.speed\n")
    (tmp_path / "wheels.yaml").write_text(PIPELINE)
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN)
    campaign = FaultCampaign.load(path)
    bench = campaign._bench(campaign.spec.drive)
    assert set(bench.log.topics()) == {"/tf_static", "/vehicle/speed"}
    assert bench.frames == 50
    gaps = [
        Injection(place="source", target="wheels", kind="drop", frame=frame, count=4)
        for frame in (20, 40)
    ]
    told = [(d.by, d.what, d.at_ns // 20_000_000) for d in run_once(bench, gaps).detections]
    assert told == [("log", "/vehicle/speed: stamp_gap", n) for n in (24, 44)]
    found = Campaign(bench, campaign.spec.rows.values()).row(campaign.spec.rows["S1"], 0)
    assert (found.judged.outcome, found.judged.lost, found.unmet) == ("recovered", 1, ())
    result = campaign.run(frames=60)
    assert (result.clean.frames, result.clean.drives, result.is_met) == (100, 2, True)


@pytest.mark.parametrize(
    ("flaw", "what"),
    [
        (FlawRecord("radar", 4, 7, "stuck", 0, 0), "radar: stuck"),
        (FlawRecord("radar", 4, 7, "", 2, 0), "radar: missing"),
        (FlawRecord("radar", 4, 7, "", 0, 3), "radar: nonfinite"),
    ],
)
def test_a_message_that_is_not_as_it_should_be_is_an_alarm(flaw, what):
    assert alarm_of_flaw(flaw) == Detection(7, "guard", what)


@pytest.mark.parametrize(
    ("state", "alarms"), [("lost", 1), ("blind", 1), ("blocked", 1), ("ok", 0)]
)
def test_a_sensor_that_is_not_ok_is_an_alarm(state, alarms):
    found = list(alarms_of_sensor(SensorRecord("radar", 7, state, "ok")))
    assert found == [Detection(7, "guard", f"radar: {state}")] * alarms
