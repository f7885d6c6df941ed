"""A camera that looks along the road: flat shapes drawn from far to near, with light and haze.

Pinhole without distortion. Ground first, in strips across the road from far to near, so that a
crest hides what lies behind it; then shadows; then boxes, each with the sides that face the camera
and the marks on them. A side is as light as the cosine to the sun makes it (Lambert), colours fade
into the haze with distance, and the sensor adds noise.

Shape letters: B boxes, F quadrangles, M marks, P corners of a polygon.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image as PillowImage
from PIL import ImageDraw

from avrt.payload import CameraInfo
from avrt.world import road
from avrt.world.bodies import TAIL
from avrt.world.boxes import FIXTURE, corners
from avrt.world.mounting import CAMERA, ego_pose
from avrt.world.traffic import EGO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from avrt.world.bodies import Mark
    from avrt.world.boxes import Boxes, Places
    from avrt.world.mounting import Mounting
    from avrt.world.scenes import Scene
    from avrt.world.traffic import Motion

    Array = NDArray[np.float64]

WIDTH_PX, HEIGHT_PX = 960, 480
FOCAL_PX = 620.0
CENTRE_PX = (480.0, 210.0)
JPEG_QUALITY = 88
NEAR, FAR = 0.4, 220.0  # metres along the axis: nearer is cut off, farther is not drawn
GRAIN = 5  # of 255: colours are off by up to so much, evenly
AMBIENT, DIRECT = 0.55, 0.5
FIXTURE_BEHIND = 5.0  # metres: what stands beside the road is drawn before who is on it
BRAKING = -0.4  # m/s^2

SKY_TOP, SKY_LOW = np.array([118, 164, 214.0]), np.array([205, 216, 224.0])
LAND, SHADOW = np.array([150.0, 164, 150]), np.array([48.0, 48, 50])
LOW, TALL = 0.5, 4.0  # metres: what throws a shadow on the ground below it
LAMP_LIGHT = 1.1
CLOSE, MIDDLE = 24.0, 80.0  # metres: strips are a quarter, a half, two dashes long
CLIP_PX = 20.0 * WIDTH_PX
FIELD, VERGE = (104, 128, 78), (122, 124, 116)
ASPHALT, PARKING, LINE = (92, 92, 96), (84, 84, 86), (222, 222, 218)

DASHES = 12.0  # metres from one dash of a line to the next
OVERLAP = 0.03  # of a strip's length: no crack is left between two
# The ground across the road: right edge, left edge, colour, whether it is a dashed line.
BANDS = (
    *((edge, edge + 25.0, FIELD, False) for edge in (-141.5, -116.5, -91.5, -66.5, -41.5)),
    (-16.5, road.ROAD_RIGHT - 2.2, FIELD, False),
    *((edge, edge + 25.0, FIELD, False) for edge in (16.2, 41.2, 66.2, 91.2, 116.2)),
    (road.ROAD_LEFT + 2.2, 16.2, FIELD, False),
    (road.ROAD_RIGHT - 2.2, road.ROAD_RIGHT, VERGE, False),
    (road.ROAD_LEFT, road.ROAD_LEFT + 2.2, VERGE, False),
    (road.ROAD_RIGHT, -2 * road.LANE_WIDTH, PARKING, False),
    (-2 * road.LANE_WIDTH, road.ROAD_LEFT, ASPHALT, False),
    (-2 * road.LANE_WIDTH - 0.08, -2 * road.LANE_WIDTH + 0.08, LINE, False),
    (road.LANE_WIDTH - 0.08, road.LANE_WIDTH + 0.08, LINE, False),
    (-0.16, -0.04, LINE, False),
    (0.04, 0.16, LINE, False),
    (-road.LANE_WIDTH - 0.07, -road.LANE_WIDTH + 0.07, LINE, True),
)

# The corners of a box, in the order of `boxes.SIGNS`, around each of its sides FRONT, REAR, LEFT,
# RIGHT and top, seen from outside; and where each side faces, in the box's own axes.
AROUND = np.array([[6, 4, 5, 7], [0, 2, 3, 1], [2, 6, 7, 3], [4, 0, 1, 5], [1, 3, 7, 5]])
NORMALS = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]])


def camera_info() -> CameraInfo:
    """Return the pinhole model; the image is free of distortion."""
    u, v = CENTRE_PX
    projection = np.array([[FOCAL_PX, 0, u, 0], [0, FOCAL_PX, v, 0], [0, 0, 1.0, 0]])
    return CameraInfo(WIDTH_PX, HEIGHT_PX, projection)


class View(NamedTuple):
    """From where the camera looks.

    Attributes:
        rotation: (3, 3): columns are the optical frame's axes in the world.
    """

    eye: Array
    rotation: Array

    @classmethod
    def of(cls, scene: Scene, motion: Motion, mounting: Mounting = CAMERA) -> View:
        """Return the view of the vehicle's camera; `motion` has one instant."""
        pose = ego_pose(scene.road.ground, motion)
        return cls(pose.point(mounting.place)[0], pose.axes[0] @ mounting.axes)

    def seen(self, points: Array) -> Array:
        """Return points of the world, (..., 3), in the optical frame, metres."""
        return np.asarray((points - self.eye) @ self.rotation)


