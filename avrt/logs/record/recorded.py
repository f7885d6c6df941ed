"""What a run record holds, as model objects.

What scheduling costs is no part of the pipeline: it is among the conditions, by device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import InputError, SpecError
from avrt.model.codec import decode, decode_pipeline, encode, from_json, to_json
from avrt.model.graph import check
from avrt.model.scenario import NO_OVERHEADS, OverheadSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from avrt.logs.record.run_file import RunFile
    from avrt.model.spec import PipelineSpec

OVERHEADS = "overheads"
WHAT_IF = "what_if"
"""The conditions of a what-if say under this name what was changed."""
FLIGHT = "flight"
"""The conditions of a flight record, which begins in the middle of a run, say here why it is."""


def check_whole(run: RunFile, path: str | Path) -> None:
    """Refuse a record that does not begin where its run began.

    Raises:
        InputError: it is a flight record.
    """
    if FLIGHT in run.conditions:
        what = "expected the record of a whole run, found a flight record, which begins in the "
        raise InputError(f"{what}middle of one; avrt report shows it", str(path))


def read_pipeline(run: RunFile, path: str | Path) -> PipelineSpec:
    """Return the pipeline that a record holds.

    Raises:
        InputError: it is missing or damaged.
    """
    if run.pipeline_json is None:
        raise InputError("expected the pipeline as it was loaded, found none", str(path))
    try:
        spec = decode_pipeline(from_json(run.pipeline_json))
        check(spec)
    except (ValueError, SpecError) as error:
        raise InputError(f"the recorded pipeline is damaged: {error}", str(path)) from None
    return spec


def overhead_conditions(overheads: Mapping[str, OverheadSpec]) -> dict[str, str]:
    """Return what a record's conditions say of overheads; nothing where there are none."""
    costs = {device: encode(spec) for device, spec in overheads.items()}
    return {OVERHEADS: to_json(costs)} if costs else {}


def read_overheads(conditions: Mapping[str, str], path: str | Path) -> Mapping[str, OverheadSpec]:
    """Return what scheduling cost in a recorded run, by device.

    Raises:
        InputError: it is damaged.
    """
    text = conditions.get(OVERHEADS)
    if text is None:
        return NO_OVERHEADS
    try:
        return _overheads(from_json(text))
    except (TypeError, ValueError) as error:
        raise InputError(f"the recorded overheads are damaged: {error}", str(path)) from None


def _overheads(data: object) -> dict[str, OverheadSpec]:
    if not isinstance(data, dict):
        raise TypeError(f"expected overheads by device, found {data!r:.40}")
    return {str(device): decode(OverheadSpec, item) for device, item in data.items()}
