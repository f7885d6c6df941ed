"""The responses of one device, from what is known so far of all its tasks.

On one slot the busy window of the policy, with all tasks taken as independent, and the window
from the release, which knows what never meets, both hold: the smaller counts. On several slots
there is the window, and for EDF with preemption tests over the whole set.

**Criticality.** On the last free slot the kernel lets a more critical job go before the policy's
choice if that choice would endanger it. A task that is in time even behind the longest of those
never is endangered; one that may be is taken to go before every other task of its device.

**Runs.** Stages that trigger each other on one device are also bounded together: while such a run
is on its way, one of its jobs executes or all slots are busy with others, who are counted once for
the run and not once for every stage.

**Supply.** A device that is there for part of the time has busy windows of its own, see
`avrt.analysis.supply`: by priority, or in any order where that is not what the policy goes by. No
other test holds there, and stages with segments are unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.analysis import global_tests
from avrt.analysis.demand import quick_demand_test
from avrt.analysis.members import are_instances, groups_of, never_meet
from avrt.analysis.response_time import (
    earliest_deadline_first,
    first_in_first_out,
    fixed_priority,
    from_release,
)
from avrt.analysis.supply import response_in_supply
from avrt.analysis.tasks import busy_period_ns
from avrt.analysis.windows import Rival, window_bound
from avrt.model.graph import LONGEST_NS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from avrt.analysis.members import Member
    from avrt.analysis.tasks import Task
    from avrt.model.spec import DeviceSpec, Policy
    from avrt.model.supply import Supply

FIXED_PRIORITIES = ("fp", "rm", "dm")
SOURCES = {
    "spare": "a spare copy comes when it is needed, which no test here knows",
    "alone": "nothing it can wait for",
    "fp": "busy window (Lehoczky 1990; Davis et al. 2007 without preemption)",
    "edf": "deadline busy periods (Spuri 1996; George et al. 1996 without preemption)",
    "fifo": "backlog of the busy period",
    "any": "busy period, any order",
    "window": "window from the release (Bertogna & Cirinei 2007; Guan et al. 2008)",
    "demand": "processor demand (Zhang & Burns 2009)",
    "gfb": "density (Goossens et al. 2003)",
    "bak": "load (Baker 2003)",
    "bcl": "interference (Bertogna et al. 2005)",
    "supply": "busy window in the least supply (Shin & Lee 2003)",
    "any_supply": "busy window in the least supply, any order",
    "table": "starts of the table (Kopetz 1997)",
    "table_jitter": "starts of the table, releases with jitter",
    "points": "fixed preemption points (Burns 1994)",
    "segments": "segments as tasks with jitter, spinning as execution (Chen et al. 2019)",
}


class DeviceBounds:
    """One device and all its tasks; `endangered` names those that criticality may prefer."""

    def __init__(
        self,
        device: DeviceSpec,
        policy: Policy,
        members: Sequence[Member],
        endangered: AbstractSet[str],
    ) -> None:
        self._device = device
        self._policy = policy
        self._members = members
        self._endangered = endangered
        self._has_segments = any(member.is_segment for member in members)
        self._has_spare = any(
            member.stage.redundancy is not None and member.stage.redundancy.spare > 0
            for member in members
        )

    def responses(self) -> dict[str, tuple[int | None, str]]:
        """Return for every task the least bound that a test gives, and the test."""
        found = {member.name: self._bound(member) for member in self._members}
        late = [
            member
            for member in self._members
            if (ns := found[member.name][0]) is None or ns > member.task.deadline_ns
        ]
        test = self._set_test() if late and not self._has_spare else None
        if test is not None:
            found |= {member.name: (member.task.deadline_ns, test) for member in late}
        return found

    def _bound(self, member: Member) -> tuple[int | None, str]:
        response_ns, test = self._bound_from_release(member)
        if response_ns is None or test == "alone" or not member.after_vote:
            return response_ns, test
        return response_ns + 1, test

    def _bound_from_release(self, member: Member) -> tuple[int | None, str]:
        if self._has_spare:
            return None, "spare"
        if self._device.supply is not None:
            return self._supply_bound(member, self._device.supply)
        rivals = self._rivals(member)
        window_ns = window_bound(member.task, rivals, self._device.slots)
        if self._device.slots > 1:
            unordered_ns = window_bound(
                member.task, [_in_any_order(rival) for rival in rivals], self._device.slots
            )
            known = [ns for ns in (window_ns, unordered_ns) if ns is not None]
            window_ns = min(known, default=None)
        if window_ns == member.task.wcet_ns and not (rivals and member.after_vote):
            return window_ns, "alone"
        if self._device.slots == 1:
            busy_ns, test = self._busy_bound(member)
            if busy_ns is not None and (window_ns is None or busy_ns <= window_ns):
                return busy_ns, test
        return window_ns, "window"

    # All tasks independent, on one slot

    def _busy_bound(self, member: Member) -> tuple[int | None, str]:
        task = member.task
        others = [other.task for other in self._members if other is not member]
        first = [other for other in others if other.name in self._endangered]
        if self._policy == "llf" or (self._policy == "fifo" and (first or self._has_segments)):
            return busy_period_ns([task, *others]), "any"
        if self._policy == "fifo":
            return first_in_first_out(task, others), "fifo"
        if self._policy == "edf":
            others = [_due_at_once(other) if other in first else other for other in others]
            return earliest_deadline_first(task, others), "edf"
        higher = self._higher(task, others)
        lower = [other for other in others if other not in higher]
        finishes = fixed_priority(task, higher, lower)
        return None if finishes is None else from_release(task, finishes), "fp"

    def _supply_bound(self, member: Member, supply: Supply) -> tuple[int | None, str]:
        """Return the bound where the device is there for part of the time only.

        Without preemption a lower job counts whole: it may have come to its slot just before, and
        received nothing yet.
        """
        task = member.task
        others = [other.task for other in self._members if other is not member]
        if self._has_segments:
            return None, "any_supply"
        if self._policy not in FIXED_PRIORITIES:
            return response_in_supply(task, others, supply), "any_supply"
        higher = self._higher(task, others)
        lower = [other for other in others if other not in higher]
        blocking_ns = 0
        if not self._device.preemptive:
            blocking_ns = max((other.longest_ns for other in lower), default=0)
        return response_in_supply(task, higher, supply, blocking_ns), "supply"

    def _higher(self, task: Task, others: Sequence[Task]) -> list[Task]:
        """Return the tasks that fixed priorities, or criticality, may let go before this one."""
        return [o for o in others if o.priority <= task.priority or o.name in self._endangered]

    # What is known of pairs

    def _rivals(self, member: Member) -> list[Rival]:
        met = [o for o in self._members if o is not member and not never_meet(member, o)]
        groups = groups_of(met) if self._device.slots > 1 else {}
        return [
            replace(self._rival(member, other), group=groups.get(other.name, -1)) for other in met
        ]

    def _rival(self, member: Member, other: Member) -> Rival:
        """Return another task as the policy orders it against this one.

        Under FIFO segments go by the release of their job and not by their own. What is released
        as its predecessor leaves the only slot finds that free: nothing that began before blocks
        it.
        """
        is_single = are_instances(member, other)
        is_mixed = self._policy == "fifo" and (member.is_segment or other.is_segment)
        if self._policy == "llf" or other.name in self._endangered or is_mixed:
            return Rival(other.task, other.response_ns, is_single=is_single)
        task, rival = member.task, other.task
        follows = self._device.slots == 1 and member.before is not None
        is_earlier = other.arrival.earliest_ns < member.arrival.latest_ns
        is_before = not follows and (not is_single or is_earlier)
        goes_first, until_ns, can_block = True, None, False
        match self._policy:
            case "edf":
                until_ns = task.due_max_ns - rival.deadline_ns
                goes_first = not is_single or other.due_ns[0] <= member.due_ns[1]
                can_block = is_before and rival.due_max_ns > task.deadline_ns
            case "fifo":
                until_ns = 0
                goes_first = not is_single or other.arrival.earliest_ns <= member.arrival.latest_ns
            case _:
                goes_first = rival.priority <= task.priority
                can_block = is_before and not goes_first
        return Rival(rival, other.response_ns, goes_first, until_ns, is_single, can_block)

    def run_ns(self, member: Member) -> int | None:
        """Return when the run that ends with this task is done at the latest.

        From its root's nominal arrival; None where that may be after the next one.
        """
        if self._device.supply is not None:
            return None
        by_stage = {other.stage.name: other for other in self._members}
        run = [member]
        while (before := run[-1].before) is not None:
            run.append(by_stage[before])
        if len(run) == 1 or not all(part.is_settled for part in run):
            return None
        head = run[-1]
        whole_ns = sum(part.task.wcet_ns for part in run)
        whole = replace(head.task, wcet_ns=whole_ns, last_ns=1, longest_ns=1)
        rivals = [
            Rival(other.task, other.response_ns, is_single=are_instances(head, other))
            for other in self._members
            if other not in run and not all(never_meet(part, other) for part in run)
        ]
        length_ns = window_bound(whole, rivals, self._device.slots)
        if length_ns is None:
            return None
        done_ns = head.arrival.latest_ns + length_ns
        return done_ns if done_ns <= head.arrival.next_ns else None

    # The whole set

    def may_be_endangered(self, member: Member) -> bool:
        """Whether the kernel may let this job go before the policy's choice.

        It counts whole wcets, what is left of one by what the job received.
        """
        below = [
            max(other.task.wcet_ns, other.stage.wcet_ns)
            for other in self._members
            if other.stage.criticality < member.stage.criticality and not never_meet(member, other)
        ]
        if not below or member.response_ns is None:
            return bool(below)
        is_whole = self._device.slots == 1 and not self._device.preemptive
        margin_ns = 0 if is_whole and not self._has_segments else max(below)
        if member.is_segment:
            margin_ns += member.stage.wcet_ns
        return member.response_ns + margin_ns > member.task.deadline_ns

    def _set_test(self) -> str | None:
        """Return a test that accepts the whole set, None when none does."""
        tasks = [member.task for member in self._members]
        varies = any(task.deadline_max_ns is not None for task in tasks)
        in_order = not any(task.name in self._endangered for task in tasks)
        if not (self._device.preemptive and self._policy == "edf" and in_order) or varies:
            return None
        if self._has_segments or self._device.supply is not None:
            return None
        if self._device.slots == 1:
            return "demand" if quick_demand_test(tasks) else None
        for name, test in (
            ("gfb", global_tests.gfb),
            ("bcl", global_tests.bcl),
            ("bak", global_tests.bak),
        ):
            if test(tasks, self._device.slots) == "meets":
                return name
        return None


def _in_any_order(rival: Rival) -> Rival:
    """Return a rival of which it is not asked who goes first: all of its work may be in the way.

    On several slots that can be less than what the order, with what it lets block, can prove.
    """
    return Rival(rival.task, rival.response_ns, is_single=rival.is_single, group=rival.group)


def _due_at_once(task: Task) -> Task:
    """Return the task with a deadline that goes before every other."""
    return replace(task, deadline_ns=-LONGEST_NS, deadline_max_ns=None)
