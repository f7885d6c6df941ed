"""Images of the built-in world and what they show: to train a camera network, and to score it.

An object counts if at least VISIBLE_MIN of it can be seen (not hidden, not beyond the border) and
it is at least HEIGHT_MIN pixels high; what is less is neither to be found nor wrong to be found.

Shape letters: N images, K objects, H and W of the network's input.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image as PillowImage

from avrt.stages.camera.networks import Centre
from avrt.world import SCENES, World, make_scene
from avrt.world.mounting import CAMERA
from avrt.world.road import ROAD_LEFT, ROAD_RIGHT
from avrt.world.scenes import CLOTHES, SIZES, WALKING
from avrt.world.traffic import RoadUser, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from avrt.world import Scene
    from avrt.world.mounting import Mounting

SECONDS = 20.0
NS_PER_S = 1_000_000_000
HEIGHT_MIN, VISIBLE_MIN = 8.0, 0.35
TRUCKS, PEOPLE = 0.2, 8  # share of the cars, how many more
LENS_METRES, TILT_DEGREES = 0.15, 1.5  # how far another mounting is off, evenly


class Objects(NamedTuple):
    """Road users in one image or in many.

    Attributes:
        boxes: (K, 4) float32, left, top, right, bottom, pixels.
        kinds: (K,) int64, place of the label in `Centre.labels`.
        counts: (K,) bool, whether it is to be found.
    """

    boxes: NDArray[np.float32]
    kinds: NDArray[np.int64]
    counts: NDArray[np.bool_]

    def taken(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Objects:
        return Objects(self.boxes[index], self.kinds[index], self.counts[index])


def drives(seeds: Sequence[int], images: int, *, varied: bool) -> Iterator[tuple[bytes, Objects]]:
    """Yield images (JPEG) and their objects: so many of each scene and seed, at any time.

    Varied ones have another mounting each, and more of those who are seldom there.
    """
    for seed in seeds:
        for name in SCENES:
            rng = np.random.default_rng((seed, 7, list(SCENES).index(name)))
            scene = make_scene(name, seed)
            world = World(peopled(scene, rng) if varied else scene, SECONDS)
            world.advance()
            for at in np.sort(rng.uniform(0, SECONDS, images)).tolist():
                mounting = otherwise(rng) if varied else CAMERA
                at_ns = int(at * NS_PER_S)
                yield world.camera(at_ns, mounting), _objects(world, at_ns, mounting)


def peopled(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return a scene in which some cars are trucks, and with people on foot and on bicycles."""
    users = [scene.users[0]]
    for user in scene.users[1:]:
        turned = user.label == "car" and rng.random() < TRUCKS
        length, width, height = rng.uniform((6.0, 2.2, 2.6), (9.5, 2.6, 3.6)).tolist()
        truck = replace(user, label="truck", size=(length, width, height))
        users.append(truck if turned else user)
    for _ in range(PEOPLE):
        label = "pedestrian" if rng.random() < 0.6 else "cyclist"
        size = np.array(SIZES[label]) * rng.uniform(0.9, 1.1, 3)
        right = bool(rng.random() < 0.6)
        aside = rng.uniform(-2.0, 3.5)  # from the verge to well into the road
        walks = label == "pedestrian" and rng.random() < 0.5
        way = Walk(float(rng.uniform(0, 15)), WALKING, ROAD_LEFT + 1 if right else ROAD_RIGHT - 1)
        users.append(
            RoadUser(
                id=len(users),
                label=label,
                s=float(rng.uniform(8, 260)),
                d=float(ROAD_RIGHT + aside if right else ROAD_LEFT - aside),
                speed=0.0 if label == "pedestrian" else float(rng.uniform(0, 6)),
                direction=0 if label == "pedestrian" else (1 if right else -1),
                size=(float(size[0]), float(size[1]), float(size[2])),
                colour=CLOTHES[int(rng.integers(len(CLOTHES)))],
                manoeuvres=(way,) if walks else (),
            )
        )
    return replace(scene, users=tuple(users))


def otherwise(rng: np.random.Generator) -> Mounting:
    """Return a mounting somewhat higher or lower than usual, and tilted."""
    tilt = np.deg2rad(rng.uniform(-TILT_DEGREES, TILT_DEGREES, 3)) / 2
    (x, y, z), w = tilt.tolist(), float(np.sqrt(1 - tilt @ tilt))
    a, b, c, d = CAMERA.quaternion
    turned = (
        w * a + x * d + y * c - z * b,
        w * b - x * c + y * d + z * a,
        w * c + x * b - y * a + z * d,
        w * d - x * a - y * b - z * c,
    )
    return CAMERA._replace(
        z=CAMERA.z + float(rng.uniform(-LENS_METRES, LENS_METRES)), quaternion=turned
    )


def _objects(world: World, at_ns: int, mounting: Mounting) -> Objects:
    seen = world.appearances(at_ns, mounting)
    boxes = np.array([one.box for one in seen], np.float32).reshape(-1, 4)
    labels = [world.scene.users[one.user].label for one in seen]
    kinds = np.array([Centre.labels.index(label) for label in labels], np.int64)
    shown = np.array([one.visible * one.inside for one in seen])
    return Objects(boxes, kinds, (shown >= VISIBLE_MIN) & (boxes[:, 3] - boxes[:, 1] >= HEIGHT_MIN))


class Samples(NamedTuple):
    """Images as the network sees them, and the objects of all of them.

    Attributes:
        images: (N, H, W, 3) uint8 RGB.
        image_of: (K,) int64, in which image each object is; boxes are in its pixels.
    """

    images: NDArray[np.uint8]
    objects: Objects
    image_of: NDArray[np.int64]

    def of(self, index: int) -> Objects:
        """Return the objects of one image."""
        low, high = np.searchsorted(self.image_of, [index, index + 1])
        return Objects(*(one[low:high] for one in self.objects))


def samples(folder: Path, seeds: Sequence[int], images: int) -> Samples:
    """Return the samples of some seeds from a folder; they are made if they are not there."""
    path = folder / f"world_{seeds[0]}_{len(seeds)}_{images}.npz"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _make(path, seeds, images)
    with np.load(path) as held:
        objects = Objects(held["boxes"], held["kinds"], held["counts"])
        return Samples(held["images"], objects, held["image_of"])


def _make(path: Path, seeds: Sequence[int], images: int) -> None:
    pictures, found = [], []
    for jpeg, objects in drives(seeds, images, varied=True):
        with PillowImage.open(io.BytesIO(jpeg)) as picture:
            scale = Centre.view[0] / picture.width
            small = picture.resize(Centre.view, PillowImage.Resampling.BILINEAR)
        pictures.append(np.asarray(small))
        found.append(objects._replace(boxes=objects.boxes * np.float32(scale)))
    boxes, kinds, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    image_of = np.repeat(np.arange(len(found)), [len(one.kinds) for one in found])
    np.savez(
        path,
        images=np.stack(pictures),
        boxes=boxes,
        kinds=kinds,
        counts=counts,
        image_of=image_of,
    )
