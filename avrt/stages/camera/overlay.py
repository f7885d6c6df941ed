"""Draw what is tracked into the camera's image: the `Overlay` stage; `Detector` is here by name.

The tracks that an image finds are older than it; each box is moved on by its velocity relative to
the ego vehicle, so that it stands where the object was when the image was taken. How a box is
projected is in `avrt.payload.projection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.model.frames import Frames
from avrt.model.stage import Stage
from avrt.payload import ImageBoxes
from avrt.payload.projection import box_corners, moved_box, projected_edges, seen_from
from avrt.stages.camera.detector import Detector
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from avrt.model.message import Message
    from avrt.payload import Image, Tracks

__all__ = ["Detector", "Overlay"]


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
