"""Whether a pipeline may run against the wall clock: one that is known to miss is refused.

Only what is certain refuses. What nothing decides is let in. In virtual time nothing is refused:
overload must be simulable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.analysis.bounds import effort
from avrt.analysis.sensitivity import remedies
from avrt.errors import SpecError
from avrt.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from avrt.analysis.schedulability import Findings
    from avrt.model.spec import PipelineSpec

REMEDY_EFFORT_MAX = 400
"""The search for remedies makes hundreds of analyses: half a second at this size."""


def admit(spec: PipelineSpec, findings: Findings, *, forced: bool) -> str:
    """Return what a run that is forced is known to miss, "" where nothing is known to be missed.

    `findings` are what is known of the pipeline.

    Raises:
        SpecError: it is known to miss, and not forced.
    """
    found = next(known_misses(spec, findings), None)
    if found is None:
        return ""
    key, what = found
    if forced:
        return what
    best = next(iter(remedies(spec)), None) if effort(spec) <= REMEDY_EFFORT_MAX else None
    remedy = "" if best is None else f"; enough would be: {best.what}"
    raise SpecError(f"it is known to miss: {what}{remedy}; --force runs it anyway", key)


def known_misses(spec: PipelineSpec, findings: Findings) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield where in the pipeline file something is known to miss, and what: stages, then all else.

    Each is a key of the file and a sentence that says by how much.
    """
    yield from _stages(spec, findings)
    for device in findings.devices:
        if device.verdict == "misses" and all(
            stage.verdict != "misses" for stage in findings.stages if stage.device == device.name
        ):
            load = "" if device.utilisation is None else f"{float(device.utilisation):.3g} of "
            slots = spec.device(device.name).slots_told
            what = f"{device.name} is asked for {load}{slots}, {device.source}"
            yield ("devices", device.name), what
    for chain in findings.chains:
        if chain.verdict == "misses":
            limits = [ns for ns in (chain.reaction_limit_ns, chain.age_limit_ns) if ns is not None]
            what = f"{chain.name} breaks its promise in a legal run"
            if chain.latency.label == "exact" and chain.latency.ns is not None:
                what = _by(chain.name, chain.latency.ns, min(limits))
            yield ("chains", chain.name), what


def _stages(spec: PipelineSpec, findings: Findings) -> Iterator[tuple[tuple[str, str], str]]:
    for finding in findings.stages:
        if finding.verdict != "misses":
            continue
        stage, limit_ns = spec.stage(finding.name), finding.limit_ns
        is_exact = finding.response.label == "exact"
        worst_ns = max(finding.response.ns or 0 if is_exact else 0, stage.wcet_ns)
        is_late = limit_ns is not None and worst_ns > limit_ns
        what = _by(stage.name, worst_ns, limit_ns) if limit_ns is not None and is_late else ""
        yield ("stages", stage.name), what or f"{stage.name}: {finding.why}"


def _by(name: str, worst_ns: int, limit_ns: int) -> str:
    took, limit, over = (format_ns(ns) for ns in (worst_ns, limit_ns, worst_ns - limit_ns))
    return f"{name} can take {took} of {limit}, {over} too long"
