"""The pictures of a scanning radar to targets: the `CfarDetector` stage.

A scanning radar turns and gives one picture a revolution, power over range and azimuth, without
Doppler. `CfarDetector` finds what stands out of the noise (`cfar`) and makes one target of the
cells of one reflector (`polar`). The defaults are those of the Navtech CTS350-X as the RADIATE
recordings have it:

* 576 rows of 0.1736 m, 400 columns of 0.9 degrees that begin straight ahead and turn clockwise;
* a step of the 8-bit picture is half a decibel of power (Navtech's own software divides by two);
* the stamp is the end of the revolution: the recorder publishes when the azimuth begins anew.
  Each column is older than the next, so with an ego motion at hand every target is moved to where
  it is at the stamp if it stands still. Without one, what lies right of straight ahead is told
  where it was a revolution ago, 2.5 m at 10 m/s.

A receiver always hears noise. Columns of one value only were not measured, and a scan with more
than a tenth of them is refused instead of telling that nothing is there.

The number of targets is bounded, nearest first, and how many were left out is said.

Shape letters: R range cells, A azimuths, N targets.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

from avrt.errors import DataFault, SpecError
from avrt.model.stage import Stage
from avrt.payload import Image, Targets
from avrt.stages.mounting import Mounts, is_known
from avrt.stages.parameters import (
    check_below,
    check_choice,
    check_not_negative,
    check_number,
    check_positive,
    check_whole,
)
from avrt.stages.radar.cfar import Cfar
from avrt.stages.radar.polar import Grid, Returns, returns
from avrt.stages.radar.target_list import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.frames import Frames
    from avrt.model.message import Message
    from avrt.payload import EgoMotion

STAMPS = ("start", "end")
BOX = ("x_min", "x_max", "y_min", "y_max")
SECTOR_LOST_MAX = 0.1  # share of the azimuths that may be without any noise
REACH_BINS = 2  # rows on each side that one reflector fills
SQRT_12 = 12**0.5  # a width over this is the standard deviation of a uniform distribution


class CfarDetector(Stage):
    """Turn the picture of a scanning radar into targets, nearest first.

    Args:
        bins, azimuths: rows and columns of the picture.
        range_resolution: metres a row.
        azimuth_first: where column 0 begins, degrees from the x axis, positive to the left.
        direction: "clockwise" or "counterclockwise", seen from above.
        decibel: dB of power that one step of the picture means.
        beam_width: degrees between the half-power points.
        method: "os" or "ca", see `cfar`.
        pfa: wanted rate of false alarms, for each cell.
        guard, window: cells on each side of a tested one, see `cfar.Cfar`; as many rows at either
            end of the picture cannot be tested, 3.1 m by default.
        cells_min: fewest detected cells of a target.
        range_min, range_max: distance that is looked at, metres.
        own_vehicle: x_min, x_max, y_min, y_max of what the radar sees of its own vehicle, metres in
            its own frame; nothing is told in there.
        targets_max: most targets that are given; the nearest are kept.
        scan_seconds: how long a revolution takes.
        stamped: whether the stamp is the "start" or the "end" of the revolution.
        vehicle_frame: the frame whose motion `ego` is; empty if the radar counts as being there.
    """

    def __init__(  # noqa: PLR0913 - every one is a parameter in the pipeline file
        self,
        *,
        bins: int = 576,
        azimuths: int = 400,
        range_resolution: float = 0.17361,
        azimuth_first: float = 0.0,
        direction: str = "clockwise",
        decibel: float = 0.5,
        beam_width: float = 1.8,
        method: str = "os",
        pfa: float = 1e-5,
        guard: int = 2,
        window: int = 16,
        cells_min: int = 4,
        range_min: float = 2.5,
        range_max: float = 100.0,
        own_vehicle: Sequence[float] = (-4.0, 2.0, -1.6, 1.6),
        targets_max: int = 512,
        scan_seconds: float = 0.25,
        stamped: str = "end",
        vehicle_frame: str = "",
    ) -> None:
        self.grid = Grid(bins, azimuths, range_resolution, azimuth_first, direction)
        self.cfar = Cfar(method, pfa, guard, window)
        check_positive(
            decibel=decibel, beam_width=beam_width, range_max=range_max, scan_seconds=scan_seconds
        )
        check_not_negative(range_min=range_min)
        check_below(range_max, range_min=range_min)
        check_below(90.0, beam_width=beam_width)
        check_whole(cells_min=(cells_min, 1), targets_max=(targets_max, 1))
        check_whole(bins=(bins, 2 * self.cfar.margin + 1))
        check_choice(STAMPS, stamped=stamped)
        _check_box(own_vehicle)
        self.decibel = decibel
        self.beam_width = beam_width
        half_beam = round(beam_width * azimuths / 360)
        self.reach = (min(REACH_BINS, self.cfar.margin), max(1, half_beam))
        self.cells_min = cells_min
        self.range_min = range_min
        self.range_max = range_max
        self.own_vehicle = tuple(own_vehicle)
        self.targets_max = targets_max
        self.scan_seconds = scan_seconds
        self.stamped = stamped
        self.mounts = Mounts(vehicle_frame)

    def calibrate(self, frames: Frames) -> None:
        self.mounts.calibrate(frames)

    def warm(self) -> None:
        """Look at a picture of noise once, so that the first scan finds every library loaded."""
        noise = np.random.default_rng(0).integers(0, 64, (self.grid.bins, self.grid.azimuths))
        file = io.BytesIO()
        PillowImage.fromarray(noise.astype(np.uint8)).save(file, "png")
        self._returns(self._picture(Image("png", np.frombuffer(file.getvalue(), np.uint8))))

    def process(self, image: Message[Image], ego: Message[EgoMotion] | None = None) -> Targets:
        """Return the targets of this scan, in the scan's frame at the time of its stamp.

        Raises:
            DataFault: the picture is damaged, of another size, or a large part was not measured.
        """
        found = self._returns(self._picture(image.payload))
        distance, xy = self.grid.distance(found.row), self.grid.xy(found.row, found.column)
        if ego is not None and is_known(ego.payload):
            mount = self.mounts.of(image.stamp.frame)
            xy = mount.moved_on(xy, self._seconds_left(found.column), ego.payload)
        across = distance * math.radians(self.beam_width) / SQRT_12
        along = np.full_like(distance, self.grid.range_resolution / SQRT_12)
        count = len(distance)
        targets = Targets(
            xy=xy.astype(np.float32),
            sigma=np.stack([along, across], axis=1).astype(np.float32),
            range_rate=np.full(count, np.nan, np.float32),
            velocity=np.full((count, 2), np.nan, np.float32),
            strength=found.level * np.float32(self.decibel),
            ids=np.full(count, -1, np.int64),
        )
        return nearest(targets, self.targets_max)

    def _picture(self, image: Image) -> NDArray[np.uint8]:
        """Return (R, A) uint8, decoded and checked."""
        try:
            level = image.pixels()[..., 0]
        except (OSError, ValueError) as error:
            raise DataFault("damaged_image", f"expected a radar picture, {error}") from None
        expected = (self.grid.bins, self.grid.azimuths)
        if level.shape != expected:
            what = f"expected {expected[0]} rows of {expected[1]} azimuths, found "
            raise DataFault("image_size", f"{what}{level.shape[0]} rows of {level.shape[1]}")
        silent = int(np.count_nonzero((level == level[0]).all(axis=0)))
        if silent > SECTOR_LOST_MAX * self.grid.azimuths:
            what = "expected noise in all azimuths, found none in"
            raise DataFault("no_signal", f"{what} {silent} of {self.grid.azimuths}")
        return level

    def _returns(self, level: NDArray[np.uint8]) -> Returns:
        detected = self.cfar.detected(level * np.float32(self.decibel))
        found = returns(level, detected, self.reach, self.decibel)
        distance = self.grid.distance(found.row)
        kept = found.cells >= self.cells_min
        kept &= (distance >= self.range_min) & (distance <= self.range_max)
        x, y = self.grid.xy(found.row, found.column).T
        x_min, x_max, y_min, y_max = self.own_vehicle
        kept &= ~((x > x_min) & (x < x_max) & (y > y_min) & (y < y_max))
        return Returns(found.row[kept], found.column[kept], found.level[kept], found.cells[kept])

    def _seconds_left(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return seconds from the measurement of fractional columns to the scan's stamp."""
        passed = (column + 0.5) / self.grid.azimuths
        return ((1.0 if self.stamped == "end" else 0.0) - passed) * self.scan_seconds


def _check_box(box: Sequence[float]) -> None:
    """Raise SpecError unless these are x_min, x_max, y_min, y_max of a rectangle."""
    key = ("own_vehicle",)
    if not isinstance(box, list | tuple) or len(box) != len(BOX):
        raise SpecError(f"expected {', '.join(BOX)}, found {box!r}", key)
    for value in box:
        check_number(own_vehicle=value)
    if box[0] > box[1] or box[2] > box[3]:
        raise SpecError(f"expected each least before its most, found {list(box)}", key)
