"""A scene in motion, and what its sensors read: `World`.

Every reading is a function of scene, seed and time alone, noise included: a sensor's generator is
seeded by (seed, sensor, time), so readings do not depend on which were taken before. The vehicle is
on rails (it drives as the others do) unless somebody `Control`s it. Either way the world has to be
advanced before it is looked at, and nothing can be read later than it has come: a sweep lasts as
long as its beams turn, the inertial unit looks one step of the traffic ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.errors import SpecError
from avrt.payload import Box, Fix, Imu, PointCloud, Speed, Targets, TrueObject, Truth
from avrt.units import NS_PER_S
from avrt.world import camera, inertial, lidar, radar
from avrt.world.appearance import appearances
from avrt.world.boxes import Boxes
from avrt.world.lidar import HDL_32E
from avrt.world.mounting import CAMERA, ego_pose
from avrt.world.traffic import EGO, STEP_S, Traffic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.world.appearance import Appearance
    from avrt.world.lidar import Beams
    from avrt.world.mounting import Mounting, Pose
    from avrt.world.scenes import Scene
    from avrt.world.traffic import Control, Motion

    Array = NDArray[np.float64]

SECONDS_MAX = 60.0  # as long as the road is
TRUTH_GRID = 6  # decimals of a true number: the bytes do not depend on the last bit of a sine


class EgoPose(NamedTuple):
    """Where the vehicle is in the world: metres, quaternion x, y, z, w, m/s and rad/s."""

    place: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    motion: Speed


class World:
    """A scene that can be looked at from time 0 to as far as it was advanced.

    Args:
        scene: how it begins.
        seconds: how far it may be advanced, at most `SECONDS_MAX`.
        beams: of the LiDAR on the roof.

    Raises:
        SpecError: there is no road for so long, or no time in it.
    """

    def __init__(self, scene: Scene, seconds: float, *, beams: Beams = HDL_32E) -> None:
        if not 0 < seconds <= SECONDS_MAX:
            raise SpecError(
                f"expected more than 0 and at most {SECONDS_MAX:g} s, found {seconds:g}"
            )
        self.scene = scene
        self.seconds = seconds
        self.boxes = Boxes.of(scene)
        self._beams = beams
        self._traffic = Traffic(scene.road, scene.users, seconds)
        self._errors = inertial.Errors.drawn(np.random.default_rng((scene.seed, 99)), seconds)

    def advance(self, until_ns: int | None = None, control: Control | None = None) -> None:
        """Let everybody move on to a time, by default to the end and what is read up to there."""
        until = self.seconds + STEP_S if until_ns is None else until_ns / NS_PER_S
        self._traffic.advance(until, control)

    def lidar(self, at_ns: int) -> PointCloud:
        """Return the sweep that begins at this time, in the frame of the LiDAR."""
        motion = self._motion(at_ns, self._beams.seconds)
        ground = self.scene.road.ground
        return lidar.sweep(self._beams, ground, self.boxes, motion, self._rng(1, at_ns))

    def camera(self, at_ns: int, mounting: Mounting = CAMERA) -> bytes:
        """Return the image of this time as JPEG."""
        motion, rng = self._motion_at(at_ns), self._rng(2, at_ns)
        view = camera.View.of(self.scene, motion, mounting)
        return camera.render(self.scene, self.boxes, motion, rng, view)

    def appearances(self, at_ns: int, mounting: Mounting = CAMERA) -> tuple[Appearance, ...]:
        """Return where that image shows which road users, and how much of each."""
        motion = self._motion_at(at_ns)
        view = camera.View.of(self.scene, motion, mounting)
        return appearances(camera.drawn(self.scene, self.boxes, motion, view))

    def radar(self, at_ns: int) -> Targets:
        """Return the targets of this time, in the frame of the radar."""
        motion = self._motion_at(at_ns, -radar.PERIOD_S, 0.0)
        return radar.cycle(self.scene.road.ground, self.boxes, motion, self._rng(3, at_ns))

    def imu(self, at_ns: int) -> Imu:
        motion = self._motion_at(at_ns, -STEP_S, 0.0, STEP_S)
        return inertial.imu(self.scene.road.ground, motion, self._errors, self._rng(4, at_ns))

    def fix(self, at_ns: int) -> Fix:
        at = at_ns / NS_PER_S
        ground, motion = self.scene.road.ground, self._motion_at(at_ns)
        return inertial.fix(ground, motion, at, self._errors, self._rng(5, at_ns))

    def wheels(self, at_ns: int) -> Speed:
        motion = self._motion_at(at_ns, -STEP_S, 0.0)
        return inertial.wheels(motion, self._errors, self._rng(6, at_ns))

    def truth(self, at_ns: int) -> Truth:
        """Return all other road users in the vehicle's frame, by id; fixtures are none."""
        motion = self._motion_at(at_ns)
        pose = ego_pose(self.scene.road.ground, motion)
        found = [self._true(index, motion, pose) for index in range(1, len(self.scene.users))]
        return Truth(tuple(found))

    def ego(self, at_ns: int) -> EgoPose:
        """Return how the vehicle really moves."""
        motion = self._motion_at(at_ns, -STEP_S, 0.0)
        pose = ego_pose(self.scene.road.ground, motion)
        rate = float(motion.yaw[1, 0] - motion.yaw[0, 0]) / STEP_S
        x, y, z = np.round(pose.origin[1], TRUTH_GRID).tolist()
        turn = tuple(round(part, TRUTH_GRID + 3) for part in _quaternion(pose.axes[1]))
        moving = Speed(round(float(motion.speed[1, EGO]), TRUTH_GRID), round(rate, TRUTH_GRID))
        return EgoPose((x, y, z), (turn[0], turn[1], turn[2], turn[3]), moving)

    def outlines(self, at_ns: int) -> Array:
        """Return x, y, yaw, length and width of all users, the vehicle first: (U, 5)."""
        motion = self._motion_at(at_ns)
        sizes = np.array([user.size[:2] for user in self.scene.users])
        return np.column_stack([motion.x[0], motion.y[0], motion.yaw[0], sizes])

    def _true(self, index: int, motion: Motion, pose: Pose) -> TrueObject:
        user = self.scene.users[index]
        length, width, height = user.size
        x, y, yaw = (float(one[0, index]) for one in (motion.x, motion.y, motion.yaw))
        z = float(self.scene.road.ground.height(np.array([x]), np.array([y]))[0])
        middle = pose.seen(np.array([x, y, z + height / 2]))
        heading = pose.turned(np.array([np.cos(yaw), np.sin(yaw), 0.0]))
        velocity = pose.turned(np.array([motion.vx[0, index], motion.vy[0, index], 0.0]))
        turn = float(np.arctan2(heading[1], heading[0]))
        numbers = [*middle.tolist(), length, width, height, turn, *velocity[:2].tolist()]
        *box, vx, vy = (round(float(number), TRUTH_GRID) for number in numbers)
        return TrueObject(user.id, user.label, Box(*box), vx, vy)

    def _motion_at(self, at_ns: int, *offsets: float) -> Motion:
        return self._motion(at_ns, np.array(offsets or (0.0,)))

    def _motion(self, at_ns: int, offsets: Array) -> Motion:
        if at_ns < 0:
            raise SpecError(f"the world begins at 0 ns and cannot be read at {at_ns} ns")
        return self._traffic.at(at_ns / NS_PER_S + offsets)

    def _rng(self, sensor: int, at_ns: int) -> np.random.Generator:
        return np.random.default_rng((self.scene.seed, sensor, at_ns))


def _quaternion(axes: Array) -> tuple[float, float, float, float]:
    """Return a rotation as x, y, z, w; the vehicle never stands on its head, so w > 0 may be 0."""
    w = np.sqrt(max(0.0, 1 + axes[0, 0] + axes[1, 1] + axes[2, 2])) / 2
    if w < 1e-3:  # a half turn about the vertical axis
        return 0.0, 0.0, 1.0, 0.0
    x, y, z = axes[2, 1] - axes[1, 2], axes[0, 2] - axes[2, 0], axes[1, 0] - axes[0, 1]
    return float(x / (4 * w)), float(y / (4 * w)), float(z / (4 * w)), float(w)
