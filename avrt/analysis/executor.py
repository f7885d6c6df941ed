"""Callbacks and chains of callbacks in a ROS 2 executor of one thread, within a reservation.

The executor takes in what is ready at a *polling point* only: then every callback that has work is
put into a set, once, and the set is worked off by priority before the next look. So whatever came
just after a polling point waits for the next one, and a callback of any priority may go before it:
all others count as interference until it starts, after which nothing takes the executor from it.

Casini, Blass, Luetkebohle & Brandenburg 2019, "Response-time analysis of ROS 2 processing chains
under reservation-based scheduling", ECRTS: lemmas 4 and 5 for a callback, lemma 8 for a chain, in
which the callbacks before the last one interfere with it like those of other chains; lemmas 6 and
7 for how far to look, and at which releases. Timers, which are not polled, are lemma 3:
`avrt.analysis.supply`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.analysis.response_time import JOBS_MAX
from avrt.analysis.tasks import STEPS_MAX, overloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.tasks import Task
    from avrt.model.supply import Supply


def callback_response(callback: Task, others: Sequence[Task], supply: Supply) -> int | None:
    """Return the worst response of a callback that is polled, from its release; None if unbounded.

    Args:
        callback: the one under analysis.
        others: all others of the executor, whatever their priorities.
        supply: the reservation of the executor.
    """
    window_ns = _busy_window_ns((callback, *others), supply)
    if window_ns is None:
        return None
    worst_ns = 0
    for index in range(JOBS_MAX):
        at_ns = callback.earliest_ns(index)
        if at_ns > window_ns:
            return worst_ns
        found_ns = _response_ns(callback, others, supply, at_ns)
        if found_ns is None:
            return None
        worst_ns = max(worst_ns, found_ns)
    return None


def chain_response(chain: Task, last_ns: int, others: Sequence[Task], supply: Supply) -> int | None:
    """Return the worst time from the release of a chain to the end of its last callback.

    Args:
        chain: arrivals of its first callback, and the wcet of all its callbacks together.
        last_ns: the wcet of its last callback.
        others: the other chains of the executor likewise.
        supply: the reservation of the executor.
    """
    last = replace(chain, wcet_ns=last_ns)
    before = replace(chain, wcet_ns=chain.wcet_ns - last_ns)
    return callback_response(last, (before, *others) if before.wcet_ns else others, supply)


def _busy_window_ns(tasks: Sequence[Task], supply: Supply) -> int | None:
    """Return how long the executor can have work at a stretch."""
    if overloaded(tasks, supply.share):
        return None
    window_ns = 1
    for _ in range(STEPS_MAX):
        work_ns = sum(task.releases(window_ns) * task.wcet_ns for task in tasks)
        longer_ns = supply.window_ns(work_ns)
        if longer_ns <= window_ns:
            return longer_ns
        window_ns = longer_ns
    return None


def _response_ns(callback: Task, others: Sequence[Task], supply: Supply, at_ns: int) -> int | None:
    """Return the response of the job released `at_ns` into a busy window: a least fixed point."""
    own_ns = callback.releases(at_ns + 1) * callback.wcet_ns
    response_ns = 1
    for _ in range(STEPS_MAX):
        start_ns = at_ns + max(0, response_ns - callback.wcet_ns)
        work_ns = own_ns + sum(t.releases(start_ns + 1) * t.wcet_ns for t in others)
        found_ns = supply.window_ns(work_ns) - at_ns
        if found_ns <= response_ns:
            return response_ns
        response_ns = found_ns
    return None
