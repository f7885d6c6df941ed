"""Annotations of nuScenes as ground truth: boxes in the vehicle's frame, at each keyframe.

The velocity of a box is the difference of the boxes before and after it, or of itself and one of
them, over ground, unless they lie more than `APART_S` apart for each step (nuscenes-devkit,
`box_velocity`). A box's own frame has x ahead; its size is told as width, length, height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avrt.logs.nuscenes.poses import Place, place_of
from avrt.logs.nuscenes.tables import one_of
from avrt.payload import Box, TrueObject, Truth

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from avrt.logs.nuscenes.tables import Row, Tables

APART_S = 1.5
LABELS = {
    "human.pedestrian": "pedestrian",
    "vehicle.bicycle": "cyclist",
    "vehicle.motorcycle": "cyclist",
    "vehicle.car": "car",
    "vehicle.emergency.police": "car",
    "vehicle": "truck",
}
"""By the beginning of a category's name; the first that fits, and "unknown" of none."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One box: where it is in the map, and its width, length and height (3,), metres."""

    place: Place
    size: NDArray[np.float64]
    id: int
    label: str


class Annotations:
    """The boxes of one scene, by sample."""

    def __init__(self, tables: Tables, samples: Sequence[tuple[str, int]]) -> None:
        """Read the boxes of samples: token and time (ns), in order.

        Raises:
            InputError: a table is missing or damaged.
        """
        self._at_ns = [at_ns for _, at_ns in samples]
        numbers = {token: number for number, (token, _) in enumerate(samples)}
        rows = list(
            tables.rows("sample_annotation", lambda one: one.get("sample_token") in numbers)
        )
        rows.sort(key=lambda row: numbers[row.text("sample_token")])
        instances = tables.by_token("instance", {row.text("instance_token") for row in rows})
        categories = tables.by_token("category")
        labels = {token: _label(row, categories) for token, row in instances.items()}
        ids: dict[str, int] = {}
        self._boxes: list[dict[int, Annotation]] = [{} for _ in samples]
        for row in rows:
            token = row.text("instance_token")
            name = ids.setdefault(token, len(ids) + 1)
            box = Annotation(place_of(row), row.numbers("size", 3), name, labels[token])
            self._boxes[numbers[row.text("sample_token")]][name] = box

    @property
    def count(self) -> int:
        return sum(map(len, self._boxes))

    def truth(self, number: int, vehicle: Place) -> Truth:
        """Return what was there at a sample, in the frame of the vehicle that was there."""
        found = []
        for box in self._boxes[number].values():
            x, y, z = vehicle.level(box.place.at - vehicle.at).tolist()
            vx, vy, _ = vehicle.level(self._velocity(number, box.id)).tolist()
            width, length, height = box.size.tolist()
            yaw = math.remainder(box.place.yaw - vehicle.yaw, math.tau)
            outline = Box(x, y, z, length, width, height, yaw)
            found.append(TrueObject(box.id, box.label, outline, vx, vy))
        return Truth(tuple(found))

    def _velocity(self, number: int, name: int) -> NDArray[np.float64]:
        """Return the velocity (3,) of a box in the map, m/s; NaN where it is not known."""
        near = range(max(0, number - 1), min(number + 2, len(self._boxes)))
        there = [one for one in near if name in self._boxes[one]]
        first, last = there[0], there[-1]
        seconds = (self._at_ns[last] - self._at_ns[first]) / 1e9
        if first == last or not 0 < seconds <= APART_S * (last - first):
            return np.full(3, np.nan)
        moved = self._boxes[last][name].place.at - self._boxes[first][name].place.at
        return np.asarray(moved / seconds, np.float64)


def _label(instance: Row, categories: Mapping[str, Row]) -> str:
    category = one_of(categories, instance.text("category_token"), "category.json").text("name")
    return next((label for start, label in LABELS.items() if category.startswith(start)), "unknown")
