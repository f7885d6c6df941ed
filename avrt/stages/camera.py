"""Draw what is tracked into the camera's image: the `Overlay` stage; `Detector` is here by name.

Each box's twelve edges are moved into the camera's frame, cut off at a plane shortly before the
lens (the part behind a pinhole camera would appear upside down), and projected with the camera's
3x4 matrix (Hartley and Zisserman, "Multiple View Geometry", 2nd edition, section 6.1). The tracks
that an image finds are older than it; each box is moved on by its velocity relative to the ego
vehicle, so that it stands where the object was when the image was taken.

Shape letters: N boxes; a box has 8 corners and 12 edges.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import SpecError
from avrt.model.stage import Stage
from avrt.payload import ImageBoxes
from avrt.stages.image_detector import Detector
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import Box, Image, Track, Tracks

__all__ = ["Detector", "Overlay"]

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
AHEAD = ((0.0, -1.0, 0.0, 0.0), (0.0, 0.0, -1.0, 0.0), (1.0, 0.0, 0.0, 0.0))


class Overlay(Stage):
    """Project confirmed tracks into the image.

    Args:
        lidar_to_camera: 3 x 4 rigid transform from the tracks' frame to the rectified camera's
            optical frame, rotation and metres; the default is a camera in the LiDAR's place that
            looks along x.
    """

    def __init__(self, *, lidar_to_camera: Sequence[Sequence[float]] = AHEAD) -> None:
        key = ("lidar_to_camera",)
        try:
            matrix = np.array(lidar_to_camera, np.float64)
        except (TypeError, ValueError) as error:
            raise SpecError("expected 3 rows of 4 numbers", key) from error
        if matrix.shape != (3, 4):
            raise SpecError(f"expected 3 rows of 4 numbers, found the shape {matrix.shape}", key)
        turn = matrix[:, :3]
        if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-3) or np.linalg.det(turn) < 0:
            raise SpecError("expected a rotation in the left 3 x 3 numbers", key)
        self.lidar_to_camera = np.vstack([matrix, [0.0, 0.0, 0.0, 1.0]])

    def process(self, image: Message[Image], tracks: Message[Tracks] | None) -> ImageBoxes:
        """Return the outlines in pixels; none without tracks or without a camera model."""
        info = image.payload.info
        shown = [] if tracks is None else [one for one in tracks.payload.objects if one.confirmed]
        if tracks is None or info is None or not shown:
            return ImageBoxes(np.zeros((0, 12, 2, 2), np.float32), ())
        later_ns = image.stamp.capture_ns - tracks.stamp.capture_ns
        ego_speed = tracks.payload.ego_speed
        boxes = [moved_box(one, ego_speed, later_ns / NS_PER_S) for one in shown]
        corners = np.stack([box_corners(box) for box in boxes])
        edges = projected_edges(corners, info.projection @ self.lidar_to_camera)
        visible = np.nonzero(np.isfinite(edges).any(axis=(1, 2, 3)))[0]
        labels = tuple(f"{shown[i].id} {shown[i].label}" for i in visible)
        return ImageBoxes(edges[visible].astype(np.float32), labels)


def moved_box(track: Track, ego_speed: float, seconds: float) -> Box:
    """Return where a track's box is after some time, in the moving sensor's frame."""
    ahead = (track.vx - ego_speed) * seconds
    return replace(track.box, x=track.box.x + ahead, y=track.box.y + track.vy * seconds)


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
