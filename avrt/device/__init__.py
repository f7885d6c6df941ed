"""Where work runs: streams, events, memory and copies on the CPU, on CUDA, or in virtual time.

`Executor(CpuDevice())`, `Executor(CudaDevice(0))` and `Executor(SimulatedDevice())` follow one
contract (`base`), and `conformance` checks it. The package needs torch and nothing else.
"""

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
