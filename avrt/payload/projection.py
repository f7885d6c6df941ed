"""Where points and boxes are in another frame and in an image: the geometry that views share.

Each box's twelve edges are moved into the camera's frame, cut off at a plane shortly before the
lens (the part behind a pinhole camera would appear upside down), and projected with the camera's
3x4 matrix (Hartley and Zisserman, "Multiple View Geometry", 2nd edition, section 6.1).

Shape letters: N boxes or points; a box has 8 corners and 12 edges.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.model.frames import IDENTITY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
    from avrt.payload.cloud import Coordinates
    from avrt.payload.objects import Box, Track, Tracks

NEAR_PLANE = 0.5  # metres in front of the lens
CORNERS = np.array(
    [
        [x, y, z]
        for z in (-0.5, 0.5)
        for x, y in ((0.5, 0.5), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.5))
    ]
)
EDGES = np.array(
    [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]]
)


def moved(xyz: Coordinates, matrix: Matrix) -> Coordinates:
    """Return points in another frame, (N, 3) of their type, metres; the same for the identity."""
    if matrix == IDENTITY:
        return xyz
    placed = np.array(matrix, xyz.dtype).reshape(3, 4)
    return np.asarray(np.matmul(xyz, placed[:, :3].T) + placed[:, 3])


def seen_from(projection: NDArray[np.float64], matrix: Matrix) -> NDArray[np.float64]:
    """Return the (3, 4) projection to pixels from a frame, given the way to the optical frame."""
    return np.asarray(projection @ np.array([*matrix, 0.0, 0.0, 0.0, 1.0]).reshape(4, 4))


def moved_box(track: Track, tracks: Tracks, seconds: float) -> Box:
    """Return where a track's box is after some time, in the frame that moves with the vehicle."""
    box, yaw_rate = track.box, tracks.yaw_rate
    ahead = track.vx - tracks.ego_speed + yaw_rate * box.y
    aside = track.vy - yaw_rate * box.x
    return replace(box, x=box.x + ahead * seconds, y=box.y + aside * seconds)


def box_corners(box: Box) -> NDArray[np.float64]:
    """Return the corners of a box, (8, 3) float64, metres, frame of the box."""
    cos, sin = np.cos(box.yaw), np.sin(box.yaw)
    local = CORNERS * [box.length, box.width, box.height]
    x = box.x + local[:, 0] * cos - local[:, 1] * sin
    y = box.y + local[:, 0] * sin + local[:, 1] * cos
    return np.stack([x, y, box.z + local[:, 2]], axis=1)


def projected_edges(
    corners: NDArray[np.float64], projection: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the edges in the image, (N, 12, 2, 2) pixels, NaN where all of an edge is behind.

    Args:
        corners: (N, 8, 3) float64, metres, any frame.
        projection: (3, 4) float64, pixels, from that frame; its third row gives the depth.
    """
    ends = (np.einsum("nki,ji->nkj", corners, projection[:, :3]) + projection[:, 3])[:, EDGES]
    depth = ends[..., 2]
    first, second = depth[..., 0], depth[..., 1]
    apart = np.where(first == second, 1.0, second - first)
    part = ((NEAR_PLANE - first) / apart)[..., None]
    cut = ends[..., 0, :] + part * (ends[..., 1, :] - ends[..., 0, :])
    behind = depth < NEAR_PLANE
    ends = np.where(behind[..., None], cut[..., None, :], ends)
    ends[behind.all(axis=-1)] = np.nan
    return np.asarray(ends[..., :2] / ends[..., 2:])
