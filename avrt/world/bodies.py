"""What things look like: every body is a few upright boxes, and flat marks painted on their sides.

A body's own frame: x forward, y left, z up, its origin on the ground below its middle, metres.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Colour = tuple[int, int, int]

GLASS, RUBBER, LAMP = (45, 55, 65), (28, 28, 30), (250, 245, 220)
BRAKE, TAIL = (255, 45, 35), (120, 25, 25)
SKIN, TROUSERS = (205, 160, 130), (50, 55, 75)
CLEARANCE = 0.22  # metres of air under a car
METAL, CLOTH, WALL, LEAVES, WOOD = 0.6, 0.35, 0.3, 0.25, 0.4  # reflectivity, 0 to 1
FRONT, REAR, LEFT, RIGHT = 0, 1, 2, 3


class Mark(NamedTuple):
    """A rectangle on a side of a box.

    Attributes:
        side: FRONT, REAR, LEFT or RIGHT.
        left, right: across the side, -1 to 1, as seen from outside.
        low, high: up the side, -1 to 1; beyond for what hangs below it.
        brakes: it is a brake light: `colour` is how it looks while braking.
    """

    side: int
    left: float
    right: float
    low: float
    high: float
    colour: Colour
    brakes: bool = False


class Part(NamedTuple):
    """An upright box of a body.

    Attributes:
        x, y: its middle; z: its lower face.
        reflectivity: for a LiDAR, 0 to 1.
    """

    x: float
    y: float
    z: float
    length: float
    width: float
    height: float
    colour: Colour
    reflectivity: float
    marks: tuple[Mark, ...] = ()


def car(length: float, width: float, height: float, colour: Colour) -> tuple[Part, ...]:
    """Return a car: a body with a cabin on it."""
    waist = 0.55 * height
    wheels = tuple(
        Mark(side, at - 0.15, at + 0.15, -1.6, -0.1, RUBBER)
        for side in (LEFT, RIGHT)
        for at in (-0.62, 0.62)
    )
    tail = tuple(
        Mark(REAR, at - 0.15, at + 0.15, 0.2, 0.7, BRAKE, brakes=True) for at in (-0.8, 0.8)
    )
    head = tuple(Mark(FRONT, at - 0.14, at + 0.14, 0.1, 0.6, LAMP) for at in (-0.78, 0.78))
    panes = (
        Mark(FRONT, -0.9, 0.9, -0.8, 0.75, GLASS),
        Mark(REAR, -0.85, 0.85, -0.6, 0.75, GLASS),
        Mark(LEFT, -0.9, 0.9, -0.7, 0.7, GLASS),
        Mark(RIGHT, -0.9, 0.9, -0.7, 0.7, GLASS),
    )
    lower = Part(
        0, 0, CLEARANCE, length, width, waist - CLEARANCE, colour, METAL, wheels + tail + head
    )
    cabin = Part(
        -0.06 * length, 0, waist, 0.56 * length, 0.88 * width, height - waist, colour, METAL, panes
    )
    return lower, cabin


def truck(length: float, width: float, height: float, colour: Colour) -> tuple[Part, ...]:
    """Return a truck: a cab and a box behind it."""
    cab = 0.22 * length
    wheels = tuple(
        Mark(side, at - 0.08, at + 0.08, -1.5, -0.75, RUBBER)
        for side in (LEFT, RIGHT)
        for at in (-0.75, -0.5)
    )
    tail = tuple(
        Mark(REAR, at - 0.12, at + 0.12, -0.98, -0.8, BRAKE, brakes=True) for at in (-0.8, 0.8)
    )
    front = (
        Mark(FRONT, -0.9, 0.9, 0.1, 0.8, GLASS),
        Mark(FRONT, -0.9, -0.6, -0.8, -0.5, LAMP),
        Mark(FRONT, 0.6, 0.9, -0.8, -0.5, LAMP),
    )
    windows = tuple(Mark(side, -0.3, 0.7, 0.1, 0.8, GLASS) for side in (LEFT, RIGHT))
    box = length - cab - 0.4
    white = (205, 205, 200)
    return (
        Part(-length / 2 + box / 2, 0, 0.9, box, width, height - 0.9, white, METAL, wheels + tail),
        Part(
            length / 2 - cab / 2,
            0,
            0.45,
            cab,
            0.96 * width,
            0.82 * height - 0.45,
            colour,
            METAL,
            front + windows,
        ),
    )


def cyclist(length: float, width: float, height: float, colour: Colour) -> tuple[Part, ...]:
    """Return a bicycle and who rides it."""
    neck = height - 0.25
    return (
        Part(0, 0, 0.0, length, 0.08, 0.7, RUBBER, METAL),
        Part(-0.1, 0, 0.6, 0.45, width, neck - 0.6, colour, CLOTH),
        Part(0.05, 0, neck, 0.22, 0.2, 0.25, SKIN, CLOTH),
    )


def pedestrian(length: float, width: float, height: float, colour: Colour) -> tuple[Part, ...]:
    """Return legs, trunk and head."""
    return (
        Part(0, 0, 0.0, 0.6 * length, 0.65 * width, 0.48 * height, TROUSERS, CLOTH),
        Part(0, 0, 0.48 * height, 0.65 * length, width, 0.37 * height, colour, CLOTH),
        Part(0.02, 0, 0.85 * height, 0.22, 0.18, 0.15 * height, SKIN, CLOTH),
    )


SHAPES: Mapping[str, Callable[[float, float, float, Colour], tuple[Part, ...]]] = {
    "car": car,
    "truck": truck,
    "cyclist": cyclist,
    "pedestrian": pedestrian,
}


def pole(height: float) -> tuple[Part, ...]:
    """Return a lamp post."""
    grey = (95, 98, 100)
    return (
        Part(0, 0, 0, 0.16, 0.16, height, grey, METAL),
        Part(0, 0.6, height, 0.2, 1.4, 0.12, grey, METAL),
    )


def tree(height: float, crown: float, colour: Colour) -> tuple[Part, ...]:
    """Return a trunk with leaves above the height of a truck."""
    return (
        Part(0, 0, 0, 0.35, 0.35, 0.45 * height, (85, 65, 50), WOOD),
        Part(0, 0, 0.42 * height, crown, crown, 0.58 * height, colour, LEAVES),
    )


def house(length: float, width: float, height: float, colour: Colour) -> tuple[Part, ...]:
    """Return a block with rows of windows towards the road, sunk into the ground a little."""
    marks = []
    columns, rows = max(1, int(length / 3)), max(1, int(height / 3))
    for side in (LEFT, RIGHT):
        for i in range(columns):
            for j in range(rows):
                x, z = (2 * i + 1) / columns - 1, (2 * j + 1) / rows - 1
                dx, dz = 0.32 / columns, 0.5 / rows
                marks.append(Mark(side, x - dx, x + dx, z - dz, z + dz, (70, 80, 95)))
    return (Part(0, 0, -0.5, length, width, height + 0.5, colour, WALL, tuple(marks)),)
