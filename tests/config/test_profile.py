"""Profiles in pipelines and scenarios: what is read of them, and what is said of wrong ones."""

import math

import pytest
import yaml

from avrt.config.pipeline import load
from avrt.config.scenario import LoadedScenario
from avrt.drivers.execution import ModelTiming
from avrt.drivers.simulate import simulate
from avrt.errors import SpecError
from avrt.metrics.load import overload_warnings
from avrt.model.codec import decode, encode
from avrt.model.execution import Sampled
from avrt.model.spec import PipelineSpec

MS = 1_000_000
PIPELINE = """\
pipeline: one
devices: {cpu: {type: cpu}, other: {type: simulated}}
stages:
  beat: {device: cpu, period: 10 ms, wcet: 5 ms, deadline: 10 ms, profile: p.yaml}
  plain: {device: cpu, period: 10 ms, wcet: 1 ms, deadline: 10 ms}
"""
TIMES = [3 * MS, 1 * MS, 2 * MS]
PROFILE = f"stages:\n  beat: {{device: cpu, times_ns: {TIMES}}}\n"
WRONG = [
    ("", "p.yaml is no profile; make one with avrt profile -o"),
    ("stages: [", "p.yaml is no profile; make one with avrt profile -o"),
    ("stages: 3", "p.yaml is no profile; make one with avrt profile -o"),
    ("stages: {}", "p.yaml has no stage 'beat'"),
    ("stages: {beet: {}}", "p.yaml has no stage 'beat'; did you mean 'beet'?"),
    ("stages: {beat: 3}", "p.yaml: expected times_ns of beat, a list of whole ns above zero"),
    (
        "stages: {beat: {device: cpu, times_ns: [1, 0.5]}}",
        "p.yaml: expected times_ns of beat, a list of whole ns above zero",
    ),
    (
        "stages: {beat: {device: cpu, times_ns: []}}",
        "p.yaml: no job of beat was measured after the first; profile a log",
    ),
    (
        "stages: {beat: {device: other, times_ns: [1]}}",
        "p.yaml: beat was measured on 'other', and the stage runs on 'cpu'; profile it there",
    ),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pipe.yaml").write_text(PIPELINE)
    (tmp_path / "p.yaml").write_text(PROFILE)
    return tmp_path


def test_a_stage_has_the_times_of_its_profile(folder):
    beat, plain = load(folder / "pipe.yaml").spec.stages
    assert beat.profile_ns == tuple(sorted(TIMES))
    assert plain.profile_ns == ()


def test_modelled_time_draws_from_the_profile_by_task_and_job_alone(folder):
    spec = load(folder / "pipe.yaml").spec
    timing, again = ModelTiming(spec), ModelTiming(spec)
    times = [timing.cost_ns("beat", index) for index in range(300)]
    assert times == [again.cost_ns("beat", index) for index in reversed(range(300))][::-1]
    assert {ns: 60 < times.count(ns) < 140 for ns in TIMES} == dict.fromkeys(TIMES, True)
    assert timing.cost_ns("plain", 7) == MS


def test_a_simulation_draws_from_the_profile(folder):
    run = simulate(load(folder / "pipe.yaml").spec, until_ns=1000 * MS)
    assert {job.executed_ns for job in run.jobs_of("beat")} == set(TIMES)


def test_a_scenario_takes_the_profile_unless_it_says_otherwise(folder):
    text = "scenario: s\npipeline: pipe.yaml\nduration: 1 s\n"
    path = folder / "s.yaml"
    path.write_text(text)
    assert LoadedScenario(path).spec.execution["beat"] == Sampled(tuple(sorted(TIMES)))
    path.write_text(f"{text}execution: {{plain: {{histogram: {{profile: p.yaml, stage: beat}}}}}}")
    assert LoadedScenario(path).spec.execution["plain"] == Sampled(tuple(sorted(TIMES)))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("{histogram: {stage: beat}}", "expected either a 'run' or a 'profile'"),
        ("{histogram: {run: r, profile: p.yaml}}", "expected either a 'run' or a 'profile'"),
        ("{trace: {profile: p.yaml}}", "a profile has no order that matters; use 'histogram'"),
    ],
)
def test_a_model_of_measured_times_names_one_file(folder, model, told):
    path = folder / "s.yaml"
    head = "scenario: s\npipeline: pipe.yaml\nduration: 1 s\n"
    path.write_text(f"{head}execution: {{beat: {model}}}")
    with pytest.raises(SpecError, match=told) as refused:
        LoadedScenario(path)
    assert f"{path}:4: execution.beat" in str(refused.value)


