"""Eight reports from the field of stamps, clocks and times of logs that were not what they seemed.

Messages of the reports that no source reads are clouds here, with the headers of the reports.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import avrt
from avrt.kernel import Kernel
from avrt.logs.merge import MergedLog
from avrt.logs.reader import open_log
from avrt.logs.writer import LogWriter
from avrt.model.commands import Dispatch, Record
from avrt.model.events import Completed
from avrt.model.graph import check
from avrt.model.records import JobRecord, MissRecord
from avrt.model.spec import DeviceSpec, PipelineSpec, SourceSpec, StageSpec
from cases import field

REPORTS = tuple(f"TIM-{number:02}" for number in range(1, 16, 2))
MS = 1_000_000
S = 1_000 * MS


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_time.py", REPORTS)


@pytest.fixture
def merged(reports, tmp_path):
    """Return a function that reads topics of a report's log: the messages, and what was odd."""

    def read(name, *topics, period=None, offset=None):
        path = field.as_clouds(reports / name, tmp_path / name)
        sources = [
            SourceSpec(
                name=topic, type="lidar", topic=topic, period_ns=period, clock_offset_ns=offset
            )
            for topic in topics
        ]
        with open_log(path) as log:
            found = MergedLog(log, sources)
            messages = list(found)
            return messages, {(a.kind, a.topic): a for a in found.anomalies}, found.zero_ns

    return read


@pytest.fixture
def paired(reports, settled, tmp_path):  # noqa: ARG001 - by its name
    """Return a function that replays a log into a stage that takes sets of two topics."""

    def replay(name, *topics, tolerance="20 ms", **options):
        path = field.as_clouds(reports / name, tmp_path / "clouds.mcap")
        pipeline = avrt.Pipeline("pairs", devices={"cpu": {"type": "cpu"}})
        for topic in topics:
            pipeline.source(topic.strip("/"), type="lidar", topic=topic)
        inputs = dict(zip("ab", (topic.strip("/") for topic in topics), strict=True))
        sync = {"tolerance": tolerance, "timeout": "50 ms"}
        seen = []

        def pair(a, b):
            seen.append((a.stamp, b.stamp))
            return len(seen)

        pipeline.add(pair, inputs=inputs, sync=sync, wcet="1 ms", deadline="90 ms")
        return seen, pipeline.replay(path, **options).data

    return replay


def test_tim_01_a_stamp_with_seconds_of_nanoseconds_is_none(reports, merged):
    """It is told with topic and count, and the log time stands in; nothing is carried over."""
    answer = field.answer(reports, "TIM-01")
    messages, odd, _ = merged("TIM-01_nanosec.mcap", "/imu")
    invalid = odd["stamp_invalid", "/imu"]
    assert len(messages) == answer["messages"]
    assert invalid.count == len(answer["invalid_seq"])
    by_log = [m.sequence for m in messages if m.raw_header_ns != m.raw.log_ns]
    assert by_log == answer["invalid_seq"]
    assert all(messages[index].capture_ns == messages[index].log_ns for index in by_log)
    captured = [message.capture_ns for message in messages]
    assert max(a - b for a, b in pairwise(captured)) < 0
    ahead = [message.capture_ns - message.log_ns for message in messages]
    assert max(ahead) <= answer["max_allowed_ahead_ns"]


@pytest.mark.slow
def test_tim_03_a_topic_without_stamps_is_told_and_paired_by_log_time(reports, paired):
    """The log time always stands in for a stamp that is none: there is no other choice to make."""
    answer = field.answer(reports, "TIM-03")
    seen, data = paired("TIM-03_zerostamp.mcap", "/cam", answer["zero_topic"])
    low, high = answer["pairs_fallback_log_time"]
    assert low <= len(seen) <= high
    (odd,) = data["log"]["anomalies"]
    assert (odd["kind"], odd["topic"]) == ("stamp_invalid", answer["zero_topic"])
    assert odd["at_ns"] < S
    assert odd["detail"] == "stamp 0 ns is none; the log time stands in for it"


def test_tim_05_another_clock_is_told_with_its_offset_and_mapped(reports, merged):
    """The estimate has the latency of the first message in it, a millisecond here."""
    answer = field.answer(reports, "TIM-05")
    messages, odd, _ = merged("TIM-05_epochs.mcap", answer["topic"], "/cam")
    assert list(odd) == [("clock_offset", answer["topic"])]
    told = odd["clock_offset", answer["topic"]]
    assert told.at_ns == 0
    assert f"{(answer['offset_ns'] + MS) / S:.3f} s ahead" in told.detail
    lidar = [m for m in messages if m.source == answer["topic"]]
    camera = [m for m in messages if m.source == "/cam"]
    apart = {a.capture_ns - b.capture_ns for a, b in zip(lidar, camera, strict=True)}
    assert apart == {MS}


