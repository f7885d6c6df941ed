"""What to do next: the only outputs of the kernel, in the order they are to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from avrt.model.frozen import frozen
from avrt.model.spec import majority_of

if TYPE_CHECKING:
    from avrt.model.records import AnyRecord

VoteAt: TypeAlias = Literal["early", "deadline", "over"]


@frozen
class Dispatch:
    """Start a job on its stream now.

    Attributes:
        index: counts the task's jobs from 0, whatever became of them.
        device: where it runs: the task's own device, or the fallback of a lost one.
        inputs: buffer handles in the order of the stage's inputs; None for an absent optional one.
    """

    job: int
    task: str
    index: int
    stream: str
    device: str
    segment: int
    variant: str
    inputs: tuple[int | None, ...]
    release_ns: int
    due_ns: int


@frozen
class Preempt:
    """Take a running job off its slot; it will be resumed."""

    job: int


@frozen
class Resume:
    """Put a preempted job back on a slot."""

    job: int


@frozen
class Abort:
    """The job's result is not wanted any more.

    On a preemptive device the work stops at once; elsewhere it runs to its end and its `Completed`
    still comes.
    """

    job: int


@frozen
class Vote:
    """Compare the outputs of these jobs and answer with `Voted`.

    Attributes:
        index: counts the stage's activations from 0.
        copies: how many replicas this activation may have.
        when: "early", others may still come, and it may stay undecided; "deadline", it is the last
            time to decide in; "over", no other output will come.
    """

    activation: int
    stage: str
    index: int
    copies: int
    jobs: tuple[int, ...]
    when: VoteAt

    @property
    def quorum(self) -> int:
        """How many outputs must agree."""
        return majority_of(self.copies)


@frozen
class Publish:
    """Consumers read `buffer` from now on as the output of this activation."""

    activation: int
    buffer: int
    publish_ns: int


@frozen
class Discard:
    """Throw away the output of a job whose result came too late to be wanted."""

    job: int


@frozen
class Reclaim:
    """No job and no reader will read this buffer again: it may be reused."""

    buffer: int


@frozen
class EnterMode:
    """Task parameters are read through this mode from now on."""

    mode: str


@frozen
class Record:
    """Something happened that a person will want to read about."""

    record: AnyRecord


Command = (
    Dispatch | Preempt | Resume | Abort | Vote | Publish | Discard | Reclaim | EnterMode | Record
)
