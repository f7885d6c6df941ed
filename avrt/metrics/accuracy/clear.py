"""CLEAR MOT: hits, misses, false tracks, switches, fragments (Bernardin, Stiefelhagen 2008).

As TrackEval counts them: a pair of the frame before is kept where it still matches; a switch is
another track than the last one that the object had, however long ago; a frame without tracks or
without objects leaves the pairs of the frame before as they are. Counts of sequences add up.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from avrt.metrics.accuracy.matching import EPSILON, REACH, THRESHOLD, Frame, best_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Clear:
    """The counts of one sequence, or of several.

    Attributes:
        similar: sum of the similarities of all hits.
        mostly_tracked, partly_tracked, mostly_lost: objects with a track in more than 80 %, at
            least 20 %, or less of their frames.
    """

    hits: int = 0
    missed: int = 0
    false: int = 0
    switches: int = 0
    fragments: int = 0
    similar: float = 0.0
    mostly_tracked: int = 0
    partly_tracked: int = 0
    mostly_lost: int = 0

    @property
    def mota(self) -> float:
        found = self.hits - self.false - self.switches
        return found / max(1, self.hits + self.missed)

    @property
    def motp(self) -> float:
        """Mean similarity of a hit."""
        return self.similar / max(1, self.hits)

    @property
    def motp_metres(self) -> float:
        """Mean distance of a hit on the ground, where REACH holds."""
        return REACH * (1 - self.motp)

    def __add__(self, other: Clear) -> Clear:
        names = [field.name for field in fields(self)]
        return Clear(**{name: getattr(self, name) + getattr(other, name) for name in names})


Pairs = list[tuple[int, int]]


def clear(frames: Sequence[Frame], threshold: float = THRESHOLD) -> tuple[Clear, list[Pairs]]:
    """Return the counts of a sequence, and of each frame the pairs (true, found) that match."""
    course = _Course(threshold)
    pairs = [course.step(frame) for frame in frames]
    return course.counts(), pairs


class _Course:
    """What is remembered from frame to frame."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._last: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._tracked: dict[int, int] = {}
        self._begun: dict[int, int] = {}
        self._sum = Clear()

    def step(self, frame: Frame) -> Pairs:
        true_ids, found_ids = frame.true_ids, frame.found_ids
        for name in true_ids:
            self._seen[name] = self._seen.get(name, 0) + 1
        pairs: Pairs = []
        if true_ids and found_ids:
            pairs = self._match(frame)
            self._note(frame, pairs)
        similar = sum(float(frame.similarity[pair]) for pair in pairs)
        hits = len(pairs)
        self._sum += Clear(hits, len(true_ids) - hits, len(found_ids) - hits, 0, 0, similar)
        return pairs

    def _match(self, frame: Frame) -> Pairs:
        similarity = frame.similarity
        kept = [
            [self._before.get(true) == found for found in frame.found_ids]
            for true in frame.true_ids
        ]
        score = 1000.0 * np.array(kept) + similarity
        score[similarity < self._threshold - EPSILON] = 0.0
        rows, columns = best_pairs(score)
        both = zip(rows.tolist(), columns.tolist(), strict=True)
        return [(t, f) for t, f in both if score[t, f] > EPSILON]

    def _note(self, frame: Frame, pairs: Pairs) -> None:
        now = {frame.true_ids[t]: frame.found_ids[f] for t, f in pairs}
        switches = 0
        for true, found in now.items():
            switches += self._last.get(true, found) != found
            self._tracked[true] = self._tracked.get(true, 0) + 1
            if true not in self._before:
                self._begun[true] = self._begun.get(true, 0) + 1
        self._last |= now
        self._before = now
        self._sum += Clear(switches=switches)

    def counts(self) -> Clear:
        shares = [self._tracked.get(name, 0) / count for name, count in self._seen.items()]
        most = sum(share > 0.8 for share in shares)
        partly = sum(share >= 0.2 for share in shares) - most
        lost = len(shares) - most - partly
        fragments = sum(count - 1 for count in self._begun.values())
        return self._sum + Clear(
            fragments=fragments, mostly_tracked=most, partly_tracked=partly, mostly_lost=lost
        )
