"""What each camera network wants and gives: its input, and how its numbers become boxes.

Four families of small one-shot detectors, all without anchor boxes; each is known by the shapes of
its outputs. The first three are trained on the 80 classes of COCO, and classes are told by COCO's
numbers. Their input is (1, 3, H, W) float32 with the colours in the order blue, green, red.

*yolox* (Ge et al., "YOLOX: Exceeding YOLO Series in 2021", arXiv 2107.08430, section 2; decoupled
head, anchor free): cells of 8, 16 and 32 pixels, rows first. A cell gives dx, dy, w, h, "object"
and 80 class probabilities; the centre is (cell + d) * stride, the size exp(.) * stride, the score
object * class. Input: 0 to 255.

*nanodet* (NanoDet-m, github.com/RangiLyu/nanodet; head of Li et al., "Generalized Focal Loss",
NeurIPS 2020, section 3): cells as above. For each side of the box a cell gives n + 1 numbers whose
softmax is the distribution of the distance from the cell's middle pixel over 0..n strides; the
distance is its mean. The class probability is the score. Input: normalised as for ImageNet.

*fastestdet* (github.com/dog-qiuqiu/FastestDet): cells of 16 pixels; channels are "object", dx, dy,
w, h and 80 class probabilities. The centre is (cell + tanh(d)) * stride, the size the sigmoid times
the whole input, the score object^0.6 * class^0.4. Input: 0 to 1.

*centre* (`builtin`, avrt's own): cells of 4 pixels. For each of four kinds of road user a map
holds how likely a cell is the middle of one, 0 where a neighbour is likelier (Zhou, Wang and
Kraehenbuehl, "Objects as Points", arXiv 1904.07850, sections 3 and 4), and a cell gives the
distances from its middle to the four sides, pixels (Tian et al., "FCOS", ICCV 2019, section 3.1).
Input: normalised.

Shape letters: A cells, K candidates; boxes are left, top, right, bottom in pixels of the input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from avrt.errors import SoftwareFault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

CLASSES = 80
STRIDES = (8, 16, 32)
ROAD_USERS: Mapping[int, str] = {
    0: "pedestrian",
    1: "cyclist",
    2: "car",
    3: "cyclist",
    5: "truck",
    6: "truck",
    7: "truck",
}
"""The label of avrt for a class of COCO: person, bicycle, car, motorcycle, bus, train, truck."""

Shape = tuple[int, ...]


class Slot(Protocol):
    """An input or output of a network; a dimension that is left open is a name or None."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def shape(self) -> list[int | str | None]: ...


class Session(Protocol):
    """What is used of onnxruntime.InferenceSession."""

    def get_inputs(self) -> Sequence[Slot]: ...
    def get_outputs(self) -> Sequence[Slot]: ...
    def run(
        self, outputs: None, inputs: Mapping[str, NDArray[np.float32]]
    ) -> list[NDArray[np.float32]]: ...


@runtime_checkable
class Movable(Protocol):
    """A session that computes where it is told to, with weights that others can look at."""

    def place(self, device: str) -> None: ...
    def weight_arrays(self) -> Sequence[object]: ...


class Decoded(NamedTuple):
    """Candidates of one view: boxes (K, 4), scores (K,), classes (K,) of COCO."""

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    classes: NDArray[np.int64]


