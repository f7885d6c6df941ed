"""Open a camera network, whatever computes it; what of a session is used is told here once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from avrt.stages.camera import onnx_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

BUILTIN = "builtin"
"""Name of the network that avrt brings along, in place of a path."""


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


def opened(model: str, threads: int, providers: Sequence[str]) -> Session:
    """Return a session for the network that avrt brings along, or for one in a file.

    Args:
        model: "builtin", the path of other weights of that network (.npz), or that of an ONNX file;
            a relative one starts at the current folder.
        threads: within one operator.
        providers: names of onnxruntime's execution providers, the preferred one first.

    Raises:
        SpecError: there is no such file or provider, or the file holds something else.
    """
    if model != BUILTIN and Path(model).suffix != ".npz":
        return onnx_session.opened(model, threads, providers)
    from avrt.stages.camera import builtin  # noqa: PLC0415 - brings torch

    path = builtin.WEIGHTS if model == BUILTIN else Path(model)
    return builtin.BuiltinSession(path, threads)
