"""What the stages of a replay get: every message, in order, with its stamp."""

import numpy as np
import pytest
from small_stages import count_points, keep_to, passing, passing_two, total

import avrt
from avrt.errors import SpecError
from avrt.logs.reader import open_log
from avrt.logs.record.run_file import read_outputs
from avrt.logs.writer import LogWriter
from avrt.model.message import Origin
from avrt.model.records import SyncRecord
from avrt.payload import PointCloud

MS = 1_000_000


# What stages get


def test_every_message_comes_in_order_with_its_stamp(make_drive, make_pipeline):
    seen = []
    pipeline = make_pipeline()
    pipeline.add(keep_to(seen), inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    drive = make_drive(4, stamp_ns=lambda log_ns: log_ns - 30 * MS)
    report = pipeline.replay(drive)
    assert report.jobs["met"] == 4
    assert [m.stamp.sequence for m in seen] == [0, 1, 2, 3]
    assert [m.stamp.publish_ns for m in seen] == [0, 100 * MS, 200 * MS, 300 * MS]
    assert [m.stamp.capture_ns for m in seen] == [-30 * MS, 70 * MS, 170 * MS, 270 * MS]
    assert {m.stamp.source for m in seen} == {"lidar"}
    assert {m.stamp.frame for m in seen} == {"roof"}
    assert seen[1].origins == {"lidar": Origin(70 * MS, 70 * MS)}
    assert isinstance(seen[0].payload, PointCloud)
    assert not any(m.degraded for m in seen)


def test_an_output_carries_its_triggers_capture_and_what_it_rests_on(make_drive, make_pipeline):
    seen = []
    pipeline = make_pipeline("lidar", "rear")
    pipeline.add(count_points, name="front", inputs={"cloud": "lidar"}, wcet="5 ms", deadline="1 s")
    pipeline.add(
        passing_two,
        name="both",
        inputs={"a": "front", "b": "rear"},
        trigger="a",
        wcet="7 ms",
        deadline="1 s",
    )
    pipeline.add(keep_to(seen), name="last", inputs={"cloud": "both"}, wcet="1 ms", deadline="1 s")
    pipeline.replay(make_drive(3, topics=("/lidar", "/rear"), stamp_ns=lambda ns: ns - 10 * MS))
    assert [m.payload for m in seen] == [[0, 0], [1, 1], [2, 2]]
    assert [m.stamp.capture_ns for m in seen] == [-10 * MS, 90 * MS, 190 * MS]
    assert [m.stamp.publish_ns for m in seen] == [12 * MS, 112 * MS, 212 * MS]
    assert [m.stamp.sequence for m in seen] == [0, 1, 2]
    assert {m.stamp.source for m in seen} == {"both"}
    assert {m.stamp.frame for m in seen} == {"roof"}
    assert seen[2].origins == {
        "lidar": Origin(190 * MS, 190 * MS),
        "rear": Origin(190 * MS, 190 * MS),
    }


def test_an_optional_input_may_be_absent_and_what_is_made_without_it_says_so(
    make_drive, make_pipeline, tmp_path
):
    seen = []
    pipeline = make_pipeline("lidar", "rear")
    pipeline.add(count_points, name="slow", inputs={"cloud": "rear"}, wcet="250 ms", deadline="1 s")
    pipeline.add(
        passing_two,
        name="both",
        inputs={"a": "lidar", "b": {"from": "slow", "optional": True}},
        trigger="a",
        wcet="1 ms",
        deadline="1 s",
    )
    pipeline.add(keep_to(seen), name="last", inputs={"cloud": "both"}, wcet="1 ms", deadline="1 s")
    drive = make_drive(4, topics=("/lidar", "/rear"))
    report = pipeline.replay(drive, out=tmp_path / "run.mcap")
    assert [m.payload for m in seen] == [[0, None], [1, None], [2, None], [3, 0]]
    assert [m.degraded for m in seen] == [True, True, True, False]
    assert report.data["stages"]["both"]["absent_inputs"] == {"b": 3}
    assert [m.degraded for m in read_outputs(tmp_path / "run.mcap", "last")] == [True] * 3 + [False]


def test_a_required_input_that_is_missing_or_stale_skips_the_job(
    make_drive, make_pipeline, tmp_path, read_ends
):
    pipeline = make_pipeline("lidar", "rear")
    pipeline.add(count_points, name="slow", inputs={"cloud": "rear"}, wcet="150 ms", deadline="1 s")
    pipeline.add(
        passing_two,
        name="both",
        inputs={"a": "lidar", "b": {"from": "slow", "max_age": "210 ms"}},
        trigger="a",
        wcet="1 ms",
        deadline="1 s",
    )
    pipeline.replay(make_drive(5, topics=("/lidar", "/rear")), out=tmp_path / "run.mcap")
    ends = read_ends(tmp_path / "run.mcap", "both")
    assert ends[:2] == [("skipped", "input_missing")] * 2
    assert ends[2:] == [("met", ""), ("met", ""), ("skipped", "stale")]


def test_a_timer_stage_runs_while_the_log_lasts_and_stamps_when_it_read(make_drive, make_pipeline):
    seen = []
    pipeline = make_pipeline()
    pipeline.add(
        lambda: 7, name="beat", period="50 ms", offset="5 ms", wcet="1 ms", deadline="9 ms"
    )
    pipeline.add(keep_to(seen), name="last", inputs={"cloud": "beat"}, wcet="1 ms", deadline="1 s")
    pipeline.replay(make_drive(3))
    assert [m.stamp.capture_ns for m in seen] == [5 * MS, 55 * MS, 105 * MS, 155 * MS]
    assert [m.stamp.publish_ns for m in seen] == [6 * MS, 56 * MS, 106 * MS, 156 * MS]
    assert seen[1].origins == {"beat": Origin(55 * MS, 55 * MS)}
    assert {m.payload for m in seen} == {7}


def test_a_timer_stage_that_publishes_at_its_deadline_carries_its_release(
    make_drive, make_pipeline
):
    seen = []
    pipeline = make_pipeline(slots=1)
    pipeline.add(count_points, name="work", inputs={"cloud": "lidar"}, wcet="30 ms", deadline="1 s")
    pipeline.add(
        lambda: 7,
        name="beat",
        period="100 ms",
        offset="10 ms",
        wcet="1 ms",
        deadline="40 ms",
        publish="at_deadline",
    )
    pipeline.add(keep_to(seen), name="last", inputs={"cloud": "beat"}, wcet="1 ms", deadline="1 s")
    pipeline.replay(make_drive(3))
    assert [m.stamp.capture_ns for m in seen] == [10 * MS, 110 * MS]
    assert [m.stamp.publish_ns for m in seen] == [50 * MS, 150 * MS]


@pytest.mark.usefixtures("settled")
def test_a_synchronised_stage_gets_sets_and_an_incomplete_one_at_its_timeout(
    make_pipeline, tmp_path, read_records
):
    path = tmp_path / "two.mcap"
    xyz = np.ones((2, 3), np.float32)
    with LogWriter(path) as log:
        for k in range(4):
            log.add_cloud("/lidar", "roof", 10**18 + k * 100 * MS, xyz)
            if k != 2:
                log.add_cloud("/rear", "back", 10**18 + k * 100 * MS + 3 * MS, xyz)
    seen = []

    def both(a, b):
        seen.append((a, b))
        return passing(a=a, b=b)

    pipeline = make_pipeline("lidar", "rear")
    pipeline.add(
        both,
        inputs={"a": "lidar", "b": {"from": "rear", "optional": True}},
        sync={"tolerance": "5 ms", "timeout": "40 ms"},
        wcet="1 ms",
        deadline="1 s",
    )
    out = tmp_path / "run.mcap"
    pipeline.replay(path, out=out)
    outputs = read_outputs(out, "both")
    assert [m.payload for m in outputs] == [(0, 0), (1, 1), (2, None), (3, 2)]
    assert [m.stamp.capture_ns for m in outputs] == [0, 100 * MS, 200 * MS, 300 * MS]
    assert [m.stamp.publish_ns for m in outputs] == [4 * MS, 104 * MS, 241 * MS, 304 * MS]
    assert [m.degraded for m in outputs] == [False, False, True, False]
    assert [(r.at_ns, r.missing) for r in read_records(out, SyncRecord)] == [(240 * MS, ("b",))]


def test_messages_of_one_instant_come_in_the_order_of_the_pipeline_file(make_drive, make_pipeline):
    order = []
    pipeline = make_pipeline("rear", "lidar", slots=1, policy="fifo")
    for name in ("rear", "lidar"):
        pipeline.add(
            lambda cloud: order.append(cloud.stamp.source) or 1,
            name=f"of_{name}",
            inputs={"cloud": name},
            wcet="1 ms",
            deadline="1 s",
        )
    pipeline.replay(make_drive(3, topics=("/lidar", "/rear")))
    assert order == ["rear", "lidar"] * 3


def test_two_sources_may_read_one_topic_and_it_is_recorded_once(
    make_drive, make_pipeline, tmp_path
):
    pipeline = make_pipeline("lidar")
    pipeline.source("again", type="lidar", topic="/lidar", clock_offset="20 ms")
    pipeline.add(total, name="a", inputs={"cloud": "lidar"}, wcet="1 ms", deadline="1 s")
    pipeline.add(total, name="b", inputs={"cloud": "again"}, wcet="1 ms", deadline="1 s")
    first = pipeline.replay(make_drive(4), out=tmp_path / "run.mcap")
    assert first.jobs["met"] == 8
    with open_log(tmp_path / "run.mcap") as log:
        assert len(list(log.messages(["/lidar"]))) == 4
    again = pipeline.replay(tmp_path / "run.mcap")
    assert again.data["digests"] == first.data["digests"]


def test_clouds_of_no_points_are_messages_too(make_drive, make_pipeline, tmp_path):
    pipeline = make_pipeline()
    pipeline.add(lambda cloud: cloud.payload, name="it", inputs={"cloud": "lidar"},
                 wcet="1 ms", deadline="1 s")  # fmt: skip
    report = pipeline.replay(make_drive(3, points=0), out=tmp_path / "run.mcap")
    assert report.jobs["met"] == 3
    outputs = read_outputs(tmp_path / "run.mcap", "it")
    assert [m.payload.xyz.shape for m in outputs] == [(0, 3)] * 3


@pytest.mark.parametrize("topic", ["/avrt/output/it", "/avrt/view/it", "/avrt/journal"])
def test_a_topic_that_the_record_needs_for_itself_is_refused(make_drive, tmp_path, topic):
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic=topic)
    pipeline.add(count_points, name="it", inputs={"cloud": "lidar"}, wcet="1 ms", deadline="1 s")
    drive = make_drive(3, topics=(topic,))
    assert pipeline.replay(drive).jobs["met"] == 3
    with pytest.raises(SpecError, match=f"sources.lidar.topic: the run record has a {topic} of"):
        pipeline.replay(drive, out=tmp_path / "run.mcap")
    assert not (tmp_path / "run.mcap").exists()
