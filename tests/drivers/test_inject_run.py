"""Runs of a campaign: what each fault of a job comes to, and that taps alone change nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import avrt
from avrt.api.campaign import FaultCampaign
from avrt.config.pipeline import load
from avrt.drivers import probation
from avrt.drivers.inject import jobs
from avrt.drivers.inject.campaign import Campaign, idle, is_same
from avrt.drivers.inject.rules import rules_for
from avrt.drivers.inject.run import run_once
from avrt.drivers.virtual import VirtualLoop
from avrt.errors import SpecError
from avrt.metrics.observed import Observed
from avrt.model.campaign import Expected, Injection, Row

STAGES = """
import avrt

class Counting(avrt.Stage):
    def __init__(self):
        self.count = 0

    def process(self, cloud):
        self.count += 1
        return {"count": self.count, "far": float(abs(cloud.payload.xyz).max())}

    def freeze(self):
        return vars(self)

    def thaw(self, state):
        vars(self).update(state)

def doubled(seen):
    return [2.0 * seen.payload["far"], seen.payload["count"]]
"""
PIPELINE = """
pipeline: small
devices: {cpu: {type: cpu, slots: 4}, gpu: {type: simulated, slots: 4, fallback: cpu}}
sources: {lidar: {type: lidar, topic: /lidar, rate: 10 Hz}}
stages:
  see:
    {run: "stages.py:Counting", device: gpu, inputs: {cloud: lidar}, wcet: 5 ms, deadline: 30 ms,
     criticality: ASIL-D, redundancy: {copies: 3, one_domain: true}}
  plan: {run: "stages.py:doubled", device: cpu, inputs: {seen: see}, wcet: 2 ms, deadline: 30 ms,
         criticality: ASIL-D}
