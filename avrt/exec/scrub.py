"""Weights of a stage are checked block by block behind its jobs, and mended.

After the warm-up the CRC32 of each block is taken and a copy of it is kept in host memory. Behind
each job, once its end has been told, so that no output waits for it, the next blocks are read
again: of all variants of the stage in turn, for one that waits for its level must be sound when it
comes. A block that is not as it was ends the turn: all blocks are checked at once, those that have
changed are written anew from their copies, and the next job tells of it in place of an output:
what the stage gave since the last look was made with wrong numbers, and one output that does not
come is told everywhere (to voters, chains, the ladder) as any other fault is.

A variant is given up, and all of its jobs tell so, where its memory is not to be trusted: when it
changed CHANGES_MAX times within ten minutes of jobs; when a copy is wrong itself, by its CRC32; or
when a block is wrong right after it was written. Whatever counts on its outputs decides what
follows. On another device it has other memory and is trusted again.

Who changed the memory is not known: a particle, a cell that fails, any code of this process. So it
is no fault of the device, which is not given up for it.
"""

from __future__ import annotations

import logging
import zlib
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import WEIGHTS, FaultError, SoftwareFault
from avrt.exec.runner import guarded
from avrt.exec.weights import blocks_of, fingerprint
from avrt.model.graph import release_periods
from avrt.model.levels import at_level, levels_of
from avrt.model.scrub import scrub_jobs
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.exec.weights import Block, Bytes
    from avrt.model.spec import PipelineSpec, StageSpec

CHANGES_MAX = 3
WITHIN_NS = 600 * NS_PER_S

log = logging.getLogger("avrt.exec")


@dataclass(frozen=True, slots=True)
class ScrubPlan:
    """How the weights of a stage are checked.

    Attributes:
        jobs: within how many jobs all are, once.
        window_jobs: within how many jobs CHANGES_MAX changes are too many.
    """

    jobs: int
    window_jobs: int


