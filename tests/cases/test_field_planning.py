"""Three reports from the field of plans that were none, came too late, or of an old world."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import avrt
from avrt.drivers.simulate import simulate
from avrt.model.events import Arrived
from avrt.model.graph import check
from avrt.model.message import Message, Stamp
from avrt.model.records import ChainBroken, FaultRecord
from avrt.model.spec import (
    ChainSpec,
    DeviceSpec,
    InputSpec,
    PipelineSpec,
    SourceSpec,
    StageSpec,
)
from avrt.payload import Box, Track, Tracks
from avrt.stages.planning import Planner
from cases import field

REPORTS = ("PLN-01", "PLN-03", "PLN-05")
MS = 1_000_000
OLD_NS = 400 * MS  # an output that is 220 ms old stays in force for at most 130 ms more


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the generated inputs and answers."""
    return field.generated(tmp_path_factory.mktemp("reports"), "gen_a_track.py", REPORTS)


def standing(near, length, width):
    """Return a confirmed track of a thing that stands at `near` metres from the scene's origin."""
    return Track(
        id=7,
        label="car",
        box=Box(near + length / 2, 0.0, 0.8, length, width, 1.6, 0.0),
        vx=0.0,
        vy=0.0,
        closing_speed=15.0,
        covariance=np.eye(5) * 0.01,
        existence=0.99,
        hits=5,
        misses=0,
        confirmed=True,
        sensors=("lidar",),
        nearest_x=near,
        points=np.array([[near, 0.0, 0.8]], np.float32),
    )


def planned(speed, *things, yaw_rate=0.0, **parameters):
    scene = Tracks(things, speed, yaw_rate)
    return Planner(**parameters).process(Message(Stamp("scene", 0, 0, 0, 0), scene))


def numbers_of(plan):
    columns = (
        plan.xy[:, 0],
        plan.xy[:, 1],
        plan.yaw,
        plan.speed,
        plan.acceleration,
        plan.curvature,
    )
    return np.stack(columns)


@pytest.mark.parametrize("gap", [None, 0.0, 0.5, 2.0, 30.0])
@pytest.mark.parametrize("yaw_rate", [0.0, 1e-12, 0.1])
def test_pln_01_points_that_repeat_have_a_heading(reports, gap, yaw_rate):
    """This planner takes no path: it plans along the arc on which the vehicle is.

    What repeats here are the points of a plan that has come to rest; each still has the heading of
    the one before.
    """
    given, answer = field.given(reports, "PLN-01"), field.answer(reports, "PLN-01")
    speed = given["ego"]["v"] if gap is None or gap > 1 else 0.0
    things = () if gap is None else (standing(2.7 + gap, 4.5, 1.9),)
    plan = planned(speed, *things, yaw_rate=yaw_rate)
    numbers = numbers_of(plan)
    assert bool(np.isfinite(numbers).all()) == answer["finite"]
    assert np.abs(np.diff(plan.yaw)).max() < 0.2
    at_rest = np.hypot(*np.diff(plan.xy, axis=0).T) == 0
    assert at_rest.any() or gap in {None, 30.0}
    assert np.abs(np.diff(plan.yaw)[at_rest]).max(initial=0.0) < 1e-9


class Broken(avrt.Stage):
    """Plans to go on, but the third plan is no number."""

    def __init__(self):
        self.count = 0

    def process(self, cloud):
        del cloud
        self.count += 1
        plan = planned(8.3)
        return replace(plan, yaw=plan.yaw * math.nan) if self.count == 3 else plan


@pytest.mark.slow
def test_pln_01_a_plan_that_is_no_number_is_never_published(reports, make_drive, tmp_path):
    assert field.answer(reports, "PLN-01")["finite"]
    out = tmp_path / "run.mcap"
    pipeline = avrt.Pipeline("p", devices={"cpu": {"type": "cpu"}})
    pipeline.source("lidar", type="lidar", topic="/lidar", rate="10 Hz")
    keys = {"inputs": {"cloud": "lidar"}, "wcet": "5 ms", "deadline": "90 ms"}
    pipeline.add(Broken, name="plan", device="cpu", **keys)
    report = pipeline.replay(make_drive(5), out=out)
    published = list(avrt.read_outputs(out, "plan"))
    assert len(published) == 4
    assert all(np.isfinite(numbers_of(one.payload)).all() for one in published)
    assert [fault.fault for fault in field.records(out, FaultRecord)] == ["impossible_output"]
    assert report.data["jobs"]["aborted"] == 1


def braking(reports, gap):
    """Return the plan of the report's vehicle when a thing appears so far ahead of its front."""
    given = field.given(reports, "PLN-03")
    (thing,) = given["obstacles"]
    front = given["ego_front_m"]
    obstacle = standing(front + gap, thing["l"], thing["w"])
    limits = {"front_offset": front, "braking_max": given["a_max"]}
    return planned(given["ego"]["v"], obstacle, **limits), front


