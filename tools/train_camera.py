"""Train avrt's own camera network on images of the built-in world, and score it on others.

    python tools/train_camera.py CACHE [--out WEIGHTS] [--seed 0] [--steps 4600] [--threads 1]
    python tools/train_camera.py CACHE --score-only WEIGHTS

CACHE is a folder in which the training images are kept (0.9 GB). Loss and targets are those of Liu
et al., "Training-Time-Friendly Network for Real-Time Object Detection", AAAI 2020 (arXiv
1909.00700): an ellipse around an object's middle is learnt from, not one cell, so that few steps
are enough; focal loss for the maps (Law and Deng, "CornerNet", ECCV 2018, section 3.2), generalised
intersection over union for the sides (Rezatofighi et al., CVPR 2019).

A step looks at pieces of images around objects, enlarged or shrunk, flipped, with other light,
colours, noise and blur. The same seed, threads and kind of processor give the same weights. Images
to score on are of other seeds, with the usual mounting. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from camera_images import Objects, samples
from camera_scores import scored
from PIL import Image as PillowImage
from torch import Tensor, nn

from avrt.stages.camera.builtin import WEIGHTS, CentreNetwork, Convolved
from avrt.stages.camera.networks import Centre

if TYPE_CHECKING:
    from collections.abc import Iterator

    from camera_images import Samples
    from numpy.typing import NDArray

TRAINING, HELD_OUT = range(10_000, 10_090), range(20_000, 20_020)
IMAGES, IMAGES_HELD_OUT = 5, 4  # of each scene and seed
PIECE = (256, 160)  # width and height, pixels of the network's input
BATCH = 8
RATE, DECAY, GRADIENT_MAX = 2.5e-3, 1e-4, 10.0
ZOOM = (0.65, 1.4)
FITTING = 0.9  # of a piece: what it is around is enlarged to no more
AROUND_OBJECT = 0.75  # share of pieces
HEIGHTS = (0, 8, 16, 32, 256)  # pixels: edges of the classes of height
REACH = 0.54  # of a box's half: semi-axes of the ellipse that is learnt from
SIDES_WEIGHT = 5.0
LEFT_MIN = 0.35  # of a box: less in a piece is not to be found there
LOWEST = 4.0  # pixels of a piece, likewise


class Targets(NamedTuple):
    """What a network should say, for each cell.

    Attributes:
        maps: (B, 4, H, W), 1 in an object's middle and less around it.
        judged: (B, 1, H, W), 0 where something is that does not count.
        boxes: (B, 4, H, W) pixels of the piece.
        weights: (B, H, W), sum to 1 for each object.
    """

    maps: Tensor
    judged: Tensor
    boxes: Tensor
    weights: Tensor


def train(known: Samples, seed: int, steps: int) -> CentreNetwork:
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    rng = np.random.default_rng(seed)
    network = CentreNetwork(trained=True).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps, pct_start=0.1)
    started, told = time.perf_counter(), np.zeros(2)
    for step, (images, targets) in enumerate(batches(known, steps, rng), start=1):
        logits, sides = network(images)
        losses = losses_of(logits, sides, targets)
        optimizer.zero_grad()
        (losses[0] + SIDES_WEIGHT * losses[1]).backward()
        nn.utils.clip_grad_norm_(network.parameters(), GRADIENT_MAX)
        optimizer.step()
        schedule.step()
        told += [float(one.detach()) for one in losses]
        if step % 200 == 0:
            seconds = time.perf_counter() - started
            print(
                f"step {step}, {seconds:.0f} s, losses {np.round(told / 200, 3)}", file=sys.stderr
            )
            told[:] = 0
    return network


def batches(
    known: Samples, steps: int, rng: np.random.Generator
) -> Iterator[tuple[Tensor, Targets]]:
    """Yield batches; the next one is made meanwhile."""
    classes = strata(known)
    with ThreadPoolExecutor(1) as maker:
        following = maker.submit(batch, known, classes, rng)
        for _ in range(steps):
            made = following.result()
            following = maker.submit(batch, known, classes, rng)
            yield made


def batch(
    known: Samples, classes: list[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[Tensor, Targets]:
    pieces, targets = [], []
    for _ in range(BATCH):
        index, around = place(known, classes, rng)
        piece, objects = cut(known.images[index], known.of(index), around, rng)
        pieces.append(piece)
        targets.append(targets_of(objects))
    shown = torch.from_numpy(recoloured(np.stack(pieces).astype(np.float32), rng))
    parts = [torch.from_numpy(np.stack(part)) for part in zip(*targets, strict=True)]
    images = shown.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    return images, Targets(*parts)


def strata(known: Samples) -> list[NDArray[np.int64]]:
    """Return which objects are of a kind and of a class of height, for all that there are."""
    objects = known.objects
    heights = objects.boxes[:, 3] - objects.boxes[:, 1]
    found = [
        np.nonzero(objects.counts & (objects.kinds == kind) & (heights >= low) & (heights < high))[
            0
        ]
        for kind in range(len(Centre.classes))
        for low, high in itertools.pairwise(HEIGHTS)
    ]
    return [one for one in found if len(one)]


def place(
    known: Samples, classes: list[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[int, NDArray[np.float64]]:
    """Return an image and a box in it: mostly an object's, of each class equally often."""
    if rng.random() >= AROUND_OBJECT:
        return int(rng.integers(len(known.images))), np.tile(rng.uniform(0, Centre.view), 2)
    chosen = int(rng.choice(classes[int(rng.integers(len(classes)))]))
    return int(known.image_of[chosen]), known.objects.boxes[chosen].astype(np.float64)


