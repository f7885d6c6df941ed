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

from avrt.model.frames import Frames
from avrt.model.stage import Stage
from avrt.payload import ImageBoxes
from avrt.stages.camera.detector import Detector
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.frames import Matrix
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


class Overlay(Stage):
    """Project confirmed tracks into the image."""

    def __init__(self) -> None:
        self.frames = Frames()

    def calibrate(self, frames: Frames) -> None:
        self.frames = frames

    def process(self, image: Message[Image], tracks: Message[Tracks] | None) -> ImageBoxes:
        """Return the outlines in pixels; none without tracks or without a camera model.

        Raises:
            DataFault: no transform leads from the frame of the tracks to that of the image.
        """
        info = image.payload.info
        shown = [] if tracks is None else [one for one in tracks.payload.objects if one.confirmed]
        if tracks is None or info is None or not shown:
            return ImageBoxes(np.zeros((0, 12, 2, 2), np.float32), ())
        later_ns = image.stamp.capture_ns - tracks.stamp.capture_ns
        boxes = [moved_box(one, tracks.payload, later_ns / NS_PER_S) for one in shown]
        corners = np.stack([box_corners(box) for box in boxes])
        matrix = self.frames.between(tracks.stamp.frame, image.stamp.frame)
        edges = projected_edges(corners, seen_from(info.projection, matrix))
        visible = np.nonzero(np.isfinite(edges).any(axis=(1, 2, 3)))[0]
        labels = tuple(f"{shown[i].id} {shown[i].label}" for i in visible)
        return ImageBoxes(edges[visible].astype(np.float32), labels)


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
