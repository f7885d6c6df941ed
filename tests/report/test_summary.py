"""What a run shows is what its record shows, and whatever its text is, it is shown as text."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import avrt
from avrt.errors import InputError
from avrt.logs.record.journal import Journal
from avrt.logs.record.run_record import EXECUTION, RunRecord
from avrt.model.codec import encode, to_json
from avrt.model.commands import Dispatch, Record
from avrt.model.records import OUTCOMES, ChainBroken, JobRecord
from avrt.model.spec import ChainSpec, DeviceSpec, PipelineSpec, StageSpec
from avrt.payload import SensorUse, Tracks
from avrt.report.summary import read_summary
from avrt.report.terminal import render

MS = 1_000_000


def text_of(summary, width=200):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(render(summary))
    return capture.get()


class Cold(avrt.Stage):
    """Fails at every third message."""

    def warm(self):
        self.sum = 0

    def process(self, cloud):
        if cloud.stamp.sequence % 3 == 2:
            raise ValueError("[bold]no[/bold]")
        return cloud.payload.count


def words(a):  # noqa: ARG001 - by its name
    return np.array(["this has no form in JSON"])


def make_pipeline():
    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu", "slots": 1}})
    for name in ("lidar", "rear"):
        pipeline.source(name, type="lidar", topic=f"/{name}", rate="10 Hz")
    pipeline.add(Cold, inputs={"cloud": "lidar"}, wcet="70 ms", deadline="60 ms",
                 miss_at_most="1 of 4", budget="60 ms")  # fmt: skip
    pipeline.add(lambda a, b: b is None, name="opt", inputs={"a": "rear", "b": {"from": "Cold",  # noqa: ARG005
                 "optional": True, "max_age": "90 ms"}}, trigger="a", wcet="40 ms",
                 deadline="100 ms", on_miss="abort")  # fmt: skip
    pipeline.add(words, name="odd", inputs={"a": "rear"}, wcet="1 ms",
                 deadline="50 ms", on_miss="skip_next")  # fmt: skip
    pipeline.chain("see", path=["lidar", "Cold", "opt"], reaction="200 ms", age="250 ms")
    return pipeline


def damaged(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    return path


@pytest.fixture
def run(make_drive, tmp_path):
    """A run with misses, faults, anomalies, damage and outputs that were not recorded."""
    drive = make_drive(24, topics=("/lidar", "/rear"), points=20, chunk_bytes=1500,
                       stamp_ns=lambda ns: ns - 3 * 10**9)  # fmt: skip
    return make_pipeline().replay(damaged(drive), out=tmp_path / "run.mcap")


def test_the_record_says_what_the_run_said(run):
    live, read = run.data, read_summary(run.summary.record).data()
    assert live["damage"]
    assert live["log"]["anomalies"]
    assert live["not_recorded"]["odd"]["count"] > 3
    assert live["misses"]
    assert live["faults"]
    assert live["stages"]["Cold"]["warmup"]["warm_ns"]
    for key in live:
        assert read[key] == live[key], key
    assert read == live
    assert json.loads(json.dumps(live)) == live


def test_what_the_tracks_say_of_their_inputs_is_counted_and_shown(make_drive, tmp_path):
    def scene(cloud):
        off = f"boxes lie {60 + cloud.stamp.sequence} px off"
        inputs = (SensorUse("camera", 0, anomaly=off), SensorUse("lidar", 0))
        return Tracks((), 0.0, inputs=inputs)

    pipeline = avrt.Pipeline("p")
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    pipeline.add(scene, inputs={"cloud": "lidar"}, wcet="5 ms", deadline="50 ms")
    run = pipeline.replay(make_drive(4, topics=("/lidar",)), out=tmp_path / "run.mcap")
    assert run.data["stages"]["scene"]["anomalies"] == {"camera: boxes lie 60 px off": 4}
    assert "scene: camera: boxes lie 60 px off (4x)" in text_of(run.summary)
    assert read_summary(tmp_path / "run.mcap").data() == run.data


def test_both_are_shown_alike(run):
    assert text_of(read_summary(run.summary.record)) == text_of(run.summary)


@pytest.mark.parametrize("timing", ["measured", "model"])
def test_an_interrupted_run_reads_as_it_was(make_drive, tmp_path, timing):
    def stop(at_ns):
        if at_ns == 500 * MS:
            raise KeyboardInterrupt

    drive = make_drive(9, topics=("/lidar", "/rear"))
    out = tmp_path / "run.mcap"
    live = make_pipeline().replay(drive, out=out, progress=stop, timing=timing)
    assert read_summary(out).data() == live.data
    assert live.data["interrupted"]
    assert not live.data["complete"]
    assert not live.data["reproducible"]
    assert "ended by Ctrl-C" in text_of(live.summary)


def test_figures_add_up(run):
    data = run.data
    kinds = (*OUTCOMES, "open")
    for jobs in (data["jobs"], *(stage["jobs"] for stage in data["stages"].values())):
        assert sum(jobs[kind] for kind in kinds) == jobs["released"]
    for kind in ("released", *kinds):
        assert data["jobs"][kind] == sum(s["jobs"][kind] for s in data["stages"].values())
    for stage in data["stages"].values():
        ended = stage["jobs"]["met"] + stage["jobs"]["late"]
        assert stage["response_ns"]["count"] == stage["execution_ns"]["count"] == ended
        figures = [stage["response_ns"][name] for name in ("p50", "p95", "p99", "max")]
        assert figures == (sorted(figures) if ended else [None] * 4)
    cold = data["stages"]["Cold"]
    assert (
        cold["host_execution_ns"]["count"] + 1
        == cold["jobs"]["late"] + data["faults"]["Cold: exception"]
    )
    for topic in data["log"]["topics"].values():
        assert topic["delivered"] + topic["lost"] == topic["messages"]


def test_what_must_not_be_overlooked_is_shown(run):
    text = text_of(run.summary)
    for part in (
        "why Cold was late",
        "missed its due time",
        "fault Cold: exception (",
        "Cold: first fault exception: ValueError: [bold]no[/bold] at ",
        "messages are not in the record: it has no form in JSON",
        "(m,k) violations",
        "jobs ran without b",
        "overran the budget",
        "damaged: ",
        "lost",
        "anomaly clock_offset in /lidar",
        "modelled",
        "measured here",
    ):
        assert part in text, part


def small_spec(name):
    stage = StageSpec(name=name, device="cpu", wcet_ns=5, deadline_ns=9, period_ns=10)
    chain = ChainSpec(name=name + "!", path=(name, "last"), age_ns=5)
    item = avrt.model.spec.InputSpec(name="a", source=name)
    last = StageSpec(
        name="last", device="cpu", wcet_ns=5, deadline_ns=9, inputs=(item,), trigger="a"
    )
    devices = (DeviceSpec(name="cpu"),)
    return PipelineSpec(name=name + "?", devices=devices, stages=(stage, last), chains=(chain,))


def job(task, **changes):
    fields = {
        "job": 0, "activation": 0, "task": task, "stage": task, "index": 0, "release_ns": 0,
        "arrival_ns": 0, "due_ns": 9, "start_ns": 0, "end_ns": 5, "outcome": "met", "reason": "",
        "executed_ns": 5, "device_start_ns": None, "device_ns": None, "absent": (),
    }  # fmt: skip
    return JobRecord(**(fields | changes))


def write(path, spec, entries=(), result=None, executions=(), conditions=None):
    """Write a record of a pipeline with these (at_ns, commands)."""
    with RunRecord(
        path,
        zero_ns=0,
        conditions=conditions or {"timing": "modelled"},
        pipeline_json=to_json(encode(spec)),
    ) as record:
        journal = Journal(lambda at_ns, text: record.journal(text, at_ns))
        for at_ns, commands in entries:
            journal.note(at_ns, [], commands)
        for item in executions:
            record.note(EXECUTION, item, 0)
        record.close(result)
    return path


NAMES = ["[red]x", "[/red]", "[link=http://x]y[/link]", ":smile:", "a\\[b]", "ünïcode_车", "[["]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_shown_as_it_is(tmp_path, name):
    spec = small_spec(name)
    records = [job(name, reason=name, absent=(name,), outcome="late"),
               ChainBroken(name + "!", 3, "age", 5, 0)]  # fmt: skip
    entries = [(5, [Record(record) for record in records])]
    conditions = {"timing": name, "processor": name, "cores": name, "python": name, "date": name}
    path = write(tmp_path / "run.mcap", spec, entries, conditions=conditions)
    text = text_of(read_summary(path))
    assert f"{name}?  0.00 s" in text
    assert f"{name}: 1 late: {name}" in text
    assert f"{name}: 1 job ran without {name}" in text
    assert f"│ {name}" in text
    assert f"│ {name}!" in text
    assert f"simulated on {name}, {name} cores" in text


def test_a_record_that_was_cut_reports_what_it_has(run, tmp_path):
    data = Path(run.summary.record).read_bytes()
    previous = 0
    for share in (0.3, 0.6, 0.9):
        path = tmp_path / "cut.mcap"
        path.write_bytes(data[: int(len(data) * share)])
        summary = read_summary(path)
        released = summary.figures.jobs()["released"]
        assert released >= previous
        previous = released
        assert not summary.complete
        assert summary.damage
        assert "the record was cut short" in text_of(summary)
        assert summary.decisions == ""
    assert previous > 0


def test_a_damaged_entry_is_left_out_and_told(tmp_path):
    entries = [(k * 20_000_000, [Record(job("a", index=k, end_ns=k))]) for k in range(100)]
    path = write(tmp_path / "run.mcap", small_spec("a"), entries)
    data = bytearray(path.read_bytes())
    data[data.index(b'"index":70,') + 9] ^= 1
    path.write_bytes(bytes(data))
    summary = read_summary(path)
    jobs = summary.figures.jobs()
    assert any("36 damaged journal entries are not in the figures" in d for d in summary.damage)
    assert jobs["met"] == 64
    assert sum(jobs[kind] for kind in (*OUTCOMES, "open")) == jobs["released"]


@pytest.mark.parametrize(
    "command",
    [
        Record(job("nobody")),
        Dispatch(0, "nobody", 0, "a", "cpu", 0, "full", (), 0, 9),
        Record(ChainBroken("nobody", 3, "age", 5, 0)),
        Record(job("a", end_ns=2**70)),
    ],
    ids=["job", "dispatch", "chain", "huge"],
)
def test_an_entry_that_fits_no_pipeline_ends_the_figures(tmp_path, command):
    entries = [(1, [Record(job("a"))]), (2, [command]), (3, [Record(job("a", index=1))])]
    summary = read_summary(write(tmp_path / "run.mcap", small_spec("a"), entries))
    assert summary.figures.jobs()["met"] < 3
    assert any(problem.startswith("journal entry 1 cannot be used") for problem in summary.damage)
    text_of(summary)


@pytest.mark.parametrize(
    "item", [5, {}, {"task": "nobody", "host_ns": 1}, {"task": "a", "host_ns": "1"}, []],
    ids=["number", "nothing", "nobody", "text", "list"],
)  # fmt: skip
def test_an_execution_that_cannot_be_used_is_told(tmp_path, item):
    summary = read_summary(write(tmp_path / "run.mcap", small_spec("a"), executions=[item]))
    assert any("execution 0 cannot be used" in problem for problem in summary.damage)
    text_of(summary)


def result_with(run, **changes):
    return {"decisions": "d", "run": json.dumps(run.data | changes)}


@pytest.mark.parametrize(
    "changes",
    [
        {"log": []},
        {"log": {"topics": [], "anomalies": []}},
        {"log": {"topics": {"/a": {"type": "t", "messages": "1"}}, "anomalies": []}},
        {"log": {"topics": {}, "anomalies": [{"kind": "x"}]}},
        {"digests": {}},
        {"digests": None},
        {"hangs": "many"},
        {"damage": 7},
        {"stages": {}},
        {"stages": {name: {"warmup": {"warm_ns": "1"}} for name in ("Cold", "opt", "odd")}},
        {"not_recorded": {"odd": 7}},
    ],
    ids=range(11),
)
def test_a_result_that_cannot_be_used_is_told(run, tmp_path, changes):
    result = result_with(run, **changes)
    path = write(tmp_path / "other.mcap", make_pipeline().spec, result=result)
    summary = read_summary(path)
    assert any("the recorded result is damaged" in problem for problem in summary.damage)
    json.dumps(summary.data())
    text_of(summary)


@pytest.mark.parametrize("result", [{}, {"run": "{"}, {"run": "null"}, {"run": "[" * 10**5}],
                         ids=range(4))  # fmt: skip
def test_a_result_that_is_none_is_told(tmp_path, result):
    path = write(tmp_path / "run.mcap", small_spec("a"), result=result)
    assert any("the recorded result is damaged" in d for d in read_summary(path).damage)


def test_a_record_from_before_a_figure_existed_still_reads(run, tmp_path):
    data = json.loads(result_with(run)["run"])
    del data["wakeup_late_ns"]
    for stage in data["stages"].values():
        del stage["anomalies"]
    result = {**result_with(run), "run": json.dumps(data)}
    path = write(tmp_path / "older.mcap", make_pipeline().spec, result=result)
    summary = read_summary(path)
    assert not any("result" in problem for problem in summary.damage)
    assert summary.payloads == data["digests"]["payloads"]
    assert summary.wakeup_late_ns["count"] == 0


def test_no_run_at_all_is_unusable(tmp_path):
    with pytest.raises(InputError):
        read_summary(tmp_path / "missing.mcap")
    with pytest.raises(InputError):
        read_summary(tmp_path)