"""
GPUS = "a: {type: simulated}, b: {type: simulated}, c: {type: simulated}"
CAMPAIGN = """
campaign: small
pipeline: small.yaml
log: drive.mcap
rows: {any: {about: it, faults: [{where: source.lidar, what: drop, frame: 3}]}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("campaign")
    (made / "stages.py").write_text(STAGES)
    (made / "small.yaml").write_text(PIPELINE)
    (made / "campaign.yaml").write_text(CAMPAIGN)
    return made


@pytest.fixture
def bench(folder, make_drive):
    make_drive(12).replace(folder / "drive.mcap")
    campaign = FaultCampaign.load(folder / "campaign.yaml")
    return campaign._bench(campaign.spec.drive)


@pytest.fixture
def came_of(bench):
    """Return a function that runs faults alone, and what came of them."""

    def run(*faults, **expect):
        row = Row(id="A", about="it", faults=faults, expect=Expected(**expect))
        return Campaign(bench, [row]).row(row, 0)

    return run


def of_stage(target, kind, frame=4, **keys):
    return Injection(place="stage", target=target, kind=kind, frame=frame, **keys)


@pytest.mark.parametrize("copy", [0, 1, 2])
@pytest.mark.parametrize(
    ("kind", "by"),
    [("raise", "fault"), ("nan", "vote"), ("wrong", "vote"), ("never", "miss"), ("slow", "miss")],
)
def test_what_is_wrong_with_one_copy_is_told_and_changes_no_output(came_of, copy, kind, by):
    found = came_of(of_stage(f"see.{copy}", kind, by=3.0, factor=20.0))
    assert found.unmet == ()
    judged = found.judged
    assert (judged.outcome, judged.detected.by, judged.lost) == ("masked", by, 0)
    assert judged.injected_ns == 400_000_000


def test_a_stuck_copy_is_outvoted_although_copies_keep_their_state(came_of):
    found = came_of(of_stage("see.1", "repeat", count=4))
    assert (found.judged.outcome, found.judged.detected.by) == ("masked", "vote")


@pytest.mark.parametrize(
    ("fault", "outcome", "by"),
    [
        (of_stage("see", "raise"), "degraded", "fault"),
        (of_stage("plan", "raise"), "recovered", "fault"),
        (of_stage("plan", "never"), "hang", "miss"),
        (of_stage("plan", "wrong", by=1.0), "silent_corruption", None),
        (of_stage("plan", "repeat"), "silent_corruption", None),
        (of_stage("plan", "slow", factor=10.0), "masked", "miss"),
        (Injection(place="source", target="lidar", kind="drop", frame=11), "degraded", None),
        (  # it counts, so from then on it counts one less
            Injection(place="source", target="lidar", kind="drop", frame=5),
            "silent_corruption",
            None,
        ),
        (Injection(place="device", target="gpu", kind="lost", at_ns=350_000_000), "masked", "res"),
        (Injection(place="device", target="cpu", kind="lost", at_ns=350_000_000), "hang", "res"),
    ],
)
def test_what_comes_of_other_faults(came_of, fault, outcome, by):
    found = came_of(fault)
    detected = found.judged.detected
    assert found.judged.outcome == outcome
    assert (None if detected is None else detected.by[:3]) == (None if by is None else by[:3])
    assert found.simulated == (fault.target == "gpu")


def test_a_stage_that_finds_no_memory_is_tried_once_more(came_of):
    once = came_of(of_stage("plan", "memory"))
    assert (once.judged.outcome, once.judged.detected) == ("masked", None)
    again = came_of(of_stage("plan", "no_memory"))
    assert (again.judged.lost, again.judged.detected.what) == (1, "plan: out_of_memory")


@pytest.mark.parametrize(
    ("target", "lost", "told"), [("lidar", 2, "see.0: corrupted"), ("see", 1, "plan: corrupted")]
)
def test_what_is_checked_is_not_read_once_it_is_wrong(bench, target, lost, told):
    flip = Injection(place="bus", target=target, kind="flip", frame=4)
    seen = run_once(bench, [flip])
    assert not [found for found in seen.detections if found.by == "fault"]
    checked = replace(bench, spec=replace(bench.spec, checksums=True))
    row = Row(id="A", about="it", faults=(flip,))
    judged = Campaign(checked, [row]).row(row, 0).judged
    assert (judged.lost, judged.detected.by, judged.detected.what) == (lost, "fault", told)
    assert not [f for f in run_once(checked, [flip]).detections if f.what.startswith("blames")]


def test_a_lost_device_takes_its_copy_with_it_and_no_output(folder, make_drive):
    spread = PIPELINE.replace("copies: 3, one_domain: true", "copies: 3, devices: [a, b, c]")
    spread = spread.replace("gpu: {type: simulated, slots: 4, fallback: cpu}", GPUS)
    (folder / "spread.yaml").write_text(spread.replace("device: gpu, ", ""))
    (folder / "spread_campaign.yaml").write_text(CAMPAIGN.replace("small.yaml", "spread.yaml"))
    make_drive(12).replace(folder / "drive.mcap")
    campaign = FaultCampaign.load(folder / "spread_campaign.yaml")
    bench = campaign._bench(campaign.spec.drive)
    lost = Injection(place="device", target="b", kind="lost", at_ns=350_000_000)
    judged = Campaign(bench, [row := Row(id="A", about="it", faults=(lost,))]).row(row, 0).judged
    assert (judged.outcome, judged.detected.by, judged.lost) == ("masked", "resource", 0)
    slow = Injection(place="device", target="c", kind="slow", factor=20.0, at_ns=350_000_000)
    judged = (
        Campaign(bench, [row := Row(id="A", about="it", faults=(lost, slow))]).row(row, 0).judged
    )
    assert judged.lost > 0  # one of three is left, and nobody says who is right


def test_check_sums_change_no_record(folder, make_drive):
    pipeline = (folder / "small.yaml").read_text(encoding="utf-8")
    (folder / "checked.yaml").write_text(pipeline + "checksums: true\n")
    log = make_drive(4)
    plain, checked = (avrt.Pipeline.load(folder / name) for name in ("small.yaml", "checked.yaml"))
    first, second = (each.replay(log, out=folder / "run.mcap") for each in (plain, checked))
    assert first.data["digests"] == second.data["digests"]
    assert len(avrt.read_outputs(folder / "run.mcap", "plan")) == 4


def test_a_row_fails_when_its_fault_hits_nothing(came_of):
    assert came_of(of_stage("plan", "raise", frame=99)).unmet == ("1 of its faults hit nothing",)


@pytest.mark.parametrize("kind", ["ghost", "miss", "swerve"])
def test_a_row_fails_when_its_output_is_no_list_or_plan(came_of, kind):
    assert came_of(of_stage("plan", kind, by=3.0)).unmet == ("1 of its faults hit nothing",)


def test_a_row_fails_when_the_drive_ends_before_a_hang_could_be_told(came_of):
    assert came_of(of_stage("plan", "never", frame=5)).judged.outcome == "hang"
    found = came_of(of_stage("plan", "never", frame=6))
    assert found.judged.outcome == "degraded"
    assert found.unmet == ("the drive goes on for less than 600 ms",)


def test_a_row_fails_when_the_taps_alone_change_the_run(came_of, monkeypatch):
    def call(_self, process, inputs):
        return [process(**inputs)]

    monkeypatch.setattr(jobs._Tap, "call", call)
    assert came_of(of_stage("see.0", "raise")).unmet[0] == "the taps alone change the run"


def test_whatever_a_run_raises_is_a_crash_of_that_run(came_of, monkeypatch):
    run = VirtualLoop.run

    def broken(self):
        run(self)
        assert not isinstance(self._worker, jobs.TappedWorker), "boom"

    monkeypatch.setattr(VirtualLoop, "run", broken)
    found = came_of(of_stage("see.0", "raise"))
    assert found.judged.outcome == "crash"
    assert "boom" in " ".join(found.unmet)


def test_ctrl_c_ends_a_campaign(came_of, monkeypatch):
    def interrupted(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr(VirtualLoop, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        came_of(of_stage("see.0", "raise"))


def test_a_run_that_is_not_quiet_without_faults_is_refused(bench):
    spec = bench.spec
    hurried = replace(spec.stage("plan"), deadline_ns=1_000_000)
    stages = (spec.stage("see"), hurried)
    with pytest.raises(SpecError, match=r"not quiet: 12 alarms, the first is miss \(plan 0\)"):
        Campaign(replace(bench, spec=replace(spec, stages=stages)), ())


faults = st.one_of(
    st.builds(
        Injection,
        place=st.just("source"),
        target=st.just("lidar"),
        kind=st.sampled_from(["drop", "repeat", "swap", "stamp", "nan", "flip"]),
        frame=st.integers(0, 9),
        by=st.just(1e9),
    ),
    st.builds(
        Injection,
        place=st.just("stage"),
        target=st.sampled_from(["see", "see.1", "plan"]),
        kind=st.sampled_from(["raise", "never", "wrong", "nan", "repeat", "flip", "slow"]),
        at_ns=st.integers(0, 10**9),
        factor=st.just(9.0),
        by=st.just(1.0),
    ),
    st.builds(
        Injection,
        place=st.just("device"),
        target=st.sampled_from(["gpu", "cpu"]),
        kind=st.sampled_from(["lost", "slow", "wrong"]),
        at_ns=st.integers(0, 10**9),
        for_ns=st.one_of(st.none(), st.integers(1, 5 * 10**8)),
        factor=st.just(9.0),
        by=st.just(1.0),
    ),
)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(faults, min_size=1, max_size=3))
def test_taps_with_nothing_to_do_change_nothing_and_the_same_faults_do_the_same(
    bench, monkeypatch, given
):
    monkeypatch.setattr(probation, "SHADOW_FRAMES", 2)
    golden = run_once(bench)
    assert is_same(golden, run_once(bench, [idle(fault) for fault in given]))
    first, second = run_once(bench, given), run_once(bench, given)
    assert first.crash == ""
    assert is_same(first, second)
    assert first.detections == second.detections
    assert first.injected_ns == second.injected_ns


@pytest.mark.slow
def test_pairs_are_the_same_for_the_same_seed(bench):
    rows = {
        name: Row(id=name, about="it", faults=(fault,))
        for name, fault in (
            ("a", of_stage("see.0", "raise")),
            ("b", of_stage("see.1", "nan")),
            ("c", Injection(place="source", target="lidar", kind="drop", frame=4)),
        )
    }
    campaign = Campaign(bench, rows.values())
    first, second, other = (list(campaign.pairs(rows, 4, seed)) for seed in (1, 1, 2))
    assert first == second != other
    with pytest.raises(SpecError, match="a pair takes two rows"):
        list(campaign.pairs({"a": rows["a"]}, 1, 0))


def test_what_runs_at_a_level_as_at_the_first_one_is_compared_there():
    path = Path(__file__).parents[2] / "scenarios/faults/brake.yaml"
    rules = rules_for(load(path).spec, Observed())
    assert rules.runs_at == {
        "two_gpus": {"near", "limit", "plan", "halt"},
        "one_gpu": {"near", "limit", "plan", "halt"},
        "cpu_only": {"near", "limit", "plan", "halt"},
        "stop": {"halt"},
    }
    assert rules.same_at == {
        "two_gpus": {"near", "limit", "plan", "halt", "screen"},
        "one_gpu": {"near", "limit", "plan", "halt"},
        "cpu_only": {"halt"},
        "stop": {"halt"},
    }
    assert rules.silent_ns == 300_000_000
    assert rules.near_ns == {"radar": 25_000_000, "wheels": 10_000_000}
