"""Within how many jobs the weights of a stage are checked once, so that a change is told in time.

Weights are checked behind jobs, and what is found is told by the next job, in place of its output.
Say all of them are checked once within n jobs. A change that comes right after its block was looked
at is seen n jobs later, and told by the job after that: with the period P of the stage and its
deadline D, at most (n + 1) P + D after it came. So n is the largest number for which that is at
most the declared S: floor((S - D) / P) - 1. What a job is late, or does not run, comes on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import SpecError
from avrt.units import format_ns

if TYPE_CHECKING:
    from avrt.model.spec import StageSpec


def scrub_jobs(stage: StageSpec, period_ns: int | None) -> int:
    """Return within how many jobs all weights are checked; 0 where they are not.

    Args:
        stage: as declared.
        period_ns: at which it is released; None if nobody knows.

    Raises:
        SpecError: nobody knows, or the time is too short for one job to find and another to tell.
    """
    if stage.scrub_ns is None:
        return 0
    key = ("stages", stage.name, "scrub")
    if period_ns is None:
        what = "nobody knows how often the stage runs; give its source a 'rate'"
        raise SpecError(what, key)
    jobs = (stage.scrub_ns - stage.deadline_ns) // period_ns - 1
    if jobs < 1:
        least, found = format_ns(2 * period_ns + stage.deadline_ns), format_ns(stage.scrub_ns)
        what = f"expected {least} or more, since one job finds and the next one tells, found"
        raise SpecError(f"{what} {found}", key)
    return jobs
