"""What was seen and what was made of it, for the bird's-eye view and the camera.

Everything is by capture time, pipeline ns: a box then stands on the points that it was made of,
though it was published later; rows say when.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.errors import InputError
from avrt.logs import open_log
from avrt.logs.truth import read_truth
from avrt.model.frames import Frames
from avrt.payload import Tracks
from avrt.report.page.sensors import Sensors
from avrt.report.page.sieve import Sieve
from avrt.report.page.tracks import OBJECTS_MAX, Placed, read_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from avrt.logs.record.run_file import RunFile
    from avrt.logs.truth import TrueScene
    from avrt.model.spec import PipelineSpec, SourceSpec
    from avrt.report.page.messages import Messages

TRUTH_MAX = 1_200


@dataclass(slots=True)
class Scene:
    """The pictures of one run as plain data.

    Attributes:
        times: when sweeps (or images, or tracks) were captured, pipeline ns, ascending.
        has_images: a camera has something to show.
        notes: what was left out.
    """

    data: dict[str, object]
    times: list[int]
    has_images: bool
    notes: list[str] = field(default_factory=list)


def read_scene(
    run: RunFile, path: Path, spec: PipelineSpec, messages: Mapping[str, Messages]
) -> Scene | None:
    """Return the pictures of a run record; None for one with nothing to draw.

    Args:
        run: the record, opened.
        path: where it is.
        spec: its pipeline.
        messages: what came from every source, with the capture times that the run used.
    """
    outputs = read_outputs(run)
    counts = run.topics()
    sources = [
        s for s in spec.sources if s.type in {"lidar", "camera"} and counts.get(s.topic or "")
    ]
    if outputs.frame is None and not sources:
        return None
    frames = Frames(spec.transforms)
    frame = _first_frame(sources) if outputs.frame is None else outputs.frame
    sensors = Sensors(sources, counts, outputs, frames, frame)
    if sources:
        sensors.read(path, spec, messages)
    placed = Placed(outputs, frames, frame)
    notes = sensors.told()
    data: dict[str, object] = {
        "frame": frame,
        "tracks": placed.tracks(),
        "plans": placed.plans(),
        "targets": placed.targets(),
        "truth": placed.truth(_truth(path, run.zero_ns, notes)),
        "labels": placed.labels,
        "clouds": [{"source": name, "sweeps": rows} for name, rows in sensors.clouds.items()],
        "cameras": [{"source": name, "images": rows} for name, rows in sensors.images.items()],
    }
    if placed.unplaced:
        notes.append(f"{placed.unplaced} objects have a place or size that is no number")
    times = sensors.times or [one.message.stamp.capture_ns for one in outputs.of(Tracks)]
    return Scene(data, times, any(sensors.images.values()), [*notes, *outputs.notes])


def _first_frame(sources: list[SourceSpec]) -> str:
    return next((s.frame for s in sources if s.type == "lidar"), "")


def _truth(path: Path, zero_ns: int, notes: list[str]) -> list[tuple[int, TrueScene]]:
    """Return the ground truth of a record with its pipeline time."""
    kept: Sieve[TrueScene] = Sieve(TRUTH_MAX)
    try:
        with open_log(path) as log:
            for scene in read_truth(log):
                kept.add(scene)
    except InputError as error:
        notes.append(f"ground truth is drawn as far as it can be read: {error}")
    kept.thin_to(OBJECTS_MAX, lambda scene: len(scene.truth.objects))
    if kept.left_out:
        notes.append(f"ground truth: 1 in {kept.step} of {kept.seen} is drawn")
    return [(scene.stamp_ns - zero_ns, scene) for scene in kept.items]
