"""Guards in a replay and in a live run: what stages get, and what is told of the rest."""

import numpy as np
import pytest
from reading_pages import Read
from small_stages import keep_to

from avrt.cli import main
from avrt.logs.reader import open_log
from avrt.logs.record.run_file import RunFile
from avrt.logs.writer import LogWriter
from avrt.report.summary import read_summary
from avrt.report.terminal import as_text

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000


def write_drive(path, frames, *, xyz=None, lost=(), late_ns=None, topics=("/lidar", "/rear")):
    """Write a drive whose first topic has what is given for some frames, the others are sound."""
    with LogWriter(path) as log:
        for index in range(frames):
            log_ns = START_NS + index * 100 * MS
            for place, topic in enumerate(topics):
                points = np.random.default_rng((index, place)).normal(size=(50, 3))
                if place == 0 and index in lost:
                    continue
                if place == 0 and xyz is not None:
                    points = xyz(index, points)
                stamp_ns = log_ns - (late_ns or {}).get(index, 0) * (place == 0)
                log.add_cloud(topic, "roof", stamp_ns, points.astype(np.float32), log_ns=log_ns)
    return path


@pytest.fixture
def guarded(make_pipeline):
    """Return a function that makes a pipeline of two sources, the first with a guard."""

    def make(seen, guard="default"):
        pipeline = make_pipeline("rear")
        pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz", guard=guard)
        pipeline.add(keep_to(seen), inputs={"cloud": "lidar"}, wcet="5 ms", deadline="90 ms")
        pipeline.add(len_of, inputs={"cloud": "rear"}, wcet="5 ms", deadline="90 ms")
        return pipeline

    return make


def len_of(cloud):
    return cloud.payload.count


def held(index, points, first=5, last=9):
    """Return the points of one frame for some frames."""
    return np.ones((50, 3)) if first <= index <= last else points


