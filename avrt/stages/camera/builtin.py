"""The camera network that avrt brings along: its structure as torch modules, and its weights.

A backbone of convolutions, each normalised while it is trained, at strides 4, 8, 16 and 32; the
first takes 6 x 6 pixels at once. What the coarse ones see is added to the finer ones on the way
back (Lin et al., "Feature Pyramid Networks for Object Detection", CVPR 2017, section 3); one head
at stride 4 tells what and where (`networks.Centre`). A cell that is not the likeliest of its 3 x 3
neighbours for a kind is none of it.

Weights are a .npz file of plain arrays, float16, one for each parameter, with the normalisation
folded into the convolutions; no code is read. `tools/train_camera.py` makes them from the built-in
world. One thread makes the same bits at every run.

Shape letters: B images, C channels, H and W of a map.
"""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from avrt.errors import SpecError
from avrt.stages.camera.networks import Centre

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

WEIGHTS = Path(__file__).with_name("builtin.npz")
CHANNELS = (24, 48, 80, 96)  # at strides 4, 8, 16, 32
HEAD = 32
EXPONENT_MAX = 7.0  # of a distance over the stride
RARE = -4.6  # logit of 1 %: what a cell says before it has learnt (Lin et al., ICCV 2017, sec. 4.1)


class CentreNetwork(nn.Module):
    """Images, (B, 3, H, W) float32, to what is where: logits and distances, strides of 4 pixels.

    H and W are multiples of 32. The logits are (B, 4, H / 4, W / 4), one map a kind; the distances
    to left, top, right and bottom have the same shape, pixels.

    Args:
        trained: convolutions are normalised over the batch, which is folded into them afterwards.
    """

    def __init__(self, *, trained: bool = False) -> None:
        super().__init__()
        first, second, third, fourth = CHANNELS
        self.stem = Convolved(3, first, trained=trained, kernel=6, stride=4)
        self.level4 = Convolved(first, first, trained=trained)
        self.level8 = Level(first, second, 1, trained=trained)
        self.level16 = Level(second, third, 2, trained=trained)
        self.level32 = Level(third, fourth, 2, trained=trained)
        self.lateral = nn.ModuleList(nn.Conv2d(count, HEAD, 1) for count in CHANNELS)
        self.smooth16 = Convolved(HEAD, HEAD, trained=trained)
        self.smooth8 = Convolved(HEAD, HEAD, trained=trained)
        self.spread4 = Convolved(HEAD, HEAD, trained=trained, groups=HEAD)
        self.mixed4 = Convolved(HEAD, 2 * HEAD, trained=trained, kernel=1)
        self.kinds = nn.Conv2d(2 * HEAD, len(Centre.classes), 1)
        self.sides = nn.Conv2d(2 * HEAD, 4, 1)
        nn.init.zeros_(self.kinds.weight)
        nn.init.constant_(torch.as_tensor(self.kinds.bias), RARE)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        four = self.level4(self.stem(images))
        eight = self.level8(four)
        sixteen = self.level16(eight)
        whole = self.lateral[3](self.level32(sixteen))
        whole = self.smooth16(self.lateral[2](sixteen) + doubled(whole))
        whole = self.smooth8(self.lateral[1](eight) + doubled(whole))
        whole = self.mixed4(self.spread4(self.lateral[0](four) + doubled(whole)))
        sides = torch.exp(self.sides(whole).clamp(max=EXPONENT_MAX)) * Centre.stride
        return self.kinds(whole), sides