class Network(ABC):
    """A family of networks, at one size of input.

    Attributes:
        name: of the family.
        score_min: candidates below it are left out unless the user sets another limit.
        grey: what the canvas around a picture is filled with, 0 to 255.
        mean, deviation: of the input, in the order blue, green, red, 0 to 255.
    """

    name: ClassVar[str]
    score_min: ClassVar[float]
    grey: ClassVar[int] = 114
    mean: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)
    deviation: ClassVar[tuple[float, float, float]] = (1.0, 1.0, 1.0)

    def __init__(self, size: tuple[int, int]) -> None:
        """Take the width and height of the input, pixels."""
        self.size = size

    @classmethod
    @abstractmethod
    def fits(cls, size: tuple[int, int], outputs: Sequence[Shape]) -> bool:
        """Tell whether a network of this family has these outputs at this size of input."""

    @abstractmethod
    def decoded(self, outputs: Sequence[NDArray[np.float32]], score_min: float) -> Decoded:
        """Return the candidates with at least a score, in the order of the cells."""

    def prepared(self, canvas: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the input of the network, (1, 3, H, W), for a canvas, (H, W, 3) uint8 RGB."""
        channels = canvas[..., ::-1].transpose(2, 0, 1).astype(np.float32, order="C")
        channels -= np.array(self.mean, np.float32)[:, None, None]
        channels /= np.array(self.deviation, np.float32)[:, None, None]
        return channels[None]


class Yolox(Network):
    """See the module's text; threshold of its demonstration (tools/demo.py of YOLOX)."""

    name = "yolox"
    score_min = 0.3

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size)
        cells = [_cells(size, stride) for stride in STRIDES]
        self._cells = np.concatenate(cells)
        self._strides = np.repeat(STRIDES, [len(one) for one in cells]).astype(np.float32)

    @classmethod
    def fits(cls, size: tuple[int, int], outputs: Sequence[Shape]) -> bool:
        """Tell whether there is one row of 85 numbers for each cell."""
        count = sum(_count(size, stride) for stride in STRIDES)
        return list(outputs) == [(1, count, 5 + CLASSES)]

    def decoded(self, outputs: Sequence[NDArray[np.float32]], score_min: float) -> Decoded:
        """Return the candidates with at least a score."""
        rows = outputs[0][0]
        chosen, scores, classes = _chosen(rows[:, 5:], score_min, lambda best: rows[:, 4] * best)
        strides = self._strides[chosen, None]
        centres = (self._cells[chosen] + rows[chosen, :2]) * strides
        return Decoded(_around(centres, np.exp(rows[chosen, 2:4]) * strides), scores, classes)


