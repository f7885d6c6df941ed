"""A task on its device, and what is known of two of them: can their jobs ever be pending together?

Stages that one source or timer releases, directly or along triggers, form a transaction (Tindell
1994). As long as each is done with one message before the next one comes, jobs of two of them that
are pending together come from the same message; and where one rests on the other's output, or is
always done before the other can begin, they never are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.analysis.arrivals import Arrival
    from avrt.analysis.parts import Part
    from avrt.analysis.tasks import Task
    from avrt.model.spec import StageSpec


@dataclass(slots=True, eq=False)
class Member:
    """One task on its device: of a redundant stage each copy is one, and so is each segment.

    Attributes:
        part: what it is of its task.
        release: of its stage, where `arrival` is its own.
        response_ns: the bound on its response so far; None when there is none.
        test: what gave it, a key of `SOURCES`.
        run_ns: when the run of stages that it ends is done at the latest, likewise.
        above: the stages that must end before it is released.
        before: the stage of the same device at whose end it is released, at that very instant.
        after_vote: it is released by a decision over replicas, which comes after the slots of
            that instant have been given away.
    """

    stage: StageSpec
    part: Part
    release: Arrival
    arrival: Arrival
    task: Task
    response_ns: int | None
    test: str
    run_ns: int | None
    above: frozenset[str]
    before: str | None
    after_vote: bool

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def is_segment(self) -> bool:
        """Whether it is but a part of its jobs."""
        return bool(self.stage.segments)

    @property
    def ends_job(self) -> bool:
        """Whether its jobs are done when it is, and not before."""
        return self.part.is_last

    @property
    def done_ns(self) -> int | None:
        """When it is done at the latest, from its root's nominal arrival."""
        if self.response_ns is None:
            return self.run_ns
        done_ns = self.arrival.latest_ns + self.response_ns
        return done_ns if self.run_ns is None else min(done_ns, self.run_ns)

    @property
    def due_ns(self) -> tuple[int, int]:
        """The earliest and the latest time at which it is due, from its root's nominal arrival."""
        due_ns = self.stage.deadline_ns
        if self.stage.deadline_from == "capture":
            return due_ns, due_ns + self.release.captured_ns
        return self.release.earliest_ns + due_ns, self.release.latest_ns + due_ns

    @property
    def is_settled(self) -> bool:
        """Whether it is always done with one message before the next comes."""
        done_ns = self.done_ns
        return done_ns is not None and done_ns <= self.arrival.next_ns


def are_instances(member: Member, other: Member) -> bool:
    """Whether jobs of both that are pending together always come from the same message."""
    same = member.arrival.root == other.arrival.root != ""
    return same and member.is_settled and other.is_settled


def never_meet(member: Member, other: Member) -> bool:
    """Whether no job of one is ever pending together with a job of the other.

    Nor are the parts of one task: its jobs are done before the next comes, see `parts`.
    """
    if member.part.task == other.part.task:
        return True
    if not are_instances(member, other):
        return False
    if member.stage.name in other.above or other.stage.name in member.above:
        return True
    done_ns, other_done_ns = member.done_ns, other.done_ns
    assert done_ns is not None
    assert other_done_ns is not None
    return other_done_ns <= member.arrival.earliest_ns or done_ns <= other.arrival.earliest_ns


def groups_of(members: Sequence[Member]) -> dict[str, int]:
    """Return a group for each task so that those of one are never pending together."""
    groups: list[list[Member]] = []
    number: dict[str, int] = {}
    for member in members:
        fitting = (
            place
            for place, group in enumerate(groups)
            if all(never_meet(member, other) for other in group)
        )
        place = next(fitting, len(groups))
        if place == len(groups):
            groups.append([])
        groups[place].append(member)
        number[member.name] = place
    return number


def stages_above(order: Sequence[StageSpec]) -> dict[str, frozenset[str]]:
    """Return the stages that must end before each is released, by trigger.

    Copies of a redundant stage may go on when two of them have decided.
    """
    above: dict[str, frozenset[str]] = {}
    by_name = {stage.name: stage for stage in order}
    for stage in order:
        trigger = stage.trigger_input
        before = None if trigger is None else by_name.get(trigger.source)
        if before is None or before.name not in above:
            above[stage.name] = frozenset()
        elif before.redundancy is None:
            above[stage.name] = above[before.name] | {before.name}
        else:
            above[stage.name] = above[before.name]
    return above


def stage_before(stage: StageSpec, stages: Mapping[str, StageSpec]) -> str | None:
    """Return the stage of the same device at whose end this one is released, if there is one."""
    trigger = stage.trigger_input
    before = None if trigger is None else stages.get(trigger.source)
    if before is None or stage.jitter_ns or stage.every > 1:
        return None
    if {before.device} != set(stage.homes):
        return None
    if stage.segments or before.segments:
        return None
    at_once = before.publish == "asap" and before.redundancy is None
    return before.name if at_once else None
