"""Audsley's priority assignment: an order in which a test accepts a set, if there is one.

From the lowest level up, any task that the test accepts there with all the rest above it may stay
there: what is above matters only as a set (Audsley 1991; Davis & Burns 2011 name the tests for
which that holds, the busy windows of `response_time` among them, with and without preemption).
So at most n (n + 1) / 2 tests find an order whenever there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.response_time import fixed_priority, from_release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.analysis.tasks import Task

    Accepts = Callable[[Task, Sequence[Task], Sequence[Task]], bool]


def meets_deadline(task: Task, higher: Sequence[Task], lower: Sequence[Task]) -> bool:
    """Whether a task meets its deadline at this place of the order, on one processor."""
    if task.wcet_ns > task.deadline_ns:
        return False
    finishes = fixed_priority(task, higher, lower)
    return finishes is not None and from_release(task, finishes) <= task.deadline_ns


def optimal_order(tasks: Sequence[Task], accepts: Accepts = meets_deadline) -> list[Task] | None:
    """Return the tasks from the most to the least urgent, None when no order is accepted.

    Where several fit at a level, the one with the longest deadline goes there.
    """
    left = sorted(tasks, key=lambda task: task.deadline_ns)
    order: list[Task] = []
    while left:
        for place in range(len(left) - 1, -1, -1):
            higher = [*left[:place], *left[place + 1 :]]
            if accepts(left[place], higher, order):
                order.insert(0, left.pop(place))
                break
        else:
            return None
    return order
