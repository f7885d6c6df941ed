"""All bodies of a world as one table of upright boxes, to be cast rays at and drawn.

A box stands on the ground below the middle of its body and turns with it. Boxes of fixtures never
move; those of road users are placed anew for each instant.

Shape letters: B boxes, U users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.world.bodies import SHAPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.world.bodies import Part
    from avrt.world.scenes import Scene
    from avrt.world.traffic import Motion

    Array = NDArray[np.float64]

FIXTURE = -1


class Places(NamedTuple):
    """Where boxes are at one instant.

    Attributes:
        middle: (B, 3) metres, world frame.
        yaw: (B,) radians.
        velocity: (B, 2) m/s, world frame.
    """

    middle: Array
    yaw: Array
    velocity: Array


@dataclass(frozen=True)
class Boxes:
    """The table.

    Attributes:
        parts: what each box looks like.
        owner: (B,) index of the road user it belongs to, or FIXTURE.
        half: (B, 3) half its length, width and height, metres.
        reflectivity: (B,) 0 to 1.
    """

    parts: tuple[Part, ...]
    owner: NDArray[np.int64]
    half: Array
    reflectivity: Array
    _offset: Array
    _fixed: Places
    _scene: Scene

    @classmethod
    def of(cls, scene: Scene) -> Boxes:
        """Return the boxes of a scene but for those of the vehicle itself."""
        parts: list[Part] = []
        owner: list[int] = []
        stands: list[tuple[float, float, float]] = []
        for fixture in scene.fixtures:
            s, d = np.array([fixture.s]), np.array([fixture.d])
            x, y, heading = (float(one[0]) for one in scene.road.place(s, d))
            for part in fixture.parts:
                parts.append(part)
                owner.append(FIXTURE)
                stands.append((x, y, heading + fixture.turn))
        for index, user in enumerate(scene.users[1:], start=1):
            for part in SHAPES[user.label](*user.size, user.colour):
                parts.append(part)
                owner.append(index)
                stands.append((0.0, 0.0, 0.0))
        table = np.array([part[:6] for part in parts], np.float64)
        half = table[:, 3:] / 2
        offset = table[:, :3] + [0.0, 0.0, 1.0] * half
        still = np.zeros((len(parts), 2))
        made = cls(
            parts=tuple(parts),
            owner=np.array(owner),
            half=half,
            reflectivity=np.array([part.reflectivity for part in parts]),
            _offset=offset,
            _fixed=Places(np.zeros_like(offset), np.zeros(len(parts)), still),
            _scene=scene,
        )
        at = np.array(stands)
        fixed = made._placed(at[:, 0], at[:, 1], at[:, 2], still)
        object.__setattr__(made, "_fixed", fixed)
        return made

    def places(self, motion: Motion, index: int = 0) -> Places:
        """Return where all boxes are at the instant `index` of a motion."""
        moving = self.owner >= 0
        user = self.owner[moving]
        middle, yaw, velocity = (one.copy() for one in self._fixed)
        velocity[moving] = np.stack([motion.vx[index, user], motion.vy[index, user]], axis=-1)
        x, y, turn = (one[index, user] for one in (motion.x, motion.y, motion.yaw))
        placed = self._placed(x, y, turn, velocity[moving], self._offset[moving])
        middle[moving], yaw[moving] = placed.middle, placed.yaw
        return Places(middle, yaw, velocity)

    def _placed(
        self, x: Array, y: Array, yaw: Array, velocity: Array, offset: Array | None = None
    ) -> Places:
        """Return the boxes of bodies that stand at places of the ground."""
        offset = self._offset if offset is None else offset
        cos, sin = np.cos(yaw), np.sin(yaw)
        middle = np.stack(
            [
                x + cos * offset[:, 0] - sin * offset[:, 1],
                y + sin * offset[:, 0] + cos * offset[:, 1],
                self._scene.road.ground.height(x, y) + offset[:, 2],
            ],
            axis=-1,
        )
        return Places(middle, yaw, velocity)


def corners(middle: Array, yaw: Array, half: Array) -> Array:
    """Return the corners of boxes, (B, 8, 3) metres, in the frame of their middles."""
    local = SIGNS[None] * half[:, None]
    cos, sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
    x = cos * local[..., 0] - sin * local[..., 1]
    y = sin * local[..., 0] + cos * local[..., 1]
    return np.stack([x, y, local[..., 2]], axis=-1) + middle[:, None]


def _signs() -> Array:
    return np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


SIGNS = _signs()


def folded(angle: Array) -> Array:
    """Return angles in -pi to pi."""
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)
