"""The kernel against an independent scheduler written from the textbook.

The oracle lies beside the repository, in shared/oracles; without it these tests are skipped.
"""

import importlib.util
from pathlib import Path

import pytest
from builder import timer
from hypothesis import given
from hypothesis import strategies as st

from avrt.drivers.simulate import simulate
from avrt.model.graph import check
from avrt.model.spec import DeviceSpec, PipelineSpec
from pipelines import Picker, examples

ORACLE = Path(__file__).parents[3] / "shared" / "oracles" / "sim.py"
HORIZON = 120
LONG = 10**6

STATES = {"met": "done", "late": "done", "aborted": "aborted", "skipped": "skipped"}


@pytest.fixture(scope="module")
def oracle():
    if not ORACLE.exists():
        pytest.skip("the independent oracle is not at hand: no ../shared/oracles")
    spec = importlib.util.spec_from_file_location("avrt_oracle_sim", ORACLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@st.composite
def task_sets(draw):
    """Periodic tasks `(C, T, D, offset)`, distinct priorities, and execution times per task."""
    pick = Picker(draw, 40)
    tasks = [
        (pick.integer(1, 8), pick.integer(3, 20), pick.integer(1, 25), pick.integer(0, 6))
        for _ in range(draw(st.integers(1, 6)))
    ]
    left = list(range(len(tasks)))
    priorities = [left.pop(pick(range(len(left)))) for _ in tasks]
    costs = [pick.integer(1, 10) for _ in range(pick.integer(1, 7))]
    return tasks, priorities, costs


def cost_of(costs, task, index):
    return costs[(3 * task + index) % len(costs)]


def by_kernel(case, policy, slots, preemptive, on_miss):
    tasks, priorities, costs = case
    spec = PipelineSpec(
        name="oracle",
        policy={"EDF": "edf", "FP": "fp", "FIFO": "fifo"}[policy],
        devices=(DeviceSpec(name="cpu", type="simulated", slots=slots, preemptive=preemptive),),
        stages=tuple(
            timer(
                f"t{i}",
                period,
                wcet_ns=wcet,
                deadline_ns=deadline,
                offset_ns=offset,
                priority=1 + priorities[i],
                on_miss=on_miss,
                queue=LONG,
                budget_ns=LONG,
            )
            for i, (wcet, period, deadline, offset) in enumerate(tasks)
        ),
    )
    check(spec)
    result = simulate(
        spec,
        until_ns=HORIZON,
        execution=lambda task, index: cost_of(costs, int(task[1:]), index),
    )
    return [
        [
            (STATES[j.outcome], j.end_ns if j.outcome in {"met", "late"} else None)
            for j in result.jobs_of(f"t{i}")
        ]
        for i in range(len(tasks))
    ]


def by_oracle(oracle, case, policy, slots, preemptive, on_miss):
    tasks, priorities, costs = case
    counts = [len(range(offset, HORIZON, period)) for _, period, _, offset in tasks]
    jobs, _ = oracle.simulate(
        [(wcet, period, deadline) for wcet, period, deadline, _ in tasks],
        HORIZON,
        policy=policy,
        m=slots,
        preemptive=preemptive,
        offsets=[offset for *_, offset in tasks],
        prio=priorities,
        ex=[[cost_of(costs, i, k) for k in range(n)] for i, n in enumerate(counts)],
        miss=on_miss,
    )
    return [[(job.state, job.fin) for job in task] for task in jobs]


RULES = [
    ("continue", True),
    ("continue", False),
    ("abort", True),  # the oracle stops aborted work at once
    ("skip_next", True),
    ("skip_next", False),
]
POLICIES = st.sampled_from(("FP", "EDF", "FIFO"))
SLOTS = st.integers(1, 3)


@pytest.mark.parametrize(("on_miss", "preemptive"), RULES)
@examples(20)
@given(case=task_sets(), policy=POLICIES, slots=SLOTS)
def test_finish_times_and_outcomes_are_those_of_an_independent_scheduler(
    oracle, on_miss, preemptive, case, policy, slots
):
    args = (case, policy, slots, preemptive, on_miss)
    assert by_kernel(*args) == by_oracle(oracle, *args)


@pytest.mark.slow
@pytest.mark.parametrize(("on_miss", "preemptive"), RULES)
@examples(150)
@given(case=task_sets(), policy=POLICIES, slots=SLOTS)
def test_so_they_are_in_many_more_cases(oracle, on_miss, preemptive, case, policy, slots):
    args = (case, policy, slots, preemptive, on_miss)
    assert by_kernel(*args) == by_oracle(oracle, *args)
