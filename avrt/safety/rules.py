"""From a stage's `redundancy` to the rules of its votes, and which replicas share a fault.

A failure domain is what one fault may hit at once: replicas of the same code on the same device are
one. A majority within one domain proves little: four estimators on two
sensors once followed the same bad one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from avrt.errors import FaultError
from avrt.exec.runner import guarded
from avrt.payload import Plan, Tracks
from avrt.payload.digest import digest_of
from avrt.safety.agreement import EXACT, SHARE, Choice, Scalar, Tolerance
from avrt.safety.objects import Objects
from avrt.safety.trajectory import Trajectory
from avrt.safety.vote import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from avrt.model.spec import RedundancySpec, StageSpec
    from avrt.safety.agreement import Agreement, Problem

    Test: TypeAlias = Callable[[object, object | None], bool]

INTERRUPTS = (KeyboardInterrupt,)


def rules_of(stage: StageSpec, accept: Test | None = None) -> Rules:
    """Return the rules of a redundant stage; `accept` is its acceptance test, if it has one."""
    redundancy = stage.redundancy
    assert redundancy is not None
    return Rules(
        agreement=agreement_of(stage),
        domains=domains_of(stage),
        quorum=redundancy.quorum,
        accept=None if accept is None else contained_test(accept),
        allow_single=redundancy.single,
        supersedes=stage.publish == "asap",
    )


def agreement_of(stage: StageSpec) -> Agreement:
    """Return when outputs of a stage agree: as its votes say, else by kind and but for rounding."""
    if stage.redundancy is None:
        return Contained(ByKind(Tolerance(SHARE)))
    return Contained(_agreement(stage.redundancy))


def differs(agreement: Agreement, known: object, found: object) -> bool:
    """Tell whether an output is another than the one that is known to be right."""
    if agreement.problem(found) and not agreement.problem(known):
        return True
    return not agreement.distance(known, found) <= 1 and digest_of(known) != digest_of(found)


def _agreement(redundancy: RedundancySpec) -> Agreement:
    share = SHARE if redundancy.tolerance is None else redundancy.tolerance
    match redundancy.vote:
        case "exact":
            return EXACT
        case "tolerance":
            return Tolerance(share)
        case "number":
            return Scalar(redundancy.within, redundancy.tolerance or 0.0, redundancy.safe)
        case "angle":
            return Scalar(redundancy.within, period=math.tau)
        case "choice":
            return Choice(redundancy.order)
        case _:
            return ByKind(Tolerance(share))


def domains_of(stage: StageSpec) -> tuple[str, ...]:
    """Return the failure domain of each replica: those of one code on one device share one."""
    redundancy = stage.redundancy
    assert redundancy is not None
    runs = redundancy.runs or (stage.run,) * redundancy.copies
    return tuple(f"{run} on {home}" for run, home in zip(runs, stage.homes, strict=True))


def contained_test(accept: Test) -> Test:
    """Return an acceptance test that refuses what it raises at."""

    def accepts(output: object, previous: object | None) -> bool:
        return guarded(lambda: bool(accept(output, previous)), INTERRUPTS) is True

    return accepts


class Contained:
    """An agreement that raises at nothing and warns of nothing: what it cannot compare is no vote.

    A payload of a shape that nobody expected must not end the run; the other replicas are right.
    Numbers too large to be subtracted differ by infinity or by no number at all: neither agrees.
    """

    def __init__(self, agreement: Agreement) -> None:
        self._agreement = agreement

    def problem(self, payload: object) -> Problem:
        with np.errstate(all="ignore"):
            found = guarded(lambda: self._agreement.problem(payload), INTERRUPTS)
        return "schema" if isinstance(found, FaultError) else found

    def distance(self, a: object, b: object) -> float:
        with np.errstate(all="ignore"):
            found = guarded(lambda: self._agreement.distance(a, b), INTERRUPTS)
        return math.inf if isinstance(found, FaultError) else found

    def settle(self, payloads: Sequence[object]) -> object | None:
        with np.errstate(all="ignore"):
            found = guarded(lambda: self._agreement.settle(payloads), INTERRUPTS)
        return None if isinstance(found, FaultError) else found

    def completed(self, selected: object, others: Sequence[object]) -> object | None:
        with np.errstate(all="ignore"):
            found = guarded(lambda: self._agreement.completed(selected, others), INTERRUPTS)
        return None if isinstance(found, FaultError) else found


class ByKind:
    """Object lists and plans by what they mean, everything else number by number."""

    def __init__(self, other: Agreement) -> None:
        self._other = other
        self._objects = Objects()
        self._plans = Trajectory()

    def problem(self, payload: object) -> Problem:
        return self._for(payload).problem(payload)

    def distance(self, a: object, b: object) -> float:
        return self._for(a).distance(a, b) if type(a) is type(b) else math.inf

    def settle(self, payloads: Sequence[object]) -> object | None:
        kinds = {type(payload) for payload in payloads}
        return self._for(payloads[0]).settle(payloads) if len(kinds) == 1 else None

    def completed(self, selected: object, others: Sequence[object]) -> object | None:
        alike = [payload for payload in others if type(payload) is type(selected)]
        return self._for(selected).completed(selected, alike)

    def _for(self, payload: object) -> Agreement:
        match payload:
            case Tracks():
                return self._objects
            case Plan():
                return self._plans
            case _:
                return self._other
