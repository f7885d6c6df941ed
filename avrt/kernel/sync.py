"""Synchronised sets: messages of several inputs that belong to the same instant.

Sets match on mapped capture time. A message joins the earliest open set whose members all lie
within the tolerance of it and which lacks that input; otherwise it opens a set. A set is released
when its last input arrives, or at its earliest capture plus the timeout (at once if that is past).
The timeout belongs to the set, so a late message never restarts it, and a message is in one set
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.kernel.buffers import Buffer
    from avrt.model.spec import StageSpec, SyncSpec

OPEN_SETS_MAX = 8


@dataclass(slots=True, eq=False)
class SyncSet:
    """One open set: `members` in the order of the stage's inputs."""

    stage_index: int
    members: list[Buffer | None]
    opened: int
    released: bool = False

    @property
    def earliest_ns(self) -> int:
        return min(m.capture_ns for m in self.members if m is not None)

    @property
    def latest_ns(self) -> int:
        return max(m.capture_ns for m in self.members if m is not None)

    @property
    def complete(self) -> bool:
        return None not in self.members


class Synchroniser:
    """The open sets of one stage."""

    def __init__(self, stage_index: int, stage: StageSpec) -> None:
        assert stage.sync is not None
        self.stage_index = stage_index
        self.stage = stage
        self.sync: SyncSpec = stage.sync
        self._open: list[SyncSet] = []
        self._opened = 0

    def offer(self, place: int, buffer: Buffer) -> tuple[SyncSet, bool]:
        """Put a message of input number `place` into a set; return it and whether it is new."""
        for candidate in self._open:
            if candidate.members[place] is None and self._fits(candidate, buffer):
                candidate.members[place] = buffer
                self._sort()
                return candidate, False
        members: list[Buffer | None] = [None] * len(self.stage.inputs)
        members[place] = buffer
        self._opened += 1
        opened = SyncSet(self.stage_index, members, self._opened)
        self._open.append(opened)
        self._sort()
        return opened, True

    def crowded_out(self) -> SyncSet | None:
        """Return the earliest set when more than the bound are open."""
        return self._open[0] if len(self._open) > OPEN_SETS_MAX else None

    def close(self, closed: SyncSet) -> None:
        closed.released = True
        self._open.remove(closed)

    def _sort(self) -> None:
        self._open.sort(key=lambda s: (s.earliest_ns, s.opened))

    def _fits(self, candidate: SyncSet, buffer: Buffer) -> bool:
        low_ns = min(candidate.earliest_ns, buffer.capture_ns)
        high_ns = max(candidate.latest_ns, buffer.capture_ns)
        return high_ns - low_ns <= self.sync.tolerance_ns
