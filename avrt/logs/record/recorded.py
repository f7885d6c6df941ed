"""What a run record holds, as model objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avrt.errors import InputError, SpecError
from avrt.model.codec import decode_pipeline, from_json
from avrt.model.graph import check

if TYPE_CHECKING:
    from pathlib import Path

    from avrt.logs.record.run_file import RunFile
    from avrt.model.spec import PipelineSpec


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
