"""What is known of a pipeline's deadlines: the analyses, and legal runs where those leave room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from avrt.analysis.schedulability import analyse
from avrt.drivers.witness import look_for_misses
from avrt.report.terminal import spent_time
from avrt.units import format_ns

if TYPE_CHECKING:
    from avrt.analysis.schedulability import ChainFinding, DeviceFinding, Findings, StageFinding
    from avrt.drivers.witness import Witness
    from avrt.model.spec import PipelineSpec

RUN = "a legal run"


def judge(spec: PipelineSpec) -> Findings:
    """Return what is known of a checked pipeline.

    Analyses first. What they leave unknown is known to miss where a simulated run does, and a bound
    that a run reaches, to within the one ns by which ties are decided, is exact.
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
    response, worst_ns = finding.response, witness.worst_ns.get(finding.name, 0)
    if response.label == "bound" and response.ns is not None and worst_ns >= response.ns - 1:
        source = f"{response.source}; reached in {RUN}"
        finding = replace(finding, response=replace(response, label="exact", source=source))
    job = witness.ended.get(finding.name)
    if finding.verdict != "unknown" or job is None:
        return finding
    miss = witness.misses.get(finding.name)
    how = f"is {job.outcome}" + (f" ({job.reason})" if job.reason else "")
    why = f"job {job.index}, released {format_ns(job.release_ns)}, {how}"
    if miss is not None:
        why = f"{why}: due after {format_ns(miss.due_ns - miss.release_ns)} = {spent_time(miss)}"
    return replace(finding, verdict="misses", why=f"in {RUN} {why}")


def _device(finding: DeviceFinding, late: set[str]) -> DeviceFinding:
    if finding.verdict == "unknown" and finding.name in late:
        return replace(finding, verdict="misses", source=f"{finding.source}; {RUN}")
    return finding


def _chain(finding: ChainFinding, witness: Witness) -> ChainFinding:
    if finding.verdict == "unknown" and finding.name in witness.broken:
        return replace(finding, verdict="misses")
    return finding