def scrub_plan(spec: PipelineSpec, stage: StageSpec) -> ScrubPlan | None:
    """Return how the weights of a stage are checked; None where they are not.

    So that they are checked in time at every level of the ladder.
    """
    if stage.scrub_ns is None:
        return None
    levels = [at_level(spec, level) for level in levels_of(spec)]
    found = [release_periods(one).get(stage.name) for one in (spec, *levels)]
    periods = [period_ns for period_ns in found if period_ns is not None]
    jobs = scrub_jobs(stage, max(periods, default=None))
    return ScrubPlan(jobs, max(1, WITHIN_NS // periods[0]))


class Scrub:
    """The weights of a stage and of its variants.

    Args:
        name: of the stage's stream.
        plan: how they are checked; None looks at them once, after the warm-up.

    Attributes:
        crc32s: over the weights of each variant that gives any, after its warm-up.
        job_bytes: what is read behind each job, and one block more at most.
    """

    def __init__(self, name: str, plan: ScrubPlan | None) -> None:
        self.name = name
        self.crc32s: dict[str, int] = {}
        self.job_bytes = 0
        self._size_bytes: dict[str, int] = {}
        self._plan = plan
        self._ring: list[_Held] = []
        self._next = 0
        self._jobs = 0
        self._changed: dict[str, deque[int]] = {}
        self._given_up: dict[str, FaultError] = {}
        self._found: FaultError | None = None

    def hold(self, variant: str, arrays: Sequence[object]) -> None:
        """Take the weights of a variant as they have to be.

        Raises:
            SoftwareFault: one is no array that can be mended.
        """
        blocks = blocks_of(arrays)
        others = [held for held in self._ring if held.variant != variant]
        if blocks:
            self.crc32s.setdefault(variant, fingerprint(blocks))
            self._size_bytes[variant] = sum(block.size_bytes for block in blocks)
        if self._plan is not None:
            fixed = next((block.title for block in blocks if block.is_read_only), "")
            if fixed:
                what = f"expected arrays that can be mended in place, found {fixed}, read-only"
                raise SoftwareFault(WEIGHTS, what)
            self._ring = others + [_Held(variant, block, *_copied(block)) for block in blocks]
            self.job_bytes = -(-sum(self._size_bytes.values()) // self._plan.jobs)

    def moved(self, variant: str, arrays: Sequence[object]) -> None:
        """Take the weights of a variant where they are now, and check them all.

        Those of other types or shapes are taken as they are: in another precision, say.

        Raises:
            SoftwareFault: one is no array that can be mended.
        """
        if self._plan is None:
            return
        known, blocks = [held for held in self._ring if held.variant == variant], blocks_of(arrays)
        self._given_up.pop(variant, None)
        self._changed.pop(variant, None)
        if [held.block.what for held in known] != [block.what for block in blocks]:
            self.hold(variant, arrays)
            return
        for held, block in zip(known, blocks, strict=True):
            held.block = block
        if not all(held.is_sound() for held in known):
            self._mend(variant)

    def check(self, variant: str) -> None:
        """Check the next blocks, behind a job of a variant; mend all if one has changed."""
        self._jobs += 1
        left = self.job_bytes
        while left > 0:
            held = self._ring[self._next % len(self._ring)]
            self._next += 1
            left -= held.block.size_bytes
            if self._has_changed(held, variant):
                self._mend(variant)
                return

    def fault(self, variant: str) -> FaultError | None:
        """Return what a job of a variant has to tell in place of its output, if anything."""
        found, self._found = self._found or self._given_up.get(variant), None
        return found

    @property
    def told(self) -> str:
        """What is checked, in words; "" where there are no weights."""
        if not self.crc32s:
            return ""
        crc32s = [f"{crc32:08x} {variant}".strip() for variant, crc32 in self.crc32s.items()]
        text = f"{sum(self._size_bytes.values())} bytes, CRC32 {', '.join(crc32s)}"
        if self._plan is None:
            return text
        return f"{text}, {self.job_bytes} bytes checked behind a job, all within {self._plan.jobs}"

    def _has_changed(self, held: _Held, variant: str) -> bool:
        """Tell whether a block has changed; one that is given up, or cannot be read, has not.

        The next job tells what reading raised, unless the block is of another variant than the one
        that ran: its device may be lost.
        """
        if held.variant in self._given_up:
            return False
        is_sound = guarded(held.is_sound)
        if isinstance(is_sound, FaultError):
            if held.variant == variant:
                self._found = is_sound
            return False
        return not is_sound

    def _mend(self, variant: str) -> None:
        """Check all blocks, and mend those that have changed; none if one was only read wrong."""
        wrong = [held for held in self._ring if self._has_changed(held, variant)]
        told = [
            self._mended(one, [held for held in wrong if held.variant == one])
            for one in dict.fromkeys(held.variant for held in wrong)
        ]
        if told:
            self._found = SoftwareFault(WEIGHTS, "; ".join(told))
            log.error("stage %s: %s", self.name, self._found)

    def _mended(self, variant: str, wrong: Sequence[_Held]) -> str:
        """Mend blocks of a variant, or give it up if that does not help; return what was done."""
        assert self._plan is not None
        titles = [held.mended() for held in wrong]
        what = f"{titles[0]} had changed"
        if len(wrong) > 1:
            what = f"{len(wrong)} blocks had changed, the first by {titles[0]}"
        changes = self._changed.setdefault(variant, deque(maxlen=CHANGES_MAX))
        changes.append(self._jobs)
        lasting = next((held.trouble for held in wrong if held.trouble), "")
        is_often = len(changes) == CHANGES_MAX
        if not lasting and is_often and self._jobs - changes[0] < self._plan.window_jobs:
            lasting = f"it was the third time within {WITHIN_NS // NS_PER_S} s"
        if not lasting:
            return f"{what}; mended from its copy"
        self._given_up[variant] = SoftwareFault(WEIGHTS, f"{what}; given up: {lasting}")
        return self._given_up[variant].detail


@dataclass(slots=True)
class _Held:
    """A block, and what it has to hold.

    Attributes:
        variant: whose it is.
        trouble: why it cannot be mended, "" where it can.
    """

    variant: str
    block: Block
    crc32: int
    copy: Bytes
    trouble: str = ""

    def is_sound(self) -> bool:
        return self.block.crc32() == self.crc32

    def mended(self) -> str:
        """Write the block anew; return what had changed, in words."""
        bits = int(np.unpackbits(self.block.read() ^ self.copy).sum())
        self.trouble = ""
        if zlib.crc32(self.copy.data) != self.crc32:
            self.trouble = "its copy has changed too"
        else:
            self.block.write(self.copy)
            if not self.is_sound():
                self.trouble = "its memory does not keep what is written"
        of = f" of variant {self.variant}" if self.variant else ""
        return f"{bits} bit{'' if bits == 1 else 's'} of {self.block.title}{of}"


def _copied(block: Block) -> tuple[int, Bytes]:
    """Return the CRC32 of a block and a copy of its bytes, the CRC32 that of the copy."""
    copy = block.read().copy()
    return zlib.crc32(copy.data), copy
