"""Fit a picture into a network's square input: scaled, padded, and cut into views if it is wide.

The picture is scaled once and keeps its aspect, so that `tiles` views side by side, neighbours
overlapping, span its width, or its height fills a view, whichever comes first. It is then cut into
as many views as that takes, which may be fewer: one view is the classic letterbox, the whole
picture above a grey strip. An object that one view shows in part, its neighbour shows whole if it
is narrower than the overlap (`suppression` merges what two views show).

A KITTI image is 3.3 times as wide as high: as a whole, a network of 416 pixels sees it at a third
of its resolution; three views show it at nine tenths.

Coordinates are edges of pixels, so scaling is a multiplication without offset: the picture's left
edge is 0 at every scale. Shape letters: N boxes (left, top, right, bottom), H and W of a view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERLAP = 0.2  # part of a view that its neighbour shows too


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the views of pictures of one size are.

    Attributes:
        picture: width and height of a picture, pixels.
        scaled: width and height it is scaled to.
        view: width and height of the network's input.
        lefts: left edge of each view in the scaled picture, pixels, from left to right.
    """

    picture: tuple[int, int]
    scaled: tuple[int, int]
    view: tuple[int, int]
    lefts: tuple[int, ...]

    def views(self, rgb: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        """Return what each view shows, (H, W, 3) uint8 RGB, without padding: H and W may be less.

        Args:
            rgb: the picture, (height, width, 3) uint8.
        """
        picture = PillowImage.fromarray(rgb)
        scaled = np.asarray(picture.resize(self.scaled, PillowImage.Resampling.BILINEAR))
        return [scaled[:, left : left + self.view[0]] for left in self.lefts]

    def shown(self, index: int) -> tuple[int, int]:
        """Return width and height of what a view shows, without padding."""
        return min(self.view[0], self.scaled[0] - self.lefts[index]), self.scaled[1]

    def to_picture(self, boxes: NDArray[np.float32], index: int) -> NDArray[np.float32]:
        """Return boxes of a view, (N, 4) float32, in pixels of the picture."""
        moved = boxes + np.array([self.lefts[index], 0] * 2, np.float32)
        return np.asarray(moved / self._factors())

    def to_view(self, boxes: NDArray[np.float32], index: int) -> NDArray[np.float32]:
        """Return boxes of the picture, (N, 4) float32, in pixels of a view."""
        scaled = boxes * self._factors()
        return np.asarray(scaled - np.array([self.lefts[index], 0] * 2, np.float32))

    def _factors(self) -> NDArray[np.float32]:
        x, y = (s / p for s, p in zip(self.scaled, self.picture, strict=True))
        return np.array([x, y, x, y], np.float32)


def layout(picture: tuple[int, int], view: tuple[int, int], tiles: int) -> Layout:
    """Return how pictures of one size are shown in at most `tiles` views, at least one.

    Sizes are width and height in pixels: of the picture, and of a view.
    """
    (width, height), (view_width, view_height) = picture, view
    span = view_width * (tiles - (tiles - 1) * OVERLAP)
    scale = min(span / width, view_height / height)
    scaled = max(1, round(width * scale)), max(1, round(height * scale))
    beyond = max(0, scaled[0] - view_width)
    count = min(tiles, 1 + math.ceil(beyond / (view_width * (1 - OVERLAP))))
    lefts = [round(beyond * i / max(1, count - 1)) for i in range(count)]
    return Layout(picture, scaled, view, tuple(lefts))


def canvas(view: NDArray[np.uint8], size: tuple[int, int], grey: int) -> NDArray[np.uint8]:
    """Return a view in the top left corner of a grey canvas of a width and height, (H, W, 3)."""
    full = np.full((size[1], size[0], 3), grey, np.uint8)
    full[: view.shape[0], : view.shape[1]] = view
    return full
