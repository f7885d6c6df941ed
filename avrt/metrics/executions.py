"""What one job executed, in all and in its present segment, against what was declared.

What scheduling costs is executed by the job that it is done for (`avrt.drivers.overheads`) and is
no part of what was declared: so as much more is allowed as a job was charged. Of a resume that is
only what it executed since, if it is preempted before the resume is paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.metrics.broken import Broken
from avrt.model.supply import end_ns, given_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.model.commands import Dispatch
    from avrt.model.scenario import OverheadSpec
    from avrt.model.spec import StageSpec
    from avrt.model.supply import Supply


class Work:
    """One job that was dispatched: what it has executed in all, and in its present segment."""

    __slots__ = (
        "costs",
        "device",
        "index",
        "is_aborted",
        "left_ns",
        "part",
        "since_ns",
        "stage",
        "supply",
        "task",
        "unpaid_ns",
        "whole",
    )

    def __init__(self, task: str, index: int, stage: StageSpec) -> None:
        self.task = task
        self.index = index
        self.stage = stage
        self.whole = Execution("wcet", stage.wcet_ns)
        self.device = ""
        self.since_ns: int | None = None
        self.left_ns: int | None = None
        self.unpaid_ns = 0
        self.is_aborted = False

    def begin(
        self, command: Dispatch, at_ns: int, supply: Supply | None, costs: OverheadSpec
    ) -> None:
        """Note that the job, or a later segment of it, begins."""
        keeps_slot = (self.device, self.left_ns) == (command.device, at_ns)
        self.device, self.since_ns, self.supply, self.costs = command.device, at_ns, supply, costs
        parts = self.stage.segments
        limit_ns = parts[command.segment].wcet_ns if parts else self.stage.wcet_ns
        self.part = Execution("wcet of the segment", limit_ns)
        self._charge(costs.begin_ns(command.segment, keeps_slot=keeps_slot))

    def pause(self, at_ns: int) -> None:
        """Note that it leaves its slot; what is left of a resume is not charged to it."""
        if self.since_ns is not None:
            self._execute(at_ns)
            self._charge(-self.unpaid_ns)
            self.since_ns, self.left_ns, self.unpaid_ns = None, at_ns, 0

    def resume(self, at_ns: int) -> None:
        self.since_ns, self.unpaid_ns = at_ns, self.costs.resume_ns
        self._charge(self.unpaid_ns)

    def overruns(self, at_ns: int) -> Iterator[Broken]:
        """Yield what has executed for longer than declared, from when it had all that it needs."""
        if self.since_ns is not None:
            self._execute(at_ns)
        for part in (self.whole, self.part):
            if part.done_ns > part.limit_ns:
                assert part.full_ns is not None
                found = (part.declared_ns, part.done_ns - part.charged_ns, part.name)
                yield Broken("execution", self.task, self.index, part.full_ns, *found)

    def _execute(self, until_ns: int) -> None:
        assert self.since_ns is not None
        self.whole.add(self.since_ns, until_ns, self.supply)
        self.part.add(self.since_ns, until_ns, self.supply)
        self.unpaid_ns = max(0, self.unpaid_ns - given_ns(self.supply, self.since_ns, until_ns))
        self.since_ns = until_ns

    def _charge(self, ns: int) -> None:
        self.whole.charged_ns += ns
        self.part.charged_ns += ns


@dataclass(slots=True)
class Execution:
    """What was executed, of how much; `full_ns` is when it was all of that."""

    name: str
    declared_ns: int
    charged_ns: int = 0
    done_ns: int = 0
    full_ns: int | None = None

    @property
    def limit_ns(self) -> int:
        return self.declared_ns + self.charged_ns

    def add(self, from_ns: int, until_ns: int, supply: Supply | None) -> None:
        missing_ns = self.limit_ns - self.done_ns
        self.done_ns += given_ns(supply, from_ns, until_ns)
        if self.full_ns is None and self.done_ns >= self.limit_ns:
            self.full_ns = end_ns(supply, from_ns, missing_ns)