class NanoDet(Network):
    """See the module's text; threshold of the demonstration of NanoDet."""

    name = "nanodet"
    score_min = 0.35
    grey = 0
    mean = (103.53, 116.28, 123.675)
    deviation = (57.375, 57.12, 58.395)

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size)
        self._cells = [_cells(size, stride) for stride in STRIDES]

    @classmethod
    def fits(cls, size: tuple[int, int], outputs: Sequence[Shape]) -> bool:
        """Tell whether there are class and distance outputs for each stride."""
        if len(outputs) != 2 * len(STRIDES) or any(len(shape) != 3 for shape in outputs):
            return False
        counts = [(1, _count(size, stride)) for stride in STRIDES]
        numbers = [shape[2] for shape in outputs[len(STRIDES) :]]
        sound = [shape[:2] for shape in outputs] == 2 * counts
        sound = sound and all(shape[2] == CLASSES for shape in outputs[: len(STRIDES)])
        return sound and len(set(numbers)) == 1 and numbers[0] % 4 == 0 and numbers[0] > 4

    def decoded(self, outputs: Sequence[NDArray[np.float32]], score_min: float) -> Decoded:
        """Return the candidates with at least a score."""
        count = len(STRIDES)
        parts = [
            self._level(*level, score_min)
            for level in zip(STRIDES, self._cells, outputs[:count], outputs[count:], strict=True)
        ]
        boxes, scores, classes = zip(*parts, strict=True)
        return Decoded(np.concatenate(boxes), np.concatenate(scores), np.concatenate(classes))

    def _level(
        self,
        stride: int,
        cells: NDArray[np.float32],
        probabilities: NDArray[np.float32],
        distances: NDArray[np.float32],
        score_min: float,
    ) -> Decoded:
        chosen, scores, classes = _chosen(probabilities[0], score_min, lambda best: best)
        bins = distances[0, chosen].reshape(len(chosen), 4, distances.shape[2] // 4)
        weights = np.exp(bins - bins.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        sides = weights @ np.arange(bins.shape[2], dtype=np.float32) * stride
        centres = cells[chosen] * stride + (stride - 1) / 2
        low, high = centres - sides[:, :2], centres + sides[:, 2:]
        return Decoded(np.concatenate([low, high], axis=1).astype(np.float32), scores, classes)


class FastestDet(Network):
    """See the module's text; threshold of its demonstration (example/onnx-runtime)."""

    name = "fastestdet"
    score_min = 0.65
    deviation = (255.0, 255.0, 255.0)
    stride: ClassVar[int] = 16

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size)
        self._cells = _cells(size, self.stride)

    @classmethod
    def fits(cls, size: tuple[int, int], outputs: Sequence[Shape]) -> bool:
        """Tell whether there is one map of 85 channels."""
        width, height = (side // cls.stride for side in size)
        return list(outputs) == [(1, 5 + CLASSES, height, width)]

    def decoded(self, outputs: Sequence[NDArray[np.float32]], score_min: float) -> Decoded:
        """Return the candidates with at least a score."""
        rows = outputs[0][0].reshape(5 + CLASSES, -1).T
        chosen, scores, classes = _chosen(
            rows[:, 5:], score_min, lambda best: rows[:, 0] ** 0.6 * best**0.4
        )
        centres = (self._cells[chosen] + np.tanh(rows[chosen, 1:3])) * self.stride
        sides = np.array(self.size, np.float32) / (1 + np.exp(-rows[chosen, 3:5]))
        return Decoded(_around(centres, sides), scores, classes)


class Centre(Network):
    """See the module's text; its threshold is told in docs/stages.md.

    Attributes:
        view: width and height of the input that it is trained at, pixels.
        classes: of COCO, in the order of the maps.
        labels: of avrt, likewise.
    """

    name = "centre"
    score_min = 0.4
    mean = (112.0, 112.0, 112.0)
    deviation = (56.0, 56.0, 56.0)
    stride: ClassVar[int] = 4
    view: ClassVar[tuple[int, int]] = (512, 256)
    classes: ClassVar[tuple[int, ...]] = (0, 1, 2, 7)
    labels: ClassVar[tuple[str, ...]] = tuple(ROAD_USERS[index] for index in (0, 1, 2, 7))

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(size)
        self._middles = (_cells(size, self.stride) + 0.5) * self.stride

    @classmethod
    def fits(cls, size: tuple[int, int], outputs: Sequence[Shape]) -> bool:
        """Tell whether there are a map for each kind and four distances."""
        width, height = (side // cls.stride for side in size)
        return list(outputs) == [(1, len(cls.classes), height, width), (1, 4, height, width)]

    def decoded(self, outputs: Sequence[NDArray[np.float32]], score_min: float) -> Decoded:
        """Return the candidates with at least a score."""
        likely = outputs[0][0].reshape(len(self.classes), -1).T
        chosen, scores, kinds = _chosen(likely, score_min, lambda best: best)
        sides = outputs[1][0].reshape(4, -1).T[chosen]
        middles = self._middles[chosen]
        boxes = np.concatenate([middles - sides[:, :2], middles + sides[:, 2:]], axis=1)
        return Decoded(boxes.astype(np.float32), scores, np.array(self.classes)[kinds])


NETWORKS: Mapping[str, type[Network]] = {
    network.name: network for network in (Yolox, NanoDet, FastestDet, Centre)
}


def _count(size: tuple[int, int], stride: int) -> int:
    return (size[0] // stride) * (size[1] // stride)


def _cells(size: tuple[int, int], stride: int) -> NDArray[np.float32]:
    """Return column and row of each cell, (A, 2), rows first."""
    row, column = np.mgrid[: size[1] // stride, : size[0] // stride]
    return np.stack([column.ravel(), row.ravel()], axis=1).astype(np.float32)


def _chosen(
    probabilities: NDArray[np.float32],
    score_min: float,
    scored: Callable[[NDArray[np.float32]], NDArray[np.float32]],
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return the cells that show something, its score and its class, (K,) each.

    Args:
        probabilities: (A, 80) of the classes.
        score_min: lowest score.
        scored: returns the score of each cell, (A,), for the probability of its best class, (A,).
    """
    scores = scored(probabilities.max(axis=1))
    if not np.isfinite(scores).all():
        raise SoftwareFault("not_finite", "the network gave scores that are no numbers")
    chosen = np.nonzero(scores >= score_min)[0]
    return chosen, scores[chosen], probabilities[chosen].argmax(axis=1)


def _around(centres: NDArray[np.float32], sides: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return boxes, (K, 4), for centres and sides, (K, 2) each."""
    boxes = np.concatenate([centres - sides / 2, centres + sides / 2], axis=1)
    return boxes.astype(np.float32)