def cut(
    image: NDArray[np.uint8],
    objects: Objects,
    around: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.uint8], Objects]:
    """Return a piece of an image that shows about a box, and what is in it."""
    span = np.maximum(around[2:] - around[:2], 1.0)
    zoom = float(np.exp(rng.uniform(*np.log(ZOOM))))
    zoom = max(ZOOM[0], min(zoom, float((FITTING * np.array(PIECE) / span).min())))
    size = np.array([image.shape[1], image.shape[0]], np.float64)
    sides = np.minimum(np.array(PIECE) / zoom, size)
    play = np.maximum(sides - span, 0.2 * sides)
    wanted = (around[:2] + around[2:]) / 2 + rng.uniform(-0.45, 0.45, 2) * play
    low = np.clip(wanted - sides / 2, 0, size - sides)
    picture = PillowImage.fromarray(image)
    window = (float(low[0]), float(low[1]), *(low + sides).tolist())
    piece = np.asarray(picture.resize(PIECE, PillowImage.Resampling.BILINEAR, box=window))
    moved = (objects.boxes - np.tile(low, 2)) * np.tile(np.array(PIECE) / sides, 2)
    if rng.random() < 0.5:
        piece = piece[:, ::-1]
        moved = moved * [-1, 1, -1, 1] + [PIECE[0], 0, PIECE[0], 0]
        moved = moved[:, [2, 1, 0, 3]]
    inside = np.clip(moved, 0, np.tile(PIECE, 2))
    shares = area(inside) / np.maximum(area(moved), 1e-6)
    counts = objects.counts & (shares >= LEFT_MIN) & (inside[:, 3] - inside[:, 1] >= LOWEST)
    left = Objects(inside.astype(np.float32), objects.kinds, counts)
    return piece, left.taken((inside[:, 2:] - inside[:, :2] > 1).all(axis=1))


def area(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))


