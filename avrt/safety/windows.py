"""How many of the last activations of some stage were bad: what overload and faults are told by.

The copies of a redundant stage count as one activation, which is good when enough of them to agree
are, and bad once too few of them can be: a copy that is slow or fails is the voter's business, and
must not stop the vehicle. Copies are known as such by their release.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.spec import PipelineSpec, RedundancySpec

BAD_MOST = 3
WINDOW_ACTIVATIONS = 10
OPEN_MAX = 64


class Windows:
    """The last activations of the stages of one level, good or bad.

    Args:
        spec: the pipeline as it runs at that level.
    """

    def __init__(self, spec: PipelineSpec) -> None:
        self._copies = {s.name: _Copies(s.redundancy) for s in spec.stages if s.redundancy}
        self._last: dict[str, deque[bool]] = {}

    def count(self, stage: str, release_ns: int, *, is_bad: bool) -> None:
        """Take in one job, the only one of its release or one copy of several."""
        copies = self._copies.get(stage)
        if copies is None or copies.settles(release_ns, is_bad=is_bad):
            self.ended(stage, is_bad=is_bad)

    def ended(self, stage: str, *, is_bad: bool) -> None:
        """Take in a whole activation."""
        self._last.setdefault(stage, deque(maxlen=WINDOW_ACTIVATIONS)).append(is_bad)

    @property
    def are_many(self) -> bool:
        """Whether BAD_MOST or more of the last activations of some stage were bad."""
        return any(sum(window) >= BAD_MOST for window in self._last.values())


class _Copies:
    """What is known of the copies of each of the last releases of a redundant stage."""

    def __init__(self, redundancy: RedundancySpec) -> None:
        self._enough = redundancy.quorum
        self._too_many = redundancy.copies - redundancy.quorum + 1
        self._counts: dict[int, list[int]] = {}

    def settles(self, release_ns: int, *, is_bad: bool) -> bool:
        """Take in a copy; return whether it is the one that makes its activation good or bad."""
        counts = self._counts.setdefault(release_ns, [0, 0])
        counts[is_bad] += 1
        if len(self._counts) > OPEN_MAX:
            del self._counts[next(iter(self._counts))]
        return counts[is_bad] == (self._too_many if is_bad else self._enough)
