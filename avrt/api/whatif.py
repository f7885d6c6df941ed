"""What a recorded run would have been with another policy, other costs, deadlines or devices."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from avrt.analysis.planner import planned
from avrt.config.changes import change_pipeline, cost_change, cost_rules
from avrt.drivers.anomalies import find_anomalies
from avrt.drivers.conditions import read_conditions
from avrt.drivers.recording import read_recorded
from avrt.drivers.whatif import repeat
from avrt.errors import SpecError
from avrt.logs.record.recorded import WHAT_IF, overhead_conditions
from avrt.logs.record.run_record import RunRecord
from avrt.metrics.changes import compare_jobs
from avrt.model.codec import encode, to_json
from avrt.report.anomalies import AnomalyReport
from avrt.report.outputs import keep_apart
from avrt.report.summary import RunSummary
from avrt.report.whatif import Side, WhatIfReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from avrt.config.changes import Changes
    from avrt.drivers.recording import RecordedRun
    from avrt.drivers.whatif import ChangeCost
    from avrt.model.spec import PipelineSpec


def what_if(run: str | Path, changes: Changes, out: str | Path | None = None) -> WhatIfReport:
    """Repeat a recorded run with changes; nothing computes.

    Args:
        run: a run record.
        changes: what is different.
        out: where to write the record of the changed run; none is written by default.

    Raises:
        SpecError: a change is wrong, or the record would be written over the run.
        InputError: the run cannot be used.
    """
    recorded = read_recorded(run)
    spec, change_cost = _changed(recorded, changes)
    unchanged = repeat(recorded, recorded.spec)
    texts = changes.texts()
    if out is not None:
        keep_apart("the run record", out, [run])
    conditions = read_conditions(
        log=recorded.conditions.get("log", ""),
        timing="recorded",
        timing_run=str(run),
        **{WHAT_IF: ", ".join(texts) or "nothing changed"},
        **overhead_conditions(recorded.figures.overheads),
    )
    with _recording(out, spec, recorded, conditions) as record:
        write = None if record is None else lambda at_ns, line: record.journal(line, at_ns)
        changed = repeat(recorded, spec, change_cost=change_cost, write=write)
        if record is not None:
            summary = RunSummary(
                spec,
                changed.figures,
                "recorded",
                conditions,
                end_ns=changed.end_ns,
                decisions=changed.digest,
                record=str(out),
            )
            record.close({"decisions": changed.digest, "run": to_json(summary.data())})
    return WhatIfReport(
        str(run),
        texts,
        unchanged.digest == recorded.digest,
        Side(recorded.figures, recorded.digest),
        Side(changed.figures, changed.digest),
        len(changed.assumed),
        compare_jobs(recorded.log, changed.log),
        None if out is None else str(out),
    )


def anomalies(run: str | Path, changes: Changes) -> AnomalyReport:
    """Repeat a recorded run, with changes, and with less work: does anything then end later?

    Raises:
        SpecError: a change is wrong.
        InputError: the run cannot be used.
    """
    recorded = read_recorded(run)
    spec, change_cost = _changed(recorded, changes)
    cuts = find_anomalies(recorded, spec, change_cost)
    return AnomalyReport(str(run), changes.texts(), [(cut.what, cut.later) for cut in cuts])


def _changed(recorded: RecordedRun, changes: Changes) -> tuple[PipelineSpec, ChangeCost]:
    """Return the changed pipeline, with a table if it has come to need one, and the costs."""
    spec = change_pipeline(recorded.spec, changes)
    if spec.table is None:
        spec = planned(spec)
    return spec, cost_change(cost_rules(spec, changes.cost))


@contextmanager
def _recording(
    out: str | Path | None,
    spec: PipelineSpec,
    recorded: RecordedRun,
    conditions: Mapping[str, str],
) -> Iterator[RunRecord | None]:
    """Open the record of the changed run, if there is to be one."""
    if out is None:
        yield None
        return
    try:
        with RunRecord(
            out,
            zero_ns=recorded.zero_ns,
            conditions=conditions,
            pipeline_json=to_json(encode(spec)),
        ) as record:
            yield record
    except OSError as error:
        raise SpecError(f"cannot write the run record {out}: {error.strerror}") from None
