"""Camera images small enough for a page, with the tracks as they stood when each was taken.

An image is scaled to `WIDTH`, or `WIDTH_OF_MANY` where there are many, and encoded as JPEG anew.
Boxes of confirmed tracks are moved on from their sweep to the image by their velocity, as
`avrt.payload.projection` says, and projected with the camera's model; outlines are in pixels of the
scaled image.
"""

from __future__ import annotations

import base64
import io
import math
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

from avrt.payload import ImageDetections, Tracks
from avrt.payload.projection import box_corners, moved_box, projected_edges, seen_from
from avrt.report.page.tracks import rounded
from avrt.units import NS_PER_S

if TYPE_CHECKING:
    from avrt.model.frames import Frames
    from avrt.payload import Image
    from avrt.report.page.tracks import Made, Outputs

WIDTH, WIDTH_OF_MANY = 640, 512  # pixels
MANY = 120
QUALITY = 58
IMAGES_MAX = 240
BYTES_MAX = 2_300_000
FAR = 8_000  # pixels: what is farther outside is cut off
OLDEST_NS = NS_PER_S


def width_for(images: int) -> int:
    """Return how wide so many images may be, pixels."""
    return WIDTH if images <= MANY else WIDTH_OF_MANY


class Camera:
    """Makes the rows of one camera's images."""

    def __init__(self, outputs: Outputs, frames: Frames, frame: str, width: int) -> None:
        self._width = width
        self._frames = frames
        self._frame = frame
        self._tracks = outputs.of(Tracks)
        self._times = [one.message.stamp.capture_ns for one in self._tracks]
        self._found = {one.message.stamp.capture_ns: one for one in outputs.of(ImageDetections)}

    def row(self, image: Image, capture_ns: int) -> tuple[dict[str, object], int]:
        """Return one image with what is drawn into it, and its size in bytes.

        Raises:
            OSError, ValueError: it is no image that can be decoded.
        """
        pixels = image.pixels()
        height, width, _ = pixels.shape
        scale = min(1.0, self._width / width)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        picture = PillowImage.fromarray(np.ascontiguousarray(pixels)).resize(size)
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=QUALITY, optimize=True)
        data = buffer.getvalue()
        row: dict[str, object] = {
            "t": capture_ns,
            "width": size[0],
            "height": size[1],
            "jpeg": base64.b64encode(data).decode("ascii"),
            "boxes": self._boxes(image, capture_ns, scale),
            "found": self._detections(capture_ns, scale),
        }
        return row, len(data)

    def _boxes(self, image: Image, capture_ns: int, scale: float) -> list[list[object]]:
        """Return `[id, label, twelve edges]` of the tracks that can be seen."""
        made = self._newest(capture_ns)
        if made is None or image.info is None:
            return []
        stamp, tracks = made.message.stamp, made.message.payload
        assert isinstance(tracks, Tracks)
        shown = [one for one in tracks.objects if one.confirmed]
        if not shown or not self._frames.connects(stamp.frame, self._frame):
            return []
        seconds = (capture_ns - stamp.capture_ns) / NS_PER_S
        corners = np.stack([box_corners(moved_box(one, tracks, seconds)) for one in shown])
        matrix = self._frames.between(stamp.frame, self._frame)
        edges = projected_edges(corners, seen_from(image.info.projection, matrix)) * scale
        rows: list[list[object]] = []
        for one, outline in zip(shown, edges, strict=True):
            seen = outline[np.isfinite(outline).all(axis=(1, 2))]
            seen = seen[(np.abs(seen) < FAR).all(axis=(1, 2))]
            if len(seen):
                flat = np.round(seen).astype(np.int64).ravel().tolist()
                rows.append([one.id, one.label, flat])
        return rows

    def _newest(self, capture_ns: int) -> Made | None:
        """Return the tracks of the newest sweep at or before an image, if it is not old."""
        place = bisect_right(self._times, capture_ns)
        if not place or capture_ns - self._times[place - 1] > OLDEST_NS:
            return None
        return self._tracks[place - 1]

    def _detections(self, capture_ns: int, scale: float) -> list[list[object]]:
        """Return `[label, score, left, top, right, bottom]` of what a network found in it."""
        made = self._found.get(capture_ns)
        if made is None or made.message.stamp.frame != self._frame:
            return []
        found = made.message.payload
        assert isinstance(found, ImageDetections)
        placed = [math.isfinite(sum(box)) for box in found.boxes.tolist()]
        rows = zip(found.labels, found.scores.tolist(), found.boxes.tolist(), placed, strict=True)
        return [
            [label, rounded(score), *(round(edge * scale) for edge in box)]
            for label, score, box, is_placed in rows
            if is_placed
        ]
