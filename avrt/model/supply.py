"""A device that is there for part of the time: so much execution in every period, and when.

A CPU server (SCHED_DEADLINE), or a time slice of a hypervisor, gives its budget once a period,
whether or not there is work for it. Work on the device goes on only meanwhile; a job that is on
its slot at any other time keeps it and receives nothing. So what was executed between two times is
no longer their distance: it is what the supply gave.

* Where in each period the budget begins is said in turn (`starts_ns`), and from it follows exactly
  what any stretch of time gave. Unless it is said the budget begins with the period.
* With no starts nobody knows when it is given, as at the wall clock, where the operating system
  gives it. Only what it surely gave is counted then, and work has surely had what it asked for
  after the longest time that this can take.

Analyses never look at the starts: they hold for any. At the worst the device has just given its
budget as early as it could and then gives it as late as it may, so a window sees nothing for
`2 (P - Q)` at first (Shin & Lee 2003, supply-bound function).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Supply:
    """A periodic reservation: `budget_ns` of every `period_ns`, beginning at `starts_ns` of it.

    Attributes:
        starts_ns: of each period in turn, from pipeline time 0 on, then again from the first;
            empty where nobody knows.
    """

    period_ns: int
    budget_ns: int
    starts_ns: tuple[int, ...] = (0,)

    @property
    def share(self) -> Fraction:
        """The part of the time for which the device is there."""
        return Fraction(self.budget_ns, self.period_ns)

    @property
    def is_placed(self) -> bool:
        """Whether it is known when the budget is given."""
        return bool(self.starts_ns)

    # What any window gives

    def least_ns(self, window_ns: int) -> int:
        """Return the execution that every window of that length surely gives."""
        awake_ns = window_ns - 2 * (self.period_ns - self.budget_ns)
        if awake_ns <= 0:
            return 0
        full, rest_ns = divmod(awake_ns, self.period_ns)
        return full * self.budget_ns + min(rest_ns, self.budget_ns)

    def window_ns(self, work_ns: int) -> int:
        """Return the shortest window that surely gives that much execution."""
        if work_ns <= 0:
            return 0
        full = (work_ns - 1) // self.budget_ns
        rest_ns = work_ns - full * self.budget_ns
        return 2 * (self.period_ns - self.budget_ns) + full * self.period_ns + rest_ns

    # What it gives from one time on

    def given_ns(self, from_ns: int, until_ns: int) -> int:
        """Return the execution that it gives between two times, or what it surely gives."""
        if not self.starts_ns:
            return self.least_ns(until_ns - from_ns)
        return self._given_before(until_ns) - self._given_before(from_ns)

    def end_ns(self, from_ns: int, work_ns: int) -> int:
        """Return when that much execution has been given from one time on, at least 1 ns of it."""
        if not self.starts_ns:
            return from_ns + self.window_ns(work_ns)
        full, rest_ns = divmod(self._given_before(from_ns) + work_ns - 1, self.budget_ns)
        return full * self.period_ns + self._start_ns(full) + rest_ns + 1

    def _given_before(self, at_ns: int) -> int:
        full, into_ns = divmod(at_ns, self.period_ns)
        given_ns = min(max(into_ns - self._start_ns(full), 0), self.budget_ns)
        return full * self.budget_ns + given_ns

    def _start_ns(self, period: int) -> int:
        return self.starts_ns[period % len(self.starts_ns)]


def given_ns(supply: Supply | None, from_ns: int, until_ns: int) -> int:
    """Return the execution that a device gives between two times; all, if it is always there."""
    return until_ns - from_ns if supply is None else supply.given_ns(from_ns, until_ns)


def end_ns(supply: Supply | None, from_ns: int, work_ns: int) -> int:
    """Return when a device has given that much execution from one time on."""
    return from_ns + work_ns if supply is None else supply.end_ns(from_ns, work_ns)
