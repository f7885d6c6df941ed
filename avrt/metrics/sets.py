"""What became of messages that waited for others: the incomplete sets of stages with `sync`.

A set that lacks an optional input is used without it. One that lacks a required input is dropped,
and the messages in it with it: that is how a sensor that is silent, not connected, or never within
the tolerance shows, and it must not show as silence only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.model.commands import Record
from avrt.model.records import SyncRecord
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from avrt.model.commands import Command
    from avrt.model.events import Event
    from avrt.model.spec import PipelineSpec, StageSpec


@dataclass(frozen=True, slots=True)
class DroppedSet:
    """A set that no job will read, because a required input is missing.

    Attributes:
        stage: that it was for.
        at_ns: when it was given up, pipeline ns.
        missing: names of the inputs that it lacks.
        captures_ns: by input, mapped capture time of the message that is dropped, pipeline ns: the
            `stamp.capture_ns` that the stage would have seen.
    """

    stage: str
    at_ns: int
    missing: tuple[str, ...]
    captures_ns: Mapping[str, int]


def dropped_set(stage: StageSpec, record: SyncRecord) -> DroppedSet | None:
    """Return an incomplete set of a stage as a dropped one, or None if it is used."""
    required = {item.name for item in stage.inputs if not item.optional}
    if required.isdisjoint(record.missing):
        return None
    names = [item.name for item in stage.inputs]
    given = zip(names, record.captures_ns, strict=False)  # none in records of before
    captures_ns = {name: at_ns for name, at_ns in given if at_ns is not None}
    return DroppedSet(record.stage, record.at_ns, record.missing, captures_ns)


class SetFigures:
    """The incomplete sets of one stage: how many, how many of them dropped, and what they lack.

    Attributes:
        missing: sets by the input that they lack.
        messages: messages of dropped sets, by input.
    """

    def __init__(self, stage: StageSpec) -> None:
        self._stage = stage
        self.incomplete = 0
        self.dropped = 0
        self.missing: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()

    def add(self, record: SyncRecord) -> None:
        """Take in one more."""
        self.incomplete += 1
        self.missing.update(record.missing)
        dropped = dropped_set(self._stage, record)
        if dropped is not None:
            self.dropped += 1
            self.messages.update(dropped.captures_ns.keys())

    @property
    def told(self) -> str:
        """What they lack, and which messages were dropped for it, in words."""
        assert self._stage.sync is not None
        within = format_ns(self._stage.sync.tolerance_ns)
        lacking = ", ".join(f"no {name} in {count}" for name, count in sorted(self.missing.items()))
        text = f"{self.incomplete} incomplete sets, {lacking} (in time, and within {within})"
        if not self.dropped:
            return text
        lost = ", ".join(f"{count} of {name}" for name, count in sorted(self.messages.items()))
        return f"{text}; {self.dropped} dropped, with messages: {lost}"

    def summary(self) -> dict[str, object]:
        names = [item.name for item in self._stage.inputs]
        return {
            "incomplete": self.incomplete,
            "dropped": self.dropped,
            "missing": {name: self.missing[name] for name in names},
            "dropped_messages": {name: self.messages[name] for name in names},
        }


class DropWatch:
    """Tells somebody of each dropped set; called with every call of the kernel.

    In a live run that is on the recorder's thread, some milliseconds later, and what `tell` raises
    is raised when the run is over. Elsewhere it ends the run.
    """

    def __init__(self, spec: PipelineSpec, tell: Callable[[DroppedSet], object]) -> None:
        self._stages = {stage.name: stage for stage in spec.stages}
        self._tell = tell

    def __call__(self, at_ns: int, events: Sequence[Event], commands: Sequence[Command]) -> None:
        del at_ns, events
        for command in commands:
            if isinstance(command, Record) and isinstance(command.record, SyncRecord):
                dropped = dropped_set(self._stages[command.record.stage], command.record)
                if dropped is not None:
                    self._tell(dropped)