class Shapes(NamedTuple):
    """Quadrangles in the order in which they are drawn.

    Attributes:
        corners: (F, 4, 3) metres, optical frame.
        colours: (F, 3), 0 to 255, lit by the sun.
        owners: (F,) index of the road user a shape is part of, or FIXTURE; a shadow is nobody's.
    """

    corners: Array
    colours: Array
    owners: NDArray[np.int64]


def render(
    scene: Scene, boxes: Boxes, motion: Motion, rng: np.random.Generator, view: View
) -> bytes:
    """Return the JPEG of what the camera sees.

    Args:
        scene: with road, sun and haze.
        boxes: everything that stands on the ground.
        motion: of all users at one instant, (1, U).
        rng: for the sensor's noise.
        view: from where the camera looks.
    """
    picture = _sky(view)
    _paint(ImageDraw.Draw(picture), drawn(scene, boxes, motion, view), scene.haze)
    return _encoded(picture, rng)


def drawn(scene: Scene, boxes: Boxes, motion: Motion, view: View) -> Shapes:
    """Return everything that is drawn before the sky, from far to near."""
    braking = np.append(motion.acceleration[0] < BRAKING, False)
    ground = _ground(view, scene, motion)
    bodies = _bodies(view, scene, boxes, boxes.places(motion), braking[boxes.owner])
    return Shapes(*(np.concatenate(pair) for pair in zip(ground, bodies, strict=True)))


def _sky(view: View) -> PillowImage.Image:
    """Return an image with sky above the horizon and far land below; its tilt is left out."""
    ahead_up, down_up = view.rotation[2, 2], view.rotation[2, 1]
    rows = (np.arange(HEIGHT_PX) - CENTRE_PX[1]) / FOCAL_PX
    up = (ahead_up + rows * down_up)[:, None]
    share = np.clip(up / 0.35, 0.0, 1.0)
    colours = np.where(up >= 0, SKY_LOW + (SKY_TOP - SKY_LOW) * share, LAND)
    whole = np.broadcast_to(np.rint(colours).astype(np.uint8)[:, None], (HEIGHT_PX, WIDTH_PX, 3))
    return PillowImage.fromarray(np.ascontiguousarray(whole), "RGB")


def _paint(draw: ImageDraw.ImageDraw, shapes: Shapes, haze: float) -> None:
    """Draw quadrangles; what is far is hazy."""
    depth = shapes.corners[..., 2]
    clear = np.exp(-np.maximum(depth.mean(axis=1), 0.0) / haze)[:, None]
    shades = np.rint(np.clip(shapes.colours, 0, 255) * clear + SKY_LOW * (1 - clear))
    colours = shades.astype(np.int64).tolist()
    for row, corners_px in polygons(shapes):
        r, g, b = colours[row]
        draw.polygon(corners_px, fill=(r, g, b))