def test_the_record_of_a_run_holds_the_times(folder):
    spec = load(folder / "pipe.yaml").spec
    assert decode(PipelineSpec, encode(spec)) == spec


def test_times_above_the_wcet_are_told(folder):
    (folder / "p.yaml").write_text("stages: {beat: {device: cpu, times_ns: [7000000, 1]}}")
    (line,) = overload_warnings(load(folder / "pipe.yaml").spec)
    assert line == "beat: its profile has jobs of 7 ms, above its wcet 5 ms"


@pytest.mark.parametrize(("profile", "told"), WRONG)
def test_a_wrong_profile_is_told_with_line_and_key(folder, profile, told):
    (folder / "p.yaml").write_text(profile)
    with pytest.raises(SpecError) as refused:
        load(folder / "pipe.yaml")
    place = f"{folder / 'pipe.yaml'}:4: stages.beat.profile: "
    assert str(refused.value).startswith(f"{place}{folder}/{told}")


def test_a_missing_profile_is_told(folder):
    (folder / "p.yaml").unlink()
    with pytest.raises(SpecError, match=r"stages\.beat\.profile: cannot read .*No such file"):
        load(folder / "pipe.yaml")


# By how much copies may differ


COPIES = """\
pipeline: one
devices: {cpu: {type: cpu, slots: 3}, other: {type: simulated}}
stages:
  see:
    run: "a:one"
    device: cpu
    period: 10 ms
    wcet: 1 ms
    deadline: 10 ms
    redundancy: {copies: 2, runs: ["a:one", "a:two"], KEYS}
"""


def measured(**changed):
    copies = {"runs": ["a:one", "a:two"], "frames": 1000, "unlike": 0, "largest": 0.001}
    copies |= {"tolerance": 0.01, "within": None, **changed}
    return yaml.safe_dump({"stages": {"see": {"device": "cpu", "copies": copies}}})


@pytest.fixture
def redundant(tmp_path):
    """Return a function that loads the pipeline of a profile, and its redundancy."""

    def make(profile, keys="tolerance: p.yaml"):
        (tmp_path / "p.yaml").write_text(profile)
        path = tmp_path / "pipe.yaml"
        path.write_text(COPIES.replace("KEYS", keys))
        return load(path).spec.stage("see").redundancy

    return make


def test_a_stage_has_the_tolerance_of_its_profile(redundant):
    assert redundant(measured()).tolerance == 0.01
    within = redundant(measured(tolerance=None, within=0.5), "vote: number, within: p.yaml")
    assert (within.within, within.tolerance) == (0.5, None)


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("stages: {}", "has no stage 'see'"),
        ("stages: {see: 3}", "copies of see were not measured; profile a log with them"),
        ("stages: {see: {device: cpu}}", "copies of see were not measured"),
        (measured(runs=["a:one", "a:six"]), "other copies of see were measured; profile these"),
        (measured().replace("cpu", "other"), "see was measured on 'other', and the stage runs on"),
        (measured(frames=999), "see was measured in 999 frames, and 1000 are asked for"),
        (measured(frames=None), "see was measured in None frames"),
        (measured(unlike=7), "in 7 of 1000 frames copies of see differ by more than numbers"),
        (measured(tolerance=None), "tolerance is not what outputs of see are compared by"),
        (measured(tolerance=1.5), "a tolerance of 1.5 would let any outputs of see agree"),
        (measured(tolerance=math.nan), "a tolerance of nan would let any"),
    ],
)
def test_a_tolerance_that_means_nothing_is_refused(redundant, profile, told):
    with pytest.raises(SpecError) as refused:
        redundant(profile)
    assert "pipe.yaml:10: stages.see.redundancy.tolerance: " in str(refused.value)
    assert told in str(refused.value)
