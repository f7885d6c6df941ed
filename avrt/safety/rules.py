"""From a stage's `redundancy` to the rules of its votes, and which replicas share a fault.

A failure domain is what one fault may hit at once: replicas with the same device, code and
parameters are one. A majority within one domain proves little: four estimators on two sensors once
followed the same bad one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.payload import Plan, Tracks
from avrt.safety.agreement import EXACT, SHARE, Tolerance
from avrt.safety.objects import Objects
from avrt.safety.trajectory import Trajectory
from avrt.safety.vote import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.model.spec import StageSpec
    from avrt.safety.agreement import Agreement, Problem


def rules_of(
    stage: StageSpec, accept: Callable[[object, object | None], bool] | None = None
) -> Rules:
    """Return the rules of a redundant stage; `accept` is its acceptance test, if it has one."""
    redundancy = stage.redundancy
    assert redundancy is not None
    share = SHARE if redundancy.tolerance is None else redundancy.tolerance
    agreement: Agreement
    match redundancy.vote:
        case "exact":
            agreement = EXACT
        case "tolerance":
            agreement = Tolerance(share)
        case _:
            agreement = ByKind(Tolerance(share))
    return Rules(
        agreement=agreement,
        domains=domains_of(stage),
        quorum=redundancy.copies // 2 + 1,
        accept=accept,
        allow_single=redundancy.single,
    )


def domains_of(stage: StageSpec) -> tuple[str, ...]:
    """Return the failure domain of each replica: those with the same code share one."""
    redundancy = stage.redundancy
    assert redundancy is not None
    return redundancy.runs or (stage.run,) * redundancy.copies


class ByKind:
    """Object lists and plans by what they mean, everything else number by number."""

    def __init__(self, other: Agreement) -> None:
        self._other = other
        self._objects = Objects()
        self._plans = Trajectory()

    def problem(self, payload: object) -> Problem:
        return self._for(payload).problem(payload)

    def distance(self, a: object, b: object) -> float:
        return self._for(a).distance(a, b) if type(a) is type(b) else float("inf")

    def settle(self, payloads: Sequence[object]) -> object | None:
        kinds = {type(payload) for payload in payloads}
        return self._for(payloads[0]).settle(payloads) if len(kinds) == 1 else None

    def _for(self, payload: object) -> Agreement:
        match payload:
            case Tracks():
                return self._objects
            case Plan():
                return self._plans
            case _:
                return self._other
