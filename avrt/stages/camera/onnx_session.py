"""Open an ONNX network with onnxruntime, and say in the user's words what is wrong with it.

onnxruntime is an optional extra: it is imported here, when the first network is opened. One thread
and sequential execution make the same bits at every run; operators that are not deterministic are
refused where an execution provider has others.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

from avrt.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from avrt.stages.camera.networks import Session

FAILURES = (
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)
ERRORS_ONLY = 3  # log severity: networks of 2021 draw a warning for every weight


def opened(model: str, threads: int, providers: Sequence[str]) -> Session:
    """Return a session for the network in a file.

    Args:
        model: path of the file; a relative one starts at the current folder.
        threads: within one operator.
        providers: names of execution providers, the preferred one first.

    Raises:
        SpecError: the extra is not installed, there is no such provider, or the file is missing or
            holds no network that onnxruntime runs.
    """
    runtime = _imported()
    if isinstance(providers, str):
        raise SpecError(f"expected a list of names, found {providers!r}", ("providers",))
    available: list[str] = runtime.get_available_providers()
    for name in providers:
        if name not in available:
            what = f"onnxruntime has no execution provider {name!r} here; "
            raise SpecError(what + did_you_mean(name, available), ("providers",))
    path = Path(model)
    if not path.is_file():
        names = sorted(p.name for p in path.parent.glob("*.onnx"))
        remedy = f"; {did_you_mean(path.name, names)}" if names else ""
        raise SpecError(f"no such file: {path.absolute()}{remedy}", ("model",))
    options = runtime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = True
    try:
        session = runtime.InferenceSession(str(path), options, providers=list(providers))
    except _failures() as error:
        told = " ".join(str(error).split())
        what = f"expected a network that onnxruntime can run, found {path}: {told}"
        raise SpecError(what, ("model",)) from None
    return cast("Session", session)


def _imported() -> ModuleType:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        what = f"a camera network needs onnxruntime ({error}): pip install 'avrt[onnx]'"
        raise SpecError(what, ("model",)) from None


def _failures() -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises for a file; its exceptions have no base of their own."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    return tuple(getattr(state, name) for name in FAILURES)
