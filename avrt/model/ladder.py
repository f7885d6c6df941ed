"""The degradation ladder as declared: its levels, and what each changes of the pipeline.

A level is the pipeline with less of it: stages left out, run more rarely, or run by another of
their variants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

AGE_NS_MAX = 300 * NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSpec:
    """Another way to do what a stage does: a smaller network, a lower precision, no network.

    Attributes:
        run: what it runs; the stage's own with other `params` where it is "".
        device: where it runs; the stage's own device where it is None.
        wcet_ns: its worst execution time; the stage's own where it is None.
        params: of its constructor; of a variant without `run` they go over the stage's own.
    """

    name: str
    run: str = ""
    device: str | None = None
    wcet_ns: int | None = None
    params: Mapping[str, object] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLevel:
    """What one level changes of one stage.

    Attributes:
        variant: which one runs; "" is the stage as declared.
        period_ns: of a timer stage, in place of its own.
        every: of a triggered stage, it takes each n-th message; None takes what the stage says.
        copies: of a redundant stage, how many run, the first ones; a single one is not voted on.
    """

    stage: str
    variant: str = ""
    period_ns: int | None = None
    every: int | None = None
    copies: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSpec:
    """One level; `devices` healthy ones of the ladder's are enough for it."""

    name: str
    devices: int = 0
    without: tuple[str, ...] = ()
    stages: tuple[StageLevel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderSpec:
    """The levels from the best to the minimal-risk plan.

    Attributes:
        devices: those that levels count.
        critical: stages whose misses, votes and outputs decide; those above QM where it is empty.
        age_ns_max: how old the last accepted output of a critical stage may become.
    """

    levels: tuple[LevelSpec, ...]
    devices: tuple[str, ...] = ()
    critical: tuple[str, ...] = ()
    age_ns_max: int = AGE_NS_MAX
