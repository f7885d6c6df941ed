"""Sweeps and images of a record, thinned and packed while they are read.

Of each source one message in so many is taken, counted before anything is decoded; images that are
larger together than there is room for lose every second of them, and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.errors import AvrtError
from avrt.logs import open_log
from avrt.logs.cameras import with_models
from avrt.logs.merge import MergedLog
from avrt.payload import Image, PointCloud
from avrt.payload.projection import moved
from avrt.report.page.clouds import SWEEPS_MAX, pack, points_for
from avrt.report.page.images import BYTES_MAX, IMAGES_MAX, Camera, width_for
from avrt.report.page.sieve import step_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from avrt.logs.merge import SourceMessage
    from avrt.model.frames import Frames
    from avrt.model.spec import PipelineSpec, SourceSpec
    from avrt.report.page.messages import Messages
    from avrt.report.page.tracks import Outputs

Row = dict[str, object]


@dataclass(slots=True)
class _Series:
    """One sensor: one message in `step` is drawn."""

    name: str
    step: int
    seen: int = 0
    rows: list[Row] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    camera: Camera | None = None
    bad: int = 0

    def halve(self) -> None:
        self.step *= 2
        self.rows, self.times, self.sizes = self.rows[::2], self.times[::2], self.sizes[::2]


class Sensors:
    """The pictures of LiDARs and cameras."""

    def __init__(
        self,
        sources: Sequence[SourceSpec],
        counts: Mapping[str, int],
        outputs: Outputs,
        frames: Frames,
        frame: str,
    ) -> None:
        self._sources = sources
        self._outputs = outputs
        self._frames = frames
        self._frame = frame
        self._notes: list[str] = []
        self._away: set[str] = set()
        lidars = [s for s in sources if s.type == "lidar"]
        cameras = [s for s in sources if s.type == "camera"]
        self._lidars = _series(lidars, counts, SWEEPS_MAX)
        self._cameras = _series(cameras, counts, IMAGES_MAX)
        sweeps = sum(-(-counts[s.topic or ""] // self._lidars[s.name].step) for s in lidars)
        self._points_max = points_for(sweeps)
        images = sum(-(-counts[s.topic or ""] // self._cameras[s.name].step) for s in cameras)
        self._width = width_for(images)
        self._bytes_max = BYTES_MAX // max(1, len(cameras))
        self._points, self._kept = 0, 0

    @property
    def clouds(self) -> dict[str, list[Row]]:
        """The sweeps of each LiDAR: `t`, `points`, `xyz` (see `clouds`)."""
        return {name: series.rows for name, series in self._lidars.items()}

    @property
    def images(self) -> dict[str, list[Row]]:
        """The images of each camera (see `images`)."""
        return {name: series.rows for name, series in self._cameras.items()}

    @property
    def times(self) -> list[int]:
        """When the sensor that is drawn most often was read, pipeline ns, ascending.

        Of equal ones a camera counts: at its image the sweep before is the newest, too.
        """
        groups = (*self._cameras.values(), *self._lidars.values())
        most = max(groups, key=lambda series: len(series.times), default=None)
        return [] if most is None else sorted(set(most.times))

    def read(self, path: Path, spec: PipelineSpec, messages: Mapping[str, Messages]) -> None:
        """Read the record's sensor topics."""
        try:
            with open_log(path) as log:
                merged = MergedLog(log, self._sources)
                for item in with_models(merged, spec.cameras):
                    captures = messages[item.source].captures
                    if item.sequence < len(captures):
                        self._take(item, captures[item.sequence])
        except AvrtError as error:
            self._notes.append(f"sensors are drawn as far as they can be read: {error}")

    def told(self) -> list[str]:
        """Return what was left out, a line each."""
        notes = list(self._notes)
        for series in (*self._lidars.values(), *self._cameras.values()):
            if series.step > 1:
                notes.append(f"{series.name}: 1 in {series.step} of {series.seen} is drawn")
            if series.bad:
                notes.append(f"{series.name}: {series.bad} images cannot be decoded")
        if self._kept < self._points:
            share = self._kept / self._points
            what = f"{self._kept:,} of {self._points:,} points ({share:.0%}) of the sweeps drawn"
            notes.append(f"clouds: {what}, the highest in each 0.1 m x 0.1 m, to 2 cm")
        if any(series.rows for series in self._cameras.values()):
            notes.append(f"images: encoded anew as JPEG, at most {self._width} pixels wide")
        return notes

    def _take(self, item: SourceMessage, at_ns: int) -> None:
        payload = item.payload
        if isinstance(payload, PointCloud):
            series = self._lidars[item.source]
            if series.seen % series.step == 0:
                self._sweep(series, item.frame, payload, at_ns)
            series.seen += 1
        elif isinstance(payload, Image):
            series = self._cameras[item.source]
            if series.seen % series.step == 0:
                self._image(series, item.frame, payload, at_ns)
            series.seen += 1

    def _sweep(self, series: _Series, frame: str, cloud: PointCloud, at_ns: int) -> None:
        if not self._frames.connects(frame, self._frame):
            if frame not in self._away:
                self._away.add(frame)
                what = f"no transform leads from {frame!r} to {self._frame!r}"
                self._notes.append(f"{series.name} is not drawn: {what}")
            return
        placed = moved(cloud.xyz, self._frames.between(frame, self._frame))
        sweep = pack(placed, self._points_max)
        self._points += sweep.points
        self._kept += sweep.kept
        series.rows.append({"t": at_ns, "points": sweep.points, "xyz": sweep.packed})
        series.times.append(at_ns)

    def _image(self, series: _Series, frame: str, image: Image, at_ns: int) -> None:
        if series.camera is None:
            series.camera = Camera(self._outputs, self._frames, frame, self._width)
        try:
            row, size = series.camera.row(image, at_ns)
        except (OSError, ValueError):
            series.bad += 1
            return
        series.rows.append(row)
        series.times.append(at_ns)
        series.sizes.append(size)
        while sum(series.sizes) > self._bytes_max and len(series.rows) > 1:
            series.halve()


def _series(
    sources: Sequence[SourceSpec], counts: Mapping[str, int], most: int
) -> dict[str, _Series]:
    share = max(1, most // max(1, len(sources)))
    return {s.name: _Series(s.name, step_for(counts[s.topic or ""], share)) for s in sources}
