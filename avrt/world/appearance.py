"""How the road users look in the camera's image: where each is, and how much of it can be seen.

The shapes of the picture are painted once more, in the same order, with the numbers of their owners
instead of colours: what is left of a number is what can be seen of that user (an item buffer:
Weghorst, Hooper and Greenberg, ACM Transactions on Graphics 3(1), 1984). Shadows hide what they
are painted over, as they do in the picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw

from avrt.world.boxes import FIXTURE
from avrt.world.camera import HEIGHT_PX, WIDTH_PX, polygons

if TYPE_CHECKING:
    from avrt.world.camera import Shapes

Rectangle = tuple[float, float, float, float]


class Appearance(NamedTuple):
    """A road user in the image.

    Attributes:
        user: its index in the scene.
        box: left, top, right, bottom of what of it lies within the image, hidden or not, pixels.
        inside: share of its upright outline that lies within the image, 0 to 1.
        visible: share of its pixels in the image that nothing hides, 0 to 1.
    """

    user: int
    box: Rectangle
    inside: float
    visible: float


def appearances(shapes: Shapes) -> tuple[Appearance, ...]:
    """Return the road users of which at least a pixel would be in the image, by index."""
    outlines: dict[int, list[list[float]]] = {}
    items = PillowImage.new("I", (WIDTH_PX, HEIGHT_PX), FIXTURE)
    draw = ImageDraw.Draw(items)
    for row, corners_px in polygons(shapes):
        owner = int(shapes.owners[row])
        draw.polygon(corners_px, fill=owner)
        if owner != FIXTURE:
            outlines.setdefault(owner, []).append(corners_px)
    seen = np.bincount(np.asarray(items).ravel() - FIXTURE, minlength=max(outlines, default=0) + 2)
    found = []
    for owner, parts in sorted(outlines.items()):
        box, inside = _bounds(parts)
        pixels = _pixel_count(parts, box)
        if pixels:
            visible = float(seen[owner - FIXTURE]) / pixels
            found.append(Appearance(owner, box, inside, visible))
    return tuple(found)


def _bounds(parts: list[list[float]]) -> tuple[Rectangle, float]:
    """Return the outline of polygons within the image, and which share of it that is."""
    x, y = (np.array([value for part in parts for value in part[axis::2]]) for axis in (0, 1))
    wide, high = float(np.ptp(x)), float(np.ptp(y))
    x, y = np.clip(x, 0, WIDTH_PX), np.clip(y, 0, HEIGHT_PX)
    share = float(np.ptp(x) * np.ptp(y)) / max(wide * high, 1e-9)
    return (float(x.min()), float(y.min()), float(x.max()), float(y.max())), share


def _pixel_count(parts: list[list[float]], box: Rectangle) -> int:
    """Return how many pixels polygons cover together within a box."""
    left, top = int(box[0]), int(box[1])
    width, height = min(WIDTH_PX, int(box[2]) + 1) - left, min(HEIGHT_PX, int(box[3]) + 1) - top
    if width <= 0 or height <= 0:
        return 0
    mask = PillowImage.new("1", (width, height))
    draw = ImageDraw.Draw(mask)
    for part in parts:
        moved = np.array(part).reshape(-1, 2) - (left, top)
        draw.polygon(moved.ravel().tolist(), fill=1)
    return int(np.asarray(mask).sum())
