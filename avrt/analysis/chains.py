"""End to end: how late the last output of a chain can know what happened, how old its data can be.

The reaction counts from a change just after a capture to the first output that rests on the next
one; the age from a capture to the end of the last output that rests on it. Over all runs the two
have one maximum (Guenzel et al. 2023, MRT = MDA).

*Bound.* Along triggers a message is handed on at once, and the holistic analysis says how late it
is at the end. A stage that samples reads what is there when it starts, so a message waits for the
first of its releases after it: a period at most, and the release's jitter (Davare et al. 2007;
Duerr et al. 2019 for implicit communication; with publication at the deadline instead of at the
end for logical execution time).

*Exact.* Where every stage of a path is a timer stage that publishes at its deadline and meets it,
all reads and writes are known, and one hyperperiod of job chains shows every case.

A message that is shed, skipped or aborted on its way is not handed on: then nothing is said. Nor
where that may happen to what releases a stage of the path, for then the stage reads more rarely; or
where a job may be skipped for a required input that is too old, or that need not ever come.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from math import lcm
from typing import TYPE_CHECKING

from avrt.analysis.figure import Figure, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.arrivals import Arrival
    from avrt.analysis.figure import Verdict
    from avrt.analysis.holistic import Solution
    from avrt.model.spec import ChainSpec, InputSpec, PipelineSpec, StageSpec

JOBS_MAX = 20_000  # of one stage in the job chains that are followed
BOUND = "sum along the path (Davare et al. 2007; Duerr et al. 2019)"
EXACT = "job chains of a hyperperiod (Guenzel et al. 2023)"


@dataclass(frozen=True, slots=True)
class Latencies:
    """The worst of a set of job chains, ns; reduced: without the wait outside of the chain."""

    reaction_ns: int
    age_ns: int
    reduced_reaction_ns: int
    reduced_age_ns: int


def latency(spec: PipelineSpec, chain: ChainSpec, solution: Solution, safe: set[str]) -> Figure:
    """Return the worst reaction of a chain, which is its worst age too.

    `safe` are the stages that are known to end every job, or to end it in time.
    """
    walk = _Walk(spec, solution, safe)
    for before, name in pairwise(("", *chain.path)):
        why = walk.obstacle(name, before)
        if why:
            return unknown(why)
    stages = {stage.name: stage for stage in spec.stages}
    path = [stages[name] for name in chain.path if name in stages]
    exact = _exact(path, solution) if len(path) == len(chain.path) else None
    return walk.along(chain) if exact is None else exact


class _Walk:
    """Follows a message along a path, at the latest possible time."""

    def __init__(self, spec: PipelineSpec, solution: Solution, safe: set[str]) -> None:
        self._periods = {source.name: source.period_ns for source in spec.sources}
        self._stages = {stage.name: stage for stage in spec.stages}
        self._solution = solution
        self._safe = safe
        self._regular: set[str] = set()

    def obstacle(self, name: str, before: str = "") -> str:
        """Return why a source or stage may publish more rarely than it is released, "" if not.

        What its path hands on to it, `before`, is not looked at.
        """
        if name in self._periods:
            return f"{name} has no rate" if self._periods[name] is None else ""
        if not before and name in self._regular:
            return ""
        stage = self._stages[name]
        if name not in self._safe:
            return f"{name} may not end every job"
        if stage.every > 1:
            return f"{name} leaves out messages"
        if stage.sync is not None and not before:
            return f"{name} skips incomplete sets"
        needed = [i for i in stage.inputs if not i.optional and i.source != before]
        why = next(filter(None, (self._input_obstacle(stage, item) for item in needed)), "")
        if not before and not why:
            self._regular.add(name)
        return why

    def _input_obstacle(self, stage: StageSpec, item: InputSpec) -> str:
        """Return why a job may be skipped for a required input, or released too rarely by it."""
        why = self.obstacle(item.source)
        if (
            not why
            and item.max_age_ns is not None
            and self._oldest_ns(stage, item) > item.max_age_ns
        ):
            why = f"{stage.name} may find {item.source} too old"
        return why

    def _oldest_ns(self, stage: StageSpec, item: InputSpec) -> int:
        """Return how old an input can be that comes regularly, when the stage reads it."""
        output, read = self._solution.published[stage.name], self._solution.published[item.source]
        assert output is not None  # it is safe
        assert read is not None  # it is regular
        return output.latest_ns if item.name == stage.trigger else read.period_ns + read.latest_ns

    def along(self, chain: ChainSpec) -> Figure:
        head = self._solution.published[chain.path[0]]
        assert head is not None  # else there is an obstacle
        root_ns, at_ns = 0, head.latest_ns  # since the head's capture: the root's arrival, and now
        for before, name in pairwise(chain.path):
            stage = self._stages[name]
            (release, output) = self._times(stage)
            if stage.sync is not None:
                if before != chain.path[0] or any(
                    not item.optional for item in stage.inputs if item.source != before
                ):
                    return unknown(f"{name} skips incomplete sets")
                root_ns = head.captured_ns  # the set's earliest capture, at the latest
            elif stage.trigger_input is None or stage.trigger_input.source != before:
                root_ns = at_ns + release.period_ns - release.earliest_ns
            if not _is_fresh(stage, before, root_ns + output.latest_ns):
                return unknown(f"{name} may find {before} too old")
            at_ns = root_ns + output.latest_ns
        return Figure(head.period_ns + at_ns, "bound", BOUND)

    def _times(self, stage: StageSpec) -> tuple[Arrival, Arrival]:
        output = self._solution.published[stage.name]
        assert output is not None  # it is safe
        return self._solution.members[stage.name][0].arrival, output


def _is_fresh(stage: StageSpec, before: str, age_ns: int) -> bool:
    ages = [item.max_age_ns for item in stage.inputs if item.source == before]
    return all(limit_ns is None or age_ns <= limit_ns for limit_ns in ages)


def _exact(path: Sequence[StageSpec], solution: Solution) -> Figure | None:
    """Return the reaction of a path of logical execution times, None where it is no such path."""
    periods: list[int] = []
    for stage in path:
        fixed = stage.publish == "at_deadline" and not stage.jitter_ns
        response_ns = solution.response_ns(stage.name)
        meets_deadline = response_ns is not None and response_ns <= stage.deadline_ns
        limited = any(item.max_age_ns is not None for item in stage.inputs)
        if stage.period_ns is None or not fixed or not meets_deadline or limited:
            return None
        periods.append(stage.period_ns)
    cycle_ns = lcm(*periods)
    settled_ns = sum(2 * (stage.deadline_ns + (stage.period_ns or 0)) for stage in path)
    settled_ns += max(stage.offset_ns for stage in path)
    end_ns = cycle_ns + 2 * settled_ns
    if end_ns // min(periods) > JOBS_MAX:
        return None
    reads = [range(s.offset_ns, end_ns, period) for s, period in zip(path, periods, strict=True)]
    writes = [[at + s.deadline_ns for at in times] for s, times in zip(path, reads, strict=True)]
    worst = job_chains(reads, writes, (settled_ns, settled_ns + cycle_ns))
    return Figure(worst.reaction_ns, "exact", EXACT)


def job_chains(
    reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]], span: tuple[int, int]
) -> Latencies:
    """Return the worst latencies of what is read by the head, or written by the tail, in a span.

    `reads[stage][job]` and `writes[stage][job]` are in order along the path; what is written at
    the instant of a read is seen by it.
    """
    first, last = reads[0], writes[-1]
    reaction_ns = reduced_ns = age_ns = reduced_age_ns = 0
    for job, read_ns in enumerate(first):
        written_ns = _forward(reads, writes, job)
        if span[0] <= read_ns < span[1] and job and written_ns is not None:
            reaction_ns = max(reaction_ns, written_ns - first[job - 1])
            reduced_ns = max(reduced_ns, written_ns - read_ns)
    for job, written_ns in enumerate(last[:-1]):
        captured_ns = _backward(reads, writes, job)
        if span[0] <= written_ns < span[1] and captured_ns is not None:
            age_ns = max(age_ns, last[job + 1] - captured_ns)
            reduced_age_ns = max(reduced_age_ns, written_ns - captured_ns)
    return Latencies(reaction_ns, age_ns, reduced_ns, reduced_age_ns)


def _forward(
    reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]], job: int
) -> int | None:
    """Return when the tail first writes what rests on a job of the head."""
    for place in range(1, len(reads)):
        job = bisect_left(reads[place], writes[place - 1][job])
        if job == len(reads[place]):
            return None
    return writes[-1][job]


def _backward(
    reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]], job: int
) -> int | None:
    """Return when the head read what a job of the tail rests on."""
    for place in range(len(reads) - 1, 0, -1):
        job = bisect_right(writes[place - 1], reads[place][job]) - 1
        if job < 0:
            return None
    return reads[0][job]


def judge(figure: Figure, limit_ns: int | None) -> Verdict:
    """Return whether a promise of a chain is kept."""
    if limit_ns is None or (figure.ns is not None and figure.ns <= limit_ns):
        return "meets"
    return "misses" if figure.label == "exact" else "unknown"
