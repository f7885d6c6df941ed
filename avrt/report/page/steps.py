"""Where the time slider stops: at sweeps, else at images, else at messages, else evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.model.spec import PipelineSpec
    from avrt.report.page.history import History
    from avrt.report.page.scene import Scene

EVEN_STEPS = 200
PREFERRED = ("lidar", "camera", "radar", "can", "gnss", "imu")


def steps(
    spec: PipelineSpec,
    history: History,
    scene: Scene | None,
    end_ns: int,
    begin_ns: int = 0,
) -> dict[str, object]:
    """Return `from_ns`, `to_ns` and the stops between them, ascending."""
    captures = [t for one in history.messages.values() for _, t in one.times.items]
    from_ns, to_ns = min((begin_ns, *captures)), max((end_ns, begin_ns + 1, *captures))
    stops = [] if scene is None else sorted(set(scene.times))
    stops = stops or _messages(spec, history)
    if len(stops) < 2:
        stops = [from_ns + (to_ns - from_ns) * i // EVEN_STEPS for i in range(EVEN_STEPS + 1)]
    return {"from_ns": from_ns, "to_ns": to_ns, "steps": stops}


def _messages(spec: PipelineSpec, history: History) -> list[int]:
    """Return when the messages of the source of the preferred kind arrived."""
    ordered = sorted(spec.sources, key=lambda source: PREFERRED.index(source.type))
    for source in ordered:
        arrivals = sorted({at_ns for at_ns, _ in history.messages[source.name].times.items})
        if arrivals:
            return arrivals
    return []
