"""The task of the analyses: how much it executes, how often it comes, when it is due.

Time is whole ns, so "preemptive" needs no case of its own: a job whose non-preemptable parts are
one ns long is preemptive, one whose only part is the whole job is not, and everything between is
limited preemption. A lower task delays others by its longest part less one ns, because of two
jobs released at one instant the higher goes first (Bozhko & Brandenburg 2020, ECRTS, abstract
response-time analysis, has the same reading).

Arrivals are periodic or sporadic with release jitter and a least distance, the event model
(P, J, d) of Richter 2005: every window of `w` ns sees at most
`min(ceil((w + J) / P), ceil(w / d))` releases.

Tasks are told apart by identity: equal replicas of a redundant stage each count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STEPS_MAX = 20_000  # of one fixed point; beyond it the answer is unknown


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """One task of one device.

    Attributes:
        period_ns: period, or least distance of nominal arrivals.
        deadline_ns: from release to due; the shortest where it varies.
        deadline_max_ns: the longest; None where it does not vary.
        jitter_ns: a release comes up to this much after its nominal arrival.
        gap_ns: least distance of two releases; 0 says nothing.
        priority: for fixed priorities; 1 is the most urgent.
        last_ns, longest_ns: its last and its longest non-preemptable part.
        blocking_ns: longest wait for a resource held by a lower task.
        suspension_ns: how long a job may suspend itself in all.
    """

    name: str
    wcet_ns: int
    period_ns: int
    deadline_ns: int
    bcet_ns: int = 1
    deadline_max_ns: int | None = None
    jitter_ns: int = 0
    gap_ns: int = 0
    priority: int = 0
    last_ns: int = 1
    longest_ns: int = 1
    blocking_ns: int = 0
    suspension_ns: int = 0

    def releases(self, window_ns: int) -> int:
        """Return the most releases in a window of that length, its end not included."""
        if window_ns <= 0:
            return 0
        count = -(-(window_ns + self.jitter_ns) // self.period_ns)
        return min(count, -(-window_ns // self.gap_ns)) if self.gap_ns else count

    def earliest_ns(self, index: int) -> int:
        """Return how soon after the first of a run of releases number `index` can come."""
        return max(0, index * self.period_ns - self.jitter_ns, index * self.gap_ns)

    @property
    def due_max_ns(self) -> int:
        """The longest time from release to due."""
        return self.deadline_ns if self.deadline_max_ns is None else self.deadline_max_ns

    @property
    def utilisation(self) -> Fraction:
        return Fraction(self.wcet_ns, self.period_ns)

    def preemptive(self) -> Task:
        """Return the same task, preemptable at any time."""
        return replace(self, last_ns=1, longest_ns=1)

    def nonpreemptive(self) -> Task:
        """Return the same task, each job of which is one non-preemptable part."""
        return replace(self, last_ns=self.wcet_ns, longest_ns=self.wcet_ns)


def utilisation(tasks: Iterable[Task]) -> Fraction:
    return sum((task.utilisation for task in tasks), Fraction(0))


def overloaded(tasks: Iterable[Task], slots: Fraction | int = 1) -> bool:
    """Whether more execution is asked for in the long run than there is."""
    members = list(tasks)
    load = sum(task.wcet_ns / task.period_ns for task in members)
    if abs(load - float(slots)) > 1e-6:  # far beyond what rounding could turn
        return load > slots
    return utilisation(members) > slots


def busy_period_ns(tasks: Iterable[Task], blocking_ns: int = 0) -> int | None:
    """Return the longest time a processor can be busy with these tasks, None if too long to find.

    The least fixed point of the work that is released while it lasts.
    """
    members = list(tasks)
    if overloaded(members):
        return None
    length_ns = blocking_ns + sum(task.wcet_ns for task in members)
    for _ in range(STEPS_MAX):
        longer_ns = blocking_ns + sum(t.releases(length_ns) * t.wcet_ns for t in members)
        if longer_ns == length_ns:
            return length_ns
        length_ns = longer_ns
    return None


def steps(task: Task, shift_ns: int, until_ns: int) -> Iterator[int]:
    """Yield where the count of its releases steps up, shifted, from 0 up to before `until_ns`."""
    first = max(0, (task.jitter_ns - shift_ns) // task.period_ns)
    index = first
    while (at_ns := task.earliest_ns(index) + shift_ns) < until_ns:
        if at_ns >= 0:
            yield at_ns
        index += 1