def test_tim_05_a_declared_offset_maps_exactly_and_is_nothing_odd(reports, merged):
    answer = field.answer(reports, "TIM-05")
    offset_ns = answer["offset_ns"]
    messages, odd, zero_ns = merged("TIM-05_epochs.mcap", answer["topic"], offset=offset_ns)
    assert odd == {}
    assert all(m.capture_ns == m.raw_header_ns + offset_ns - zero_ns for m in messages)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["recorded", "played"])
def test_tim_07_a_loop_begins_anew_with_as_many_sets(reports, paired, how):
    """Recorded twice into one file, or played twice."""
    answer = field.answer(reports, "TIM-07")
    name, loops = ("TIM-07_loop.mcap", 1) if how == "recorded" else ("TIM-07_once.mcap", 2)
    seen, data = paired(name, "/cam", "/lidar", loops=loops)
    epochs = [stamp.epoch for stamp, _ in seen]
    assert epochs == [e for e in range(answer["loops"]) for _ in range(answer["sets_per_loop"])]
    assert all(a.epoch == b.epoch and b.capture_ns - a.capture_ns == 4 * MS for a, b in seen)
    told = {odd["kind"]: odd["count"] for odd in data["log"]["anomalies"]}
    runs = {"runs": answer["loops"], "run": answer["resets"]}
    assert told == (runs if how == "recorded" else {"loop": answer["resets"]})
    assert data["misses"] == answer["misses_from_jump"]
    assert data["sets"]["pair"]["incomplete"] == 0


