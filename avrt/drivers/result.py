"""What a run with stages that really compute showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.metrics.distribution import Distribution
from avrt.metrics.resources import ResourceLoad

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.errors import InputError
    from avrt.metrics.run import RunFigures
    from avrt.model.commands import Command


@dataclass(slots=True)
class RunResult:
    """What a run showed.

    Attributes:
        payloads: digest of everything that was published; "" in a live run.
        damage: the log's damage that ended the run early, or None.
        hangs: jobs that hung; with any, the run is not reproducible.
        not_recorded: by stage, outputs that are not in the record, and why the first is not.
        wakeup_late_ns: at the wall clock, how long after each planned instant the driver was there,
            pipeline ns; empty in virtual time.
        taken: by live source, messages that the kernel was told of.
        dropped: by live source, messages that gave way to newer ones before the driver took them.
        source_faults: by live source, what it raised; it delivered nothing after that.
        devices_out: devices that failed to prove themselves too often, and why at last.
        conditions: what a live run was granted by its host, and what it asks for.
        resources: what a live run used of its host.
        record_failure: why a live run could not go on recording; "" when it could.
    """

    figures: RunFigures
    decisions: str = ""
    payloads: str = ""
    end_ns: int = 0
    damage: InputError | None = None
    hangs: int = 0
    interrupted: bool = False
    not_recorded: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    wakeup_late_ns: Distribution = field(default_factory=Distribution)
    taken: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    source_faults: dict[str, str] = field(default_factory=dict)
    devices_out: Mapping[str, str] = field(default_factory=dict)
    record_failure: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    resources: ResourceLoad = field(default_factory=ResourceLoad)

    def listen(self, at_ns: int, commands: Sequence[Command]) -> None:
        """Take in what the kernel decided."""
        self.end_ns = at_ns
        for command in commands:
            self.figures.take(command)
