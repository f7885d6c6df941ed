"""Within how many jobs weights are checked, and which times are too short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.errors import SpecError
from avrt.exec.scrub import CHANGES_MAX, WITHIN_NS, scrub_plan
from avrt.model.graph import check
from avrt.model.ladder import LadderSpec, LevelSpec, StageLevel
from avrt.model.scrub import scrub_jobs
from avrt.model.spec import Criticality, DeviceSpec, InputSpec, PipelineSpec, SourceSpec, StageSpec
from avrt.units import NS_PER_MS, NS_PER_S


def stage(scrub_ns, deadline_ns=20 * NS_PER_MS):
    return StageSpec(
        name="see",
        device="cpu",
        wcet_ns=1,
        deadline_ns=deadline_ns,
        inputs=(InputSpec(name="image", source="cam"),),
        trigger="image",
        criticality=Criticality.ASIL_B,
        scrub_ns=scrub_ns,
    )


def pipeline(scrub_ns, period_ns=50 * NS_PER_MS, every=0):
    cam = SourceSpec(name="cam", type="camera", period_ns=period_ns)
    lower = LevelSpec(name="less", stages=(StageLevel(stage="see", every=every),))
    ladder = LadderSpec(levels=(LevelSpec(name="full"), lower), age_ns_max=10 * NS_PER_S)
    return PipelineSpec(
        name="p",
        devices=(DeviceSpec(name="cpu"),),
        sources=(cam,),
        stages=(stage(scrub_ns),),
        ladder=ladder if every else None,
    )


@given(st.integers(1, 10**4), st.integers(1, 10**4), st.integers(1, 10**6))
def test_a_change_is_told_in_time_and_no_more_is_read_than_that_takes(period, deadline, scrub):
    """It may come just after its block was read: n jobs until it is read again, one that tells."""
    try:
        jobs = scrub_jobs(stage(scrub, deadline), period)
    except SpecError:
        assert scrub < 2 * period + deadline
        return
    assert (jobs + 1) * period + deadline <= scrub < (jobs + 2) * period + deadline


@pytest.mark.parametrize(
    ("scrub_ns", "period_ns", "told"),
    [
        (119 * NS_PER_MS, 50 * NS_PER_MS, "expected 120 ms or more, since one job finds"),
        (NS_PER_S, None, "nobody knows how often the stage runs; give its source a 'rate'"),
    ],
)
def test_what_cannot_be_told_in_time_is_refused(scrub_ns, period_ns, told):
    with pytest.raises(SpecError) as caught:
        check(pipeline(scrub_ns, period_ns))
    assert caught.value.key == ("stages", "see", "scrub")
    assert told in caught.value.what
    check(pipeline(None, period_ns))


def test_it_is_told_in_time_at_every_level():
    plan = scrub_plan(spec := pipeline(NS_PER_S, every=4), spec.stage("see"))
    assert (plan.jobs, CHANGES_MAX) == ((1000 - 20) // 200 - 1, 3)
    assert plan.window_jobs == WITHIN_NS // (50 * NS_PER_MS)
    check(spec)
    with pytest.raises(SpecError, match=r"at this level, stages\.see\.scrub: expected 420 ms"):
        check(pipeline(400 * NS_PER_MS, every=4))


def test_nothing_is_planned_unless_the_pipeline_says_so():
    spec = pipeline(None)
    assert scrub_plan(spec, spec.stage("see")) is None
    assert scrub_jobs(spec.stage("see"), None) == 0