def polygons(shapes: Shapes) -> Iterator[tuple[int, list[float]]]:
    """Yield which shapes are in the image, and their corners there: x, y, x, y, ... pixels.

    What is too near is cut off.
    """
    depth = shapes.corners[..., 2]
    is_whole = depth.min(axis=1) >= NEAR
    pixels = _pixels(shapes.corners, np.where(is_whole[:, None], depth, 1.0))
    low, high = pixels.min(axis=1), pixels.max(axis=1)
    shown = (high >= 0).all(axis=1) & (low <= (WIDTH_PX, HEIGHT_PX)).all(axis=1)
    cut = ~is_whole & (depth.max(axis=1) > NEAR)
    rows = np.nonzero((is_whole & shown) | cut)[0]
    flat = pixels.reshape(len(pixels), 8).tolist()
    for row in rows.tolist():
        corners_px = flat[row]
        if cut[row]:
            part = cut_near(shapes.corners[row])
            corners_px = np.clip(_pixels(part, part[:, 2]), -CLIP_PX, CLIP_PX).ravel().tolist()
        yield row, corners_px


def _pixels(points: Array, depth: Array) -> Array:
    """Return where points of the optical frame, (..., 3), are in the image, (..., 2)."""
    return np.asarray(points[..., :2] / depth[..., None] * FOCAL_PX + CENTRE_PX)


def _ground(view: View, scene: Scene, motion: Motion) -> Shapes:
    """Return field, verge, road and lines in strips from far to near."""
    cuts = _cuts(float(motion.s[0, EGO]))
    edges = np.array([band[:2] for band in BANDS])
    at, aside = np.meshgrid(cuts, edges.ravel(), indexing="ij")
    x, y, _ = scene.road.place(at, aside)
    seen = view.seen(np.stack([x, y, scene.road.ground.height(x, y)], axis=-1))
    seen = seen.reshape(len(cuts), len(BANDS), 2, 3)
    near, far = seen[:-1] + (seen[:-1] - seen[1:]) * OVERLAP, seen[1:]
    strips = np.stack([near[:, :, 0], near[:, :, 1], far[:, :, 1], far[:, :, 0]], axis=2)[::-1]
    is_gap = (cuts[:-1] % DASHES >= DASHES / 2)[::-1]
    dashed = np.array([band[3] for band in BANDS])
    shown = ~(is_gap[:, None] & dashed[None])
    colours = np.array([band[2] for band in BANDS], np.float64)
    lit = np.broadcast_to(colours, (*shown.shape, 3))[shown]
    return Shapes(strips[shown], lit, np.full(len(lit), FIXTURE))


def _cuts(s: float) -> Array:
    """Return where strips begin along the road, near ones shorter; they stay where they are."""
    found, at = [], DASHES / 2 * float(np.floor((s - 6.0) / (DASHES / 2)))
    while at < s + FAR:
        found.append(at)
        if at - s < MIDDLE:
            at += DASHES / 4 if at - s < CLOSE else DASHES / 2
        else:
            at = 2 * DASHES * float(np.floor(at / (2 * DASHES)) + 1)
    return np.array(found)


