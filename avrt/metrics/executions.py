"""What one job executed, in all and in its present segment, against what was declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.metrics.broken import Broken
from avrt.model.supply import end_ns, given_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.model.commands import Dispatch
    from avrt.model.spec import StageSpec
    from avrt.model.supply import Supply


class Work:
    """One job that was dispatched: what it has executed in all, and in its present segment."""

    __slots__ = (
        "device",
        "index",
        "is_aborted",
        "part",
        "since_ns",
        "stage",
        "supply",
        "task",
        "whole",
    )

    def __init__(self, task: str, index: int, stage: StageSpec) -> None:
        self.task = task
        self.index = index
        self.stage = stage
        self.whole = Execution("wcet", stage.wcet_ns)
        self.since_ns: int | None = None
        self.is_aborted = False

    def begin(self, command: Dispatch, at_ns: int, supply: Supply | None) -> None:
        self.device, self.since_ns, self.supply = command.device, at_ns, supply
        parts = self.stage.segments
        limit_ns = parts[command.segment].wcet_ns if parts else self.stage.wcet_ns
        self.part = Execution("wcet of the segment", limit_ns)

    def pause(self, at_ns: int) -> None:
        if self.since_ns is not None:
            self.whole.add(self.since_ns, at_ns, self.supply)
            self.part.add(self.since_ns, at_ns, self.supply)
            self.since_ns = None

    def overruns(self, at_ns: int) -> Iterator[Broken]:
        """Yield what has executed for longer than declared, from when it had all that it needs."""
        if self.since_ns is not None:
            self.pause(at_ns)
            self.since_ns = at_ns
        for part in (self.whole, self.part):
            if part.done_ns > part.limit_ns:
                assert part.full_ns is not None
                found = (part.limit_ns, part.done_ns, part.name)
                yield Broken("execution", self.task, self.index, part.full_ns, *found)


@dataclass(slots=True)
class Execution:
    """What was executed, of how much; `full_ns` is when it was all of that."""

    name: str
    limit_ns: int
    done_ns: int = 0
    full_ns: int | None = None

    def add(self, from_ns: int, until_ns: int, supply: Supply | None) -> None:
        missing_ns = self.limit_ns - self.done_ns
        self.done_ns += given_ns(supply, from_ns, until_ns)
        if self.full_ns is None and self.done_ns >= self.limit_ns:
            self.full_ns = end_ns(supply, from_ns, missing_ns)
