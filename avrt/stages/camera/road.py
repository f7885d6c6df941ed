"""Tell road and lane lines in a camera image with TwinLiteNet: the `RoadNetwork` stage.

The network is in `twinlite`; its weights stay in a file of their own that the pipeline names. That
file is a PyTorch state dictionary and is read as data: code that a pickle may hold is not run.

The image is scaled to 640 x 360 pixels, whatever its aspect, as in the network's training. What is
found is given at that size, since it knows no more.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image as PillowImage

from avrt.errors import SpecError, did_you_mean
from avrt.model.stage import Stage
from avrt.payload import RoadMask
from avrt.stages.camera.decoding import decoded, prepare
from avrt.stages.camera.twinlite import TwinLiteNet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from avrt.model.message import Message
    from avrt.payload import Image

SIZE = (640, 360)  # width and height of the network's input, pixels
PARALLEL = "module."  # training on several devices puts this before each name


class RoadNetwork(Stage):
    """Turn an image into masks of the road that can be driven on and of lane lines.

    Args:
        model: path of the weights; a relative one starts at the current folder.
    """

    def __init__(self, *, model: str) -> None:
        self.network = TwinLiteNet()
        weights = read_weights(model)
        try:
            self.network.load_state_dict(weights)
        except RuntimeError as error:
            what = f"{model} holds no weights of TwinLiteNet: {_first_line(error)}"
            raise SpecError(what, ("model",)) from None
        self.network.eval()

    def warm(self) -> None:
        """Look at a blank image once, so that the first one finds all memory ready."""
        prepare()
        self._masks(np.full((SIZE[1], SIZE[0], 3), 114, np.uint8))

    def weight_arrays(self) -> list[torch.Tensor]:
        """Return the parameters of the network, and what it normalises with."""
        return [*self.network.parameters(), *self.network.buffers()]

    def process(self, image: Message[Image]) -> RoadMask:
        """Return the masks of the image, scaled to 640 x 360 pixels."""
        rgb = decoded(image.payload)
        drivable, lane = self._masks(rgb)
        return RoadMask(drivable, lane, width_px=rgb.shape[1], height_px=rgb.shape[0])

    def _masks(self, rgb: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        picture = PillowImage.fromarray(rgb).resize(SIZE, PillowImage.Resampling.BILINEAR)
        channels = np.asarray(picture, np.float32).transpose(2, 0, 1) / 255
        with torch.inference_mode():
            road, lane = self.network(torch.from_numpy(channels)[None])
        drivable, line = ((one[0, 1] > one[0, 0]).numpy() for one in (road, lane))
        return drivable, line


def read_weights(model: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a state dictionary by name.

    Raises:
        SpecError: the file is missing or holds anything else.
    """
    path = Path(model)
    if not path.is_file():
        names = sorted(p.name for p in path.parent.glob("*.pt*"))
        remedy = f"; {did_you_mean(path.name, names)}" if names else ""
        raise SpecError(f"no such file: {path.absolute()}{remedy}", ("model",))
    try:
        found: object = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        what = f"expected weights saved by PyTorch, found {path}: {_first_line(error)}"
        raise SpecError(what, ("model",)) from None
    if not isinstance(found, Mapping):
        what = f"expected a state dictionary in {path}, found {type(found).__name__}"
        raise SpecError(what, ("model",))
    names = [str(name) for name in found]
    prefix = PARALLEL if all(name.startswith(PARALLEL) for name in names) else ""
    return {str(name).removeprefix(prefix): value for name, value in found.items()}


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
