"""What runs jobs: streams, events, memory and copies, and what the host has.

`Executor(CpuDevice())`, `Executor(CudaDevice(0))` and `Executor(SimulatedDevice())` follow one
contract (`base`), and `conformance` checks it. Running work needs torch and nothing else; what the
host has (`topology`, `resources`) needs not even that, so a name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avrt.device.base import Buffer, Caps, Event, HardwareExecutor, Stream
    from avrt.device.cpu import CpuDevice
    from avrt.device.cuda import CudaDevice
    from avrt.device.executor import Executor
    from avrt.device.order import OrderChecker
    from avrt.device.simulated import SimulatedDevice
    from avrt.device.timeline import Timeline
    from avrt.device.worker import CpuStream, WorkerSetup

__all__ = [
    "Buffer",
    "Caps",
    "CpuDevice",
    "CpuStream",
    "CudaDevice",
    "Event",
    "Executor",
    "HardwareExecutor",
    "OrderChecker",
    "SimulatedDevice",
    "Stream",
    "Timeline",
    "WorkerSetup",
]

_MODULES = {
    "base": ("Buffer", "Caps", "Event", "HardwareExecutor", "Stream"),
    "cpu": ("CpuDevice",),
    "cuda": ("CudaDevice",),
    "executor": ("Executor",),
    "order": ("OrderChecker",),
    "simulated": ("SimulatedDevice",),
    "timeline": ("Timeline",),
    "worker": ("CpuStream", "WorkerSetup"),
}
_HOME = {name: f"avrt.device.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'avrt.device' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