@pytest.mark.slow
def test_tim_09_an_hour_without_messages_is_one_hole_and_no_miss(reports, settled, tmp_path):  # noqa: ARG001 - by its name
    """Releases of timers within it are skipped for want of input, and told as one line.

    Each is a job of its own, 46 us of work, so that none is lost. At the wall clock there is no
    longest gap: times that were cut out would be times of another drive. `start` begins behind it.
    """
    answer = field.answer(reports, "TIM-09")
    pipeline = avrt.Pipeline("gap", devices={"cpu": {"type": "cpu"}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    keys = {"wcet": "1 ms", "deadline": "50 ms"}
    pipeline.add(lambda cloud: cloud.stamp.sequence, name="see", inputs={"cloud": "lidar"}, **keys)
    held = {"seen": {"from": "see", "max_age": "200 ms"}}
    pipeline.add(lambda seen: seen.payload, name="watch", period="100 ms", inputs=held, **keys)
    log = reports / "TIM-09_gap.mcap"
    data = pipeline.replay(log).data
    assert data["stages"]["see"]["jobs"]["met"] == answer["messages"]
    assert data["misses"] == answer["misses"]
    watch = data["stages"]["watch"]
    assert watch["reasons"] == {"skipped: stale": watch["jobs"]["skipped"]}
    assert watch["jobs"]["skipped"] + watch["jobs"]["met"] == watch["jobs"]["released"] > 36_000
    (odd,) = data["log"]["anomalies"]
    assert (odd["kind"], odd["count"]) == ("stamp_gap", 1)
    assert f"no stamp for {answer['gap_ns'] / S:g} s" in odd["detail"]
    behind = pipeline.replay(log, start="3600 s").data
    assert behind["stages"]["see"]["jobs"]["met"] == answer["messages"] // 2
    assert behind["log"]["anomalies"] == []


def test_tim_11_nothing_is_judged_before_the_clock_runs_or_while_it_stands(reports):
    """The kernel knows no time but what it is told, so a clock that stands is no time that passes.

    avrt takes no clock from outside, as `/clock` is: the one of a replay is the log's, that of a
    live run the host's, and neither stalls. So there is no notice of one; a source that falls
    silent is told by its guard.
    """
    given, answer = field.given(reports, "TIM-11"), field.answer(reports, "TIM-11")
    task, begin_s = given["task"], given["clock"][0][1]
    stage = StageSpec(
        name="beat",
        device="cpu",
        period_ns=task["period_ms"] * MS,
        deadline_ns=task["deadline_ms"] * MS,
        offset_ns=round(begin_s) * S,
        wcet_ns=10 * MS,
    )
    spec = PipelineSpec(
        name="clock", devices=(DeviceSpec(name="cpu", type="cpu"),), stages=(stage,)
    )
    check(spec)
    kernel, records = Kernel(spec), []
    for _, clock_s in given["clock"]:
        at_ns = round(clock_s * 1000) * MS
        commands = kernel.handle(at_ns)
        for job in [command.job for command in commands if isinstance(command, Dispatch)]:
            commands += kernel.handle(at_ns, [Completed(job, job, at_ns)])
        records += [command.record for command in commands if isinstance(command, Record)]
    releases = [record.release_ns for record in records if isinstance(record, JobRecord)]
    assert releases == [round(at_s * 10) * S // 10 for at_s in answer["releases_sim_s"]]
    assert sum(isinstance(record, MissRecord) for record in records) == answer["misses"]


def test_tim_13_no_digit_of_a_stamp_is_lost(reports, merged):
    """The stamps are of three clocks by turns, so nearly all are jumps; none is changed."""
    answer = field.answer(reports, "TIM-13")
    messages, _, _ = merged("TIM-13_floatsec.mcap", "/a", "/b")
    stamps = {
        source: [m.raw_header_ns for m in messages if m.source == source] for source in ("/a", "/b")
    }
    assert stamps == dict.fromkeys(("/a", "/b"), answer["stamps"])
    assert answer["broken_by_float64"] > 0


@pytest.mark.slow
def test_tim_13_equal_stamps_make_a_pair_each(reports, paired):
    """Of clocks that are none of the log's only the latency differs here, by a millisecond."""
    answer = field.answer(reports, "TIM-13")
    seen, data = paired("TIM-13_floatsec.mcap", "/a", "/b", tolerance="1 ms")
    assert len(seen) == answer["pairs"]
    assert data["sets"]["pair"]["dropped"] == 0


@pytest.mark.slow
def test_tim_13_equal_stamps_of_the_log_s_own_clock_are_equal_to_the_nanosecond(
    reports, paired, tmp_path
):
    """The last digits of these are what float64 seconds lose."""
    stamps = [at for at in field.answer(reports, "TIM-13")["stamps"] if at > 1_690_000_000 * S]
    path = tmp_path / "own.mcap"
    with LogWriter(path) as log:
        for at_ns in stamps:
            for topic in ("/a", "/b"):
                point = np.ones((1, 3), np.float32)
                log.add_cloud(topic, "sensor", at_ns, point, log_ns=at_ns + 9 * MS)
    seen, data = paired(path, "/a", "/b", tolerance="0 ms")
    assert len(seen) == len(stamps) == 100
    assert [a.capture_ns - seen[0][0].capture_ns for a, _ in seen] == [
        at_ns - stamps[0] for at_ns in stamps
    ]
    assert data["log"]["anomalies"] == []


@pytest.mark.slow
def test_tim_15_what_is_told_once_counts_from_before_the_start(reports, settled, tmp_path):  # noqa: ARG001 - by its name
    """Of latched topics avrt reads mountings and camera models, and no name of a map.

    Both count wherever they stand in the log. `test_merge_start` has the camera's.
    """
    answer = field.answer(reports, "TIM-15")
    out = tmp_path / "run.mcap"
    placed = []

    class Placed(avrt.Stage):
        def calibrate(self, frames):
            self.frames = frames

        def process(self, cloud):
            placed.append(self.frames.between(cloud.stamp.frame, "base_link")[3::4])
            return cloud.stamp.sequence

    calibration = {"tf": ["/tf_static"]}
    pipeline = avrt.Pipeline("start", devices={"cpu": {"type": "cpu"}}, calibration=calibration)
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(Placed, name="place", inputs={"cloud": "lidar"}, wcet="1 ms", deadline="50 ms")
    start = f"{answer['start_offset_s']} s"
    data = pipeline.replay(reports / "TIM-15_latched.mcap", start=start, out=out).data
    assert set(placed) == {(1.0, 0.0, 1.8)}
    assert len(placed) == answer["lidar"]
    assert data["log"]["topics"]["/lidar"] == {
        "type": "sensor_msgs/msg/PointCloud2",
        "messages": 100,
        "delivered": answer["lidar"],
        "lost": 0,
        "unread": 100 - answer["lidar"],
    }
    assert data["conditions"]["start"] == start
    assert [one.payload for one in avrt.read_outputs(out, "place")] == list(range(answer["lidar"]))
