"""Devices that come back in virtual time: the kernel hears of those that have proved themselves.

The same trials as in a live run (`avrt.drivers.probation`), by the same rules of `Recovery`; only
nobody probes: a fault says when a device answers again. Twins take no virtual time, and each is
waited for at the instant of the job that it follows, so the same faults give the same run. A next
try comes with the first instant after its wait. One that breaks on probation has failed it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from avrt.drivers.probation import tell_failed
from avrt.drivers.virtual import VirtualLoop
from avrt.errors import FaultError
from avrt.kernel import Kernel
from avrt.model.events import DeviceBack, DeviceLost
from avrt.safety.recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avrt.drivers.inject.jobs import TappedWorker
    from avrt.drivers.loop import Notes
    from avrt.drivers.probation import Probation, Trial
    from avrt.model.events import Event
    from avrt.model.spec import PipelineSpec


@dataclass(slots=True)
class _Device:
    """How a device stands that was lost.

    Attributes:
        is_lost: whether the kernel does without it.
        try_ns: when it may be tried next; None while it does not answer, and for good once out.
        trial: the one underway.
    """

    recovery: Recovery = field(default_factory=Recovery)
    is_lost: bool = False
    try_ns: int | None = None
    trial: Trial | None = None


class ProvingLoop(VirtualLoop):
    """A loop whose kernel hears of devices what `Returns` lets through."""

    def __init__(
        self,
        spec: PipelineSpec,
        feed: Iterator[tuple[int, Event]],
        worker: TappedWorker,
        journal: Notes,
        returns: Returns,
        until_ns: int,
    ) -> None:
        super().__init__(spec, Kernel(spec), feed, worker, journal, until_ns=until_ns)
        self._tapped = worker
        self._returns = returns

    def _step(self, at_ns: int, events: list[Event]) -> None:
        self._tapped.now_ns = at_ns
        told = self._returns.through(at_ns, events)
        if told or not events or self._is_awaited(at_ns):
            super()._step(at_ns, told)


class Returns:
    """What becomes of devices that are lost and come back."""

    def __init__(self, probation: Probation) -> None:
        self._probation = probation
        self._devices: dict[str, _Device] = {}

    def through(self, at_ns: int, events: Sequence[Event]) -> list[Event]:
        """Take in the events of an instant; return those that the kernel is to hear of now."""
        told = [event for event in events if not self._is_kept(event, at_ns)]
        return [*told, *self._proved(at_ns)]

    def _is_kept(self, event: Event, at_ns: int) -> bool:
        """Take in what becomes of devices; return whether the kernel is not to hear of it now."""
        match event:
            case DeviceLost():
                return self._is_known(event.device, at_ns)
            case DeviceBack():
                device = self._devices[event.device]
                device.try_ns = None if device.recovery.is_out else at_ns
                return True
            case _:
                return False

    def _is_known(self, name: str, at_ns: int) -> bool:
        """Take in that a device broke; return whether it was lost already."""
        device = self._devices.setdefault(name, _Device())
        is_known, device.is_lost = device.is_lost, True
        if not is_known:
            device.recovery.lost(at_ns)
        elif device.trial is not None:
            self._failed(name, device, "it broke again", at_ns)
        device.try_ns = None
        return is_known

    def _proved(self, at_ns: int) -> Sequence[DeviceBack]:
        """Go on with all trials; return the devices that have proved themselves now."""
        back: list[DeviceBack] = []
        for name, device in self._devices.items():
            if device.trial is None and device.try_ns is not None and device.try_ns <= at_ns:
                self._begin(name, device, at_ns)
            if device.trial is None:
                continue
            device.trial.settle()
            why = device.trial.verdict(at_ns)
            if why:
                self._failed(name, device, why, at_ns)
            elif why is not None:
                self._end(device)
                device.is_lost, device.try_ns = False, None
                device.recovery.back(at_ns)
                back.append(DeviceBack(name))
        return back

    def _begin(self, name: str, device: _Device, at_ns: int) -> None:
        lost = {other for other, known in self._devices.items() if known.is_lost}
        trial = self._probation.trial(name, lost)
        if isinstance(trial, FaultError):
            self._failed(name, device, str(trial), at_ns)
            return
        device.trial = trial
        if why := trial.begin():
            self._failed(name, device, why, at_ns)
        else:
            trial.join(self._probation.shadows)

    def _end(self, device: _Device) -> None:
        if device.trial is not None:
            device.trial.leave(self._probation.shadows)
            device.trial = None

    def _failed(self, name: str, device: _Device, why: str, at_ns: int) -> None:
        self._end(device)
        device.recovery.failed(at_ns)
        device.try_ns = None if device.recovery.is_out else at_ns + device.recovery.wait_ns
        tell_failed(name, why, device.recovery)
