"""What goes wrong in front of a sensor or within it: images, point clouds and radar targets.

| kind    | of      | what becomes of a reading                                                 |
|---------|---------|---------------------------------------------------------------------------|
| fill    | camera  | all its pixels have the grey level `by`                                   |
| cover   | camera  | so does the lower `share` of its rows, black: dirt on the lens            |
| shrink  | camera  | it has every second row and column only: another mode of the camera       |
| points  | lidar   | it has exactly `by` points: cut off, or those that it has again           |
| edge    | lidar   | what is further than `by` metres lies there, to the last bit of rounding  |
| turn    | lidar   | it is turned to the left by `by` degrees: a wrong mounting                |
| sector  | lidar   | a `share` of the full turn is missing, at a direction that is drawn       |
| shuffle | lidar   | the times of its points are in another order                              |
| underflow | lidar | the times of a `share` of its points are UNDERFLOW_SECONDS off            |
| ghosts  | radar   | it has `by` targets more, anywhere in front and at any speed              |

An image stays in the encoding that it has, where that is a common one, and is `rgb8` else. What
is no picture stays as it is: a broken one, and distances.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

from avrt.payload import Image, PointCloud, Targets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.campaign import Injection
    from avrt.payload.cloud import Coordinates

QUALITY = 95  # of a JPEG
FULL_TURN = 2 * np.pi
GHOST_RANGE, GHOST_SIDE, GHOST_SPEED = 150.0, 40.0, 30.0  # metres, metres either way, m/s
GHOST_SIGMA, GHOST_STRENGTH = 0.5, 10.0  # metres, dB
UNDERFLOW_SECONDS = 2**32 / 1e9  # 32 bits of nanoseconds below zero


def misread(payload: object, fault: Injection, rng: np.random.Generator) -> object:
    """Return a payload with what a fault makes of it; one of another sensor as it is."""
    match payload:
        case Image():
            return _of_camera(payload, fault)
        case PointCloud():
            return _of_lidar(payload, fault, rng)
        case Targets() if fault.kind == "ghosts":
            return _haunted(payload, round(fault.by), rng)
        case _:
            return payload


def _of_camera(image: Image, fault: Injection) -> Image:
    try:
        pixels = image.pixels()
    except (OSError, ValueError):
        return image
    match fault.kind:
        case "fill":
            return _drawn(np.full_like(pixels, round(fault.by)), image)
        case "cover":
            seen = pixels.copy()
            seen[round(len(seen) * (1 - fault.share)) :] = 0
            return _drawn(seen, image)
        case "shrink":
            return _drawn(pixels[::2, ::2], image)
        case _:
            return image


def _of_lidar(  # noqa: PLR0911 - one case a kind
    cloud: PointCloud, fault: Injection, rng: np.random.Generator
) -> PointCloud:
    match fault.kind:
        case "points":
            count = round(fault.by) if cloud.count else 0
            return _kept(cloud, np.resize(np.arange(cloud.count), count))
        case "edge":
            return _edged(cloud, fault.by, rng)
        case "turn":
            return replace(cloud, xyz=_turned(cloud.xyz, np.radians(fault.by)))
        case "sector":
            return _without_sector(cloud, fault.share, rng)
        case "shuffle":
            return replace(cloud, seconds=_of(cloud.seconds, rng.permutation(cloud.count)))
        case "underflow":
            return _underflown(cloud, fault.share, rng)
        case _:
            return cloud


def _drawn(pixels: NDArray[np.uint8], image: Image) -> Image:
    """Return an image of these pixels, (height, width, 3) uint8 RGB, encoded like another."""
    height_px, width_px, _ = pixels.shape
    match image.encoding:
        case "rgb8":
            data = pixels
        case "bgr8":
            data = pixels[..., ::-1]
        case "mono8":
            data = pixels[..., 1]
        case "jpeg" | "png" as encoding:
            file = io.BytesIO()
            PillowImage.fromarray(pixels).save(file, encoding, quality=QUALITY)
            return replace(image, data=np.frombuffer(file.getvalue(), np.uint8))
        case _:
            return Image("rgb8", pixels.reshape(-1), width_px, height_px, image.info)
    flat = np.ascontiguousarray(data).reshape(-1)
    return replace(image, data=flat, width_px=width_px, height_px=height_px)


def _edged(cloud: PointCloud, edge_m: float, rng: np.random.Generator) -> PointCloud:
    xyz = cloud.xyz.copy()
    ranges = np.hypot(xyz[:, 0], xyz[:, 1])
    beyond = (ranges > edge_m) & np.isfinite(ranges)
    edge = np.float32(edge_m)
    nearby = np.array([np.nextafter(edge, np.float32(0)), edge, np.nextafter(edge, edge * 2)])
    wanted = rng.choice(nearby, int(np.count_nonzero(beyond)))
    xyz[beyond, :2] *= (wanted / ranges[beyond])[:, np.newaxis]
    return replace(cloud, xyz=xyz)


def _turned(xyz: Coordinates, angle: float) -> Coordinates:
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    made = xyz.copy()
    made[:, :2] = xyz[:, :2] @ rotation.T.astype(xyz.dtype)
    return made


def _without_sector(cloud: PointCloud, share: float, rng: np.random.Generator) -> PointCloud:
    begin = rng.uniform(0, FULL_TURN)
    turned = (np.arctan2(cloud.xyz[:, 1], cloud.xyz[:, 0]) - begin) % FULL_TURN
    return _kept(cloud, np.flatnonzero(turned >= share * FULL_TURN))


def _kept(cloud: PointCloud, chosen: NDArray[np.intp]) -> PointCloud:
    return replace(
        cloud,
        xyz=cloud.xyz[chosen],
        intensity=_of(cloud.intensity, chosen),
        seconds=_of(cloud.seconds, chosen),
    )


def _of(column: NDArray[np.float32] | None, chosen: NDArray[np.intp]) -> NDArray[np.float32] | None:
    return None if column is None else column[chosen]


def _underflown(cloud: PointCloud, share: float, rng: np.random.Generator) -> PointCloud:
    if cloud.seconds is None:
        return cloud
    late = np.where(rng.random(cloud.count) < share, UNDERFLOW_SECONDS, 0)
    return replace(cloud, seconds=cloud.seconds + late.astype(np.float32))


def _haunted(targets: Targets, count: int, rng: np.random.Generator) -> Targets:
    xy = rng.uniform((1.0, -GHOST_SIDE), (GHOST_RANGE, GHOST_SIDE), (count, 2))
    speed = rng.uniform(-GHOST_SPEED, GHOST_SPEED, count)
    nowhere = np.full((count, 2), np.nan)
    return Targets(
        xy=_both(targets.xy, xy),
        sigma=_both(targets.sigma, np.full((count, 2), GHOST_SIGMA)),
        range_rate=_both(targets.range_rate, speed),
        velocity=_both(targets.velocity, nowhere),
        strength=_both(targets.strength, np.full(count, GHOST_STRENGTH)),
        ids=np.concatenate((targets.ids, np.full(count, -1, np.int64))),
        left_out=targets.left_out,
    )


def _both(known: NDArray[np.float32], more: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.concatenate((known, more.astype(np.float32)))