def _bodies(
    view: View, scene: Scene, boxes: Boxes, places: Places, braking: NDArray[np.bool_]
) -> Shapes:
    """Return shadows, sides and marks of the boxes from far to near; `braking` is (B,)."""
    middle = view.seen(places.middle)
    reach = np.linalg.norm(boxes.half, axis=1)
    ahead = (middle[:, 2] + reach > NEAR) & (middle[:, 2] - reach < FAR)
    wide = np.abs(middle[:, 0]) - 1.5 * reach < middle[:, 2] * WIDTH_PX / 2 / FOCAL_PX + 5.0
    shown = np.nonzero(ahead & wide)[0]
    distance = np.linalg.norm(middle[shown], axis=1)
    distance += FIXTURE_BEHIND * (boxes.owner[shown] == FIXTURE)
    order = shown[np.argsort(-distance, kind="stable")]
    standing = corners(places.middle[order], places.yaw[order], boxes.half[order])
    shadows = standing[:, [0, 2, 6, 4]]
    shadows[..., 2] = scene.road.ground.height(shadows[..., 0], shadows[..., 1]) + 0.01
    sides = view.seen(standing[:, AROUND])
    facing, light = _lit(view, scene, standing, places.yaw[order])
    found: list[Array] = []
    colours: list[Array] = []
    owners: list[int] = []
    for row, index in enumerate(order.tolist()):
        part = boxes.parts[index]
        if part.z <= LOW and part.height <= TALL:
            found.append(view.seen(shadows[row])[None])
            colours.append(SHADOW[None])
            owners.append(FIXTURE)
        for side in np.nonzero(facing[row])[0].tolist():
            found.append(sides[row, side][None])
            colours.append(np.array(part.colour)[None] * light[row, side])
            marks = [mark for mark in part.marks if mark.side == side]
            if marks:
                found.append(_marked(sides[row, side], marks))
                colours.append(
                    _painted(marks, float(light[row, side]), braking=bool(braking[index]))
                )
            owners += [int(boxes.owner[index])] * (1 + len(marks))
    if not found:
        return Shapes(np.zeros((0, 4, 3)), np.zeros((0, 3)), np.zeros(0, np.int64))
    return Shapes(np.concatenate(found), np.concatenate(colours), np.array(owners))


def _lit(view: View, scene: Scene, standing: Array, yaw: Array) -> tuple[NDArray[np.bool_], Array]:
    """Return which sides of boxes face the camera, and how light each is, (B, 5)."""
    cos, sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
    x, y, z = NORMALS.T
    up = np.broadcast_to(z, (len(yaw), len(z)))
    outward = np.stack([cos * x - sin * y, sin * x + cos * y, up], axis=-1)
    towards = view.eye - standing[:, AROUND[:, 0]]
    facing = (outward * towards).sum(axis=-1) > 0
    return facing, AMBIENT + DIRECT * np.maximum(0.0, outward @ np.array(scene.sun))


def _marked(side: Array, marks: list[Mark]) -> Array:
    """Return the marks on a side, (M, 4, 3), whose corners run from lower left to lower right."""
    across, up = (side[1] - side[0]) / 2, (side[3] - side[0]) / 2
    ends = np.array(
        [[(m.left, m.low), (m.right, m.low), (m.right, m.high), (m.left, m.high)] for m in marks]
    )
    return np.asarray(side[0] + across + up + ends[..., :1] * across + ends[..., 1:] * up)


def _painted(marks: list[Mark], light: float, *, braking: bool) -> Array:
    """Return the colours of marks, (M, 3)."""
    return np.array(
        [
            np.array(m.colour if braking or not m.brakes else TAIL)
            * (LAMP_LIGHT if m.brakes and braking else light)
            for m in marks
        ]
    )


def cut_near(points: Array) -> Array:
    """Return the part of a polygon, (P, 3) in the optical frame, that lies beyond `NEAR`."""
    kept: list[Array] = []
    for this, following in zip(points, np.roll(points, -1, axis=0), strict=True):
        if this[2] >= NEAR:
            kept.append(this)
        if (this[2] >= NEAR) != (following[2] >= NEAR):
            share = (NEAR - this[2]) / (following[2] - this[2])
            kept.append(this + share * (following - this))
    return np.array(kept).reshape(-1, 3)


def _encoded(picture: PillowImage.Image, rng: np.random.Generator) -> bytes:
    """Return a picture with the sensor's noise as JPEG."""
    grain = rng.integers(-GRAIN, GRAIN + 1, (HEIGHT_PX // 2, WIDTH_PX // 2), np.int8)
    grain = grain.repeat(2, 0).repeat(2, 1)[..., None]
    pixels = np.clip(np.asarray(picture), GRAIN, 255 - GRAIN)
    noisy = PillowImage.fromarray(pixels + grain.view(np.uint8), "RGB")
    data = io.BytesIO()
    noisy.save(data, "JPEG", quality=JPEG_QUALITY)
    return data.getvalue()
