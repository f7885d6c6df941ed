"""What a scenario takes from recorded runs and logs."""

from dataclasses import replace

import pytest

from avrt.api import Pipeline
from avrt.api.scenario import Scenario
from avrt.drivers.recorded import prepare
from avrt.errors import AvrtError, InputError, SpecError
from avrt.logs.record.journal import parse_entry
from avrt.logs.record.run_file import RunFile
from avrt.model.commands import Record
from avrt.model.execution import Mixture, Sampled, Traced
from avrt.model.records import JobRecord

MS = 1_000_000
PIPELINE = """
pipeline: small
sources: {lidar: {type: lidar, topic: /lidar, rate: 10 Hz}}
stages:
  it: {run: "stages.py:count", inputs: {cloud: lidar}, wcet: 5 ms, deadline: 50 ms}
"""
HEAD = "scenario: s\npipeline: p.yaml\nduration: 10 s\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "stages.py").write_text("def count(cloud):\n    return cloud.payload.count\n")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    return tmp_path


@pytest.fixture
def load(folder):
    def from_text(text):
        (folder / "s.yaml").write_text(HEAD + text)
        return Scenario.load(folder / "s.yaml")

    return from_text


@pytest.fixture
def record(folder, make_drive):
    path = folder / "run.mcap"
    Pipeline.load(folder / "p.yaml").replay(make_drive(6), out=path)
    return path


def models(scenario):
    return prepare(scenario.spec).models["it"]


def test_a_trace_has_every_job_and_a_histogram_all_but_the_first(load, record):
    traced = models(load(f"execution: {{it: {{trace: {{run: {record.name}}}}}}}"))
    drawn = models(load(f"execution: {{it: {{histogram: {{run: {record.name}, stage: it}}}}}}"))
    assert isinstance(traced, Traced)
    assert isinstance(drawn, Sampled)
    assert len(traced.values_ns) == 6
    assert min(traced.values_ns) > 0
    assert drawn.values_ns == tuple(sorted(traced.values_ns[1:]))


def test_recorded_times_may_be_part_of_a_mixture(load, record):
    parts = (
        f"{{weight: 50 %, model: {{trace: {{run: {record.name}}}}}}}",
        "{weight: 50 %, model: {constant: 9 ms}}",
    )
    found = models(load(f"execution: {{it: {{mixture: [{', '.join(parts)}]}}}}"))
    assert isinstance(found, Mixture)
    assert isinstance(found.models[0], Traced)


def test_recorded_times_may_be_those_of_one_device(load, record):
    scenario = load(f"execution: {{it: {{devices: {{cpu: {{trace: {{run: {record.name}}}}}}}}}}}")
    found = models(scenario)
    assert isinstance(found["cpu"], Traced)
    assert prepare(scenario.spec).files == (record,)
    report, _ = scenario.run()
    longest = report.summary.figures.stages["it"].execution.summary()["max"]
    assert longest == max(found["cpu"].values_ns)


def test_a_trace_is_what_the_jobs_take(load, record):
    scenario = load(f"execution: {{it: {{trace: {{run: {record.name}}}}}}}")
    traced = models(scenario)
    assert isinstance(traced, Traced)
    report, _ = scenario.run()
    assert report.summary.figures.stages["it"].execution.summary()["max"] == max(traced.values_ns)


@pytest.mark.parametrize("of", ["drive.mcap", "run.mcap"])
def test_messages_of_a_log_or_a_run_come_when_they_came(load, record, of):
    scenario = load(f"arrivals: {{lidar: {{log: {of}}}}}")
    assert record.exists()
    assert prepare(scenario.spec).logged["lidar"] == [
        (100 * MS * index, 100 * MS * index) for index in range(6)
    ]
    assert scenario.run()[0].jobs["released"] == 6


def test_a_simulated_run_gives_its_arrivals_again(load, folder):
    first = load("arrivals: {lidar: {jitter: 20 ms, drop: 10 %}}")
    report, _ = first.run(seed=3, out=folder / "first.mcap")
    again, _ = load("arrivals: {lidar: {log: first.mcap}}").run()
    assert again.summary.decisions == report.summary.decisions


def jobs(path):
    with RunFile(path) as run:
        entries = [parse_entry(line.text) for line in run.journal()]
    found = [c.record for entry in entries for c in entry.commands if isinstance(c, Record)]
    return [
        (job.task, job.index, job.release_ns, job.start_ns, job.end_ns, job.due_ns, job.outcome)
        for job in found
        if isinstance(job, JobRecord)
    ]


def test_a_measured_replay_is_simulated_job_for_job(load, folder, make_drive):
    Pipeline.load(folder / "p.yaml").replay(
        make_drive(6), out=folder / "run.mcap", timing="measured"
    )
    scenario = load(
        "execution: {it: {trace: {run: run.mcap}}}\narrivals: {lidar: {log: drive.mcap}}\n"
    )
    scenario.run(out=folder / "again.mcap")
    assert len(jobs(folder / "run.mcap")) == 6
    assert jobs(folder / "again.mcap") == jobs(folder / "run.mcap")


WRONG = {
    "execution: {it: {trace: {run: gone.mcap}}}": (InputError, "gone.mcap"),
    "execution: {it: {trace: {run: run.mcap, stage: itt}}}": (SpecError, "did you mean 'it'?"),
    "execution: {it: {trace: {run: drive.mcap}}}": (InputError, "drive.mcap"),
    "execution: {it: {histogram: {run: p.yaml}}}": (InputError, "p.yaml"),
    "arrivals: {lidar: {log: gone.mcap}}": (InputError, "gone.mcap"),
    "arrivals: {lidar: {log: empty.mcap}}": (InputError, "an empty file"),
    "arrivals: {lidar: {log: cut.mcap}}": (InputError, "cut.mcap"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_is_told(load, record, folder, text):
    (folder / "empty.mcap").write_bytes(b"")
    (folder / "cut.mcap").write_bytes((folder / "drive.mcap").read_bytes()[:900])
    assert record.exists()
    kind, words = WRONG[text]
    with pytest.raises(AvrtError) as caught:
        load(text)
    assert isinstance(caught.value, kind)
    assert words in str(caught.value)


def test_a_record_without_executions_is_told(load, folder):
    load("").run(out=folder / "first.mcap")
    with pytest.raises(SpecError, match="no stage computed there"):
        load("execution: {it: {trace: {run: first.mcap}}}")


def test_a_run_without_the_source_is_told(load, record, folder):
    assert record.exists()
    renamed = PIPELINE.replace("lidar: {", "roof: {").replace("cloud: lidar", "cloud: roof")
    (folder / "p.yaml").write_text(renamed)
    with pytest.raises(SpecError, match="no message of source 'roof'"):
        load("arrivals: {roof: {log: run.mcap}}")


def test_a_record_does_not_overwrite_what_the_scenario_reads(load, record):
    scenario = load(f"arrivals: {{lidar: {{log: {record.name}}}}}")
    before = record.read_bytes()
    for name in ("run.mcap", "p.yaml", "s.yaml"):
        with pytest.raises(SpecError, match="would overwrite"):
            scenario.run(out=record.with_name(name))
    assert record.read_bytes() == before


def test_preparing_leaves_the_scenario_as_it_is(load):
    spec = load("").spec
    assert prepare(spec).spec == replace(spec)
