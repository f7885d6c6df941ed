"""Two ways that can both be driven (row B13): published is a plan of a copy, bit for bit."""

from pathlib import Path

import pytest

from avrt.api.campaign import FaultCampaign
from avrt.drivers.inject import jobs
from avrt.drivers.inject.run import run_once
from avrt.payload.digest import digest_of

PATH = Path(__file__).parents[2] / "scenarios/faults/planner.yaml"
FRAME = 20


@pytest.fixture(scope="module")
def campaign():
    return FaultCampaign.load(PATH)


@pytest.fixture(scope="module")
def bench(campaign):
    return campaign._bench(campaign.spec.drive)


@pytest.fixture(scope="module")
def golden(bench):
    return run_once(bench)


@pytest.fixture
def made(monkeypatch):
    """The digests of what each copy of the plan made, by task."""
    found = {}
    call = jobs._Tap.call

    def heard(tap, *args):
        payload = call(tap, *args)
        found.setdefault(tap._task, []).append(digest_of(payload))
        return payload

    monkeypatch.setattr(jobs._Tap, "call", heard)
    return found


@pytest.mark.slow
def test_of_a_plan_on_the_left_and_two_straight_on_a_straight_one_is_published(
    campaign, bench, golden, made
):
    seen = run_once(bench, campaign.spec.rows["B13"].faults)
    plans = [digest_of(output.payload) for output in seen.outputs["plan"]]
    assert plans == [digest_of(output.payload) for output in golden.outputs["plan"]]
    assert plans == made["plan.1"] == made["plan.2"]
    assert not set(plans[FRAME:]) & set(made["plan.0"][FRAME:])


@pytest.mark.slow
@pytest.mark.parametrize("row", ["B13_sides", "B13_two"])
def test_of_a_plan_on_the_left_and_one_on_the_right_none_between_is_published(
    campaign, bench, golden, made, row
):
    seen = run_once(bench, campaign.spec.rows[row].faults)
    output = seen.outputs["plan"][FRAME]
    assert digest_of(output.payload) in {made["plan.0"][FRAME], made["plan.1"][FRAME]}
    ends = [run.outputs["plan"][FRAME].payload.xy[-1, 1] for run in (golden, seen)]
    assert abs(ends[1] - ends[0]) == pytest.approx(3.0)
    assert output.degraded
