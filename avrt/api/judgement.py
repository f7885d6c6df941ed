"""What is known of a pipeline's deadlines: the analyses, and legal runs where those leave room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.analysis.figure import unknown
from avrt.analysis.schedulability import analyse
from avrt.drivers.witness import look_for_misses
from avrt.report.terminal import spent_time
from avrt.units import format_ns

if TYPE_CHECKING:
    from avrt.analysis.figure import Verdict
    from avrt.analysis.schedulability import ChainFinding, DeviceFinding, Findings, StageFinding
    from avrt.drivers.witness import Witness
    from avrt.model.records import JobRecord
    from avrt.model.spec import PipelineSpec

RUN = "a legal run"
CONTRADICTED = f"{RUN} is above the bound of the analysis"
BUG = "a bug of avrt, please report it with this file"


def judge(spec: PipelineSpec) -> Findings:
    """Return what is known of a checked pipeline.

    Analyses first. What they leave unknown is known to miss where a simulated run does, and a bound
    that a run reaches, to within the one ns by which ties are decided, is exact. A run that takes
    longer, or misses what was to be met, shows that an analysis is wrong: then its number counts
    for nothing, and it is told.
    """
    findings = analyse(spec)
    if all(
        stage.verdict == "meets" and stage.response.label == "exact" for stage in findings.stages
    ):
        return findings
    witness = look_for_misses(spec)
    stages = tuple(_stage(finding, witness) for finding in findings.stages)
    late = {stage.device for stage in stages if stage.verdict == "misses"}
    return replace(
        findings,
        stages=stages,
        devices=tuple(_device(finding, late) for finding in findings.devices),
        chains=tuple(_chain(finding, witness) for finding in findings.chains),
    )


def _stage(finding: StageFinding, witness: Witness) -> StageFinding:
    finding = _measured(finding, witness.longest.get(finding.name))
    job = witness.ended.get(finding.name)
    if finding.verdict == "misses" or job is None:
        return finding
    miss = witness.misses.get(finding.name)
    how = f"is {job.outcome}" + (f" ({job.reason})" if job.reason else "")
    why = f"in {RUN} {_named(job)} {how}"
    if miss is not None:
        why = f"{why}: due after {format_ns(miss.due_ns - miss.release_ns)} = {spent_time(miss)}"
    if finding.verdict == "meets":
        why = f"{why}. The analysis says that it meets: {BUG}"
    if finding.response.source == CONTRADICTED:
        why = f"{why}. {finding.why}"
    return replace(finding, verdict="misses", why=why)


def _measured(finding: StageFinding, longest: JobRecord | None) -> StageFinding:
    """Return a finding with its bound called exact where a job reaches it, unknown if above."""
    response = finding.response
    if longest is None or response.ns is None or longest.response_ns < response.ns - 1:
        return finding
    if longest.response_ns <= response.ns:
        if response.label == "exact":
            return finding
        source = f"{response.source}; reached in {RUN}"
        return replace(finding, response=replace(response, label="exact", source=source))
    took, bound = format_ns(longest.response_ns), f"{format_ns(response.ns)} ({response.source})"
    why = f"in {RUN} {_named(longest)} takes {took}, above the bound of {bound}: {BUG}"
    verdict: Verdict = "misses" if finding.verdict == "misses" else "unknown"
    return replace(finding, response=unknown(CONTRADICTED), verdict=verdict, why=why)


def _named(job: JobRecord) -> str:
    return f"job {job.index}, released {format_ns(job.release_ns)},"


def _device(finding: DeviceFinding, late: set[str]) -> DeviceFinding:
    if finding.verdict != "misses" and finding.name in late:
        return replace(finding, verdict="misses", source=f"{finding.source}; {RUN}")
    return finding


def _chain(finding: ChainFinding, witness: Witness) -> ChainFinding:
    if finding.verdict == "misses" or finding.name not in witness.broken:
        return finding
    if finding.verdict == "meets":
        finding = replace(finding, latency=unknown(CONTRADICTED))
    return replace(finding, verdict="misses")
