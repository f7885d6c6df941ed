"""What the outputs of a stage must be that is there once, since nobody votes on them.

Object lists and plans must hold numbers everywhere, as in a vote: no planner and no controller can
mean anything by NaN. Where the stage has an acceptance test of its own, it decides about the rest,
given the output accepted before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.errors import SoftwareFault
from avrt.payload import Plan, Tracks
from avrt.safety.objects import Objects
from avrt.safety.rules import Contained, contained_test
from avrt.safety.trajectory import Trajectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from avrt.exec.runner import Result
    from avrt.safety.rules import Test

IMPOSSIBLE, REFUSED = "impossible_output", "refused_output"
KINDS = {Tracks: Contained(Objects()), Plan: Contained(Trajectory())}


class SoleOutputs:
    """The outputs of all stages that are there once.

    Args:
        tests: the acceptance test of each, or None.
    """

    def __init__(self, tests: Mapping[str, Test | None]) -> None:
        self._accept = {
            name: None if accept is None else contained_test(accept)
            for name, accept in tests.items()
        }
        self._previous: dict[str, object] = {}

    def forget(self, stage: str) -> None:
        """Begin anew: what was accepted before says nothing of what comes."""
        self._previous.pop(stage, None)

    def tested(self, stage: str, result: Result) -> Result:
        """Return what came of a job, without an output that is not to be used."""
        fault = result.fault or self.fault(stage, result.payload)
        return result if fault is None else replace(result, payload=None, fault=fault)

    def fault(self, stage: str, output: object) -> SoftwareFault | None:
        """Return why an output is not to be used, or None; the next one is compared with it.

        Of a stage that is voted on there is nothing to say.
        """
        if stage not in self._accept:
            return None
        kind = KINDS.get(type(output))
        if kind is not None and kind.problem(output) in {"schema", "nonfinite"}:
            return SoftwareFault(IMPOSSIBLE, f"its {type(output).__name__} holds what is no number")
        accept = self._accept[stage]
        if accept is not None and not accept(output, self._previous.get(stage)):
            return SoftwareFault(REFUSED, "its own acceptance test refuses the output")
        self._previous[stage] = output
        return None
