"""At which levels of its ladder a run was, for how long, and how long it took to be back.

* available: the share of the time above the last level, at which the vehicle stops;
* repair: from leaving the first level until it is entered again; the mean of these is the mean time
  to repair (MTTR). One that is not over at the end counts as open, and its time not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.model.levels import levels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from avrt.model.records import ModeRecord
    from avrt.model.spec import PipelineSpec


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """What a run of a pipeline with a ladder did.

    Attributes:
        time_ns: by level, the best first.
        entered: by level, how often.
        repairs_ns: how long each way down and back took.
        is_open: it ended below the first level.
    """

    time_ns: Mapping[str, int]
    entered: Mapping[str, int]
    repairs_ns: tuple[int, ...]
    is_open: bool

    @property
    def total_ns(self) -> int:
        return sum(self.time_ns.values())

    @property
    def available(self) -> float:
        """The share of the time above the last level; 1 of no time."""
        last_ns = list(self.time_ns.values())[-1]
        return 1 - last_ns / self.total_ns if self.total_ns else 1.0

    @property
    def mttr_ns(self) -> int | None:
        """The mean time to repair, None where nothing was repaired."""
        return sum(self.repairs_ns) // len(self.repairs_ns) if self.repairs_ns else None

    def summary(self) -> dict[str, object]:
        return {
            "time_ns": dict(self.time_ns),
            "entered": dict(self.entered),
            "available": self.available,
            "repairs": len(self.repairs_ns),
            "mttr_ns": self.mttr_ns,
            "repair_ns_max": max(self.repairs_ns, default=None),
            "open": self.is_open,
        }


def level_figures(
    spec: PipelineSpec, modes: Iterable[ModeRecord], begin_ns: int, end_ns: int
) -> LevelFigures | None:
    """Return the figures of a run, None where its pipeline has no ladder."""
    names = [level.name for level in levels_of(spec)]
    if not names:
        return None
    time_ns, entered = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    repairs: list[int] = []
    level, since_ns, left_ns = names[0], begin_ns, begin_ns
    for mode in modes:
        if not mode.entered:
            continue
        time_ns[level] += mode.at_ns - since_ns
        entered[mode.mode] += 1
        if level == names[0]:
            left_ns = mode.at_ns
        elif mode.mode == names[0]:
            repairs.append(mode.at_ns - left_ns)
        level, since_ns = mode.mode, mode.at_ns
    time_ns[level] += max(0, end_ns - since_ns)
    return LevelFigures(time_ns, entered, tuple(repairs), level != names[0])