class Convolved(nn.Module):
    """A convolution, normalised while it is trained, and activated."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        trained: bool,
        kernel: int = 3,
        stride: int = 1,
        groups: int = 1,
    ) -> None:
        super().__init__()
        padding = (kernel - stride + 1) // 2 if stride > 2 else kernel // 2
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups)
        self.norm = nn.BatchNorm2d(outputs) if trained else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        return functional.relu(self.norm(self.conv(features)), inplace=True)


class Level(nn.Sequential):
    """A convolution that halves the size, and some more."""

    def __init__(self, inputs: int, outputs: int, more: int, *, trained: bool) -> None:
        rest = [Convolved(outputs, outputs, trained=trained) for _ in range(more)]
        super().__init__(Convolved(inputs, outputs, trained=trained, stride=2), *rest)


def doubled(features: Tensor) -> Tensor:
    """Return a map of twice the size, each cell four times."""
    return functional.interpolate(features, scale_factor=2.0)


@dataclass(frozen=True)
class Slot:
    """An input or output, as onnxruntime describes one."""

    name: str
    shape: list[int | str | None]
    type: str = "tensor(float)"


class BuiltinSession:
    """The network with weights of a file; what a session of onnxruntime does, this does too.

    Args:
        path: of the weights.
        threads: that an image is computed with.

    Raises:
        SpecError: the file is missing or holds no weights of this network.
    """

    def __init__(self, path: Path, threads: int) -> None:
        self.threads = threads
        self._weights = read_weights(path, CentreNetwork())
        self.place("cpu")

    def place(self, device: str) -> None:
        """Compute on this device from now on.

        Nothing is read from where it was before: that may be lost.
        """
        network = CentreNetwork()
        network.load_state_dict(self._weights)
        network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network = network.to(device)
        self.device = device

    def weight_arrays(self) -> list[Tensor]:
        """Return the parameters that it computes with, where they are now."""
        return [*self.network.parameters(), *self.network.buffers()]

    def get_inputs(self) -> list[Slot]:
        width, height = Centre.view
        return [Slot("images", [1, 3, height, width])]

    def get_outputs(self) -> list[Slot]:
        width, height = (side // Centre.stride for side in Centre.view)
        kinds = len(Centre.classes)
        return [Slot("kinds", [1, kinds, height, width]), Slot("sides", [1, 4, height, width])]

    def run(
        self, outputs: None, inputs: Mapping[str, NDArray[np.float32]]
    ) -> list[NDArray[np.float32]]:
        """Return how likely each cell is the middle of something, and the distances around it."""
        assert outputs is None
        images = torch.from_numpy(inputs["images"]).to(self.device)
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.inference_mode(), computing_with(self.threads):
            logits, sides = self.network(images)
            likely = torch.sigmoid(logits)
            best = functional.max_pool2d(likely, 3, stride=1, padding=1)
            peaks = torch.where(likely == best, likely, torch.zeros((), device=self.device))
        return [peaks.cpu().numpy(), sides.cpu().numpy()]


def read_weights(path: Path, network: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a network by name, float32.

    Raises:
        SpecError: the file is missing or holds anything else.
    """
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    what = f"expected weights of avrt's camera network, {len(expected)} arrays in a .npz file"
    if not path.is_file():
        raise SpecError(f"no such file: {path.absolute()}; {what}, or 'builtin'", ("model",))
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            found = {str(name): np.asarray(held[name]) for name in held.files}
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
        told = " ".join(str(error).split())
        raise SpecError(f"{what}, found {path}: {told}", ("model",)) from None
    for name, shape in expected.items():
        value = found.get(name)
        if value is None or value.shape != shape or value.dtype.kind != "f":
            has = "none" if value is None else f"{value.dtype} {list(value.shape)}"
            said = f"{what}, {name} being {list(shape)}; found {has} in {path}"
            raise SpecError(said, ("model",))
    if len(found) > len(expected):
        raise SpecError(f"{what}, found {len(found)} in {path}", ("model",))
    return {name: torch.from_numpy(value.astype(np.float32)) for name, value in found.items()}


@contextmanager
def computing_with(count: int) -> Iterator[None]:
    """Let torch compute with some threads for a while; in a run it does so anyway."""
    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if before != count:
            torch.set_num_threads(before)