def test_stages_get_no_message_of_a_stuck_sensor_until_it_is_back(guarded, tmp_path):
    seen, run = [], tmp_path / "run.mcap"
    drive = write_drive(tmp_path / "a.mcap", 25, xyz=held)
    report = guarded(seen).replay(drive, out=run)
    assert [m.stamp.sequence for m in seen] == [*range(6), *range(19, 25)]
    sensor = report.data["sensors"]["lidar"]
    assert sensor["rejected"] == {"out": 9, "stuck": 4}
    assert sensor["state"] == "ok"
    assert [(c["at_ns"] // MS, c["state"], c["was"]) for c in sensor["changes"]] == [
        (800, "stuck", "ok"),
        (1900, "ok", "stuck"),
    ]
    assert report.data["log"]["topics"]["/lidar"]["delivered"] == len(seen) + 9 + 4
    assert report.data["stages"]["len_of"]["jobs"]["met"] == 25
    assert "lidar" in report.data["sensors"]
    assert "rear" not in report.data["sensors"]


def test_the_record_tells_the_same_and_its_inputs_are_all_there(guarded, tmp_path):
    run = tmp_path / "run.mcap"
    drive = write_drive(tmp_path / "a.mcap", 25, xyz=held)
    report = guarded([]).replay(drive, out=run)
    assert read_summary(run).data() == report.data
    with RunFile(run) as file:
        assert file.topics()["/lidar"] == 25
    text = as_text(report.summary)
    assert "sensor lidar: 13 messages rejected (9 out, 4 stuck)" in text
    assert "stuck at 0.800 s, ok at 1.900 s" in text


def test_a_record_without_its_end_tells_what_was_rejected(guarded, tmp_path):
    run = tmp_path / "run.mcap"
    drive = write_drive(tmp_path / "a.mcap", 25, xyz=held)
    report = guarded([]).replay(drive, out=run)
    content = run.read_bytes()
    run.write_bytes(content[: len(content) * 95 // 100])
    sensors = read_summary(run).data()["sensors"]
    assert sensors["lidar"]["rejected"] == report.data["sensors"]["lidar"]["rejected"]


def test_a_sound_sensor_is_told_to_be_ok(guarded, make_drive, tmp_path):
    run = tmp_path / "run.mcap"
    report = guarded([]).replay(make_drive(5, topics=("/lidar", "/rear")), out=run)
    assert "sensor lidar: ok throughout, no message rejected" in as_text(report.summary)
    assert read_summary(run).data() == report.data


def test_a_lost_sensor_is_known_while_others_go_on(guarded, tmp_path):
    seen = []
    drive = write_drive(tmp_path / "a.mcap", 30, lost=range(5, 12))
    report = guarded(seen).replay(drive)
    changes = report.data["sensors"]["lidar"]["changes"]
    assert [(c["at_ns"] // MS, c["state"]) for c in changes] == [(700, "lost"), (2100, "ok")]
    assert len(seen) == 5 + 9


def test_few_bad_points_are_dropped_and_a_bad_cloud_is_rejected(guarded, tmp_path):
    def spoil(index, points):
        points[: {3: 1, 4: 40}.get(index, 0)] = np.nan
        return points

    seen = []
    report = guarded(seen).replay(write_drive(tmp_path / "a.mcap", 8, xyz=spoil))
    assert [m.payload.count for m in seen] == [50, 50, 50, 49, 50, 50, 50]
    sensor = report.data["sensors"]["lidar"]
    assert (sensor["points_dropped"], sensor["rejected"]) == (1, {"nonfinite": 1})
    assert "1 points dropped that are no numbers" in as_text(report.summary)


def test_a_message_that_the_log_lost_is_told(guarded, tmp_path):
    drive = write_drive(tmp_path / "a.mcap", 30, late_ns={})
    with open_log(drive) as log, LogWriter(tmp_path / "b.mcap") as copy:
        for raw in log.messages():
            if raw.topic != "/lidar" or raw.sequence != 20:
                copy.add_raw(raw.topic, raw.type, raw.log_ns, bytes(raw.data))
                continue
            copy._counts["/lidar"] += 1
    report = guarded([]).replay(tmp_path / "b.mcap")
    assert report.data["sensors"]["lidar"]["missing"] == 1
    assert "no message rejected, 1 missing by its counter" in as_text(report.summary)


def test_an_old_message_is_rejected_by_the_age_that_the_file_says(guarded, tmp_path):
    drive = write_drive(tmp_path / "a.mcap", 8, late_ns={4: 95 * MS})
    report = guarded([], {"age": "90 ms"}).replay(drive)
    assert report.data["sensors"]["lidar"]["rejected"] == {"age": 1}


def test_a_clock_that_jumps_costs_one_message_and_no_state(guarded, tmp_path):
    seen = []
    jump = dict.fromkeys(range(6, 20), -37_000 * MS)
    report = guarded(seen).replay(write_drive(tmp_path / "a.mcap", 20, late_ns=jump))
    assert report.data["sensors"]["lidar"]["rejected"] == {"clock": 1}
    assert len(seen) == 19
    captures = [m.stamp.capture_ns for m in seen]
    assert captures == sorted(captures)


def test_stamps_that_begin_anew_are_a_loop_and_no_fault(guarded, tmp_path):
    seen = []
    back = dict.fromkeys(range(70, 80), 5_000 * MS)
    report = guarded(seen).replay(write_drive(tmp_path / "a.mcap", 80, late_ns=back))
    assert [a["kind"] for a in report.data["log"]["anomalies"]] == ["loop"]
    assert report.data["sensors"]["lidar"]["rejected"] == {}
    assert [m.stamp.epoch for m in seen] == [0] * 70 + [1] * 10


def test_a_log_played_twice_is_no_fault(guarded, make_drive):
    seen = []
    report = guarded(seen).replay(make_drive(15, topics=("/lidar", "/rear")), loops=2)
    assert report.data["sensors"]["lidar"]["rejected"] == {}
    assert len(seen) == 30


def test_at_the_wall_clock_the_same_is_rejected(guarded, tmp_path):
    drive = write_drive(tmp_path / "a.mcap", 25, xyz=held, lost=(21,))
    virtual = guarded([]).replay(drive)
    wall = guarded([]).replay(drive, clock="wall", rate=20, force=True)
    assert wall.data["sensors"] == virtual.data["sensors"]


def test_without_a_guard_decisions_are_what_they_were(make_pipeline, guarded, tmp_path):
    drive = write_drive(tmp_path / "a.mcap", 25, xyz=held)
    plain = make_pipeline("rear", "lidar")
    plain.add(keep_to([]), inputs={"cloud": "lidar"}, wcet="5 ms", deadline="90 ms")
    plain.add(len_of, inputs={"cloud": "rear"}, wcet="5 ms", deadline="90 ms")
    off = {"stuck": 0}
    reports = [plain.replay(drive), guarded([], off).replay(drive), guarded([]).replay(drive)]
    digests = [report.data["digests"]["decisions"] for report in reports]
    assert digests[0] == digests[1] != digests[2]
    assert reports[0].data["sensors"] == {}


@pytest.mark.live
@pytest.mark.slow
def test_live_a_silent_sensor_is_lost_though_nothing_comes(guarded, tmp_path):
    drive = write_drive(tmp_path / "a.mcap", 40, xyz=held, lost=range(15, 40))
    replayed = guarded([]).replay(drive)
    report = guarded([]).run(drive, flight=None, force=True)
    states = [change["state"] for change in report.data["sensors"]["lidar"]["changes"]]
    assert states == ["stuck", "lost"]
    assert (
        report.data["sensors"]["lidar"]["rejected"]
        == (replayed.data["sensors"]["lidar"]["rejected"])
    )


def test_the_page_shows_when_a_sensor_was_out(guarded, tmp_path):
    run, page = tmp_path / "run.mcap", tmp_path / "page.html"
    guarded([]).replay(write_drive(tmp_path / "a.mcap", 25, xyz=held), out=run)
    assert main(["report", str(run), "-o", str(page)]) == 0
    read = Read(page)
    assert "13 messages rejected" in read.text
    (source,) = [s for s in read.data["runs"][0]["sources"] if s["name"] == "lidar"]
    assert [(o[0] // MS, o[1] // MS, o[2]) for o in source["outages"]] == [(800, 1900, "stuck")]
    marks = [m for m in read.data["runs"][0]["marks"] if m["kind"] == "sensor"]
    assert [m["text"] for m in marks] == [
        "sensor lidar: stuck, was ok",
        "sensor lidar: ok, was stuck",
    ]
