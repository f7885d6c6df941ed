"""Open a camera network, whatever computes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from avrt.stages.camera import onnx_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from avrt.stages.camera.networks import Session

BUILTIN = "builtin"
"""Name of the network that avrt brings along, in place of a path."""


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
