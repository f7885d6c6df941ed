"""Polled callbacks: no run of an executor, written down here tick by tick, exceeds its bound."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avrt.analysis.executor import callback_response, chain_response
from avrt.analysis.tasks import Task
from avrt.model.supply import Supply
from pipelines import Picker, examples

UNTIL = 240


def is_supplied(supply, shifts, tick):
    """Whether the reservation gives this tick: its budget lies anywhere in each period."""
    period, into = divmod(tick, supply.period_ns)
    return 0 <= into - shifts[period % len(shifts)] < supply.budget_ns


def run(releases, costs, after, supply, shifts):
    """Return the responses of each callback, from the release of what began its chain.

    Callback i comes at `releases[i]` or when `after[i]` has ended; the smaller goes first.
    """
    pending = [[] for _ in costs]  # of each callback: when its chain was released
    responses = [[] for _ in costs]
    chosen, current, left = [], None, 0
    for tick in range(4 * UNTIL):
        for index, times in enumerate(releases):
            pending[index] += [at for at in times if at == tick]
        if current is None and not chosen:
            chosen = [index for index, waiting in enumerate(pending) if waiting]
        if current is None and chosen:
            index = chosen.pop(0)
            current, left = (index, pending[index].pop(0)), costs[index]
        if current is not None and is_supplied(supply, shifts, tick):
            left -= 1
            if not left:
                index, released = current
                responses[index].append(tick + 1 - released)
                current = None
                if after[index] is not None:
                    pending[after[index]].append(released)
    return responses


@st.composite
def executors(draw):
    """Return a reservation and where its budgets lie, chains of callbacks, and their order."""
    pick = Picker(draw, 40)
    period = pick((4, 5, 7))
    supply = Supply(period, pick.integer(2, period))
    shifts = [pick.integer(0, period - supply.budget_ns) for _ in range(5)]
    chains = []
    for _ in range(pick.integer(1, 3)):
        task = Task(
            name="",
            wcet_ns=1,
            period_ns=pick((15, 20, 33, 50)),
            deadline_ns=1,
            jitter_ns=pick((0, 0, 4, 25)),
        )
        nominal = range(pick.integer(0, 14), UNTIL, task.period_ns)
        times = sorted(at + pick.integer(0, task.jitter_ns) for at in nominal)
        chains.append((task, [pick.integer(1, 3) for _ in range(pick.integer(1, 3))], times))
    order = draw(st.permutations(range(sum(len(costs) for _, costs, _ in chains))))
    return supply, shifts, chains, order


@given(executors())
@examples(60)
def test_no_run_exceeds_the_bound(made):
    supply, shifts, chains, order = made
    count = len(order)
    releases, costs, after = [()] * count, [0] * count, [None] * count
    places = iter(order)
    ends = []
    for _, wcets, times in chains:
        own = [next(places) for _ in wcets]
        releases[own[0]] = times
        for place, wcet in zip(own, wcets, strict=True):
            costs[place] = wcet
        for before, place in pairwise(own):
            after[before] = place
        ends.append(own[-1])
    responses = run(releases, costs, after, supply, shifts)
    tasks = [
        Task(
            name=str(index),
            wcet_ns=sum(wcets),
            period_ns=task.period_ns,
            deadline_ns=1,
            jitter_ns=task.jitter_ns,
        )
        for index, (task, wcets, _) in enumerate(chains)
    ]
    for index, (_, wcets, times) in enumerate(chains):
        others = [task for task in tasks if task is not tasks[index]]
        bound = chain_response(tasks[index], wcets[-1], others, supply)
        found = responses[ends[index]]
        if bound is not None:
            assert len(found) == len(times)
            assert max(found) <= bound


def callback(wcet, period, jitter=0):
    return Task(name="it", wcet_ns=wcet, period_ns=period, deadline_ns=period, jitter_ns=jitter)


def test_alone_on_a_whole_processor_a_callback_takes_its_time():
    assert callback_response(callback(3, 10), (), Supply(5, 5)) == 3
    assert chain_response(callback(7, 10), 4, (), Supply(5, 5)) == 7


def test_a_chain_of_one_callback_is_a_callback():
    others = [callback(2, 20, 5)]
    supply = Supply(5, 3)
    alone = callback_response(callback(3, 25), others, supply)
    assert chain_response(callback(3, 25), 3, others, supply) == alone


@pytest.mark.parametrize("others", [(), (callback(1, 10),)])
def test_too_much_work_has_no_bound(others):
    assert callback_response(callback(6, 10), others, Supply(10, 5)) is None