def test_pln_03_what_appears_close_is_braked_for_at_once_and_in_front_of_it(reports):
    answer = field.answer(reports, "PLN-03")
    plan, front = braking(reports, answer["gap_m"])
    (obstacle,) = field.given(reports, "PLN-03")["obstacles"]
    assert answer["gap_m"] == obstacle["x_rel_front"]
    assert plan.kind == "stop"
    assert plan.acceleration[1] == -field.given(reports, "PLN-03")["a_max"]  # after 0.25 s
    stop = plan.xy[plan.speed == 0.0][0, 0]
    assert answer["stop_distance_at_a_max_m"] < stop < answer["gap_m"]
    assert (plan.cause.impact_speed == 0.0) == answer["collision_avoidable"]
    assert plan.cause.distance == pytest.approx(answer["gap_m"])
    assert front == 2.0


def test_pln_03_what_cannot_be_avoided_is_told_with_the_lowest_speed_of_impact(reports):
    """At 10 m nothing helps: it is met with what is left of 15 m/s after braking all the way.

    The brakes take 0.2 s to bite (1.5 m), and then v^2 = 15^2 - 2 * 8 * (10 - 3): about 10.8 m/s.
    """
    plan, _ = braking(reports, 10.0)
    hardest, _ = braking(reports, field.answer(reports, "PLN-03")["gap_m"])
    assert plan.kind == "stop"
    assert plan.acceleration.tolist() == hardest.acceleration.tolist()
    after_bite = 15 - 8 * 0.2 / 2
    bite = 15 * 0.2 - 40 * 0.2**3 / 6
    assert plan.cause.impact_speed == pytest.approx(
        math.sqrt(after_bite**2 - 2 * 8 * (10 - bite)), abs=0.1
    )


def falling_behind(reports, queue):
    """Return the jobs of a perception that takes longer than a period, with so many waiting."""
    given = field.given(reports, "PLN-05")
    period_ns, count = given["source"]["period_ms"] * MS, given["source"]["n"]
    spec = PipelineSpec(
        name="backlog",
        devices=(DeviceSpec(name="cpu", type="cpu"),),
        sources=(SourceSpec(name="lidar", type="lidar", period_ns=period_ns),),
        stages=(
            StageSpec(
                name="see",
                device="cpu",
                inputs=(InputSpec(name="cloud", source="lidar"),),
                trigger="cloud",
                wcet_ns=given["stage"]["cost_ms"] * MS,
                deadline_ns=given["deadline_e2e_ms"] * MS,
                deadline_from="capture",
                queue=queue,
            ),
        ),
        chains=(ChainSpec(name="seen", path=("lidar", "see"), age_ns=OLD_NS),),
    )
    check(spec)
    times = [index * period_ns for index in range(count)]
    feed = [(at, Arrived("lidar", k, at, at, -1 - k)) for k, at in enumerate(times)]
    return simulate(spec, until_ns=times[-1] + 30 * period_ns, feed=feed)


def test_pln_05_with_room_for_one_the_newest_is_taken_and_age_stays_bounded(reports):
    answer = field.answer(reports, "PLN-05")
    run = falling_behind(reports, queue=1)
    jobs = run.jobs_of("see")
    done = [job for job in jobs if job.outcome in {"met", "late"}]
    ages_ms = sorted(job.response_ns // MS for job in done)
    shed = [job for job in jobs if (job.outcome, job.reason) == ("shed", "queue_full")]
    assert (len(done), len(shed)) == (answer["processed"], answer["dropped"])
    assert len(jobs) == len(done) + len(shed)
    assert (ages_ms[len(ages_ms) // 2], ages_ms[-1]) == (
        answer["age_p50_ms"],
        answer["age_max_ms"],
    )
    assert sum(job.outcome == "late" for job in done) == answer["e2e_misses"]
    assert stale(run) == 0


def test_pln_05_with_room_for_all_misses_count_from_the_capture(reports):
    """Each job in itself takes what it should; the deadline counts from the sensor's time."""
    answer = field.answer(reports, "PLN-05")
    run = falling_behind(reports, queue=1000)
    jobs = run.jobs_of("see")
    assert jobs[-1].response_ns == answer["fifo_age_at_end_ms"] * MS
    assert {job.executed_ns for job in jobs} == {130 * MS}
    assert sum(job.outcome == "late" for job in jobs) == len(jobs) - 1
    assert stale(run) > 400  # all but the first outputs


def stale(run):
    """Return how often the newest output was told to be too old while the sensor sent."""
    told = [record.at_ns for record in run.records if isinstance(record, ChainBroken)]
    return sum(at_ns < 60_000 * MS for at_ns in told)
