"""A pipeline that executes a table, in the terms of the other analyses.

Nothing is to be solved: the table says when every job runs (`avrt.analysis.table`), as long as
sources send in phase with it. A response is exact where no declared jitter can move a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.arrivals import Arrival, source_publications
from avrt.analysis.holistic import Solution
from avrt.analysis.members import Member, stages_above
from avrt.analysis.parts import parts_of
from avrt.analysis.table import lines_of, outcomes, table_faults
from avrt.analysis.tasks import Task
from avrt.model.graph import release_periods, topological_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.analysis.table import Line, Moment, Outcome
    from avrt.model.spec import PipelineSpec, StageSpec


def solve_table(spec: PipelineSpec) -> Solution:
    """Return the releases and responses of a pipeline with a table; of a wrong one none."""
    table = spec.table
    assert table is not None
    solution = Solution(published=source_publications(spec))
    latest, soonest = (lines_of(spec, table, jitter=jitter) for jitter in (True, False))
    worst = {} if table_faults(spec, table) else outcomes(spec, table)
    order, periods = topological_order(spec), release_periods(spec)
    above = stages_above(order)
    for stage in order:
        late, soon, outcome = latest[stage.name], soonest[stage.name], worst.get(stage.name)
        if late is None or soon is None or outcome is None:
            solution.members[stage.name] = []
            solution.published[stage.name] = None
            continue
        period_ns = periods[stage.name] or table.cycle_ns
        arrival = _arrival(late, period_ns, soon.releases, late.releases)
        solution.published[stage.name] = _arrival(late, period_ns, soon.outputs, late.outputs)
        solution.members[stage.name] = [
            _member(stage, name, arrival, outcome, above[stage.name]) for name in stage.task_names
        ]
    return solution


def _arrival(
    line: Line, period_ns: int, soonest: Sequence[Moment], latest: Sequence[Moment]
) -> Arrival:
    """Return how soon and how late after its root's arrival a release or an output can be."""
    early = [m.earliest_ns - at for m, at in zip(soonest, line.nominal_ns, strict=True)]
    late = [m.planned_ns - at for m, at in zip(latest, line.nominal_ns, strict=True)]
    captured = [m.capture_ns - at for m, at in zip(latest, line.nominal_ns, strict=True)]
    return Arrival(line.root, period_ns, min(early), max(late), captured_ns=max(captured))


def _member(
    stage: StageSpec, name: str, arrival: Arrival, outcome: Outcome, above: frozenset[str]
) -> Member:
    task = Task(
        name=name,
        wcet_ns=stage.wcet_ns,
        bcet_ns=stage.bcet_ns or 1,
        period_ns=arrival.period_ns,
        deadline_ns=outcome.response_ns + outcome.slack_ns,
        jitter_ns=arrival.jitter_ns,
        last_ns=stage.wcet_ns,
        longest_ns=stage.wcet_ns,
    )
    (part,) = parts_of(stage, name)  # no table has segments
    return Member(
        stage,
        part,
        arrival,
        arrival,
        task,
        response_ns=outcome.response_ns,
        test="table" if outcome.fixed else "table_jitter",
        run_ns=None,
        above=above,
        before=None,
        after_vote=False,
    )
