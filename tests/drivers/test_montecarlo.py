"""Many runs: in order, alike however the work is divided, and near the truth."""

import pytest
from builder import Bench, stage

from avrt.drivers import montecarlo
from avrt.drivers.montecarlo import run_many
from avrt.drivers.scenario import Prepared
from avrt.model.execution import Uniform
from avrt.model.scenario import ArrivalSpec, Expectation, ScenarioSpec
from avrt.model.spec import ChainSpec

TRUTH = 0.1
"""A job takes 1 to 100, each as likely, and is late above 90."""


@pytest.fixture(scope="module")
def prepared():
    see = stage("see", "lidar", wcet_ns=100, deadline_ns=90)
    chains = (ChainSpec(name="it", path=("lidar", "see"), age_ns=285),)
    spec = Bench(see, chains=chains).spec
    models = {"see": Uniform(1, 100)}
    scenario = ScenarioSpec(
        name="s", pipeline=spec, duration_ns=2000, seed=0, execution=models,
        arrivals=(ArrivalSpec(source="lidar", kind="periodic", period_ns=200),),
        expect=(
            Expectation("stages", "see", "late", "at most", 3, "3"),
            Expectation("stages", "see", "shed", "exactly", 0, "0"),
        ),
    )  # fmt: skip
    return Prepared(scenario, models, {})


def test_runs_are_counted(prepared):
    many = run_many(prepared, 5, 20)
    found = many.stages["see"]
    assert (many.first_seed, many.count, found.runs, found.jobs) == (5, 20, 20, 200)
    assert 0 < found.misses < 60
    assert found.runs_with <= found.misses
    chain = many.chains["it"]
    assert 0 < chain.misses < chain.jobs == 200


def test_more_runs_begin_with_the_same_seeds(prepared):
    parts = ((0, 5), (5, 5), (0, 10))
    one, two, both = (run_many(prepared, *part).stages["see"].misses for part in parts)
    assert one + two == both


def test_a_failed_expectation_is_told_with_the_first_seed(prepared):
    (failure,) = run_many(prepared, 0, 60).failures
    assert failure.expectation.figure == "late"
    assert 0 < failure.runs < 60
    assert failure.sentence.startswith("expected late at most 3 of see, found ")
    again = run_many(prepared, failure.seed, 1).failures
    assert [item.sentence for item in again] == [failure.sentence]


@pytest.mark.slow
def test_processes_change_nothing(prepared, monkeypatch):
    alone = run_many(prepared, 0, 24)
    monkeypatch.setattr(montecarlo, "SPAWN_FROM_JOBS", 1)
    monkeypatch.setattr(montecarlo, "processes", lambda: 2)
    assert run_many(prepared, 0, 24) == alone


@pytest.mark.slow
def test_the_intervals_cover_the_truth(prepared):
    """40 times 20 runs: by chance at least 34 of the intervals hold, where 38 are expected."""
    many = [run_many(prepared, 1000 * part, 20).stages["see"] for part in range(40)]
    a_run = 1 - (1 - TRUTH) ** 10
    assert sum(m.a_job is not None and m.a_job.low <= TRUTH <= m.a_job.high for m in many) >= 34
    assert sum(m.a_run.low <= a_run <= m.a_run.high for m in many) >= 34
