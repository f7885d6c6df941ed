"""How long jobs take: modelled, measured, or as they took in another run."""

import pytest

import avrt
from avrt.drivers.execution import MeasuredTiming, ModelTiming, RecordedTiming
from avrt.errors import InputError, SpecError
from avrt.logs.record.journal import Journal
from avrt.logs.record.run_file import RunFile
from avrt.logs.record.run_record import RunRecord
from avrt.model.codec import encode, to_json
from avrt.model.commands import Abort, Dispatch, Preempt, Resume
from avrt.model.events import Arrived, Completed, Failed, Hung


def make_spec(name="a"):
    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar")
    pipeline.add(lambda cloud: cloud, name=name, inputs={"cloud": "lidar"}, wcet="50 ns",
                 deadline="90 ns")  # fmt: skip
    return pipeline.spec


def dispatch(job):
    return Dispatch(job, "a", job, "a", "cpu", 0, "full", (job,), 0, 90)


def write(path, entries, **options):
    """Write a record whose journal is these (at_ns, events, commands)."""
    spec = make_spec()
    options.setdefault("zero_ns", 0)
    with RunRecord(path, conditions={}, pipeline_json=to_json(encode(spec)), **options) as record:
        journal = Journal(lambda at_ns, text: record.journal(text, at_ns))
        for entry in entries:
            journal.note(*entry)
    return path


def test_every_job_takes_its_wcet_or_nobody_knows():
    spec = make_spec()
    assert ModelTiming(spec).cost_ns("a", 7) == 50
    assert ModelTiming(spec).label == "modelled"
    assert MeasuredTiming().cost_ns("a", 7) is None
    assert MeasuredTiming().label == "measured"


@pytest.mark.parametrize(
    ("entries", "cost_ns"),
    [
        ([(10, [], [dispatch(0)]), (17, [Completed(0, 1, 17)], [])], 7),
        ([(10, [], [dispatch(0)]), (17, [Failed(0, "exception")], [])], 7),
        ([(10, [], [dispatch(0)]), (17, [Hung(0)], [])], 7),
        ([(10, [], [dispatch(0)]), (90, [], [Abort(0)]), (117, [Completed(0, 1, 117)], [])], 107),
        (
            [
                (10, [], [dispatch(0)]),
                (12, [], [Preempt(0)]),
                (30, [], [Resume(0)]),
                (35, [Completed(0, 1, 35)], []),
            ],
            7,
        ),
        ([(10, [], [dispatch(0)]), (90, [], [Abort(0)])], 81),
        ([(10, [], [dispatch(0)]), (20, [], [Abort(0)])], 50),
        ([(10, [], [dispatch(0)]), (12, [], [Preempt(0)]), (90, [], [Abort(0)])], 50),
        ([(10, [], [dispatch(0)]), (90, [Arrived("lidar", 0, 0, 0, 5)], [])], 50),
    ],
    ids=["done", "failed", "hung", "aborted", "preempted", "stopped", "early", "waiting", "open"],
)
def test_a_recorded_job_takes_what_its_work_took(tmp_path, entries, cost_ns):
    timing = RecordedTiming(make_spec(), write(tmp_path / "run.mcap", entries))
    assert timing.cost_ns("a", 0) == cost_ns
    assert timing.cost_ns("a", 1) == 50
    assert timing.label == "recorded"
    assert timing.source == f"{tmp_path / 'run.mcap'}, 1 jobs"


def test_a_run_of_another_pipeline_is_refused(tmp_path):
    path = write(tmp_path / "run.mcap", [(10, [], [dispatch(0)])])
    with pytest.raises(SpecError, match=r"no stage of this pipeline ran in .*run\.mcap"):
        RecordedTiming(make_spec("b"), path)
    with pytest.raises(SpecError, match="no stage of this pipeline ran in"):
        RecordedTiming(make_spec(), write(tmp_path / "none.mcap", []))


def test_a_damaged_run_is_refused_whichever_byte_it_is(tmp_path):
    entries = [(10, [], [dispatch(0)]), (17, [Completed(0, 1, 17)], [])]
    path = write(tmp_path / "run.mcap", entries)
    good = path.read_bytes()
    with RunFile(path) as run:
        text = next(iter(run.journal())).text.encode()
    start = good.index(text)
    for offset in range(start, start + len(text), 7):
        bad = bytearray(good)
        bad[offset] ^= 2
        path.write_bytes(bytes(bad))
        with pytest.raises(InputError, match="journal entry"):
            RecordedTiming(make_spec(), path)


@pytest.mark.parametrize("content", [None, b"", b"text"], ids=["missing", "empty", "text"])
def test_what_is_no_run_is_refused(tmp_path, content):
    path = tmp_path / "run.mcap"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError):
        RecordedTiming(make_spec(), path)
