"""A camera that looks along the road: flat shapes, drawn from far to near, as JPEG.

Camera optical frame: z forward, x right, y down, pixels from the upper left corner. The camera
looks along the vehicle's x axis and sits a little ahead of and below the LiDAR, as in KITTI.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw

from avrt.payload import CameraInfo
from avrt.world.scene import LANE_WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.payload import Box
    from avrt.world.scene import Scene, Truth

WIDTH_PX, HEIGHT_PX = 640, 192
FOCAL_PX = 372.0
CENTRE_PX = (320.0, 80.0)
JPEG_QUALITY = 85
NEAR = 0.5  # metres: what is nearer is cut off
FAR = 150.0  # metres
DASH_SPACING, DASH_LENGTH = 12.0, 4.0  # metres

# Rows: x, y, z of the camera from x, y, z, 1 of the LiDAR: 0.27 m ahead of it, 0.08 m below.
LIDAR_TO_CAMERA = np.array([[0.0, -1.0, 0.0, 0.0], [0.0, 0.0, -1.0, -0.08], [1.0, 0.0, 0.0, -0.27]])

SKY, FIELD, ROAD, LINE = (150, 190, 230), (95, 125, 75), (80, 80, 85), (225, 225, 225)
POLE, BRAKE_LIGHT = (60, 60, 60), (255, 40, 30)
PAINT = ((170, 60, 50), (70, 90, 150), (190, 190, 195), (60, 120, 80))

# Corners of the faces of a box by sign of x, y, z, and how light a face is.
_FACES = (
    (((-1, 1, -1), (-1, -1, -1), (-1, -1, 1), (-1, 1, 1)), 1.0),
    (((1, 1, -1), (1, -1, -1), (1, -1, 1), (1, 1, 1)), 0.9),
    (((-1, 1, -1), (1, 1, -1), (1, 1, 1), (-1, 1, 1)), 0.75),
    (((-1, -1, -1), (1, -1, -1), (1, -1, 1), (-1, -1, 1)), 0.75),
    (((-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)), 1.15),
)


def camera_info() -> CameraInfo:
    """Return the pinhole model; the image is free of distortion."""
    projection = np.array(
        [[FOCAL_PX, 0, CENTRE_PX[0], 0], [0, FOCAL_PX, CENTRE_PX[1], 0], [0, 0, 1.0, 0]]
    )
    return CameraInfo(WIDTH_PX, HEIGHT_PX, projection)


def render(scene: Scene, at_ns: int) -> bytes:
    """Return the JPEG of what the camera sees at this time, ns since the scene's start."""
    picture = PillowImage.new("RGB", (WIDTH_PX, HEIGHT_PX), SKY)
    draw = ImageDraw.Draw(picture)
    _draw_ground(draw, scene, at_ns)
    things: list[tuple[float, Box, Truth | None]] = [
        (box.x, box, None) for box in scene.pole_boxes(at_ns)
    ]
    things += [(truth.box.x, truth.box, truth) for truth in scene.truth(at_ns)]
    for x, box, truth in sorted(things, key=lambda thing: -thing[0]):
        if -box.length < x < FAR:
            _draw_box(draw, box, POLE if truth is None else PAINT[truth.id % len(PAINT)])
            if truth is not None and truth.braking:
                _draw_brake_lights(draw, box)
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=JPEG_QUALITY)
    return data.getvalue()


def _draw_ground(draw: ImageDraw.ImageDraw, scene: Scene, at_ns: int) -> None:
    def strip(y_from: float, y_to: float, x_from: float, x_to: float) -> list[list[float]]:
        corners = ((x_from, y_from), (x_from, y_to), (x_to, y_to), (x_to, y_from))
        return [[x, y, scene.road_z(x)] for x, y in corners]

    horizon = CENTRE_PX[1] - FOCAL_PX * scene.slope
    draw.rectangle((0, horizon, WIDTH_PX, HEIGHT_PX), fill=FIELD)
    _draw_shape(draw, strip(-1.5 * LANE_WIDTH, 2.6 * LANE_WIDTH, 0.0, 10 * FAR), ROAD)
    phase = scene.ego_x(at_ns) % DASH_SPACING
    for y in (0.5 * LANE_WIDTH, 1.5 * LANE_WIDTH):
        for x in np.arange(-phase, FAR, DASH_SPACING).tolist():
            _draw_shape(draw, strip(y - 0.07, y + 0.07, x, x + DASH_LENGTH), LINE)


def _draw_box(draw: ImageDraw.ImageDraw, box: Box, colour: tuple[int, int, int]) -> None:
    faces = []
    for signs, light in _FACES:
        corners = _corners(box, signs)
        distance = float(np.linalg.norm(np.mean(corners, axis=0)))
        shade = tuple(min(255, int(part * light)) for part in colour)
        faces.append((distance, corners, shade))
    for _, corners, shade in sorted(faces, key=lambda face: -face[0]):
        _draw_shape(draw, corners, shade)


def _draw_brake_lights(draw: ImageDraw.ImageDraw, box: Box) -> None:
    for side in (-0.8, 0.8):
        signs = [
            (-1, side + dy, dz) for dy, dz in ((-0.15, 0), (0.15, 0), (0.15, 0.2), (-0.15, 0.2))
        ]
        _draw_shape(draw, _corners(box, signs), BRAKE_LIGHT)


def _corners(box: Box, signs: object) -> list[list[float]]:
    half = np.array([box.length, box.width, box.height]) / 2
    corners: list[list[float]] = (np.array([box.x, box.y, box.z]) + np.array(signs) * half).tolist()
    return corners


def _draw_shape(
    draw: ImageDraw.ImageDraw, corners: list[list[float]], colour: tuple[int, ...]
) -> None:
    """Fill a polygon given in the LiDAR's frame, (n, 3) metres; what is too near is cut off."""
    points = np.c_[np.array(corners), np.ones(len(corners))] @ LIDAR_TO_CAMERA.T
    seen = _cut_near(points)
    if len(seen) >= 3:
        pixels = seen[:, :2] / seen[:, 2:] * FOCAL_PX + CENTRE_PX
        draw.polygon([(u, v) for u, v in pixels.tolist()], fill=colour)


def _cut_near(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of a polygon, (n, 3) in the camera's frame, that lies beyond `NEAR`."""
    kept: list[NDArray[np.float64]] = []
    for this, following in zip(points, np.roll(points, -1, axis=0), strict=True):
        if this[2] >= NEAR:
            kept.append(this)
        if (this[2] >= NEAR) != (following[2] >= NEAR):
            share = (NEAR - this[2]) / (following[2] - this[2])
            kept.append(this + share * (following - this))
    return np.array(kept)
