"""What a guard looks at in a payload: a few numbers, made on whatever thread the message is on.

Nothing is judged here. Large arrays are sampled: an image at about SIDE x SIDE grey levels, a cloud
at every STRIDE-th point, so a camera image costs what decoding it that small does and a cloud one
pass over its points. STRIDE is prime, so that no width of a row and no number of rings divides it.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from PIL.Image import DecompressionBombError

from avrt.payload import Fix, Image, Imu, PointCloud, Speed, Targets
from avrt.safety.turning import turning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.guard import GuardSpec
    from avrt.payload.cloud import Coordinates

STRIDE = 97
POINTS_SEEN, POINTS_LEAST = 5000, 360
WHOLE_BYTES = 1 << 20  # what is smaller is taken into the fingerprint whole
SIDE = 40
BLOCKS = 5  # a side; autoware_image_diagnostics divides an image alike
SWEEP_SECONDS = 1.0  # longer than any sensor takes for one
SECTORS = 36  # of a full turn of a LiDAR
BROKEN = (OSError, ValueError, SyntaxError, DecompressionBombError)
"""What decoding an image that is none raises; of a broken PNG, Pillow raises SyntaxError."""


@dataclass(frozen=True, slots=True)
class Content:
    """One payload in numbers.

    Attributes:
        size: its points, targets or pixels, cells of an organised cloud without a point left out;
            1 where it has none of them.
        nonfinite: points or targets that are no numbers, points of no time (none is further than
            SWEEP_SECONDS from the stamp), or 1 of a reading that is no number.
        fingerprint: equal where the content is equal to the bit; None where nothing is in it.
        level: mean grey level of an image, 0 to 255; None of anything else.
        spread: standard deviation of its grey levels.
        spreads: the same of each of BLOCKS x BLOCKS blocks.
        sectors: in how many of SECTORS directions a cloud has points; None of anything else, and of
            a cloud of fewer than POINTS_LEAST, which leaves some out by chance.
        form: an image's encoding and pixels, which a camera does not change; "" of anything else.
        turning: how well the times of a cloud's points fit their directions; None where that says
            nothing.
        damaged: it is an image that cannot be decoded.
    """

    size: int = 1
    nonfinite: int = 0
    fingerprint: int | None = None
    level: float | None = None
    spread: float = 0.0
    spreads: tuple[float, ...] = ()
    sectors: int | None = None
    turning: float | None = None
    form: str = ""
    damaged: bool = False

    @property
    def share_nonfinite(self) -> float:
        return self.nonfinite / self.size if self.size else 0.0

    def share_uniform(self, contrast: float) -> float:
        """Return the share of the blocks whose grey levels spread by less than that."""
        if not self.spreads:
            return 0.0
        return sum(spread < contrast for spread in self.spreads) / len(self.spreads)


def inspect(payload: object, spec: GuardSpec) -> tuple[object, Content]:
    """Return a payload without points or targets that are no numbers, and what it is in numbers.

    What the guard's thresholds ask nothing of is not looked at. A payload that is to be rejected
    for its points is not changed.
    """
    match payload:
        case PointCloud():
            content = _of_cloud(payload, spec)
            return _finite_cloud(payload) if _is_mended(content, spec) else payload, content
        case Targets():
            content = _of_targets(payload)
            return _finite_targets(payload) if _is_mended(content, spec) else payload, content
        case Image():
            return payload, _of_image(payload, seen=bool(spec.blind or spec.covered))
        case _:
            return payload, _of_small(payload)


def _of_cloud(cloud: PointCloud, spec: GuardSpec) -> Content:
    xyz = cloud.xyz
    with np.errstate(invalid="ignore"):  # infinite either way
        total = np.sum(xyz, dtype=np.float64)
    is_sound = np.isfinite(total) and bool(np.all(_timely(cloud)))
    size = cloud.count if is_sound else cloud.count - _empty_cells(cloud)
    nonfinite = 0 if is_sound else size - int(np.count_nonzero(_measured(cloud)))
    fingerprint = _fingerprint(xyz) if cloud.count else None
    counted = spec.covered and cloud.count >= POINTS_LEAST
    return Content(
        size,
        nonfinite,
        fingerprint,
        sectors=_sectors(xyz) if counted else None,
        turning=turning(cloud) if spec.turning else None,
    )


def _empty_cells(cloud: PointCloud) -> int:
    """Return how many cells of an organised cloud have no point: NaN is the word for that there."""
    if cloud.rows == 1:
        return 0
    x, y, z = cloud.xyz.T
    return int(np.count_nonzero(np.isnan(x) & np.isnan(y) & np.isnan(z)))


def _sectors(xyz: Coordinates) -> int:
    """Return in how many directions a sample of the points lies."""
    sample = xyz[:: 1 + len(xyz) // POINTS_SEEN]
    with np.errstate(invalid="ignore"):  # NaN is in no direction
        turns = np.arctan2(sample[:, 1], sample[:, 0]) / (2 * np.pi)
    turns = turns[np.isfinite(turns)]
    return len(np.unique(np.floor(turns * SECTORS).astype(np.int64) % SECTORS))


def _of_targets(targets: Targets) -> Content:
    if not targets.count:
        return Content(0)
    parts = (targets.xy, targets.range_rate, targets.velocity)
    nonfinite = targets.count - int(np.count_nonzero(_sound(targets)))
    data = b"".join(part.tobytes() for part in parts)
    return Content(targets.count, nonfinite, zlib.crc32(data))


def _is_mended(content: Content, spec: GuardSpec) -> bool:
    """Whether a payload goes on without some of its points."""
    return 0 < content.share_nonfinite <= spec.nonfinite


def _finite(positions: Coordinates) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(positions).all(axis=1))


def _timely(cloud: PointCloud) -> NDArray[np.bool_]:
    """Return which points were measured about when the message says; all where none has a time."""
    if cloud.seconds is None:
        return np.ones(1, bool)
    return np.asarray(np.abs(cloud.seconds) <= SWEEP_SECONDS)


def _measured(cloud: PointCloud) -> NDArray[np.bool_]:
    return _finite(cloud.xyz) & _timely(cloud)


def _finite_cloud(cloud: PointCloud) -> PointCloud:
    """Return a cloud without the points that are no numbers, or of no time."""
    kept = _measured(cloud)
    return replace(
        cloud,
        xyz=cloud.xyz[kept],
        intensity=None if cloud.intensity is None else cloud.intensity[kept],
        seconds=None if cloud.seconds is None else cloud.seconds[kept],
    )


def _sound(targets: Targets) -> NDArray[np.bool_]:
    """Return which targets are somewhere, and of which as much is told as of the others.

    What a sensor does not measure is NaN in all targets; in a few of them it is a fault.
    """
    sound = _finite(targets.xy)
    measured = (targets.sigma, targets.range_rate, targets.velocity, targets.strength)
    for column in measured:
        known = _finite(column.reshape(targets.count, -1))
        if known.any():
            sound &= known
    return sound


def _finite_targets(targets: Targets) -> Targets:
    """Return targets without those that are not sound; how many is told with them."""
    kept = _sound(targets)
    return Targets(
        xy=targets.xy[kept],
        sigma=targets.sigma[kept],
        range_rate=targets.range_rate[kept],
        velocity=targets.velocity[kept],
        strength=targets.strength[kept],
        ids=targets.ids[kept],
        left_out=targets.left_out + targets.count - int(np.count_nonzero(kept)),
    )


def _of_image(image: Image, *, seen: bool) -> Content:
    fingerprint = _fingerprint(image.data) if image.data.size else None
    size = max(1, image.width_px * image.height_px)
    if not seen:
        return Content(size, 0, fingerprint, form=f"{image.encoding} {size}")
    try:
        grey, size = image.grey(SIDE)
    except BROKEN:
        return Content(fingerprint=fingerprint, damaged=True)
    if not grey.size:
        return Content(0)
    spreads = tuple(float(block.std()) for block in _blocks(grey))
    level, spread = float(grey.mean()), float(grey.std())
    return Content(size, 0, fingerprint, level, spread, spreads, form=f"{image.encoding} {size}")


def _blocks(grey: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    rows = np.array_split(grey, BLOCKS)
    return [block for row in rows for block in np.array_split(row, BLOCKS, axis=1) if block.size]


def _of_small(payload: object) -> Content:
    """Return what is known of the readings of other sensors; none of them is large."""
    match payload:
        case Imu():
            data = payload.acceleration.tobytes() + payload.angular_rate.tobytes()
            is_number = bool(np.isfinite([payload.acceleration, payload.angular_rate]).all())
        case Fix():
            data = struct.pack("3d", payload.latitude, payload.longitude, payload.altitude)
            is_number = not payload.valid or math.isfinite(payload.latitude + payload.longitude)
        case Speed():
            data = struct.pack("2d", payload.speed, payload.yaw_rate)
            is_number = math.isfinite(payload.speed)
        case _:
            data, is_number = b"", True
    return Content(nonfinite=int(not is_number), fingerprint=zlib.crc32(data) if data else None)


def _fingerprint(array: Coordinates | NDArray[np.uint8]) -> int:
    """Return a number that is equal for equal arrays: of all of it, or of a sample of its rows."""
    sample = array if array.nbytes <= WHOLE_BYTES else array[::STRIDE]
    return zlib.crc32(sample.tobytes(), len(array) & 0xFFFFFFFF)
