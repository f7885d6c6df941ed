"""How responses are spread: counts by time, over every job that gave a result.

Runs that are compared share their slices, so that one can be laid over the other. Percentiles are
those of the run object; nothing is estimated from the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.metrics.run import RunFigures

SLICES = 64
ROOM = 1.06


def response_counts(runs: Sequence[RunFigures]) -> dict[str, dict[str, object]]:
    """Return by stage the width of a slice, and a list of counts from 0 for every run."""
    charts: dict[str, dict[str, object]] = {}
    for name in runs[0].stages:
        longest = 0
        for run in runs:
            worst = run.stages[name].response.values
            longest = max(longest, run.spec.stage(name).deadline_ns, max(worst, default=0))
        slice_ns = max(1, int(longest * ROOM) // SLICES + 1)
        counts = [_counted(run.stages[name].response.values, slice_ns) for run in runs]
        charts[name] = {"slice_ns": slice_ns, "counts": counts}
    return charts


def _counted(values: Sequence[int], slice_ns: int) -> list[int]:
    places = np.clip(np.array(values, np.int64) // slice_ns, 0, SLICES - 1)
    return [int(count) for count in np.bincount(places, minlength=SLICES)]
