"""What the kernel tells about what happened. Times are pipeline ns.

Derived figures (response, lateness, ...) are properties: they are never stored twice.
"""

from __future__ import annotations

from typing import Literal

from avrt.model.frozen import frozen

Outcome = Literal["met", "late", "aborted", "skipped", "shed"]
OUTCOMES: tuple[Outcome, ...] = ("met", "late", "aborted", "skipped", "shed")
Promise = Literal["reaction", "age"]
IntervalKind = Literal["running", "blocking", "waiting", "planned"]


@frozen
class JobRecord:
    """How one job ended; every released job has exactly one.

    Attributes:
        index: counts the jobs of the task from 0.
        arrival_ns: when the kernel learned of the release (`release_ns` is nominal).
        start_ns: first dispatch, or None if it never ran.
        end_ns: when the outcome's cause was reported: completion, abort, skip or shed.
        reason: why it was aborted, skipped or shed; empty otherwise.
        executed_ns: execution received according to the kernel.
        device_start_ns, device_ns: when the device began and was done by its own clock, or None.
        absent: names of optional inputs it ran without.
    """

    job: int
    activation: int
    task: str
    stage: str
    index: int
    release_ns: int
    arrival_ns: int
    due_ns: int
    start_ns: int | None
    end_ns: int
    outcome: Outcome
    reason: str
    executed_ns: int
    device_start_ns: int | None
    device_ns: int | None
    absent: tuple[str, ...]

    @property
    def response_ns(self) -> int:
        return self.end_ns - self.release_ns

    @property
    def lateness_ns(self) -> int:
        """Completion minus due time: negative when early."""
        return self.end_ns - self.due_ns

    @property
    def tardiness_ns(self) -> int:
        return max(0, self.lateness_ns)

    @property
    def reported_late(self) -> bool:
        """Whether the device was done in time and only the report came late."""
        done_ns = self.device_ns
        return self.outcome == "late" and done_ns is not None and done_ns <= self.due_ns


@frozen
class Interval:
    """Part of the time between release and miss, and who caused it.

    `planned`: its start in the table had not come. `running`: the job itself ran. `blocking`: a job
    ordered later held the slot. `waiting`: a job ordered before, or the task's own predecessor,
    held it; with no holder the kernel had not been told of the release yet. `by` and `job` name the
    holder.
    """

    kind: IntervalKind
    start_ns: int
    end_ns: int
    by: str
    job: int | None

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@frozen
class MissRecord:
    """A due time passed while the job was open; `intervals` sum to `at_ns - release_ns`."""

    job: int
    task: str
    index: int
    at_ns: int
    release_ns: int
    due_ns: int
    intervals: tuple[Interval, ...]


@frozen
class OverrunRecord:
    """A job received more execution than its budget."""

    job: int
    task: str
    at_ns: int
    budget_ns: int


@frozen
class TableRecord:
    """A job started at `at_ns`, later than its planned start in the table."""

    job: int
    task: str
    at_ns: int
    planned_ns: int

    @property
    def late_ns(self) -> int:
        return self.at_ns - self.planned_ns


@frozen
class WindowRecord:
    """More than `misses_max` of `window_jobs` jobs in a row were not met."""

    task: str
    at_ns: int
    misses: tuple[int, ...]
    misses_max: int
    window_jobs: int


@frozen
class ChainRecord:
    """An end-to-end chain produced an output.

    Attributes:
        reaction_ns: from an external change just after the newest capture known before, to this
            first output that knows it; None when the output knows nothing new.
        age_ns: how long the output before this one stayed in force, from the capture it rested on;
            None for the first output.
        path_ns: from the capture this output rests on, along the chain, to its publication.
    """

    chain: str
    at_ns: int
    activation: int
    reaction_ns: int | None
    age_ns: int | None
    path_ns: int


@frozen
class ChainBroken:
    """A chain's promise passed its limit at `at_ns`, seen then and not when the output came."""

    chain: str
    at_ns: int
    promise: Promise
    limit_ns: int
    capture_ns: int


@frozen
class SyncRecord:
    """A synchronised set was released without all its inputs.

    Attributes:
        captures_ns: mapped capture time of each input's message, in the order of the stage's
            inputs; None where there is none. Empty in records from before there was this field.
    """

    stage: str
    at_ns: int
    missing: tuple[str, ...]
    captures_ns: tuple[int | None, ...] = ()


@frozen
class ResourceRecord:
    """A stream or a device was lost or came back."""

    name: str
    at_ns: int
    state: Literal["lost", "back"]


SUPERSEDED = "superseded"
"""The verdict of a vote that a newer one has made pointless."""


@frozen
class VoteRecord:
    """The decision over the jobs of one activation, or who was found wrong when it was over.

    Attributes:
        held: the last accepted output is published once more.
        blamed: tasks whose output was wrong, late or missing.
        accepted: the replicas' outputs gave a new one.
    """

    activation: int
    stage: str
    at_ns: int
    verdict: str
    held: bool = False
    blamed: tuple[str, ...] = ()
    accepted: bool = False


@frozen
class ModeRecord:
    """A mode was entered, or a request for one was refused."""

    mode: str
    at_ns: int
    cause: str
    entered: bool


@frozen
class FaultRecord:
    """A job's work ended with a fault."""

    job: int
    task: str
    at_ns: int
    fault: str


AnyRecord = (
    JobRecord
    | MissRecord
    | OverrunRecord
    | TableRecord
    | WindowRecord
    | ChainRecord
    | ChainBroken
    | SyncRecord
    | ResourceRecord
    | VoteRecord
    | ModeRecord
    | FaultRecord
)
