"""Where the sensors are mounted: rigid transforms between frames, known before time starts.

A transform is 12 numbers, the rows of a 3 x 4 matrix [R | t] that takes a point from the child's
frame to the parent's: p_parent = R p_child + t, metres. Frames and transforms form a forest; two
frames of one tree are related by the path between them (REP 105 has the same model).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from avrt.errors import DataFault, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

Matrix = tuple[float, ...]

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


class Frames:
    """Answers how a point of one frame is written in another."""

    def __init__(self, transforms: Iterable[TransformSpec] = ()) -> None:
        """Take transforms of which no two relate the same frames."""
        self._neighbours: dict[str, dict[str, Matrix]] = {}
        for one in transforms:
            self._neighbours.setdefault(one.child, {})[one.parent] = one.matrix
            self._neighbours.setdefault(one.parent, {})[one.child] = inverted(one.matrix)

    def between(self, source: str, target: str) -> Matrix:
        """Return the 12 numbers that take a point from `source` to `target`.

        Raises:
            DataFault: no chain of transforms leads from one to the other.
        """
        if source == target:
            return IDENTITY
        known = {source: IDENTITY}
        waiting = deque([source])
        while waiting:
            frame = waiting.popleft()
            for neighbour, matrix in self._neighbours.get(frame, {}).items():
                if neighbour not in known:
                    known[neighbour] = composed(matrix, known[frame])
                    waiting.append(neighbour)
        if target not in known:
            raise DataFault("no_transform", self._missing(source, target, list(known)))
        return known[target]

    def _missing(self, source: str, target: str, reached: list[str]) -> str:
        what = f"no transform leads from frame {source!r} to {target!r}"
        unknown = next((name for name in (source, target) if name not in self._neighbours), None)
        if unknown is not None:
            return f"{what}: {unknown!r} is in none; {did_you_mean(unknown, self._neighbours)}"
        return f"{what}: {source!r} leads to {', '.join(reached[1:])} only"


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
