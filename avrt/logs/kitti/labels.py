"""KITTI's labels as ground truth: boxes in the frame of the LiDAR.

A line of the object labels is: type, truncated, occluded, alpha, four sides of a box in the image,
height, width, length (m), x, y, z of the middle of the bottom (m, rectified camera 0) and rotation
about the camera's y axis (rad; 0 faces along the camera's x axis). A line of the tracking labels
has the frame and the object's number before that. (Development kits, readme.txt.)

Velocities are not told. "DontCare" regions have no place and are left out; what is no class of
avrt ("Misc") is "unknown".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from avrt.errors import InputError
from avrt.logs.files import read_lines
from avrt.payload import Box, TrueObject, Truth

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

LABELS = {
    "Car": "car",
    "Van": "car",
    "Truck": "truck",
    "Tram": "truck",
    "Pedestrian": "pedestrian",
    "Person_sitting": "pedestrian",
    "Person": "pedestrian",
    "Cyclist": "cyclist",
    "Misc": "unknown",
}
NOWHERE = "DontCare"
OBJECT_WORDS, TRACK_WORDS = 15, 17
FRAME_MAX, NUMBER_MAX = 1_000_000, (1 << 32) - 1
LEVEL = "camera_00_level"
TO_LEVEL = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
"""From the axes of a camera to forward, left, up: for labels without a calibration."""


class Label(NamedTuple):
    """One labelled object: sizes and place in metres, turn in radians, in the camera's axes."""

    frame: int
    id: int
    type: str
    height: float
    width: float
    length: float
    x: float
    y: float
    z: float
    turn: float


def truth_of(labels: Iterable[Label], to_lidar: NDArray[np.float64]) -> Truth:
    """Return what is labelled; `to_lidar` (4, 4) takes it from the rectified camera 0."""
    found = []
    for label in labels:
        x, y, z, _ = (to_lidar @ (label.x, label.y - label.height / 2, label.z, 1)).tolist()
        ahead = to_lidar[:3, :3] @ (math.cos(label.turn), 0.0, -math.sin(label.turn))
        yaw = math.atan2(ahead[1], ahead[0])
        box = Box(x, y, z, label.length, label.width, label.height, yaw)
        found.append(TrueObject(label.id, LABELS[label.type], box, math.nan, math.nan))
    return Truth(tuple(found))


def read_objects(path: Path, first_id: int) -> list[Label]:
    """Return the labels of an object frame, numbered from `first_id` on; its file may be empty.

    Raises:
        InputError: it is missing, or a line is none.
    """
    if path.is_file() and not path.stat().st_size:
        return []
    found: list[Label] = []
    for number, line in enumerate(read_lines(path), 1):
        words = line.split()
        place = f"{path}, line {number}"
        if len(words) != OBJECT_WORDS:
            raise InputError(f"expected {OBJECT_WORDS} words, found {len(words)}", place)
        if words[0] != NOWHERE:
            found.append(_label(0, first_id + len(found), words, place))
    return found


def read_tracks(path: Path) -> dict[int, list[Label]]:
    """Return the labels of a tracking sequence by frame; the last frame is there in any case.

    Raises:
        InputError: it is missing or empty, or a line is none.
    """
    found: dict[int, list[Label]] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = line.split()
        place = f"{path}, line {number}"
        if len(words) == TRACK_WORDS + 1:
            what = "found a score: what a tracker found is no ground truth"
            raise InputError(f"expected {TRACK_WORDS} words, {what}", place)
        if len(words) != TRACK_WORDS:
            raise InputError(f"expected {TRACK_WORDS} words, found {len(words)}", place)
        try:
            frame, name = int(words[0]), int(words[1])
        except ValueError:
            what = f"expected the numbers of a frame and an object, found {line[:20]!r}"
            raise InputError(what, place) from None
        named = 0 <= name <= NUMBER_MAX or words[2] == NOWHERE
        if not 0 <= frame <= FRAME_MAX or not named:
            what = f"expected a frame up to {FRAME_MAX} and a number up to {NUMBER_MAX}"
            raise InputError(f"{what}, found {frame} and {name}", place)
        labels = found.setdefault(frame, [])
        if words[2] != NOWHERE:
            labels.append(_label(frame, name, words[2:], place))
    return found


def is_tracking(path: Path) -> bool:
    """Whether a path is a text whose first line is one of a tracking sequence."""
    if path.suffix != ".txt" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            words = file.readline(512).split()
    except OSError:
        return False
    numbers = all(word.removeprefix(b"-").isdigit() for word in words[:2])
    return len(words) >= TRACK_WORDS and numbers and words[2].replace(b"_", b"").isalpha()


def _label(frame: int, name: int, words: list[str], place: str) -> Label:
    """Return the label of a line from its type on.

    Raises:
        InputError: it has another type than KITTI's, or a number that is none.
    """
    if words[0] not in LABELS:
        expected = f"{', '.join(LABELS)} or {NOWHERE}"
        raise InputError(f"expected {expected}, found {words[0]!r}", place)
    try:
        numbers = [float(word) for word in words[8:15]]
    except ValueError as error:
        raise InputError(f"expected numbers: {error}", place) from None
    if not all(map(math.isfinite, numbers)):
        raise InputError("expected finite numbers", place)
    height, width, length, x, y, z, turn = numbers
    return Label(frame, name, words[0], height, width, length, x, y, z, turn)