def targets_of(objects: Objects) -> tuple[NDArray[np.float32], ...]:
    """Return the targets of one piece; of two objects in a place the smaller one is learnt."""
    width, height = (side // Centre.stride for side in PIECE)
    column, row = np.arange(width) + 0.5, np.arange(height)[:, None] + 0.5
    maps = np.zeros((len(Centre.classes), height, width), np.float32)
    judged = np.ones((1, height, width), np.float32)
    boxes = np.zeros((4, height, width), np.float32)
    weights = np.zeros((height, width), np.float32)
    owner = np.full((height, width), -1)
    for index in np.argsort(-area(objects.boxes), kind="stable").tolist():
        box, kind = objects.boxes[index] / Centre.stride, objects.kinds[index]
        middle, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2
        if not objects.counts[index]:
            low, high = np.floor(box[:2]).astype(int), np.ceil(box[2:]).astype(int)
            judged[0, low[1] : high[1], low[0] : high[0]] = 0
            continue
        x, y = np.minimum(np.floor(middle), [width - 1, height - 1]) + 0.5
        reach = (2 * np.floor(half * REACH) + 1) / 6
        near = np.exp(-(((column - x) / reach[0]) ** 2 + ((row - y) / reach[1]) ** 2) / 2)
        near[near < 0.01] = 0
        maps[kind] = np.maximum(maps[kind], near)
        mine = near > 0
        boxes[:, mine] = objects.boxes[index][:, None]
        owner[mine], weights[mine] = index, near[mine]
    for index in np.unique(owner[owner >= 0]):
        weights[owner == index] /= weights[owner == index].sum()
    return maps, np.maximum(judged, maps.max(axis=0) == 1), boxes, weights


def recoloured(pieces: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return pieces, (B, H, W, 3) RGB, in other light, as the network takes them: BGR."""
    count = len(pieces)
    mixing = np.eye(3) + rng.normal(0, 0.05, (count, 3, 3))
    mixing = np.where(rng.random((count, 1, 1)) < 0.05, np.full((3, 3), 1 / 3), mixing)
    order = np.stack([rng.permutation(3) if rng.random() < 0.05 else np.arange(3) for _ in pieces])
    mixing = np.take_along_axis(mixing, order[:, None, :], axis=2)
    shown = pieces @ mixing.astype(np.float32)[:, None]
    middle = shown.mean(axis=(1, 2, 3), keepdims=True)
    contrast = rng.uniform(0.7, 1.3, middle.shape).astype(np.float32)
    light = rng.uniform(-25, 25, middle.shape).astype(np.float32)
    shown = (shown - middle) * contrast + middle + light
    blurred = (shown[:, :, :-2] + shown[:, :, 1:-1] + shown[:, :, 2:]) / 3
    blurred = (blurred[:, :-2] + blurred[:, 1:-1] + blurred[:, 2:]) / 3
    soft = np.nonzero(rng.random(count) < 0.2)[0]
    shown[soft, 1:-1, 1:-1] = blurred[soft]
    grain = rng.uniform(0, 0.08, middle.shape).astype(np.float32)  # of -128 to 127
    shown += grain * rng.integers(-128, 128, shown.shape, np.int8)
    shown = np.clip(shown, 0, 255)[..., ::-1]
    return (shown - np.array(Centre.mean, np.float32)) / np.array(Centre.deviation, np.float32)


def losses_of(logits: Tensor, sides: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """Return the losses of maps and sides, a mean over objects each."""
    found = torch.sigmoid(logits).clamp(1e-4, 1 - 1e-4)
    is_middle = (targets.maps == 1).float()
    hit = is_middle * (1 - found) ** 2 * torch.log(found)
    missed = (1 - targets.maps) ** 4 * found**2 * torch.log(1 - found) * targets.judged
    of_maps = -(hit + missed * (1 - is_middle)).sum() / is_middle.sum().clamp(min=1)
    height, width = sides.shape[2:]
    x = (torch.arange(width) + 0.5) * Centre.stride
    y = (torch.arange(height)[:, None] + 0.5) * Centre.stride
    left, top = x - sides[:, 0], y - sides[:, 1]
    right, bottom = x + sides[:, 2], y + sides[:, 3]
    apart = 1 - overlap(torch.stack([left, top, right, bottom], 1), targets.boxes)
    return of_maps, (apart * targets.weights).sum() / targets.weights.sum().clamp(min=1)


def overlap(one: Tensor, other: Tensor) -> Tensor:
    """Return the generalised intersection over union of boxes, (B, 4, H, W) each."""
    low, high = torch.maximum(one[:, :2], other[:, :2]), torch.minimum(one[:, 2:], other[:, 2:])
    shared = (high - low).clamp(min=0).prod(1)
    union = sum((box[:, 2:] - box[:, :2]).prod(1) for box in (one, other)) - shared
    around = torch.maximum(one[:, 2:], other[:, 2:]) - torch.minimum(one[:, :2], other[:, :2])
    hull = around.prod(1).clamp(min=1e-6)
    return shared / union.clamp(min=1e-6) - (hull - union) / hull


def folded(network: CentreNetwork) -> dict[str, NDArray[np.float16]]:
    """Return the weights with each normalisation folded into the convolution before it."""
    arrays = {
        name: value.detach().clone()
        for name, value in network.state_dict().items()
        if ".norm." not in name
    }
    for name, module in network.named_modules():
        if isinstance(module, Convolved):
            norm = module.norm
            factor = (norm.weight / torch.sqrt(norm.running_var + norm.eps)).detach()
            arrays[f"{name}.conv.weight"] *= factor[:, None, None, None]
            bias = (arrays[f"{name}.conv.bias"] - norm.running_mean) * factor
            arrays[f"{name}.conv.bias"] = bias + norm.bias.detach()
    return {name: value.contiguous().numpy().astype(np.float16) for name, value in arrays.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=4600)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--score-only", type=Path, metavar="WEIGHTS")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    conditions = {
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": given.threads,
        "torch": torch.__version__,
        "load": round(os.getloadavg()[0], 2),
    }
    if given.score_only is None:
        known = samples(given.cache, TRAINING, IMAGES)
        started = time.perf_counter()
        network = train(known, given.seed, given.steps)
        np.savez_compressed(given.out, **folded(network))
        conditions["training_s"] = round(time.perf_counter() - started)
        conditions |= {"seed": given.seed, "steps": given.steps, "images": len(known.images)}
    weights = given.out if given.score_only is None else given.score_only
    found = scored(weights, HELD_OUT, IMAGES_HELD_OUT)
    print(json.dumps({"held_out": found, "conditions": conditions}, indent=1))


if __name__ == "__main__":
    main()
