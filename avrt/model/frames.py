"""Where the sensors are mounted: rigid transforms between frames, known before time starts.

A transform is 12 numbers, the rows of a 3 x 4 matrix [R | t] that takes a point from the child's
frame to the parent's: p_parent = R p_child + t, metres. Frames and transforms form a forest; two
frames of one tree are related by the path between them (REP 105 has the same model).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.errors import DataFault, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

Matrix = tuple[float, ...]

TURN_ERROR_MAX = 1e-3  # what rounding to a few digits leaves of a rotation
SAME_METRES, SAME_DEGREES = 0.001, 0.1  # closer transforms are the same, written differently
STATIC = "/tf_static"  # where ROS tells what does not move
IDENTITY: Matrix = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformSpec:
    """Where `child` is in `parent`.

    Attributes:
        matrix: 12 numbers, rows of [R | t] from child to parent, metres.
        origin: where it was read: a file and line, or a topic.
    """

    parent: str
    child: str
    matrix: Matrix
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A transform that disagrees with those before it.

    Attributes:
        known: the transform that they give for the same frames.
        metres, degrees: how far the two are apart.
    """

    refused: TransformSpec
    known: TransformSpec
    metres: float
    degrees: float

    def __str__(self) -> str:
        frames = f"{self.refused.child} in {self.refused.parent}"
        places = f"{self.known.origin} and {self.refused.origin}"
        apart = f"{self.metres:.3g} m and {self.degrees:.3g} deg apart"
        return f"{frames}: {places} are {apart}"


def merged(
    transforms: Iterable[TransformSpec],
) -> tuple[tuple[TransformSpec, ...], list[Contradiction]]:
    """Return those that say something new, and those that contradict the ones before them."""
    kept: list[TransformSpec] = []
    contradictions: list[Contradiction] = []
    for one in transforms:
        frames = Frames(kept)
        if not frames.connects(one.child, one.parent):
            kept.append(one)
            continue
        known = frames.between(one.child, one.parent)
        metres, degrees = apart(known, one.matrix)
        if metres > SAME_METRES or degrees > SAME_DEGREES:
            origin = next((k.origin for k in kept if _relates(k, one)), "other transforms")
            before = TransformSpec(parent=one.parent, child=one.child, matrix=known, origin=origin)
            contradictions.append(Contradiction(one, before, metres, degrees))
    return tuple(kept), contradictions


class Frames:
    """Answers how a point of one frame is written in another."""

    def __init__(self, transforms: Iterable[TransformSpec] = ()) -> None:
        """Take transforms of which no two relate the same frames."""
        self._neighbours: dict[str, dict[str, Matrix]] = {}
        self._told_by: list[str] = []
        for one in transforms:
            if one.origin and one.origin not in self._told_by:
                self._told_by.append(one.origin)
            self._neighbours.setdefault(one.child, {})[one.parent] = one.matrix
            self._neighbours.setdefault(one.parent, {})[one.child] = inverted(one.matrix)

    def between(self, source: str, target: str) -> Matrix:
        """Return the 12 numbers that take a point from `source` to `target`.

        Raises:
            DataFault: no chain of transforms leads from one to the other.
        """
        if source == target:
            return IDENTITY
        known = self._reached(source)
        if target not in known:
            raise DataFault("no_transform", self._missing(source, target, list(known)))
        return known[target]

    def connects(self, source: str, target: str) -> bool:
        """Tell whether a chain of transforms leads from one frame to the other."""
        return target in self._reached(source)

    def _reached(self, source: str) -> dict[str, Matrix]:
        """Return every frame that a chain of transforms leads to, with the way from `source`."""
        known = {source: IDENTITY}
        waiting = deque([source])
        while waiting:
            frame = waiting.popleft()
            for neighbour, matrix in self._neighbours.get(frame, {}).items():
                if neighbour not in known:
                    known[neighbour] = composed(matrix, known[frame])
                    waiting.append(neighbour)
        return known

    def _missing(self, source: str, target: str, reached: list[str]) -> str:
        what = f"no transform leads from frame {source!r} to {target!r}"
        if not self._neighbours:
            return f"{what}: none is declared; say where sensors are in calibration.frames"
        unknown = next((name for name in (source, target) if name not in self._neighbours), None)
        if unknown is not None:
            near = did_you_mean(unknown, self._neighbours)
            return f"{what}: no transform has {unknown!r}; {near}{self._remedy()}"
        return f"{what}: {source!r} leads to {', '.join(reached[1:])} only{self._remedy()}"

    def _remedy(self) -> str:
        """Return what to do where transforms of a log do not say where its sensors are."""
        if not any(origin.endswith("/tf") for origin in self._told_by):
            return ""
        if any(origin.endswith(STATIC) for origin in self._told_by):
            return ""
        told = ", ".join(self._told_by)
        return f"; told by {told}, none by {STATIC}: say where sensors are in calibration.frames"


def composed(first: Matrix, second: Matrix) -> Matrix:
    """Return `first` after `second`."""
    result: list[float] = []
    for i in range(0, 12, 4):
        a, b, c, d = first[i : i + 4]
        row = [a * second[j] + b * second[4 + j] + c * second[8 + j] for j in range(4)]
        row[3] += d
        result += row
    return tuple(result)


def inverted(matrix: Matrix) -> Matrix:
    """Return the transform back: R transposed, and -R^T t."""
    x, y, z = matrix[3::4]
    result: list[float] = []
    for j in range(3):
        a, b, c = matrix[j], matrix[4 + j], matrix[8 + j]
        result += [a, b, c, -(a * x + b * y + c * z)]
    return tuple(result)


def apart(first: Matrix, second: Matrix) -> tuple[float, float]:
    """Return how far two transforms are apart: metres, and degrees of the turn between them.

    The angle is 2 asin(|R - I| / (2 sqrt 2)) of the rotation between them (Frobenius norm), which
    unlike the arc cosine of the trace is exact for small angles.
    """
    between = composed(inverted(first), second)
    metres = math.dist(first[3::4], second[3::4])
    turned, still = (m[0:3] + m[4:7] + m[8:11] for m in (between, IDENTITY))
    half_sine = math.dist(turned, still) / (2 * math.sqrt(2))
    return metres, math.degrees(2 * math.asin(min(1.0, half_sine)))


def _relates(known: TransformSpec, one: TransformSpec) -> bool:
    return {known.child, known.parent} == {one.child, one.parent}


def placed(translation: tuple[float, ...], rotation: tuple[float, ...]) -> Matrix:
    """Return the transform of a child that is turned, then moved.

    Args:
        translation: x, y, z of the child's origin in the parent, metres.
        rotation: roll, pitch and yaw about the parent's fixed x, y and z in this order, degrees.
    """
    (sr, cr), (sp, cp), (sy, cy) = (
        (math.sin(a), math.cos(a)) for a in (math.radians(angle) for angle in rotation)
    )
    x, y, z = translation
    return (
        cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, x,
        sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, y,
        -sp, cp * sr, cp * cr, z,
    )  # fmt: skip


def turn_error(matrix: Matrix) -> float:
    """Return how far the left 3 x 3 numbers are from a rotation: the largest wrong product."""
    rows = [matrix[i : i + 3] for i in (0, 4, 8)]
    worst = 0.0
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            product = sum(a * b for a, b in zip(first, second, strict=True))
            worst = max(worst, abs(product - (i == j)))
    (a, b, c), (d, e, f), (g, h, k) = rows
    determinant = a * (e * k - f * h) - b * (d * k - f * g) + c * (d * h - e * g)
    return max(worst, abs(determinant - 1))
