"""Does anything end later when work takes less? A run repeated with shorter execution times.

Costs are cut by shares, one stage at a time and all together, and all by one and the same time:
where everything begins at once a common share only changes the scale, and Graham's own example is
of the last kind. What is cut is what jobs took in the run, so nothing computes. Not a proof: cuts
that were not tried may do more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from avrt.drivers.whatif import repeat
from avrt.metrics.anomalies import Later, Observed, SlotHistory, later_jobs
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from avrt.drivers.recording import RecordedRun
    from avrt.drivers.whatif import ChangeCost
    from avrt.model.spec import PipelineSpec

SHARES = (Fraction(9, 10), Fraction(3, 4), Fraction(1, 2))
PARTS_OF_SHORTEST = (Fraction(1, 4), Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class Cut:
    """What takes less, and what comes of it.

    Attributes:
        what: in words.
        later: the jobs that are worse off, the worst first.
    """

    what: str
    later: list[Later]


def find_anomalies(
    recorded: RecordedRun, spec: PipelineSpec, change_cost: ChangeCost | None = None
) -> list[Cut]:
    """Repeat a run with every cut; return all of them, those without an anomaly too.

    Args:
        recorded: the run.
        spec: the pipeline that it is repeated with.
        change_cost: what a job takes before any cut, from its stage and what it took.
    """

    def unchanged(_stage: str, cost_ns: int) -> int:
        return cost_ns

    base = change_cost or unchanged
    before = _observe(recorded, spec, base)
    shortest_ns = min(
        (base(work.task, work.cost_ns) for work in recorded.works.values()), default=1
    )
    return [
        Cut(what, later_jobs(before, _observe(recorded, spec, _after(base, change))))
        for what, change in _cuts(spec, shortest_ns)
    ]


def _cuts(spec: PipelineSpec, shortest_ns: int) -> Iterator[tuple[str, ChangeCost]]:
    for share in SHARES:
        for stage in spec.stages:
            yield f"{stage.name} takes {float(share):.0%}", _share_of(stage.name, share)
    for share in SHARES:
        yield f"all take {float(share):.0%}", _share_of(None, share)
    for less_ns in dict.fromkeys(int(shortest_ns * part) for part in PARTS_OF_SHORTEST):
        if less_ns:
            yield f"all take {format_ns(less_ns)} less", _less(less_ns)


def _share_of(name: str | None, share: Fraction) -> ChangeCost:
    def change(stage: str, cost_ns: int) -> int:
        return max(1, int(cost_ns * share)) if name in {None, stage} else cost_ns

    return change


def _less(less_ns: int) -> ChangeCost:
    return lambda _stage, cost_ns: max(1, cost_ns - less_ns)


def _after(first: ChangeCost, then: ChangeCost) -> Callable[[str, int], int]:
    return lambda stage, cost_ns: then(stage, first(stage, cost_ns))


def _observe(recorded: RecordedRun, spec: PipelineSpec, change_cost: ChangeCost) -> Observed:
    slots = SlotHistory(spec)
    repeated = repeat(recorded, spec, change_cost=change_cost, watch=slots.note)
    return Observed(repeated.log, slots)
