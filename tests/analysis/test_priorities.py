"""Audsley's assignment finds an order exactly when trying them all does."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from avrt.analysis.priorities import meets_deadline, optimal_order
from avrt.analysis.tasks import Task
from pipelines import examples


@st.composite
def task_sets(draw):
    """Up to five tasks, all preemptive or none."""
    whole = draw(st.booleans())
    tasks = []
    for place in range(draw(st.integers(2, 5))):
        period_ns = draw(st.sampled_from((6, 8, 10, 15, 20)))
        wcet_ns = draw(st.integers(1, 4))
        task = Task(
            name=str(place),
            wcet_ns=wcet_ns,
            period_ns=period_ns,
            deadline_ns=draw(st.integers(wcet_ns, 2 * period_ns)),
            jitter_ns=draw(st.sampled_from((0, 0, 3))),
        )
        tasks.append(task.nonpreemptive() if whole else task)
    return tasks


def is_accepted(order):
    return all(
        meets_deadline(task, order[:place], order[place + 1 :]) for place, task in enumerate(order)
    )


@given(task_sets())
@examples(40)
def test_an_order_is_found_whenever_there_is_one(tasks):
    order = optimal_order(tasks)
    if order is None:
        assert not any(is_accepted(list(other)) for other in permutations(tasks))
    else:
        assert sorted(t.name for t in order) == sorted(t.name for t in tasks)
        assert is_accepted(order)


def test_neither_rates_nor_deadlines_give_the_order_that_jitter_needs():
    often = Task(name="often", wcet_ns=3, period_ns=10, deadline_ns=10)
    late = Task(name="late", wcet_ns=3, period_ns=20, deadline_ns=4, jitter_ns=15)
    assert [t.name for t in optimal_order([often, late])] == ["late", "often"]
