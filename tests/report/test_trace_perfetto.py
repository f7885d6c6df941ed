"""Perfetto itself reads our traces: no errors, every job once as the journal has it, arrows."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_records import write_live_record
from perfetto import perfetto
from test_trace import golden, records

from avrt.api import Pipeline
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.model.commands import Dispatch
from avrt.model.events import Completed
from avrt.model.records import JobRecord, MissRecord
from avrt.report.trace.trace import trace
from avrt.report.trace.writing import write_trace

ROOT = Path(__file__).parents[2]
KITTI = ROOT.parent / "shared/data/kitti_sfnd_seq/kitti_sfnd_7p8s.mcap"
TEXTS, NUMBERS = ("stage", "outcome", "reason"), ("job", "index", "release_ns", "due_ns")
ARGS = ", ".join(f"extract_arg(arg_set_id, 'debug.{name}') '{name}'" for name in TEXTS + NUMBERS)
JOBS = f"select ts, dur, {ARGS} from slice where category = 'job'"  # noqa: S608 - our own text
ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
ARROWS = """select o.name maker, o.ts + o.dur made, i.name reader, i.ts read
  from flow join slice o on o.id = slice_out join slice i on i.id = slice_in"""

pytestmark = pytest.mark.slow


def check(page, calls):
    assert page.query(ERRORS) == []
    jobs = page.query(JOBS)
    found = {job["job"]: job for job in jobs}
    assert len(found) == len(jobs)
    ended = records(calls, JobRecord)
    assert len(ended) == len(jobs)
    for record in ended:
        job = found[record.job]
        for name in TEXTS + NUMBERS:
            assert job[name] == getattr(record, name)
        assert job["ts"] == (record.end_ns if record.start_ns is None else record.start_ns)
    arrows = page.query(ARROWS)
    inputs = [b for c in of(calls, Dispatch) for b in c.inputs if b is not None]
    assert len(arrows) == len(inputs) > 0
    assert all(arrow["made"] <= arrow["read"] for arrow in arrows)


def of(calls, kind):
    return [c for call in calls for c in (*call.events, *call.commands) if isinstance(c, kind)]


@pytest.mark.parametrize("name", ["overload", "preemption"])
def test_a_golden_run(name, tmp_path):
    spec, calls = golden(name)
    path = tmp_path / "run.pftrace"
    path.write_bytes(trace(spec, calls))
    with perfetto(path) as page:
        check(page, calls)
        misses = page.query("select ts, arg_set_id id from slice where category = 'miss'")
        assert [m["ts"] for m in misses] == [r.at_ns for r in records(calls, MissRecord)]
        why = "select sum(int_value) ns from args where arg_set_id = {} and key glob "
        for miss, record in zip(misses, records(calls, MissRecord), strict=True):
            (told,) = page.query(why.format(miss["id"]) + "'debug.why*.duration_ns'")
            assert told["ns"] == record.at_ns - record.release_ns


@pytest.mark.skipif(not KITTI.exists(), reason="../shared/data is not here")
def test_a_kitti_run(tmp_path):
    record, path = tmp_path / "run.mcap", tmp_path / "run.pftrace"
    Pipeline.load(ROOT / "pipelines/kitti.yaml").replay(KITTI, out=record)
    write_trace(record, path)
    with RunFile(record) as run:
        calls = [parse_entry(line.text) for line in run.journal()]
    assert len(of(calls, Completed)) == 312
    with perfetto(path) as page:
        check(page, calls)
        chain = page.query(ARROWS + " where o.name in ('velodyne 9', 'lidar_detect 9', 'track 9')")
        assert {(arrow["maker"], arrow["reader"]) for arrow in chain} >= {
            ("velodyne 9", "lidar_detect 9"),
            ("lidar_detect 9", "track 9"),
            ("track 9", "plan 9"),
        }


def test_a_run_in_real_time(tmp_path):
    record, path = tmp_path / "run.mcap", tmp_path / "run.pftrace"
    write_trace(write_live_record(record), path)
    with RunFile(record) as run:
        calls = [parse_entry(line.text) for line in run.journal()]
    with perfetto(path) as page:
        assert page.query(ERRORS) == []
        assert page.query("select count(*) n from slice where category = 'job'") == [{"n": 3}]
        nested = page.query(
            "select work.dur, job.ts + job.dur - work.ts - work.dur after, work.depth from slice "
            "work join slice job on job.id = work.parent_id where work.category = 'device' "
            "and job.category = 'job' order by work.ts"
        )
        jobs = records(calls, JobRecord)
        assert nested == [
            {"dur": j.device_ns - j.device_start_ns, "after": j.end_ns - j.device_ns, "depth": 1}
            for j in jobs
        ]
        counters = page.query(
            "select t.name, c.ts, c.value from counter c join track t on t.id = c.track_id "
            "where t.name in ('process cores', 'process memory') order by t.name, c.ts"
        )
        assert [c["value"] for c in counters] == [1.25, 1.5, 1.25, *[300 << 20] * 3]
