"""The supervisor of a run, where its pipeline has a ladder."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from avrt.analysis.bounds import is_too_large
from avrt.analysis.schedulability import analyse
from avrt.model.levels import at_level, levels_of
from avrt.safety.supervisor import Supervisor

if TYPE_CHECKING:
    from avrt.model.spec import PipelineSpec


def supervisor_of(spec: PipelineSpec) -> Supervisor | None:
    """Return a fresh supervisor, None where there is no ladder.

    A level that is known to miss its deadlines is not entered from below; of one that is too large
    to analyse nothing is known.
    """
    return None if spec.ladder is None else Supervisor(spec, _admitted(spec))


@lru_cache(maxsize=8)
def _admitted(spec: PipelineSpec) -> tuple[bool, ...]:
    """Return by level whether it may be entered from below; Monte Carlo asks a thousand times."""
    return tuple(_is_admitted(at_level(spec, level)) for level in levels_of(spec))


def _is_admitted(spec: PipelineSpec) -> bool:
    if is_too_large(spec):
        return True
    return all(stage.verdict != "misses" for stage in analyse(spec).stages)
