"""Legal runs looked at for a miss: what no analysis could decide, a run that happens decides.

Every source speaks at its declared rate, every job takes its wcet; sources have no known phase to
each other, so several are tried: all in step, and each a nanosecond after the one before, in both
orders, so that what comes last may find what comes first already started. Each run lasts two
hyperperiods, or as many jobs as are worth the wait. A run without a miss shows nothing; the longest
response found does: where it reaches a bound, the bound is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm
from typing import TYPE_CHECKING

from avrt.drivers.simulate import periodic_arrivals, simulate
from avrt.model.graph import release_periods
from avrt.model.records import ChainBroken, JobRecord, MissRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.model.records import AnyRecord
    from avrt.model.spec import PipelineSpec

JOBS_MAX = 4_000  # of one run
NO_MATTER = {"input_missing", "stale"}  # skipped for want of input, which is no matter of timing


@dataclass(slots=True)
class Witness:
    """What legal runs showed.

    Attributes:
        longest: the first job with the longest response by stage, of those that gave a result.
        ended: the first job that was not met, by stage.
        misses: why it was late, where its due time passed.
        broken: the first promise broken, by chain.
    """

    longest: dict[str, JobRecord] = field(default_factory=dict)
    ended: dict[str, JobRecord] = field(default_factory=dict)
    misses: dict[str, MissRecord] = field(default_factory=dict)
    broken: dict[str, ChainBroken] = field(default_factory=dict)

    @property
    def worst_ns(self) -> dict[str, int]:
        """The longest response by stage."""
        return {name: job.response_ns for name, job in self.longest.items()}


def look_for_misses(spec: PipelineSpec) -> Witness:
    """Return what some legal runs of a checked pipeline show."""
    wcet_ns = {task: stage.wcet_ns for stage in spec.stages for task in stage.task_names}
    until_ns, witness = _horizon_ns(spec), Witness()
    order = [source.name for source in spec.sources]
    steps = ([], order, order[::-1]) if len(order) > 1 else ([],)
    for delayed in steps:
        phases = {name: step for step, name in enumerate(delayed)}
        run = simulate(
            spec,
            until_ns=until_ns,
            execution=lambda task, _: wcet_ns[task],
            feed=periodic_arrivals(spec, until_ns, phases),
            digest=False,
        )
        _note(witness, run.records, until_ns)
    return witness


def _horizon_ns(spec: PipelineSpec) -> int:
    """Return two hyperperiods from the last first release on, or the time of JOBS_MAX jobs."""
    known = release_periods(spec)
    periods = [ns for ns in known.values() if ns is not None]
    periods += [source.period_ns for source in spec.sources if source.period_ns is not None]
    if not periods:
        return 1
    first_ns = max(stage.offset_ns for stage in spec.stages)
    rate = sum(len(s.task_names) / ns for s in spec.stages if (ns := known[s.name]) is not None)
    enough_ns = int(JOBS_MAX / rate) if rate else max(periods)
    return first_ns + max(*periods, min(2 * lcm(*periods), enough_ns)) + 1


def _note(witness: Witness, records: Sequence[AnyRecord], until_ns: int) -> None:
    missed = {record.job: record for record in records if isinstance(record, MissRecord)}
    for record in records:
        if isinstance(record, JobRecord):
            _note_job(witness, record, missed.get(record.job))
        elif isinstance(record, ChainBroken) and record.at_ns < until_ns:
            witness.broken.setdefault(record.chain, record)


def _note_job(witness: Witness, job: JobRecord, miss: MissRecord | None) -> None:
    if job.outcome in {"met", "late"}:
        longest = witness.longest.setdefault(job.stage, job)
        if job.response_ns > longest.response_ns:
            witness.longest[job.stage] = job
    if job.outcome != "met" and job.reason not in NO_MATTER and job.stage not in witness.ended:
        witness.ended[job.stage] = job
        if miss is not None:
            witness.misses[job.stage] = miss
