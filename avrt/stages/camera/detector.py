"""Find road users in a camera image with a small network: the `Detector` stage.

Decode the image, fit it into the network's input (`letterbox`), run the network on each view, turn
its numbers into boxes (`networks`), and keep one box for each object (`suppression`). A vehicle may
look like a car and like a truck: those two compete, a person and a bicycle do not.

avrt brings one small network along, trained on its own world (`builtin`); others stay in files of
their own that the pipeline names. Views are run one by one: three at once take as long (YOLOX-nano,
one thread: 14.2 ms a view either way).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from avrt.errors import SpecError, did_you_mean
from avrt.model.stage import Stage
from avrt.payload import ImageDetections
from avrt.stages.camera.decoding import decoded, prepare
from avrt.stages.camera.letterbox import canvas, layout
from avrt.stages.camera.networks import CLASSES, NETWORKS, ROAD_USERS, Movable
from avrt.stages.camera.session import opened
from avrt.stages.camera.suppression import Candidates, joined, suppressed
from avrt.stages.parameters import check_positive, check_probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import Image
    from avrt.stages.camera.letterbox import Layout
    from avrt.stages.camera.networks import Network, Session, Shape, Slot

TILES_MAX = 16
CANDIDATES_MAX = 300  # a view
CUT_MARGIN = 0.02  # of a view's width: a box that ends so near to an inner border is cut by it
VEHICLES = {"car", "truck"}


class Detector(Stage):
    """Turn an image into boxes of road users, best score first.

    Args:
        model: "builtin", or the path of a network, an ONNX file, or of other weights of the
            built-in one (.npz); a relative one starts at the current folder.
        network: its family, "yolox", "nanodet", "fastestdet" or "centre" (the built-in one); told
            from its shapes by default.
        tiles: views side by side that a wide image is cut into, at most.
        score_min: lowest score; by default the one of the network's family.
        iou_max: boxes of two objects overlap by no more, intersection over union.
        threads: that the network computes with; results are the same at every run with one.
        providers: execution providers of onnxruntime, the preferred one first.
    """

    def __init__(  # noqa: PLR0913 - every one is a parameter in the pipeline file
        self,
        *,
        model: str,
        network: str | None = None,
        tiles: int = 1,
        score_min: float | None = None,
        iou_max: float = 0.5,
        threads: int = 1,
        providers: Sequence[str] = ("CPUExecutionProvider",),
    ) -> None:
        check_positive(tiles=tiles, threads=threads)
        check_probability(iou_max=iou_max)
        if tiles > TILES_MAX:
            raise SpecError(f"expected at most {TILES_MAX} tiles, found {tiles}", ("tiles",))
        if score_min is not None:
            check_probability(score_min=score_min)
        self.session = opened(model, threads, providers)
        self.network = recognised(self.session, network)
        self.input_name = self.session.get_inputs()[0].name
        self.tiles = tiles
        self.score_min = self.network.score_min if score_min is None else score_min
        self.iou_max = iou_max

    def place(self, device: str) -> None:
        """Let the built-in network compute there; onnxruntime's providers choose their own."""
        if isinstance(self.session, Movable):
            self.session.place(device)

    def weight_arrays(self) -> Sequence[object]:
        """Return the parameters of the built-in network; those of onnxruntime are out of reach."""
        return self.session.weight_arrays() if isinstance(self.session, Movable) else ()

    def warm(self) -> None:
        """Look at a blank image once, so that the first one finds all memory ready."""
        prepare()
        width, height = self.network.size
        self._found(np.full((height, width * self.tiles, 3), 114, np.uint8))

    def process(self, image: Message[Image]) -> ImageDetections:
        """Return what the network finds, in pixels of the image."""
        rgb = decoded(image.payload)
        found = self._found(rgb)
        return ImageDetections(
            boxes=found.boxes,
            scores=found.scores,
            labels=tuple(ROAD_USERS[index] for index in found.classes.tolist()),
            width_px=rgb.shape[1],
            height_px=rgb.shape[0],
            info=image.payload.info,
        )

    def _found(self, rgb: NDArray[np.uint8]) -> Candidates:
        shown = layout((rgb.shape[1], rgb.shape[0]), self.network.size, self.tiles)
        views = [self._in_view(view, shown, index) for index, view in enumerate(shown.views(rgb))]
        return suppressed(joined(views, GROUPS), GROUPS, self.iou_max)

    def _in_view(self, view: NDArray[np.uint8], shown: Layout, index: int) -> Candidates:
        """Return what one view shows, in pixels of the image."""
        whole = canvas(view, self.network.size, self.network.grey)
        outputs = self.session.run(None, {self.input_name: self.network.prepared(whole)})
        boxes, scores, classes = self.network.decoded(outputs, self.score_min)
        width, height = shown.shown(index)
        boxes = np.clip(boxes, 0, np.array([width, height] * 2, np.float32))
        ends = np.stack([boxes[:, 0], width - boxes[:, 2]], axis=1)
        is_inner = [index > 0, index < len(shown.lefts) - 1]
        cut = (ends <= CUT_MARGIN * width) & is_inner
        sound = (boxes[:, 2:] > boxes[:, :2]).all(axis=1) & (GROUPS[classes] >= 0)
        found = Candidates(shown.to_picture(boxes, index), scores, classes, cut).taken(sound)
        found = found.taken(np.argsort(-found.scores, kind="stable")[:CANDIDATES_MAX])
        return suppressed(found, GROUPS, self.iou_max)


def recognised(session: Session, name: str | None = None) -> Network:
    """Return the family of a network, by its shapes or by its name, at the size of its input.

    Raises:
        SpecError: there is no such family, or the network's shapes fit none or not this one.
    """
    if name is not None and name not in NETWORKS:
        what = f"expected a family of networks, found {name!r}; {did_you_mean(name, NETWORKS)}"
        raise SpecError(what, ("network",))
    size = _input_size(session)
    outputs = [_shape(slot) for slot in session.get_outputs()]
    known = NETWORKS if name is None else {name: NETWORKS[name]}
    for family in known.values():
        if family.fits(size, outputs):
            return family(size)
    what = f"expected the outputs of {' or '.join(known)} for an input of {size[0]} x {size[1]}"
    raise SpecError(f"{what}, found {outputs}", ("model",) if name is None else ("network",))


def _input_size(session: Session) -> tuple[int, int]:
    """Return width and height of the one input."""
    inputs = session.get_inputs()
    match [(slot.type, _shape(slot)) for slot in inputs]:
        case [("tensor(float)", (1, 3, height, width))] if height > 0 and width > 0:
            return width, height
        case _:
            found = ", ".join(f"{slot.type} {slot.shape}" for slot in inputs)
            what = f"expected one input, tensor(float) [1, 3, height, width], found {found}"
            raise SpecError(what, ("model",))


def _shape(slot: Slot) -> Shape:
    """Return a shape for one image; a dimension that is left open, other than this one, is -1."""
    sides = [side if isinstance(side, int) else -1 for side in slot.shape]
    return (1, *sides[1:]) if sides and sides[0] == -1 else tuple(sides)


def _groups() -> NDArray[np.int64]:
    """Return the group of each class of COCO, (80,); -1 for what is no road user."""
    labels = [ROAD_USERS.get(index, "") for index in range(CLASSES)]
    names = ["vehicle" if label in VEHICLES else label for label in labels]
    order = ["vehicle", "pedestrian", "cyclist"]
    return np.array([order.index(name) if name else -1 for name in names], np.int64)


GROUPS = _groups()
