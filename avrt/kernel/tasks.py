"""The tasks of a pipeline and the devices that may serve them, in every mode."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from avrt.kernel.job import MOVES_MAX, Task
from avrt.kernel.table import Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from avrt.kernel.ladder import Mode
    from avrt.kernel.queues import DeviceQueue
    from avrt.model.spec import PipelineSpec

MOVES_KEPT_MAX = 1024


def make_tasks(
    spec: PipelineSpec, devices: Mapping[str, DeviceQueue], modes: Sequence[Mode]
) -> list[Task]:
    """Return the tasks in pipeline-file order: one a stage, or one a replica."""
    tasks: list[Task] = []
    for stage in spec.stages:
        route = tuple(devices[segment.device] for segment in stage.segments)
        for name in stage.task_names:
            homes = [devices[mode.parameters[len(tasks)].device] for mode in modes]
            device = homes[0]
            places = dict.fromkeys(place for home in route or homes for place in home.places)
            row = None if spec.table is None else Row(spec.table, name)
            task = Task(len(tasks), name, stage, device, device, route, row)
            tasks.append(task)
            for place in places:
                place.serve(stage.criticality)
                if route:
                    place.visitors.append(task)
            if route:  # a job may wait behind a full queue of others, each with all its segments
                moves_max = len(route) * (stage.queue + 2)
                task.moves = deque(maxlen=min(MOVES_MAX + moves_max, MOVES_KEPT_MAX))
    return tasks
