"""Where a stage computes: the processor, or a GPU, on a CUDA stream of the stage's own.

A stage is called on the host in any case. On a GPU whatever it puts on the device goes to its
stream, and a job is over when its stream is: `compute` returns then, so whoever reads the result
never reads it too early. An error of CUDA itself is the device's, and stays with this process.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from avrt.errors import SoftwareFault
from avrt.model.graph import release_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from avrt.device.base import Stream
    from avrt.model.spec import DeviceSpec, PipelineSpec, StageSpec

T = TypeVar("T")

CPU = "cpu"
CUDA = "cuda"


class Place(Protocol):
    """Where one stream computes.

    Attributes:
        device: as torch names it: "cpu", "cuda:0".
    """

    device: str

    def compute(self, call: Callable[[], T]) -> T:
        """Call a stage, and wait for what it put on its device."""


class OnProcessor:
    """Computes right here."""

    device = CPU

    def compute(self, call: Callable[[], T]) -> T:
        return call()


class OnGpu:
    """Computes on a CUDA stream."""

    def __init__(self, device: str, name: str, priority: int) -> None:
        """Make the stream; a higher priority goes first.

        Raises:
            SpecError: the host has no such GPU.
        """
        from avrt.device.cuda import CudaDevice  # noqa: PLC0415 - brings torch
        from avrt.device.executor import Executor  # noqa: PLC0415

        self.device = device
        self._executor = Executor(CudaDevice(int(device.partition(":")[2])))
        self._stream: Stream = self._executor.stream(name, priority=priority)

    def compute(self, call: Callable[[], T]) -> T:
        made: list[T] = []
        self._executor.launch(self._stream, lambda: made.append(call()))
        try:
            self._executor.synchronize(self._stream)
        finally:
            self._executor.reset(self._stream)
        if not made:
            raise SoftwareFault("exception", "the stream did nothing")
        return made[0]


def works(kind: str) -> bool:
    """Return whether a device of this type computes; raises what a broken one raises.

    An error of CUDA stays with its process, so such a GPU works again in another one only.
    """
    if not kind.startswith(CUDA):
        return True
    import torch  # noqa: PLC0415 - for GPUs only

    return float(torch.ones(1, device=kind).sum().item()) == 1.0


def places_of(spec: PipelineSpec, stage: StageSpec, task: str) -> Mapping[str, Callable[[], Place]]:
    """Return what makes the place of a task on each device that it may run on, by name."""
    homes = [segment.device for segment in stage.segments] or [stage.home(task)]
    homes += [variant.device for variant in stage.variants if variant.device is not None]
    devices = dict.fromkeys(place for home in homes for place in spec.places(spec.device(home)))
    return {device.name: partial(_place, device, stage, urgency(spec, stage)) for device in devices}


def _place(device: DeviceSpec, stage: StageSpec, priority: int) -> Place:
    if device.type.startswith(CUDA):
        return OnGpu(device.type, stage.name, priority)
    return OnProcessor()


def urgency(spec: PipelineSpec, stage: StageSpec) -> int:
    """Return how many stages with a GPU stream go after this one, by the policy's fixed order.

    Policies that order jobs anew at each event give all streams the same priority.
    """
    key = ORDERS.get(spec.policy)
    if key is None:
        return 0
    own = key(spec, stage)
    return sum(key(spec, other) > own for other in _rivals(spec, stage))


def _rivals(spec: PipelineSpec, stage: StageSpec) -> Iterable[StageSpec]:
    own = set(stage.homes)
    return (other for other in spec.stages if own & set(other.homes) and other is not stage)


def _by_deadline(_spec: PipelineSpec, stage: StageSpec) -> int:
    return stage.deadline_ns


def _by_priority(_spec: PipelineSpec, stage: StageSpec) -> int:
    return stage.priority or 0


def _by_period(spec: PipelineSpec, stage: StageSpec) -> int:
    return release_periods(spec)[stage.name] or 0


ORDERS: Mapping[str, Callable[[PipelineSpec, StageSpec], int]] = {
    "dm": _by_deadline,
    "fp": _by_priority,
    "rm": _by_period,
}
